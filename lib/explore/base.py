"""What every explorer is: controls over what is stored, and an offer to compute the rest on a click.

A kind of explorer makes its controls with `watched`, says in `steps` what they ask for, and gives in `look` what is
stored of it. `figure` is what it shows now, for a page without a kernel.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import ipywidgets as widgets
import numpy as np
from numpy.typing import NDArray
from traitlets import TraitError

from lib import BadInput, audit, lab, nearest, store
from lib.audit import Estimate
from lib.localization.disparity import Arrays
from lib.recipe import Attack, Attacker, Data, Population, Signals, Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lib.report.sheet import Sheet

Outcome: TypeAlias = Mapping[str, Estimate]  # "accuracy" on test samples and "auc" of the attack, over the models
Measured: TypeAlias = tuple[tuple[Signals, ...], Attack]

COLOURS = {"A": "#0b6fa4", "B": "#d1550b"}  # of two sides that are compared
LONG = 10.0  # minutes of computing above which a click on the button is not enough
WRAP = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 16px"}  # a row of controls
AUTO = {"width": "auto"}
CELLS = "<style>.leak-atlas-table :is(th, td) { padding: 2px 10px }</style>"  # a notebook's own reach no widget


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def marks(
    values: Iterable[float], done: Container[float], word: Callable[[float], str] = percent
) -> list[tuple[str, float]]:
    """Options of a slider, each saying whether it is trained."""
    return [(word(value) + " (trained)" * (value in done), value) for value in values]


def measured(models: Population, attackers: Mapping[str, Attacker], attack: str, victims: int) -> Measured:
    """The signals of the first models, and how these are attacked by the others. BadInput on an unknown attack."""
    if attack not in attackers:
        raise BadInput(f"there is no attack '{attack}' to look at{nearest(attack, list(attackers))}")
    return models.signals()[:victims], models.attack(attackers[attack], targets=victims)


def stages_of(parts: Iterable[str]) -> list[str]:
    """The stage of each part: `stage4` of `stage4.1`."""
    return [name.partition(".")[0] for name in parts]


def along(ax: Axes, tensors: Iterable[str]) -> None:
    """An axis of tensors in the order of the network, each stage named once and parted from the next."""
    from lib.report.sheet import FLOOR

    stages = np.array(stages_of(tensors))
    spans = {name: np.flatnonzero(stages == name) for name in dict.fromkeys(stages)}
    ax.set_xlim(-0.7, len(stages) - 0.3)
    ax.set_xticks([places.mean() for places in spans.values()], list(spans))
    ax.grid(axis="x", visible=False)
    ax.tick_params(axis="x", length=0)
    for places in list(spans.values())[1:]:
        ax.axvline(places[0] - 0.5, color=FLOOR, linewidth=1, zorder=0)


def status(*lines: str) -> str:
    """Sentences that a screen reader speaks when they change."""
    text = "<br>".join(html.escape(line) for line in lines)
    return f'<div role="status" aria-live="polite" style="line-height:1.5">{text}</div>'


def picture(fig: Sheet) -> str:
    """The sheet as an element with its own text for those who cannot see it.

    The second time, only what moves is drawn: in a tenth of the time, so that a slider can be followed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    from lib.report.markup import png

    canvas = FigureCanvasAgg(fig)
    if fig.still is None:
        canvas.draw()
        fig.still = canvas.copy_from_bbox(fig.bbox)
    canvas.restore_region(fig.still)
    for artist in fig.moving:
        artist.draw(canvas.get_renderer())
    data, text = png(Image.fromarray(np.asarray(canvas.buffer_rgba())), compress_level=1), html.escape(fig.finding)
    return f'<img alt="{text}" src="data:image/png;base64,{data}" style="width:{fig.bbox.width:.0f}px;max-width:none">'


def pictured(data: Data) -> None:
    """BadInput on data that are neither images nor bits."""
    if data.kind not in ("images", "bits"):
        raise BadInput(f"{data.name} is {data.kind}, of which there is no picture: take images or bits")


def pictures(x: NDArray[Any]) -> NDArray[np.uint8]:
    """Samples as pictures `(n, H, W, 3)`; bits lie row by row in a square, dark where they are set."""
    if x.ndim == 2:
        side = int(np.ceil(np.sqrt(x.shape[1])))
        x = (255 * (1 - np.pad(x, ((0, 0), (0, side**2 - x.shape[1]))))).reshape(-1, side, side, 1).astype(np.uint8)
    return np.broadcast_to(x, (*x.shape[:3], 3))


def offer(control: Any, options: Sequence[Any], otherwise: Any) -> Any:
    """Gives a control its options; it keeps its value, which is returned, where that is one of them."""
    values = [each[1] if isinstance(each, tuple) else each for each in options]
    if list(control.options) != list(options):
        value = control.value if control.value in values else otherwise
        control.options = options
        control.value = value
    return control.value


class Shelf:
    """Stored results, each read once. Nothing is computed: what is missing or damaged is not there."""

    def __init__(self) -> None:
        self._read: dict[str, Arrays] = {}

    def results(self, steps: Sequence[Step]) -> list[Arrays] | None:
        """The arrays of each step; None where one is not there."""
        for step in steps:
            if step.key not in self._read and store.has(step.key):
                try:
                    self._read[step.key] = store.read(step.key).arrays
                except store.Corrupt:
                    store.discard(step.key)  # so that it is computed again when it is asked for
        return [self._read[step.key] for step in steps] if all(step.key in self._read for step in steps) else None

    def outcome(self, signals: Sequence[Step], attack: Attack) -> Outcome | None:
        """What came of the models with these `signals`; None where that is not there."""
        if not (found := self.results([*signals, attack])):
            return None
        accuracy = audit.over([float(each["accuracy_test"]) for each in found[:-1]], bounds=(0, 1))
        return {"accuracy": accuracy, "auc": audit.audit(found[-1], (), attack.design_effect)["auc"]}


