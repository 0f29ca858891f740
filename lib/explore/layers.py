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

from lib import BadInput, nearest, registry
from lib.data import readers
from lib.explore import side_by_side
from lib.explore.looks import LOOKS, picture, status
from lib.explore.offer import WRAP, Offer, Shelf, markup
from lib.explore.setting import FACTORS, Parts, Setting, bounds, choices, differing, takes, word
from lib.explore.side_by_side import MEASURES, Side
from lib.recipe import CrossEntropy, Objective

if TYPE_CHECKING:
    from lib.report.sheet import Sheet


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


def _stored(first: Setting, second: Setting | None, moment: int | None, parts: Parts, measure: str) -> list[Side]:
    if measure not in MEASURES:
        raise BadInput(f"there is no measure '{measure}' to look at{nearest(measure, list(MEASURES))}")
    settings = [first] if second is None else [first, second]
    names = _names(first, second or first)
    shelf, sides = Shelf(), []
    for letter, setting, name in zip(LOOKS, settings, names, strict=False):
        side = _side(shelf, letter, setting, name, moment, parts, measure)
        if side is None:
            raise BadInput(f"{letter} ({name}) is not stored: hand its steps to lab.realize first")
        sides.append(side)
    return sides


def static(
    first: Setting,
    second: Setting | None = None,
    moment: int | None = None,
    parts: Parts = "stages",
    measure: str = "euclidean",
    part: str = "stage4",
) -> Sheet:
    """What `explorer` shows at one choice, as a figure: profiles, B minus A, and the part's histograms.

    `moment` is an epoch, None the end; `measure` a key of MEASURES. Raises BadInput where that is not stored.
    """
    return side_by_side.sheet(_stored(first, second, moment, parts, measure), part)


def samples(
    first: Setting,
    second: Setting | None = None,
    moment: int | None = None,
    parts: Parts = "stages",
    measure: str = "euclidean",
    part: str = "stage4",
    pair: int = 0,
) -> Sheet:
    """The samples that `explorer` shows at one choice, as a figure; arguments and errors as of `static`."""
    sides = _stored(first, second, moment, parts, measure)
    sets = [_images(setting) for setting in (first, second) if setting is not None]
    return side_by_side.mosaic(sides, part, pair, sets)


def _images(setting: Setting) -> side_by_side.Images:
    """The images as the networks see them; BadInput where the data set is not here."""
    found = readers.load(setting.data.name, setting.data.pixels)
    return side_by_side.Images(found.x, found.labels, registry.find(setting.data.name).classes)


# --- the widget -----------------------------------------------------------------------------------------------------


