"""Paths through the plane, against closed forms and made-up attacks."""

import numpy as np
import pytest
from scipy import stats

from lib.audit import auc
from lib.localization.trajectories import (
    HIGH,
    LOW,
    MIDDLE,
    Course,
    advantage,
    borders,
    clusters,
    course,
    dealt,
    displacement,
    early,
    entering,
    entropy,
    highest,
    jackknifed,
    levelled,
    plane,
    speed,
    stability,
    states,
    transitions,
)


def halves(networks: int, n: int, seed: int = 0) -> np.ndarray:
    """Random halves in complement pairs."""
    rng = np.random.default_rng(seed)
    first = np.array([rng.permutation(n) < n // 2 for _ in range(networks // 2)])
    return np.stack([first, ~first], axis=1).reshape(networks, n)


def made(gaps: list[float], networks: int = 40, n: int = 200, seed: int = 0, spread: float = 1.0) -> Course:
    """Scores of N(gap, 1) for members and N(0, 1) for others, a gap for each checkpoint."""
    rng, member = np.random.default_rng(seed), halves(networks, n, seed)
    found = {
        10 * e: {
            "scores": rng.normal(scale=spread, size=member.shape) + gap * member,
            "member": member,
            "index": np.arange(n),
        }
        for e, gap in enumerate(gaps)
    }
    return course(found)


def test_complements_are_one_group_and_checkpoints_must_agree() -> None:
    one = made([0.0, 1.0], networks=6)
    assert one.group.tolist() == [0, 0, 2, 2, 4, 4] and one.epochs.tolist() == [0, 10]
    first, second = one.halves()
    assert first.group.tolist() == [0, 0, 4, 4] and second.group.tolist() == [2, 2]
    scored = {"scores": one.scores[0], "member": one.member, "index": one.index}
    with pytest.raises(ValueError, match="same samples"):
        course({0: scored, 1: {**scored, "index": one.index + 1}})


def test_borders_hold_their_rate_and_the_best_one_lies_between() -> None:
    one = made([0.0, 2.0], networks=100, n=400)
    for rule in (0.02, 0.1):
        above = one.scores >= borders(one, rule)[:, None, None]
        rates = [above[e][~one.member].mean() for e in range(2)]
        assert all(rule - 1e-3 < rate <= rule for rate in rates)
    assert borders(one, "balanced")[1] == pytest.approx(1.0, abs=0.1)


def test_counted_and_fitted_rates_are_the_normal_tails() -> None:
    one = made([2.0, 2.0], networks=4000, n=6)
    border = stats.norm.isf(0.1)
    for form in ("counted", "fitted"):
        path = plane(one, 0.1, form)
        assert path.shape == (2, 2, 6)
        assert path[:, 0] == pytest.approx(0.1, abs=0.02)
        assert path[:, 1] == pytest.approx(stats.norm.sf(border - 2), abs=0.03)
    few = made([1.0], networks=8)
    assert set(np.unique(plane(few)[:, 1] * few.member.sum(axis=0) % 1)) <= {0.0}


def test_a_straight_path_has_its_length_speed_and_displacement() -> None:
    path = np.array([[[0.1, 0.1], [0.1, 0.1]], [[0.1, 0.1], [0.5, 0.1]], [[0.1, 0.1], [0.9, 0.1]]])
    epochs = np.array([0, 4, 8])
    assert speed(path, epochs).tolist() == pytest.approx([0.1, 0.0])
    assert speed(path, epochs, signed=True).tolist() == pytest.approx([0.1, 0.0])
    assert displacement(path) == displacement(path, travelled=True) == pytest.approx(0.4)
    back = np.concatenate([path, path[:1]])
    assert displacement(back) == pytest.approx(0) and displacement(back, travelled=True) == pytest.approx(0.8)


def test_entropy_is_the_logarithm_of_equal_cells() -> None:
    one = np.full((1, 2, 50), 0.05)
    middles = (np.arange(10) + 0.5) / 10
    every = np.stack([each.ravel() for each in np.meshgrid(middles, middles)])[None]
    assert entropy(one).tolist() == [0.0] and entropy(every)[0] == pytest.approx(np.log(100))
    assert entropy(np.ones((1, 2, 5)))[0] == 0.0, "the upper edge belongs to the last cell"


def test_states_and_transitions() -> None:
    rates = np.array([[[0.1, 0.1, 0.1], [0.1, 0.1, 0.5]], [[0.2, 0.1, 0.1], [0.8, 0.1, 0.5]]])
    found = states(rates)
    assert found.tolist() == [[LOW, LOW, MIDDLE], [HIGH, LOW, MIDDLE]]
    moved = transitions(found)[0]
    assert (
        moved[LOW].tolist() == [0.5, 0.0, 0.5] and moved[MIDDLE].tolist() == [0, 1, 0] and np.isnan(moved[HIGH]).all()
    )


def test_who_enters_a_state() -> None:
    found = np.array([[LOW, MIDDLE, HIGH, HIGH], [HIGH, MIDDLE, LOW, HIGH], [HIGH] * 4, [HIGH] * 4])
    np.testing.assert_allclose(entering(found), [1 / 2, 1, np.nan])
    np.testing.assert_allclose(entering(found, LOW), [1 / 3, 0, 0])


def test_levelled_networks_hold_one_rate_whatever_their_scales() -> None:
    one, other = made([0.0, 2.0], networks=20), made([0.0, 2.0], networks=20, seed=1)
    scale = np.arange(1, 21)[:, None]
    stretched = Course(other.epochs, 50 * scale + scale * other.scores, other.member, other.index, other.group)
    both = levelled(one, stretched)
    np.testing.assert_array_equal(both.scores, levelled(one, other).scores)
    assert len(np.unique(both.group)) == 20 and both.group[:20].max() < both.group[20:].min()
    above = both.scores >= borders(both, 0.1)[:, None, None]
    assert [above[1, j][~both.member[j]].mean() for j in range(40)] == pytest.approx([0.1] * 40)
    np.testing.assert_allclose(auc(both.scores[1, 20:], both.member[20:]), auc(stretched.scores[1], stretched.member))
    with pytest.raises(ValueError, match="same checkpoints"):
        levelled(one, made([0.0, 2.0, 3.0]))


def test_membership_that_is_dealt_leaves_scores_and_pairs_and_tells_nothing() -> None:
    one = made([0.0, 3.0])
    null = dealt(one)
    assert null.scores is one.scores and (null.member[0] == ~null.member[1]).all()
    assert advantage(plane(one))[-1].mean() > 0.8 and abs(advantage(plane(null))[-1].mean()) < 0.05


def test_clusters_find_two_kinds_of_paths_and_other_networks_agree() -> None:
    rng = np.random.default_rng(3)
    member = halves(40, 120)
    gap = np.where(np.arange(120) < 40, 4.0, 0.0)
    found = {
        e: {"scores": rng.normal(size=member.shape) + e * gap * member, "member": member, "index": np.arange(120)}
        for e in (0, 1, 2)
    }
    one = course(found)
    group = clusters(plane(one), 2)
    assert (group[:40] == 1).mean() > 0.95 and (group[40:] == 0).mean() > 0.95
    assert stability(one, lambda half: clusters(plane(half), 2)) > 0.8
    noise = made([0.0, 0.0, 0.0])
    assert abs(stability(noise, lambda half: clusters(plane(half), 2))) < 0.1


def test_early_flags_of_chance_and_of_certainty() -> None:
    rng = np.random.default_rng(0)
    values = np.stack([rng.random(5000), np.arange(5000.0)])
    flagged = highest(values, 0.1)
    assert flagged.sum(axis=1).tolist() == [500, 500]
    found = early(flagged, flagged[-1])
    assert found["share"][1] == found["precision"][1] == 1 and found["chance"].tolist() == [0.1, 0.1]
    assert found["share"][0] == pytest.approx(0.1, abs=0.04)


def test_noise_alone_travels_and_a_null_takes_it_off() -> None:
    one, null = made([0.0] * 6, seed=1), made([0.0] * 6, seed=2)
    assert speed(plane(one), one.epochs).mean() > 0.005
    gap = jackknifed(lambda a, b: float(speed(plane(a), a.epochs).mean() - speed(plane(b), b.epochs).mean()), one, null)
    assert gap.low < 0 < gap.high
    signed = jackknifed(lambda a: float(speed(plane(a), a.epochs, signed=True).mean()), one)
    assert signed.low < 0 < signed.high


def test_a_jackknife_holds_the_truth_about_as_often_as_it_says() -> None:
    truth = stats.norm.sf(stats.norm.isf(0.1) - 1) - 0.1
    held = 0
    for seed in range(60):
        one = made([0.0, 1.0], networks=16, n=100, seed=seed)
        found = jackknifed(lambda a: float(advantage(plane(a))[-1].mean()), one)
        held += found.low <= truth <= found.high
    assert held >= 53
    several = jackknifed(lambda a: advantage(plane(a)).mean(axis=1), one)
    assert [each.value for each in several] == pytest.approx(
        [jackknifed(lambda a: float(advantage(plane(a))[0].mean()), one).value, found.value]
    )


def test_a_jackknife_needs_groups() -> None:
    with pytest.raises(ValueError, match="two groups"):
        jackknifed(lambda a: 0.0, made([0.0], networks=2))
