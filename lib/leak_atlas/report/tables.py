"""Tables of numbers with their intervals, the paper's beside ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from leak_atlas.audit import Estimate
from leak_atlas.report import markup

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Table", "rows", "table"]

UNRESOLVED = "not resolved"
LEGEND = "Not resolved: too few samples for this number, or no network with this AUC"


def plain(value: Any) -> str:
    """A cell as text: an Estimate with its interval, a number with three decimals, nothing as a
    dash.
    """
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
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


def _cell(value: Any) -> Markup:
    """A cell as HTML: the interval in small type, so that the eye finds the estimate first."""
    if not isinstance(value, Estimate):
        return Markup("{}").format(plain(value))
    number, interval = plain(value).removesuffix(f" ({UNRESOLVED})").split(" ", 1)
    text = Markup("{} <small>{}</small>").format(number, interval)
    return (
        text if value.resolved else text + Markup("<br><small><i>{}</i></small>").format(UNRESOLVED)
    )


@dataclass(frozen=True, eq=False)
class Table:
    """What `table` returns: shown as HTML, readable as markdown and as text; `frame` holds the
    values. With a `fold` the HTML shows only this line until a reader opens it.
    """

    frame: pd.DataFrame
    caption: str = ""
    fold: str = ""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
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
        columns = {str(name): list(values) for name, values in self.frame.items()}
        numeric = [
            i
            for i, each in enumerate(columns.values())
            if not any(isinstance(value, str) for value in each)
        ]
        for name, each in columns.items():
            if name.startswith("paper"):  # as printed there, with no digit more
                columns[name] = [
                    Printed(value) if isinstance(value, Real) else value for value in each
                ]
        cell = _cell if kind == "html" else plain
        rows = [[cell(value) for value in row] for row in zip(*columns.values(), strict=True)]
        return markup.table(kind, list(columns), rows, self.caption, numeric)

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

    frame = (
        rows.reset_index(drop=True)
        if isinstance(rows, pd.DataFrame)
        else pd.DataFrame(list(rows), dtype=object)
    )
    estimates = [
        value for name in frame.columns for value in frame[name] if isinstance(value, Estimate)
    ]
    notes = [
        caption,
        f"Paper: {paper}" if paper else "",
        "[ ]: 95 % interval" if estimates else "",
        "" if all(each.resolved for each in estimates) else LEGEND,
    ]
    return Table(frame, " ".join(f"{note.rstrip('.')}." for note in notes if note), fold)


def rows(
    names: Sequence[str], estimates: Iterable[Estimate], /, **labels: Any
) -> list[dict[str, Any]]:
    """One row for each named part, as `report.profile` takes them; `labels` say which series they
    belong to.

    Lists of several series are joined with `+`.
    """
    return [
        {"part": name, "value": one.value, "low": one.low, "high": one.high, **labels}
        for name, one in zip(names, estimates, strict=True)
    ]
