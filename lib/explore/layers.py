"""Two probes side by side, stage by stage and block by block: an explorer over stored feature distances.

    start = Setting(Data(), Halves(1000), Model("resnet10", width=8), Schedule(20))
    layers.explorer(start, start.but("architecture", "vgg11"), moments=[2, 5, 10])

Every control looks at what the store has. What it lacks is computed on a click, whose cost is told before.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import ipywidgets as widgets
from IPython.display import HTML

from lib import BadInput, registry
from lib.data import readers
from lib.explore import base, side_by_side
from lib.explore.base import AUTO, COLOURS, WRAP, Shelf, View, markup, offer, status
from lib.explore.setting import FACTORS, Parts, Setting, bounds, choices, differing, takes, word
from lib.explore.side_by_side import MEASURES, Side
from lib.recipe import CrossEntropy, Objective

if TYPE_CHECKING:
    pass


def _side(
    shelf: Shelf, letter: str, setting: Setting, name: str, moment: int | None, parts: Parts, measure: str
) -> Side | None:
    """What is stored of a setting at one epoch; None where that is not everything that a profile needs."""
    found = shelf.results(setting.distances(moment, parts))
    if found is None:
        return None
    floors = shelf.results(setting.floors()) if moment is None and parts == "stages" else None
    anatomy = shelf.results([setting.anatomy()])
    return Side(letter, name, found, measure, floors or (), anatomy[0] if anatomy else None)


def _names(first: Setting, second: Setting) -> tuple[str, str]:
    """What tells two settings apart, in a few words each."""
    factors = differing(first, second) or ["architecture"]

    def told(setting: Setting) -> str:
        alone = ("architecture", "training", "data set", "augmentation")
        return ", ".join(word(setting[f]) if f in alone else f"{f} {word(setting[f])}" for f in factors[:3])

    return told(first), told(second)


def _images(setting: Setting) -> side_by_side.Images:
    """The images as the networks see them; BadInput where the data set is not here."""
    found = readers.load(setting.data.name, setting.data.pixels)
    return side_by_side.Images(found.x, found.labels, registry.find(setting.data.name).classes)


def heading(letter: str, text: str, style: str = "") -> str:
    return f'<b style="color:{COLOURS[letter]};{style}">{letter}</b>{html.escape(text)}'


# --- the widget -----------------------------------------------------------------------------------------------------


class Explorer(base.Explorer):
    """Controls, pictures and sentences; `settings` are what is compared, by letter. Made by `explorer`."""

    def __init__(
        self, first: Setting, second: Setting, moments: Iterable[int], objectives: Mapping[str, Objective]
    ) -> None:
        super().__init__()
        self.settings = {"A": first, "B": second}
        self._begun, self._moments = dict(self.settings), tuple(moments)
        self._offered = {factor: choices(factor, objectives) for factor in FACTORS}  # values of lists, by their words
        self._shelf, self._sides = Shelf(), dict[Any, Side]()
        self.told = {letter: markup() for letter in COLOURS}  # of a side: what it is
        self.samples = {letter: markup("leak-atlas-samples") for letter in COLOURS}
        self.controls = {letter: {f: self._control(letter, f) for f in FACTORS} for letter in COLOURS}
        measures = [(words, name) for name, words in MEASURES.items()]
        pairs = [(f"pair {i + 1}", i) for i in range(min(first.pairs, second.pairs))]
        buttons, look = widgets.ToggleButtons, {"style": {"description_width": "initial"}, "layout": AUTO}
        self.epoch = self.watched(widgets.SelectionSlider(options=["end"], description="epoch", **look))
        self.parts = self.watched(buttons(options=["stages", "blocks"], style={"button_width": "70px"}))
        self.measure = self.watched(widgets.Dropdown(options=measures, description="measure", **look))
        self.pair = self.watched(widgets.Dropdown(options=pairs, description="samples of", **look))
        self.part = self.watched(buttons(options=["stage4"], value="stage4", tooltip="show this part's samples"))
        self.part.add_class("leak-atlas-part")
        apart = widgets.Layout(grid_gap="20px 32px", flex_flow="row wrap")
        self.children = [
            widgets.HBox([self._form(letter) for letter in COLOURS], layout=apart),
            self.offer,
            widgets.HBox([self.epoch, self.parts, self.measure, self.pair, self.reset], layout=WRAP),
            self.says,
            widgets.VBox([self.picture, self.part], layout=widgets.Layout(overflow="auto")),
            widgets.HBox(list(self.samples.values()), layout=apart),
        ]
        self.settle()

    # -- making --

    def _control(self, letter: str, factor: str) -> Any:
        offered = self._offered[factor]
        look = {"style": {"description_width": "112px"}, "layout": widgets.Layout(width="224px")}
        look |= {"description": factor, "tooltip": f"{factor} of {letter}"}
        made = widgets.BoundedIntText(**look) if offered is None else widgets.Dropdown(options=list(offered), **look)
        return self.watched(made, partial(self._take, letter, factor))

    def _form(self, letter: str) -> widgets.VBox:
        grid = widgets.Layout(grid_template_columns="228px 228px", grid_gap="0 4px")
        form = widgets.GridBox(list(self.controls[letter].values()), layout=grid)
        return widgets.VBox([self.told[letter], form], layout={"border_top": f"3px solid {COLOURS[letter]}"})

    # -- what happens --

    def _take(self, letter: str, factor: str, value: Any) -> None:
        offered = self._offered[factor]
        try:
            self.settings[letter] = self.settings[letter].but(factor, offered[value] if offered else value)
        except BadInput as error:
            raise BadInput(f"{letter}: {error}") from error

    def restart(self) -> None:
        self.settings = dict(self._begun)
        super().restart()

    def steps(self) -> list[list[Any]]:
        return [setting.steps(self._moments) for setting in self.settings.values()]

    def fit(self) -> None:
        """Lets every control say what is."""
        for letter, setting in self.settings.items():
            for factor, control in self.controls[letter].items():
                self._fit(control, setting, factor)
        common = [s.moments(self._moments) for s in self.settings.values()]
        offer(self.epoch, [f"epoch {m}" if m else "end" for m in common[0] if m in common[1]], "end")

    def _fit(self, control: Any, setting: Setting, factor: str) -> None:
        offered, value = self._offered[factor], setting[factor]
        if offered is None:
            low, high = bounds(setting, factor)
            value = high if value is None else value
            control.max, control.min = max(high, value), min(low, value)
        else:
            if value not in offered.values():  # a notebook may begin with what is not in the list
                offered[word(value)] = value
            control.options = list(offered)
            value = next(told for told, each in offered.items() if each == value)
        control.value = value
        control.layout.display = None if takes(setting, factor) else "none"

    # -- what is shown --

    def look(self) -> View:
        names = dict(zip(COLOURS, _names(*self.settings.values()), strict=True))
        moment = None if self.epoch.value == "end" else int(self.epoch.value.split()[1])
        sides, missing = list[Side](), list[str]()
        for letter, name in names.items():
            key = (letter, self.settings[letter], name, moment, cast(Parts, self.parts.value), self.measure.value)
            self.told[letter].value = heading(letter, f" {name}", "font-size:17px")
            if side := self._sides.get(key) or _side(self._shelf, *key):
                self._sides[key] = side
                sides.append(side)
            else:
                missing.append(f"{letter} ({name}) is not stored at this choice.")
                self.samples[letter].value = status(f"{letter} ({name}): nothing is stored at this choice")
        self.part.layout.display = None if sides else "none"
        if not sides:
            return View(None, [], missing, False)
        names_here = side_by_side.merged(sides)
        stages = [name for name in names_here if name.startswith("stage")] or names_here
        same = [name for name in names_here if name.partition(".")[0] == str(self.part.value).partition(".")[0]]
        part = offer(self.part, names_here, (same or stages)[-1])
        fig = side_by_side.sheet(sides, part)
        self.part.style.button_width = "auto"
        if self.parts.value == "stages":  # each button under its label
            axis = fig.axes[0].get_window_extent()
            self.part.style.button_width = f"{axis.width / len(self.part.options) - 4:.1f}px"
            self.part.layout.margin = f"0 0 0 {axis.x0:.0f}px"
        for side in sides:
            self.samples[side.letter].value = self._gallery(side, part)
        said = [*side_by_side.told(sides, part), side_by_side.says_difference(sides, part)]
        return View(fig, said, missing, not missing)

    @property
    def gallery(self) -> HTML:
        """The samples that are shown now, for a page without a kernel."""
        return HTML("".join(each.value for each in self.samples.values()))

    def _gallery(self, side: Side, part: str) -> str:
        (count, share), measure = side.far(part, self.pair.value), side_by_side.quantity(side.measure)
        colour, at = COLOURS[side.letter], side.parts[side.place(part)]
        told = (
            f" {side.name}, {at}: of the {count} samples with the largest {measure}, {100 * share:.0f} % were seen by "
        )
        out = [heading(side.letter, told + "M_all only."), "<br>", html.escape(side.says_held(part))]
        try:
            images = _images(self.settings[side.letter])
        except BadInput as error:
            return "".join(out) + status(f"No images: {error}")
        for title, ends in zip(("largest", "smallest"), side.samples(part, self.pair.value), strict=True):
            out.append(f"<div><b>{title} {measure}</b></div>" + side_by_side.gallery(ends, images, colour))
        return f'<div style="line-height:1.5;width:460px">{"".join(out)}</div>'


def explorer(
    first: Setting,
    second: Setting,
    moments: Iterable[int] = (),
    objectives: Mapping[str, Objective] | None = None,
) -> Explorer:
    """Two columns of factors, their profiles on one axis, and the samples of the part that is clicked.

    `moments` are the epochs before the last that can be looked at; `objectives` what a probe may train with, by the
    words that offer it (cross-entropy alone, by default). Nothing is computed before the button is clicked.
    """
    return Explorer(first, second, moments, objectives or {"cross-entropy": CrossEntropy()})
