"""What every explorer is: controls over what is stored, and an offer to compute the rest on a click.

A kind of explorer makes its controls with `watched`, says in `steps` what they ask for, and gives in `look` what is
stored of it. `figure` is what it shows now, for a page without a kernel.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import html
import re
import time
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Container, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import ipywidgets as widgets
import numpy as np
from numpy.typing import NDArray
from traitlets import MetaHasTraits, TraitError

from lib import BadInput, audit, code, duration, lab, nearest, store
from lib.audit import Estimate
from lib.audit.rates import false_positives
from lib.explore import aside
from lib.lab.plans import kinds, steps_of
from lib.localization.disparity import Arrays
from lib.recipe import Attack, Attacker, Data, Population, Signals, Step
from lib.report.markup import drawn

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from lib.report.sheet import Sheet

P = ParamSpec("P")
T = TypeVar("T")
Outcome: TypeAlias = Mapping[str, Estimate]  # over the models: "accuracy" on test samples, and all of `audit.audit`
Measured: TypeAlias = tuple[tuple[Signals, ...], Attack]

COLOURS = {"A": "#0b6fa4", "B": "#c44f08"}  # of two sides that are compared, dark enough for text
STORED, OPEN = "● ", "○ "  # before an option that is stored, and before one that a click would train
LOW = (0.01, 0.001)  # false positive rates at which true positives are counted
KEPT = 8  # choices whose drawings are kept
SURE = 0.01  # false positive rate at which members count as found
WRAP = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 16px"}  # a row of controls
AUTO = {"width": "auto"}
TABLES = ":is(.leak-atlas-table, .leak-atlas-tensors)"
CELLS = f"<style>{TABLES} :is(th, td) {{ padding: 2px 10px }}</style>"  # a notebook's own reach no widget


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def marks(values: Iterable[Any], done: Container[Any], word: Callable[[Any], str] = percent) -> list[tuple[str, Any]]:
    """Options of a control, each saying whether it is stored."""
    return [((STORED if value in done else OPEN) + word(value), value) for value in values]


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


class Frames:
    """Where panels stand: the layout, half of what a drawing takes, is found once for sheets that are alike."""

    def __init__(self) -> None:
        self._known: dict[Any, list[tuple[list[Any], list[str]]]] = {}

    def draw(self, fig: Sheet, canvas: FigureCanvasAgg) -> None:
        """Draws a sheet; its panels stand where those of an earlier one do, if labels as wide have their room there."""
        words = [(ax.get_title("left"), ax.get_xlabel(), ax.get_ylabel()) for ax in fig.axes]
        lines = [each and each.count("\n") + 1 for own in words for each in own]
        known, layout = self._known.setdefault((*fig.get_size_inches(), *lines), []), fig.get_layout_engine()
        if fits := any(self._put(fig, places) == wide for places, wide in known[:-4:-1]):
            fig._layout_engine = None
        canvas.draw()
        fig._layout_engine = layout
        if not fits:
            known.append(([self._place(ax) for ax in fig.axes], self._widths(fig)))

    @staticmethod
    def _place(ax: Axes) -> tuple[Any, ...]:
        return ax.get_position(original=True), ax.get_anchor(), ax.get_box_aspect(), ax.get_aspect()

    def _put(self, fig: Sheet, places: Sequence[tuple[Any, ...]]) -> list[str]:
        for ax, (box, anchor, sides, aspect) in zip(fig.axes, places, strict=True):
            ax.set_position(box)
            ax.set_in_layout(True)  # which setting a position ends
            ax.set_anchor(anchor)
            ax.set_box_aspect(sides)
            ax.set_aspect(aspect)
        return self._widths(fig)

    @staticmethod
    def _widths(fig: Sheet) -> list[str]:
        """Of each axis the longest label, all digits of which are as wide; of one that lies, whether it has a label."""
        made = []
        for ax in fig.axes:
            for labels, level in ((ax.get_xticklabels(), True), (ax.get_yticklabels(), False)):
                longest = max((each.get_text() for each in labels), key=len, default="")
                flat = level and longest and not labels[0].get_rotation()
                made.append("x" if flat else re.sub(r"\d", "0", longest))
        return made


def picture(fig: Sheet, frames: Frames) -> str:
    """The sheet as an element with its own text for those who cannot see it.

    The second time, only what moves is drawn: in a tenth of the time, so that a slider can be followed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    from lib.report.markup import png

    canvas = FigureCanvasAgg(fig)
    if fig.still is None:
        frames.draw(fig, canvas)
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
    """Stored results, each read and counted once. Nothing is computed: what is missing or damaged is not there."""

    def __init__(self) -> None:
        self._read, self._outcomes = dict[str, Arrays](), dict[tuple[str, ...], Outcome]()

    def results(self, steps: Sequence[Step]) -> list[Arrays] | None:
        """The arrays of each step; None where one is not there."""
        for step in steps:
            if step.key not in self._read:
                if not store.has(step.key):
                    return None
                try:
                    self._read[step.key] = store.read(step.key).arrays
                except store.Corrupt:
                    store.discard(step.key)  # so that it is computed again when it is asked for
                    return None
        return [self._read[step.key] for step in steps]

    def outcome(self, signals: Sequence[Step], attack: Attack) -> Outcome | None:
        """What came of the models with these `signals`; None where that is not there."""
        key = tuple(step.key for step in (*signals, attack))
        if key not in self._outcomes and (found := self.results([*signals, attack])):
            accuracy = audit.over([float(each["accuracy_test"]) for each in found[:-1]], bounds=(0, 1))
            self._outcomes[key] = audit.audit(found[-1], LOW, attack.design_effect) | {"accuracy": accuracy}
        return self._outcomes.get(key)


