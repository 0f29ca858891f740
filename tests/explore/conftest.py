"""What the tests of all explorers share."""

import html
import json
import re
import subprocess
import sys
from typing import Any

import vl_convert

from leak_atlas.explore.description import figure
from leak_atlas.report.live import VEGA_LITE


def text(markup: str) -> str:
    """The words of markup."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", markup)).split())


def offered(app: Any) -> bool:
    """Whether an explorer offers to train what is missing."""
    return app.offer.train.layout.display is None


def valid_figure(app: Any, most: int) -> None:
    """Fails where Vega-Lite cannot compile the figure, where a pointer has no signal, or where rows
    have more than so many bytes.
    """
    shown = figure(app.of, app.state, app.rows)
    assert len(json.dumps(shown["rows"], allow_nan=False)) < most
    for chart in (shown["wide"], shown["narrow"]):
        compiled = vl_convert.vegalite_to_vega(chart, vl_version=VEGA_LITE)
        signals = {each["name"] for each in compiled["signals"]}
        assert {each["signal"] for each in shown["pointers"]} <= signals


def opens_without_torch(name: str) -> None:
    """Fails where the import of an explorer imports torch, which takes seconds."""
    code = f"import sys, leak_atlas.explore.{name}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
