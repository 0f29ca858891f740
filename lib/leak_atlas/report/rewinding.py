"""Claims on CWRF that several pages judge: what a defence gains inside it, and by what."""

from __future__ import annotations

from leak_atlas.report.ledger import Claim

__all__ = ["leaks_less_inside_claim", "rewinding_claim"]


def leaks_less_inside_claim(defence: str, *, paper: str, quote: str, section: str) -> Claim:
    """Inside CWRF a defence leaks less than from scratch: the paper's claim.

    Its name is the defence's in lower case, and `_leak`. The estimate is the difference of the AUC,
    inside minus from scratch, mean of both attacks.
    """
    return Claim(
        f"{defence.lower()}_leak",
        f"{defence} leaks less inside CWRF than from scratch",
        fails=f"{defence} leaks more inside CWRF than from scratch",
        quantity=f"AUC of {defence}, mean of both attacks: inside CWRF minus from scratch",
        below=0.0,
        margin=0.02,
        paper=paper,
        quote=quote,
        section=section,
        control="the same strength; every shadow model goes through its target's trainings",
    )


def rewinding_claim(name: str, variant_label: str) -> Claim:
    """At matched AUC, rewinding is worth more than the same trainings with nothing rewound: ours.

    `variant_label` names the variants in the plural ("defences inside CWRF"). The estimate is
    `Comparison.at_matched_auc` with the line of early stopping and the `other` variants, of which
    nothing was rewound.
    """
    matched = f"At matched AUC of LiRA, {variant_label} are"
    return Claim(
        name,
        f"{matched} more accurate than with nothing rewound",
        fails=f"{matched} less accurate than with nothing rewound",
        quantity="test accuracy at matched AUC of LiRA: with the rewind minus without it",
        above=0.0,
        margin=0.02,
        ours="our control",
        control="the same trainings and number of epochs; paired over networks",
    )
