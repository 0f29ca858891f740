"""Tables of numbers with their intervals, the paper's beside ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from leak_atlas.audit import Estimate
from leak_atlas.report import markup

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Table", "table"]

UNRESOLVED = "not resolved"
LEGEND = "Not resolved: too few samples for this number, or no network with this AUC"


def plain(value: Any) -> str:
    """A cell as text: an Estimate with its interval, a number with three decimals, nothing as a
    dash.
    """
    if value is None:
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Estimate):
        text = f"{value:.3f}" if value.resolved else f"{value:.3f} ({UNRESOLVED})"
    elif isinstance(value, Printed):
        text = f"{value:.10g}"
    elif isinstance(value, Integral):
        text = f"{value:,}".replace(",", " ")
    elif isinstance(value, Real):
        text = f"{value:.3f}" if value == 0 or 1e-3 <= abs(float(value)) < 100 else f"{value:.4g}"
    else:
        return str(value)
    text = re.sub(r"-(0\.0+)(?!\d)", r"\1", text)  # no negative zero
    return text.replace("-", "−").replace("nan", "–").replace("inf", "∞")


class Printed(float):
    """A number that is shown with the digits it came with."""


def _printed(value: Any) -> Any:
    return Printed(value) if isinstance(value, Real) else value


def _cell(value: Any) -> Markup:
    """A cell as HTML: the interval in small type, so that the eye finds the estimate first."""
    if not isinstance(value, Estimate):
        return Markup("{}").format(plain(value))
    number, interval = plain(value).removesuffix(f" ({UNRESOLVED})").split(" ", 1)
    text = Markup("{} <small>{}</small>").format(number, interval)
    if not value.resolved:
        text += Markup("<br><small><i>{}</i></small>").format(UNRESOLVED)
    return text


@dataclass(frozen=True, eq=False)
class Table:
    """What `table` returns: shown as HTML, readable as markdown and as text; `frame` holds the
    values. With a `fold` the HTML shows only this line until a reader opens it.
    """

    frame: pd.DataFrame
    caption: str = ""
    fold: str = ""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        shown = self.drawn("html")
        if self.fold:
            line = Markup("<summary>{}</summary>").format(self.fold)
            shown = f"<details>{line}{shown}</details>"
        return {
            "text/html": shown,
            "text/markdown": self.drawn("md"),
            "text/plain": str(self),
        }

    def drawn(self, kind: str) -> str:
        """The table as "html", as "md" or as "txt"."""
        cell = _cell if kind == "html" else plain
        columns = []
        numeric = []
        for place, (name, values) in enumerate(self.frame.items()):
            # as printed in the paper, with no digit more
            shown = map(_printed, values) if str(name).startswith("paper") else values
            columns.append([cell(value) for value in shown])
            if not any(isinstance(value, str) for value in values):
                numeric.append(place)
        head = [str(name) for name in self.frame.columns]
        rows = list(zip(*columns, strict=True))
        return markup.table(kind, head, rows, self.caption, numeric)

    def __str__(self) -> str:
        return self.drawn("txt")

    __repr__ = __str__


def table(
    rows: pd.DataFrame | Sequence[Mapping[str, Any]],
    paper: str = "",
    caption: str = "",
    fold: str = "",
) -> Table:
    """A table whose cells may be Estimates. A column called `paper` holds the paper's numbers;
    `paper=` says whose.

    Missing values show as a dash, an estimate that its sample cannot resolve says so. `fold` is the
    one line that a page shows of a table that decides nothing ("All networks").
    """
    import pandas as pd

    if isinstance(rows, pd.DataFrame):
        frame = rows.reset_index(drop=True)
    else:
        frame = pd.DataFrame(list(rows), dtype=object)
    cells = frame.to_numpy(dtype=object).ravel()
    estimates = [value for value in cells if isinstance(value, Estimate)]
    notes = [caption] if caption else []
    if paper:
        notes.append(f"Paper: {paper}")
    if estimates:
        notes.append("[ ]: 95 % interval")
    if not all(each.resolved for each in estimates):
        notes.append(LEGEND)
    sentences = [f"{note.rstrip('.')}." for note in notes]
    return Table(frame, " ".join(sentences), fold)
