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
from leak_atlas.explore import charts, look, shelf
from leak_atlas.explore.charts import Chart, by
from leak_atlas.explore.exposed import exposed_ranks
from leak_atlas.explore.instrument import Choice, Description, Pointer, Rows, State
from leak_atlas.explore.shelf import Measured, Shelf
from leak_atlas.localization.samples import means_by_rank, member_ranks, nearest
from leak_atlas.recipe import RMR, Attacker, Step, Window, WindowStudy

RANDOM = "random order"  # the control: from low to high, of the same scores, permuted
ORDERS = {"low-to-high": "low-to-high", "high-to-low": "high-to-low", RANDOM: "low-to-high"}
NEIGHBOURS = 6  # members that are nearest to the chosen one
BASE, WINDOW = "Base", "window"
COLOURS = {BASE: charts.INK, WINDOW: look.COLOURS["B"]}


@dataclass(eq=False)
class Samples(Description):
    """The window and the attack of one study; members are those of the first target."""

    studies: Mapping[str, WindowStudy]  # by the words that offer them
    attackers: Mapping[str, Attacker]  # likewise
    penalty: RMR  # what SWMR adds to RSW
    ninths: int  # width of the window to begin with, ninths of a class' members
    step: int  # by which it moves to begin with, members an epoch

    name = "samples"
    title = "Whom does a window over the ranking protect?"
    question = "Which members does a window visit, and which are exposed to an attack?"
    hint = (
        "Play moves the window through the epochs of a round. Click a member to read its memorization"
        " score and its exposure, and to see the members that look most like it. Exposure is the percentage"
        " of non-members with a lower attack score."
    )

    def __post_init__(self) -> None:
        for study in self.studies.values():
            look.pictured(study.data)
        self._shelf = Shelf()
        defences = {"RSW": None, "SWMR": self.penalty}
        widths = {f"{ninths}/9": ninths for ninths in range(1, 10)}
        steps = {str(step): step for step in sorted({0, 1, 2, self.step})}
        width = "of the window, as a share of a class' members"
        self.choices = [
            Choice("data", self.studies),
            Choice("defence", defences),
            Choice("order", ORDERS, meaning="of the scores"),
            Choice("attack", self.attackers),
            Choice("width", widths, f"{self.ninths}/9", meaning=width),
            Choice("step", steps, str(self.step), meaning="members an epoch"),
        ]

    # ------------------------------------------------------------ recipes

    def window(self, state: State) -> Window:
        study = self.value(state, "data")
        members = study.setup.design.members(0) / study.data.classes
        width = max(1, round(members * self.value(state, "width") / 9))
        return Window(width, self.value(state, "step"), self.value(state, "order"))

    def ranking(self, state: State) -> Step:
        """The scores by which members are ordered."""
        ranking = self.value(state, "data").ranking
        return ranking.shuffle() if state["order"] == RANDOM else ranking

    def measured(self, state: State) -> dict[tuple[str, None], Measured]:
        """The outputs and the attack of Base and of the window."""
        study, penalty = self.value(state, "data"), self.value(state, "defence")
        windowed = study.windowed(self.window(state), self.ranking(state), penalty)
        measured = {}
        for name, networks in {BASE: study.base, WINDOW: windowed}.items():
            measured[name, None] = shelf.measured(
                networks, self.attackers, state["attack"], study.targets
            )
        return measured

    def steps(self, state: State) -> list[Any]:
        rankings = [self.value(state, "data").ranking, self.ranking(state)]
        return [rankings, self.measured(state)]

    def beginning(self) -> list[Any]:
        """What a notebook trains: on all data Base, both defences and their control's order."""
        steps: list[Any] = [study.ranking.shuffle() for study in self.studies.values()]
        for data, defence, attack in product(self.studies, ("RSW", "SWMR"), self.attackers):
            steps.append(
                self.steps(self.start | {"data": data, "defence": defence, "attack": attack})
            )
        return steps

    def marks(self, state: State, side: str) -> Sequence[Step]:
        return [self.ranking(state), self.measured(state)[WINDOW, None][1]]

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
        visits = self.window(state).visits(rank.max(), study.fine_tuning)
        x = readers.load(study.data.name, study.data.pixels).x[ranking["index"][members]]
        names = [f"{study.data.name} {index}" for index in ranking["index"][members]]
        columns = {
            "sample": names,
            "near": np.array(names)[nearest(x, NEIGHBOURS)],
            "rank": rank,
            "score": ranking["score"][members],
            "visits": np.array(visits)[rank - 1],
        }
        exposed = []
        measured = self.measured(state)
        for (name, _), (_, attack) in measured.items():
            if results := self._shelf.results([attack]):
                shares, as_member, otherwise = exposed_ranks(results[0], ranking["index"])
                columns[f"{name} in"] = as_member[members].round()
                columns[f"{name} out"] = otherwise[members].round()
                for at, mean in enumerate(means_by_rank(shares, ranks), start=1):
                    exposed.append({"group": name, "rank": at} | charts.interval(mean, "value"))
        numbered = {"rank": range(1, len(visits) + 1), "visits": visits}
        return {
            "members": charts.records(columns),
            "pictures": charts.portraits({study.data.name: study.data}, names),
            "ranks": charts.records(numbered),
            "exposure": exposed,
            "outcomes": self._shelf.outcomes(measured),
        }

    # ------------------------------------------------------------ figure

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        epochs = self.value(state, "data").fine_tuning
        values = list(range(1, epochs + 1))
        highest = max(rows["members"], key=itemgetter("score"))
        return [
            Pointer("epoch", "epoch", values, 1 + epochs // 2, slider=True, play=True),
            Pointer("sample", "sample_sample", [], highest["sample"], hidden=True),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        import pandas as pd

        if not rows:
            return ["The memorization scores are not stored yet."]
        window, epochs = self.window(state), self.value(state, "data").fine_tuning
        first = window.step * (state["epoch"] - 1) + 1
        members = pd.DataFrame(rows["members"])
        share = look.percent(members["visits"].mean() / epochs)
        never = np.where(members["visits"] == 0, "that are never visited", "that are visited")
        sentences = [
            f"In epoch {state['epoch']} of {epochs} of a round the window holds ranks {first} to"
            f" {first + window.width - 1} of each class. A round visits a member on average {share} as often as"
            " Base does."
        ]
        for group, own in members.groupby(never):
            text = f"Mean exposure of {len(own)} members {group}"
            for name in charts.values(rows["exposure"], "group"):
                text += f", {name}: {own[f'{name} in'].mean():.0f} %"
            sentences.append(f"{text}.")
        return sentences + shelf.sentences(rows["outcomes"], sides=COLOURS)

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        width, small = (300, 280) if narrow else (620, 320)
        window, epochs = self.window(state), self.value(state, "data").fine_tuning
        sample = charts.selection("sample", "image", sample=state["sample"])
        scale = {"domain": [0.5, len(rows["ranks"]) + 0.5], "nice": False}
        rank = by("rank:Q", scale=scale, title="rank in the class")
        exposed = charts.with_intervals(charts.rows("exposure"), rank, COLOURS, chance=50)
        chosen = charts.rows("members", charts.chosen("sample"), charts.PICTURES)
        near = charts.on(chosen, charts.calculate(sample="datum.near"))
        left = {
            "members of one target, a row a class": _tiles(rows, sample, rank, width),
            "visits in a round (line: Base)": _visits(rows, epochs, rank, width),
            "mean exposure of members, %": exposed | {"width": width, "height": 150},
        }
        right = {
            "the chosen member": charts.card(chosen, CARD),
            "members that look most like it": charts.strip(
                near, sample, ["sample"], TIPS[:1], small, NEIGHBOURS
            ),
        }
        signals = charts.signals(epoch=state["epoch"], step=window.step, held=window.width)
        columns = charts.two_columns(left, right, narrow)
        return charts.page([columns], "Members by rank, and the window over them", signals)


# ---------------------------------------------------------------- figure

# the window holds `held` ranks, after those that it has left behind
BEHIND = "step * (epoch - 1)"
INSIDE = f"datum.rank > {BEHIND} && datum.rank <= {BEHIND} + held"
PALE = {"condition": {"test": INSIDE, "value": 1}, "value": 0.25}  # outside the window
TIPS = [by("label:N", title="sample"), by("score:Q", title="memorization score"), by("rank:Q")]
MEANS = "'{0}: ' + datum['{0} in'] + ' % as a member, ' + datum['{0} out'] + ' % as a non-member'"
CARD = [
    "datum.label",
    "'memorization score ' + datum.score + ', rank ' + datum.rank",
    "'Exposure to the attack:'",
    MEANS.format(BASE),
    MEANS.format(WINDOW),
]


def _framed(chart: Chart, width: int, height: float) -> Chart:
    """A chart over the ranks, and the outline of the window."""
    look = {"fill": None, "stroke": COLOURS[WINDOW], "strokeWidth": 2.5, "clip": True}
    first, last = charts.at(f"{BEHIND} + 0.5"), charts.at(f"{BEHIND} + held + 0.5")
    frame = charts.mark("rect", look | {"aria": False}, x=first, x2=last) | charts.ONCE
    return {"layer": [chart, frame], "width": width, "height": height}


def _tiles(rows: Rows, sample: Chart, rank: Chart, width: int) -> Chart:
    """Pictures of the members, a row a class; those outside the window are pale."""
    classes = sorted(charts.values(rows["pictures"], "class"))
    size = width / len(rows["ranks"])
    height = max(size, 14)
    tiles = charts.images(
        charts.rows("members", charts.PICTURES),
        sample,
        {"x": rank | {"axis": None}, "y": by("class:N", sort=classes, title=None)},
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
    number = by("visits:Q", title=None, axis={"tickCount": 3})
    bars = charts.layers(
        charts.rows("ranks"),
        charts.mark("bar", look, x=rank | {"axis": None}, y=number, opacity=PALE),
        charts.mark("rule", {"color": charts.INK, "aria": False}, y={"datum": epochs}),
    )
    return _framed(bars, width, 80)
