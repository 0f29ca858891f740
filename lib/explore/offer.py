"""What is stored, and an offer to compute the rest: its cost is told before the click."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from lib import BadInput, lab, store
from lib.explore.looks import status
from lib.localization.disparity import Arrays
from lib.recipe import Step

LONG = 10.0  # minutes of computing above which a click on the button is not enough
WRAP = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 16px"}  # a row of controls


def markup(name: str = "") -> widgets.HTML:
    """An empty piece of the page, of the CSS class `name`."""
    made = widgets.HTML()
    if name:
        made.add_class(name)
    return made


class Shelf:
    """Stored results, each read once. Nothing is computed: what is missing or damaged is not there."""

    def __init__(self) -> None:
        self._read: dict[str, Arrays] = {}

    def results(self, steps: Sequence[Step]) -> list[Arrays] | None:
        """The arrays of each step; None where one is not there."""
        for step in steps:
            if step.key not in self._read:
                if not store.has(step.key):
                    return None
                try:
                    self._read[step.key] = store.read(step.key).arrays
                except store.Corrupt:
                    store.discard(step.key)  # so that it is computed again when somebody asks for it
                    return None
        return [self._read[step.key] for step in steps]


class Offer(widgets.VBox):
    """Says what is missing and what it would cost, and computes it on a click: two, where it takes long.

    `steps` are all that is looked at now, one list for each asker; `done` is called after a click, with what went
    wrong or with nothing.
    """

    def __init__(self, steps: Callable[[], list[list[Any]]], done: Callable[[str], None]) -> None:
        self._steps, self._done = steps, done
        self.cost, self.progress = markup("leak-atlas-cost"), widgets.Output()
        auto = widgets.Layout(width="auto")
        self.sure = widgets.Checkbox(description="yes, I want to wait for that", indent=False, layout=auto)
        self.train = widgets.Button(
            description="train what is missing",
            button_style="primary",
            icon="play",
            layout=widgets.Layout(width="auto"),
        )
        self.sure.observe(lambda change: setattr(self.train, "disabled", not change["new"]), names="value")
        self.train.on_click(self._compute)
        super().__init__([widgets.HBox([self.cost, self.sure, self.train], layout=WRAP), self.progress])

    @property
    def made(self) -> bool:
        """Whether there is something to click on."""
        return self.train.layout.display is None

    def tell(self, complete: bool, wrong: str = "") -> None:
        """Counts what is missing; `complete` says that all that is looked at is there, `wrong` why it cannot be."""
        from lib.lab.cluster import Where
        from lib.lab.plans import plan
        from lib.lab.run import width

        minutes, told = 0.0, wrong
        if not wrong and not complete:
            self.cost.value = status("counting what it costs ...")  # the first time, torch is loaded for that
        if not wrong:
            try:
                todo = plan(self._steps())
                if todo.jobs:
                    workers = width(todo, Where())
                    minutes, told = todo.seconds / 60 / workers, todo.preview(workers)
            except BadInput as error:
                wrong = told = str(error)
        self.cost.value = status(told)
        self.train.layout.display = None if told and not wrong else "none"
        self.sure.layout.display = None if minutes > LONG else "none"
        self.sure.value, self.train.disabled = False, minutes > LONG

    def _compute(self, _: Any) -> None:
        wrong = ""
        self.train.disabled = True
        with self.progress:
            try:
                lab.realize(*self._steps())
            except (BadInput, lab.Failed) as error:
                wrong = str(error)
        self.progress.clear_output()
        self._done(wrong)
