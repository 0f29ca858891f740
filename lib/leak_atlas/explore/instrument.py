"""The engine of all explorers: choices, what they cost, a figure that answers a click, an export.

An explorer is a `Description` of data and charts, and nothing else:

    class Widths(Description):
        name, title = "widths", "AUC of each stage by width"
        choices = (Choice("A_width", {"8": 8, "16": 16}, "8", side="A", label="width"), ...)

        def steps(self, state): ...      # the recipes that a state needs, one list a side
        def rows(self, state): ...       # {"cells": [{...}, ...]}; {} where nothing is stored
        def pointers(self, state, rows): # what moves without a kernel
            return [Pointer("epoch", "cell_epoch", [1, 2], start=2, slider=True, play=True)]
        def chart(self, state, rows, narrow): ...  # Vega-Lite, of the pieces in charts.py
        def sentences(self, state, rows): ...      # what it says, one finding a sentence

    app = Instrument(Widths())

`state` is a dictionary of plain values: the label of each choice, the value of each pointer.

- A *choice* asks the kernel. Its options carry a mark: stored, or not yet. What is not stored gets
  an offer with its cost; a click trains it in another process, and Cancel ends that.
- A *pointer* is a signal of the chart. Clicks, lists, sliders and "play" move it in the browser,
  without a kernel. So rows hold what every value of the pointers shows.

The same description makes the notebook's widget (here), its static picture (`Instrument.picture`)
and the page of the site (`page.py`). Figures are made of the pieces in `charts.py` and `vega.py`,
rows of those in `records.py`.
"""

from __future__ import annotations

import io
import json
import os
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import ipywidgets as widgets

from leak_atlas import BadInput, nearest
from leak_atlas.engine import files, store
from leak_atlas.explore.click import Offer
from leak_atlas.explore.look import COLOURS, OPEN, STORED, status
from leak_atlas.explore.records import Row
from leak_atlas.explore.vega import Chart
from leak_atlas.lab.plans import steps_of
from leak_atlas.recipe import Step
from leak_atlas.report import live
from leak_atlas.report.live import VEGA_LITE, script, style

if TYPE_CHECKING:
    import pandas as pd

State: TypeAlias = dict[str, Any]
Rows: TypeAlias = Mapping[str, list[Row]]  # tidy rows by the name of their data set

KEPT = 8  # states whose rows are kept
LOST = (
    '<p class="leak-atlas-lost" role="alert" hidden>Python does not answer: it is busy, or its'
    " kernel is lost. The figure still answers; to choose something else, reload this page.</p>"
)


@dataclass(frozen=True)
class Choice:
    """A list of named values. It belongs to side A or B, or to both (""); `more` folds it away."""

    name: str  # in the state: "A_width"
    options: Mapping[str, Any]  # by their labels
    start: str = ""  # the label that is chosen to begin with; default: the first
    side: str = ""
    label: str = ""  # in front of the list; default: the name
    more: bool = False
    meaning: str = ""  # in words, shown by the pointer of a mouse

    def __post_init__(self) -> None:
        if not self.start:
            object.__setattr__(self, "start", next(iter(self.options)))
        if self.start not in self.options:
            close = nearest(self.start, list(self.options))
            raise BadInput(f"{self.name} cannot be {self.start!r}{close}")


@dataclass(frozen=True)
class Pointer:
    """What is looked at, moved in the browser: the signal `signal` of the chart takes `values`."""

    name: str
    signal: str
    values: Sequence[Any]
    start: Any
    label: str = ""
    slider: bool = False  # else a list
    play: bool = False  # runs over the values
    hidden: bool = False  # moved by clicks alone


def sample_pointer(start: str) -> Pointer:
    """The chosen sample, which clicks on pictures move: see `charts.chosen_sample`."""
    return Pointer("sample", "sample_sample", [], start, hidden=True)


