"""A claim is judged by its interval, its margin and the checks of its treatment."""

import json
import math
from dataclasses import replace
from typing import Any

import nbformat
import pytest

from leak_atlas import BadInput, report
from leak_atlas.audit import Estimate
from leak_atlas.report import ledger
from leak_atlas.report.ledger import MIME, verdict

ABOVE = report.Claim(
    "onset", "Stage 4 is loudest", "contrast", above=0.1, paper="Fig. 1", control="two seeds"
)
BELOW = report.Claim("silent", "Early stages are silent", "strength", below=0.1, ours=True)

RIGHT_OF_BORDER = Estimate(0.3, 0.2, 0.4, 9)
LEFT_OF_BORDER = Estimate(0.0, -0.05, 0.05, 9)
ON_BORDER = Estimate(0.12, 0.05, 0.2, 9)


@pytest.mark.parametrize(
    ("estimate", "above", "below"),
    [
        (RIGHT_OF_BORDER, "holds", "fails"),
        (LEFT_OF_BORDER, "fails", "holds"),
        (ON_BORDER, "undecided", "undecided"),
        (Estimate(0.2, 0.1, 0.3, 9), "undecided", "undecided"),  # touching is not enough
        (Estimate(0.1, 0.1, 0.1, 9), "undecided", "undecided"),
        (Estimate(0.3, 0.2, math.inf, 9), "holds", "fails"),
        (Estimate(0.3, 0.2, 0.4, 1, resolved=False), "underpowered", "underpowered"),
        (Estimate(math.nan, math.nan, math.nan), "underpowered", "underpowered"),
    ],
)
def test_four_verdicts_on_both_sides(estimate, above, below):
    assert verdict(ABOVE, estimate) == above
    assert verdict(BELOW, estimate) == below


SAME = report.Claim("same", "Both are alike", "difference", within=0.02, ours="our control")


@pytest.mark.parametrize(
    ("estimate", "found"),
    [
        (Estimate(0.0, -0.01, 0.01, 9), "holds"),
        (Estimate(0.05, 0.03, 0.07, 9), "fails"),
        (Estimate(-0.05, -0.07, -0.03, 9), "fails"),
        (Estimate(0.015, 0.005, 0.025, 9), "undecided"),
        # so wide an interval never fits inside
        (Estimate(0.0, -0.03, 0.03, 9), "underpowered"),
        (Estimate(0.0, -0.02, 0.01, 9), "undecided"),  # touching is not enough
    ],
)
def test_a_claim_of_no_difference(estimate, found):
    assert verdict(SAME, estimate) == found
    assert SAME.rule == "|difference| <\u00a00.02"


def test_what_cannot_be_decided_by_design_is_underpowered():
    small = report.Claim("x", "t", "q", above=0.0, margin=0.02, ours=True)
    assert verdict(small, Estimate(0.01, -0.005, 0.025, 9)) == "undecided"
    assert verdict(small, Estimate(0.01, -0.02, 0.04, 9)) == "underpowered"
    assert verdict(small, Estimate(0.1, 0.05, 0.15, 9)) == "holds", (
        "a large effect is decided all the same"
    )
    judged = report.judge(report.claims(small), x=Estimate(0.01, -0.02, 0.04, 9))
    assert judged.rows[0]["power"] == pytest.approx(
        1.5
    ) and "± 0.030, smallest effect of interest 0.02" in str(judged)


@pytest.mark.parametrize(
    ("check", "found"),
    [
        (True, "holds"),
        (False, "inert"),
        (Estimate(0.2, 0.1, 0.3, 9), "holds"),
        (Estimate(0.2, -0.1, 0.5, 9), "inert"),
        (Estimate(0.2, 0.1, 0.3, 1, resolved=False), "inert"),
    ],
)
def test_a_treatment_that_did_nothing_makes_its_claim_inert(check, found):
    judged = report.judge(
        report.claims(ABOVE), checks={"onset": {"alpha acts": check}}, onset=RIGHT_OF_BORDER
    )
    assert judged["onset"] == found
    for shown in judged._repr_mimebundle_()["text/html"], str(judged):
        assert ("manipulation check failed: “alpha acts”" in shown) == (found == "inert")


def test_too_few_points_come_before_an_inert_treatment():
    unresolved = Estimate(0.3, 0.2, 0.4, 1, resolved=False)
    assert verdict(ABOVE, unresolved, [False]) == "underpowered"


@pytest.mark.parametrize("margin", [None, 1.0, 0.02])
def test_a_number_that_is_not_resolved_says_so(margin):
    claims = report.claims(replace(ABOVE, margin=margin))
    estimates = {
        True: RIGHT_OF_BORDER,
        False: replace(RIGHT_OF_BORDER, resolved=False),
    }
    for is_resolved, estimate in estimates.items():
        rows = report.judge(claims, onset=estimate).rows
        assert rows[0]["resolved"] == is_resolved
        for kind in ("html", "md", "txt"):
            drawn = ledger.drawn_claims(kind, rows)
            assert ("[0.200, 0.400] (not resolved)" in drawn) != is_resolved
    (row,) = report.judge(claims, onset=Estimate(math.nan, math.nan, math.nan)).rows
    assert ledger.measured(row) == "– [–, –] (not resolved)"


def of_earlier_version(row):
    return {name: value for name, value in row.items() if name != "resolved"}


def test_a_report_of_an_earlier_version_is_resolved_where_a_wide_interval_has_the_border():
    claim = replace(ABOVE, margin=0.02)
    wide = report.judge(report.claims(claim), onset=ON_BORDER).rows[0]
    narrow = wide | {"power": 0.5}
    beside = wide | {"low": 0.6, "high": 0.9}
    without_numbers = wide | {"power": None, "low": None, "high": None}
    for row in (narrow, beside, without_numbers):
        assert not ledger.is_resolved(of_earlier_version(row))
    for row in (wide, narrow | {"verdict": "holds"}):
        assert ledger.is_resolved(of_earlier_version(row))