class Explorer(widgets.VBox):
    """Controls, pictures and sentences; `settings` are what is compared, by letter. Made by `explorer`."""

    def __init__(
        self, first: Setting, second: Setting, moments: Iterable[int], objectives: Mapping[str, Objective]
    ) -> None:
        self.settings = {"A": first, "B": second}
        self._moments = tuple(moments)
        self._offered = {factor: choices(factor, objectives) for factor in FACTORS}  # values of lists, by their words
        self._shelf, self._sides, self._busy = Shelf(), dict[Any, Side](), False
        self.says, self.picture = markup("leak-atlas-says"), markup()
        self.told = {letter: markup() for letter in LOOKS}  # of a side: what it is, what is wrong with it
        self.samples = {letter: markup("leak-atlas-samples") for letter in LOOKS}
        for letter in LOOKS:
            self.samples[letter].layout.width = "460px"
        self.controls = {letter: {factor: self._control(letter, factor) for factor in FACTORS} for letter in LOOKS}
        self.epoch = self._look(widgets.SelectionSlider(options=["end"], description="epoch"))
        self.parts = self._look(widgets.ToggleButtons(options=["stages", "blocks"], style={"button_width": "70px"}))
        self.measure = self._look(
            widgets.Dropdown(options=[(v, k) for k, v in MEASURES.items()], description="measure")
        )
        numbers = [(f"pair {i + 1}", i) for i in range(min(first.pairs, second.pairs))]
        self.pair = self._look(widgets.Dropdown(options=numbers, description="samples of"))
        self.part = self._look(
            widgets.ToggleButtons(options=["stage4"], value="stage4", tooltip="show this part's samples")
        )
        self.part.add_class("leak-atlas-part")
        self.offer = Offer(self._steps, self._settle)
        for control in (self.epoch, self.measure, self.pair):
            control.style = {"description_width": "initial"}
            control.layout.width = "280px" if control is self.epoch else "auto"
        super().__init__(
            [
                widgets.HBox(
                    [self._form(letter) for letter in LOOKS],
                    layout=widgets.Layout(grid_gap="20px 32px", flex_flow="row wrap"),
                ),
                self.offer,
                widgets.HBox([self.epoch, self.parts, self.measure, self.pair], layout=WRAP),
                self.says,
                widgets.VBox([self.picture, self.part], layout=widgets.Layout(overflow="auto")),
                widgets.HBox(
                    [self.samples[letter] for letter in LOOKS],
                    layout=widgets.Layout(grid_gap="20px 32px", flex_flow="row wrap"),
                ),
            ]
        )
        self._settle()

    # -- making --

    def _control(self, letter: str, factor: str) -> Any:
        offered = self._offered[factor]
        control = (widgets.BoundedIntText if offered is None else widgets.Dropdown)(
            description=factor,
            tooltip=f"{factor} of {letter}",
            style={"description_width": "112px"},
            layout=widgets.Layout(width="224px"),
            **({} if offered is None else {"options": list(offered)}),
        )
        control.observe(partial(self._changed, letter, factor), names="value")
        return control

    def _look(self, control: Any) -> Any:
        control.observe(self._moved, names="value")
        return control

    def _form(self, letter: str) -> widgets.VBox:
        grid = widgets.Layout(grid_template_columns="228px 228px", grid_gap="0 4px")
        form = widgets.GridBox(list(self.controls[letter].values()), layout=grid)
        return widgets.VBox(
            [self.told[letter], form], layout=widgets.Layout(border_top=f"3px solid {LOOKS[letter][0]}")
        )

    # -- what happens --

    def _changed(self, letter: str, factor: str, change: Mapping[str, Any]) -> None:
        if self._busy:
            return
        offered, value = self._offered[factor], change["new"]
        try:
            self.settings[letter] = self.settings[letter].but(factor, offered[value] if offered else value)
        except BadInput as error:
            self._settle(f"{letter}: {error}")
        else:
            self._settle()

    def _moved(self, _: Any) -> None:
        if self._busy:
            return
        self._draw()
        if not self.offer.made and len(self._seen()) < len(LOOKS):
            self.offer.tell(False)  # a result turned out to be damaged

    def _settle(self, wrong: str = "") -> None:
        """Lets every control say what is, counts what is missing, and draws."""
        self._busy = True  # setting a control calls back
        try:
            for letter, setting in self.settings.items():
                for factor, control in self.controls[letter].items():
                    self._show(control, setting, factor)
            common = [s.moments(self._moments) for s in self.settings.values()]
            words = [f"epoch {m}" if m else "end" for m in common[0] if m in common[1]]
            if list(self.epoch.options) != words:
                kept = self.epoch.value if self.epoch.value in words else "end"
                self.epoch.options = words
                self.epoch.value = kept
        finally:
            self._busy = False
        names = _names(*self.settings.values())
        for letter, name in zip(LOOKS, names, strict=True):
            self.told[
                letter
            ].value = f'<b style="color:{LOOKS[letter][0]};font-size:17px">{letter}</b> {html.escape(name)}'
        self._draw()
        self.offer.tell(len(self._seen()) == len(LOOKS), wrong)

    def _show(self, control: Any, setting: Setting, factor: str) -> None:
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

    def _steps(self) -> list[list[Any]]:
        return [setting.steps(self._moments) for setting in self.settings.values()]

    # -- what is shown --

    def _seen(self) -> list[Side]:
        """The sides that are stored, in their order."""
        names = dict(zip(LOOKS, _names(*self.settings.values()), strict=True))
        moment = None if self.epoch.value == "end" else int(self.epoch.value.split()[1])
        found = []
        for letter, setting in self.settings.items():
            key = (letter, setting, names[letter], moment, cast(Parts, self.parts.value), self.measure.value)
            side = self._sides.get(key) or _side(self._shelf, *key)
            if side:
                self._sides[key] = side
                found.append(side)
        return found

    def _draw(self) -> None:
        sides = self._seen()
        missing = [letter for letter in LOOKS if letter not in [side.letter for side in sides]]
        names = dict(zip(LOOKS, _names(*self.settings.values()), strict=True))
        said = [f"{letter} ({names[letter]}) is not stored at this choice." for letter in missing]
        for letter in missing:
            told = f"{letter} ({names[letter]}): nothing is stored at this choice"
            self.samples[letter].value = status(told)
        self.part.layout.display = None if sides else "none"
        if sides:
            part = self._offer_parts(side_by_side.merged(sides))
            fig = side_by_side.sheet(sides, part, names=self.parts.value != "stages")
            self.part.style.button_width = "auto"
            if self.parts.value == "stages":  # the buttons stand where the axis has its labels
                wide = (side_by_side.RIGHT - side_by_side.LEFT) * fig.dpi
                self.part.style.button_width = f"{wide / len(self.part.options) - 4:.1f}px"
                self.part.layout.margin = f"0 0 0 {side_by_side.LEFT * fig.dpi:.0f}px"
            said += [*side_by_side.told(sides, part), side_by_side.says_difference(sides, part)]
            self.picture.value = picture(fig)
            for side in sides:
                self.samples[side.letter].value = self._gallery(side, part)
        else:
            self.picture.value = ""
        self.says.value = status(*filter(None, said))

    def _offer_parts(self, names: list[str]) -> str:
        """The part that is looked at: the same as before, or the last stage's last."""
        if list(self.part.options) != names:
            stages = [name for name in names if name.startswith("stage")] or names
            same = [name for name in names if name.partition(".")[0] == str(self.part.value).partition(".")[0]]
            value = self.part.value if self.part.value in names else (same or stages)[-1]
            self._busy = True
            try:
                self.part.options = names
                self.part.value = value
            finally:
                self._busy = False
        return str(self.part.value)

    def _gallery(self, side: Side, part: str) -> str:
        pair = self.pair.value
        count, share = side.far(part, pair)
        measure = side_by_side.quantity(side.measure)
        colour, at = LOOKS[side.letter][0], side.parts[side.place(part)]
        out = [
            f'<b style="color:{colour}">{side.letter}</b> {html.escape(side.name)}, {at}: of the {count} samples with '
            f"the largest {measure}, {100 * share:.0f} % were seen by M_all only.<br>"
            + html.escape(side.says_held(part))
        ]
        try:
            images = _images(self.settings[side.letter])
        except BadInput as error:
            return out[0] + status(f"No images: {error}")
        for title, ends in zip(("largest", "smallest"), side.samples(part, pair), strict=True):
            out.append(f"<div><b>{title} {measure}</b></div>" + side_by_side.gallery(ends, images, colour))
        return f'<div style="line-height:1.5">{"".join(out)}</div>'


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
