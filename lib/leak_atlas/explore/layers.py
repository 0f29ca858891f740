"""In which stage, and at which epoch, do networks differ on the samples that only one has seen?

PPTP's probe (section 3.2) trains M_all on all samples and M_h1 on half of them. Two such probes, A
and B, are shown next to each other.

    start = Setting(Data(), Halves(1000), Model("resnet10", width=8), Schedule(20), models=4)
    layers.explorer(start, start.but("architecture", "vgg11"), moments=[2, 5, 10])

A sample carries a cell's disparity as far as its distance exceeds those of the samples that both
networks have seen. That share is its *rank*; the AUC is the mean rank of the unseen samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput
from leak_atlas.data import readers
from leak_atlas.explore import charts
from leak_atlas.explore.charts import Chart, by
from leak_atlas.explore.instrument import Choice, Description, Instrument, Pointer, Rows, State
from leak_atlas.explore.look import COLOURS
from leak_atlas.explore.setting import FACTORS, Setting, choices, names, takes, word
from leak_atlas.explore.shelf import Shelf
from leak_atlas.localization import disparity
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import CrossEntropy, Objective, Step, registry

MEASURES = {
    "distance": "euclidean",
    "direction": "direction",
    "length": "length",
    "length difference": "length difference",
}
MEANINGS = {
    "distance": "Euclidean distance of the features in M_all and in M_h1 (the paper's)",
    "direction": "1 - cosine of the features in M_all and in M_h1",
    "length": "length of the features in M_h1",
    "length difference": "length of the features in M_all minus that in M_h1",
}
LABELS = {"training": "defence"}  # of a factor, where it is another word
MAIN = ("data set", "architecture", "training", "augmentation")
BOTH, ONE = "seen by both networks", "seen by M_all alone"
GROUPS = {BOTH: charts.GREY, ONE: charts.PURPLE}
SHOWN = 9  # samples in a strip
SideRows: TypeAlias = tuple[list[dict[str, Any]], list[dict[str, Any]]]  # cells and paths


class Layers(Description):
    """`moments` are the epochs before the last that are looked at; `objectives` what a probe may
    train with, by the words that offer it.
    """

    name = "layers"
    title = "Which stage shows membership, and when?"
    question = "In which stage do two networks differ on the samples that only one has seen?"
    hint = (
        "Point at a cell to read its AUC; click it to see who carries it; click a picture to follow"
        " that sample through the stages. Play runs over the epochs."
    )

    def __init__(
        self,
        first: Setting,
        second: Setting,
        moments: Iterable[int] = (),
        objectives: Mapping[str, Objective] | None = None,
    ) -> None:
        self._begun, self._moments = {"A": first, "B": second}, tuple(moments)
        self._shelf, self._made = Shelf(), dict[Any, SideRows]()
        self.choices = [
            _choice(letter, factor, self._begun[letter], objectives or {"none": CrossEntropy()})
            for letter, factor in product(COLOURS, [*MAIN, *(f for f in FACTORS if f not in MAIN)])
        ]
        parts = {"stages": "stages", "blocks": "blocks"}
        self.choices.append(Choice("parts", parts, "stages", meaning="rows of the maps"))

    # ------------------------------------------------------------ recipes

    def setting(self, state: State, letter: str) -> Setting:
        """A side with all factors that are not as in the beginning. Raises BadInput where there
        can be no such networks.
        """
        setting = self._begun[letter]
        try:
            for choice in self.choices:
                if choice.side == letter and state[choice.name] != choice.start:
                    value = choice.options[state[choice.name]]
                    setting = setting.but(_factor(choice), value)
            setting.probe()
        except BadInput as error:
            raise BadInput(f"{letter}: {error}") from error
        return setting

    def steps(self, state: State) -> list[list[Step]]:
        return [self.setting(state, letter).steps(self._moments) for letter in COLOURS]

    def marks(self, state: State, side: str) -> Sequence[Step]:
        return [
            self.setting(state, letter).distances(None, state["parts"])[-1]
            for letter in side or COLOURS
        ]

    def unused(self, state: State) -> set[str]:
        found = set()
        for letter in COLOURS:
            setting = self._begun[letter].but(
                "architecture", self.value(state, f"{letter}_architecture")
            )
            found |= {_name(letter, factor) for factor in FACTORS if not takes(setting, factor)}
        return found

    def published(self) -> dict[str, State]:
        """A and B of the notebook, and A next to itself with each other defence."""
        own = {each.name: each for each in self.choices if each.side == "A"}
        alike = {f"B{name[1:]}": choice.start for name, choice in own.items()}
        defence = own["A_training"]
        others = [each for each in defence.options if each != defence.start]
        pairs = {"A and B of the notebook": State()}
        pairs |= {f"A with {each} as B": alike | {"B_training": each} for each in others}
        return {
            f"{label}, {parts}": changed | {"parts": parts}
            for parts in ("stages", "blocks")
            for label, changed in pairs.items()
        }

    # ------------------------------------------------------------ rows

    def rows(self, state: State) -> Rows:
        settings = {letter: self.setting(state, letter) for letter in COLOURS}
        made: dict[str, list[dict[str, Any]]] = {"cells": [], "paths": []}
        samples = set()
        for letter, setting in settings.items():
            if found := self._side(setting, state["parts"]):
                cells, paths = found
                made["cells"] += [{"side": letter} | row for row in cells]
                made["paths"] += [{"side": letter} | row for row in paths]
                samples |= {(setting.data, row["sample"]) for row in paths}
        if not made["cells"]:
            return {}
        made["pictures"] = [_picture(*each) for each in sorted(samples, key=lambda each: each[1])]
        return made

    def _side(self, setting: Setting, parts: Any) -> SideRows | None:
        """Cells and paths of what is stored of a side, made once."""
        results = {}
        for moment in setting.moments(self._moments):
            if found := self._shelf.results(setting.distances(moment, parts)):
                results[moment or setting.schedule.epochs] = found
        key = setting, parts, *results
        if results and key not in self._made:
            self._made[key] = _side_rows(setting.data.name, results)
        return self._made.get(key)

    # ------------------------------------------------------------ figure

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        parts, epochs = _axes(rows)
        usual = [row for row in rows["cells"] if row["measure"] == "distance"]
        strongest = _strongest(usual, epochs[-1])
        return [
            Pointer("measure", "measure", list(MEASURES), "distance"),
            Pointer("epoch", "cell_epoch", epochs, strongest["epoch"], slider=True, play=True),
            Pointer("part", "cell_part", parts, strongest["part"], label=state["parts"][:-1]),
            Pointer("sample", "sample_sample", [], strongest["sample"][0], hidden=True),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        settings = [self.setting(state, letter) for letter in COLOURS]
        said = []
        for letter, name in zip(COLOURS, names(*settings), strict=True):
            measure = state.get("measure", "distance")
            mine = [
                r for r in rows.get("cells", []) if r["side"] == letter and r["measure"] == measure
            ]
            if not mine:
                said.append(f"{letter} ({name}) is not stored yet.")
                continue
            most = _strongest(mine)
            said.append(
                f"{letter} ({name}): by {measure}, {most['part']} at epoch {most['epoch']} shows most:"
                f" AUC {most['auc']:.2f}, 95 % interval {most['low']:.2f} to {most['high']:.2f};"
                f" {most['meaning']}."
            )
        return said

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        parts, epochs = _axes(rows)
        cell = charts.selection("cell", "rect", epoch=state["epoch"], part=state["part"])
        sample = charts.selection("sample", "image", sample=state["sample"])
        width = 270 if narrow else 400
        lines: list[dict[str, Chart]] = [{}, {}, {}, {}]
        settings = [self.setting(state, each) for each in COLOURS]
        for letter, name in zip(COLOURS, names(*settings), strict=True):
            near = charts.where(f"datum.side == '{letter}' && datum.measure == measure")
            side, paths = charts.rows("cells", near), charts.rows("paths", near)
            lines[0][f"{letter}: {name}"] = charts.heat(
                side,
                cell,
                by("epoch:O", axis={"labelAngle": 0}),
                by("part:N", sort=parts, title=None),
                "datum.side + ', ' + datum.part + ', epoch ' + datum.epoch",
                width=width,
                height=26 * len(parts),
            )
            lines[1][f"{letter}: samples at the chosen cell"] = charts.distribution(
                side, "cell", GROUPS, "value at the chosen cell", width=width, height=110
            )
            tips = [by("label:N", title="sample"), by("rank:Q", title="rank among the seen, %")]
            lines[2][f"{letter}: unseen samples that carry it most"] = charts.strip(
                side, "cell", sample, ["sample", "rank"], tips, width, SHOWN
            )
            own = _axes(rows, letter)[0]
            lines[3][f"{letter}: path of the chosen sample"] = _path(paths, own, epochs, width)
        shown = [charts.side_by_side(line, narrow) for line in lines]
        words = f"AUC by {state['parts'][:-1]} and epoch, A next to B"
        return charts.page(shown, words, [{"name": "measure", "value": state["measure"]}])


def explorer(
    first: Setting,
    second: Setting,
    moments: Iterable[int] = (),
    objectives: Mapping[str, Objective] | None = None,
) -> Instrument:
    """Two probes next to each other; see `Layers`."""
    return Instrument(Layers(first, second, moments, objectives))


# ---------------------------------------------------------------- choices


def _name(letter: str, factor: str) -> str:
    """The choice of a side's factor: `A_stage4_stride`."""
    return f"{letter}_{factor}".replace("-", "").replace(" ", "_")


