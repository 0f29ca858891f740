"""Trajectories through the plane of FPR and TPR, against closed forms and made-up attacks."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from leak_atlas.audit import Estimate
from leak_atlas.localization.over_time import (
    Trajectory,
    contrast,
    generalisation_gaps,
    halves_of_networks,
    jackknife,
    joined_by_rank,
    trajectory,
)
from leak_atlas.localization.trajectories import (
    HIGH,
    LOW,
    MIDDLE,
    across_halves,
    advantage,
    advantage_at_gap,
    advantage_spread,
    delay,
    encoding_epoch,
    encoding_speed,
    entry_shares,
    epochs_to_reach,
    flagged_early,
    high_share,
    highest,
    mean_advantage,
    mean_entry_share,
    mean_speed,
    plane,
    spread_at_advantage,
    states,
    thresholds,
)
from tests.localization.small import covers, halves

BORDER = stats.norm.isf(0.1)  # the threshold at an FPR of 10 % of N(0, 1) scores


def true_advantage(gap: float) -> float:
    return stats.norm.sf(BORDER - gap) - 0.1


def of_scores(scores: list[np.ndarray], member: np.ndarray) -> Trajectory:
    epochs = 10 * np.arange(len(scores))
    pairs = np.arange(len(member)) // 2
    return Trajectory(epochs, np.stack(scores), member, np.arange(member.shape[1]), pairs)


def made(gaps: list[float], networks: int = 40, n: int = 200, seed: int = 0) -> Trajectory:
    """Scores of N(gap, 1) for members and N(0, 1) for others, a gap for each checkpoint."""
    rng = np.random.default_rng(seed)
    member = halves(networks, n, seed)
    return of_scores([rng.normal(size=member.shape) + gap * member for gap in gaps], member)


def unequal(gap: float, networks: int = 32, n: int = 400) -> Trajectory:
    """As `made` with gaps of 0 and 1; at the end every other sample leaks by a gap more."""
    one = made([0.0, 1.0], networks, n)
    one.scores[1, :, ::2] += gap * one.member[:, ::2]
    return one


# --- scores over time


def test_stored_attacks_become_a_trajectory() -> None:
    member = halves(4, 10)
    scored = {"scores": np.zeros((4, 10)), "member": member, "index": np.arange(10)}
    one = trajectory({3: scored, 0: scored})
    assert (one.epochs.tolist(), one.group.tolist()) == ([0, 3], [0, 1, 2, 3])
    part = one.part(one.group > 1, np.arange(10) < 3)
    assert part.scores.shape == (2, 2, 3)


def test_networks_that_are_joined_have_one_rate_whatever_their_scales() -> None:
    one = made([0.0, 2.0], networks=20)
    other = made([0.0, 2.0], networks=20, seed=1)
    scale = np.arange(1, 21)[:, None]
    scores = 50 * scale + scale * other.scores
    stretched = Trajectory(other.epochs, scores, other.member, other.index, other.group)
    both = joined_by_rank(one, stretched)
    np.testing.assert_array_equal(both.scores, joined_by_rank(one, other).scores)
    above = both.scores >= thresholds(both, 0.1)[:, None, None]
    assert [above[1, j][~both.member[j]].mean() for j in range(40)] == pytest.approx([0.1] * 40)


def test_a_gap_is_the_difference_of_mean_scores() -> None:
    right = made([0.0, 0.5, 2.0], networks=100, n=400)
    assert generalisation_gaps(right) == pytest.approx([0, 0.5, 2], abs=0.03)


# --- the plane


def test_a_threshold_has_the_fpr_of_its_rule() -> None:
    one = made([0.0, 2.0], networks=100, n=400)
    above = one.scores >= thresholds(one, 0.1)[:, None, None]
    rates = above[:, ~one.member].mean(axis=1)
    assert ((rates > 0.099) & (rates <= 0.1)).all()
    assert thresholds(one, "balanced")[1] == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("form", ["counted", "fitted"])
def test_rates_are_the_normal_tails(form: str) -> None:
    path = plane(made([2.0, 2.0], networks=4000, n=6), 0.1, form)
    assert path.shape == (2, 2, 6)
    assert path[:, 0] == pytest.approx(0.1, abs=0.02)
    assert path[:, 1] == pytest.approx(stats.norm.sf(BORDER - 2), abs=0.03)


def test_a_straight_path_has_its_length_and_speed() -> None:
    path = np.array([[[0.1, 0.1], [0.1, 0.1]], [[0.1, 0.1], [0.5, 0.1]], [[0.1, 0.1], [0.9, 0.1]]])
    epochs = np.array([0, 4, 8])
    assert encoding_speed(path, epochs).tolist() == pytest.approx([0.1, 0.0])


def test_states_and_entries_into_the_high_one() -> None:
    rates = np.array([[[0.1, 0.1, 0.1], [0.1, 0.1, 0.5]], [[0.2, 0.1, 0.1], [0.8, 0.1, 0.5]]])
    assert states(rates).tolist() == [[LOW, LOW, MIDDLE], [HIGH, LOW, MIDDLE]]
    enters = [[LOW, MIDDLE, HIGH, HIGH], [HIGH, MIDDLE, LOW, HIGH], [HIGH] * 4, [HIGH] * 4]
    np.testing.assert_allclose(entry_shares(np.array(enters)), [1 / 2, 1, np.nan])


def test_half_of_the_samples_become_high_and_stay() -> None:
    rng = np.random.default_rng(3)
    member = halves(40, 120)
    kind = np.arange(120) < 60
    gaps = [10.0 * (e > 1) * kind * member for e in range(4)]
    one = of_scores([rng.normal(size=member.shape) + gap for gap in gaps], member)
    assert high_share(one) == pytest.approx([0, 0, 0.5, 0.5], abs=0.05)
    assert mean_entry_share(one) == pytest.approx(0.5 / 3, abs=0.03)


def test_samples_are_as_unlike_as_their_true_advantages() -> None:
    one = made([0.0, 1.0], 40, 4000)
    null = made([0.0, 0.0], 40, 4000, seed=1)
    assert advantage_spread(one, null).max() < 0.04
    assert advantage(plane(one))[1].std() > 0.1, "by counting alone"
    assert advantage_spread(one, one).tolist() == [0.0, 0.0]
    kinds = unequal(9.0, 40, 4000)
    gap = 1 - stats.norm.sf(thresholds(kinds)[1] - 1)
    assert advantage_spread(kinds, null)[1] == pytest.approx(gap / 2, abs=0.03)


# --- how far and how fast


def test_means_and_their_delay_are_those_of_the_normal_tails() -> None:
    one = made([0.0, 1.0, 2.0], 80, 2000, seed=1)
    middle = true_advantage(1.0)
    end = true_advantage(2.0)
    assert mean_advantage(one) == pytest.approx([0, middle, end], abs=0.01)
    assert delay(one) == pytest.approx(1 - (middle + end / 2) * 10 / 20 / end, abs=0.02)


def test_a_contrast_covers_the_true_difference() -> None:
    """Over ten draws, as one interval in twenty misses the truth."""
    truth = true_advantage(2.0) - true_advantage(1.0)
    covered = 0
    for draw in range(10):
        one, other = (made([0.0, gap], 40, 400, seed=10 * draw + gap) for gap in (1, 2))
        difference = contrast(mean_advantage, [other], [one], rule=0.1)[-1]
        covered += covers(difference, truth)
        assert difference.value == pytest.approx(truth, rel=0.15)
    assert covered >= 8


def test_epochs_at_the_same_level() -> None:
    early, late = (made([0.0, gap, 1.0], networks=100, n=400) for gap in (1.0, 0.0))
    first, second, difference = epochs_to_reach(early, late, 0.5)
    assert (first, second) == pytest.approx((5, 15), abs=0.3)
    assert difference == second - first


def test_a_level_that_is_never_reached_has_the_last_epoch() -> None:
    strong = made([0.0, 2.0, 2.0], networks=100, n=400)
    weak = made([0.0, 0.0, 1.0], networks=100, n=400)
    first, second, _ = epochs_to_reach(strong, weak, 0.5)
    assert first == pytest.approx(5, abs=0.3)
    assert second == 20


def test_what_leaks_alike_at_each_gap_differs_by_nothing_at_an_equal_gap() -> None:
    """One trajectory is the other's first half: at the gap where it ends both leak equally."""
    short, long = (made([0.0, 0.5 * end, end], 100, 400) for end in (1.0, 2.0))
    assert mean_advantage(long)[-1] > mean_advantage(short)[-1] + 0.2
    assert advantage_at_gap(short, short, long, long) == pytest.approx(0, abs=0.01)
    assert advantage_at_gap(long, long, short, short) == pytest.approx(0, abs=0.01)
    wider = replace(long, scores=2 * long.scores)  # a wider gap for the same leak
    assert advantage_at_gap(short, short, long, wider) > 0.1
    assert advantage_at_gap(long, wider, short, short) < -0.1


