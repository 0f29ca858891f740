"""An explorer is a `Description` of its data and its charts.

    class Widths(Description):
        name = "widths"
        hint = "Point at a cell to read its AUC."
        choices = (Choice("A_width", {"8": 8, "16": 16}, "8", side="A", label="width"), ...)

        def steps(self, state): ...      # the recipes that a state needs, one list a side
        def rows(self, state): ...       # {"cells": [{...}, ...]}; {} where nothing is stored
        def pointers(self, state, rows): # what can be moved without a kernel
            return [Pointer("epoch", "cell_epoch", [1, 2], start=2, slider=True, play=True)]
        def chart(self, state, rows, narrow): ...  # Vega-Lite, of the pieces in charts.py
        def sentences(self, state, rows): ...      # its findings, one a sentence

`state` is a dictionary of plain values: the label of each choice, the value of each pointer.

- A *choice* asks the kernel. A click trains what is not stored.
- A *pointer* is a signal of the chart. Clicks, lists, sliders and "play" move it in the browser,
  without a kernel. So rows hold what every value of the pointers shows.

The same description makes the widget of a notebook, its static picture (`instrument.py`) and the
page of the site (`page.py`). Figures are made of the pieces in `charts.py` and `vega.py`, rows of
those in `records.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from leak_atlas import BadInput, nearest
from leak_atlas.explore.records import Row
from leak_atlas.explore.vega import Chart
from leak_atlas.lab.plans import steps_of
from leak_atlas.recipe import Step

if TYPE_CHECKING:
    import pandas as pd

State: TypeAlias = dict[str, Any]
Rows: TypeAlias = Mapping[str, list[Row]]  # tidy rows by the name of their data set


@dataclass(frozen=True)
class Choice:
    """A list of named values. It belongs to side A or B, or to both (""); `more` folds it away."""

    name: str  # in the state: "A_width"
    options: Mapping[str, Any]  # by their labels
    start: str = ""  # the label that is chosen to begin with; default: the first
    side: str = ""
    label: str = ""  # in front of the list; default: the name
    more: bool = False
    meaning: str = ""  # in words, shown as a tooltip

    def __post_init__(self) -> None:
        if not self.start:
            object.__setattr__(self, "start", next(iter(self.options)))
        if self.start not in self.options:
            close = nearest(self.start, list(self.options))
            raise BadInput(f"{self.name} cannot be {self.start!r}{close}")


@dataclass(frozen=True)
class Pointer:
    """A value that is moved in the browser: the signal `signal` of the chart takes `values`."""

    name: str
    signal: str
    values: Sequence[Any]
    start: Any
    label: str = ""
    slider: bool = False  # else a list
    play: bool = False  # has a button that runs through the values
    hidden: bool = False  # has no control: moved by clicks on the figure alone


def sample_pointer(start: str) -> Pointer:
    """The chosen sample, which clicks on pictures move: see `charts.chosen_sample`."""
    return Pointer("sample", "sample_sample", [], start, hidden=True)


class Description(ABC):
    """What an explorer is: its choices, and what it computes, shows and says for each state."""

    name: ClassVar[str]  # of its notebook and its page
    hint: ClassVar[str]  # what one can do, in a sentence or two
    choices: Sequence[Choice]
    exploded: ClassVar[Sequence[str]] = ()  # columns of lists; exports have a row for each element

    @abstractmethod
    def steps(self, state: State) -> list[Any]:
        """All recipes of a state, in one collection for each side. Raises BadInput for a state that
        cannot be computed.
        """

    @abstractmethod
    def rows(self, state: State) -> Rows:
        """What is stored of a state; {} if nothing is. The first data set is exported."""

    @abstractmethod
    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        """What can be pointed at. Their values join the state that `chart` and `sentences` get."""

    @abstractmethod
    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        """The figure as Vega-Lite, without data; `narrow`: at most 350 pixels wide."""

    @abstractmethod
    def sentences(self, state: State, rows: Rows) -> list[str]:
        """What the figure shows, in words; also where nothing is stored, and `rows` is {}."""

    def marks(self, state: State, side: str) -> Sequence[Step]:
        """The steps that must be stored so that a side can be shown; "" means both sides."""
        return steps_of(self.steps(state))

    def unused(self, state: State) -> set[str]:
        """Names of choices that have no effect in a state; they are not shown."""
        return set()

    def published(self) -> dict[str, State]:
        """For each entry of the site's menu, the choices that it changes."""
        return {"as in the notebook": {}}

    def tables(self, rows: Rows) -> dict[str, pd.DataFrame]:
        """What is exported, by file name: the first data set, of its lists only `exploded`."""
        import pandas as pd

        first = next(iter(rows.values()), [])
        table = pd.DataFrame(first)
        for column in table.columns.difference(self.exploded):
            if isinstance(first[0][column], list):
                del table[column]
        if self.exploded and first:
            table = table.explode([*self.exploded])
        return {self.name: table}

    @property
    def start(self) -> State:
        """The label of each choice at the start."""
        return {each.name: each.start for each in self.choices}

    def value(self, state: State, name: str) -> Any:
        """The value behind the label of a choice."""
        options = {each.name: each.options for each in self.choices}
        return options[name][state[name]]


def figure(of: Description, state: State, rows: Rows) -> dict[str, Any]:
    """What `player.js` shows. Charts name their data sets, whose rows are in `rows`."""
    pointers = of.pointers(state, rows)
    state = {each.name: each.start for each in pointers} | state
    return {
        "wide": of.chart(state, rows, narrow=False),
        "narrow": of.chart(state, rows, narrow=True),
        "pointers": [asdict(each) | {"label": each.label or each.name} for each in pointers],
        "rows": rows,
        "at": {each.name: state[each.name] for each in pointers},
    }
