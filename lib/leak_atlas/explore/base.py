"""What every explorer is: controls over what is stored, and an offer to compute the rest on a
click.

A kind of explorer makes its controls with `watched`, says in `steps` what they ask for, and gives
in `look` what is stored of it. `figure` is what it shows now, for a page without a kernel.
"""

from __future__ import annotations

import base64
import gc
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import ipywidgets as widgets
from traitlets import MetaHasTraits, TraitError

from leak_atlas import BadInput, nearest
from leak_atlas.engine import store
from leak_atlas.explore.click import Offer
from leak_atlas.explore.look import (
    AUTO,
    OPEN,
    STORED,
    WIDE,
    WRAP,
    Frames,
    marks,
    percent,
    picture,
    status,
)
from leak_atlas.explore.shelf import SURE, members_found
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import Step
from leak_atlas.report.markup import drawn

if TYPE_CHECKING:
    import pandas as pd

    from leak_atlas.report.sheet import Sheet

P = ParamSpec("P")
T = TypeVar("T")

KEPT = 8  # choices whose drawings are kept


def offer(control: Any, options: Sequence[Any], otherwise: Any) -> Any:
    """Gives a control its options; it keeps its value, which is returned, where that is one of
    them.
    """
    values = [each[1] if isinstance(each, tuple) else each for each in options]
    if list(control.options) != list(options):
        value = control.value if control.value in values else otherwise
        control.options = options
        control.value = value
    return control.value


def undisturbed(answer: Callable[P, T]) -> Callable[P, T]:
    """Python's garbage, of which figures leave much, is collected after an answer: that may take
    half a second.
    """

    @wraps(answer)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return answer(*args, **kwargs)
        finally:
            if collecting:
                gc.enable()

    return alone


class View(NamedTuple):
    """What is stored at one choice: its figure, in sentences what it says, and what there has to be
    but is not.
    """

    sheet: Sheet | None
    said: Sequence[str]
    missing: Sequence[str]


class Export(widgets.VBox):
    """What is shown, to take away: its numbers, the members found, and a cell that shows it again."""

    def __init__(self, app: Explorer) -> None:
        self._app = app
        self.of: dict[str, Any] | None = None  # the state whose links are shown
        self.button = widgets.Button(description="export", icon="download", layout=AUTO).add_class(
            "leak-atlas-export"
        )
        self.button.on_click(lambda _: self._fill())
        self.links = widgets.HTML().add_class("leak-atlas-links")
        super().__init__([self.button, self.links], layout={"align_items": "flex-start"})

    def _fill(self) -> None:
        self.of = self._app.state
        tables = {"numbers": self._app.numbers, "members_found": self._app.found}
        self.links.value = str(
            drawn("export.html", tables=tables, code=self._app.code, data=_data, fpr=percent(SURE))
        )


def _data(table: pd.DataFrame) -> str:
    """A table as the address of its own CSV."""
    raw = table.to_csv(index=False, float_format="%.6g").encode()
    return f"data:text/csv;base64,{base64.b64encode(raw).decode()}"


class _Kind(MetaHasTraits, ABCMeta):
    """Of widgets that cannot be made while an abstract method is missing."""


