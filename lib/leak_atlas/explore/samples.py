"""Which members does a window over the memorization ranking visit, and who is exposed? (WeMem)

    studies = {"bits": WindowStudy(...)}
    Instrument(Samples(studies, {"LiRA": LiRA("offline_cdf")}, RMR(share=0.2), ninths=2, step=1))

Networks are pruned in rounds. Base trains on all members in each epoch of a round, RSW on those in
a window that slides over the members of each class; SWMR also penalizes the weights on the members
with the highest scores. The *exposure* of a sample is the percentage of a target's non-members
that get a lower score from the attack; its mean over the members is the AUC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from typing import Any

import numpy as np

from leak_atlas.data import readers
from leak_atlas.explore import charts, look, records, shelf, vega
from leak_atlas.explore.description import Choice, Description, Pointer, Rows, State, sample_pointer
from leak_atlas.explore.exposed import MEMBERS, OTHERS, Scores, mean_ranks
from leak_atlas.explore.records import Row
from leak_atlas.explore.shelf import Measured, Shelf
from leak_atlas.explore.vega import PICTURES, Chart, by, mark, on, silent
from leak_atlas.localization.samples import means_by_rank, member_ranks, nearest
from leak_atlas.recipe import RMR, Attacker, Step, Window, WindowStudy

RANDOM = "random order"  # the control: from low to high, of the same scores, permuted
ORDERS = {"low-to-high": "low-to-high", "high-to-low": "high-to-low", RANDOM: "low-to-high"}
NEIGHBOURS = 6  # members that are nearest to the chosen one
BASE, WINDOW = "Base", "window"
COLOURS = {BASE: vega.INK, WINDOW: look.COLOURS["B"]}


@dataclass(eq=False)
class Samples(Description):
    """The window and the attack of one study; members are those of the first target."""

    studies: Mapping[str, WindowStudy]  # by the words that offer them
    attackers: Mapping[str, Attacker]  # likewise
    penalty: RMR  # what SWMR adds to RSW
    ninths: int  # width of the window to begin with, ninths of a class' members
    step: int  # by which it moves to begin with, members an epoch

    name = "samples"
    hint = (
        "Play moves the window through the epochs of a round. Click a member to read its"
        " memorization score and its exposure, and to see the members that look most like it."
        " A sample's exposure is the percentage of non-members with a lower attack score. The line"
        " of mean exposure ends at the last rank that all targets have."
    )

    def __post_init__(self) -> None:
        for study in self.studies.values():
            look.pictured(study.data)
        self._shelf = Shelf()
        defences = {"RSW": None, "SWMR": self.penalty}
        widths = {f"{ninths}/9": ninths for ninths in range(1, 10)}
        steps = {str(number): number for number in sorted({0, 1, 2, self.step})}
        width = "width of the window: a share of the members of a class"
        step = "number of members by which the window moves each epoch"
        self.choices = [
            Choice("data", self.studies),
            Choice("defence", defences),
            Choice("order", ORDERS, meaning="order of the memorization scores"),
            Choice("attack", self.attackers),
            Choice("width", widths, f"{self.ninths}/9", meaning=width),
            Choice("step", steps, str(self.step), meaning=step),
        ]

    # ------------------------------------------------------------ recipes

    def window(self, state: State) -> Window:
        """The window over the ranking of each class."""
        study = self.value(state, "data")
        members = study.setup.design.members(0) / study.data.classes
        width = round(members * self.value(state, "width") / 9)
        return Window(
            max(1, width),
            self.value(state, "step"),
            self.value(state, "order"),
        )

    def ranking(self, state: State) -> Step:
        """The scores by which members are ordered."""
        ranking = self.value(state, "data").ranking
        return ranking.shuffle() if state["order"] == RANDOM else ranking

    def measured(self, state: State) -> dict[tuple[str, None], Measured]:
        """The outputs and the attack of Base and of the window."""
        study = self.value(state, "data")
        penalty = self.value(state, "defence")
        window = self.window(state)
        windowed = study.windowed(window, self.ranking(state), penalty)
        attack = self.attackers, state["attack"], study.targets
        return {
            (BASE, None): shelf.measured(study.base, *attack),
            (WINDOW, None): shelf.measured(windowed, *attack),
        }

    def steps(self, state: State) -> list[Any]:
        rankings = [self.value(state, "data").ranking, self.ranking(state)]
        return [rankings, self.measured(state)]

    def beginning(self) -> list[Any]:
        """What a notebook trains: on all data Base, both defences and their control's order."""
        steps: list[Any] = [study.ranking.shuffle() for study in self.studies.values()]
        for data, defence, attack in product(self.studies, ("RSW", "SWMR"), self.attackers):
            state = self.start | {"data": data, "defence": defence, "attack": attack}
            steps.append(self.steps(state))
        return steps

    def marks(self, state: State, side: str) -> Sequence[Step]:
        return [self.ranking(state), self.measured(state)[WINDOW, None].attack]

    # ------------------------------------------------------------ rows

    def rows(self, state: State) -> Rows:
        study: WindowStudy = self.value(state, "data")
        scores = self._shelf.results([study.ranking, self.ranking(state)])
        if not scores:
            return {}
        ranking, ordered = scores
        ranks = member_ranks(study, ordered, self.value(state, "order"))
        members = np.flatnonzero(ranks[0])
        rank = ranks[0, members]
        index = ranking["index"][members]
        names = [records.sample_name(study.data, at) for at in index]
        pixels = readers.load(study.data.name, study.data.pixels).x[index]
        near = nearest(pixels, NEIGHBOURS)
        visits = np.array(self.window(state).visits(rank.max(), study.fine_tuning))
        columns = {
            "sample": names,
            "near": np.array(names)[near],
            "rank": rank,
            "score": ranking["score"][members],
            "visits": visits[rank - 1],
        }
        exposure: list[Row] = []
        measured = self.measured(state)
        for (name, _), networks in measured.items():
            results = self._shelf.results([networks.attack])
            if not results:
                continue
            exposed = Scores.of(results[0], ranking["index"])
            shares = exposed.ranks()
            means = mean_ranks(exposed, shares)
            columns[f"{name} in"] = means[MEMBERS][members].round()
            columns[f"{name} out"] = means[OTHERS][members].round()
            for at, mean in enumerate(means_by_rank(shares, ranks), start=1):
                row = {"group": name, "rank": at}
                exposure.append(row | records.interval(mean, "value"))
        numbered = {
            "rank": range(1, len(visits) + 1),
            "visits": visits,
        }
        return {
            "members": records.records(columns),
            "pictures": records.portraits(study.data, names),
            "ranks": records.records(numbered),
            "exposure": exposure,
            "outcomes": self._shelf.outcomes(measured),
        }

    # ------------------------------------------------------------ words

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        epochs = self.value(state, "data").fine_tuning
        values = list(range(1, epochs + 1))
        highest = max(rows["members"], key=itemgetter("score"))
        return [
            Pointer("epoch", "epoch", values, 1 + epochs // 2, slider=True, play=True),
            sample_pointer(highest["sample"]),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        if not rows:
            return ["The memorization scores are not stored yet."]
        epoch, window = state["epoch"], self.window(state)
        epochs = self.value(state, "data").fine_tuning
        first = window.step * (epoch - 1) + 1
        last = first + window.width - 1
        visits = [row["visits"] for row in rows["members"]]
        share = look.percent(np.mean(visits) / epochs)
        return [
            look.attacked_by(state["attack"]),
            f"In epoch {epoch} of {epochs} of a round the window holds ranks {first} to {last} of each"
            f" class. A round visits a member on average {share} as often as Base does.",
            *_mean_exposure(rows),
            *shelf.sentences(rows["outcomes"], sides=COLOURS),
        ]

    # ------------------------------------------------------------ figure

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        width, small = (300, 280) if narrow else (620, 320)
        window = self.window(state)
        epochs = self.value(state, "data").fine_tuning
        sample = charts.chosen_sample(state)
        scale = {"domain": [0.5, len(rows["ranks"]) + 0.5], "nice": False}
        rank = by("rank:Q", scale=scale, title="rank in the class")
        exposure = charts.with_intervals(vega.rows("exposure"), rank, COLOURS, chance=50)
        chosen = vega.rows("members", vega.chosen("sample"), PICTURES)
        near = on(chosen, vega.calculate(sample="datum.near"), vega.unfold("sample"), PICTURES)
        left = {
            "members of one target, a row a class": _tiles(rows, sample, rank, width),
            "visits in a round (line: Base)": _visits(rows, epochs, rank, width),
            f"mean exposure of members to {state['attack']}, %": exposure
            | {"width": width, "height": 150},
        }
        alike = charts.strip(near, sample, TIPS[:1], small, NEIGHBOURS)
        right = {
            "the chosen member": charts.card(chosen, CARD),
            "members that look most like it": alike,
        }
        signals = vega.signals(epoch=state["epoch"], step=window.step, held=window.width)
        words = "Members by rank, and the window over them"
        return vega.two_columns(left, right, narrow, words, signals)


# ---------------------------------------------------------------- words


def _mean_exposure(rows: Rows) -> list[str]:
    """The mean exposure of members that a round visits, and of the others."""
    groups: dict[str, list[Row]] = {}
    for row in rows["members"]:
        group = "that are visited" if row["visits"] else "that are never visited"
        groups.setdefault(group, []).append(row)
    sentences = []
    for group, members in groups.items():
        text = f"Mean exposure of {len(members)} members {group}"
        for name in records.values(rows["exposure"], "group"):
            exposure = [row[f"{name} in"] for row in members]
            text += f", {name}: {np.mean(exposure):.0f} %"
        sentences.append(f"{text}.")
    return sentences


# ---------------------------------------------------------------- figure

# the window holds `held` ranks, after those that it has left behind
BEHIND = "step * (epoch - 1)"
INSIDE = f"datum.rank > {BEHIND} && datum.rank <= {BEHIND} + held"
PALE = {"condition": {"test": INSIDE, "value": 1}, "value": 0.25}  # outside the window
TIPS = [by("label:N", title="sample"), by("score:Q", title="memorization score"), by("rank:Q")]
PERCENT = "(isValid(datum['{0}']) ? datum['{0}'] + ' %' : 'unknown')"
AS_MEMBER, AS_OTHER = PERCENT.format("{0} in"), PERCENT.format("{0} out")
EXPOSURE = f"'{{0}}: ' + {AS_MEMBER} + ' as a member, ' + {AS_OTHER} + ' as a non-member'"
CARD = [
    "datum.label",
    "'memorization score ' + datum.score + ', rank ' + datum.rank",
    "'Exposure to the attack:'",
    EXPOSURE.format(BASE),
    EXPOSURE.format(WINDOW),
]


def _framed(chart: Chart, width: int, height: float) -> Chart:
    """A chart over the ranks, and the outline of the window."""
    outline = {
        "fill": None,
        "stroke": COLOURS[WINDOW],
        "strokeWidth": 2.5,
        "clip": True,
    }
    first = vega.at(f"{BEHIND} + 0.5")
    last = vega.at(f"{BEHIND} + held + 0.5")
    frame = silent("rect", outline, x=first, x2=last) | vega.ONCE
    return {"layer": [chart, frame], "width": width, "height": height}


def _tiles(rows: Rows, sample: Chart, rank: Chart, width: int) -> Chart:
    """Pictures of the members, a row a class; those outside the window are pale."""
    classes = sorted(records.values(rows["pictures"], "class"))
    size = width / len(rows["ranks"])
    height = max(size, 14)
    place = {"x": rank | {"axis": None}, "y": by("class:N", sort=classes, title=None)}
    tiles = charts.images(
        vega.rows("members", PICTURES),
        sample,
        place,
        size,
        height,
        opacity=PALE,
        tooltip=TIPS,
        description=by("label:N"),
    )
    return _framed(tiles, width, len(classes) * (height + 1))


def _visits(rows: Rows, epochs: int, rank: Chart, width: int) -> Chart:
    """How often a round visits each rank; Base visits each in every epoch."""
    look = {"width": 0.8 * width / len(rows["ranks"]), "color": COLOURS[WINDOW]}
    visits = by("visits:Q", title=None, axis={"tickCount": 3})
    bars = mark(
        "bar",
        look,
        x=rank | {"axis": None},
        y=visits,
        opacity=PALE,
    )
    base = silent("rule", {"color": vega.INK}, y={"datum": epochs})
    return _framed(vega.layers(vega.rows("ranks"), bars, base), width, 80)
