"""What a report says in short changes with its verdicts and its numbers."""

import pytest

from leak_atlas import report
from leak_atlas.audit import Estimate
from leak_atlas.report import summary

RIGHT, WRONG = Estimate(0.3, 0.2, 0.4, 5), Estimate(-0.3, -0.4, -0.2, 5)


def judged(
    *found: Estimate, regime: dict[str, float] | None = None, **learnt: float
) -> list[dict[str, object]]:
    claims = [report.Claim(f"c{i}", f"Claim {i}.", "slope", above=0.0) for i in range(len(found))]
    told = report.claims(*claims, regime=regime)
    return list(report.judge(told, regime=learnt, **{f"c{i}": one for i, one in enumerate(found)}))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], ""),
        ([RIGHT], "Its one claim holds"),
        ([RIGHT, RIGHT], "Of 2 claims 2 hold"),
        ([RIGHT, WRONG, WRONG], "Of 3 claims 1 holds and 2 fail"),
    ],
)
def test_the_tally(found, said):
    assert summary.tally(judged(*found)) == said


def test_networks_stand_with_their_regime():
    assert summary.networks(judged(RIGHT)) == "no regime is declared"
    assert summary.networks([row for row in judged(RIGHT) if row.pop("learnt") == {}]) == "", (
        "judged before it was kept"
    )
    assert (
        summary.networks(judged(RIGHT, regime={"fit": 0.9}, fit=0.95))
        == "fit 0.950: within the regime"
    )
    assert summary.networks(judged(RIGHT, regime={"fit": 0.9}, fit=0.5)) == (
        "fit 0.500: outside the regime (fit 0.500, not 0.9)"
    )
    many = summary.networks(
        judged(RIGHT, regime=dict.fromkeys("abcd", 0.5), a=0.9, b=0.6, c=0.8, d=0.7)
    )
    assert (
        many
        == "b 0.600 (at least 0.5), and 3 more accuracies, farther from their least: within the regime"
    )


def test_two_claims_of_a_verdict_are_told_and_the_rest_is_counted():
    lines = summary.short(judged(*[RIGHT] * 5, WRONG)).splitlines()
    assert lines[2] == (
        "> ✓ **Holds:** Claim 0 (0.300 [0.200, 0.400], rule >\u00a00); Claim 1 (0.300 [0.200, 0.400], rule >\u00a00); "
        "and 3 more."
    )
    assert lines[4].startswith("> ✗ **Fails:** Claim 5 (−0.300") and summary.short([]) == ""


def test_the_surest_are_the_papers_own_in_their_order():
    rows = [
        {"verdict": v, "p": p, "paper": paper, "text": str(i)}
        for i, (v, p, paper) in enumerate(
            [
                ("holds", 0.02, "Fig. 1"),
                ("holds", 1e-9, "ours"),
                ("undecided", 0.5, "Fig. 1"),
                ("holds", 1e-3, "Fig. 1, four networks"),
                ("holds", 0.04, "Fig. 1"),
                ("fails", 0.01, "ours"),
            ]
        )
    ]
    assert [row["text"] for row in summary.surest(rows)] == ["0", "3", "5"]
