"""The rewind rate on a slider: which weights a score selects, and what it does to put them back
(CWRF).

    scores = {"vulnerability": Vulnerability(), "magnitude": Magnitude()}
    study = Rewinding(ordinary, Schedule(6), {"RelaxLoss": RelaxLoss(0.3)}, scores)
    lab.realize(study.steps(["vulnerability"], [0.001, 0.05]))
    weights.explorer(study, "vulnerability", "magnitude", 0.05)

Where the selected weights sit is shown at every rate. Accuracy and leak are, where they are stored;
elsewhere they are trained on a click, whose cost is told before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ipywidgets import HTML, Accordion, SelectionSlider

from leak_atlas import BadInput, audit
from leak_atlas.explore import base, rewinding
from leak_atlas.explore.base import View
from leak_atlas.explore.look import CELLS, marks, percent
from leak_atlas.explore.rewinding import LEAKS, Rewinding, Stored
from leak_atlas.recipe import Random, Step

if TYPE_CHECKING:
    import pandas as pd

    from leak_atlas.localization.disparity import Arrays
    from leak_atlas.report import Table
    from leak_atlas.report.sheet import Sheet

NONE = "none"


def trend(study: Rewinding, rate: float, rates: Iterable[float] = rewinding.GRID) -> Sheet:
    """How much of each layer type a score selects over r, mean over the models; the title speaks of
    `rate`.

    Random scores stay on the diagonal and are left out. Raises BadInput where a score is not
    stored.
    """
    from leak_atlas import report

    stored, made = Stored(study, []), list[dict[str, Any]]()
    names = [
        name for name, criterion in study.criteria.items() if not isinstance(criterion, Random)
    ]
    for name in names:
        models = [stored.ranked(name, i) for i in range(len(study.ordinary))]
        if None in models:
            raise BadInput(f"{name} is not stored: hand the study's steps to lab.realize first")
        for r in sorted({*rates, rate}):
            for own in zip(*(one.shares(r, by_kind=True) for one in models if one), strict=True):
                mean = audit.mean_ci([each.share for each in own], bounds=(0, 1))
                made.append({"layer type": own[0].of, "score": name, "r": r, "value": mean})
    here = sorted((row for row in made if row["r"] == rate), key=lambda row: row["value"].value)
    deepest = {row["score"]: row["layer type"] for row in here}
    kind, count = Counter(deepest[name] for name in names).most_common(1)[0]
    title = (
        f"At r = {percent(rate)}, {count} of {len(names)} scores reach deepest into {kind} weights"
    )
    return report.curves(
        made,
        "r",
        hue="score",
        facet="layer type",
        diagonal=True,
        log="xy",
        title=title,
        xlabel="rewind rate r, share of all weights",
        ylabel="share selected",
    )


class Explorer(base.Explorer):
    """A slider over the rewind rate that begins at `rate`, for the scores `a` and `b` (None: one
    score alone).

    `rates` may be chosen beside those of `rewinding.GRID`. Nothing is computed before the button is
    clicked. Raises BadInput on a score that the study does not offer.
    """

    def __init__(
        self, study: Rewinding, a: str, b: str | None, rate: float, rates: Iterable[float] = ()
    ) -> None:
        for name in filter(None, (a, b)):
            study.scores(name)
        super().__init__()
        self._stored = Stored(study, [*rewinding.GRID, *rates, rate])
        self._chosen: Any = None  # what is read of the store
        names, defences, attacks = list(study.criteria), list(study.defences), list(study.attackers)
        models = [(f"model {i}", i) for i in range(len(study.ordinary))]
        scores = {"A": (names, a), "B": ([NONE, *names], b or NONE)}
        self.scores = {
            letter: self.listed(letter, *each, f"score {letter}") for letter, each in scores.items()
        }
        self.model = self.listed("model", models, 0, "of")
        self.defence = self.listed("defence", defences, defences[0], "then trained with")
        self.attack = self.listed("attack", attacks, attacks[0])
        self.leak = self.listed("leak", list(LEAKS), next(iter(LEAKS)), "leak as")
        look = {
            "style": {"description_width": "initial"},
            "layout": {"width": "860px", "max_width": "100%"},
        }
        slider = SelectionSlider(
            options=marks(self._stored.rates, ()), value=rate, description="rewind rate r", **look
        )
        self.rate = self.watched("rate", slider.add_class("leak-atlas-rate"))
        self.cells, self.tensors = (
            HTML().add_class("leak-atlas-table"),
            HTML().add_class("leak-atlas-tensors"),
        )
        by_name = Accordion([self.tensors], titles=["tensors by name"])  # closed, as all begin
        chosen = (
            [*self.scores.values(), self.model],
            [self.defence, self.attack, self.leak],
            [self.rate],
        )
        self.lay(chosen, below=[self.cells, by_name])
        self.settle()

    def steps(self) -> list[list[Any]]:
        """Both scores, and what comes of rewinding by them at the slider's rate."""
        study, names = (
            self._stored.of,
            [each.value for each in self.scores.values() if each.value != NONE],
        )
        chains = [self._stored.chain(name, self.rate.value, self.defence.value) for name in names]
        models = [*study.references(self.defence.value).values(), *chains]
        return [
            [study.scores(name) for name in names],
            [study.measured(each, self.attack.value) for each in models],
        ]

    def needs(self, name: str, value: Any) -> Sequence[Step]:
        now = self.state | {name: value}
        if (score := now["B" if name == "B" else "A"]) == NONE:
            return []
        return [
            self._stored.of.attack(
                self._stored.chain(score, now["rate"], now["defence"]), now["attack"]
            )
        ]

    def attacks(self) -> dict[str, Arrays]:
        rate, defence, attack = self.rate.value, self.defence.value, self.attack.value
        chosen = {
            f"{letter} ({each.value}) at {percent(rate)}": each.value
            for letter, each in self.scores.items()
        }
        models = {
            words: self._stored.chain(name, rate, defence)
            for words, name in chosen.items()
            if name != NONE
        }
        models = self._stored.of.references(defence) | models
        found = {words: self._stored.attacked(each, attack) for words, each in models.items()}
        return {words: each for words, each in found.items() if each}

    @property
    def numbers(self) -> pd.DataFrame:
        """What the upper panels draw, and of each tensor how many weights go."""
        import pandas as pd

        tensors = rewinding.tensors([side for side in self._sides if side.ranked], self.rate.value)
        return pd.concat([super().numbers, pd.DataFrame(tensors)], ignore_index=True)

    def computed(self, wrong: str) -> None:
        self._chosen = None
        super().computed(wrong)

    def look(self) -> View:
        from leak_atlas import report

        named = {letter: each.value for letter, each in self.scores.items() if each.value != NONE}
        study, defence, attack, leak = (
            self._stored.of,
            self.defence.value,
            self.attack.value,
            self.leak.value,
        )
        # more than the rate moved
        if (chosen := (*named.values(), self.model.value, defence, attack)) != self._chosen:
            self._chosen, self._references = (
                chosen,
                self._stored.outcomes(study.references(defence), attack),
            )
            self._sides = [self._stored.side(*each, *chosen[-3:]) for each in named.items()]
        rates, sides, found = self._stored.rates, self._sides, self._references
        shown = (
            *chosen,
            leak,
            *found,
            *((frozenset(side.outcomes), bool(side.ranked)) for side in sides),
        )
        sheet = self.kept(shown, partial(rewinding.sheet, sides, found, rates, leak))
        base.offer(self.rate, marks(rates, sides[0].outcomes), self.rate.value)  # by score A
        for name, control in (
            ("A", self.scores["A"]),
            ("B", self.scores["B"]),
            ("defence", self.defence),
            ("attack", self.attack),
        ):
            self.mark(
                name, [each if isinstance(each, str) else each[1] for each in control.options]
            )
        rate = self.rate.value
        missing = [
            f"The score of {side.letter} ({side.name}) is not stored."
            for side in sides
            if not side.ranked
        ]
        said = rewinding.told(sides, rate, found)
        rewinding.move(sheet, sides, rate)
        sheet.finding = " ".join(said)
        known = len(missing) < len(sides)
        self.cells.value = CELLS + self.table.drawn("html") if known else ""
        self.tensors.value = (
            CELLS + report.table(rewinding.tensors(sides, rate)).drawn("html") if known else ""
        )
        return View(sheet, said, missing)

    @property
    def table(self) -> Table:
        """By layer type, what the scores select now."""
        from leak_atlas import report

        here, rate = [side for side in self._sides if side.ranked], self.rate.value
        told = " and ".join(f"{side.letter} ({side.name})" for side in here)
        caption = f"Model {self.model.value}: what {told} would rewind at r = {percent(rate)}"
        return report.table(rewinding.rows(here, rate), caption=caption)


explorer = Explorer
