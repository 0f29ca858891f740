"""When in training does a sample come to be exposed, and which samples are? (Dynamics)

Each sample has a place in the vulnerability plane: how often an attack calls it a member of
networks that did not train on it (FPR), and of networks that did (TPR).

    study = Study(setup, [0, 2, 4, 8], {"LiRA": LiRA()}, judges=16)
    lab.realize(study.steps("LiRA"))
    time.explorer({"images": study}, "LiRA")
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from leak_atlas import BadInput, audit, nearest
from leak_atlas.attacks import signals as scores
from leak_atlas.audit import FloatArray, IntArray
from leak_atlas.data import readers
from leak_atlas.data.designs import Role
from leak_atlas.explore import charts, look
from leak_atlas.explore.charts import Chart, by
from leak_atlas.explore.instrument import Choice, Description, Instrument, Pointer, Rows, State
from leak_atlas.explore.shelf import Shelf
from leak_atlas.localization import over_time, trajectories
from leak_atlas.localization.difficulty import difficulty
from leak_atlas.recipe import Attack, Attacker, Population, Setup, Signals, Step, registry

if TYPE_CHECKING:
    import pandas as pd

    from leak_atlas.localization.disparity import Arrays

RULES: dict[str, float | Literal["balanced"]] = {
    f"{look.percent(rate)} FPR": rate for rate in (0.01, 0.05, 0.1, 0.2)
}
RULES |= {"best balanced accuracy": "balanced"}
FORMS = {"counted": "counted", "normal distributions": "fitted"}
FINAL = "final TPR − FPR"
RISKS = ["low risk", "some risk", "high risk"]  # by `trajectories.states`
WITHOUT, WITH = "networks that did not train on it", "networks that did"
SIDES = {WITHOUT: look.COLOURS["A"], WITH: look.COLOURS["B"]}
SHOWN = 12  # samples in the strip


@dataclass(frozen=True, eq=False)
class Study:
    """Networks of `setup` on halves of one pool, each attacked by the others at checkpoints.

    `judges` further networks, each on a random `share` of the pool, measure how hard samples are;
    no attack knows them. Raises BadInput on data without pictures.
    """

    setup: Setup
    epochs: Sequence[int]  # checkpoints; 0: the initialisation
    attackers: Mapping[str, Attacker]  # by the words that offer them
    judges: int
    share: float = 0.7

    def __post_init__(self) -> None:
        look.pictured(self.setup.data)

    @cached_property
    def networks(self) -> Population:
        return self.setup.trained()

    def attacks(self, attack: str, permuted: int | None = None) -> dict[int, Attack]:
        """The attack by epoch; `permuted`: its permutation null. BadInput on an unknown attack."""
        if attack not in self.attackers:
            raise BadInput(f"there is no attack '{attack}'{nearest(attack, list(self.attackers))}")
        return self.networks.attack_over_time(self.attackers[attack], self.epochs, permuted)

    @cached_property
    def answers(self) -> dict[int, tuple[Signals, ...]]:
        """The outputs of the attacked networks, by epoch."""
        return {epoch: self.networks.at(epoch or "init").signals() for epoch in self.epochs}

    @cached_property
    def judged(self) -> dict[int, tuple[Signals, ...]]:
        """The outputs of the judges, by epoch."""
        judges = Population(self.setup.memorization(self.judges, self.share).models)
        return {epoch: judges.at(epoch or "init").signals() for epoch in self.epochs}

    def steps(self, attack: str) -> list[Step]:
        """The attack and its permutation null at each checkpoint, and all outputs there."""
        attacks = [self.attacks(attack), self.attacks(attack, 0)]
        outputs = [step for by_epoch in (self.answers, self.judged) for step in by_epoch.values()]
        return [
            *(step for by_epoch in attacks for step in by_epoch.values()),
            *(step for steps in outputs for step in steps),
        ]


class Time(Description):
    """The plane of one study, by the words that offer it, and one attack."""

    name = "time"
    title = "When does training expose a sample?"
    question = "When in training is membership encoded, and in which samples?"
    hint = (
        "Play runs over the epochs. Point at a sample to read its rates; click it, or a picture,"
        " to follow its path."
    )

    def __init__(self, studies: Mapping[str, Study], attack: str, rule: str = "10 % FPR") -> None:
        for study in studies.values():
            study.attacks(attack)  # BadInput where an attack is not offered
        self._studies, self._shelf = studies, Shelf()
        first = next(iter(studies))
        attacks = {name: name for name in studies[first].attackers}
        rates = "how the rates of a sample follow from its scores"
        self.choices = [
            Choice("data", {name: name for name in studies}, first),
            Choice("attack", attacks, attack),
            Choice("threshold", RULES, rule, meaning="one threshold for all samples and networks"),
            Choice("rates", FORMS, "counted", more=True, meaning=rates),
        ]

    def study(self, state: State) -> Study:
        return self._studies[state["data"]]

    def steps(self, state: State) -> list[list[Step]]:
        return [self.study(state).steps(state["attack"])]

    def marks(self, state: State, side: str) -> Sequence[Step]:
        study = self.study(state)
        return [study.attacks(state["attack"])[study.epochs[-1]]]

    # ------------------------------------------------------------ rows

    def _plane(self, state: State, permuted: int | None = None) -> tuple[FloatArray, Any] | None:
        """FPR and TPR `(E, 2, n)` of what is stored, and the scores they come from."""
        attacks = self.study(state).attacks(state["attack"], permuted)
        results = self._shelf.results([*attacks.values()])
        if not results:
            return None
        scored = over_time.trajectory(dict(zip(attacks, results, strict=True)))
        rule, form = self.value(state, "threshold"), self.value(state, "rates")
        return trajectories.plane(scored, rule, form), scored

    def _outputs(self, steps: Mapping[int, Sequence[Signals]]) -> dict[int, list[Arrays]] | None:
        results = {epoch: self._shelf.results(each) for epoch, each in steps.items()}
        return None if None in results.values() else results  # type: ignore[return-value]

    def rows(self, state: State) -> Rows:
        study = self.study(state)
        plane, outputs = self._plane(state), self._outputs(study.answers)
        if not plane or not outputs:
            return {}
        path, scored = plane
        measures = {FINAL: trajectories.advantage(path)[-1]}
        if judged := self._outputs(study.judged):
            early = [epoch for epoch in study.epochs if epoch][:2][-1]
            hardness = difficulty(judged, early)
            at = np.searchsorted(hardness["index"], scored.index)
            named = [name for name in hardness if name not in ("index", "labels")]
            measures |= {name: hardness[name][at] for name in named}
        null = self._plane(state, permuted=0)
        loss = _losses(outputs, scored.index)
        return {
            "epochs": _epochs(study.epochs, path, loss, null[0] if null else None),
            "samples": _samples(study, path, loss, measures, scored.index),
            "measures": [{"measure": name} for name in measures],
        }

    def tables(self, state: State, rows: Rows) -> dict[str, pd.DataFrame]:
        import pandas as pd

        lists = ["fpr", "tpr", "loss_without", "loss_with"]
        table = pd.DataFrame(rows["samples"])[["sample", "label", *lists]]
        table["epoch"] = [[*self.study(state).epochs]] * len(table)
        return {"time": table.explode(["epoch", *lists])}

    # ------------------------------------------------------------ figure

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        epochs = [row["epoch"] for row in rows["epochs"]]
        furthest = max(rows["samples"], key=lambda row: row["moved"])
        return [
            Pointer("epoch", "epoch", epochs, epochs[-1], slider=True, play=True),
            Pointer("colour", "colour", _measures(rows), FINAL, label="colour by"),
            Pointer("sample", "sample_sample", [], furthest["sample"], hidden=True),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        if not rows:
            return [f"{state['attack']} over time is not stored yet."]
        samples, epochs = rows["samples"], [row["epoch"] for row in rows["epochs"]]
        at = epochs.index(state.get("epoch", epochs[-1]))
        mean, last = rows["epochs"][at], rows["epochs"][-1]
        when = f"Epoch {mean['epoch']}" if mean["epoch"] else "Before training"
        high = np.mean([row["risk"][at] == trajectories.HIGH for row in samples])
        null = f", {last['null']:.2f} with permuted membership labels" if "null" in last else ""
        sentences = [
            f"{when}, {state['attack']} at {state['threshold']}: mean FPR {mean['fpr']:.2f}, mean TPR"
            f" {mean['tpr']:.2f}. {100 * high:.0f} % of the samples are at high risk: TPR at least 0.8,"
            " FPR at most 0.2.",
            f"The path of a sample through all epochs has a mean length of {last['length']:.2f}{null}.",
        ]
        if (measure := state.get("colour", FINAL)) != FINAL:
            place = _measures(rows).index(measure)
            ranks = np.array([row["rank"][place] for row in samples])
            risk = np.array([row["tpr"][at] - row["fpr"][at] for row in samples])
            rho = float(audit.rank_correlation(ranks, risk, undefined=np.nan))
            sentences.append(
                f"Rank correlation of TPR − FPR in this epoch with {measure}: {rho:.2f}."
            )
        if state["rates"] == "counted":
            networks = self.study(state).setup.models / 2
            sentences.append(
                f"Each rate is counted over about {networks:.0f} networks: its standard error is up to"
                f" {0.5 / networks**0.5:.2f}. Points are moved a little so that none hides another."
            )
        return sentences

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        epochs, measures = [row["epoch"] for row in rows["epochs"]], _measures(rows)
        sample = charts.selection("sample", "*", sample=state["sample"])
        at = f"[indexof({epochs}, epoch)]"
        now = {
            "fpr_now": f"datum.fpr{at}",
            "tpr_now": f"datum.tpr{at}",
            "x": "datum.fpr_now + datum.aside[0]",
            "y": "datum.tpr_now + datum.aside[1]",
            "shade": f"100 * datum.rank[indexof({measures}, colour)]",
            "risk_now": f"{RISKS}[datum.risk{at}]",
            "spoken": "datum.label + ': FPR ' + datum.fpr_now + ', TPR ' + datum.tpr_now",
        }
        samples = charts.rows("samples", charts.calculate(**now))
        chosen = charts.on(samples, charts.chosen("sample"))
        wide, width = (280, 280) if narrow else (460, 330)
        left = {
            "all samples, and the path of the chosen one": _plane(samples, epochs, sample, wide),
            "samples that rank highest by the colour": _strip(samples, sample, wide),
        }
        right = {
            "the chosen sample": _card(chosen),
            "its loss in nats (thin: mean of all)": _over_time(
                chosen, epochs, ("loss_without", "loss_with"), {"type": "log"}, width
            ),
            "how often it is called a member (thin: mean of all)": _over_time(
                chosen, epochs, ("fpr", "tpr"), {"domain": [0, 1]}, width
            ),
            "its rank by each measure": _ranks(chosen, measures, width),
        }
        both = [charts.side_by_side(each, narrow=True) for each in (left, right)]
        params = [{"name": name, "value": state[name]} for name in ("epoch", "colour")]
        line = {"vconcat" if narrow else "hconcat": both}
        return charts.page([line], "FPR and TPR of each sample by epoch", params)


def explorer(studies: Mapping[str, Study], attack: str, rule: str = "10 % FPR") -> Instrument:
    """The vulnerability plane of the first study to begin with; see `Time`."""
    return Instrument(Time(studies, attack, rule))


# ---------------------------------------------------------------- rows


def _measures(rows: Rows) -> list[str]:
    return [row["measure"] for row in rows["measures"]]


def _losses(outputs: Mapping[int, Sequence[Arrays]], index: IntArray) -> FloatArray:
    """Mean loss of the samples `index (n,)`, `(E, 2, n)`: in networks that did not train on them,
    and in those that did.
    """
    means = []
    for networks in outputs.values():
        loss, member = [], []
        for signals in networks:
            pool = np.isin(signals["index"], index)
            loss.append(scores.loss(signals["logits"][pool], signals["labels"][pool]))
            member.append(signals["role"][pool] == Role.MEMBER)
        inside = np.array(member)
        sides = [np.ma.masked_array(loss, ~side).mean(axis=0) for side in (~inside, inside)]
        means.append(np.ma.filled(np.ma.stack(sides), np.nan))
    return np.array(means)


def _samples(
    study: Study,
    path: FloatArray,
    loss: FloatArray,
    measures: Mapping[str, FloatArray],
    index: IntArray,
) -> list[dict[str, Any]]:
    """A row a sample; lists by epoch, but `rank` and `value` by measure and `aside` by axis."""
    from scipy.stats import rankdata

    data = study.setup.data
    known, classes = readers.load(data.name, data.pixels), registry.find(data.name).classes
    pictures = look.pictures(known.x[index])
    values = np.array([*measures.values()])
    # of samples with the same rates, each is drawn elsewhere within a step of the counted rates
    aside = np.random.default_rng(0).uniform(-0.5, 0.5, (2, len(index)))
    aside *= min(1.6 / study.setup.models, 0.08)
    moved = np.linalg.norm(path[-1] - path[0], axis=0)
    columns = {
        "fpr": path[:, 0],
        "tpr": path[:, 1],
        "risk": trajectories.states(path),
        "loss_without": loss[:, 0],
        "loss_with": loss[:, 1],
        "rank": (rankdata(values, axis=1) - 1) / max(len(index) - 1, 1),
        "value": values,
        "aside": aside,
    }
    listed = {name: _lists(column.T) for name, column in columns.items()}
    rows = []
    for i, place in enumerate(index.tolist()):
        row = {
            "sample": f"{data.name} {place}",
            "label": f"{classes[known.labels[place]]} ({data.name} {place})",
            "image": charts.png(pictures[i]),
            "moved": round(float(moved[i]), 3),
        }
        rows.append(row | {name: column[i] for name, column in listed.items()})
    return rows


def _lists(columns: FloatArray) -> list[list[float | None]]:
    return [[None if np.isnan(x) else float(f"{x:.3g}") for x in own] for own in columns.tolist()]


def _epochs(
    epochs: Sequence[int],
    path: FloatArray,
    loss: FloatArray,
    null: FloatArray | None,
) -> list[dict[str, Any]]:
    """Means over the samples at each epoch, and how far their paths go in all."""
    fpr, tpr = trajectories.centre_of_mass(path).T
    without, with_ = np.nanmean(loss, axis=2).T
    names = "epoch", "fpr", "tpr", "loss_without", "loss_with"
    columns = [epochs, fpr, tpr, without, with_]
    lengths = {
        name: round(float(np.linalg.norm(np.diff(each, axis=0), axis=1).sum(axis=0).mean()), 3)
        for name, each in (("length", path), ("null", null))
        if each is not None
    }
    numbers = [[float(f"{x:.4g}") for x in own] for own in zip(*columns, strict=True)]
    rows = [dict(zip(names, own, strict=True)) for own in numbers]
    return [row | lengths | {"epoch": int(row["epoch"])} for row in rows]


# ---------------------------------------------------------------- figure

TIPS = [
    by("label:N", title="sample"),
    by("fpr_now:Q", title="FPR"),
    by("tpr_now:Q", title="TPR"),
    by("risk_now:N", title="meaning"),
    by("shade:Q", title="rank by the colour, %", format=".0f"),
]
SILENT = {"aria": False}


def _plane(samples: Chart, epochs: list[int], sample: dict[str, Any], size: int) -> Chart:
    """All samples at the chosen epoch; the paths of the chosen sample and of the mean."""
    rate = {"domain": [-0.04, 1.04], "nice": False}
    x = by("x:Q", scale=rate, title=f"FPR: called a member by {WITHOUT}")
    y = by("y:Q", scale=rate, title=f"TPR: called a member by {WITH}")
    shade = by(
        "shade:Q",
        scale={"scheme": "viridis", "domain": [0, 100]},
        legend={"title": "rank by the colour, %", "orient": "bottom", "gradientLength": size - 80},
    )
    dots = {"size": 45, "opacity": 0.8, "cursor": "pointer"}
    points = charts.mark("circle", dots, x=x, y=y, color=shade, tooltip=TIPS)
    points["encoding"]["description"] = by("spoken:N")
    corners = {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]}
    dashes = {"strokeDash": [4, 4], "color": charts.QUIET, **SILENT}
    diagonal = charts.mark("line", dashes, x=by("x:Q"), y=by("y:Q")) | {"data": corners}
    walked = charts.unfold("fpr", "tpr")
    step = {"epoch_here": f"{epochs}[datum.place - 1]"}
    moved = {"x": "datum.fpr + datum.aside[0]", "y": "datum.tpr + datum.aside[1]"}
    own = [charts.chosen("sample"), *walked, *charts.calculate(**step, **moved)]
    means = charts.rows(
        "epochs", charts.calculate(x="datum.fpr", y="datum.tpr", epoch_here="datum.epoch")
    )
    paths = [
        _path(charts.rows("samples", own), charts.INK),
        _path(means, charts.PURPLE),
    ]
    base = samples | {"layer": [diagonal, points | {"params": [sample]}]}
    return {"layer": [base, *paths], "width": size, "height": size}


def _path(rows: Chart, colour: str) -> Chart:
    """A line through the epochs with a large mark on the chosen one."""
    place = {"x": by("x:Q"), "y": by("y:Q")}
    lines = [
        charts.mark("line", look | SILENT, **place, order=by("epoch_here:Q"))
        for look in (
            {"stroke": "white", "strokeWidth": 5},
            {"stroke": colour, "strokeWidth": 2, "point": {"fill": colour, "size": 18}},
        )
    ]
    large = {"fill": colour, "stroke": "white", "size": 110, "opacity": 1}
    here = charts.mark("point", large | SILENT, **place)
    here |= {"transform": [charts.where("datum.epoch_here == epoch")]}
    return charts.layers(rows, *lines, here)


def _strip(samples: Chart, sample: dict[str, Any], width: int) -> Chart:
    """Pictures of the samples that rank highest; a click chooses one."""
    highest = {
        "window": [{"op": "row_number", "as": "place"}],
        "sort": [{"field": "shade", "order": "descending"}],
    }
    first = charts.on(samples, highest, charts.where(f"datum.place <= {SHOWN}"))
    return charts.pictures(first, sample, "spoken", TIPS, width, SHOWN)


def _card(chosen: Chart) -> Chart:
    """The picture of the chosen sample, and its rates in words."""
    words = [
        "datum.label",
        "'FPR ' + datum.fpr_now + ', TPR ' + datum.tpr_now",
        "datum.risk_now + ' in epoch ' + epoch",
    ]
    known = charts.on(chosen, charts.calculate(words=f"[{', '.join(words)}]"))
    image = {"width": 64, "height": 64, "x": 34, "y": 34}
    text = {"align": "left", "x": 80, "y": 18, "lineHeight": 18, "fontSize": 12}
    picture = charts.mark("image", image | SILENT, url=by("image:N"))
    return charts.layers(
        known, picture, charts.mark("text", text, text=by("words:N")), width=270, height=70
    )


def _over_time(
    chosen: Chart, epochs: list[int], columns: tuple[str, str], scale: Any, width: int
) -> Chart:
    """Two columns of the chosen sample, one a side, with the means of all samples."""
    sides = dict(zip(columns, SIDES, strict=True))
    folded = {"fold": list(columns), "as": ["column", "value"]}
    named = charts.calculate(side=f"{json.dumps(sides)}[datum.column]")
    when = charts.calculate(epoch=f"{epochs}[datum.place - 1]")
    axes = {
        "x": by("epoch:Q", axis={"tickCount": 6}),
        "y": by("value:Q", title=None, scale=scale, axis={"tickCount": 4}),
        "color": by("side:N", scale=charts.colours(SIDES), legend=charts.LEGEND),
    }
    means = charts.mark("line", {"strokeWidth": 1} | SILENT, **axes)
    own = charts.mark("line", {"strokeWidth": 2.5, "point": True} | SILENT, **axes)
    rule = charts.mark("rule", {"color": charts.QUIET} | SILENT, x=axes["x"])
    layers = [
        charts.layers(charts.rows("epochs", charts.where("datum.epoch == epoch")), rule),
        charts.layers(charts.rows("epochs", folded, named), means),
        charts.layers(charts.on(chosen, charts.unfold(*columns), folded, when, named), own),
    ]
    return {"layer": layers, "width": width, "height": 100}


def _ranks(chosen: Chart, measures: list[str], width: int) -> Chart:
    """How the chosen sample compares with the others by each measure."""
    named = charts.calculate(measure=f"{measures}[datum.place - 1]", percent="100 * datum.rank")
    ranks = charts.on(chosen, charts.unfold("rank", "value"), named)
    x = by("percent:Q", scale={"domain": [0, 100]}, title="samples with a smaller value, %")
    y = by("measure:N", sort=measures, title=None)
    tips = [by("measure:N"), by("value:Q"), by("percent:Q", title="samples below, %", format=".0f")]
    bars = charts.mark("bar", {"color": charts.GREY}, x=x, y=y, tooltip=tips)
    return charts.layers(ranks, bars, width=width - 80, height=13 * len(measures))
