"""Every claim of every page can hold and can fail, and its report was judged by its rule."""

import json

import pytest

from leak_atlas.engine import paths
from leak_atlas.lab.declare import notebooks
from tests import planting

# Claims that no plant decides both ways, and why. These lists may only shrink.
RARE = "too many comparisons at once for effects that are drawn at random"
SHADOWS = "in a plant a population that attacks itself finds as much, however many models it has"
ALL_ALIKE = "a planted network remembers every other member as it does the rest"
AGREE = "two planted networks predict the same class by chance alone"
UNDECIDABLE = {
    "pruning/fig14_fig15_ppb_gaps classes_kept": AGREE,
    "pruning/fig16_fig17_defences ppb_hides": RARE,
    "pruning/fig17_fig19_binary_data ppb_hides": RARE,
    "time/own01_cheapest_epoch few_find": RARE,
    "weights/fig06_more_shadows more_leak": SHADOWS,
    "weights/fig06_more_shadows same_change": SHADOWS,
    "weights/own01_score_at_work seen_more": ALL_ALIKE,
}
# What scores of weights say of each other: a plant would need maps of a given correlation.
UNPLANTED = ("weights/fig03_tab01_score_entanglement",)


EVERY = {one.name: one for one in notebooks()}
PAGES = [
    one
    for name, one in EVERY.items()
    if "/" in name and name not in UNPLANTED and name.split("/")[0] not in ("own", "explore")
]
REPORTS = json.loads((paths.ROOT / "outputs/reports/quick/results.json").read_text())


def unreachable_of(page: str) -> set[str]:
    """The claims of a page that no plant decides both ways."""
    return {name.split()[1] for name in UNDECIDABLE if name.startswith(f"{page} ")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_claim_can_hold_and_can_fail(page, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted results go through the notebook's own cells: effects of either sign must decide its
    claims both ways.
    """
    unreachable = unreachable_of(page.name)
    plants = planting.deciding(page.name)
    found = planting.by_claim(
        planting.reached(planting.cells_of(page), plants, unreachable, monkeypatch)
    )
    assert found and unreachable <= found.keys()
    assert {name for name, each in found.items() if not each >= planting.BOTH} <= unreachable


@pytest.mark.parametrize("published", REPORTS, ids=lambda one: one["notebook"])
def test_a_page_declares_the_rules_by_which_its_report_was_judged(published) -> None:
    rules = {row["name"]: row["rule"] for row in published["claims"]}
    page = EVERY[published["notebook"]]
    declared = planting.claims_of(page, "quick") if rules else ()
    now = {claim.name: claim.rule for claim in declared}
    assert now == rules, "who changes a rule publishes its page anew"


def test_a_claim_that_cannot_fail_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
from leak_atlas import audit, lab, report
from leak_atlas.recipe import Data, Model, RandomHalves, RelaxLoss, RMIA, Schedule, Setup
claims = report.claims(
    report.Claim("right", "It leaks less", "AUC", above=0.0, ours=True, control="paired"),
    report.Claim("always", "It leaks less", "AUC", above=-2.0, ours=True, control="paired"),
)
given = Data("fashion-mnist-small", 8), RandomHalves(200), Model("resnet10", 4), Schedule(1, 8)
attacks = {(way, "RMIA"): Setup(*given, 6).trained(way).attack(RMIA()) for way in (None, RelaxLoss(0.3))}
results = lab.realize(attacks)
both = audit.Comparison.of(results, {}, attacks)
gap = both.auc_difference(*(way for way, _ in attacks), "RMIA")
report.judge(claims, right=gap, always=gap)
"""
    cells = [compile(text, "text", "exec")]
    found = planting.by_claim(planting.reached(cells, range(56), set(), monkeypatch))
    assert found["right"] >= {"holds", "fails"} and found["always"] == {"holds"}
