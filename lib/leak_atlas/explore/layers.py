"""Two probes side by side, stage by stage and block by block: an explorer over stored feature
distances.

    start = Setting(Data(), Halves(1000), Model("resnet10", width=8), Schedule(20), models=4)
    layers.explorer(start, start.but("architecture", "vgg11"), moments=[2, 5, 10])

Every control looks at what the store has. What it lacks is computed on a click, whose cost is told
before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any

import ipywidgets as widgets
from IPython.display import HTML
from markupsafe import Markup

from leak_atlas import BadInput
from leak_atlas.data import readers
from leak_atlas.explore import base, side_by_side
from leak_atlas.explore.base import View, offer
from leak_atlas.explore.look import COLOURS, marks, stages_of, status
from leak_atlas.explore.setting import FACTORS, Parts, Setting, choices, names, takes, word
from leak_atlas.explore.shelf import Shelf
from leak_atlas.explore.side_by_side import MEASURES, Side
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import Attack, CrossEntropy, Objective, Step, registry
from leak_atlas.report.markup import drawn

USUAL = {"cross-entropy": CrossEntropy()}
# of a side: what it is, and how it does
TITLE = Markup('<b style="color:{};font-size:17px">{}</b> {}<br>{}')


def named(letter: str, factor: str) -> str:
    """The control of a side's factor: `A_stage4_stride`."""
    return f"{letter}_{factor}".replace("-", "").replace(" ", "_")


@lru_cache(maxsize=4096)
def _needed(
    setting: Setting, factor: str, value: Any, moment: int | None, parts: Parts
) -> Sequence[Step]:
    """What a profile needs where one factor has another value: pairs come together, so that the
    last one tells.
    """
    changed = setting.but(factor, value)
    return changed.distances(
        moment if moment is None or moment < changed.schedule.epochs else None, parts
    )[-1:]


# --- the widget -----------------------------------------------------------------------------------------------------


