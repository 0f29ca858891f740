"""How explorers look: the colours of A and B, sentences and pictures that a screen reader can tell."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lib.report.sheet import Sheet

LOOKS = {"A": ("#0b6fa4", "o", -0.09), "B": ("#d1550b", "s", 0.09)}  # colour, marker, how far beside its place


def status(*lines: str) -> str:
    """Sentences that a screen reader speaks when they change."""
    text = "<br>".join(html.escape(line) for line in lines)
    return f'<div role="status" aria-live="polite" style="line-height:1.5">{text}</div>'


def picture(fig: Sheet) -> str:
    """The sheet as an element that carries its own text for those who cannot see it."""
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", pil_kwargs={"compress_level": 1})
    return image(buffer.getvalue(), fig)


def image(png: bytes, fig: Sheet) -> str:
    """The same, of a picture of the sheet that is there already."""
    data, text = base64.b64encode(png).decode(), html.escape(fig.finding, quote=True)
    wide = fig.get_size_inches()[0] * fig.dpi
    return f'<img alt="{text}" src="data:image/png;base64,{data}" style="width:{wide:.0f}px;max-width:none">'
