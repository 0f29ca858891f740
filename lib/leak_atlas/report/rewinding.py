"""Claims on CWRF that several pages judge: what a defence gains inside it, and by what."""

from __future__ import annotations

from leak_atlas.report.ledger import Claim

__all__ = ["gains_inside_claims", "rewinding_claim"]

PAIRED = "the same strength; every shadow model goes through its target's trainings"


def gains_inside_claims(
    defence: str, *, paper: str, quote: str, section: str
) -> tuple[Claim, Claim]:
    """Inside CWRF a defence is more accurate, and leaks less, than from scratch: the paper's claims.

    Their names are the defence's in lower case, and `_accuracy` or `_leak`. Estimates are the
    differences, inside minus from scratch: of the test accuracy, and of the AUC, mean of both
    attacks.
    """
    where = {"paper": paper, "quote": quote, "section": section, "control": PAIRED}
    accuracy = Claim(
        f"{defence.lower()}_accuracy",
        f"{defence} is more accurate inside CWRF than from scratch",
        quantity=f"test accuracy of {defence}: inside CWRF minus from scratch",
        above=0.0,
        margin=0.02,
        **where,  # type: ignore[arg-type]
    )
    leak = Claim(
        f"{defence.lower()}_leak",
        f"{defence} leaks less inside CWRF than from scratch",
        quantity=f"AUC of {defence}, mean of both attacks: inside CWRF minus from scratch",
        below=0.0,
        margin=0.02,
        **where,  # type: ignore[arg-type]
    )
    return accuracy, leak


def rewinding_claim(name: str, variant_label: str, attack: str = "LiRA") -> Claim:
    """At matched AUC, rewinding is worth more than the same trainings with nothing rewound: ours.

    `variant_label` names the variants in the plural ("defences inside CWRF"). The estimate is
    `Comparison.at_matched_auc` with the line of early stopping and the `other` variants, of which
    nothing was rewound.
    """
    return Claim(
        name,
        f"At matched AUC of {attack}, {variant_label} are more accurate than with nothing rewound",
        quantity=f"test accuracy at matched AUC of {attack}: with the rewind minus without it",
        above=0.0,
        margin=0.02,
        ours="our control",
        control="the same trainings and number of epochs; paired over networks",
        headline=True,
    )
