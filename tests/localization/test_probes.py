"""A comparison of probes reads known disparities off its variants."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from leak_atlas import BadInput, audit, report
from leak_atlas.localization.probes import ProbeComparison

PARTS = ("stem", "stage1.0", "stage1.1", "stage2.0", "stage2.1", "head")
PAIRS, SAMPLES = 6, 200


class Stored(dict[str, np.ndarray]):
    parts = PARTS


def stored(shift: float, seed: int, seen: np.ndarray) -> Stored:
    """One `Distance`: unseen samples are farther in stage 2 by `shift` standard deviations."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(len(PARTS), len(seen)))
    values[3:5] += shift * ~seen
    result = Stored(euclidean=values, direction=-values, length_a=values, length_b=values)
    return Stored(result, seen_a=np.ones(len(seen), bool), seen_b=seen)


@pytest.fixture(scope="module")
def comparison() -> ProbeComparison:
    rng = np.random.default_rng(1)
    halves = [rng.permutation(np.arange(SAMPLES) < SAMPLES // 2) for _ in range(PAIRS)]
    shifts = {"narrow": 0.5, "wide": 1.0}
    results: dict[Any, Stored] = {}
    distances = {}
    for variant, shift in shifts.items():
        distances[variant] = [(variant, pair) for pair in range(PAIRS)]
        for pair, seen in enumerate(halves):
            results[variant, pair] = stored(shift, pair, seen)
    floor = [("floor", pair) for pair in range(PAIRS - 1)]
    for pair, step in enumerate(floor):
        results[step] = stored(0.0, 100 + pair, halves[pair])
    nothing: Any = SimpleNamespace()
    return ProbeComparison(results, distances, floor, nothing, nothing)


def test_stages_end_with_their_last_block(comparison: ProbeComparison) -> None:
    assert comparison.stages == ["stage1.1", "stage2.1"]
    assert comparison.before("stage2.0") == comparison.before("stage2") == ["stage1.1"]
    assert comparison.before("head") == comparison.stages


def test_a_part_that_is_not_there_is_named(comparison: ProbeComparison) -> None:
    with pytest.raises(BadInput, match="no part 'stage3'"):
        comparison.auc("wide", "stage3")
    with pytest.raises(BadInput, match=r"no stage stands before stage1\.1: name others"):
        comparison.lead("stage1.1")


def test_a_disparity_is_found_where_it_is(comparison: ProbeComparison) -> None:
    assert comparison.disparity("wide", "stage1.1").low == 0
    assert comparison.auc("wide", "stage2.1").low > 0.7
    assert comparison.change("wide", "narrow", "stage2.1").low > 0.03
    lead = comparison.lead("stage2.1")
    each = [comparison.lead("stage2.1", variants=[name]).value for name in ("narrow", "wide")]
    assert min(each) < lead.value < max(each)
    assert lead.low > 0


def test_which_variant_is_farther_from_the_same_network(comparison: ProbeComparison) -> None:
    stage2 = comparison.farther("wide", "narrow", ["stage2.1"])
    mirrored = comparison.farther("narrow", "wide", ["stage2.1"])
    # half of the samples are 1 instead of 0.5 deviations away: a quarter each of four comparisons
    assert stage2.value == pytest.approx(0.57, abs=0.02)
    assert stage2.low > 0.5
    assert stage2.value + mirrored.value == pytest.approx(1)
    assert comparison.farther("wide", "narrow", ["stage1.1"]).value == pytest.approx(0.5)
    both = comparison.farther("wide", "narrow", ["stage1.1", "stage2.1"])
    assert both.value == pytest.approx((0.5 + stage2.value) / 2)


def test_the_estimates_of_the_claims_of_an_onset(comparison: ProbeComparison) -> None:
    claims = report.onset_claims("stage2", "widths", "Fig. 1", "a quote", "3.3")
    estimates = comparison.onset("stage2.1")
    assert [claim.name for claim in claims] == list(estimates)
    judged = report.judge(report.claims(*claims), **estimates)
    assert judged["begins"] == "holds"
    early = [comparison.disparity(name, "stage1.1") for name in ("narrow", "wide")]
    later = [comparison.disparity(name, "stage2.1") for name in ("narrow", "wide")]
    assert estimates["early_silent"] == audit.largest(early)
    assert estimates["begins_loud"] == audit.least(later)


def test_rows_are_the_aucs_of_stages_by_variant_and_measure(comparison: ProbeComparison) -> None:
    rows = comparison.rows(["euclidean", "direction"])
    assert [row["part"] for row in rows] == ["stage1.1", "stage2.1"] * 4
    assert [row["variant"] for row in rows] == ["narrow", "narrow", "wide", "wide"] * 2
    assert rows[-1]["measure"] == "direction (1 − cosine)"
    assert rows[-1]["value"] == comparison.auc("wide", "stage2.1", "direction")


def test_the_floor_is_the_auc_of_two_seeds(comparison: ProbeComparison) -> None:
    (row,) = comparison.floor_rows(parts=["stage2.1"])
    _, halves = comparison.halved("narrow", "euclidean")
    areas = []
    for step in comparison.floor:
        distance = comparison.results[step]["euclidean"][4]
        areas.append([audit.auc(distance, ~half) for half in halves])
    assert row["part"] == "stage2.1"
    assert row["value"].value == pytest.approx(np.mean(areas))
    assert row["value"].n == PAIRS


def test_histograms_part_the_distances_of_one_pair(comparison: ProbeComparison) -> None:
    panels = comparison.histograms(["stage2.1"], pair=1)
    assert list(panels) == [("narrow", "stage2.1"), ("wide", "stage2.1")]
    stored = comparison.results["wide", 1]
    seen = stored["seen_b"]
    by_both, by_one = panels["wide", "stage2.1"]
    np.testing.assert_array_equal(by_both, stored["euclidean"][4, seen])
    np.testing.assert_array_equal(by_one, stored["euclidean"][4, ~seen])
    wide = replace(comparison, distances={"wide": comparison.distances["wide"]})
    assert list(wide.histograms(["head"])) == ["head"]


def test_the_claims_that_answer_the_title_are_chosen_by_name() -> None:
    claims = report.onset_claims("stage3", "", "Fig. 1", "a quote", "3.3", headlines=["begins"])
    assert [claim.headline for claim in claims] == [False, False, True]
    assert claims[1].fails == "Stage 3 has a disparity below 0.04"


def test_that_a_disparity_exceeds_the_border_is_our_claim() -> None:
    silent, loud, first = report.onset_claims("stage3", "", "Fig. 1", "a quote", "3.3")
    assert silent.paper == first.paper == "Fig. 1"
    assert loud.origin == "our border, after Fig. 1"
    assert loud.quote == "a quote"


def test_the_network_that_learnt_least_counts(comparison: ProbeComparison) -> None:
    tests = {"narrow": [0.6, 0.8], "wide": [0.9, 0.9]}
    whole = audit.Comparison(tests, {}, members={"narrow": [1.0, 1.0], "wide": [1.0, 0.9]})
    half = audit.Comparison({}, {}, members={"narrow": [0.8, 0.9], "wide": [1.0, 1.0]})
    both = replace(comparison, whole=whole, half=half)
    assert both.regime() == pytest.approx({"member accuracy": 0.85, "test accuracy": 0.7})