def test_spreads_at_an_equal_mean_are_those_of_the_same_trajectory() -> None:
    null = made([0.0, 0.0, 0.0], 40, 400, seed=1)
    rng = np.random.default_rng(3)
    member = halves(40, 400)
    kind = np.arange(400) % 2
    noise = rng.normal(size=member.shape)
    steps = [noise + gap * kind * member for gap in (0.0, 1.0, 3.0)]
    whole = of_scores(steps, member)
    start = of_scores([steps[0], steps[0], steps[1]], member)
    assert spread_at_advantage(whole, null, start, null) == pytest.approx(0, abs=0.01)
    assert advantage_spread(whole, null)[-1] > advantage_spread(start, null)[-1] + 0.1


def test_noise_alone_moves_and_a_null_subtracts_it() -> None:
    one = made([0.0] * 6, seed=1)
    null = made([0.0] * 6, seed=2)

    def speed(each: Trajectory) -> float:
        return float(encoding_speed(plane(each), each.epochs).mean())

    assert speed(one) > 0.005
    assert mean_speed(one, null) == pytest.approx(speed(one) - speed(null))
    assert covers(jackknife(mean_speed, one, null), 0)


# --- early detection


def test_early_flags_of_chance_and_of_certainty() -> None:
    values = np.stack([np.random.default_rng(0).random(5000), np.arange(5000.0)])
    flagged = highest(values, 0.1)
    assert flagged.sum(axis=1).tolist() == [500, 500]
    assert flagged_early(flagged, flagged[-1]) == pytest.approx([0.1, 1], abs=0.04)


