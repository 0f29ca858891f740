"""What makes the figure of an explorer live in a page: Vega, our player, and what they show."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from leak_atlas.report.markup import PAGE

VEGA_LITE = "6.4"
SCRIPT = "vega.js"  # next to the index of a run, and once for the whole site


def packet(report: Path) -> Path:
    """The file next to a report that holds what its explorer shows without a kernel."""
    return report.with_suffix(".explorer.txt")


@cache
def script() -> str:
    """Vega and the player, as one script of 0.9 MB that loads nothing."""
    import vl_convert

    # the bundle's short names would be global, and another script's `t1` breaks every linked view
    bundle = vl_convert.javascript_bundle("window.leakAtlasVega = vegaEmbed", vl_version=VEGA_LITE)
    return f"(() => {{{bundle}}})();\n{(PAGE / 'player.js').read_text('utf-8')}"


@cache
def style() -> str:
    """How figures and their controls look, in a notebook and on a page."""
    return (PAGE / "player.css").read_text("utf-8")
