"""Which weights does a score select, and what does rewinding them do to accuracy and leakage?

CWRF scores each weight of a network. The share r with the highest scores goes back to its initial
values and stays there; the other weights are trained on. Two scores, A and B, are compared:

    scores = {"vulnerability": Vulnerability(), "magnitude": Magnitude()}
    study = Weights(ordinary, Schedule(6), defences, scores, attackers, [*scores], 0.05)
    lab.realize(study.beforehand([0.001, 0.05]))
    Instrument(study)

Which weights are selected is read from the stored scores, at any r. What comes of rewinding them
has to be trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leak_atlas import audit
from leak_atlas.engine import selection
from leak_atlas.explore import charts, look, records, shelf, vega
from leak_atlas.explore.charts import Measure
from leak_atlas.explore.description import Choice, Description, Pointer, Rows, State
from leak_atlas.explore.look import COLOURS
from leak_atlas.explore.records import Row
from leak_atlas.explore.shelf import Measured, Shelf
from leak_atlas.explore.vega import Chart, by
from leak_atlas.localization import score_maps
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import (
    SNIP,
    Attacker,
    Criterion,
    Objective,
    Population,
    Schedule,
    Score,
)

RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # r that can be looked at
TIMES = Measure("times", "times chance", (0, 1, 4), chance=1, digits=1)


@dataclass(eq=False)
class Weights(Description):
    """The networks, and what can be done with them. Each network goes by its own scores."""

    ordinary: Population
    schedule: Schedule  # of the training that follows
    defences: Mapping[str, Objective]  # of that training
    criteria: Mapping[str, Criterion]
    attackers: Mapping[str, Attacker]
    compared: Sequence[str]  # criteria of A and B, to begin with
    rate: float  # r to begin with

    name = "weights"
    hint = (
        "A number is the selected share of a cell's weights, divided by r: chance gives 1. A"
        " number in brackets could be chance: its 95 % interval contains 1. Point at a cell to"
        " read its interval. Click the cell to see accuracy and leakage after rewinding the"
        " share r of all weights. Play runs over r."
    )

    def __post_init__(self) -> None:
        self._shelf = Shelf()
        self._rates = sorted({*RATES, self.rate})
        self.rewound = cache(self._rewound)
        scores = {name: name for name in self.criteria}
        rates = {f"{rate:g}": rate for rate in self._rates}
        rows = {name: name for name in ("stages", "layer types", "tensors")}
        self.choices = []
        for letter, score in zip(COLOURS, self.compared, strict=True):
            self.choices.append(Choice(f"{letter}_score", scores, score, letter, "score"))
        self.choices += [
            Choice("rows", rows, label="rows of the maps"),
            Choice("train_at", rates, f"{self.rate:g}", label="train at r ="),
            Choice("defence", self.defences, label="trained with", more=True),
            Choice("attack", self.attackers, more=True),
        ]

    def _compared(self, state: State) -> dict[str, str]:
        """The scores of A and B."""
        return {letter: state[f"{letter}_score"] for letter in COLOURS}

    # ------------------------------------------------------------ recipes

    def scores(self, name: str) -> tuple[Score, ...]:
        """One a network. SNIP scores the initialisation, all others the trained network."""
        criterion = self.criteria[name]
        scored = self.ordinary.at("init") if isinstance(criterion, SNIP) else self.ordinary
        return scored.score(criterion)

    def _rewound(self, name: str, rate: float, defence: str) -> Population:
        """The networks after a share of their weights is rewound and the others are trained on."""
        by = self.scores(name)
        start = self.ordinary.rewind_weights(by, rate).freeze_weights(by, rate)
        return start.train(self.schedule, self.defences[defence])

    def references(self, defence: str) -> dict[str, Population]:
        """The networks before, and after the same training with nothing rewound."""
        trained = self.ordinary.train(self.schedule, self.defences[defence])
        return {"ordinary": self.ordinary, f"{defence} alone": trained}

    def measured(self, state: State, rates: Sequence[float]) -> dict[Any, Measured]:
        """Signals and attack by side and r, and those of the references."""
        defence = state["defence"]
        networks: dict[Any, Population] = {}
        for letter, score in self._compared(state).items():
            for rate in rates:
                networks[letter, rate] = self.rewound(score, rate, defence)
        for name, models in self.references(defence).items():
            networks[name, None] = models
        measured = {}
        for place, models in networks.items():
            measured[place] = shelf.measured(models, self.attackers, state["attack"])
        return measured

    def beforehand(self, rates: Sequence[float]) -> list[Any]:
        """All scores, and what comes of rewinding by the first two: of the first view."""
        scores = [self.scores(name) for name in self.criteria]
        return [scores, self.measured(self.start, rates)]

    def steps(self, state: State) -> list[Any]:
        rate = self.value(state, "train_at")
        scores = [self.scores(name) for name in self._compared(state).values()]
        return [*scores, self.measured(state, [rate])]

    def marks(self, state: State, side: str) -> list[Any]:
        rate = self.value(state, "train_at")
        measured = self.measured(state, [rate])
        return [measured[letter, rate].attack for letter in side or COLOURS]

    def published(self) -> dict[str, State]:
        first, second = self.compared
        others = [name for name in self.criteria if name not in self.compared]
        states = {}
        for name in (first, *others):
            states[f"{name} and {second}"] = {"A_score": name}
        return states

    # ------------------------------------------------------------ rows

    def rows(self, state: State) -> Rows:
        cells: list[Row] = []
        given = state["rows"], tuple(self._rates)
        for letter, name in self._compared(state).items():
            scores = self.scores(name)
            own = self._shelf.derived(selected, scores, *given) or []
            cells += records.placed(own, side=letter)
        if not cells:
            return {}
        outcomes = self._shelf.outcomes(self.measured(state, self._rates))
        return {"cells": cells, "outcomes": outcomes}

    # ------------------------------------------------------------ words

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        here = records.select(rows["cells"], at=self.rate)
        most = max(here, key=itemgetter("times"))
        parts = records.values(rows["cells"], "part")
        title = "r, share rewound"
        return [
            Pointer("r", "cell_at", self._rates, self.rate, title, slider=True, play=True),
            Pointer("part", "cell_part", parts, most["part"], _part(state)),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        texts = []
        for letter, score in self._compared(state).items():
            name = f"{letter} ({score})"
            cells = records.select(rows.get("cells", []), side=letter)
            if not cells:
                texts.append(f"{name} is not stored yet.")
                continue
            for cell in records.select(cells, at=state["r"], part=state["part"]):
                times = records.sentence(cell, "times", "which divided by r is", digits=1)
                rate = f"At r = {state['r']:g}"
                texts.append(f"{rate}, {name} selects {cell['meaning']}, {times}.")
        if rows:
            rate = state["r"]
            texts += shelf.sentences(rows["outcomes"], rate, f"r = {rate:g}")
        return texts

    # ------------------------------------------------------------ figure

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        across = vega.columns("at", self._rates, "r, share of all weights")
        parts = records.values(rows["cells"], "part")
        maps = charts.heat(
            vega.rows("cells"),
            [vega.selection("cell", "rect", at=state["r"], part=state["part"])],
            across,
            by("part:N", sort=parts, title=_part(state)),
            "datum.side + ', ' + datum.part + ', r = ' + datum.at",
            270 if narrow else 400,
            TIMES,
        )
        others = list(self.references(state["defence"]))
        trained = [rate for rate in records.values(rows["outcomes"], "at") if rate is not None]
        labelled = across["axis"] | {"values": sorted(trained)} if trained else across["axis"]
        lines = [
            charts.of_sides(self._compared(state), maps),
            charts.outcomes(others, across | {"axis": labelled}, "cell_at", narrow),
        ]
        words = "weights that two scores select, and what rewinding does"
        return vega.page(lines, narrow, words)


def _part(state: State) -> str:
    """What a row of a map is: stage, layer type or tensor."""
    return state["rows"].removesuffix("s")


# ---------------------------------------------------------------- rows


def selected(results: Sequence[Arrays], rows: str, rates: Sequence[float]) -> list[Row]:
    """Of each row of a map, how many times chance a score selects of it; means over networks."""
    networks = [selection.ranks(score_maps.maps(each)) for each in results]
    total = sum(ranks.size for ranks in networks[0].values())
    kinds = score_maps.kinds(results[0])
    cells = []
    for part, tensors in _parts(kinds, rows).items():
        ranks = _ranks_in(networks, tensors)
        weights = ranks.shape[1]
        for rate in rates:
            shares = np.mean(ranks < round(rate * total), axis=1)
            times = audit.mean_ci(shares / rate)
            share = look.percent(shares.mean())
            cell = {
                "part": part,
                "at": rate,
                "meaning": f"{share} of the {weights:,} weights of {part}",
            }
            cells.append(cell | records.interval(times, "times"))
    return cells


def _ranks_in(networks: Sequence[Mapping[str, NDArray]], tensors: Sequence[str]) -> NDArray:
    """The ranks of the weights of some tensors among all of a network, `(networks, weights)`."""
    ranks = []
    for network in networks:
        flat = [network[tensor].ravel() for tensor in tensors]
        ranks.append(np.concatenate(flat))
    return np.stack(ranks)


def _parts(kinds: Mapping[str, str], rows: str) -> dict[str, list[str]]:
    """The tensors of each row of a map; `kinds` has the type of layer of each tensor."""
    parts: dict[str, list[str]] = {}
    for tensor, kind in kinds.items():
        if rows == "stages":
            part = tensor.partition(".")[0]
        elif rows == "layer types":
            part = kind
        else:
            part = tensor.removesuffix(".weight")
        parts.setdefault(part, []).append(tensor)
    return parts
