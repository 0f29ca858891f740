"""Numbers that a paper prints, next to ours: drawn on pages, gathered in docs/printed_numbers.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from leak_atlas.engine import files
from leak_atlas.report.ledger import digits
from leak_atlas.report.markup import table

if TYPE_CHECKING:
    from nbformat import NotebookNode

__all__ = ["compared", "gathered"]

MIME = "application/vnd.leakatlas.printed+json"
HEAD = ("Page", "Number", "Paper", "Ours (95 % interval)", "In our interval", "Our networks")
YES_NO = {True: "yes", False: "no"}


def compared(
    drawn: pd.DataFrame, names: Iterable[str], quantity: str, source: str
) -> list[dict[str, Any]]:
    """The rows of a figure that have a number of the paper, as plain data for the page.

    `drawn` has the columns `paper`, `_y`, `_y_low` and `_y_high` (see `figures.spans`) and those in
    `names`, which say what a row is about; `quantity` is what all rows measure.
    """
    if "paper" not in drawn:
        return []
    rows = []
    of_paper = pd.to_numeric(drawn["paper"], errors="coerce")
    for printed, (_, row) in zip(of_paper, drawn.iterrows(), strict=True):
        if pd.isna(printed):
            continue
        parts = [str(row[name]) for name in names]
        ours = {"value": row["_y"], "low": row["_y_low"], "high": row["_y_high"]}
        numbers = {name: float(number) for name, number in ours.items()}
        about = {"number": f"{quantity}: {', '.join(parts)}", "source": source}
        rows.append({**about, **numbers, "paper": float(printed)})
    return rows


def rows_of(notebook: NotebookNode) -> Iterator[Mapping[str, Any]]:
    """The compared numbers that an executed notebook shows."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            yield from output.get("data", {}).get(MIME, ())


def gathered(reports: Iterable[Mapping[str, Any]], folder: Path) -> str:
    """All compared numbers of published reports, as a markdown table below their count.

    `reports` are entries of `contents.published`; `folder` holds one folder for each profile.
    """
    rows = []
    agreeing = 0
    for report in reports:
        name, profile = report["notebook"], report["profile"]
        notebook = files.read_notebook(folder / profile / f"{name}.ipynb")
        link = f"[{name}, {profile}](../outputs/reports/{profile}/{name}.ipynb)"
        for row in rows_of(notebook):
            interval = f"{digits(row['value'])} [{digits(row['low'])}, {digits(row['high'])}]"
            is_inside = row["low"] <= row["paper"] <= row["high"]
            agreeing += is_inside
            paper = f"{digits(row['paper'])} ({row['source']})"
            rows.append(
                (link, row["number"], paper, interval, YES_NO[is_inside], report.get("setting", ""))
            )
    count = f"{agreeing} of {len(rows)} numbers of the papers lie in our interval."
    return f"{count}\n\n{table('md', head=HEAD, rows=rows)}"
