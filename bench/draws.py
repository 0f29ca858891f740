"""What do several draws of the data say together? A notebook's claims over its runs.

    for seed in 103 104 105; do leak-atlas reproduce fig07_text -p seed=$seed; done
    python -m bench.draws weights/fig07_text 'outputs/runs/quick+seed=*'

Each evaluation seed draws other samples, members and initialisations. The mean over draws has an
interval from the scatter of the draws alone (Student's t), so it needs no assumption about the
intervals inside a draw. These are shown beside, as their mean half-width: where they describe all
of the scatter, the standard deviation of the draws is about half of it.
"""

from __future__ import annotations

import glob
import json
import sys
from collections import Counter
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from leak_atlas import audit

Claims = dict[str, dict[str, Any]]  # by name


def claims(run: Path, notebook: str) -> Claims:
    """The judged claims of a notebook in a run, or in a folder of reports."""
    reports = run / "results.json"
    if reports.is_file():
        entries = json.loads(reports.read_text())
        found = next(entry["claims"] for entry in entries if entry["notebook"] == notebook)
    else:
        found = json.loads((run / f"{notebook}.claims.json").read_text())
    return {claim["name"]: claim for claim in found}


def pooled(draws: list[Claims]) -> list[str]:
    """A line for each claim that all draws have: its mean over the draws, and what each said."""
    lines = []
    for name in draws[0]:
        each = [draw[name] for draw in draws if name in draw]
        if len(each) < len(draws):
            continue
        values = [claim["value"] for claim in each]
        together = audit.mean_ci(values)
        halves = mean((claim["high"] - claim["low"]) / 2 for claim in each)
        verdicts = Counter(claim["verdict"] for claim in each)
        said = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())
        lines.append(
            f"{name}: {together.value:.4f} [{together.low:.4f}, {together.high:.4f}] over "
            f"{len(each)} draws (standard deviation {stdev(values):.4f}, half-width in a draw "
            f"{halves:.4f}); {said}"
        )
    return lines


def show(notebook: str, patterns: list[str]) -> None:
    """Prints the lines of a notebook."""
    folders = sorted(folder for pattern in patterns for folder in glob.glob(pattern))
    there = [Path(folder) for folder in folders]
    for line in pooled([claims(run, notebook) for run in there]):
        print(line)


if __name__ == "__main__":
    show(sys.argv[1], sys.argv[2:])