# --- intervals


def parted(one: Trajectory, number: int, seed: int = 0) -> list[tuple[Trajectory, Trajectory]]:
    """A trajectory's networks in halves, as if each half had been attacked alone."""
    rng = np.random.default_rng(seed)
    groups = np.unique(one.group)
    pairs = []
    for _ in range(number):
        first = np.isin(one.group, rng.permutation(groups)[: len(groups) // 2])
        pairs.append((one.part(first), one.part(~first)))
    return pairs


def test_halves_of_networks_leave_two_of_each_set() -> None:
    sets = [np.arange(4), np.arange(4, 8)]
    for halving in range(8):
        halves_left_out = halves_of_networks(sets, halving)
        assert sorted(np.concatenate(halves_left_out)) == list(range(8))
        for left_out in halves_left_out:
            assert [np.isin(own, left_out).sum() for own in sets] == [2, 2]


def test_sets_of_three_networks_leave_out_one_network() -> None:
    first, second = halves_of_networks([np.arange(3), np.arange(3, 6)], 0)
    assert len(first) == len(second) == 1
    assert first != second


def test_halves_agree_on_what_is_true_and_not_on_luck() -> None:
    def correlation(a: np.ndarray, b: np.ndarray, _: np.ndarray) -> float:
        return float(np.corrcoef(a[1], b[1])[0, 1])

    def true_kinds(a: np.ndarray, _: np.ndarray, index: np.ndarray) -> float:
        return float(np.corrcoef(a[1], index % 2 == 0)[0, 1])

    luck = across_halves(correlation, parted(made([0.0, 1.0], n=400), 3))
    assert covers(luck, 0)
    assert luck.high < 0.2
    alike = across_halves(true_kinds, parted(unequal(2.0, 40), 1), np.square)
    assert alike.low > 0.3


def test_an_interval_of_several_numbers_is_that_of_each() -> None:
    one = made([0.0, 1.0], networks=16, n=100)
    alone = [jackknife(lambda a, k=k: float(mean_advantage(a)[k]), one) for k in (0, 1)]
    together = jackknife(mean_advantage, one)
    assert [each.value for each in together] == [each.value for each in alone]
    assert [each.low for each in together] == pytest.approx([each.low for each in alone])
    with pytest.raises(ValueError, match="two groups"):
        jackknife(mean_advantage, made([0.0], networks=2))


def unlike(seed: int, learns: float) -> Trajectory:
    """Scores of samples that leak unlike, half of whose noise stays from checkpoint to checkpoint.

    `learns`: how unlike networks are in what they leak of all their members.
    """
    rng = np.random.default_rng(1000 + seed)
    member = halves(24, 240, seed)
    leak = 2 * rng.gamma(1.5, 1 / 1.5, size=240)
    strength = np.repeat(1 + learns * rng.normal(size=12), 2)[:, None]
    lasting = rng.normal(size=member.shape)
    scores = []
    for share in (0.0, 0.7, 1.0):
        noise = np.sqrt(0.5) * (lasting + rng.normal(size=member.shape))
        scores.append(noise + share * leak * strength * member)
    return of_scores(scores, member)


def of_a_jackknife(one: Trajectory, seed: int) -> list[Estimate]:
    """A mean, a share of samples above a border and a rank correlation."""

    def measure(one: Trajectory) -> list[float]:
        path = plane(one, 0.1, "fitted")
        gain = advantage(path)
        exposed = states(path)[-1] == HIGH
        agreement = stats.spearmanr(gain[1], gain[-1]).statistic
        return [gain[-1].mean(), exposed.mean(), agreement]

    return jackknife(measure, one)


def of_halves(one: Trajectory, seed: int) -> list[Estimate]:
    """Of the tenth that is flagged in the end the share that is flagged before, by the same
    networks and by others; a sum of two jackknives has 1.7 times the error.
    """

    def measure(one: np.ndarray, other: np.ndarray, index: np.ndarray) -> list[float]:
        now = highest(one)
        ends = (highest(one)[-1], highest(other)[-1])
        return [float(flagged_early(now, end)[1]) for end in ends]

    return across_halves(measure, parted(one, 2, seed))


@pytest.mark.parametrize(
    ("measured", "learns"), [(of_a_jackknife, 0.0), (of_a_jackknife, 0.4), (of_halves, 0.4)]
)
def test_an_error_is_that_of_other_networks_and_samples(measured, learns: float) -> None:
    """How often each interval holds the mean over all draws, and the mean error over the deviation
    of the draws.
    """
    draws = [measured(unlike(seed, learns), seed) for seed in range(70)]
    for estimates in zip(*draws, strict=True):
        values = np.array([each.value for each in estimates])
        errors = np.array([each.error for each in estimates])
        covered = np.mean([covers(each, values.mean()) for each in estimates])
        ratio = np.sqrt(np.square(errors).mean()) / values.std(ddof=1)
        assert covered >= 0.9
        assert 0.8 < ratio < 1.4


def test_a_sample_is_encoded_where_it_has_half_of_its_last_advantage() -> None:
    gained = np.array([[0.0, 0.0, 0.0], [0.4, 0.1, 0.05], [0.4, 0.8, 0.1]])
    path = np.stack([np.zeros_like(gained), gained], axis=1)
    epochs = np.array([0, 10, 20])
    found = encoding_epoch(path, epochs)
    assert found[:2] == pytest.approx([5, 10 + 10 * 0.3 / 0.7])
    assert np.isnan(found[2]), "what is not exposed is not encoded"


def test_the_first_of_equal_levels_is_when_a_level_is_reached() -> None:
    """Counted rates have few values, so that a sample often stays at half of its last advantage."""
    epochs = np.arange(4)
    for tpr in ([0, 0.5, 0.5, 1], [0, 0.5, 0.4, 1]):
        path = np.zeros((4, 2, 1))
        path[:, 1, 0] = tpr
        assert encoding_epoch(path, epochs) == [1]
