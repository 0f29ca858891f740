"""Do the answers of a page of `quick` repeat on other samples? Its claims over evaluation seeds.

    for seed in 103 104 105; do
        leak-atlas reproduce fig07_text -p seed=$seed
        python -m bench.draws $seed outputs/runs/quick+seed=$seed
    done

The claims of each run are kept in `bench/draws.json`. The tables of `docs/draws.md` pool them with
the published page. Without arguments, `python -m bench.draws` writes the tables anew.

Each evaluation seed draws other samples, members and initialisations. The mean over draws has an
interval from the scatter of the draws alone (Student's t), so it needs no assumption about the
intervals inside a draw. These are shown beside, as their mean half-width: where they describe all
of the scatter, the standard deviation of the draws is about half of it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from leak_atlas import audit
from leak_atlas.report import contents

KEPT = Path("bench/draws.json")
PUBLISHED = Path("outputs/reports/quick/results.json")
DOCUMENT = Path("docs/draws.md")
HEADING = "\n## `"  # before the name of a notebook

Claims = dict[str, dict[str, Any]]  # by name


def by_name(claims: list[dict[str, Any]]) -> Claims:
    """A page's claims by their names."""
    return {claim["name"]: claim for claim in claims}


def keep(seed: str, run: Path) -> None:
    """Adds what all pages of a run measured to `bench/draws.json`."""
    entries = [entry for entry in contents.entries(run) if entry["claims"]]
    if not entries:
        raise SystemExit(f"no page with claims in {run}: give a seed and the folder of its run")
    kept = json.loads(KEPT.read_text())
    for entry in entries:
        measured = {}
        for name, claim in by_name(entry["claims"]).items():
            measured[name] = {key: claim[key] for key in ("value", "low", "high", "verdict")}
        kept.setdefault(entry["notebook"], {})[seed] = measured
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")


def pooled(published: Claims, others: list[Claims]) -> list[str]:
    """The lines of a table: each claim's mean over all draws, and what each draw said.

    A claim that a draw lacks has no line.
    """
    lines = [
        "| claim | measured, and holds if | mean over draws | deviation; half-width | verdicts |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, first in published.items():
        each = [draw[name] for draw in (published, *others) if name in draw]
        if len(each) <= len(others):
            continue
        values = [claim["value"] for claim in each]
        together = audit.mean_ci(values)
        interval = f"{together.value:.3f} [{together.low:.3f}, {together.high:.3f}]"
        half = mean((claim["high"] - claim["low"]) / 2 for claim in each)
        verdicts = Counter(claim["verdict"] for claim in each)
        often_first = sorted(verdicts.items(), key=lambda item: (-item[1], item[0]))
        said = ", ".join(f"{number} {verdict}" for verdict, number in often_first)
        cells = [
            first["text"],
            first["rule"],
            interval.replace("-", "−"),
            f"{stdev(values):.3f}; {half:.3f}",
            said,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def renewed(document: str) -> str:
    """The document with its tables made anew; a notebook that it does not name gets a section."""
    kept = json.loads(KEPT.read_text())
    published = {}
    for entry in json.loads(PUBLISHED.read_text()):
        published[entry["notebook"]] = by_name(entry["claims"])
    beginning, *sections = document.rstrip().split(HEADING)
    words = {}  # what a section says before its table
    for section in sections:
        lines = [line for line in section.splitlines() if not line.startswith("|")]
        words[section.partition("`")[0]] = "\n".join(lines).rstrip()
    text = beginning.rstrip() + "\n"
    for notebook in [*words, *(name for name in kept if name not in words)]:
        table = pooled(published[notebook], list(kept[notebook].values()))
        text += HEADING + "\n".join([words.get(notebook, f"{notebook}`"), "", *table]) + "\n"
    return text


if __name__ == "__main__":
    if len(sys.argv) not in (1, 3):
        raise SystemExit("python -m bench.draws [SEED FOLDER]")
    if len(sys.argv) == 3:
        keep(sys.argv[1], Path(sys.argv[2]))
    DOCUMENT.write_text(renewed(DOCUMENT.read_text()))
