"""How explorers look: words, colours, marks of what is stored, pictures of samples."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput
from leak_atlas.recipe import Data

COLOURS = {"A": "#0b6fa4", "B": "#c44f08"}  # of two sides that are compared, dark enough for text
# before an option that is stored, and before one that a click would train
STORED, OPEN = "● ", "○ "
# a row of controls
WRAP = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 16px"}
AUTO = {"width": "auto"}


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def status(*lines: str) -> str:
    """Sentences that a screen reader speaks when they change."""
    text = "<br>".join(html.escape(line) for line in lines)
    return f'<div role="status" aria-live="polite" style="line-height:1.5">{text}</div>'


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
