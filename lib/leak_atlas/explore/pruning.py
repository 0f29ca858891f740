"""What does pruning remove, and whom does it expose? (SAMIA and PPB)

Networks are pruned and trained on, with a defence or without; shadow models go through the same
steps as their targets. Two such treatments, A and B, are compared:

    study = Pruning(setup, Schedule(6), 10, {"Base": CrossEntropy(), "PPB": PPB()}, attackers)
    lab.realize(study.beforehand("L1 unstructured", [0.6], ["Base"], "Conf"))
    Instrument(study)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from operator import itemgetter
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from leak_atlas import audit
from leak_atlas.explore import charts, shelf
from leak_atlas.explore.charts import Chart, Measure, by
from leak_atlas.explore.exposed import ALL, GROUPS, SHOWN, Exposed, path_rows
from leak_atlas.explore.instrument import Choice, Description, Pointer, Rows, State
from leak_atlas.explore.look import COLOURS
from leak_atlas.explore.shelf import Measured, Shelf
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import (
    Attacker,
    Objective,
    Population,
    Pruner,
    Schedule,
    Setup,
    Sparsity,
)

SPARSITIES = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95)  # that can be looked at
EXPOSED = replace(charts.AUC, ends=(0, 0.5, 1))
REMOVED = Measure("removed", "% removed", (0, 100), digits=0, colours=("#f7f7f7", "#b48ac2"))


@dataclass(eq=False)
class Pruning(Description):
    """`setup` trains the dense networks, targets first. The first of `defences` is no defence (the
    paper's Base). One that looks at non-members gets `reference` of them from outside the pool, and
    dense networks that are trained anew.
    """

    setup: Setup
    schedule: Schedule  # of the training after pruning
    targets: int
    defences: Mapping[str, Objective]  # by the words that offer them
    attackers: Mapping[str, Attacker]  # likewise
    compared: Sequence[Pruner]  # of A and B, to begin with
    sparsity: float  # to begin with
    reference: int = 0

    name = "pruning"
    title = "What does pruning remove, and whom does it expose?"
    question = title
    hint = (
        "Click a class to see its attack scores and its most exposed members; click a picture to follow that"
        " sample through the sparsities. A number in brackets could be chance: its 95 % interval contains 0.5."
    )

    def __post_init__(self) -> None:
        self._shelf = Shelf()
        self._chain = cache(self.pruned)
        self._sparsities = sorted({*SPARSITIES, self.sparsity})
        pruners: dict[str, Any] = {name: name for name in get_args(Pruner)}
        levels = {f"{level:g}": level for level in self._sparsities}
        self.choices = []
        for letter, pruner in zip(COLOURS, self.compared, strict=True):
            self.choices += [
                Choice(f"{letter}_pruner", pruners, pruner, side=letter, label="pruner"),
                Choice(f"{letter}_defence", self.defences, side=letter, label="defence"),
            ]
        self.choices += [
            Choice("attack", self.attackers),
            Choice("train_at", levels, f"{self.sparsity:g}", label="train at sparsity"),
        ]

    # ------------------------------------------------------------ recipes

    def pruned(self, pruner: Pruner, sparsity: float, defence: str) -> Population:
        objective, setup = self.defences[defence], self.setup
        if "reference" in objective.needs:
            setup = replace(setup, design=replace(setup.design, reference=self.reference))
        return setup.trained().pruned(pruner, sparsity).train(self.schedule, objective)

    def measured(self, models: Population, attack: str) -> Measured:
        """The targets' signals, and how they are attacked by the others."""
        return shelf.measured(models, self.attackers, attack, self.targets)

    def removed(self, pruner: Pruner, sparsity: float) -> list[Sparsity]:
        """What is pruned of each target; the defence comes later."""
        networks = self._chain(pruner, sparsity, next(iter(self.defences)))
        return [Sparsity(network) for network in networks.states[: self.targets]]

    def beforehand(
        self, pruner: Pruner, sparsities: Iterable[float], defences: Iterable[str], attack: str
    ) -> list[Any]:
        """The dense networks, and all that is looked at of a pruner."""
        levels = list(sparsities)
        networks = [self._chain(pruner, *each) for each in product(levels, defences)]
        measured = [self.measured(each, attack) for each in [self.setup.trained(), *networks]]
        return [measured, [self.removed(pruner, level) for level in levels]]

    def _side(self, state: State, letter: str, sparsity: float) -> Measured:
        """The networks of a side; without sparsity those that are dense."""
        pruner, defence = state[f"{letter}_pruner"], state[f"{letter}_defence"]
        models = self._chain(pruner, sparsity, defence) if sparsity else self.setup.trained()
        return self.measured(models, state["attack"])

    def steps(self, state: State) -> list[Any]:
        level = self.value(state, "train_at")
        steps: list[Any] = []
        for letter in COLOURS:
            removed = self.removed(state[f"{letter}_pruner"], level)
            steps += [self._side(state, letter, 0.0), self._side(state, letter, level), removed]
        return steps

    def marks(self, state: State, side: str) -> list[Any]:
        level = self.value(state, "train_at")
        return [self._side(state, letter, level)[1] for letter in side or COLOURS]

    def published(self) -> dict[str, State]:
        first, *others = get_args(Pruner)
        return {f"{first} and {name}": {"A_pruner": first, "B_pruner": name} for name in others}

    # ------------------------------------------------------------ rows

    def rows(self, state: State) -> Rows:
        measured: dict[Any, Measured] = {("dense", None): self._side(state, "A", 0.0)}
        exposed: dict[str, dict[float, Exposed]] = {letter: {} for letter in COLOURS}
        cells, stages, paths, samples = [], [], [], set[str]()
        for letter, level in product(COLOURS, [0.0, *self._sparsities]):
            place = {"side": letter, "at": level}
            signals, attack = measured[letter, level] = self._side(state, letter, level)
            found = self._shelf.derived(Exposed.of, [attack, signals[0]], self.setup.data.name)
            if found:
                exposed[letter][level] = found
                cells += [place | row for row in found.cells]
            if level:
                counts = self.removed(state[f"{letter}_pruner"], level)
                removed = self._shelf.derived(removed_rows, counts) or []
                stages += [place | row for row in removed]
        if not cells:
            return {}
        for row in cells:
            samples |= {*row["sample"]}
        for letter, by_level in exposed.items():
            paths += [{"side": letter} | row for row in path_rows(by_level, sorted(samples))]
        return {
            "cells": cells,
            "layers": stages,
            "paths": paths,
            "outcomes": self._shelf.outcomes(measured),
            "pictures": charts.portraits({self.setup.data.name: self.setup.data}, sorted(samples)),
        }

    # ------------------------------------------------------------ figure

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        levels = sorted(charts.values(rows["cells"], "at"))
        at = self.sparsity if self.sparsity in levels else levels[-1]
        here = [row for row in rows["cells"] if row["at"] == at and row["class"] != ALL]
        most = max(here, key=itemgetter("auc"))
        classes = charts.values(rows["cells"], "class")
        return [
            Pointer("sparsity", "sparsity_at", levels, at, slider=True, play=True),
            Pointer("who", "who_class", classes, most["class"], label="class"),
            Pointer("sample", "sample_sample", [], most["sample"][0], hidden=True),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        if not rows:
            return ["Nothing of this is stored yet."]
        said, at = [], state["sparsity"]
        for row in rows["cells"]:
            if row["at"] == at and row["class"] == state["who"]:
                interval = f"95 % interval {row['low']:.2f} to {row['high']:.2f}"
                name = f"{row['side']} ({self._name(state, row['side'])})"
                said.append(f"{name}, {row['class']}: AUC {row['auc']:.2f}, {interval}.")
        return said + shelf.sentences(rows["outcomes"], at, f"sparsity {at:g}")

    def _name(self, state: State, letter: str) -> str:
        return f"{state[f'{letter}_pruner']}, {state[f'{letter}_defence']}"

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        sparsity = charts.selection("sparsity", "rect", at=state["sparsity"])
        who = charts.selection("who", "rect", **{"class": state["who"]})
        sample = charts.selection("sample", "image", sample=state["sample"])
        levels = sorted(charts.values(rows["cells"], "at"))
        across = charts.columns("at", levels, "sparsity")
        classes = by("class:N", sort=charts.values(rows["cells"], "class"), title="class")
        stages = by("part:N", sort=charts.values(rows["layers"], "part"), title="stage")
        width = 270 if narrow else 400
        size = {"width": width, "height": 130}
        names = {letter: self._name(state, letter) for letter in COLOURS}
        titles = dict.fromkeys(COLOURS, "what is removed")
        place = "datum.side + ', ' + datum.{} + ', sparsity ' + datum.at"
        maps = charts.maps(
            names,
            "cells",
            [sparsity, who],
            across,
            classes,
            place.format("class"),
            EXPOSED,
            width=width,
        )
        removed = charts.maps(
            titles,
            "layers",
            [sparsity],
            across,
            stages,
            place.format("part"),
            REMOVED,
            width=width,
        )
        tips = [by("label:N", title="sample"), by("rank:Q", title="% of non-members below it")]
        rank = by("value:Q", scale={"domain": [0, 100]}, title="rank: % of non-members below")
        strips, scores, paths = {}, {}, {}
        for letter in COLOURS:
            mine = charts.where(f"datum.side == '{letter}'")
            here = charts.rows("cells", mine, charts.chosen("sparsity"), charts.chosen("who"))
            strips[f"{letter}: most exposed members"] = charts.strip(
                here, sample, ["sample", "rank"], tips, width, SHOWN
            )
            scores[f"{letter}: attack scores of the chosen class"] = charts.distribution(
                here, GROUPS, "attack score", **size
            )
            path = charts.rows("paths", mine, charts.chosen("sample"))
            lines = charts.curves(path, "at", GROUPS, across, rank, point=True)
            paths[f"{letter}: path of the chosen sample"] = lines | size
        outcomes = charts.outcomes(["dense"], across, "sparsity_at", width=270 if narrow else 237)
        shown = []
        for line in (maps, strips, scores, paths, removed, outcomes):
            shown.append(charts.side_by_side(line, narrow))
        return charts.page(shown, "attack AUC by class and what is removed, by sparsity")


# ---------------------------------------------------------------- rows


def removed_rows(counts: Sequence[Arrays]) -> list[dict[str, Any]]:
    """Of each stage the percentage of weights and of whole filters that is removed; mean over the
    targets.
    """
    names = bytes(counts[0]["names"]).decode().split("\n")
    stages = np.array([name.partition(".")[0] for name in names])
    rows = []
    for stage in dict.fromkeys(stages.tolist()):
        own = stages == stage
        weights = _removed(counts, own, "weights", "gone")
        filters = _removed(counts, own, "filters", "filters_gone").mean()
        row = {"part": stage, "meaning": f"{filters:.0f} % of its filters are removed entirely"}
        removed = charts.interval(audit.mean_ci(weights, bounds=(0, 100)), "removed")
        rows.append(row | removed)
    return rows


def _removed(counts: Sequence[Arrays], own: NDArray, whole: str, part: str) -> NDArray:
    """Percentage of a stage, `own` of its tensors, that is removed of each target."""
    total = max(counts[0][whole][own].sum(), 1)
    removed = [each[part][own].sum() for each in counts]
    return 100 * np.array(removed) / total
