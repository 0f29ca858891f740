"""Claims on CWRF that pages share: what they say, and which side of the border holds."""

from leak_atlas import report
from leak_atlas.audit import Estimate


def test_a_gain_is_more_accuracy_and_less_leakage() -> None:
    accuracy, leak = report.gains_inside_claims("CCL", paper="Fig. 5a", quote="", section="5.2")
    rose, fell = Estimate(0.03, 0.02, 0.04, 10), Estimate(-0.03, -0.04, -0.02, 10)
    for first, second, verdict in ((rose, fell, "holds"), (fell, rose, "fails")):
        found = report.judge(report.claims(accuracy, leak), ccl_accuracy=first, ccl_leak=second)
        assert {row["verdict"] for row in found} == {verdict}


def test_rewinding_is_a_headline_of_ours_that_names_its_attack() -> None:
    claim = report.rewinding_claim("rewinding", "A3 networks", attack="RMIA")
    assert claim.headline and claim.ours and claim.above == 0.0
    assert claim.text == (
        "At matched AUC of RMIA, A3 networks are more accurate than with nothing rewound"
    )
