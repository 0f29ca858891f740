"""The widget of all explorers: choices and what they cost, a figure, an export.

    app = Instrument(Widths())

`description.py` says what `Widths` is. The options of its choices carry a mark: stored, or not yet.
An offer names the cost of what is not stored. A click trains it in another process; Cancel ends
this.
"""

from __future__ import annotations

import io
import os
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from leak_atlas import BadInput, nearest
from leak_atlas.engine import files, store
from leak_atlas.explore.browser import Browser
from leak_atlas.explore.click import Offer
from leak_atlas.explore.controls import Controls
from leak_atlas.explore.description import Choice, Description, Rows, State, figure
from leak_atlas.explore.look import COLOURS, status
from leak_atlas.report import live
from leak_atlas.report.markup import png

if TYPE_CHECKING:
    import pandas as pd

KEPT = 8  # states whose rows are kept
LOST = (
    '<p class="leak-atlas-lost" role="alert" hidden>Python does not answer: it is busy, or its'
    " kernel is lost. The figure still answers; to choose something else, reload this page.</p>"
)


class Instrument(widgets.VBox):
    """A description as a widget: choices, the offer, sentences, the figure, the export."""

    def __init__(self, of: Description) -> None:
        self.of = of
        self.rows: Rows = {}
        self._kept: dict[Any, Rows] = {}
        self._stored: dict[Any, bool] = {}
        self._at: State = {}  # where the pointers are
        self.controls = Controls(of, self._settle)
        self.offer = Offer(self._steps, self._computed)
        self.says = widgets.HTML().add_class("leak-atlas-says")
        self.browser = Browser(self._figure, self._moved)
        self.links = widgets.HTML().add_class("leak-atlas-links")
        self.export = widgets.Button(description="export", icon="download")
        self.export.on_click(self._export)
        reset = widgets.Button(description="reset", icon="undo", tooltip="as in the beginning")
        reset.on_click(self._reset)
        below = widgets.HBox([self.export, reset, self.links]).add_class("leak-atlas-row")
        super().__init__(
            [
                widgets.HTML(f"<style>{live.style()}</style>{LOST}"),
                self.controls,
                self.offer,
                self.says,
                widgets.HTML('<div class="leak-atlas-figure"></div>'),
                self.browser,
                below,
            ]
        )
        self.add_class("leak-atlas-instrument")
        self.add_class(self.browser.root)
        self._settle()

    # ------------------------------------------------------------ the state

    @property
    def state(self) -> State:
        """The label of each choice, and the value of each pointer."""
        return self.controls.state | self._at

    def choose(self, **values: Any) -> Instrument:
        """Sets choices and pointers by their names, as a click would.

        Raises BadInput for an unknown name and for a value that is not offered; then nothing is
        set.
        """
        before = self.controls.state
        chosen = {name: value for name, value in values.items() if name in before}
        for name, label in chosen.items():
            self.controls.check(name, label)
        self.controls.choose(chosen)
        self._settle()
        try:
            self._point({name: at for name, at in values.items() if name not in before})
        except BadInput:
            self.controls.choose(before)
            self._settle()
            raise
        return self

    def _point(self, pointed: State) -> None:
        """Sets pointers, which depend on the choices."""
        offered = {}
        if self.rows:
            offered = {each.name: each for each in self.of.pointers(self.state, self.rows)}
        for name, value in pointed.items():
            if name not in offered:
                known = [*self.controls.state, *offered]
                raise BadInput(f"there is no '{name}'{nearest(name, known)}")
            values = offered[name].values
            if values and value not in values:
                close = nearest(str(value), [str(each) for each in values])
                raise BadInput(f"{name} cannot be {value!r}{close}")
        if pointed:
            self._at |= pointed
            self._settle()

    def _reset(self, _: Any) -> None:
        self.choose(**self.of.start)

    @property
    def code(self) -> str:
        """A cell that brings `app` from its initial state to what is shown now."""
        start = self.of.start | self._pointers()
        moved = []
        for name, value in self.state.items():
            if value != start.get(name):
                moved.append(f"{name}={value!r}")
        return f"app.choose({', '.join(moved)})"

    def _pointers(self) -> State:
        """The start of each pointer; {} if nothing is stored of the state."""
        if not self.rows:
            return {}
        return {each.name: each.start for each in self.of.pointers(self.state, self.rows)}

    def _steps(self) -> list[Any]:
        return self.of.steps(self.state)

    # ------------------------------------------------------------ what is shown

    def _settle(self, wrong: str = "") -> None:
        """Shows what is stored of the state, and what the rest would cost, or what is `wrong`."""
        lines: list[str] = []
        try:
            self._steps()  # raises BadInput for a state that cannot be computed
            self.rows = self._rows()
            self._at = {name: self._at.get(name, at) for name, at in self._pointers().items()}
            lines = self._sentences()
        except BadInput as error:
            wrong = wrong or str(error)
            self.rows = {}
            self._at = {}
        self.says.value = status(*lines)
        self.links.value = ""
        self.browser.show()  # the page draws while the kernel looks up marks
        self.controls.mark(self.of.unused(self.state), self.stored)
        self.offer.tell(wrong)

    def _rows(self) -> Rows:
        """The rows of the state. The rows of the last `KEPT` states are kept."""
        key = tuple(self.controls.state.values())
        rows = self._kept.pop(key) if key in self._kept else self.of.rows(self.state)
        self._kept[key] = rows  # the latest stands last
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return rows

    def _sentences(self) -> list[str]:
        return self.of.sentences(self.state, self.rows)

    def _figure(self) -> dict[str, Any] | None:
        return figure(self.of, self.state, self.rows) if self.rows else None

    def stored(self, choice: Choice, label: str) -> bool:
        """Whether the state can be shown if a choice has another label."""
        state = self.state | {choice.name: label}
        sides = {"", choice.side} if choice.side else {"", *COLOURS}
        own = [state[each.name] for each in self.of.choices if each.side in sides]
        key = choice.side, *own
        if key not in self._stored:
            self._stored[key] = self._can_show(state, choice.side)
        return self._stored[key]

    def _can_show(self, state: State, side: str) -> bool:
        """Whether a side is stored in a state."""
        try:
            steps = self.of.marks(state, side)
            return all(store.has(step.key) for step in steps)
        except BadInput:  # the other choices do not allow it
            return False

    def _computed(self, wrong: str) -> None:
        """Called after a training; `wrong` says why it failed."""
        self._stored.clear()
        self._kept.clear()
        self._settle(wrong)

    def _moved(self, pointers: State) -> None:
        """Called when pointers were moved in the browser."""
        self._at |= pointers
        self.says.value = status(*self._sentences())

    # ------------------------------------------------------------ export

    def _picture(self) -> str:
        """The figure as a small PNG in base64."""
        import vl_convert
        from PIL import Image

        chart = self.of.chart(self.state, self.rows, narrow=False) | {"datasets": self.rows}
        raw = vl_convert.vegalite_to_png(chart, vl_version=live.VEGA_LITE, scale=1.5)
        whole = Image.open(io.BytesIO(raw)).convert("RGB")
        return png(whole.quantize(128, dither=Image.Dither.NONE), optimize=True)

    def _repr_mimebundle_(self, **given: Any) -> dict[str, Any]:
        """The widget, and for a page without a kernel its picture and its sentences."""
        bundle = super()._repr_mimebundle_(**given)
        bundle["text/plain"] = "\n".join(self._sentences())
        if self.rows:
            bundle["image/png"] = self._picture()
            if place := os.environ.get("LEAK_ATLAS_FIGURES"):  # set by a batch, for its page
                from leak_atlas.explore.page import packet

                path = live.packet(Path(f"{place}.html"))
                files.write_text(path, packet(self.of, self.state))
        return bundle

    def _export(self, _: Any) -> None:
        tables = self.of.tables(self.rows)
        shown = []
        for name, table in tables.items():
            address = _address(table)
            shown.append(f'<a download="{name}.csv" href="{address}">{name}.csv</a>')
        shown.append(f"<code>{escape(self.code)}</code>")
        self.links.value = " ".join(shown)


def _address(table: pd.DataFrame) -> str:
    """A table as CSV in a data URL."""
    raw = table.to_csv(index=False, float_format="%.6g").encode()
    return f"data:text/csv;base64,{b64encode(raw).decode()}"
