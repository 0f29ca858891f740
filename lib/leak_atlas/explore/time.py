"""When in training does a sample come to be exposed, and which samples are? (Dynamics)

Each sample has a place in the vulnerability plane: how often an attack calls it a member of
networks that did not train on it (FPR), and of networks that did (TPR).

    study = TrajectoryStudy(data, model, schedule, pool=600, test=200, networks=32, checkpoints=[0, 8])
    shown = Time({"images": study}, {"LiRA": LiRA()}, judges=16, share=0.7)
    lab.realize(shown.steps(shown.start))
    Instrument(shown)
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
from leak_atlas.explore import charts, look, records, vega
from leak_atlas.explore.description import Choice, Description, Pointer, Rows, State, sample_pointer
from leak_atlas.explore.records import Row
from leak_atlas.explore.shelf import Shelf
from leak_atlas.explore.vega import PICTURES, Chart, by, calculate, mark, on, silent
from leak_atlas.localization import over_time, trajectories
from leak_atlas.localization.difficulty import mean_losses, measures_of
from leak_atlas.recipe import Attacker, Step, TrajectoryStudy

RULES: dict[str, Any] = {
    "1 % FPR": 0.01,
    "5 % FPR": 0.05,
    "10 % FPR": 0.1,
    "20 % FPR": 0.2,
}
RULES["best balanced accuracy"] = "balanced"
FINAL = "final TPR − FPR"
UNTRAINED, TRAINED = "networks trained without it", "networks trained with it"  # loss of a sample
LOSSES = {UNTRAINED: look.COLOURS["A"], TRAINED: look.COLOURS["B"]}
RATES = {"FPR": look.COLOURS["A"], "TPR": look.COLOURS["B"]}
SHOWN = 12  # samples in the strip


@dataclass(eq=False)
class Time(Description):
    """The plane of one study and one attack.

    Further networks, `judges`, each on a random `share` of the pool, measure how hard samples are;
    no attack knows them.
    """

    studies: Mapping[str, TrajectoryStudy]  # by the words that offer them
    attackers: Mapping[str, Attacker]  # likewise
    judges: int
    share: float

    name = "time"
    exploded = ("epoch", *RATES, *LOSSES)
    hint = (
        "Each point is a sample: the share of networks that call it a member, among those"
        " trained without it (FPR) and with it (TPR). Its colour is its rank: the percentage of"
        " samples with a smaller value of the measure. Click a point, or a picture, to follow"
        " its path; play runs over the epochs. Points are moved a little so that none hides"
        " another. The purple path is the mean of all samples. High risk: TPR at least 0.8, FPR at most 0.2."
    )

    def __post_init__(self) -> None:
        for study in self.studies.values():
            look.pictured(study.data)
        self._shelf = Shelf()
        self.trained = cache(self._trained)
        self.judged = cache(self._judged)
        meaning = "one threshold for all samples and networks"
        self.choices = [
            Choice("data", self.studies),
            Choice("attack", self.attackers),
            Choice("threshold", RULES, "10 % FPR", meaning=meaning),
        ]

    # ------------------------------------------------------------ recipes

    def _trained(self, data: str) -> dict[int, Any]:
        """The outputs of the attacked networks by epoch."""
        return self.studies[data].signals()

    def _judged(self, data: str) -> dict[int, Any]:
        """The outputs of the judges by epoch."""
        study = self.studies[data]
        return study.signals(study.judges(self.judges, self.share))

    def attacks(self, state: State, permuted: int | None = None) -> dict[int, Any]:
        """The attack by epoch; `permuted`: its permutation null."""
        return self.value(state, "data").attacks(self.value(state, "attack"), permuted)

    def steps(self, state: State) -> list[Any]:
        data = state["data"]
        null = self.attacks(state, permuted=0)
        return [
            self.attacks(state),
            null,
            self.trained(data),
            self.judged(data),
        ]

    def marks(self, state: State, side: str) -> Sequence[Step]:
        return [*self.attacks(state).values()][-1:]

    # ------------------------------------------------------------ rows

    def rows(self, state: State) -> Rows:
        study = self.value(state, "data")
        rule = self.value(state, "threshold")
        try:
            scored = over_time.read(self._shelf, self.attacks(state))
            null = over_time.read(self._shelf, self.attacks(state, permuted=0))
            outputs = over_time.outputs(self._shelf, self.trained(state["data"]))
        except KeyError:
            return {}
        path = trajectories.plane(scored, rule)  # (epochs, FPR and TPR, samples)
        losses = np.maximum(mean_losses(outputs), 1e-4)  # its logarithm is drawn
        curves = np.concatenate([path, losses], axis=1)
        advantage = trajectories.advantage(path)
        measures = {FINAL: advantage[-1]} | self._difficulty(state, scored.index)
        values = np.array([*measures.values()])
        correlations = audit.rank_correlation(values[:, None], advantage)
        epochs = scored.epochs.tolist()
        samples = len(scored.index)
        names = [records.sample_name(study.data, index) for index in scored.index]
        columns: Row = {
            "sample": names,
            "epoch": [epochs] * samples,
            "rank": records.ranks(values, np.full(samples, True)).T,
            "aside": np.random.default_rng(0).uniform(-0.02, 0.02, (samples, 2)),
        }
        mean: Row = {
            "aside": [0, 0],
            "epoch": epochs,
            "measures": [*measures],
            "correlations": records.plain(correlations),
            "high": records.plain(trajectories.high_share(scored, rule)),
            "speed": round(trajectories.mean_speed(scored, null, rule), 3) + 0,  # no -0
        }
        for place, name in enumerate([*RATES, *LOSSES]):
            curve = curves[:, place]
            columns[name] = curve.T
            mean[name] = records.plain(curve.mean(axis=1))
        return {
            "samples": records.records(columns),
            "mean": [mean],
            "pictures": records.portraits(study.data, names),
        }

    def _difficulty(self, state: State, index: NDArray) -> dict[str, NDArray]:
        """Measures of how hard the samples are, by their names; none without judges."""
        try:
            judged = over_time.outputs(self._shelf, self.judged(state["data"]))
        except KeyError:
            return {}
        early = sorted(judged)[:3][-1]
        return measures_of(judged, early, index)

    # ------------------------------------------------------------ words

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        (mean,) = rows["mean"]
        epochs = mean["epoch"]
        exposed = max(rows["samples"], key=itemgetter("rank"))  # by the first of its ranks, `FINAL`
        return [
            Pointer("epoch", "epoch", epochs, epochs[-1], slider=True, play=True),
            Pointer("colour", "colour", mean["measures"], FINAL, label="colour by"),
            sample_pointer(exposed["sample"]),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        if not rows:
            return [f"{state['attack']} over time is not stored yet."]
        (mean,) = rows["mean"]
        epoch, measure = state["epoch"], state["colour"]
        at = mean["epoch"].index(epoch)
        fpr = mean["FPR"][at]
        tpr = mean["TPR"][at]
        high = look.percent(mean["high"][at])
        correlations = mean["correlations"][mean["measures"].index(measure)]
        return [
            f"Epoch {epoch}, {state['attack']} at {state['threshold']}: mean FPR {fpr:.2f}, mean TPR"
            f" {tpr:.2f}; {high} of the samples are at high risk.",
            f"Rank correlation of TPR − FPR in this epoch with {measure}: {correlations[at]:.2f}.",
            "Mean encoding speed, the length of a sample's path per epoch, minus that with permuted"
            f" membership labels: {mean['speed']:+.3f}.",
        ]

    # ------------------------------------------------------------ figure

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        size, width = (280, 280) if narrow else (460, 330)
        measures = rows["mean"][0]["measures"]
        sample = charts.chosen_sample(state, "*")
        samples = vega.rows("samples", PICTURES, calculate(**NOW))
        chosen = on(samples, vega.chosen("sample"))
        first = on(samples, vega.highest("shade", SHOWN))
        strip = charts.strip(first, sample, TIPS, size, SHOWN, description="spoken")
        left = {
            "all samples, and the path of the chosen one": _plane(samples, sample, size),
            "samples with the highest rank": strip,
        }
        losses = _over_time(chosen, LOSSES, {"type": "log"}, width)
        rates = _over_time(chosen, RATES, {"domain": [0, 1]}, width)
        right = {
            "the chosen sample": charts.card(chosen, CARD),
            "its loss in nats (thin line: mean of all)": losses,
            "how often it is called a member (thin: mean of all)": rates,
            "its rank by each measure": _ranks(chosen, measures, width),
        }
        signals = vega.signals(epoch=state["epoch"], colour=state["colour"], measures=measures)
        words = "FPR and TPR of each sample by epoch"
        return vega.two_columns(left, right, narrow, words, signals)


# ---------------------------------------------------------------- figure

NOW = {
    "at": "indexof(datum.epoch, epoch)",
    "fpr": "datum.FPR[datum.at]",
    "tpr": "datum.TPR[datum.at]",
    "x": "datum.fpr + datum.aside[0]",
    "y": "datum.tpr + datum.aside[1]",
    "shade": "datum.rank[indexof(measures, colour)]",
    "spoken": "datum.label + ': FPR ' + datum.fpr + ', TPR ' + datum.tpr",
}
CARD = ["datum.label", "'FPR ' + datum.fpr + ', TPR ' + datum.tpr", "'in epoch ' + epoch"]
TIPS = [
    by("label:N", title="sample"),
    by("fpr:Q", title="FPR"),
    by("tpr:Q", title="TPR"),
    by("shade:Q", title="rank by the measure, %", format=".0f"),
]
SQUARE = {"domain": [-0.04, 1.04], "nice": False}
PLACE = {
    "x": by("x:Q", scale=SQUARE, title="FPR: share of networks trained without it"),
    "y": by("y:Q", scale=SQUARE, title="TPR: share of networks trained with it"),
}


def _plane(samples: Chart, sample: Chart, size: int) -> Chart:
    """All samples at the chosen epoch; the paths of the chosen sample and of the mean."""
    legend = {"title": "rank by the measure, %", "orient": "bottom"}
    colours = {"scheme": "viridis", "domain": [0, 100]}
    points = mark(
        "circle",
        {"size": 45, "opacity": 0.8, "cursor": "pointer"},
        **PLACE,
        color=by("shade:Q", scale=colours, legend=legend),
        tooltip=TIPS,
        description=by("spoken:N"),
    )
    points["params"] = [sample]
    zero, one = vega.at("0"), vega.at("1")
    diagonal = silent(
        "rule",
        charts.DASHED,
        x=zero,
        y=zero,
        x2=one,
        y2=one,
    )
    chosen = vega.rows("samples", vega.chosen("sample"))
    plane = [
        vega.layers(samples, diagonal | vega.ONCE, points),
        _path(vega.rows("mean"), vega.PURPLE),
        _path(chosen, vega.INK),
    ]
    return {"layer": plane, "width": size, "height": size}


def _path(rows: Chart, colour: str) -> Chart:
    """A line through the epochs with a large mark on the chosen one."""
    moved = calculate(x="datum.FPR + datum.aside[0]", y="datum.TPR + datum.aside[1]")
    steps = on(rows, vega.unfold("epoch", "FPR", "TPR"), moved)
    points = {"fill": colour, "size": 18}
    look = {"stroke": colour, "strokeWidth": 2.5, "point": points}
    line = silent("line", look, **PLACE, order=by("epoch:Q"))
    large = {
        "fill": colour,
        "stroke": "white",
        "size": 110,
        "opacity": 1,
    }
    here = silent("point", large, **PLACE)
    here["transform"] = vega.where("datum.epoch == epoch")
    return vega.layers(steps, line, here)


def _over_time(chosen: Chart, groups: Mapping[str, str], scale: Any, width: int) -> Chart:
    """Two columns of the chosen sample by epoch, with the means of all samples."""
    x = by("epoch:Q", axis={"tickCount": 6})
    y = by("value:Q", title=None, scale=scale, axis={"tickCount": 4})
    mean = vega.rows("mean")
    lines = [
        charts.curves(chosen, "epoch", groups, x, y, strokeWidth=2.5, point=True),
        charts.curves(mean, "epoch", groups, x, y, strokeWidth=1),
        silent("rule", {"color": vega.QUIET}, x=vega.at("epoch")) | vega.ONCE,
    ]
    return {"layer": lines, "width": width, "height": 100}


def _ranks(chosen: Chart, measures: Sequence[str], width: int) -> Chart:
    """How the chosen sample compares with the others by each measure."""
    named = calculate(measure="measures[datum.place - 1]")
    x = by("rank:Q", scale={"domain": [0, 100]}, title="samples with a smaller value, %")
    y = by("measure:N", sort=measures, title=None)
    bars = mark(
        "bar",
        {"color": vega.GREY},
        x=x,
        y=y,
        tooltip=[y, x],
    )
    ranks = on(chosen, vega.unfold("rank"), named)
    return vega.layers(ranks, bars, width=width - 80, height=13 * len(measures))
