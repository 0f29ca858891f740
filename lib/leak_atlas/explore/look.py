"""How explorers look: words, colours, marks of what is stored, pictures of samples."""

from __future__ import annotations

import html

from leak_atlas import BadInput
from leak_atlas.recipe import Data

COLOURS = {"A": "#0b6fa4", "B": "#c44f08"}  # of two sides that are compared, dark enough for text
# before an option that is stored, and before one that a click would train
STORED, OPEN = "● ", "○ "
# a row of controls
WRAP = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 16px"}
AUTO = {"width": "auto"}
ATTACKS = {"Conf": "threshold on confidence"}  # what short names mean


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def attacked_by(name: str) -> str:
    """A sentence that names the attack."""
    meaning = f" ({ATTACKS[name]})" if name in ATTACKS else ""
    return f"Attack: {name}{meaning}."


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