class Description(ABC):
    """What an explorer is. The engine asks for rows and charts, and never for anything else."""

    name: ClassVar[str]  # of its notebook and its page
    title: ClassVar[str]
    question: ClassVar[str]
    hint: ClassVar[str]  # what one can do, in a sentence or two
    choices: Sequence[Choice]
    exploded: ClassVar[Sequence[str]] = ()  # lists whose elements have rows of their own in exports

    @abstractmethod
    def steps(self, state: State) -> list[Any]:
        """All recipes of a state, one collection for each who asks. Raises BadInput where there can be
        no such thing.
        """

    @abstractmethod
    def rows(self, state: State) -> Rows:
        """What is stored of a state; {} where it is nothing. The first data set is exported."""

    @abstractmethod
    def pointers(self, state: State, rows: Rows) -> list[Pointer]:
        """What can be pointed at. Their values join the state that `chart` and `sentences` get."""

    @abstractmethod
    def chart(self, state: State, rows: Rows, narrow: bool) -> Chart:
        """The figure as Vega-Lite, without data; `narrow`: at most 350 pixels wide."""

    @abstractmethod
    def sentences(self, state: State, rows: Rows) -> list[str]:
        """What the figure shows, in words; also where nothing is stored, and `rows` is {}."""

    def marks(self, state: State, side: str) -> Sequence[Step]:
        """Those few steps that are stored where a side (""; both) can be shown."""
        return steps_of(self.steps(state))

    def unused(self, state: State) -> set[str]:
        """Choices that mean nothing in a state; they are not shown."""
        return set()

    def published(self) -> dict[str, State]:
        """Choices of the states that the site's page offers, by their labels; others stay."""
        return {"as in the notebook": {}}

    def tables(self, state: State, rows: Rows) -> dict[str, pd.DataFrame]:
        """What is exported, by file name: the first data set; of its lists only `exploded`."""
        import pandas as pd

        table = pd.DataFrame(next(iter(rows.values()), []))
        for column in table.columns.difference(self.exploded):
            if isinstance(table[column].iloc[0], list):
                del table[column]
        if self.exploded and len(table):
            table = table.explode([*self.exploded])
        return {self.name: table}

    @property
    def start(self) -> State:
        """Every choice as it is in the beginning."""
        return {each.name: each.start for each in self.choices}

    def value(self, state: State, name: str) -> Any:
        """The value behind the label of a choice."""
        return next(each for each in self.choices if each.name == name).options[state[name]]


def figure(of: Description, state: State, rows: Rows) -> dict[str, Any]:
    """What `player.js` shows. Every list of rows goes by its name; charts hold none."""
    pointers = of.pointers(state, rows)
    state = {each.name: each.start for each in pointers} | state
    return {
        "wide": of.chart(state, rows, narrow=False),
        "narrow": of.chart(state, rows, narrow=True),
        "pointers": [asdict(each) | {"label": each.label or each.name} for each in pointers],
        "rows": rows,
        "at": {each.name: state[each.name] for each in pointers},
    }


