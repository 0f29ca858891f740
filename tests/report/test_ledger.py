"""A claim is judged by its interval alone, and every claim can come out four ways."""

import json
import math
from typing import Any

import nbformat
import pytest

from lib import BadInput, report
from lib.audit import Estimate
from lib.report.ledger import MIME, VERDICTS, verdict

ABOVE = report.Claim("onset", "Stage 4 is loudest", "contrast", above=0.1, paper="Fig. 1", control="two seeds")
BELOW = report.Claim("silent", "Early stages are silent", "strength", below=0.1)

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
        (Estimate(0.3, 0.2, 0.4, 1, resolved=False), "below resolution", "below resolution"),
        (Estimate(math.nan, math.nan, math.nan), "below resolution", "below resolution"),
    ],
)
def test_four_verdicts_on_both_sides(estimate, above, below):
    assert verdict(ABOVE, estimate) == above
    assert verdict(BELOW, estimate) == below


@pytest.mark.parametrize("border", [0.0, 0.5, -2.0, 1e-6, 150.0])
@pytest.mark.parametrize("side", ["above", "below"])
def test_every_claim_can_come_out_four_ways(side, border):
    assert report.verdicts_possible(report.Claim("x", "t", "q", **{side: border})) == set(VERDICTS)


def test_an_interval_upside_down_is_an_error():
    with pytest.raises(ValueError, match="upside down"):
        verdict(ABOVE, Estimate(0.2, 0.3, 0.1))


def test_a_claim_has_one_border_and_a_name():
    for wrong in ({}, {"above": 0.0, "below": 1.0}, {"above": math.nan}):
        with pytest.raises(BadInput, match="border"):
            report.Claim("x", "t", "q", **wrong)
    for name in ("two words", "notes"):
        with pytest.raises(BadInput, match="identifier"):
            report.Claim(name, "t", "q", above=0.0)
    with pytest.raises(BadInput, match="two claims"):
        report.claims(ABOVE, ABOVE)


def test_rule_keeps_the_hyphens_of_its_quantity():
    assert report.Claim("x", "t", "loss of stages 1-3", below=-0.5).rule == "loss of stages 1-3 <\u00a0−0.5"


def test_every_claim_is_judged_and_nothing_else():
    claims = report.claims(ABOVE, BELOW)
    with pytest.raises(BadInput, match="not judged: silent"):
        report.judge(claims, onset=ON_BORDER)
    with pytest.raises(BadInput, match="did you mean 'onset'"):
        report.judge(claims, onsett=ON_BORDER, silent=ON_BORDER)
    with pytest.raises(BadInput, match="claim to note on 'loud'"):
        report.judge(claims, {"loud": "..."}, onset=ON_BORDER, silent=ON_BORDER)


def test_judgement_shows_words_beside_icons_and_escapes():
    claim = report.Claim("sly", "a < b & <script>", "a − b", above=0.0, control="c")

    def show(estimate: Estimate) -> dict[str, Any]:
        return report.judge(report.claims(claim), {"sly": "because <i>"}, sly=estimate)._repr_mimebundle_()

    shown = show(RIGHT_OF_BORDER)
    assert "✓&nbsp;<b>holds</b>" in shown["text/html"] and "<script>" not in shown["text/html"]
    assert "because" not in shown["text/html"], "why a claim does not hold, where it does"
    assert "because &lt;i&gt;" in show(Estimate(0.0, -0.1, 0.1, 9))["text/html"]
    assert "✓ HOLDS: a < b & <script>" in shown["text/plain"] and "0.300 [0.200, 0.400]" in shown["text/plain"]
    json.dumps(shown[MIME], allow_nan=False)


def test_claims_come_back_from_a_notebook():
    claims = report.claims(ABOVE, BELOW)
    judged = report.judge(claims, {"silent": "why"}, onset=RIGHT_OF_BORDER, silent=Estimate(math.nan, math.nan, 1.0))
    cells = [
        nbformat.v4.new_markdown_cell("# x"),
        nbformat.v4.new_code_cell(
            "claims", outputs=[nbformat.v4.new_output("display_data", claims._repr_mimebundle_())]
        ),
        nbformat.v4.new_code_cell("j", outputs=[nbformat.v4.new_output("execute_result", judged._repr_mimebundle_())]),
    ]
    node = nbformat.reads(nbformat.writes(nbformat.v4.new_notebook(cells=cells)), as_version=4)
    rows = report.claims_of(node)
    assert rows == list(judged)
    assert rows[0] == {
        "name": "onset",
        "text": "Stage 4 is loudest",
        "quantity": "contrast",
        "rule": "contrast >\u00a00.1",
        "verdict": "holds",
        "value": 0.3,
        "low": 0.2,
        "high": 0.4,
        "n": 9,
        "paper": "Fig. 1",
        "control": "two seeds",
        "note": "",
    }
    assert rows[1]["verdict"] == "below resolution" and rows[1]["value"] is None and rows[1]["note"] == "why"
    assert judged["onset"] == "holds"