def _factor(choice: Choice) -> str:
    return next(each for each in FACTORS if _name(choice.side, each) == choice.name)


NUMBERS = {
    "width": (4, 8, 16, 32, 64),
    "pixels": (8, 16, 32),
    "pool": (300, 600, 1000, 2000),
    "epochs": (6, 12, 20, 40),
}


def _choice(
    letter: str, factor: str, begun: Setting, objectives: Mapping[str, Objective]
) -> Choice:
    options = choices(objectives).get(factor) or {str(each): each for each in NUMBERS[factor]}
    start = begun[factor]
    if start not in options.values():  # a notebook may begin with what no list has
        options |= {word(start): start}
    label = next(label for label, value in options.items() if value == start)
    return Choice(
        _name(letter, factor),
        options,
        label,
        side=letter,
        label=LABELS.get(factor, factor),
        more=factor not in MAIN,
    )


# ---------------------------------------------------------------- rows of a side


def _ranks(values: NDArray, seen: NDArray[np.bool_]) -> NDArray:
    """For each row `(R, n)` and sample, the percentage of the seen samples whose value is lower."""
    made = np.empty(values.shape)
    for row, own in enumerate(values):
        others = np.sort(own[seen])
        left, right = (np.searchsorted(others, own, side) for side in ("left", "right"))
        made[row] = 50 * (left + right) / len(others)
    return made


