"""Memorization scores and what goes by them, against closed forms and made-up rankings."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from leak_atlas import audit
from leak_atlas.data.designs import Role
from leak_atlas.localization.samples import (
    agreement,
    auc_by_part,
    exposure,
    loss_rise,
    means_by_rank,
    memorization,
    rates_by_part,
    rise,
    rise_within_strata,
    split_by_ranking,
)


def test_memorization_is_in_minus_out() -> None:
    right = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    member = np.array([[True, True], [True, True], [False, True], [False, False]])
    score, error, outside = memorization(right, member)
    assert score.tolist() == pytest.approx([1.0, 2 / 3 - 1])
    assert outside.tolist() == [0.0, 1.0]
    assert error[0] == 0 and error[1] == np.inf  # one OUT model has no variance


def test_the_error_of_memorization_is_that_of_a_difference_of_means() -> None:
    right = np.array([[1.0], [0.0], [1.0], [0.0], [0.0], [1.0], [0.0]])
    _, error, _ = memorization(right, np.arange(7)[:, None] < 3)
    variance = right[:3].var(ddof=1) / 3 + right[3:].var(ddof=1) / 4
    assert error[0] == pytest.approx(np.sqrt(variance))


def ranking(scores: np.ndarray, index: np.ndarray | None = None) -> dict[str, np.ndarray]:
    return {"score": scores, "index": np.arange(len(scores)) if index is None else index}


def test_parts_of_a_ranking_are_even_and_keep_each_targets_own_members() -> None:
    rng = np.random.default_rng(1)
    scored = {
        "scores": rng.normal(size=(3, 40)),
        "member": rng.random((3, 40)) < 0.5,
        "thresholds": np.array([0.0, 1.0, -1.0]),
        "index": np.arange(10, 50),
    }
    by = ranking(rng.permutation(60).astype(float))
    parts = split_by_ranking(scored, by, 4)
    for target in range(3):
        assert sum(part[target]["scores"].size for part in parts) == 40
        for number, part in enumerate(parts):
            own = (by["score"][10:50] // 15).astype(int) == number
            assert np.array_equal(part[target]["scores"][0], scored["scores"][target, own])
            assert np.array_equal(part[target]["member"][0], scored["member"][target, own])
    with pytest.raises(ValueError, match="not among the known ones"):
        split_by_ranking(scored, ranking(np.zeros(30)), 2)


def test_of_one_part_alone_members_stand_out() -> None:
    """Where the highest part alone leaks its AUC alone is above a half."""
    rng = np.random.default_rng(2)
    by = ranking(rng.random(4000))
    member = rng.random((10, 4000)) < 0.5
    high = by["score"] > 0.75
    scored = {"member": member, "index": np.arange(4000), "thresholds": np.zeros(10)}
    leaks = split_by_ranking(
        scored | {"scores": rng.normal(size=member.shape) + 2 * (member & high)}, by, 4
    )
    leak = [audit.audit(part)["auc"] for part in leaks]
    assert leak[3].low > 0.85
    assert all(abs(each.value - 0.5) < 0.02 for each in leak[:3])
    null = [
        audit.audit(part)["auc"]
        for part in split_by_ranking(scored | {"scores": rng.normal(size=member.shape)}, by, 4)
    ]
    assert all(abs(each.value - 0.5) < 0.02 for each in null)


def test_samples_without_a_score_are_left_out() -> None:
    one, other = np.random.default_rng(5).normal(size=(2, 60))
    whole = ranking(one)
    lacks = ranking(np.where(np.arange(60) < 7, np.nan, other))
    found = agreement(whole, lacks)
    assert found.n == 53
    assert found.value == pytest.approx(stats.spearmanr(one[7:], other[7:]).statistic)


def test_rates_and_areas_of_parts() -> None:
    """One part is the whole; a border for all parts has its FPR over all of them."""
    member = np.arange(2000) % 2 == 0
    index = np.arange(2000)
    attack = {
        "scores": np.random.default_rng(5).normal(size=(2, 2000)) + member,
        "member": member,
        "index": index,
        "thresholds": np.zeros(2),
    }
    by = ranking(attack["scores"][0])
    assert auc_by_part(attack, by, 1) == pytest.approx(audit.auc(attack["scores"], member)[None])
    assert rates_by_part(attack, by, 1) == pytest.approx(np.array(audit.own_rates(attack))[None])
    without = {**attack, "thresholds": np.full(2, np.nan)}
    assert rates_by_part(without, by, 1, fpr=0.05)[0, 1] == pytest.approx(0.05)
    assert rise(np.array([[0.1, 0.2], [0.3, 0.2], [0.7, 0.5]])).value == pytest.approx(0.4)
    low, high = rates_by_part(without, by, 2, fpr=0.05)[:, :, 0]
    assert low.tolist() == [0, 0] and high[1] > 0.1  # ranked by the first target's own scores


def test_means_by_rank_are_those_of_the_members_of_each_target() -> None:
    values = np.array([[10.0, 30.0, 20.0], [40.0, 0.0, 60.0]])
    ranks = np.array([[1, 2, 0], [1, 0, 2]])
    first, second = means_by_rank(values, ranks)
    assert first == audit.mean_ci([10.0, 40.0], bounds=(0, 100))
    assert second == audit.mean_ci([30.0, 60.0], bounds=(0, 100))


def test_a_rise_of_loss_is_paired_over_the_first_networks() -> None:
    role = np.array([Role.MEMBER, Role.MEMBER, Role.NONMEMBER])
    results = {}
    for name, scaled in {"a": 0.0, "b": 1.0, "c": 5.0, "d": 6.0}.items():
        results[name] = {"views": np.array([[scaled], [scaled], [9.0]]), "role": role}
    treated = SimpleNamespace(signals=lambda: ("a", "b", "never read"))
    untreated = SimpleNamespace(signals=lambda: ("c", "d", "never read"))
    rise_of = loss_rise(results, treated, untreated, 2)
    losses = np.log1p(np.exp([0.0, -1.0])) - np.log1p(np.exp([-5.0, -6.0]))
    assert rise_of.value == pytest.approx(losses.mean())
    assert rise_of.n == 2


def test_exposure_is_what_membership_changes_and_not_the_samples_own() -> None:
    rng = np.random.default_rng(0)
    index = np.array([rng.permutation(40)[:30] for _ in range(12)])
    member = rng.random(index.shape) < 0.5
    own, gain = rng.normal(size=(2, 40))
    scores = own[index] + gain[index] * member
    found = exposure({"scores": scores, "member": member, "index": index})
    np.testing.assert_allclose(found["score"], gain[found["index"]])
    for sample in range(40):
        inside = np.sum(index[member] == sample)
        outside = np.sum(index[~member] == sample)
        assert (sample in found["index"]) == (min(inside, outside) >= 1)
    null = exposure({"scores": own[index], "member": member, "index": index})
    np.testing.assert_allclose(null["score"], 0, atol=1e-9)


def test_within_strata_a_confounder_alone_shows_no_rise() -> None:
    rng = np.random.default_rng(3)
    difficulty = rng.normal(size=6000)
    score = 0.9 * difficulty + 0.4 * rng.normal(size=6000)
    member = rng.random((4, 6000)) < 0.5

    def scored(exposed: np.ndarray) -> dict[str, np.ndarray]:
        scores = rng.normal(size=member.shape) + np.exp(exposed) * member
        cutoffs = np.full(len(member), np.nan)
        return {
            "scores": scores,
            "member": member,
            "thresholds": cutoffs,
            "index": np.arange(6000),
        }

    by = ranking(score), ranking(difficulty), 12
    confounded, own = (
        rise_within_strata(scored(of), *by) for of in (difficulty, score - 0.9 * difficulty)
    )
    assert np.abs(confounded.mean()) < 0.03 < 0.1 < own.mean()
    assert rise(auc_by_part(scored(difficulty), ranking(score), 6)).value > 0.1
