"""Claims on CWRF that pages share: what they say, and which side of the border holds."""

from leak_atlas import report
from leak_atlas.audit import Estimate


def test_less_leakage_inside_holds_below_zero() -> None:
    claim = report.leaks_less_inside_claim("CCL", paper="Fig. 5a", quote="", section="5.2")
    rose, fell = Estimate(0.03, 0.02, 0.04, 10), Estimate(-0.03, -0.04, -0.02, 10)
    for estimate, verdict in ((fell, "holds"), (rose, "fails")):
        assert report.judge(report.claims(claim), ccl_leak=estimate)["ccl_leak"] == verdict
    assert claim.fails == "CCL leaks more inside CWRF than from scratch"


def test_rewinding_is_worth_more_above_zero() -> None:
    claim = report.rewinding_claim("worth", "defences inside CWRF")
    gained, lost = Estimate(0.03, 0.02, 0.04, 10), Estimate(-0.03, -0.04, -0.02, 10)
    for estimate, verdict in ((gained, "holds"), (lost, "fails")):
        assert report.judge(report.claims(claim), worth=estimate)["worth"] == verdict