def test_a_verdict_outside_its_regime_says_so():
    claims = report.claims(ABOVE, regime={"member accuracy": 0.95})
    assert "member accuracy at least 0.95" in claims._repr_mimebundle_()["text/plain"]
    for learnt, said in ((Estimate(0.8, 0.7, 0.9, 9), True), (0.97, False), (math.nan, True)):
        judged = report.judge(claims, regime={"member accuracy": learnt}, onset=RIGHT_OF_BORDER)
        assert judged["onset"] == "holds"
        assert (
            "not trained as required: member accuracy" in judged._repr_mimebundle_()["text/html"]
        ) == said
    with pytest.raises(BadInput, match="not judged: member accuracy"):
        report.judge(claims, onset=RIGHT_OF_BORDER)
    with pytest.raises(BadInput, match="no declared regime 'member acuracy'; did you mean"):
        report.judge(claims, regime={"member acuracy": 1.0}, onset=RIGHT_OF_BORDER)
    bits = replace(ABOVE, name="bits", needs=("bits fit",))
    claims = report.claims(ABOVE, bits, regime={"bits fit": 0.9, "images fit": 0.9})
    judged = report.judge(
        claims,
        regime={"bits fit": 1.0, "images fit": 0.5},
        onset=RIGHT_OF_BORDER,
        bits=RIGHT_OF_BORDER,
    )
    assert [row["outside"] for row in judged] == [["images fit 0.500, not 0.9"], []]
    with pytest.raises(BadInput, match="no declared regime 'bits fits'; did you mean"):
        report.claims(replace(bits, needs=("bits fits",)), regime={"bits fit": 0.9})


def test_a_claim_has_one_border_and_a_name():
    for wrong in (
        {},
        {"above": 0.0, "below": 1.0},
        {"below": 0.0, "within": 1.0},
        {"above": math.nan},
    ):
        with pytest.raises(BadInput, match="border"):
            report.Claim("x", "t", "q", **wrong)
    for wrong in ({"within": 0.0}, {"above": 0.0, "margin": -1.0}):
        with pytest.raises(BadInput, match="margin"):
            report.Claim("x", "t", "q", **wrong)
    for name in ("two words", "notes", "checks"):
        with pytest.raises(BadInput, match="identifier"):
            report.Claim(name, "t", "q", above=0.0)
    with pytest.raises(BadInput, match="two claims"):
        report.claims(ABOVE, ABOVE)


def test_a_claim_has_one_origin():
    for wrong in ({}, {"paper": "Fig. 1", "ours": True}, {"paper": ""}, {"ours": ""}):
        with pytest.raises(BadInput, match="'x' needs exactly one origin"):
            report.Claim("x", "t", "q", above=0.0, **wrong)
    assert [claim.origin for claim in (ABOVE, BELOW, SAME)] == ["Fig. 1", "ours", "our control"]


def test_every_claim_is_judged_and_nothing_else():
    claims = report.claims(ABOVE, BELOW)
    with pytest.raises(BadInput, match="not judged: silent"):
        report.judge(claims, onset=ON_BORDER)
    with pytest.raises(BadInput, match="did you mean 'onset'"):
        report.judge(claims, onsett=ON_BORDER, silent=ON_BORDER)
    with pytest.raises(BadInput, match="claim to note on 'loud'"):
        report.judge(claims, {"loud": "..."}, onset=ON_BORDER, silent=ON_BORDER)


def test_judgement_shows_words_beside_icons_and_escapes():
    claim = report.Claim("sly", "a < b & <script>", "a − b", above=0.0, ours=True, control="c")

    def show(estimate: Estimate) -> dict[str, Any]:
        return report.judge(
            report.claims(claim), {"sly": "because <i>"}, sly=estimate
        )._repr_mimebundle_()

    shown = show(RIGHT_OF_BORDER)
    assert "✓&nbsp;<b>holds</b>" in shown["text/html"] and "<script>" not in shown["text/html"]
    for estimate in RIGHT_OF_BORDER, ON_BORDER:
        assert "because &lt;i&gt;" in show(estimate)["text/html"], "whatever the verdict"
    assert (
        "✓ HOLDS: a < b & <script>" in shown["text/plain"]
        and "0.300 [0.200, 0.400]" in shown["text/plain"]
    )
    json.dumps(shown[MIME], allow_nan=False)


def test_claims_come_back_from_a_notebook():
    claims = report.claims(ABOVE, BELOW)
    judged = report.judge(
        claims, {"silent": "why"}, onset=RIGHT_OF_BORDER, silent=Estimate(math.nan, math.nan, 1.0)
    )
    cells = [
        nbformat.v4.new_markdown_cell("# x"),
        nbformat.v4.new_code_cell(
            "claims", outputs=[nbformat.v4.new_output("display_data", claims._repr_mimebundle_())]
        ),
        nbformat.v4.new_code_cell(
            "j", outputs=[nbformat.v4.new_output("execute_result", judged._repr_mimebundle_())]
        ),
    ]
    node = nbformat.reads(nbformat.writes(nbformat.v4.new_notebook(cells=cells)), as_version=4)
    rows = report.claims_of(node)
    assert rows == list(judged)
    assert (
        rows[1]["verdict"] == "underpowered"
        and rows[1]["value"] is None
        and rows[1]["note"] == "why"
    )
    assert judged["onset"] == "holds"
