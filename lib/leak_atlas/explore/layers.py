"""In which stage, and at which epoch, do networks differ on the samples that only one has seen?

PPTP's probe (section 3.2) trains M_all on all samples and M_h1 on half of them. Two such probes, A
and B, are shown next to each other.

    start = Setting(Data(), Halves(1000), Model("resnet10", width=8), Schedule(20), models=4)
    layers.explorer(start, start.but("architecture", "vgg11"), moments=[2, 5, 10])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from leak_atlas import BadInput
from leak_atlas.explore import charts
from leak_atlas.explore.charts import Chart, by
from leak_atlas.explore.instrument import Choice, Description, Instrument, Pointer, Rows, State
from leak_atlas.explore.look import COLOURS
from leak_atlas.explore.probe import BOTH, MEASURES, ONE, SHOWN, Row, Side
from leak_atlas.explore.setting import FACTORS, Setting, choices, names, takes, word
from leak_atlas.explore.shelf import Shelf
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import Attack, CrossEntropy, Objective, Step, registry

GROUPS = {BOTH: charts.GREY, ONE: charts.PURPLE}
LABELS = {"training": "defence"}  # of a factor, where it is another word
MAIN = ("data set", "architecture", "training", "augmentation")


class Layers(Description):
    """`moments` are the epochs before the last that are looked at; `objectives` what a probe may
    train with, by the words that offer it.
    """

    name = "layers"
    title = "Which stage shows membership, and when?"
    question = "In which stage do two networks differ on the samples that only one has seen?"
    hint = (
        "Point at a cell to read its AUC. A number in brackets could be chance: its 95 % interval contains"
        " 0.5. Click a cell to see the samples that stand out; click a picture to follow that sample through"
        " the stages. Seen and unseen: by M_h1, in its training."
    )

    def __init__(
        self,
        first: Setting,
        second: Setting,
        moments: Iterable[int] = (),
        objectives: Mapping[str, Objective] | None = None,
    ) -> None:
        self._begun, self._moments = {"A": first, "B": second}, tuple(moments)
        self._shelf, self._made = Shelf(), dict[Any, Side]()
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
        own = [each for each in self.choices if each.side == letter]
        changed = [each for each in own if state[each.name] != each.start]
        try:
            for choice in changed:
                setting = setting.but(_factor(choice), choice.options[state[choice.name]])
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
        found = {letter: self._side(each, state["parts"]) for letter, each in settings.items()}
        sides = {letter: side for letter, side in found.items() if side}
        if not sides:
            return {}
        cells = [{"side": letter} | row for letter, side in sides.items() for row in side.cells]
        shown = {(row["measure"], sample) for row in cells for sample in row["sample"]}
        paths = [
            {"side": letter, "measure": measure, "sample": sample} | path
            for letter, side in sides.items()
            for measure, sample in sorted(shown)
            if (path := side.path(measure, sample))
        ]
        data = {settings[letter].data.name: settings[letter].data for letter in sides}
        known = charts.portraits(data, sorted({sample for _, sample in shown}))
        return {"cells": cells, "paths": paths, "pictures": known}

    def _side(self, setting: Setting, parts: Any) -> Side | None:
        """What is stored of a side; made once."""
        found: dict[str, dict[int, list[Arrays]]] = {}
        for moment in setting.moments(self._moments):
            steps: dict[str, Sequence[Step]] = {
                "distance": setting.distances(moment, parts),
                "distance after rotation": setting.similarities(moment, parts),
                "membership probe": setting.memberships(moment) if parts == "stages" else [],
            }
            for kind, each in steps.items():
                if each and (results := self._shelf.results(each)):
                    found.setdefault(kind, {})[moment or setting.schedule.epochs] = results
        key = setting, parts, *((kind, *by_epoch) for kind, by_epoch in found.items())
        if "distance" in found and key not in self._made:
            self._made[key] = Side(setting, found)
        return self._made.get(key)

    # ------------------------------------------------------------ figure

    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        parts, epochs = _axes(rows)
        measures = list(dict.fromkeys(row["measure"] for row in rows["cells"]))
        usual = [row for row in rows["cells"] if row["measure"] == "distance"]
        strongest = _strongest([row for row in usual if row["epoch"] == epochs[-1]])
        return [
            Pointer("measure", "measure", measures, "distance"),
            Pointer("epoch", "cell_epoch", epochs, strongest["epoch"], slider=True, play=True),
            Pointer("part", "cell_part", parts, strongest["part"], label=state["parts"][:-1]),
            Pointer("sample", "sample_sample", [], strongest["sample"][0], hidden=True),
        ]

    def sentences(self, state: State, rows: Rows) -> list[str]:
        settings = [self.setting(state, letter) for letter in COLOURS]
        measure = state.get("measure", "distance")
        said = [f"{measure.capitalize()}: {MEASURES[measure]}."] if rows else []
        for letter, name in zip(COLOURS, names(*settings), strict=True):
            mine = [row for row in rows.get("cells", []) if row["side"] == letter]
            own = [row for row in mine if row["measure"] == measure]
            if own:
                most, stage = _strongest(own, ""), _strongest(own)
                then = "" if stage is most else f"; among {state['parts']}, {_shows(stage)}"
                text = f"{letter} ({name}): furthest from chance is {_shows(most)}{then}."
            elif mine:
                text = f"{letter} ({name}): {measure} is not stored yet."
            else:
                text = f"{letter} ({name}) is not stored yet."
            said.append(text + self._leak(settings["AB".index(letter)]))
        return said

    def _leak(self, setting: Setting) -> str:
        """How accurate the networks M_h1 are, and how much they leak to a threshold attack."""
        *signals, attack = setting.attacked()
        found = isinstance(attack, Attack) and self._shelf.outcome(signals, attack)
        if not found:
            return ""
        accuracy, auc = found["accuracy"].value, found["auc"].value
        return f" M_h1's test accuracy is {accuracy:.2f}, its confidence attack's AUC {auc:.2f}."

    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        parts, _ = _axes(rows)
        cell = charts.selection("cell", "rect", epoch=state["epoch"], part=state["part"])
        sample = charts.selection("sample", "image", sample=state["sample"])
        width = 270 if narrow else 400
        lines: list[dict[str, Chart]] = [{}, {}, {}, {}, {}]
        settings = [self.setting(state, each) for each in COLOURS]
        for letter, name, setting in zip(COLOURS, names(*settings), settings, strict=True):
            near = charts.where(f"datum.side == '{letter}' && datum.measure == measure")
            side, paths = charts.rows("cells", near), charts.rows("paths", near)
            here = charts.on(side, charts.chosen("cell"))
            lines[0][f"{letter}: {name}"] = charts.heat(
                side,
                [cell],
                by("epoch:O", axis={"labelAngle": 0}),
                by("part:N", sort=parts, title=state["parts"][:-1]),
                "datum.side + ', ' + datum.part + ', epoch ' + datum.epoch",
                width=width,
                height=26 * len(parts),
            )
            lines[1][f"{letter}: samples at the chosen cell"] = charts.distribution(
                here, GROUPS, "value of the measure", width=width, height=110
            )
            tips = [by("label:N", title="sample"), by("rank:Q", title="% of seen samples below it")]
            lines[2][f"{letter}: unseen samples that stand out most"] = charts.strip(
                here, sample, ["sample", "rank"], tips, width, SHOWN
            )
            own = _axes(rows, letter)
            lines[3][f"{letter}: path of the chosen sample"] = _path(paths, *own, width)
            lines[4][f"{letter}: the chosen cell, class by class"] = _classes(here, setting, width)
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


# ---------------------------------------------------------------- figure


def _axes(rows: Rows, side: str = "AB") -> tuple[list[str], list[int]]:
    """Parts and epochs of a side or of both, in order."""
    cells = [row for row in rows["cells"] if row["side"] in side]
    parts = dict.fromkeys(row["part"] for row in cells)
    return sorted(parts, key="head".__eq__), sorted({row["epoch"] for row in cells})


def _strongest(cells: Sequence[Row], parts: str = "stage") -> Row:
    """The cell furthest from chance among parts whose names begin so."""
    own = [row for row in cells if row["part"].startswith(parts)] or cells
    return max(own, key=lambda row: abs(row["auc"] - 0.5))


def _shows(row: Row) -> str:
    numbers = f"AUC {row['auc']:.2f}, 95 % interval {row['low']:.2f} to {row['high']:.2f}"
    open_ = ", could be chance" if row["low"] <= 0.5 <= row["high"] else ""
    return f"{row['part']} at epoch {row['epoch']} ({numbers}{open_})"


def _path(paths: Chart, parts: list[str], epochs: list[int], width: int) -> Chart:
    """One sample's rank through the parts; a line an epoch, the chosen epoch's strong."""
    groups = {"not seen by M_h1": charts.PURPLE, "seen by M_h1": charts.GREY}
    words = dict(zip(("unseen", "seen"), groups, strict=True))
    known = charts.on(
        paths,
        charts.chosen("sample"),
        charts.unfold("unseen", "seen"),
        charts.calculate(
            part=f"{parts}[(datum.place - 1) % {len(parts)}]",
            epoch=f"{epochs}[floor((datum.place - 1) / {max(len(parts), 1)})]",
        ),
        {"fold": ["unseen", "seen"], "as": ["when", "rank"]},
        charts.calculate(when=f"{words}[datum.when]"),
    )
    scale = {"domain": [0, 100]}
    up = by("rank:Q", scale=scale, title="rank: % of seen samples below", axis={"tickCount": 3})
    lines = charts.mark(
        "line",
        {"point": True},
        x=by("part:N", sort=parts, title=None, axis={"labelAngle": 0}),
        y=up,
        color=by("when:N", scale=charts.colours(groups), legend=charts.LEGEND),
        detail=by("epoch:N"),
        opacity={"condition": {"test": "datum.epoch == cell_epoch", "value": 1}, "value": 0.15},
    )
    whose = charts.on(paths, charts.chosen("sample"), charts.PICTURES)
    return charts.layers(known, lines, charts.portrait(whose), width=width, height=130)


def _classes(cells: Chart, setting: Setting, width: int) -> Chart:
    """The AUC of each class; a dot is a pair of networks, the line their mean."""
    names = list(registry.find(setting.data.name).classes)
    pairs = setting.models
    known = charts.on(
        cells,
        charts.unfold("by_class"),
        charts.calculate(label=f"{names}[floor((datum.place - 1) / {pairs})]"),
    )
    up = by("by_class:Q", scale={"domain": [0, 1]}, title="AUC", axis={"tickCount": 3})
    across = by("label:N", sort=names, title=None, axis={"labelAngle": -35, "labelLimit": 70})
    tips = [by("label:N", title="class"), by("by_class:Q", title="AUC in a pair")]
    dots = charts.mark("circle", {"size": 22, "color": charts.GREY}, x=across, y=up, tooltip=tips)
    look = {"thickness": 2.5, "color": charts.INK}
    means = charts.mark("tick", look, x=across, y=up | {"aggregate": "mean"})
    dashed = {"strokeDash": [3, 3], "aria": False}
    chance = charts.mark("rule", dashed, y={"datum": 0.5})
    return charts.layers(known, chance, dots, means, width=width, height=110)