def members_found(attacks: Mapping[str, Arrays], fpr: float = SURE) -> pd.DataFrame:
    """The members that each attack finds while at most a share `fpr` of a target's non-members passes for one.

    A row a member and target, the surest first: `attack`, `target` (its place), `index` in the data set, `score`.
    """
    import pandas as pd

    made = []
    for name, found in attacks.items():
        scores = np.atleast_2d(found["scores"])
        index, member = (np.broadcast_to(found[each], scores.shape) for each in ("index", "member"))
        for target, (own, inside, at) in enumerate(zip(scores, member, index, strict=True)):
            outside = np.sort(own[~inside])[::-1]
            allowed = int(false_positives(fpr, np.array(len(outside)))) if len(outside) else 0
            hit = np.flatnonzero(inside & (own > (outside[allowed] if allowed < len(outside) else -np.inf)))
            hit = hit[np.argsort(-own[hit], kind="stable")]
            made.append(pd.DataFrame({"attack": name, "target": target, "index": at[hit], "score": own[hit]}))
    return pd.concat(made, ignore_index=True) if made else pd.DataFrame(columns=["attack", "target", "index", "score"])


def undisturbed(answer: Callable[P, T]) -> Callable[P, T]:
    """Python's garbage, of which figures leave much, is collected after an answer: that may take half a second."""

    @wraps(answer)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return answer(*args, **kwargs)
        finally:
            if collecting:
                gc.enable()

    return alone


