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
        found = [claim for one in entries if one["notebook"] == notebook for claim in one["claims"]]
    else:
        path = run / f"{notebook}.claims.json"
        if not path.is_file():
            raise SystemExit(f"{path} is not there: name the notebook with its folder")
        found = json.loads(path.read_text())
    return {claim["name"]: claim for claim in found}


def pooled(draws: list[Claims]) -> list[str]:
    """A row of a table for each claim that all draws have: its mean over them, and what each said."""
    rows = [
        "| claim | measured, and holds if | mean over draws | deviation; half-width | verdicts |"
    ]
    rows.append("| --- | --- | --- | --- | --- |")
    for name, first in draws[0].items():
        each = [draw[name] for draw in draws if name in draw]
        if len(each) < len(draws):
            continue
        values = [claim["value"] for claim in each]
        together = audit.mean_ci(values)
        half = mean((claim["high"] - claim["low"]) / 2 for claim in each)
        verdicts = Counter(claim["verdict"] for claim in each)
        said = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())
        interval = f"{together.value:.3f} [{together.low:.3f}, {together.high:.3f}]"
        scatter = f"{stdev(values):.3f}; {half:.3f}"
        rows.append(f"| {first['text']} | {first['rule']} | {interval} | {scatter} | {said} |")
    return rows


def show(notebook: str, patterns: list[str]) -> None:
    """Prints the table of a notebook."""
    folders = sorted(folder for pattern in patterns for folder in glob.glob(pattern))
    if len(folders) < 2:
        raise SystemExit(f"two runs or more are needed, {patterns} name {len(folders)}")
    draws = [claims(Path(folder), notebook) for folder in folders]
    print(f"{notebook}, {len(draws)} draws:\n", *pooled(draws), sep="\n")


if __name__ == "__main__":
    show(sys.argv[1], sys.argv[2:])