def _mean(values: Sequence[NDArray], chosen: Sequence[NDArray[np.bool_]]) -> NDArray:
    """Mean over the pairs in which a sample is chosen; NaN where it never is."""
    count = np.sum(chosen, axis=0)
    total = np.sum([own * of for own, of in zip(values, chosen, strict=True)], axis=0)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _side_rows(data: str, results: Mapping[int, Sequence[Arrays]]) -> SideRows:
    """Cells and paths of one probe; `results` has an array for each pair, by epoch."""
    first = next(iter(results.values()))
    parts = bytes(first[0]["parts"]).decode().split("\n")
    _, seen = disparity.read(first)
    unseen = [~half for half in seen]
    names = np.array([f"{data} {index}" for index in first[0]["index"][first[0]["seen_a"]]])
    cells, paths = [], []
    for measure, field in MEASURES.items():
        by_epoch = [disparity.measured(found, field) for found in results.values()]
        values = [np.concatenate(own) for own in zip(*by_epoch, strict=True)]
        ranks = [_ranks(own, half) for own, half in zip(values, seen, strict=True)]
        new, old = _mean(ranks, unseen), _mean(ranks, seen)
        pooled = np.concatenate(values, axis=1)
        halves = {BOTH: np.concatenate(seen), ONE: np.concatenate(unseen)}
        shown = set[int]()
        places, aucs = product(results, parts), disparity.profile(values, seen)
        for row, ((epoch, part), auc) in enumerate(zip(places, aucs, strict=True)):
            sign = 1 if auc.value >= 0.5 else -1
            order = np.argsort(-sign * new[row], kind="stable")[:SHOWN]  # NaN stands last
            shown |= set(order.tolist())
            cells.append(
                {"measure": measure, "epoch": epoch, "part": part, "meaning": _meaning(auc)}
                | charts.interval(auc)
                | charts.histogram(pooled[row], halves)
                | {"sample": names[order].tolist(), "rank": _list(new[row, order])}
            )
        for at in sorted(shown):
            own = {"unseen": _list(new[:, at]), "seen": _list(old[:, at])}
            paths.append({"measure": measure, "sample": str(names[at])} | own)
    return cells, paths


