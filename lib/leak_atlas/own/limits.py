"""The largest AUC or TPR that an audit allows, as `leak-atlas audit --fail-above` gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from leak_atlas import BadInput
from leak_atlas.own import findings

LIMIT = re.compile(r"(?:auc|tpr@(?P<fpr>[\d.e-]+))=(?P<largest>[\d.e-]+)")
EXAMPLES = "auc=0.6 or, for TPR at an FPR, tpr@0.01=0.05"


class Limit(NamedTuple):
    """The largest AUC that an attack may have, or TPR at an FPR."""

    largest: float
    fpr: float | None = None  # None: it is an AUC

    def __str__(self) -> str:
        return "AUC" if self.fpr is None else f"TPR at {findings.percent(self.fpr)} FPR"


def limit(text: str) -> Limit:
    """`auc=0.6`, `tpr@0.01=0.05`; BadInput where it is neither, or where its numbers are no shares."""
    wrong = BadInput(f"--fail-above takes {EXAMPLES}, with numbers from 0 to 1, not '{text}'")
    match = LIMIT.fullmatch(text)
    if not match:
        raise wrong
    try:
        largest = float(match["largest"])
        fpr = float(match["fpr"]) if match["fpr"] else None
    except ValueError as error:
        raise wrong from error
    if not 0 <= largest <= 1 or (fpr is not None and not 0 < fpr <= 1):
        raise wrong
    return Limit(largest, fpr)


def exceeded(summary: Mapping[str, Any], limits: Sequence[Limit]) -> list[str]:
    """The limits that some attack's estimate exceeds, in words, by the summary of a report.

    The estimate decides: an interval that few samples make wide would let a leak pass. BadInput
    where a limit cannot be judged.
    """
    lines = []
    if limits and summary["warnings"]:
        raise BadInput(f"--fail-above cannot be judged: {summary['warnings'][0]}")
    for one in limits:
        estimates = {
            name: numbers["auc"] if one.fpr is None else numbers["tpr"][f"{one.fpr:g}"]
            for name, numbers in summary["attacks"].items()
        }
        resolved = [name for name, estimate in estimates.items() if estimate["resolved"]]
        if not resolved:
            few = f"{summary['samples']['non_members']:,} non-members are too few"
            raise BadInput(f"--fail-above cannot be judged: for {one} {few}")
        strongest = max(resolved, key=lambda name: estimates[name]["value"])
        value, low, high = (estimates[strongest][end] for end in ("value", "low", "high"))
        if value > one.largest:
            interval = f"{value:.3f} [{low:.3f}, {high:.3f}]"
            lines.append(f"{one} of {strongest} is {interval}, not {one.largest:g} or less")
    return lines
