"""The rewind rate on a slider: which weights a score selects, and what it does to put them back (CWRF).

    scores = {"vulnerability": Vulnerability(), "magnitude": Magnitude()}
    study = Rewinding(ordinary, Schedule(6), RelaxLoss(0.3), scores)
    lab.realize(study.steps(["vulnerability"], [0.001, 0.05]))
    weights.explorer(study, "vulnerability", "magnitude", 0.05)

Where the selected weights sit is shown at every rate. Accuracy and leak are, where they are stored; elsewhere they are
trained on a click, whose cost is told before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from lib import BadInput, audit
from lib.explore import rewinding
from lib.explore.looks import status
from lib.explore.offer import WRAP, Offer, markup
from lib.explore.rewinding import Drawing, Rewinding, Side, Stored, percent
from lib.recipe import Random

if TYPE_CHECKING:
    from lib.report import Table
    from lib.report.sheet import Sheet

NONE = "none"
CELLS = "<style>.leak-atlas-table :is(th, td) { padding: 2px 10px }</style>"  # a notebook's own reach no widget


def _sides(stored: Stored, a: str, b: str | None, model: int) -> list[Side]:
    """Errors as of `static`."""
    if not 0 <= model < len(stored.of.ordinary):
        raise BadInput(f"there are models 0 to {len(stored.of.ordinary) - 1}, and no model {model}")
    sides = [stored.side(letter, name, model) for letter, name in zip("AB", (a, b), strict=True) if name]
    for side in sides:
        if side.ranked is None:
            raise BadInput(f"{side.letter} ({side.name}) is not stored: hand the study's steps to lab.realize first")
    return sides


def static(study: Rewinding, a: str, b: str | None, rate: float, rates: Iterable[float] = (), model: int = 0) -> Sheet:
    """What `explorer` shows at one choice, as a figure; `a` and `b` are scores of the study, `rate` is r.

    Outcomes are drawn at `rate` and at `rates`, where they are stored. Raises BadInput where a score is not stored, or
    no such score or model is there.
    """
    stored = Stored(study, [*rates, rate])
    return Drawing(_sides(stored, a, b, model), stored.references(), stored.rates).at(rate)


def table(study: Rewinding, a: str, b: str | None, rate: float, model: int = 0) -> Table:
    """By layer type, what the scores `a` and `b` select; arguments and errors as of `static`."""
    return _table(_sides(Stored(study, []), a, b, model), rate, model)


def _table(sides: list[Side], rate: float, model: int) -> Table:
    from lib import report

    told = " and ".join(f"{side.letter} ({side.name})" for side in sides)
    return report.table(
        rewinding.rows(sides, rate), caption=f"Model {model}: what {told} would rewind at r = {percent(rate)}"
    )


def trend(study: Rewinding, rate: float, rates: Iterable[float] = rewinding.GRID) -> Sheet:
    """How much of each layer type a score selects over r, mean over the models; the title speaks of `rate`.

    Random scores stay on the diagonal and are left out. Raises BadInput where a score is not stored.
    """
    from lib import report

    stored, made, favourites = Stored(study, []), [], []
    names = [name for name, criterion in study.criteria.items() if not isinstance(criterion, Random)]
    for name in names:
        models = [_sides(stored, name, None, i)[0].ranked for i in range(len(study.ordinary))]
        for r in sorted({*rates, rate}):
            found = [{each.of: each.share for each in one.by_kind(r)} for one in models if one]
            means = {kind: audit.over([one[kind] for one in found], bounds=(0, 1)) for kind in found[0]}
            made += [{"layer type": kind, "score": name, "r": r, "value": one} for kind, one in means.items()]
            if r == rate:
                favourites.append(max(means, key=lambda kind: means[kind].value))
    kind, count = Counter(favourites).most_common(1)[0]
    return report.curves(
        made,
        "r",
        hue="score",
        facet="layer type",
        diagonal=True,
        log="xy",
        title=f"At r = {percent(rate)}, {count} of {len(names)} scores reach deepest into {kind} weights",
        xlabel="rewind rate r, share of all weights",
        ylabel="share selected",
    )


# --- the widget -----------------------------------------------------------------------------------------------------


class Explorer(widgets.VBox):
    """A slider over r, two scores and a model; pictures, sentences and a table. Made by `explorer`."""

    def __init__(self, study: Rewinding, a: str, b: str | None, rate: float, rates: Iterable[float]) -> None:
        self._stored, self._busy = Stored(study, [*rewinding.GRID, *rates, rate]), False
        names, wide = list(study.criteria), widgets.Layout(width="300px")
        self.scores = {
            "A": widgets.Dropdown(options=names, value=a, description="score A", layout=wide),
            "B": widgets.Dropdown(options=[NONE, *names], value=b or NONE, description="score B", layout=wide),
        }
        self.model = widgets.Dropdown(options=[(f"model {i}", i) for i in range(len(study.ordinary))], description="of")
        self.rate = widgets.SelectionSlider(
            options=self._marks([]), value=rate, description="rewind rate r", style={"description_width": "initial"},
            layout=widgets.Layout(width="860px", max_width="100%"),
        )  # fmt: skip
        self.rate.add_class("leak-atlas-rate")
        self.model.layout.width = "180px"
        self.says, self.picture, self.table = markup("leak-atlas-says"), markup(), markup("leak-atlas-table")
        self.offer = Offer(self._steps, self._settle)
        self.offer.layout.min_height = "36px"  # so that nothing jumps when the button comes
        for control in (*self.scores.values(), self.model, self.rate):
            control.observe(self._moved, names="value")
        super().__init__(
            [
                widgets.HBox([*self.scores.values(), self.model], layout=WRAP),
                self.rate,
                self.offer,
                self.says,
                widgets.VBox([self.picture], layout=widgets.Layout(overflow="auto")),
                self.table,
            ]
        )
        self._settle()

    def _names(self) -> dict[str, str]:
        return {letter: each.value for letter, each in self.scores.items() if each.value != NONE}

    def _marks(self, done: Container[float]) -> list[tuple[str, float]]:
        """The rates, each saying whether it is trained by score A."""
        return [(percent(rate) + " (trained)" * (rate in done), rate) for rate in self._stored.rates]

    def _steps(self) -> list[list[Any]]:
        """What is looked at: both scores, and what comes of rewinding by them at the slider's rate."""
        study, rate = self._stored.of, self.rate.value
        chains = [self._stored.chain(name, rate) for name in self._names().values()]
        models = [*study.references().values(), *chains]
        return [[study.scores(name) for name in self._names().values()], [study.measured(each) for each in models]]

    def _moved(self, change: Mapping[str, Any]) -> None:
        if self._busy:
            return
        if change["owner"] is self.rate:
            self._look()
        else:
            self._settle()

    def _settle(self, wrong: str = "") -> None:
        """Reads what is stored, marks the slider, draws."""
        self._sides = [self._stored.side(letter, name, self.model.value) for letter, name in self._names().items()]
        self._references = self._stored.references()
        self._drawing = Drawing(self._sides, self._references, self._stored.rates)
        rate, marks = self.rate.value, self._marks(self._sides[0].outcomes)
        if list(self.rate.options) != marks:
            self._busy = True  # setting the options calls back
            try:
                self.rate.options = marks
                self.rate.value = rate
            finally:
                self._busy = False
        self._look(wrong)

    def _look(self, wrong: str = "") -> None:
        """Shows what is stored at the slider's rate, then counts what is missing."""
        rate, sides = self.rate.value, self._sides
        lacking = [f"The score of {side.letter} ({side.name}) is not stored." for side in sides if not side.ranked]
        self.picture.value = self._drawing.picture(rate)
        self.says.value = status(*lacking, *self._drawing.told)
        here = [side for side in sides if side.ranked]
        self.table.value = CELLS + _table(here, rate, self.model.value)._repr_html_() if here else ""
        there = all(side.ranked and rate in side.outcomes for side in sides)
        self.offer.tell(there and len(self._references) == len(self._stored.of.references()), wrong)


def explorer(study: Rewinding, a: str, b: str | None, rate: float, rates: Iterable[float] = ()) -> Explorer:
    """A slider over the rewind rate that begins at `rate`, for the scores `a` and `b` (None: one score alone).

    `rates` may be chosen beside those of `rewinding.GRID`. Nothing is computed before the button is clicked. Raises
    BadInput on a score that the study does not offer.
    """
    for name in filter(None, (a, b)):
        study.scores(name)
    return Explorer(study, a, b, rate, rates)
