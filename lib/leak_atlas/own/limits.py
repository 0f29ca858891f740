"""The largest AUC or TPR that an audit allows, as `leak-atlas audit --fail-above` gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from leak_atlas import BadInput
from leak_atlas.own import findings

FORM = re.compile(r"(auc|tpr@(?P<fpr>[\d.]+))=(?P<largest>[\d.]+)")


class Limit(NamedTuple):
    """The largest AUC that an attack may have, or TPR at an FPR."""

    largest: float
    fpr: float | None = None  # None: it is an AUC

    def __str__(self) -> str:
        return "AUC" if self.fpr is None else f"TPR at {findings.percent(self.fpr)} FPR"

    def estimate(self, attack: Mapping[str, Any]) -> Mapping[str, Any]:
        """The number that is limited, of an attack in a report's summary."""
        return attack["auc"] if self.fpr is None else attack["tpr"][f"{self.fpr:g}"]


def limit(text: str) -> Limit:
    """`auc=0.6`, `tpr@0.01=0.05`; raises BadInput if it is neither, or if its numbers are no
    shares.
    """
    try:
        given = FORM.fullmatch(text)
        if given:
            largest = float(given["largest"])
            fpr = float(given["fpr"]) if given["fpr"] else None
            if largest <= 1 and (fpr is None or 0 < fpr <= 1):
                return Limit(largest, fpr)
    except ValueError:  # two dots
        pass
    raise BadInput(
        "--fail-above takes auc=0.6 or, for TPR at an FPR, tpr@0.01=0.05, with numbers from 0 to "
        f"1, not '{text}'"
    )


def exceeded(summary: Mapping[str, Any], limits: Sequence[Limit]) -> list[str]:
    """The limits that some attack's estimate exceeds, in words, by the summary of a report.

    The estimate decides: an interval that few samples make wide would let a leak pass. Raises
    BadInput if a limit cannot be judged.
    """
    lines = []
    if limits and summary["warnings"]:
        raise BadInput(f"--fail-above cannot be judged: {summary['warnings'][0]}")
    for one in limits:
        estimates = {name: one.estimate(attack) for name, attack in summary["attacks"].items()}
        resolved = [name for name, estimate in estimates.items() if estimate["resolved"]]
        if not resolved:
            raise BadInput(
                f"--fail-above cannot be judged: for {one} {summary['samples']['non_members']:,} "
                "non-members are too few"
            )
        strongest = max(resolved, key=lambda name: estimates[name]["value"])
        estimate = estimates[strongest]
        if estimate["value"] > one.largest:
            interval = f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"
            lines.append(f"{one} of {strongest} is {interval}, not {one.largest:g} or less")
    return lines