def begin(work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Does some work while a kernel answers; None where there is none, and the work was not begun."""
    try:
        return asyncio.get_running_loop().create_task(work)
    except RuntimeError:
        work.close()
        return None


class Offer(widgets.VBox):
    """Says what is missing and what it would cost, and computes it on a click, aside, until it is cancelled.

    `steps` are all that is looked at now, one list for each asker; `done` is called after a click, with what went
    wrong or with nothing. Where there is no kernel, all is done at once.
    """

    def __init__(self, steps: Callable[[], list[list[Any]]], done: Callable[[str], None]) -> None:
        self._steps, self._done = steps, done
        self._counting: asyncio.Task[None] | None = None
        self._training: asyncio.Task[None] | None = None
        self._aside: aside.Training | None = None
        self.cost = widgets.HTML().add_class("leak-atlas-cost")
        self.train = widgets.Button(button_style="primary", icon="play", layout=AUTO).add_class("leak-atlas-train")
        self.train.on_click(self._compute)
        self.bar = widgets.FloatProgress(max=1.0, layout={"width": "180px"})
        self.progress = widgets.HTML().add_class("leak-atlas-progress")
        self.cancel = widgets.Button(description="cancel", icon="stop", layout=AUTO).add_class("leak-atlas-cancel")
        self.cancel.on_click(lambda _: self._aside and self._aside.cancel())
        self._running = widgets.HBox([self.bar, self.progress, self.cancel], layout=WRAP)
        self._running.layout.display = self.train.layout.display = "none"
        super().__init__([widgets.HBox([self.train, self.cost], layout=WRAP), self._running])

    def tell(self, wrong: str = "") -> None:
        """Counts what is missing now; `wrong` says why that cannot be."""
        if self._counting:
            self._counting.cancel()  # what the last choice would have cost
        self._say(aside.Cost("", wrong))
        asked = self._steps()
        if wrong or all(step.stored and store.has(step.key) for step in steps_of(asked)):
            return
        self.cost.value = status("counting what it costs ...")
        self._counting = begin(self._count(asked))
        if not self._counting:
            try:
                self._say(aside.cost(asked))
            except BadInput as error:
                self._say(aside.Cost("", str(error)))

    async def _count(self, asked: list[list[Any]]) -> None:
        try:
            self._say(await aside.count(asked))
        except BadInput as error:
            self._say(aside.Cost("", str(error)))

    def _say(self, cost: aside.Cost) -> None:
        self.train.description, self.cost.value = cost.offer, status(cost.unless)
        self.train.layout.display = None if cost.offer else "none"
        self.train.disabled = bool(self._training)

    def _compute(self, _: Any) -> None:
        if self._training or self.train.disabled:
            return
        self.train.disabled = True
        wrong, asked = "", self._steps()
        try:
            used = list(kinds(steps_of(asked)))
            code.check_files(used)  # or the other process would read another source
            self._training = None if code.in_cell(used) else begin(self._follow(asked, self.train.description))
            if self._training:
                return
            lab.realize(*asked)
        except (BadInput, lab.Failed) as error:
            wrong = str(error)
        self._done(wrong)

    async def _follow(self, asked: list[list[Any]], what: str) -> None:
        """Shows how a training gets on; other controls can be moved meanwhile."""
        wrong, start = "", (began := time.monotonic())
        self.bar.value, self._running.layout.display, self.cancel.disabled = 0.0, None, True
        self.progress.value = status(f"{what}: starting ...")
        try:
            self._aside = await asyncio.to_thread(aside.Training, asked)
            self.cancel.disabled = False
            async for share, done, steps in self._aside:
                now = time.monotonic()
                began = now if done == 0 else began  # torch is loaded before that
                spent, pace = now - start, (now - began) / max(share, 1e-9)
                left = f", about {duration(pace * (1 - share))} left" if 0.02 < share < 1 else ""
                self.bar.value = share
                self.progress.value = status(f"{what}: {done} of {steps} steps, {duration(spent)} so far{left}")
        except lab.Failed as error:
            wrong = str(error)
        ended = "cancelled; what is finished is kept" if self._aside and self._aside.cancelled else ""
        self.bar.layout.display = self.cancel.layout.display = "none" if ended else None
        self.progress.value, self._running.layout.display = status(ended), None if ended else "none"
        self._training = self._aside = None
        self._done(wrong)


class View(NamedTuple):
    """What is stored at one choice: its figure, in sentences what it says, and what there has to be but is not."""

    sheet: Sheet | None
    said: Sequence[str]
    missing: Sequence[str]


class Export(widgets.VBox):
    """What is shown, to take away: its numbers, the members found, and a cell that shows it again."""

    def __init__(self, app: Explorer) -> None:
        self._app = app
        self.of: dict[str, Any] | None = None  # the state whose links are shown
        self.button = widgets.Button(description="export", icon="download", layout=AUTO).add_class("leak-atlas-export")
        self.button.on_click(lambda _: self._fill())
        self.links = widgets.HTML().add_class("leak-atlas-links")
        super().__init__([self.button, self.links], layout={"align_items": "flex-start"})

    def _fill(self) -> None:
        self.of = self._app.state
        tables = {"numbers": self._app.numbers, "members_found": self._app.found}
        self.links.value = str(drawn("export.html", tables=tables, code=self._app.code, data=_data, fpr=percent(SURE)))


def _data(table: pd.DataFrame) -> str:
    """A table as the address of its own CSV."""
    raw = table.to_csv(index=False, float_format="%.6g").encode()
    return f"data:text/csv;base64,{base64.b64encode(raw).decode()}"


class _Kind(MetaHasTraits, ABCMeta):
    """Of widgets that cannot be made while an abstract method is missing."""


class Explorer(widgets.VBox, metaclass=_Kind):
    """Controls, an offer, sentences and a picture; `steps` and `look` are a kind's own."""

    view: View

    def __init__(self) -> None:
        self._quiet, self._named, self._starts = False, dict[str, Any](), dict[str, Any]()
        self._there, self._settled = dict[Any, bool](), False  # whether a choice is stored
        self._made, self._frames = dict[Any, Any](), Frames()
        self.says, self.picture = widgets.HTML().add_class("leak-atlas-says"), widgets.HTML()
        self.offer = Offer(self.steps, self.computed)
        self.offer.layout.min_height = "36px"  # so that nothing jumps when the button comes
        self.export = Export(self)
        self.reset = widgets.Button(description="reset", icon="undo", tooltip="as it was in the beginning", layout=AUTO)
        self.reset.on_click(lambda _: self.restart())
        super().__init__()

    def lay(self, rows: Sequence[Sequence[Any]], shown: Sequence[Any] = (), below: Sequence[Any] = ()) -> None:
        """Rows of controls, the offer, the sentences, the picture with `shown` in its frame, what stands `below`."""
        key = widgets.HTML(f"{STORED}stored &ensp;{OPEN}not yet")
        *first, last = [[*row] for row in rows]
        self.children = [
            *(widgets.HBox(row, layout=WRAP) for row in [*first, [*last, self.reset, key]]), self.offer, self.says,
            widgets.VBox([self.picture, *shown], layout={"overflow": "auto"}), *below, self.export,
        ]  # fmt: skip

    def choose(self, **values: Any) -> Explorer:
        """Sets controls by their names, as a click would. Raises BadInput on what is not offered."""
        for name, value in values.items():
            if name not in self._named:
                raise BadInput(f"there is no control '{name}'{nearest(name, list(self._named))}")
            try:
                self._named[name].value = value
            except TraitError as error:
                raise BadInput(f"{name} cannot be {value!r} here") from error
        return self

    @property
    def state(self) -> dict[str, Any]:
        """The value of each control."""
        return {name: control.value for name, control in self._named.items()}

    @property
    def code(self) -> str:
        """A cell that brings an explorer, called `app`, from its beginning to what is shown now."""
        moved = [f"{name}={value!r}" for name, value in self.state.items() if value != self._starts[name]]
        return f"app.choose({', '.join(moved)})"

    @abstractmethod
    def steps(self) -> list[list[Any]]:
        """All that is looked at, one list for each asker."""

    @abstractmethod
    def look(self) -> View:
        """Lets the controls offer what can be chosen now; what is stored at this choice."""

    @abstractmethod
    def needs(self, name: str, value: Any) -> Sequence[Step]:
        """Whatever has to be stored, so that a figure could be shown if control `name` had another value."""

    def attacks(self) -> dict[str, Arrays]:
        """What is shown of attacks, by the words for them."""
        return {}

    def kept(self, choice: Any, make: Callable[[], T], lasting: Callable[[T], bool] = lambda made: True) -> T:
        """What `make` makes of a choice: once, if it is `lasting`, while it is among the last KEPT."""
        made: T = self._made.pop(choice) if choice in self._made else make()
        if lasting(made):
            self._made[choice] = made  # the latest stands last
        while len(self._made) > KEPT:
            del self._made[next(iter(self._made))]
        return made

    @property
    def figure(self) -> Sheet:
        """What is shown now, as a figure that needs no kernel. Raises BadInput where it is not stored."""
        if self.view.missing or not self.view.sheet:
            raise BadInput(f"{' '.join(self.view.missing)} Hand the explorer's steps to lab.realize first")
        return self.view.sheet

    @property
    def numbers(self) -> pd.DataFrame:
        """What the picture draws, a row a point; no row where nothing is shown."""
        import pandas as pd

        made = self.view.sheet.numbers if self.view.sheet else None
        return pd.DataFrame() if made is None else made.drop_duplicates(ignore_index=True)  # what is ringed comes twice

    @property
    def found(self) -> pd.DataFrame:
        """Of the attacks that are shown, the `members_found`."""
        return members_found(self.attacks())

    def watched(self, name: str, control: Any, took: Callable[[Any], None] = lambda value: None) -> Any:
        """The control; each change is handed to `took`, which raises BadInput where it cannot be, and then shown."""
        self._named[name], self._starts[name] = control, control.value
        control.observe(partial(self._changed, took), names="value")
        return control

    def listed(self, name: str, options: Sequence[Any], value: Any, word: str = "", **look: Any) -> Any:
        """A list of options as a watched control that is wide enough for them."""
        look = {"layout": {"width": "max-content"}, "style": {"description_width": "initial"}} | look
        return self.watched(name, widgets.Dropdown(options=options, value=value, description=word or name, **look))

    def mark(self, name: str, options: Sequence[Any], word: Callable[[Any], str] = str) -> None:
        """Says of each option of a control whether it is stored."""
        chosen, control = self.state, self._named[name]
        stored = set()
        for value in options:
            key = name, frozenset((chosen | {name: value}).items())  # a side's control tells of that side
            if key not in self._there:
                try:
                    self._there[key] = all(store.has(step.key) for step in self.needs(name, value))
                except BadInput:  # it cannot be beside the other choices
                    self._there[key] = False
            if self._there[key]:
                stored.add(value)
        offer(control, marks(options, stored, word), control.value)

    def _changed(self, took: Callable[[Any], None], change: dict[str, Any]) -> None:
        if not self._quiet:
            try:
                took(change["new"])
            except BadInput as error:
                return self.settle(str(error))
            self.settle()

    def computed(self, wrong: str) -> None:
        """Something was computed, or went wrong."""
        self._there.clear()
        self._made.clear()
        self.export.of = None
        self.settle(wrong)

    @undisturbed
    def settle(self, wrong: str = "") -> None:
        """Shows what is stored, and what the rest would cost."""
        self._quiet = True  # what is set here does not call back
        try:
            view = self.view = self.look()
        finally:
            self._quiet = False
        if not self._settled:  # a kind may say in its first look what its controls begin with
            self._starts, self._settled = self.state, True
        self.picture.value = picture(view.sheet, self._frames) if view.sheet else ""
        self.says.value = status(*view.missing, *view.said)
        if self.export.of != self.state:  # they are of what was shown before
            self.export.links.value = ""
        self.offer.tell(wrong)

    def restart(self) -> None:
        """All controls as they were in the beginning."""
        self._quiet = True
        for name, value in self._starts.items():
            with suppress(TraitError):  # not offered now: `look` chooses
                self._named[name].value = value
        self.settle()