class Explorer(widgets.VBox, metaclass=_Kind):
    """Controls, an offer, sentences and a picture; `steps` and `look` are a kind's own."""

    view: View

    def __init__(self) -> None:
        self._quiet, self._named, self._starts = False, dict[str, Any](), dict[str, Any]()
        self._there, self._settled = dict[Any, bool](), False  # whether a choice is stored
        self._made, self._frames = dict[Any, Any](), Frames()
        self.says, self.picture = widgets.HTML().add_class("leak-atlas-says"), widgets.HTML()
        self.offer = Offer(self.steps, self.computed)
        self.offer.layout.min_height = "36px"  # so that nothing jumps when the button comes
        self.export = Export(self)
        self.reset = widgets.Button(
            description="reset", icon="undo", tooltip="as it was in the beginning", layout=AUTO
        )
        self.reset.on_click(lambda _: self.restart())
        super().__init__()
        self.add_class("leak-atlas")

    def lay(
        self, rows: Sequence[Sequence[Any]], shown: Sequence[Any] = (), below: Sequence[Any] = ()
    ) -> None:
        """Rows of controls, the offer, the sentences, the picture with `shown` in its frame, what
        stands `below`.
        """
        key = widgets.HTML(f"{WIDE}{STORED}stored &ensp;{OPEN}not yet")
        *first, last = [[*row] for row in rows]
        self.children = [
            *(widgets.HBox(row, layout=WRAP) for row in [*first, [*last, self.reset, key]]),
            self.offer,
            self.says,
            widgets.VBox([self.picture, *shown], layout={"overflow": "auto"}),
            *below,
            self.export,
        ]

    def choose(self, **values: Any) -> Explorer:
        """Sets controls by their names, as a click would. Raises BadInput on what is not offered."""
        for name, value in values.items():
            if name not in self._named:
                raise BadInput(f"there is no control '{name}'{nearest(name, list(self._named))}")
            try:
                self._named[name].value = value
            except TraitError as error:
                raise BadInput(f"{name} cannot be {value!r} here") from error
        return self

    @property
    def state(self) -> dict[str, Any]:
        """The value of each control."""
        return {name: control.value for name, control in self._named.items()}

    @property
    def code(self) -> str:
        """A cell that brings an explorer, called `app`, from its beginning to what is shown now."""
        moved = [
            f"{name}={value!r}" for name, value in self.state.items() if value != self._starts[name]
        ]
        return f"app.choose({', '.join(moved)})"

    @abstractmethod
    def steps(self) -> list[list[Any]]:
        """All that is looked at, one list for each asker."""

    @abstractmethod
    def look(self) -> View:
        """Lets the controls offer what can be chosen now; what is stored at this choice."""

    @abstractmethod
    def needs(self, name: str, value: Any) -> Sequence[Step]:
        """Whatever has to be stored, so that a figure could be shown if control `name` had another
        value.
        """

    def attacks(self) -> dict[str, Arrays]:
        """What is shown of attacks, by the words for them."""
        return {}

    def kept(
        self, choice: Any, make: Callable[[], T], lasting: Callable[[T], bool] = lambda made: True
    ) -> T:
        """What `make` makes of a choice: once, if it is `lasting`, while it is among the last KEPT."""
        made: T = self._made.pop(choice) if choice in self._made else make()
        if lasting(made):
            self._made[choice] = made  # the latest stands last
        while len(self._made) > KEPT:
            del self._made[next(iter(self._made))]
        return made

    @property
    def figure(self) -> Sheet:
        """What is shown now, as a figure that needs no kernel. Raises BadInput where it is not
        stored.
        """
        if self.view.missing or not self.view.sheet:
            raise BadInput(
                f"{' '.join(self.view.missing)} Hand the explorer's steps to lab.realize first"
            )
        return self.view.sheet

    @property
    def numbers(self) -> pd.DataFrame:
        """What the picture draws, a row a point; no row where nothing is shown."""
        import pandas as pd

        made = self.view.sheet.numbers if self.view.sheet else None
        # what is ringed comes twice
        return pd.DataFrame() if made is None else made.drop_duplicates(ignore_index=True)

    @property
    def found(self) -> pd.DataFrame:
        """Of the attacks that are shown, the `members_found`."""
        return members_found(self.attacks())

    def watched(
        self, name: str, control: Any, took: Callable[[Any], None] = lambda value: None
    ) -> Any:
        """The control; each change is handed to `took`, which raises BadInput where it cannot be,
        and then shown.
        """
        self._named[name], self._starts[name] = control, control.value
        control.observe(partial(self._changed, took), names="value")
        return control

    def listed(
        self, name: str, options: Sequence[Any], value: Any, word: str = "", **look: Any
    ) -> Any:
        """A list of options as a watched control that is wide enough for them."""
        look = {
            "layout": {"width": "max-content"},
            "style": {"description_width": "initial"},
        } | look
        return self.watched(
            name, widgets.Dropdown(options=options, value=value, description=word or name, **look)
        )

    def mark(self, name: str, options: Sequence[Any], word: Callable[[Any], str] = str) -> None:
        """Says of each option of a control whether it is stored."""
        chosen, control = self.state, self._named[name]
        stored = set()
        for value in options:
            # a side's control tells of that side
            key = name, frozenset((chosen | {name: value}).items())
            if key not in self._there:
                try:
                    self._there[key] = all(store.has(step.key) for step in self.needs(name, value))
                except BadInput:  # it cannot be beside the other choices
                    self._there[key] = False
            if self._there[key]:
                stored.add(value)
        offer(control, marks(options, stored, word), control.value)

    def _changed(self, took: Callable[[Any], None], change: dict[str, Any]) -> None:
        if not self._quiet:
            try:
                took(change["new"])
            except BadInput as error:
                return self.settle(str(error))
            self.settle()

    def computed(self, wrong: str) -> None:
        """Something was computed, or went wrong."""
        self._there.clear()
        self._made.clear()
        self.export.of = None
        self.settle(wrong)

    @undisturbed
    def settle(self, wrong: str = "") -> None:
        """Shows what is stored, and what the rest would cost."""
        self._quiet = True  # what is set here does not call back
        try:
            view = self.view = self.look()
        finally:
            self._quiet = False
        if not self._settled:  # a kind may say in its first look what its controls begin with
            self._starts, self._settled = self.state, True
        self.picture.value = picture(view.sheet, self._frames) if view.sheet else ""
        self.says.value = status(*view.missing, *view.said)
        if self.export.of != self.state:  # they are of what was shown before
            self.export.links.value = ""
        self.offer.tell(wrong)

    def restart(self) -> None:
        """All controls as they were in the beginning."""
        self._quiet = True
        for name, value in self._starts.items():
            with suppress(TraitError):  # not offered now: `look` chooses
                self._named[name].value = value
        self.settle()
