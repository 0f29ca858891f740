"""`python -m leak_atlas.audit mine.npz`: logits of your own target, and of its shadow models, to
the full report.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from leak_atlas import BadInput, report, typed
from leak_atlas.engine import files, paths
from leak_atlas.engine.command import Parser, command, end_with_parent
from leak_atlas.lab.declare import Notebook
from leak_atlas.own import findings, logits
from leak_atlas.report.batch import execute

HELP = f"""The arrays, by name (N samples, C classes, M shadow models, Z samples of a population):

{logits.described()}

target, labels and member are needed. With shadows and in_shadow come LiRA, BASE and an attack
network, with the population RMIA too. In place of (N, C) stands {logits.QUERIES}.

Exit codes: 0; 1 where --fail-above is exceeded; 2 where an input is wrong, or where --fail-above
cannot be judged: the arrays look swapped, or the non-members are too few for its FPR.
"""
LIMIT = "auc=0.6 or, for TPR at an FPR, tpr@0.01=0.05"
EXCEEDED = 1  # exit code


class Limit(NamedTuple):
    """The largest AUC that an attack may have, or TPR at an FPR."""

    largest: float
    fpr: float | None = None  # None: it is an AUC

    def __str__(self) -> str:
        return "AUC" if self.fpr is None else f"TPR at {findings.percent(self.fpr)} FPR"


@command
def main(arguments: list[str] | None = None) -> int:
    how = argparse.RawDescriptionHelpFormatter
    parser = Parser(
        prog=typed("leak_atlas.audit"), description=__doc__, epilog=HELP, formatter_class=how
    )
    parser.add_argument("file", type=Path, help="an .npz of the arrays below")
    parser.add_argument("--name", default="", help="name of the report (the file's)")
    made = "write the file instead: networks trained in seconds"
    parser.add_argument("--example", action="store_true", help=made)
    fails = f"exit code 1 where the estimate of some attack is larger, not its interval: {LIMIT}; may be repeated"
    parser.add_argument("--fail-above", action="append", default=[], metavar="LIMIT", help=fails)
    chosen = parser.parse_args(arguments)
    limits = [limit(each) for each in chosen.fail_above]
    if chosen.example:
        if chosen.file.exists() or chosen.file.suffix != ".npz":
            why = f"{chosen.file} is there already or no .npz; name another"
            raise BadInput(f"--example makes a new .npz, and {why}")
        logits.save(chosen.file, logits.example())
        print(
            f"{chosen.file} is ready; audit it: {typed(f'leak_atlas.audit {quote(str(chosen.file))}')}"
        )
        return 0
    place = logits.place(chosen.name or chosen.file.stem)
    page = place.parent / place.name.removesuffix(".csv")
    arrays = logits.read(chosen.file)  # what is wrong is told before anything is written
    samples = f"{arrays.member.sum():,} members, {(~arrays.member).sum():,} non-members"
    print(f"{chosen.file}: {samples}, {arrays.models} shadow models", flush=True)
    files.folder(page.parent, "LEAK_ATLAS_OUTPUTS moves it")
    notebook = Notebook(page.name, paths.NOTEBOOKS / "own" / "audit_my_logits.py")
    rates = sorted({*findings.RATES, *(each.fpr for each in limits if each.fpr)}, reverse=True)
    given = {"file": str(chosen.file.resolve()), "name": page.name, "rates": rates}
    with ProcessPoolExecutor(1, get_context("spawn"), end_with_parent) as pool:
        done = pool.submit(execute, page.parent, notebook, given, True)
    if error := str(done.exception() or "") or done.result():
        raise BadInput(f"{error}; {page}.ipynb has how far it came")
    report.index(page.parent)
    print(said(files.notebook(page.with_name(f"{page.name}.ipynb"))))
    for what, suffix in {
        "page": "html",
        "notebook": "ipynb",
        "scores": "csv",
        "numbers": "json",
    }.items():
        print(f"  {what:<9} {page}.{suffix}")
    summary = page.with_name(f"{page.name}.json")
    above = exceeded(files.from_json(files.text(summary), summary, dict[str, Any]), limits)
    if above:
        print(f"leak atlas: above the limit: {'; '.join(above)}", file=sys.stderr, flush=True)
    return EXCEEDED if above else 0


def limit(text: str) -> Limit:
    """`auc=0.6`, `tpr@0.01=0.05`; BadInput where it is neither, or where its numbers are no shares."""
    found = re.fullmatch(r"(?:auc|tpr@(?P<fpr>[\d.e-]+))=(?P<largest>[\d.e-]+)", text)
    try:
        numbers = (
            {name: float(each) for name, each in found.groupdict().items() if each} if found else {}
        )
    except ValueError:
        numbers = {}
    if (
        not numbers
        or not all(0 <= each <= 1 for each in numbers.values())
        or numbers.get("fpr") == 0
    ):
        raise BadInput(f"--fail-above takes {LIMIT}, with numbers from 0 to 1, not '{text}'")
    return Limit(**numbers)


def exceeded(summary: Mapping[str, Any], limits: Sequence[Limit]) -> list[str]:
    """The limits that some attack's estimate exceeds, in words, by the summary of a report.

    The estimate decides: an interval that few samples make wide would let a leak pass. BadInput
    where a limit cannot be judged.
    """
    lines = []
    if limits and summary["warnings"]:
        raise BadInput(f"--fail-above cannot be judged: {summary['warnings'][0]}")
    for one in limits:
        each = {
            name: numbers["auc"] if one.fpr is None else numbers["tpr"][f"{one.fpr:g}"]
            for name, numbers in summary["attacks"].items()
        }
        known = {name: number for name, number in each.items() if number["resolved"]}
        if not known:
            few = f"{summary['samples']['non_members']:,} non-members are too few"
            raise BadInput(f"--fail-above cannot be judged: for {one} {few}")
        name = max(known, key=lambda own: known[own]["value"])
        value, low, high = (known[name][end] for end in ("value", "low", "high"))
        if value > one.largest:
            lines.append(
                f"{one} of {name} is {value:.3f} [{low:.3f}, {high:.3f}], not {one.largest:g} or less"
            )
    return lines


def said(notebook: Any) -> str:
    """What the report says in short: its first output in words."""
    outputs = [
        output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())
    ]
    return next(str(data["text/plain"]) for data in outputs if "text/markdown" in data)


if __name__ == "__main__":
    sys.exit(main())
