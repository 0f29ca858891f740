"""The one form of a claim that a defence is worth more than stopping the training earlier."""

from __future__ import annotations

from leak_atlas.audit import Estimate
from leak_atlas.report.ledger import Claim
from leak_atlas.report.summary import listed

__all__ = ["bias_note", "early_stopping_claim"]


def early_stopping_claim(
    name: str,
    variant_label: str,
    attack: str = "LiRA",
    margin: float = 0.01,
    headline: bool = False,
) -> Claim:
    """A claim of superiority over early stopping, about what `Comparison.early_stopping` estimates.

    `variant_label` names the variant in the plural ("networks pruned by magnitude"). The claim
    holds where the whole 95 % interval lies above 0. An interval that contains 0 and whose
    half-width exceeds the margin is underpowered: at .01 most pages of the profile `quick` are.
    Where the network's epochs do not surround the variant's AUC, the estimate is not resolved and
    its `reason` is the verdict's note. Raises BadInput on a margin that is not above 0.
    """
    matched = f"At matched AUC of {attack}, {variant_label} are"
    return Claim(
        name,
        f"{matched} more accurate than networks stopped early",
        fails=f"{matched} less accurate than networks stopped early",
        quantity=f"test accuracy at matched AUC of {attack}: "
        f"{variant_label} minus networks stopped early",
        above=0.0,
        margin=margin,
        ours=True,
        control="early stopping: networks without the intervention, after fewer epochs, "
        "joined by a line through their means over targets",
        headline=headline,
    )


def bias_note(
    bias: Estimate, gain: Estimate, under: str = "early stopping compared with itself"
) -> str:
    """A note on a gain over early stopping: the possible bias (`audit.possible_bias`), and whether
    it is larger than the gain. None ("") on a loss, which a bias that favours the defence does not
    explain. `under` names the page's section or table that has the bias.
    """
    if gain.resolved and gain.value <= 0:
        return ""
    note = listed({f"possible bias, under “{under}”": bias})
    if gain.resolved and gain.value < bias.value:
        note += ", which is larger than the gain"
    return note
