"""What a report says in short: its headline claims with their verdicts, then its limits."""

from typing import Any

import pytest

from leak_atlas import report
from leak_atlas.audit import Estimate
from leak_atlas.report import summary

RIGHT, WRONG, OPEN = (
    Estimate(middle, middle - 0.1, middle + 0.1, 5) for middle in (0.3, -0.3, 0.0)
)


def judged(
    *estimates: Estimate,
    headline: int | None = None,
    regime: dict[str, float] | None = None,
    checks: dict[str, dict[str, bool]] | None = None,
    **learnt: float,
) -> list[dict[str, Any]]:
    given = {f"c{i}": estimate for i, estimate in enumerate(estimates)}
    claims = [
        report.Claim(name, f"Claim {i}.", "slope", above=0.0, ours=True, headline=i == headline)
        for i, name in enumerate(given)
    ]
    declared = report.claims(*claims, regime=regime)
    return list(report.judge(declared, checks=checks, regime=learnt, **given))


@pytest.mark.parametrize(
    ("estimate", "word"),
    [
        (RIGHT, "raises"),
        (WRONG, "lowers"),
        (OPEN, "neither significantly raises nor lowers"),
        (Estimate(0.1, 0.0, 0.2, 5), "neither significantly raises nor lowers"),
        (Estimate(0.3, 0.2, 0.4, 1, resolved=False), "raises or lowers (not resolved)"),
    ],
)
def test_an_effect_is_named_by_the_sign_of_its_interval(estimate, word):
    assert report.effect(estimate, "raises", "lowers") == word


def test_a_note_lists_estimates_by_their_words():
    steps = {"a to b": RIGHT, "b to c": WRONG}
    assert report.listed(steps) == "a to b: 0.300 [0.200, 0.400]; b to c: −0.300 [−0.400, −0.200]"


def test_a_note_says_which_estimate_is_not_resolved():
    steps = {"a": RIGHT, "b": Estimate(0.3, 0.2, 0.4, 1, resolved=False)}
    note = report.listed(steps)
    assert note == "a: 0.300 [0.200, 0.400]; b: 0.300 [0.200, 0.400] (not resolved)"


def test_an_undecided_effect_may_have_words_of_its_own():
    word = "does not significantly change"
    assert report.effect(OPEN, "raises", "lowers", undecided=word) == word
    assert report.effect(RIGHT, "raises", "lowers", undecided=word) == "raises"
    assert report.effect(RIGHT, "raises", "lowers", border=1.0) == "lowers"


UNRESOLVED = Estimate(0.3, 0.2, 0.4, 5, resolved=False, reason="no network has this AUC")


def test_the_effect_of_an_unresolved_estimate_claims_no_significance():
    words = "is significantly more", "is significantly less", "is not significantly more"
    assert report.effect(UNRESOLVED, *words) == "is more or is less (not resolved)"
    assert report.effect(UNRESOLVED, *words, unresolved="may be more") == "may be more"


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (RIGHT, "is significantly more accurate than early stopping"),
        (WRONG, "is significantly less accurate than early stopping"),
        (OPEN, "is not significantly more accurate than early stopping"),
        (UNRESOLVED, "cannot be compared with early stopping"),
    ],
)
def test_a_title_compares_accuracies_only_where_they_can_be_compared(difference, words):
    assert report.compared_accuracy(difference) == words
    plural = report.compared_accuracy(difference, "a longer training", verb="are")
    longer = words.replace("early stopping", "a longer training")
    assert plural == longer.replace("is ", "are ")


@pytest.mark.parametrize("margin", [None, 1.0, 0.02])
def test_a_quantity_that_is_not_resolved_is_not_measured(margin):
    claim = report.Claim("c", "A rises", "slope", above=0.0, margin=margin, ours=True)
    short = summary.short(list(report.judge(report.claims(claim), c=UNRESOLVED)))
    assert "○ **Not measured:** “A rises”." in short and "no network has this AUC" in short
    assert "interval contains" not in short


def test_headlines_answer_the_title_and_the_limits_follow():
    marked = summary.short(judged(WRONG, RIGHT, OPEN, headline=1))
    assert "✓ **Yes.** Claim 1: 0.300 (95\u00a0%\u00a0CI 0.200 to 0.400)." in marked
    assert "Measured: slope; holds if \\>\u00a00; n\u00a0=\u00a05." in marked
    assert "Claim 0" not in marked and "Networks:" not in marked
    unmarked = summary.short(judged(WRONG, OPEN, RIGHT))
    assert "✗ **No.** “Claim 0” does not hold: −0.300" in unmarked
    assert (
        "◐ **Undecided:** “Claim 1”. The interval contains the border 0: 0.000" in unmarked
        and "Claim 2" not in unmarked
    )
    assert summary.short([]) == ""


def test_an_effect_that_is_too_small_to_matter_says_so():
    slope = report.Claim("slope", "A rises", "slope", above=0.0, margin=0.5, ours=True)
    equal = report.Claim("equal", "A and B are alike", "gap", within=0.5, ours=True)
    judge = report.judge(report.claims(slope, equal), slope=RIGHT, equal=RIGHT)
    short = summary.short(list(judge))
    assert "below the smallest effect of interest, 0.5" in short
    failed = summary.short(list(report.judge(report.claims(slope), slope=WRONG)))
    assert "below the smallest effect of interest, 0.5" in failed
    assert "the interval excludes 0, so there is a difference" in short
    wide = Estimate(0.7, 0.6, 0.8, 5)
    judge = report.judge(report.claims(slope, equal), slope=wide, equal=OPEN)
    short = summary.short(list(judge))
    assert "smallest effect" not in short and "excludes 0" not in short