class Explorer(base.Explorer):
    """Two columns of factors, their profiles on one axis, and the samples of the part that is
    clicked.

    `moments` are the epochs before the last that can be looked at; `objectives` what a probe may
    train with, by the words that offer it. Nothing is computed before the button is clicked.
    `settings` are what is compared, by letter.
    """

    def __init__(
        self,
        first: Setting,
        second: Setting,
        moments: Iterable[int] = (),
        objectives: Mapping[str, Objective] = USUAL,
    ) -> None:
        super().__init__()
        self._begun, self._moments = {"A": first, "B": second}, tuple(moments)
        self._offered = choices(objectives)
        self._shelf, self._sides = Shelf(), dict[Any, Side]()
        self.told = {letter: widgets.HTML() for letter in COLOURS}  # of a side: what it is
        self.samples = {
            letter: widgets.HTML().add_class("leak-atlas-samples") for letter in COLOURS
        }
        self.controls = {
            letter: {f: self._control(letter, f) for f in FACTORS} for letter in COLOURS
        }
        measures = [(words, name) for name, words in MEASURES.items()]
        pairs = [(f"pair {i + 1}", i) for i in range(min(first.models, second.models))]
        buttons = widgets.ToggleButtons
        slider = widgets.SelectionSlider(options=["end"], description="epoch").add_class(
            "leak-atlas-epoch"
        )
        self.epoch = self.watched("epoch", slider)
        self.parts = self.watched(
            "parts", buttons(options=["stages", "blocks"], style={"button_width": "70px"})
        )
        self.measure = self.listed("measure", measures, measures[0][1])
        self.pair = self.listed("pair", pairs, 0, "samples of")
        self.part = self.watched(
            "part", buttons(options=["stage4"], value="stage4", tooltip="show this part's samples")
        )
        self.part.add_class("leak-atlas-part")
        apart = widgets.Layout(grid_gap="20px 32px", flex_flow="row wrap")
        forms = [self._form(letter) for letter in COLOURS]
        ends = widgets.HBox(list(self.samples.values()), layout=apart)
        self.lay([forms, [self.epoch, self.parts, self.measure, self.pair]], [self.part], [ends])
        self.restart()

    # -- making --

    def _control(self, letter: str, factor: str) -> Any:
        offered = self._offered.get(factor)
        look = {"style": {"description_width": "120px"}, "layout": widgets.Layout(width="290px")}
        look |= {"description": factor, "tooltip": f"{factor} of {letter}"}
        made = (
            widgets.IntText(**look)
            if offered is None
            else widgets.Dropdown(options=marks(offered, (), str), **look)
        )
        return self.watched(named(letter, factor), made, partial(self._take, letter, factor))

    def _form(self, letter: str) -> widgets.VBox:
        grid = widgets.Layout(
            grid_template_columns="repeat(auto-fill, 294px)", grid_gap="0 4px", width="100%"
        )
        form = widgets.GridBox(list(self.controls[letter].values()), layout=grid)
        return widgets.VBox(
            [self.told[letter], form],
            layout={"border_top": f"3px solid {COLOURS[letter]}", "width": "100%"},
        )

    # -- what happens --

    def _take(self, letter: str, factor: str, value: Any) -> None:
        offered = self._offered.get(factor)
        try:
            changed = self.settings[letter].but(factor, offered[value] if offered else value)
            changed.probe()  # BadInput where there can be no such networks
        except BadInput as error:
            raise BadInput(f"{letter}: {error}") from error
        self.settings[letter] = changed

    def restart(self) -> None:
        self.settings = dict(self._begun)
        super().restart()

    def steps(self) -> list[list[Any]]:
        return [setting.steps(self._moments) for setting in self.settings.values()]

    def needs(self, name: str, value: Any) -> Sequence[Step]:
        letter, factor = next(each for each in product(COLOURS, FACTORS) if named(*each) == name)
        return _needed(
            self.settings[letter],
            factor,
            self._offered[factor][value],
            self._moment,
            self.parts.value,
        )

    @property
    def _moment(self) -> int | None:
        return None if self.epoch.value == "end" else int(self.epoch.value.split()[1])

    def attacks(self) -> dict[str, Arrays]:
        told = zip(self.settings.items(), names(*self.settings.values()), strict=True)
        found = {
            f"{letter} ({name})": self._shelf.results(setting.attacked())
            for (letter, setting), name in told
        }
        return {words: own[-1] for words, own in found.items() if own and "scores" in own[-1]}

    def _fit(self, control: Any, setting: Setting, factor: str) -> None:
        """Lets a control say what is."""
        offered, value = self._offered.get(factor), setting[factor]
        if offered is not None:
            if value not in offered.values():  # a notebook may begin with what is not in the list
                offered[word(value)] = value
            if [each for _, each in control.options] != list(offered):
                control.options = marks(offered, (), str)
            value = next(told for told, each in offered.items() if each == value)
        control.value = value
        control.layout.display = None if takes(setting, factor) else "none"

    # -- what is shown --

    def _side(self, letter: str, name: str) -> Side | None:
        """What is stored of a side at this choice; None where that is not everything that a profile
        needs.
        """
        setting, measure, parts = self.settings[letter], self.measure.value, self.parts.value
        moment = self._moment
        key = letter, name, setting, moment, parts, measure
        if key not in self._sides and (
            found := self._shelf.results(setting.distances(moment, parts))
        ):
            at_end = moment is None and parts == "stages"
            floors = self._shelf.results(setting.floors()) if at_end else None
            (anatomy,) = self._shelf.results([setting.anatomy()]) or (None,)
            self._sides[key] = Side(letter, name, found, measure, floors or (), anatomy)
        return self._sides.get(key)

    def computed(self, wrong: str) -> None:
        self._sides.clear()  # floors and anatomy may have come since
        super().computed(wrong)

    def look(self) -> View:
        common = [setting.moments(self._moments) for setting in self.settings.values()]
        offer(
            self.epoch, [f"epoch {m}" if m else "end" for m in common[0] if m in common[1]], "end"
        )
        sides, missing = list[Side](), list[str]()
        for (letter, setting), name in zip(
            self.settings.items(), names(*self.settings.values()), strict=True
        ):
            for factor, control in self.controls[letter].items():
                self._fit(control, setting, factor)
            self.told[letter].value = str(
                TITLE.format(COLOURS[letter], letter, name, self._leak(setting))
            )
            if side := self._side(letter, name):
                sides.append(side)
            else:
                missing.append(f"{letter} ({name}) is not stored at this choice.")
                self.samples[letter].value = status(
                    f"{letter} ({name}): nothing is stored at this choice"
                )
        for letter, factor in product(COLOURS, self._offered):
            if self.controls[letter][factor].layout.display != "none":
                self.mark(named(letter, factor), list(self._offered[factor]))
        self.part.layout.display = None if sides else "none"
        if not sides:
            return View(None, [], missing)
        offered = side_by_side.merged(sides)
        stages = [name for name in offered if name.startswith("stage")] or offered
        same = [name for name in offered if stages_of([name]) == stages_of([str(self.part.value)])]
        part = offer(self.part, offered, (same or stages)[-1])
        for side in sides:
            self.samples[side.letter].value = self._gallery(side, part)
        sheet = self.kept((*sides, part), partial(side_by_side.sheet, sides, part))
        return View(sheet, side_by_side.told(sides, part), missing)

    def _leak(self, setting: Setting) -> str:
        """How accurate the networks are that know half of the pool, and how well an attack tells
        which half.
        """
        *signals, attack = setting.attacked()
        if isinstance(attack, Attack) and (found := self._shelf.outcome(signals, attack)):
            words = f"{found['accuracy']:.3f}, attack AUC {found['auc']:.3f}, TPR {found['tpr_at_1%']:.3f} at 1 % FPR"
            return f"M_h1 at the end: test accuracy {words}"
        return "M_h1: accuracy and leak are not there yet" if isinstance(attack, Attack) else ""

    def settle(self, wrong: str = "") -> None:
        super().settle(wrong)
        if self.view.sheet:
            axis = self.view.sheet.axes[0].get_window_extent()
            each = (
                f"{axis.width / len(self.part.options) - 4:.1f}px"
                if self.parts.value == "stages"
                else "auto"
            )
            self.part.style.button_width = each  # each stage's under its label
            self.part.layout.margin = f"0 0 0 {axis.x0:.0f}px"

    @property
    def gallery(self) -> HTML:
        """The samples that are shown now, for a page without a kernel."""
        return HTML("".join(each.value for each in self.samples.values()))

    def _gallery(self, side: Side, part: str) -> str:
        data, found = self.settings[side.letter].data, side.samples(part, self.pair.value)
        ends, wrong = dict[str, Any](), ""
        try:
            ends = side_by_side.ends(
                found, readers.load(data.name, data.pixels), registry.find(data.name).classes
            )
        except BadInput as error:
            wrong = status(f"No images: {error}")
        words = {
            "colour": COLOURS[side.letter],
            "measure": side_by_side.quantity(side.measure),
            "wrong": Markup(wrong),
        }
        far = found.tail(max(1, len(found) // 10))
        return str(drawn("samples.html", side=side, part=part, far=far, ends=ends, **words))


explorer = Explorer
