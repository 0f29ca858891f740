"""The dropdown lists of an explorer's choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from html import escape
from typing import Any

import ipywidgets as widgets

from leak_atlas import BadInput, nearest
from leak_atlas.explore.description import Choice, Description, State
from leak_atlas.explore.look import COLOURS, OPEN, STORED

KEY = f"{STORED}stored&ensp;{OPEN}not yet: choose it to see what it costs"


class Controls(widgets.VBox):
    """The choices of A and B next to each other, those of both below, further choices folded.

    `changed` is called when a user chooses.
    """

    def __init__(self, of: Description, changed: Callable[[], None]) -> None:
        self._of = of
        self._changed = changed
        self._quiet = False
        self.lists = {choice.name: self._list(choice) for choice in of.choices}
        shown = self._block(more=False)
        if folded := self._block(more=True):
            shown.append(widgets.Accordion([widgets.VBox(folded)], titles=["more"]))
        hint = f'<p class="leak-atlas-hint">{escape(of.hint)}<br>{KEY}</p>'
        super().__init__([*shown, widgets.HTML(hint)])

    @property
    def state(self) -> State:
        """The label of each choice."""
        return {name: each.value for name, each in self.lists.items()}

    def check(self, name: str, label: Any) -> None:
        """Raises BadInput on a label that is not offered."""
        (choice,) = [each for each in self._of.choices if each.name == name]
        labels = list(choice.options)
        if label not in labels:
            raise BadInput(f"{name} cannot be {label!r}{nearest(str(label), labels)}")

    def choose(self, state: State) -> None:
        """Sets some choices without calling `changed`."""
        with self._silent():
            for name, label in state.items():
                self.lists[name].value = label

    def mark(self, unused: Set[str], stored: Callable[[Choice, str], bool]) -> None:
        """Marks each option as stored or not; hides choices that have no effect now."""
        for choice in self._of.choices:
            shown = choice.name not in unused
            control = self.lists[choice.name]
            control.layout.display = None if shown else "none"
            if shown:
                options = []
                for label in choice.options:
                    mark = STORED if stored(choice, label) else OPEN
                    options.append((mark + label, label))
                self._set_options(control, options)

    def _set_options(self, control: widgets.Dropdown, options: list[tuple[str, str]]) -> None:
        """Changes the texts of the options; the chosen option stays."""
        if list(control.options) != options:
            chosen = control.value
            with self._silent():
                control.options = options
                control.value = chosen

    @contextmanager
    def _silent(self) -> Iterator[None]:
        """In this context, setting a value does not call `changed`."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def _observed(self, _: Any) -> None:
        if not self._quiet:
            self._changed()

    # ------------------------------------------------------------ widgets

    def _list(self, choice: Choice) -> widgets.Dropdown:
        control = widgets.Dropdown(
            options=list(choice.options),
            value=choice.start,
            tooltip=choice.meaning,
            description=choice.label or choice.name,
            style={"description_width": "initial"},
        )
        control.observe(self._observed, names="value")
        return control.add_class(f"leak-atlas-choice-{choice.name}")

    def _block(self, more: bool) -> list[widgets.Widget]:
        """A and B next to each other, and below what belongs to both."""
        sides: list[widgets.Widget] = []
        for side in COLOURS:
            sides += self._row(side, more)
        both = self._row("", more)
        if not sides:
            return both
        return [widgets.HBox(sides).add_class("leak-atlas-sides"), *both]

    def _row(self, side: str, more: bool) -> list[widgets.Widget]:
        """The lists of a side in one row. Without lists there is no row."""
        lists = []
        for choice in self._of.choices:
            if choice.side == side and choice.more == more:
                lists.append(self.lists[choice.name])
        if not lists:
            return []
        head = [widgets.HTML(f'<b class="leak-atlas-{side}">{side}</b>')] if side else []
        row = widgets.HBox([*head, *lists]).add_class("leak-atlas-row")
        return [row.add_class(f"leak-atlas-side{side}")]
