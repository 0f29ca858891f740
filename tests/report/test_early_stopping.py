"""One form of the claim on early stopping, and its verdicts at the margin and out of reach."""

import numpy as np
import pytest

from leak_atlas import BadInput, report
from leak_atlas.audit import Comparison, Estimate, mean_ci
from tests.audit.test_comparison import separated

CLAIM = report.early_stopping_claim("stopping", "pruned networks", attack="RMIA")


def judged(estimate: Estimate, **given) -> dict:
    return next(iter(report.judge(report.claims(CLAIM), stopping=estimate, **given)))


def test_it_claims_superiority_by_a_margin_of_a_hundredth() -> None:
    assert (CLAIM.name, CLAIM.above, CLAIM.margin, CLAIM.ours) == ("stopping", 0.0, 0.01, True)
    with pytest.raises(BadInput, match="margin above 0"):
        report.early_stopping_claim("a", "b", margin=0.0)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.002, 0.06, "holds"),
        (-0.06, -0.002, "fails"),
        (-0.004, 0.014, "undecided"),
        (-0.02, 0.02, "underpowered"),
    ],
)
def test_a_verdict_follows_the_interval(low: float, high: float, verdict: str) -> None:
    assert judged(Estimate((low + high) / 2, low, high, 10))["verdict"] == verdict


def test_out_of_reach_it_is_underpowered_with_the_reason_on_the_page() -> None:
    accuracies = {"epoch": [0.5], "dense": [0.7], "defended": [0.9]}
    areas = {"epoch": 0.6, "dense": 0.8, "defended": 0.52}
    attacks = {(name, "RMIA"): separated([area]) for name, area in areas.items()}
    plane = Comparison(accuracies, attacks, checkpoints={"dense": ["epoch"]})
    row = judged(plane.early_stopping("defended", "RMIA"))
    assert row["verdict"] == "underpowered"
    assert "the AUC of RMIA on defended is 0.520; the networks to compare with have" in row["note"]
    own = judged(plane.early_stopping("defended", "RMIA"), notes={"stopping": "see below"})
    assert own["note"] == f"{row['note']}; see below"
    assert judged(mean_ci(np.linspace(0, 0.01, 9)))["note"] == "", "matched: nothing to say"


@pytest.mark.parametrize(
    ("gain", "is_larger"),
    [
        (Estimate(0.04, 0.01, 0.07, 6), True),
        (Estimate(0.08, 0.05, 0.1, 6), False),
        (Estimate(0.04, 0.01, 0.07, 6, resolved=False), False),
    ],
)
def test_a_note_says_where_the_possible_bias_is_larger_than_the_gain(
    gain: Estimate, is_larger: bool
) -> None:
    note = report.bias_note(Estimate(0.06, -0.01, 0.13, 6), gain)
    assert "0.060 [−0.010, 0.130]" in note
    assert note.endswith("which is larger than the gain") == is_larger


def test_a_bias_for_the_defence_is_no_note_on_a_loss() -> None:
    loss = Estimate(-0.01, -0.02, 0.0, 6)
    assert report.bias_note(Estimate(0.06, -0.01, 0.13, 6), loss) == ""
