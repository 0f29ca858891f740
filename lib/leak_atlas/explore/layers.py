"""In which stage, and at which epoch, do networks differ on the samples that only one has seen?

PPTP's probe (section 3.2) trains M_all on all samples and M_h1 on half of them. Two such probes, A
and B, are shown next to each other.

    start = Setting(Data(), Halves(1000), Model("resnet10", width=8), Schedule(20), models=4)
    Instrument(Layers(start, start.but("architecture", "vgg11"), moments=[2, 5, 10]))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from leak_atlas import BadInput
from leak_atlas.explore import charts, records, vega
from leak_atlas.explore.description import Choice, Description, Pointer, Rows, State, sample_pointer
from leak_atlas.explore.look import COLOURS
from leak_atlas.explore.probe import BOTH, MEASURES, ONE, SHOWN, Side
from leak_atlas.explore.records import Row
from leak_atlas.explore.setting import FACTORS, Setting, choices, names, takes, word
from leak_atlas.explore.shelf import Shelf
from leak_atlas.explore.vega import PICTURES, Chart, by, mark, on, silent
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import Attack, CrossEntropy, Objective, Step, registry

GROUPS = {BOTH: vega.GREY, ONE: vega.PURPLE}
PATH = {"not seen by M_h1": vega.PURPLE, "seen by M_h1": vega.GREY}
LABELS = {"training": "defence"}  # of a factor, where it is another word
MAIN = ["data set", "architecture", "training", "augmentation"]
ORDER = MAIN + [factor for factor in FACTORS if factor not in MAIN]  # those under "more"


def _undefended() -> dict[str, Objective]:
    return {"none": CrossEntropy()}


@dataclass(eq=False)
class Layers(Description):
    """`moments` are the epochs before the last that are looked at; `objectives` what a probe may
    train with, by the words that offer it.
    """

    first: Setting  # A, to begin with
    second: Setting
    moments: Sequence[int] = ()
    objectives: Mapping[str, Objective] = field(default_factory=_undefended)

    name = "layers"
    hint = (
        "Point at a cell to read its AUC. A number in brackets could be chance: its 95 %"
        " interval contains 0.5. Click a cell to see the samples that stand out; click a picture"
        " to follow that sample through the stages. Unseen samples are those that M_h1 has not"
        " been trained on."
    )

    def __post_init__(self) -> None:
        self._begun = {"A": self.first, "B": self.second}
        self._shelf = Shelf()
        self._sides = dict[Any, Side]()
        self.choices = []
        for letter, factor in product(COLOURS, ORDER):
            self.choices.append(self._choice(letter, factor))
        parts = {"stages": "stages", "blocks": "blocks"}
        self.choices.append(Choice("parts", parts, meaning="what a row of the maps is"))

    def _choice(self, letter: str, factor: str) -> Choice:
        """The list of a factor's values, with that of the side in the beginning."""
        options = choices(self.objectives)[factor]
        start = self._begun[letter][factor]
        labels = [label for label, value in options.items() if value == start]
        if not labels:  # a notebook may begin with what no list has
            labels = [word(start)]
            options |= {word(start): start}
        return Choice(
            _name(letter, factor),
            options,
            labels[0],
            side=letter,
            label=LABELS.get(factor, factor),
            more=factor not in MAIN,
        )

    # ------------------------------------------------------------ recipes

    def setting(self, state: State, letter: str) -> Setting:
        """A side with all factors that are not as in the beginning. Raises BadInput where there
        can be no such networks.
        """
        setting = self._begun[letter]
        try:
            for factor in ORDER:
                name = _name(letter, factor)
                if state[name] != self.start[name]:
                    setting = setting.but(factor, self.value(state, name))
            setting.probe()
        except BadInput as error:
            raise BadInput(f"{letter}: {error}") from error
        return setting

    def settings(self, state: State) -> dict[str, Setting]:
        """Both sides."""
        return {letter: self.setting(state, letter) for letter in COLOURS}

    def _names(self, state: State) -> dict[str, str]:
        """What distinguishes the sides, in a few words each."""
        settings = self.settings(state)
        return dict(zip(settings, names(*settings.values()), strict=True))

    def steps(self, state: State) -> list[list[Step]]:
        return [each.steps(self.moments) for each in self.settings(state).values()]

    def marks(self, state: State, side: str) -> Sequence[Step]:
        settings = [self.setting(state, letter) for letter in side or COLOURS]
        return [each.distances(None, state["parts"])[-1] for each in settings]

    def unused(self, state: State) -> set[str]:
        unused = set()
        for letter in COLOURS:
            architecture = self.value(state, f"{letter}_architecture")
            setting = self._begun[letter].but("architecture", architecture)
            for factor in FACTORS:
                if not takes(setting, factor):
                    unused.add(_name(letter, factor))
        return unused

    def published(self) -> dict[str, State]:
        """A and B of the notebook, and A next to itself with each other defence."""
        alike = {}
        for name, start in self.start.items():
            if name.startswith("A_"):
                alike[f"B_{name.removeprefix('A_')}"] = start
        pairs = {"A and B of the notebook": State()}
        for defence in self.objectives:
            if defence != self.start["A_training"]:
                pairs[f"A with {defence} as B"] = alike | {"B_training": defence}
        states = {}
        for parts, (label, changed) in product(("stages", "blocks"), pairs.items()):
            states[f"{label}, {parts}"] = changed | {"parts": parts}
        return states

    # ------------------------------------------------------------ rows

    def rows(self, state: State) -> Rows:
        sides: dict[str, Side] = {}
        cells: list[Row] = []
        shown = set[tuple[str, str]]()  # measures and samples
        for letter, setting in self.settings(state).items():
            if side := self._side(setting, state["parts"]):
                sides[letter] = side
                cells += records.placed(side.cells, side=letter)
        if not sides:
            return {}
        for row in cells:
            shown.update(product([row["measure"]], row["sample"]))
        samples = sorted({sample for _, sample in shown})
        paths = []
        pictures: dict[str, Row] = {}
        for letter, side in sides.items():
            for row in records.portraits(side.data, samples):
                pictures[row["sample"]] = row
            for measure, sample in sorted(shown):
                place = {"side": letter, "measure": measure, "sample": sample}
                if path := side.path(measure, sample):
                    paths.append(place | path)
        return {
            "cells": cells,
            "paths": paths,
            "pictures": [*pictures.values()],
        }

    def _side(self, setting: Setting, parts: Any) -> Side | None:
        """What is stored of a side; made once."""
        stored: dict[str, dict[int, list[Arrays]]] = {}
        for moment in setting.moments(self.moments):
            steps: dict[str, Sequence[Step]] = {
                "distance": setting.distances(moment, parts),
                "distance after rotation": setting.similarities(moment, parts),
            }
            if parts == "stages":
                steps["membership probe"] = setting.memberships(moment)
            epoch = moment or setting.schedule.epochs
            for kind, own in steps.items():
                if results := self._shelf.results(own):
                    stored.setdefault(kind, {})[epoch] = results
        if "distance" not in stored:
            return None
        epochs = [(kind, *by_epoch) for kind, by_epoch in stored.items()]
        key = setting, parts, *epochs
        if key not in self._sides:
            self._sides[key] = Side(setting, stored)
        return self._sides[key]

    # ------------------------------------------------------------ words

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        cells = rows["cells"]
        epochs = _epochs(cells)
        last = records.select(cells, measure="distance", epoch=epochs[-1])
        strongest = _strongest(last or records.select(cells, measure="distance"))
        return [
            Pointer("measure", "measure", records.values(cells, "measure"), "distance"),
            Pointer("epoch", "cell_epoch", epochs, strongest["epoch"], slider=True, play=True),
            Pointer("part", "cell_part", _parts(cells), strongest["part"], _part(state)),
            sample_pointer(strongest["sample"][0]),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        settings = self.settings(state)
        measure = state.get("measure", "distance")
        texts = [f"{measure.capitalize()}: {MEASURES[measure]}."] if rows else []
        for letter, name in self._names(state).items():
            side = f"{letter} ({name})"
            cells = records.select(rows.get("cells", []), side=letter)
            own = records.select(cells, measure=measure)
            if own:
                text = f"{side}: {_furthest(own, state['parts'])}.{_chosen(own, state)}"
            elif cells:
                text = f"{side}: {measure} is not stored yet."
            else:
                text = f"{side} is not stored yet."
            texts.append(text + self._leak(settings[letter]))
        return texts

    def _leak(self, setting: Setting) -> str:
        """How accurate the networks M_h1 are, and how much they leak to a threshold attack."""
        *signals, attack = setting.attacked()
        if not isinstance(attack, Attack):
            return ""
        outcome = self._shelf.outcome(signals, attack)
        if not outcome:
            return ""
        accuracy = outcome["accuracy"].value
        auc = outcome["auc"].value
        return f" M_h1's test accuracy is {accuracy:.2f}, its confidence attack's AUC {auc:.2f}."

    # ------------------------------------------------------------ figure

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        cell = vega.selection("cell", "rect", epoch=state["epoch"], part=state["part"])
        sample = charts.chosen_sample(state)
        width = 270 if narrow else 400
        measured = vega.where("datum.measure == measure")
        cells = vega.rows("cells", measured)
        here = on(cells, vega.chosen("cell"))
        path = vega.rows("paths", measured, vega.chosen("sample"))
        maps = charts.heat(
            cells,
            [cell],
            by("epoch:O", axis={"labelAngle": 0}),
            by("part:N", sort=_parts(rows["cells"]), title=_part(state)),
            "datum.side + ', ' + datum.part + ', epoch ' + datum.epoch",
            width,
        )
        size = {"width": width, "height": 110}
        values = charts.distribution(here, GROUPS, "value of the measure", **size)
        strip = charts.carriers(here, sample, "seen samples", width, SHOWN)
        paths = {}
        classes = {}
        for letter, setting in self.settings(state).items():
            side = vega.of_side(letter)
            own = records.select(rows["cells"], side=letter)
            ranks = _path(on(path, side), own, width)
            by_class = _classes(on(here, side), setting, **size)
            paths[f"{letter}: path of the chosen sample"] = ranks
            classes[f"{letter}: the chosen cell, class by class"] = by_class
        lines = [
            charts.of_sides(self._names(state), maps),
            charts.of_sides("samples at the chosen cell", values),
            charts.of_sides("unseen samples that stand out most", strip),
            paths,
            classes,
        ]
        words = f"AUC by {_part(state)} and epoch, A next to B"
        return vega.page(lines, narrow, words, vega.signals(measure=state["measure"]))


# ---------------------------------------------------------------- words


def _name(letter: str, factor: str) -> str:
    """The choice of a side's factor: `A_stage4_stride`."""
    return f"{letter}_{factor}".replace("-", "").replace(" ", "_")


def _part(state: State) -> str:
    """What a row of a map is: stage or block."""
    return state["parts"].removesuffix("s")


def _parts(cells: Sequence[Row]) -> list[str]:
    """The parts of both networks, in the order of the deeper one; the head stands last."""
    sides = [records.values(records.select(cells, side=side), "part") for side in COLOURS]
    parts = dict.fromkeys([*max(sides, key=len), *records.values(cells, "part")])
    return sorted(parts, key="head".__eq__)


def _epochs(cells: Sequence[Row]) -> list[int]:
    return sorted(records.values(cells, "epoch"))


def _from_chance(cell: Row) -> float:
    return abs(cell["auc"] - 0.5)


def _strongest(cells: Sequence[Row]) -> Row:
    """The cell furthest from chance, among the stages where there are any."""
    stages = [row for row in cells if row["part"].startswith("stage")]
    return max(stages or cells, key=_from_chance)


def _furthest(cells: Sequence[Row], parts: str) -> str:
    """Which cell is furthest from chance, among all and among stages."""
    strongest = max(cells, key=_from_chance)
    stage = _strongest(cells)
    text = f"furthest from chance is {_cell(strongest)}"
    return text if stage is strongest else f"{text}; among {parts}, {_cell(stage)}"


def _chosen(cells: Sequence[Row], state: State) -> str:
    """The cell that is pointed at; "" if none is, or if it is named already."""
    part, epoch = state.get("part"), state.get("epoch")
    if part is None:
        return ""
    chosen = records.select(cells, part=part, epoch=epoch)
    if not chosen:
        return f" Nothing is stored of {part} at epoch {epoch}."
    named = max(cells, key=_from_chance), _strongest(cells)
    return "" if chosen[0] in named else f" Chosen: {_cell(chosen[0])}."


def _cell(row: Row) -> str:
    text = f"{row['part']} at epoch {row['epoch']}, {records.sentence(row, 'auc', 'AUC')}"
    could_be_chance = row["low"] <= 0.5 <= row["high"]
    return f"{text}, which could be chance" if could_be_chance else text


# ---------------------------------------------------------------- figure


def _path(path: Chart, cells: Sequence[Row], width: int) -> Chart:
    """One sample's rank through the parts; a line an epoch, the chosen epoch's strong."""
    parts = _parts(cells)
    epochs = _epochs(cells)
    unseen, seen = PATH
    whose = vega.calculate(
        part=f"{parts}[(datum.place - 1) % {len(parts)}]",
        epoch=f"{epochs}[floor((datum.place - 1) / {max(len(parts), 1)})]",
    )
    groups = vega.calculate(**{unseen: "datum.unseen", seen: "datum.seen"})
    ranks = vega.fold([unseen, seen], "group", "rank")
    lines = mark(
        "line",
        {"point": True},
        x=by("part:N", sort=parts, title=None, axis={"labelAngle": 0}),
        y=by(
            "rank:Q",
            scale={"domain": [0, 100]},
            title="rank: % of seen samples below",
            axis={"tickCount": 3},
        ),
        color=charts.group_colour(PATH),
        detail=by("epoch:N"),
        opacity={"condition": {"test": "datum.epoch == cell_epoch", "value": 1}, "value": 0.15},
    )
    steps = on(path, vega.unfold("unseen", "seen"), whose, groups, ranks)
    return vega.layers(steps, lines, charts.portrait(on(path, PICTURES)), width=width, height=130)


def _classes(cell: Chart, setting: Setting, **size: int) -> Chart:
    """The AUC of each class; a dot is a pair of networks, the line their mean."""
    classes = list(registry.find(setting.data.name).classes)
    label = f"{classes}[floor((datum.place - 1) / {setting.models})]"
    auc = by("by_class:Q", scale={"domain": [0, 1]}, title="AUC", axis={"tickCount": 3})
    axis = {"labelAngle": -35, "labelLimit": 70}
    place = {"x": by("label:N", sort=classes, title=None, axis=axis)}
    tips = [by("label:N", title="class"), by("by_class:Q", title="AUC in a pair")]
    return vega.layers(
        on(cell, vega.unfold("by_class"), vega.calculate(label=label)),
        silent("rule", {"strokeDash": [3, 3]}, y={"datum": 0.5}),
        mark(
            "circle",
            {"size": 22, "color": vega.GREY},
            **place,
            y=auc,
            tooltip=tips,
        ),
        mark(
            "tick",
            {"thickness": 2.5, "color": vega.INK},
            **place,
            y=auc | {"aggregate": "mean"},
        ),
        **size,
    )