class Instrument(widgets.VBox):
    """A description as a widget: choices, the offer, sentences, the figure, the export."""

    def __init__(self, of: Description) -> None:
        self.of = of
        self.rows: Rows = {}
        self._quiet, self._listening = False, False
        self._kept, self._stored = dict[Any, Rows](), dict[Any, bool]()
        self._lists = {each.name: self._list(each) for each in of.choices}
        self._at: State = {}  # where the pointers are
        self.says = widgets.HTML().add_class("leak-atlas-says")
        self.figure = widgets.HTML('<div class="leak-atlas-figure"></div>')
        # Python -> browser: the script that an Output runs; browser -> Python: a text
        self._script = widgets.Output(layout={"height": "0", "overflow": "hidden"})
        self._text = widgets.Textarea(layout={"display": "none"})
        self._answer = widgets.HTML(layout={"display": "none"}).add_class("leak-atlas-answer")
        self._text.add_class("leak-atlas-pointed").observe(self._pointed, names="value")
        self.offer = Offer(lambda: self.of.steps(self.state), self._computed)
        self.export = widgets.Button(description="export", icon="download")
        self.export.on_click(lambda _: self._export())
        self.links = widgets.HTML().add_class("leak-atlas-links")
        reset = widgets.Button(description="reset", icon="undo", tooltip="as in the beginning")
        reset.on_click(lambda _: self.choose(**self.of.start))
        below = widgets.HBox([self.export, reset, self.links]).add_class("leak-atlas-row")
        head = widgets.HTML(f"<style>{style()}</style>{LOST}")
        shown = [head, *self._forms(), self.offer, self.says, self.figure]
        super().__init__([*shown, self._script, self._text, self._answer, below])
        self.add_class("leak-atlas-instrument")
        self._id = f"leak-atlas-{self.model_id}"
        self.add_class(self._id)
        self._execute("ask(root, 'script')")
        self._settle()

    # ------------------------------------------------------------ choices

    def _list(self, choice: Choice) -> widgets.Dropdown:
        made = widgets.Dropdown(
            options=list(choice.options), value=choice.start, tooltip=choice.meaning
        )
        made.description = choice.label or choice.name
        made.style.description_width = "initial"
        made.observe(lambda _: self._settle(), names="value")
        return made.add_class(f"leak-atlas-choice-{choice.name}")

    def _forms(self) -> list[widgets.Widget]:
        """The main choices of A and B next to each other, those of both below, the rest folded."""

        def row(side: str, more: bool) -> widgets.HBox:
            lists = [
                self._lists[each.name]
                for each in self.of.choices
                if each.side == side and each.more == more
            ]
            head = [widgets.HTML(f'<b class="leak-atlas-{side}">{side}</b>')] if side else []
            box = widgets.HBox([*head, *lists] if lists else [])
            return box.add_class("leak-atlas-row").add_class(f"leak-atlas-side{side}")

        def block(more: bool) -> list[widgets.HBox]:
            sides = [each for each in (row(side, more) for side in COLOURS) if each.children]
            both = row("", more)
            beside = [widgets.HBox(sides).add_class("leak-atlas-sides")] if sides else []
            return [*beside, both] if both.children else beside

        key = f"{STORED}stored&ensp;{OPEN}not yet: choose it to see what it costs"
        folded = widgets.Accordion([widgets.VBox(block(more=True))], titles=["more"])
        more = [folded] if any(each.more for each in self.of.choices) else []
        hint = f'<p class="leak-atlas-hint">{escape(self.of.hint)}<br>{key}</p>'
        return [*block(more=False), *more, widgets.HTML(hint)]

    @property
    def state(self) -> State:
        """The label of each choice, and the value of each pointer."""
        return {name: each.value for name, each in self._lists.items()} | self._at

    def choose(self, **values: Any) -> Instrument:
        """Sets choices and pointers by their names, as a click would. Raises BadInput on what is
        not offered.
        """
        pointers = self._pointers()
        for name, value in values.items():
            if name not in self._lists | pointers:
                raise BadInput(f"there is no '{name}'{nearest(name, [*self._lists, *pointers])}")
            if name in self._lists and value not in self._options(name):
                raise BadInput(f"{name} cannot be {value!r}{nearest(value, self._options(name))}")
        with self._silent():
            for name, value in values.items():
                if name in self._lists:
                    self._lists[name].value = value
        self._at |= {name: value for name, value in values.items() if name in pointers}
        self._settle()
        return self

    def _options(self, name: str) -> list[str]:
        return [value for _, value in self._lists[name].options]

    @property
    def code(self) -> str:
        """A cell that brings `app` from its beginning to what is shown now."""
        start = self.of.start | self._pointers()
        moved = [f"{k}={v!r}" for k, v in self.state.items() if v != start.get(k)]
        return f"app.choose({', '.join(moved)})"

    def _pointers(self) -> State:
        """Where each pointer begins; none where nothing is shown."""
        shown = self.of.pointers(self.state, self.rows) if self.rows else []
        return {each.name: each.start for each in shown}

    # ------------------------------------------------------------ what is shown

    @contextmanager
    def _silent(self) -> Iterator[None]:
        """What is set here does not call back."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def _settle(self, wrong: str = "") -> None:
        """Shows what is stored of the state, and what the rest would cost."""
        if self._quiet:
            return
        lines: list[str] = []
        try:
            self.of.steps(self.state)
            self.rows = self._rows()
            self._at = {name: self._at.get(name, at) for name, at in self._pointers().items()}
            lines = self.of.sentences(self.state, self.rows)
        except BadInput as error:
            wrong, self.rows, self._at = wrong or str(error), {}, {}
        self.says.value, self.links.value = status(*lines), ""
        if self._listening:
            self._show()  # first, so that the browser draws while marks are looked up
        with self._silent():
            self._mark()
        self.offer.tell(wrong)

    def _rows(self) -> Rows:
        key = tuple(each.value for each in self._lists.values())
        rows = self._kept.pop(key) if key in self._kept else self.of.rows(self.state)
        self._kept[key] = rows  # the latest stands last
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return rows

    def _mark(self) -> None:
        """Every option says whether it is stored; what means nothing now is not shown."""
        unused = self.of.unused(self.state)
        for choice in self.of.choices:
            control = self._lists[choice.name]
            control.layout.display = "none" if choice.name in unused else None
            if choice.name not in unused:
                marked = {
                    label: (STORED if self.stored(choice, label) else OPEN) + label
                    for label in choice.options
                }
                options = [(text, label) for label, text in marked.items()]
                if list(control.options) != options:
                    value = control.value
                    control.options = options
                    control.value = value

    def stored(self, choice: Choice, label: str) -> bool:
        """Whether the state with another value of one choice can be shown."""
        state = self.state | {choice.name: label}
        own = {choice.side, ""} if choice.side else {"", *COLOURS}
        key = choice.side, *(state[each.name] for each in self.of.choices if each.side in own)
        if key not in self._stored:
            try:
                steps = self.of.marks(state, choice.side)
                self._stored[key] = all(store.has(step.key) for step in steps)
            except BadInput:  # it cannot be beside the other choices
                self._stored[key] = False
        return self._stored[key]

    def _computed(self, wrong: str) -> None:
        """Something was trained, or went wrong."""
        self._stored.clear()
        self._kept.clear()
        self._settle(wrong)

    # ------------------------------------------------------------ to and from the browser

    def _execute(self, script: str) -> None:
        """Runs JavaScript once the widget `root` is in the page; `ask` asks Python for what the
        page lacks.
        """
        code = f"""(() => {{
            const ask = (root, what) => {{
                const text = root.querySelector('.leak-atlas-pointed textarea');
                text.value = JSON.stringify({{ask: what, at: Math.random()}});
                text.dispatchEvent(new Event('input', {{bubbles: true}}));
            }};
            const run = tries => {{
                const root = document.querySelector('.{self._id} .leak-atlas-pointed textarea')?.closest('.{self._id}');
                if (root) {{ {script} }} else if (tries) setTimeout(run, 50, tries - 1);
            }};
            run(400);
        }})()""".replace("</script", "<\\/script")
        data = {"text/html": f"<script>{code}</script>"}
        self._script.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)

    def _show(self, before: str = "") -> None:
        """Sends the figure to a browser that listens; the script `before` goes before it."""
        shown = figure(self.of, self.state, self.rows) if self.rows else None
        call = f"window.leakAtlas.notebook(root, {json.dumps(shown)})"
        self._execute(f"{before}; if (window.leakAtlas) {call}; else ask(root, 'script')")

    def _pointed(self, change: dict[str, Any]) -> None:
        """The browser asks for the script, or whether Python lives, or says where the pointers
        are.
        """
        said = json.loads(change["new"] or "{}")
        if "alive" in said:
            self._answer.value = said["alive"]
            return
        if "ask" in said:
            self._listening = True
            return self._show(script())
        self._at |= said
        self.says.value = status(*self.of.sentences(self.state, self.rows))

    # ------------------------------------------------------------ to take away

    @property
    def picture(self) -> bytes:
        """The figure as a small PNG. Raises BadInput where nothing is stored."""
        import vl_convert
        from PIL import Image

        if not self.rows:
            raise BadInput("nothing is stored of this: hand the explorer's steps to lab.realize")
        spec = self.of.chart(self.state, self.rows, narrow=False) | {"datasets": self.rows}
        raw = vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=1.5)
        whole = Image.open(io.BytesIO(raw)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
        whole.save(packed := io.BytesIO(), "PNG", optimize=True)
        return packed.getvalue()

    def _repr_mimebundle_(self, **given: Any) -> dict[str, Any]:
        """The widget, and for a page without a kernel its picture and its sentences."""
        made = super()._repr_mimebundle_(**given)
        made["text/plain"] = "\n".join(self.of.sentences(self.state, self.rows))
        if self.rows:
            made["image/png"] = b64encode(self.picture).decode()
            if place := os.environ.get("LEAK_ATLAS_FIGURES"):  # a batch's, which makes a page
                from leak_atlas.explore.page import packet

                files.write_text(live.packet(Path(f"{place}.html")), packet(self.of, self.state))
        return made

    def _export(self) -> None:
        tables = self.of.tables(self.state, self.rows)
        links = [
            f'<a download="{name}.csv" href="{_address(t)}">{name}.csv</a>'
            for name, t in tables.items()
        ]
        self.links.value = f"{' '.join(links)} <code>{escape(self.code)}</code>"


def _address(table: pd.DataFrame) -> str:
    """A table as the address of its own CSV."""
    raw = table.to_csv(index=False, float_format="%.6g").encode()
    return f"data:text/csv;base64,{b64encode(raw).decode()}"