def test_a_claim_that_fails_is_answered_by_the_sentence_that_is_true():
    claim = report.Claim("c", "A rises", "slope", above=0.0, ours=True, fails="A falls")
    answered = summary.short(list(report.judge(report.claims(claim), c=WRONG)))
    assert "✗ **No.** A falls: −0.300" in answered
    assert "A falls" not in summary.short(list(report.judge(report.claims(claim), c=RIGHT)))


def test_a_warning_stands_before_the_verdicts():
    first, *_ = summary.short(judged(RIGHT, regime={"fit": 0.9}, fit=0.5)).splitlines()
    assert "did not train as required" in first and "fit 0.500 (required: 0.9)" in first
    inside = summary.short(judged(RIGHT, regime={"fit": 0.9}, fit=0.95))
    assert "did not train as required" not in inside


def test_in_short_says_that_a_manipulation_check_failed():
    rows = judged(RIGHT, checks={"c0": {"pruning removes weights": False}})
    assert "**Not tested:** “Claim 0”." in summary.short(rows)
    assert "manipulation check failed: “pruning removes weights”" in summary.short(rows)


@pytest.mark.parametrize(
    ("rule", "estimate", "said"),
    [
        ({"above": 0.0}, Estimate(0.0, -0.01, 0.01, 5), "It excludes 0.02, the smallest effect"),
        ({"below": 0.0}, Estimate(0.0, -0.01, 0.01, 5), "It excludes −0.02, the smallest effect"),
        ({"above": 0.5}, Estimate(0.5, 0.49, 0.51, 5), "It excludes 0.52, the border plus"),
        ({"above": 0.0}, Estimate(0.01, -0.005, 0.025, 5), ""),
    ],
)
def test_an_undecided_answer_says_which_effect_it_excludes(rule, estimate, said):
    claim = report.Claim("c", "A rises", "slope", margin=0.02, ours=True, **rule)
    answer = summary.short(list(report.judge(report.claims(claim), c=estimate)))
    assert "Undecided" in answer
    assert said in answer and ("excludes" in answer) == bool(said)


@pytest.mark.parametrize(
    ("text", "border", "said"),
    [
        ("A rises", 0.0, "✓ Yes. A rises: 0.300 (0.200 to 0.400)."),
        ("A is likely", 0.1, "✓ Yes. A is likely: 0.300 (0.200 to 0.400). Border: 0.1."),
        ("A is above 0.1", 0.1, "✓ Yes. A is above 0.1: 0.300 (0.200 to 0.400)."),
        ("A is above .1", 0.1, "✓ Yes. A is above .1: 0.300 (0.200 to 0.400)."),
        ("A is above 10 %", 0.1, "✓ Yes. A is above 10 %: 0.300 (0.200 to 0.400)."),
        ("A is above .15", 0.1, "✓ Yes. A is above .15: 0.300 (0.200 to 0.400). Border: 0.1."),
        ("A rises", 0.3, "◐ Undecided: “A rises”. The interval contains the border 0.3: 0.300"),
    ],
)
def test_a_finding_names_its_border_once(text, border, said):
    claim = report.Claim("c", text, "slope", above=border, ours=True)
    (row,) = report.judge(report.claims(claim), c=RIGHT)
    found = f"{report.ledger.ICONS[row['verdict']]} {summary.finding(row)}"
    assert found.startswith(said)
    assert found.lower().count("border") == said.lower().count("border")
    assert "CI" not in found


def test_a_measured_number_does_not_name_the_border():
    claim = report.Claim("c", "A is dearer", "ratio", above=1.0, ours=True)
    (row,) = report.judge(report.claims(claim), c=Estimate(1.916, 1.711, 2.122, 5))
    assert summary.finding(row).endswith("1.916 (1.711 to 2.122). Border: 1.")


def test_of_two_borders_the_one_inside_the_interval_is_named():
    claim = report.Claim("c", "A stays", "slope", within=0.02, ours=True)
    below = Estimate(-0.01, -0.025, 0.005, 5)
    assert "the border −0.02:" in summary.short(list(report.judge(report.claims(claim), c=below)))
    both = Estimate(0.0, -0.03, 0.03, 5)
    assert "the border ±0.02:" in summary.short(list(report.judge(report.claims(claim), c=both)))


def test_only_the_requirement_that_is_not_met_is_named():
    rows = judged(RIGHT, regime={"fit": 0.9, "skill": 0.6}, fit=0.5, skill=0.7)
    first, *_ = summary.short(rows).splitlines()
    assert "fit 0.500" in first and "skill" not in first


@pytest.mark.parametrize(
    ("low", "shown"), [(0.0002, "0.0050 [0.0002, 0.0100]"), (0.0, "0.005 [0.000, 0.010]")]
)
def test_an_end_near_zero_shows_on_which_side_it_lies(low, shown):
    assert report.listed({"gain": Estimate(0.005, low, 0.01, 5)}) == f"gain: {shown}"