def _list(values: NDArray) -> list[float | None]:
    return [None if np.isnan(value) else round(value) for value in values.tolist()]


def _meaning(auc: Any) -> str:
    if auc.low <= 0.5 <= auc.high:
        return "could be chance: the interval contains 0.5"
    return f"unseen samples have {'larger' if auc.value > 0.5 else 'smaller'} values here"


def _picture(data: Any, sample: str) -> dict[str, str]:
    index = int(sample.rpartition(" ")[2])
    samples = readers.load(data.name, data.pixels)
    label = registry.find(data.name).classes[samples.labels[index]]
    return {"sample": sample, "label": f"{label} ({sample})", "image": charts.png(samples.x[index])}


# ---------------------------------------------------------------- figure


def _axes(rows: Rows, side: str = "AB") -> tuple[list[str], list[int]]:
    """Parts and epochs of a side or of both, in order."""
    cells = [row for row in rows["cells"] if row["side"] in side]
    parts = dict.fromkeys(row["part"] for row in cells)
    return sorted(parts, key="head".__eq__), sorted({row["epoch"] for row in cells})


def _strongest(cells: list[dict[str, Any]], epoch: int | None = None) -> dict[str, Any]:
    """The cell furthest from chance, by its own distance; the head and the stem are none."""
    stages = [row for row in cells if row["part"].startswith("stage")] or cells
    here = [row for row in stages if epoch is None or row["epoch"] == epoch]
    return max(here, key=lambda row: abs(row["auc"] - 0.5))


def _path(paths: Chart, parts: list[str], epochs: list[int], width: int) -> Chart:
    """One sample's rank through the parts; a line an epoch, the chosen epoch's strong."""
    folded = {"fold": ["unseen", "seen"], "as": ["when", "rank"]}
    known = charts.on(
        paths,
        charts.chosen("sample"),
        charts.unfold("unseen", "seen"),
        charts.calculate(
            part=f"{parts}[(datum.place - 1) % {len(parts)}]",
            epoch=f"{epochs}[floor((datum.place - 1) / {len(parts)})]",
        ),
        folded,
    )
    axis = {"tickCount": 3, "labelExpr": "datum.value + ' %'"}
    up = by("rank:Q", scale={"domain": [0, 100]}, title="rank among the seen", axis=axis)
    scale = charts.colours({"unseen": charts.PURPLE, "seen": charts.GREY})
    legend = {"title": "by M_h1", "orient": "top"}
    lines = charts.mark(
        "line",
        {"point": True},
        x=by("part:N", sort=parts, title=None, axis={"labelAngle": 0}),
        y=up,
        color=by("when:N", scale=scale, legend=legend),
        detail=by("epoch:N"),
        opacity={"condition": {"test": "datum.epoch == cell_epoch", "value": 1}, "value": 0.15},
    )
    return charts.layers(known, lines, width=width, height=130)
