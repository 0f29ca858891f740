"""How explorers look: words, colours, marks of what is stored, and sheets as pictures that follow a
slider.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput
from leak_atlas.recipe import Data

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from leak_atlas.report.sheet import Sheet

COLOURS = {"A": "#0b6fa4", "B": "#c44f08"}  # of two sides that are compared, dark enough for text
# before an option that is stored, and before one that a click would train
STORED, OPEN = "● ", "○ "
# a row of controls
WRAP = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 16px"}
AUTO = {"width": "auto"}
# a mouse finds them
WIDE = "<style>.leak-atlas :is(select, input, .slider-container) { min-width: 120px }</style>"
TABLES = ":is(.leak-atlas-table, .leak-atlas-tensors)"
# a notebook's own reach no widget
CELLS = f"<style>{TABLES} :is(th, td) {{ padding: 2px 10px }}</style>"


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def marks(
    values: Iterable[Any], done: Container[Any], word: Callable[[Any], str] = percent
) -> list[tuple[str, Any]]:
    """Options of a control, each saying whether it is stored."""
    return [((STORED if value in done else OPEN) + word(value), value) for value in values]


def status(*lines: str) -> str:
    """Sentences that a screen reader speaks when they change."""
    text = "<br>".join(html.escape(line) for line in lines)
    return f'<div role="status" aria-live="polite" style="line-height:1.5">{text}</div>'


class Frames:
    """Where panels stand: the layout, half of what a drawing takes, is found once for sheets that
    are alike.
    """

    def __init__(self) -> None:
        self._known: dict[Any, list[tuple[list[Any], list[str]]]] = {}

    def draw(self, fig: Sheet, canvas: FigureCanvasAgg) -> None:
        """Draws a sheet; its panels stand where those of an earlier one do, if labels as wide have
        their room there.
        """
        words = [(ax.get_title("left"), ax.get_xlabel(), ax.get_ylabel()) for ax in fig.axes]
        lines = [each and each.count("\n") + 1 for own in words for each in own]
        known, layout = (
            self._known.setdefault((*fig.get_size_inches(), *lines), []),
            fig.get_layout_engine(),
        )
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
        """Of each axis the longest label, all digits of which are as wide; of one that lies,
        whether it has a label.
        """
        made = []
        for ax in fig.axes:
            for labels, level in ((ax.get_xticklabels(), True), (ax.get_yticklabels(), False)):
                longest = max((each.get_text() for each in labels), key=len, default="")
                flat = level and longest and not labels[0].get_rotation()
                made.append("x" if flat else re.sub(r"\d", "0", longest))
        return made


def picture(fig: Sheet, frames: Frames) -> str:
    """The sheet as an element with its own text for those who cannot see it.

    The second time, only what moves is drawn: in a tenth of the time, so that a slider can be
    followed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    from leak_atlas.report.markup import png

    canvas = FigureCanvasAgg(fig)
    if fig.still is None:
        frames.draw(fig, canvas)
        fig.still = canvas.copy_from_bbox(fig.bbox)
    canvas.restore_region(fig.still)
    for artist in fig.moving:
        artist.draw(canvas.get_renderer())
    data, text = (
        png(Image.fromarray(np.asarray(canvas.buffer_rgba())), compress_level=1),
        html.escape(fig.finding),
    )
    return f'<img alt="{text}" src="data:image/png;base64,{data}" style="width:{fig.bbox.width:.0f}px;max-width:none">'


def pictured(data: Data) -> None:
    """BadInput on data that are neither images nor bits."""
    if data.kind not in ("images", "bits"):
        raise BadInput(
            f"{data.name} is {data.kind}, of which there is no picture: take images or bits"
        )


def pictures(x: NDArray[Any]) -> NDArray[np.uint8]:
    """Samples as pictures `(n, H, W, 3)`; bits lie row by row in a square, dark where they are set."""
    if x.ndim == 2:
        side = int(np.ceil(np.sqrt(x.shape[1])))
        x = (
            (255 * (1 - np.pad(x, ((0, 0), (0, side**2 - x.shape[1])))))
            .reshape(-1, side, side, 1)
            .astype(np.uint8)
        )
    return np.broadcast_to(x, (*x.shape[:3], 3))
