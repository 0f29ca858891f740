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
from leak_atlas.explore import charts, look, records, shelf, vega
from leak_atlas.explore.charts import Measure
from leak_atlas.explore.description import Choice, Description, Pointer, Rows, State, sample_pointer
from leak_atlas.explore.exposed import ALL, GROUPS, SHOWN, Exposed, path_rows
from leak_atlas.explore.look import COLOURS
from leak_atlas.explore.records import Row
from leak_atlas.explore.shelf import Measured, Shelf
from leak_atlas.explore.vega import Chart, by
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
REMOVED = Measure(
    "removed", "% removed", (0, 100), most=100, digits=0, colours=("#f7f7f7", "#b48ac2")
)


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
    hint = (
        "Click a class to see its attack scores and its most exposed members; click a picture"
        " to follow that sample through the sparsities. A number in brackets could be chance:"
        " its 95 % interval contains 0.5."
    )

    def __post_init__(self) -> None:
        self._shelf = Shelf()
        self._chain = cache(self.pruned)
        self._sparsities = sorted({*SPARSITIES, self.sparsity})
        pruners = {name: name for name in get_args(Pruner)}
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
        """The networks after pruning and training on, with a defence."""
        objective, setup = self.defences[defence], self.setup
        if "reference" in objective.needs:
            design = replace(setup.design, reference=self.reference)
            setup = replace(setup, design=design)
        return setup.trained().pruned(pruner, sparsity).train(self.schedule, objective)

    def measured(self, models: Population, attack: str) -> Measured:
        """The targets' signals, and how they are attacked by the others."""
        return shelf.measured(models, self.attackers, attack, self.targets)

    def removed(self, pruner: Pruner, sparsity: float) -> list[Sparsity]:
        """What is pruned of each target; the defence comes later."""
        undefended = next(iter(self.defences))
        networks = self._chain(pruner, sparsity, undefended)
        return [Sparsity(network) for network in networks.states[: self.targets]]

    def beforehand(
        self, pruner: Pruner, sparsities: Iterable[float], defences: Iterable[str], attack: str
    ) -> list[Any]:
        """The dense networks, and all that is looked at of a pruner."""
        steps: list[Any] = [self.measured(self.setup.trained(), attack)]
        for level, defence in product(sparsities, defences):
            networks = self._chain(pruner, level, defence)
            steps += [self.measured(networks, attack), self.removed(pruner, level)]
        return steps

    def _side(self, state: State, letter: str, sparsity: float) -> Measured:
        """The networks of a side; without sparsity those that are dense."""
        models = self.setup.trained()
        if sparsity:
            pruner, defence = state[f"{letter}_pruner"], state[f"{letter}_defence"]
            models = self._chain(pruner, sparsity, defence)
        return self.measured(models, state["attack"])

    def steps(self, state: State) -> list[Any]:
        level = self.value(state, "train_at")
        steps: list[Any] = [self._side(state, "A", 0.0)]
        for letter in COLOURS:
            removed = self.removed(state[f"{letter}_pruner"], level)
            steps += [self._side(state, letter, level), removed]
        return steps

    def marks(self, state: State, side: str) -> list[Any]:
        level = self.value(state, "train_at")
        return [self._side(state, letter, level).attack for letter in side or COLOURS]

    def published(self) -> dict[str, State]:
        first, *others = get_args(Pruner)
        states = {}
        for name in others:
            states[f"{first} and {name}"] = {"A_pruner": first, "B_pruner": name}
        return states

    # ------------------------------------------------------------ rows

    def rows(self, state: State) -> Rows:
        measured: dict[Any, Measured] = {("dense", None): self._side(state, "A", 0.0)}
        exposed: dict[str, dict[float, Exposed]] = {letter: {} for letter in COLOURS}
        cells: list[Row] = []
        removed: list[Row] = []
        for letter, level in product(COLOURS, [0.0, *self._sparsities]):
            networks = self._side(state, letter, level)
            measured[letter, level] = networks
            if found := self._exposed(networks):
                exposed[letter][level] = found
                cells += records.placed(found.cells, side=letter, at=level)
            if level:
                counts = self.removed(state[f"{letter}_pruner"], level)
                stages = self._shelf.derived(removed_rows, counts) or []
                removed += records.placed(stages, side=letter, at=level)
        if not cells:
            return {}
        samples = sorted(set().union(*(row["sample"] for row in cells)))
        paths: list[Row] = []
        for letter, by_level in exposed.items():
            own = path_rows(by_level, samples)
            paths += records.placed(own, side=letter)
        return {
            "cells": cells,
            "layers": removed,
            "paths": paths,
            "outcomes": self._shelf.outcomes(measured),
            "pictures": records.portraits(self.setup.data, samples),
        }

    def _exposed(self, networks: Measured) -> Exposed | None:
        """Who is exposed; None where it is not stored."""
        steps = [networks.attack, networks.signals[0]]
        return self._shelf.derived(Exposed.of, steps, self.setup.data)

    # ------------------------------------------------------------ words

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        cells = rows["cells"]
        levels = _levels(rows)
        at = self.sparsity if self.sparsity in levels else levels[-1]
        here = records.select(cells, at=at)
        classes = [row for row in here if row["class"] != ALL]
        most = max(classes, key=itemgetter("auc"))
        names = records.values(cells, "class")
        return [
            Pointer("sparsity", "sparsity_at", levels, at, slider=True, play=True),
            Pointer("who", "who_class", names, most["class"], label="class"),
            sample_pointer(most["sample"][0]),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        if not rows:
            return ["Nothing of this is stored yet."]
        at, who = state["sparsity"], state["who"]
        names = self._names(state)
        chosen = {"at": at, "class": who}
        texts = [look.attacked_by(state["attack"])]
        for row in records.select(rows["cells"], **chosen):
            side = row["side"]
            auc = records.sentence(row, "auc", "AUC")
            texts.append(f"{side} ({names[side]}), {who}: {auc}.")
        return texts + shelf.sentences(rows["outcomes"], at, f"sparsity {at:g}")

    def _names(self, state: State) -> dict[str, str]:
        """What the sides are."""
        names = {}
        for letter in COLOURS:
            pruner, defence = state[f"{letter}_pruner"], state[f"{letter}_defence"]
            names[letter] = f"{pruner}, {defence}"
        return names

    # ------------------------------------------------------------ figure

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        sparsity = vega.selection("sparsity", "rect", at=state["sparsity"])
        who = vega.selection("who", "rect", **{"class": state["who"]})
        sample = charts.chosen_sample(state)
        across = vega.columns("at", _levels(rows), "sparsity")
        names = records.values(rows["cells"], "class")
        stages = records.values(rows["layers"], "part")
        width = 270 if narrow else 400
        size = {"width": width, "height": 130}
        place = "datum.side + ', ' + datum.{} + ', sparsity ' + datum.at"
        classes = charts.heat(
            vega.rows("cells"),
            [sparsity, who],
            across,
            by("class:N", sort=names, title="class"),
            place.format("class"),
            width,
            replace(EXPOSED, title=f"AUC of {state['attack']}"),
        )
        removed = charts.heat(
            vega.rows("layers"),
            [sparsity],
            across,
            by("part:N", sort=stages, title="stage"),
            place.format("part"),
            width,
            REMOVED,
        )
        here = vega.rows("cells", vega.chosen("sparsity", "who"))
        strip = charts.carriers(here, sample, "non-members", width, SHOWN)
        scores = charts.distribution(here, GROUPS, "attack score", **size)
        path = vega.rows("paths", vega.chosen("sample"))
        rank = by("value:Q", scale={"domain": [0, 100]}, title="rank: % of non-members below")
        ranks = charts.curves(path, "at", GROUPS, across, rank, point=True) | size
        lines = [
            charts.of_sides(self._names(state), classes),
            charts.of_sides("most exposed members", strip),
            charts.of_sides("attack scores of the chosen class", scores),
            charts.of_sides("path of the chosen sample", ranks),
            charts.of_sides("what is removed", removed),
            charts.outcomes(["dense"], across, "sparsity_at", narrow),
        ]
        words = "attack AUC by class and what is removed, by sparsity"
        return vega.page(lines, narrow, words)


# ---------------------------------------------------------------- rows


def _levels(rows: Rows) -> list[float]:
    """The sparsities that are shown; 0 is dense."""
    return sorted(records.values(rows["cells"], "at"))


def removed_rows(counts: Sequence[Arrays]) -> list[Row]:
    """Of each stage the percentage of weights and of whole filters that is removed; mean over the
    targets.
    """
    tensors = bytes(counts[0]["names"]).decode().split("\n")
    names = [tensor.partition(".")[0] for tensor in tensors]
    rows = []
    for stage in dict.fromkeys(names):
        own = np.array(names) == stage
        filters = _removed(counts, own, "filters", "filters_gone").mean()
        weights = _removed(counts, own, "weights", "gone")
        mean = audit.mean_ci(weights, bounds=(0, 100))
        row = {
            "part": stage,
            "meaning": f"{filters:.0f} % of its filters are removed entirely",
        }
        rows.append(row | records.interval(mean, "removed"))
    return rows


def _removed(counts: Sequence[Arrays], own: NDArray, all_of: str, removed: str) -> NDArray:
    """Percentage of a stage, `own` of its tensors, that is removed of each target."""
    total = counts[0][all_of][own].sum()
    sums = [each[removed][own].sum() for each in counts]
    return 100 * np.array(sums) / max(total, 1)
