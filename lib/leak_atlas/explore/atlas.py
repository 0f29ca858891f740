"""Which defence hides whom, and at which cost in accuracy?

Every variant is a defence at one strength, on networks of the same members. Each is a point in the
plane of test accuracy and attack AUC, next to the epochs of ordinary training:

    study = Atlas({"RelaxLoss, 0.3 nats": relaxed, ...}, ordinary, [1, 2, 4], attackers)
    lab.realize(study.steps(study.start))
    Instrument(study)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leak_atlas import audit
from leak_atlas.audit import Comparison
from leak_atlas.audit.targets import tpr_key
from leak_atlas.explore import charts, records, shelf, vega
from leak_atlas.explore.description import Choice, Description, Pointer, Rows, State, sample_pointer
from leak_atlas.explore.exposed import GROUPS, MEMBERS, OTHERS, SHOWN, Exposed, path_rows
from leak_atlas.explore.records import Row
from leak_atlas.explore.shelf import Measured, Shelf
from leak_atlas.explore.vega import Chart, by
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import Attacker, Population

ORDINARY = "ordinary training"
FPRS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # at which a ROC curve is drawn
LINES = {"chosen variant": vega.PURPLE, ORDINARY: vega.GREY}  # of a ROC curve
NETWORKS = {OTHERS: "networks without the sample", MEMBERS: "networks with the sample"}
FREE: dict[str, Any] = {"scale": {"zero": False}}  # an axis that need not begin at 0
# of a variant without a gain over early stopping
NOT_COMPARED = "not compared: ordinary training with this architecture is not shown"
OUT_OF_REACH = "not resolved: no epoch of ordinary training has this AUC"


@dataclass(eq=False)
class Atlas(Description):
    """`variants` are networks with a defence, by the words that name it; `ordinary` are those
    without, which are also shown after the earlier epochs `stops`.
    """

    variants: Mapping[str, Population]
    ordinary: Population
    stops: Sequence[int]
    attackers: Mapping[str, Attacker]  # by the words that offer them

    name = "atlas"
    hint = (
        "Lower and more to the right is better. Click a point to see how that variant leaks and"
        " whom it exposes; click a picture to compare the exposure of that sample under all variants."
    )

    def __post_init__(self) -> None:
        self._shelf = Shelf()
        training = self.ordinary.states[0].training
        self._data = training.data
        self._model = training.model
        self.choices = [Choice("attack", self.attackers)]

    # ------------------------------------------------------------ recipes

    def populations(self) -> dict[str, Population]:
        """All networks that are shown, by their names; earlier epochs come first."""
        early = {f"{ORDINARY}, epoch {epoch}": self.ordinary.at(epoch) for epoch in self.stops}
        return {**early, ORDINARY: self.ordinary, **self.variants}

    def measured(self, attack: str) -> dict[str, Measured]:
        """The signals of each variant, and its attack by networks with the same defence."""
        steps = {}
        for name, networks in self.populations().items():
            steps[name] = shelf.measured(networks, self.attackers, attack)
        return steps

    def steps(self, state: State) -> list[Any]:
        return list(self.measured(state["attack"]).values())

    def marks(self, state: State, side: str) -> list[Any]:
        return [shelf.measured(self.ordinary, self.attackers, state["attack"]).attack]

    def published(self) -> dict[str, State]:
        return {f"attack: {name}": {"attack": name} for name in self.attackers}

    # ------------------------------------------------------------ rows

    def rows(self, state: State) -> Rows:
        points: list[Row] = []
        exposed: dict[str, Exposed] = {}
        gains = self._gains(state["attack"])
        for name, (signals, attack) in self.measured(state["attack"]).items():
            outcome = self._shelf.outcome(signals, attack)
            curve = self._shelf.derived(roc_columns, [attack])
            whom = self._shelf.derived(Exposed.of, [attack, signals[0]], self._data)
            if outcome and whom:
                exposed[name] = whom
                point = {"variant": name, "method": method(name)}
                point |= records.interval(outcome["accuracy"], "accuracy")
                point |= {"accuracy_low": point["low"], "accuracy_high": point["high"]}
                point |= {"tpr_at_1": records.words(outcome["tpr_at_1%"], 3)}
                point |= {"gain": gains.get(name, NOT_COMPARED)}
                points.append(point | whom.cells[0] | curve)
        if not points:
            return {}
        samples = sorted(set().union(*(row["sample"] for row in points)))
        return {
            "points": points,
            "ranks": path_rows(exposed, samples),  # through the variants
            "pictures": records.portraits(self._data, samples),
        }

    def _gains(self, attack: str) -> dict[str, str]:
        """Each variant's test accuracy minus that of ordinary training's epochs at matched AUC, in
        words, as far as it is stored.

        Variants of another architecture are not compared: early stopping of theirs is not here.
        """
        populations = self.populations()
        stored = {}
        for name, (signals, scored) in self.measured(attack).items():
            if self._shelf.results([*signals, scored]) is not None:
                stored[name] = signals, scored
        epochs = [name for name in stored if method(name) == ORDINARY and name != ORDINARY]
        if not epochs or ORDINARY not in stored:
            return {}
        comparison = Comparison.of(
            self._shelf,
            {name: signals for name, (signals, _) in stored.items()},
            {(name, attack): scored for name, (_, scored) in stored.items()},
            checkpoints={ORDINARY: epochs},
        )
        gains = {}
        for name in stored:
            model = populations[name].states[0].training.model
            if method(name) != ORDINARY and model == self._model:
                gain = comparison.early_stopping(name, attack)
                gains[name] = records.words(gain, 3) if gain.resolved else OUT_OF_REACH
        return gains

    # ------------------------------------------------------------ words

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        names = records.values(rows["points"], "variant")
        defended = [name for name in names if not name.startswith(ORDINARY)]
        first = (defended or names)[0]
        (row,) = records.select(rows["points"], variant=first)
        return [
            Pointer("variant", "variant_variant", names, first, play=True),
            sample_pointer(row["sample"][0]),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        if not rows:
            return ["Nothing of this is stored yet."]
        texts = []
        for name in dict.fromkeys((state["variant"], ORDINARY)):
            for row in records.select(rows["points"], variant=name):
                auc = records.sentence(row, "auc", "AUC")
                tpr = f"TPR at 1 % FPR {row['tpr_at_1']}"
                texts.append(f"{name}: test accuracy {row['accuracy']:.3f}, {auc}, {tpr}.")
                if row["method"] != ORDINARY:
                    texts.append(
                        f"Test accuracy minus early stopping, at matched AUC: {row['gain']}."
                    )
        missing = len(self.populations()) - len(rows["points"])
        if missing:
            texts.append(f"Not stored yet: {missing} of {len(self.populations())} variants.")
        return texts

    # ------------------------------------------------------------ figure

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        sample = charts.chosen_sample(state)
        chosen = vega.rows("points", vega.chosen("variant"))
        ordinary = vega.rows("points", vega.where(f"datum.variant == '{ORDINARY}'"))
        width = 270 if narrow else 400
        plane = {"test accuracy and attack AUC of all variants": _plane(state, narrow)}
        scores, strips = {}, {}
        for title, own in (("chosen variant", chosen), (ORDINARY, ordinary)):
            scores[f"{title}: attack scores"] = charts.distribution(
                own, GROUPS, "attack score", width=width, height=110
            )
            strips[f"{title}: most exposed members"] = charts.carriers(
                own, sample, OTHERS, width, SHOWN
            )
        below = {
            "ROC curve": _roc(chosen, ordinary, width),
            "chosen sample: exposure under all variants": _ranks(rows, width),
        }
        lines = [plane, strips, scores, below]
        return vega.page(lines, narrow, "test accuracy and attack AUC of all defences")


# ---------------------------------------------------------------- rows


def method(name: str) -> str:
    """The defence of a variant, without its strength or its epoch."""
    return name.partition(", ")[0]


def roc_columns(results: Sequence[Arrays]) -> Row:
    """The columns of a ROC curve, mean over the targets: `fpr` and `tpr`, as far as the
    non-members show an FPR.
    """
    measured = audit.audit(results[0], FPRS)
    rates: dict[str, list[float]] = {"fpr": [], "tpr": []}
    for fpr in FPRS:
        tpr = measured[tpr_key(fpr)]
        if tpr.resolved:
            rates["fpr"].append(fpr)
            rates["tpr"].append(round(float(tpr.value), 4))
    return rates


# ---------------------------------------------------------------- charts


ACCURACY = by("accuracy:Q", title="test accuracy", **FREE)
AUC = by("auc:Q", title="attack AUC", **FREE)
PLACE = {"x": ACCURACY, "y": AUC}


def _plane(state: State, narrow: bool) -> Chart:
    """All variants; a click chooses one, which gets a ring and its intervals."""
    kind = f"datum.method == '{ORDINARY}' ? '{ORDINARY}, by epoch' : 'with a defence'"
    interval = "format(datum.low, '.3f') + ' to ' + format(datum.high, '.3f')"
    return vega.layers(
        vega.rows("points", vega.calculate(kind=kind, interval=interval)),
        _lines(),
        *_chosen_variant(),
        _variants(state),  # last, so that clicks reach it
        width=270 if narrow else 890,
        height=300,
    )


def _lines() -> Chart:
    """A line through the epochs of ordinary training, and one through the strengths of each
    defence.
    """
    look = {"strokeWidth": 1, "opacity": 0.6}
    return vega.silent(
        "line",
        look,
        **PLACE,
        order=by("auc:Q"),
        detail=by("method:N"),
        color=_kind(),
    )


def _kind() -> dict[str, Any]:
    """The colours of ordinary training and of defences."""
    colours = {
        f"{ORDINARY}, by epoch": vega.GREY,
        "with a defence": vega.PURPLE,
    }
    legend = vega.LEGEND | {"symbolOpacity": 1}
    return by("kind:N", scale=vega.colours(colours), legend=legend)


def _variants(state: State) -> Chart:
    """The points that can be clicked."""
    points = vega.mark(
        "point",
        charts.CLICKABLE | {"filled": True, "size": 90, "opacity": 0.85},
        **PLACE,
        color=_kind(),
        tooltip=[
            by("variant:N"),
            by("accuracy:Q", title="test accuracy", format=".3f"),
            by("auc:Q", title="AUC", format=".3f"),
            by("interval:N", title="95 % interval"),
            by("gain:N", title="minus early stopping"),
        ],
        description=by("variant:N"),
    )
    points["params"] = [vega.selection("variant", "symbol", variant=state["variant"])]
    return points


def _chosen_variant() -> list[Chart]:
    """A ring, both intervals and the name of the chosen variant."""
    ring = {
        "filled": False,
        "size": 260,
        "color": vega.INK,
        "strokeWidth": 2.5,
    }
    name = {
        "dy": -16,
        "fontSize": 11,
        "fontWeight": "bold",
    }
    accuracy = {
        "x": by("accuracy_low:Q", **FREE),
        "x2": {"field": "accuracy_high"},
    }
    auc = {
        "y": by("low:Q", **FREE),
        "y2": {"field": "high"},
    }
    marks = [
        vega.silent("point", ring, **PLACE),
        vega.silent("rule", **accuracy, y=AUC),
        vega.silent("rule", x=ACCURACY, **auc),
        vega.silent("text", name, **PLACE, text=by("variant:N")),
    ]
    for mark in marks:
        mark["transform"] = vega.chosen("variant")
    return marks


def _roc(chosen: Chart, ordinary: Chart, width: int) -> Chart:
    """ROC curves on logarithmic axes."""
    look = {
        "scale": {"type": "log", "domain": [FPRS[0], 1]},
        "axis": {"values": [0.01, 0.1, 1]},
    }
    x = by("fpr:Q", title="false positive rate", **look)
    y = by("tpr:Q", title="true positive rate", **look)
    marks = []
    for name, own in zip(LINES, (chosen, ordinary), strict=True):
        unfolded = vega.on(own, vega.unfold("fpr", "tpr"), vega.calculate(group=f"'{name}'"))
        line = vega.mark(
            "line",
            {"point": True, "clip": True},
            x=x,
            y=y,
            color=charts.group_colour(LINES),
            tooltip=[by("group:N"), by("fpr:Q"), by("tpr:Q")],
        )
        marks.append(unfolded | line)
    ends = [{"fpr": rate, "tpr": rate} for rate in (FPRS[0], 1)]
    guessing = {"data": {"values": ends}}
    marks.append(guessing | vega.silent("line", charts.DASHED, x=x, y=y))
    return {"layer": marks, "width": width, "height": 260}


def _ranks(rows: Rows, width: int) -> Chart:
    """The chosen sample's rank under each variant, among networks with and without it."""
    names = records.values(rows["points"], "variant")
    own = vega.rows("ranks", vega.chosen("sample"))
    known = vega.on(
        own,
        vega.unfold("at", *GROUPS),
        vega.fold([*GROUPS], "group", "rank"),
        vega.where("isValid(datum.rank)"),
        vega.calculate(group=f"{NETWORKS}[datum.group]"),
    )
    colours = {NETWORKS[group]: colour for group, colour in GROUPS.items()}
    labels = {"orient": "right", "labelLimit": width - 90}
    dots = vega.mark(
        "point",
        {"filled": True, "size": 50},
        x=by(
            "rank:Q",
            scale={"domain": [0, 100]},
            title="% of non-members below",
            axis={"tickCount": 3},
        ),
        y=by("at:N", sort=names, title=None, axis=labels),
        color=charts.group_colour(colours),
        tooltip=[
            by("at:N", title="variant"),
            by("group:N"),
            by("rank:Q", title="% of non-members below it"),
        ],
    )
    return vega.layers(
        known, dots, width=width - 190 if width > 300 else 110, height=14 * len(names)
    )