class Offer(widgets.VBox):
    """Says what is missing and what it would cost, and computes it on a click: two, where it takes long.

    `steps` are all that is looked at now, one list for each asker; `done` is called after a click, with what went
    wrong or with nothing.
    """

    def __init__(self, steps: Callable[[], list[list[Any]]], done: Callable[[str], None]) -> None:
        self._steps, self._done = steps, done
        self.cost, self.progress = widgets.HTML().add_class("leak-atlas-cost"), widgets.Output()
        self.sure = widgets.Checkbox(description="yes, I want to wait for that", indent=False, layout=AUTO)
        look = {"button_style": "primary", "icon": "play", "layout": AUTO}
        self.train = widgets.Button(description="train what is missing", **look)
        self.sure.observe(lambda change: setattr(self.train, "disabled", not change["new"]), names="value")
        self.train.on_click(self._compute)
        super().__init__([widgets.HBox([self.cost, self.sure, self.train], layout=WRAP), self.progress])

    def tell(self, complete: bool, wrong: str = "") -> None:
        """Counts what is missing; `complete` says that all that is looked at is there, `wrong` why it cannot be."""
        from lib.lab.cluster import Where
        from lib.lab.plans import plan
        from lib.lab.run import width

        minutes, told = 0.0, wrong
        if not wrong:
            if not complete and self.train.layout.display:
                self.cost.value = status("counting what it costs ...")  # the first time, torch is loaded for that
            try:
                todo = plan(self._steps())
                if todo.jobs:
                    workers = width(todo, Where())
                    minutes, told = todo.seconds / 60 / workers, todo.preview(workers)
            except BadInput as error:
                wrong = told = str(error)
        self.cost.value = status(told)
        self.train.layout.display = None if told and not wrong else "none"
        self.sure.layout.display = None if minutes > LONG else "none"
        self.sure.value, self.train.disabled = False, minutes > LONG

    def _compute(self, _: Any) -> None:
        wrong = ""
        self.train.disabled = True
        with self.progress:
            try:
                lab.realize(*self._steps())
            except (BadInput, lab.Failed) as error:
                wrong = str(error)
        self.progress.clear_output()
        self._done(wrong)


class View(NamedTuple):
    """What is stored at one choice: its figure, in sentences what it says, and what there has to be but is not."""

    sheet: Sheet | None
    said: Sequence[str]
    missing: Sequence[str]
    complete: bool  # nothing would be trained


class Explorer(widgets.VBox):
    """Controls, an offer, sentences and a picture; `steps` and `look` are a kind's own."""

    view: View

    def __init__(self) -> None:
        self._quiet, self._starts = False, list[tuple[Any, Any]]()
        self.says, self.picture = widgets.HTML().add_class("leak-atlas-says"), widgets.HTML()
        self.offer = Offer(self.steps, self.computed)
        self.reset = widgets.Button(description="reset", icon="undo", tooltip="as it was in the beginning", layout=AUTO)
        self.reset.on_click(lambda _: self.restart())
        super().__init__()

    def choose(self, **values: Any) -> Explorer:
        """Sets controls by their names, as a click would."""
        for name, value in values.items():
            getattr(self, name).value = value
        return self

    def steps(self) -> list[list[Any]]:
        """All that is looked at, one list for each asker."""
        raise NotImplementedError

    def look(self) -> View:
        """Lets the controls offer what can be chosen now; what is stored at this choice."""
        raise NotImplementedError

    @property
    def figure(self) -> Sheet:
        """What is shown now, as a figure that needs no kernel. Raises BadInput where it is not stored."""
        if self.view.missing or not self.view.sheet:
            raise BadInput(f"{' '.join(self.view.missing)} Hand the explorer's steps to lab.realize first")
        return self.view.sheet

    def watched(self, control: Any, took: Callable[[Any], None] = lambda value: None) -> Any:
        """The control; each change is handed to `took`, which raises BadInput where it cannot be, and then shown."""
        self._starts.append((control, control.value))
        control.observe(partial(self._changed, took), names="value")
        return control

    def _changed(self, took: Callable[[Any], None], change: dict[str, Any]) -> None:
        if not self._quiet:
            try:
                took(change["new"])
            except BadInput as error:
                return self.settle(str(error))
            self.settle()

    def computed(self, wrong: str) -> None:
        """Something was computed, or went wrong."""
        self.settle(wrong)

    def settle(self, wrong: str = "") -> None:
        """Shows what is stored, and what the rest would cost."""
        self._quiet = True  # what is set here does not call back
        try:
            view = self.view = self.look()
        finally:
            self._quiet = False
        self.picture.value = picture(view.sheet) if view.sheet else ""
        self.says.value = status(*view.missing, *view.said)
        self.offer.tell(view.complete, wrong)

    def restart(self) -> None:
        """All controls as they were in the beginning."""
        self._quiet = True
        for control, value in self._starts:
            with suppress(TraitError):  # not offered now: `look` chooses
                control.value = value
        self.settle()
