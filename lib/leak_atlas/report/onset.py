"""The claims about where in a network PPTP's disparity begins, in one form."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from leak_atlas import BadInput
from leak_atlas.report.ledger import Claim

__all__ = ["SILENT", "onset_claims"]

# A stage whose disparity is smaller than this counts as silent. The papers name no size: the border
# is ours. Intervals of `quick` are too wide to show that a disparity is below .02.
SILENT = 0.04
ORDER = ["stage1", "stage2", "stage3", "stage4", "stage5"]


def onset_claims(
    begins: str,
    variants: str,
    paper: str,
    quote: str,
    section: str,
    headlines: Collection[str] = (),
) -> tuple[Claim, Claim, Claim]:
    """Three claims: no stage before `begins` shows a disparity, `begins` shows one, and it shows
    more than they do.

    `variants` names what is varied in the plural ("map sizes"), "" where nothing is. The estimates
    of all are `ProbeComparison.onset(begins)`. `headlines` names those that answer the page's
    title. That `begins` shows a disparity is marked as ours, as its border is. Raises BadInput if no
    stage stands before `begins`.
    """
    if begins not in ORDER[1:]:
        raise BadInput(f"begins takes one of {', '.join(ORDER[1:])}, not '{begins}'")
    last = ORDER[ORDER.index(begins) - 1].removeprefix("stage")
    early = f"stages 1 and {last}" if last == "2" else f"stages 1 to {last}"
    stage = begins.replace("stage", "stage ")
    distance = "by Euclidean distance"
    every = f" for all {variants}" if variants else ""
    any_variant = f" for at least one of the {variants}" if variants else ""
    over_all = f" over all {variants}" if variants else ""
    averaged = f", averaged over the {variants}" if variants else ""
    origin: dict[str, Any] = {"paper": paper, "quote": quote, "section": section}
    silent = Claim(
        "early_silent",
        f"{early.capitalize()} have a disparity below {SILENT:g}{every}",
        fails=f"At least one of {early} has a disparity above {SILENT:g}{any_variant}",
        quantity=f"largest disparity |AUC − 0.5| of {early}{over_all}, {distance}",
        below=SILENT,
        margin=SILENT,
        **origin,
        control="two seeds on the same data",
        headline="early_silent" in headlines,
    )
    loud = Claim(
        "begins_loud",
        f"{stage.capitalize()} has a disparity above {SILENT:g}{every}",
        fails=f"{stage.capitalize()} has a disparity below {SILENT:g}{any_variant}",
        quantity=("smallest " if variants else "")
        + f"disparity |AUC − 0.5| of {stage}{over_all}, {distance}",
        above=SILENT,
        margin=SILENT,
        ours=f"our border, after {paper}",
        quote=quote,
        section=section,
        control="two seeds on the same data",
        headline="begins_loud" in headlines,
    )
    first = Claim(
        "begins",
        f"{stage.capitalize()} has a larger disparity than each of {early}{averaged}",
        fails=f"At least one of {early} has a larger disparity than {stage}{averaged}",
        quantity=f"disparity |AUC − 0.5| {distance}: {stage} minus the largest of {early}"
        + (f", mean over the {variants}" if variants else ""),
        above=0.0,
        margin=0.02,
        **origin,
        control="earlier stages of the same networks; two seeds on the same data",
        headline="begins" in headlines,
    )
    return silent, loud, first
