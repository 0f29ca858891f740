"""Predictions of risk, against made-up attacks in which hard samples leak."""

import numpy as np
import pytest

from leak_atlas.audit import FloatArray, rank_correlation
from leak_atlas.localization import prediction
from leak_atlas.localization.over_time import Trajectory
from leak_atlas.localization.trajectories import advantage, plane
from tests.localization.small import halves

N = 240
NETWORKS = 24
POOL = 3 * np.arange(N)  # indices in the data set
HARD = np.random.default_rng(0).permutation(N) / N
OTHER = np.random.default_rng(1).permutation(N) / N  # says nothing about risk
LABELS = np.arange(N) % 4


def attacked(
    slopes: list[float], seed: int, by: FloatArray = HARD, luck: float = 0.0
) -> Trajectory:
    """Scores of members that grow with hardness, by a slope for each checkpoint.

    `luck`: how far each sample is exposed in these networks alone.
    """
    rng = np.random.default_rng(seed)
    member = halves(NETWORKS, N, rng)
    own = luck * rng.random(N)
    scores = [rng.normal(size=member.shape) + slope * (by + own) * member for slope in slopes]
    groups = np.arange(NETWORKS) // 2 + 100 * seed
    return Trajectory(10 * np.arange(len(slopes)), np.stack(scores), member, POOL, groups)


def pair(slopes: list[float], luck: float = 0.0) -> list[tuple[Trajectory, Trajectory]]:
    return [(attacked(slopes, 1, luck=luck), attacked(slopes, 2, luck=luck))]


def test_hard_samples_are_exposed_and_easy_ones_not() -> None:
    one = attacked([0.0, 4.0], 1)
    at_first, at_last = prediction.hard_minus_easy(one, HARD, POOL)
    assert abs(at_first) < 0.1
    assert at_last > 0.6
    assert abs(prediction.hard_minus_easy(one, OTHER, POOL)[1]) < 0.15
    part = one.part(samples=np.arange(N) % 2 == 0)
    assert prediction.hard_minus_easy(part, HARD, POOL)[1] > 0.6, "found by the index of samples"


def test_hardness_correlates_with_risk_and_speed_and_chance_does_not() -> None:
    measures = {"hard": HARD, "chance": OTHER}
    groups = {"both": ("hard", "chance")}
    one = attacked([0.0, 4.0], 1)
    null = attacked([0.0, 0.0], 2)
    found = prediction.correlations_with_risk(one, null, measures, POOL, LABELS, groups)
    for name in prediction.Correlations._fields:
        of_hard = getattr(found["hard"], name)
        of_chance = getattr(found["chance"], name)
        mean = getattr(found["both"], name)
        assert of_hard.low > 0.5
        assert of_chance.low < 0.1
        assert mean.value == pytest.approx((of_hard.value + of_chance.value) / 2)


def test_speed_is_that_beyond_the_null() -> None:
    one = attacked([0.0, 4.0], 1)
    null = attacked([0.0, 4.0], 2, by=OTHER)
    found = prediction.correlations_with_risk(one, null, {"chance": OTHER}, POOL, LABELS, {})
    assert found["chance"].speed.high < -0.3


def test_hardness_that_is_the_class_says_nothing_within_it() -> None:
    measures = {"class": LABELS.astype(float)}
    one = attacked([0.0, 4.0], 1, by=LABELS / 4)
    null = attacked([0.0, 0.0], 2)
    found = prediction.correlations_with_risk(one, null, measures, POOL, LABELS, {})["class"]
    assert found.risk.low > 0.5
    assert found.within_class.value == 0


def test_the_true_risk_has_no_noise() -> None:
    halvings = pair([0.0, 1.5])
    measures = {"hard": HARD, "chance": OTHER}
    found, agreement = prediction.correlations_with_true_risk(halvings, measures, POOL, {})
    raw = prediction.correlations_with_risk(*halvings[0], measures, POOL, LABELS, {})["hard"].risk
    assert agreement.high < 0.9
    assert raw.value < found["hard"].value
    assert found["hard"].value == pytest.approx(1, abs=0.1)
    assert abs(found["chance"].value) < 0.25
    assert prediction.agreement_of_halves(halvings).value == agreement.value


def test_flags_that_are_luck_are_found_by_the_same_networks_alone() -> None:
    constant = prediction.early_flags(pair([4.0, 4.0]), 0.2)
    assert constant.same[1].value == constant.same[1].low == 1
    assert constant.other[1].low > 0.3, "chance is .2"
    lucky = prediction.early_flags(pair([0.0, 4.0], luck=5.0), 0.2)
    assert lucky.same[0].value == pytest.approx(0.2, abs=0.15)
    assert lucky.other[1].value < constant.other[1].value - 0.2


def test_foresight_of_hardness_and_of_an_attack() -> None:
    signals = {"hard": np.tile(HARD, (2, 1)), "chance": np.tile(OTHER, (2, 1))}
    found = prediction.foresight(pair([0.0, 4.0]), signals, POOL)
    assert found["hard"].correlation[0].low > 0.8
    assert found["hard"].beyond_attack[0].low > 0.5
    assert found["hard"].found[0].value > found["chance"].found[0].value + 0.2
    attack = found["attack"].correlation
    hard = found["hard"]
    difference = hard.correlation[0].value - attack[1].value
    assert hard.beyond_final_attack[0].value == pytest.approx(difference)


def test_exposure_of_the_flagged_by_other_networks() -> None:
    found = prediction.exposure_of_flagged(pair([0.0, 2.0, 4.0]), 0.2)
    assert found.flagged[-1].low > found.everybody[-1].high
    assert found.flagged_left[-1].value == found.everybody_left[-1].value == 1
    left = found.flagged[1].value / found.flagged[2].value
    assert found.flagged_left[1].value == pytest.approx(left)
    difference = found.flagged_left[1].value - found.everybody_left[1].value
    assert found.left_difference[1].value == pytest.approx(difference)


def test_attacks_agree_where_they_expose_the_same_samples() -> None:
    first = {"one": attacked([4.0], 1), "other": attacked([4.0], 2, by=OTHER)}
    second = {"one": attacked([4.0], 3), "other": attacked([4.0], 4, by=OTHER)}
    found = prediction.agreement(first, second, "one")
    for name in first:
        assert found[name].with_itself.low > 0.4
    assert abs(found["other"].with_reference.value) < 0.25
    assert found["other"].difference.low > 0.3
    assert found["one"].difference.value == 0

    def risk(attack: Trajectory) -> FloatArray:
        return advantage(plane(attack))[-1]

    one_order = rank_correlation(risk(first["one"]), risk(second["other"]))
    other_order = rank_correlation(risk(first["other"]), risk(second["one"]))
    mean = (one_order + other_order) / 2
    assert found["other"].with_reference.value == pytest.approx(mean)
