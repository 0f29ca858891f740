"""Which rules of `quick` changed after its evaluation seed had been judged? docs/rule_changes.md,
from the history in git.

    python -m bench.rule_changes

Whoever changes a rule after a result is seen may, without intent, choose the result. So each such
change is listed, with the verdict that the claim had first and the one that it has now.
"""

from __future__ import annotations

import ast
import json
import math
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.draws import Claims, by_name
from leak_atlas.report import ledger
from leak_atlas.report.render import INJECTED

DOCUMENT = Path("docs/rule_changes.md")
REPORTS = "outputs/reports/quick"
RESULTS = f"{REPORTS}/results.json"
FIRST = "dc177994"  # the commit that published the first verdicts on seed 101
HEADING = "\n## "
NAMES = {"below resolution": "underpowered", "undecidable": "underpowered"}  # of former verdicts

Claim = dict[str, Any]


def changes(first: Claims, now: Claims) -> list[tuple[str, str, str, str]]:
    """Of each claim that changed: its text, what changed, and the verdicts first and now.

    `first` are a page's claims when the seed was judged first. Other words are no change.
    """
    rows = []
    for name, claim in now.items():
        if name not in first:
            added = "added as a headline" if claim["headline"] else "added"
            rows.append((claim["text"], added, "–", verdict(claim)))
        elif what := "; ".join(_differences(first[name], claim)):
            rows.append((claim["text"], what, verdict(first[name]), verdict(claim)))
    for name, claim in first.items():
        if name not in now:
            rows.append((claim["text"], "removed", verdict(claim), "–"))
    return rows


def _differences(first: Claim, now: Claim) -> list[str]:
    found = []
    before, after = (abs(ledger.border(claim)) for claim in (first, now))
    if before != after and not math.isnan(before):
        found.append(f"border {before:g} → {after:g}")
    if first["headline"] != now["headline"]:
        found.append("became a headline" if now["headline"] else "is no headline any more")
    if "inert" not in first["verdict"] and now["inert"]:
        found.append("a check fails now")
    if "inert" in first["verdict"] and not now["inert"]:
        found.append("the check that failed passes or was replaced")
    if _moved(first, now):
        found.append("value outside its first interval")
    if not found and verdict(first) != verdict(now):
        found.append("new run")
    return found


def _moved(first: Claim, now: Claim) -> bool:
    """Whether a value lies outside its first interval. Rounding alone does not move it so far: the
    quantity, the networks or the attack changed.
    """
    ends = first["low"], first["high"], now["value"]
    if None in ends:
        return False
    low, high, value = ends
    mirrored = low <= -value <= high  # some claims were turned round
    return not (low <= value <= high or mirrored)


def verdict(claim: Claim) -> str:
    word = str(claim["verdict"])
    return NAMES.get(word, word)


def parameters(notebook: str) -> dict[str, Any]:
    """The parameters with which a notebook, as JSON, was executed."""
    values = {}
    for cell in json.loads(notebook)["cells"]:
        if {"parameters", INJECTED} & set(cell["metadata"].get("tags", [])):
            for line in ast.parse("".join(cell["source"])).body:
                if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                    values[line.targets[0].id] = ast.literal_eval(line.value)
    return values


def resized(first: dict[str, Any], now: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Parameters with other values: name, value first and now. Renamed ones are not seen."""
    both = [name for name in first if name in now and first[name] != now[name]]
    return [(name, str(first[name]), str(now[name])) for name in both]


def git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def judged_first() -> dict[str, tuple[str, Claims]]:
    """For each notebook, the commit that first judged it on the evaluation seed, and its claims."""
    commits = git("log", "--reverse", "--format=%h", f"{FIRST}~1..", "--", RESULTS).split()
    first: dict[str, tuple[str, Claims]] = {}
    for commit in commits:
        for entry in json.loads(git("show", f"{commit}:{RESULTS}")):
            if entry["claims"] and entry["notebook"] not in first:
                first[entry["notebook"]] = commit, by_name(entry["claims"])
    return first


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def sections() -> str:
    """A section for each notebook of which a rule or a size changed."""
    text = ""
    now = {entry["notebook"]: entry for entry in json.loads(Path(RESULTS).read_text())}
    for notebook, (commit, first) in sorted(judged_first().items()):
        if notebook not in now:
            continue
        file = f"{REPORTS}/{notebook}.ipynb"
        sizes = resized(
            parameters(git("show", f"{commit}:{file}")), parameters(Path(file).read_text())
        )
        rows = changes(first, by_name(now[notebook]["claims"]))
        if not rows and not sizes:
            continue
        text += f"{HEADING}{notebook}\n\n"
        if sizes:
            text += "\n".join(table(("parameter", "first", "now"), sizes)) + "\n\n"
        if rows:
            text += "\n".join(table(("claim", "change", "verdict first", "now"), rows)) + "\n"
        text = text.rstrip() + "\n"
    return text


if __name__ == "__main__":
    beginning = DOCUMENT.read_text().partition(HEADING)[0]
    DOCUMENT.write_text(beginning.rstrip() + "\n" + sections())
