"""Courses and paths through the plane, against closed forms and made-up attacks."""

import numpy as np
import pytest
from scipy import stats

from leak_atlas.audit import Estimate, auc
from leak_atlas.localization.over_time import (
    Trajectory,
    exchanged_scores,
    generalisation_gaps,
    generalisation_gaps_by_network,
    jackknife,
    joined_by_rank,
    mean_scores,
    permuted_membership,
    trajectory,
)
from leak_atlas.localization.trajectories import (
    ENCODING,
    HIGH,
    LOW,
    MIDDLE,
    across_halves,
    advantage,
    advantage_spread,
    clusters,
    difference_at_level,
    displacement,
    early_detection,
    encoding,
    encoding_contrast,
    encoding_speed,
    entropy,
    entropy_above_null,
    entropy_of_equal_samples,
    entry_shares,
    epochs_to_reach,
    highest,
    mean_advantage,
    plane,
    states,
    thresholds,
    transitions,
)


def halves(networks: int, n: int, seed: int = 0) -> np.ndarray:
    """Random halves in complement pairs."""
    rng = np.random.default_rng(seed)
    first = np.array([rng.permutation(n) < n // 2 for _ in range(networks // 2)])
    return np.stack([first, ~first], axis=1).reshape(networks, n)


def made(
    generalisation_gaps: list[float],
    networks: int = 40,
    n: int = 200,
    seed: int = 0,
    spread: float = 1.0,
) -> Trajectory:
    """Scores of N(gap, 1) for members and N(0, 1) for others, a gap for each checkpoint."""
    rng, member = np.random.default_rng(seed), halves(networks, n, seed)
    found = {
        10 * e: {
            "scores": rng.normal(scale=spread, size=member.shape) + gap * member,
            "member": member,
            "index": np.arange(n),
        }
        for e, gap in enumerate(generalisation_gaps)
    }
    return trajectory(found, np.arange(networks) // 2)


def test_complements_are_one_group_and_checkpoints_must_agree() -> None:
    one = made([0.0, 1.0], networks=6)
    assert one.group.tolist() == [0, 0, 1, 1, 2, 2] and one.epochs.tolist() == [0, 10]
    assert one.part(one.group == 2).group.tolist() == [2, 2]
    scored = {"scores": one.scores[0], "member": one.member, "index": one.index}
    with pytest.raises(ValueError, match="same samples"):
        trajectory({0: scored, 1: {**scored, "index": one.index + 1}})


def test_borders_hold_their_rate_and_the_best_one_lies_between() -> None:
    one = made([0.0, 2.0], networks=100, n=400)
    for rule in (0.02, 0.1):
        above = one.scores >= thresholds(one, rule)[:, None, None]
        rates = [above[e][~one.member].mean() for e in range(2)]
        assert all(rule - 1e-3 < rate <= rule for rate in rates)
    few = made([0.0], networks=2, n=12)
    for most in range(
        1, 13
    ):  # of twelve non-members as many as the share allows, no more and no fewer
        above = few.scores >= thresholds(few, (most - 0.5) / 12)[:, None, None]
        assert above[0][~few.member].sum() == most - 1
    assert thresholds(one, "balanced")[1] == pytest.approx(1.0, abs=0.1)


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
    assert encoding_speed(path, epochs).tolist() == pytest.approx([0.1, 0.0])
    assert encoding_speed(path, epochs, signed=True).tolist() == pytest.approx([0.1, 0.0])
    assert displacement(path) == pytest.approx(0.4)
    back = np.concatenate([path, path[:1]])
    assert displacement(back) == pytest.approx(0)


def test_entropy_is_the_logarithm_of_equal_cells() -> None:
    one = np.full((1, 2, 50), 0.05)
    middles = (np.arange(10) + 0.5) / 10
    every = np.stack([each.ravel() for each in np.meshgrid(middles, middles)])[None]
    assert entropy(one).tolist() == [0.0] and entropy(every)[0] == pytest.approx(np.log(100))
    assert entropy(every, (5, 10))[0] == pytest.approx(np.log(25 * 100) / 2)
    assert entropy(np.ones((1, 2, 5)))[0] == 0.0, "the upper edge belongs to the last cell"


def test_equals_spread_as_far_as_counting_spreads_them() -> None:
    alike = [made([0.0, 1.0], networks=16, n=150, seed=seed) for seed in range(40)]
    for grid in (5, 10, 20, (4, 5)):
        found = np.mean([entropy(plane(one), grid) for one in alike], axis=0)
        assert found == pytest.approx(
            np.mean([entropy_of_equal_samples(one, grid=grid) for one in alike], axis=0), abs=0.05
        )
    kinds = made([0.0, 1.0], networks=32, n=400)
    kinds.scores[1, :, ::2] += 2 * kinds.member[:, ::2]
    assert entropy(plane(kinds), 5)[1] > entropy_of_equal_samples(kinds, grid=5)[1] + 0.2
    null = made([0.0, 0.0], networks=32, n=400)
    assert (
        entropy_above_null(kinds, null, grid=5)
        > entropy_above_null(kinds, null, grid=5, form="equals")
        > 0
    )


def test_exchanged_samples_are_equal_and_the_centre_stays() -> None:
    one = made([0.0, 1.0], networks=32, n=400)
    one.scores[1, :, ::2] += 4 * one.member[:, ::2]
    other = exchanged_scores(one)
    assert plane(other).mean(axis=2) == pytest.approx(plane(one).mean(axis=2))
    for side in (one.member[3], ~one.member[3]):
        before, after = (each.scores[:, 3, side].T.tolist() for each in (one, other))
        assert sorted(before) == sorted(after) and before != after
    assert advantage_spread(one, other)[1] > 0.25 and advantage_spread(other, other)[1] == 0
    assert entropy(plane(other))[1] == pytest.approx(entropy_of_equal_samples(one)[1], abs=0.1)


def test_a_gap_and_what_is_there_at_an_equal_one() -> None:
    right = made([0.0, 0.5, 2.0], networks=100, n=400)
    inside, outside = mean_scores(right)
    assert inside == pytest.approx([0, 0.5, 2], abs=0.02) and outside == pytest.approx(
        [0, 0, 0], abs=0.02
    )
    assert generalisation_gaps(right) == pytest.approx(inside - outside)
    assert mean_advantage(right)[2] == pytest.approx(
        stats.norm.sf(stats.norm.isf(0.1) - 2) - 0.1, abs=0.01
    )
    each = generalisation_gaps_by_network(right)
    assert list(each) == right.epochs.tolist() and np.mean(
        list(each.values()), axis=1
    ) == pytest.approx(generalisation_gaps(right), abs=1e-3)
    early, late = (
        made([0.0, 1.0, 1.0], networks=100, n=400),
        made([0.0, 0.0, 1.0], networks=100, n=400),
    )
    epochs, half = early.epochs, epochs_to_reach(early, late, (0.5,))
    assert half[0] < epochs[1] < half[1] < epochs[2] and half[2] == half[1] - half[0]
    values, other = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0])
    assert (
        difference_at_level(values, np.array([0.0, 0.5, 2.0]), other, np.array([0.0, 1.25])) == 2.0
    )
    assert (
        difference_at_level(values, np.array([0.0, 0.5, 0.4]), other, np.array([0.0, 9.0])) == 3.0
    ), "even beyond"


def test_states_and_transitions() -> None:
    rates = np.array([[[0.1, 0.1, 0.1], [0.1, 0.1, 0.5]], [[0.2, 0.1, 0.1], [0.8, 0.1, 0.5]]])
    found = states(rates)
    assert found.tolist() == [[LOW, LOW, MIDDLE], [HIGH, LOW, MIDDLE]]
    moved = transitions(found)[0]
    assert (
        moved[LOW].tolist() == [0.5, 0.0, 0.5]
        and moved[MIDDLE].tolist() == [0, 1, 0]
        and np.isnan(moved[HIGH]).all()
    )


def test_who_enters_a_state() -> None:
    found = np.array([[LOW, MIDDLE, HIGH, HIGH], [HIGH, MIDDLE, LOW, HIGH], [HIGH] * 4, [HIGH] * 4])
    np.testing.assert_allclose(entry_shares(found), [1 / 2, 1, np.nan])


def test_levelled_networks_hold_one_rate_whatever_their_scales() -> None:
    one, other = made([0.0, 2.0], networks=20), made([0.0, 2.0], networks=20, seed=1)
    scale = np.arange(1, 21)[:, None]
    stretched = Trajectory(
        other.epochs, 50 * scale + scale * other.scores, other.member, other.index, other.group
    )
    both = joined_by_rank(one, stretched)
    np.testing.assert_array_equal(both.scores, joined_by_rank(one, other).scores)
    assert len(np.unique(both.group)) == 20 and both.group[:20].max() < both.group[20:].min()
    above = both.scores >= thresholds(both, 0.1)[:, None, None]
    assert [above[1, j][~both.member[j]].mean() for j in range(40)] == pytest.approx([0.1] * 40)
    np.testing.assert_allclose(
        auc(both.scores[1, 20:], both.member[20:]), auc(stretched.scores[1], stretched.member)
    )
    with pytest.raises(ValueError, match="same checkpoints"):
        joined_by_rank(one, made([0.0, 2.0, 3.0]))


def test_membership_that_is_dealt_leaves_scores_and_pairs_and_tells_nothing() -> None:
    one = made([0.0, 3.0])
    null = permuted_membership(one)
    assert null.scores is one.scores and (null.member[0] == ~null.member[1]).all()
    assert advantage(plane(one))[-1].mean() > 0.8 and abs(advantage(plane(null))[-1].mean()) < 0.05


def test_clusters_find_two_kinds_of_paths() -> None:
    rng = np.random.default_rng(3)
    member = halves(40, 120)
    gap = np.where(np.arange(120) < 40, 4.0, 0.0)
    found = {
        e: {
            "scores": rng.normal(size=member.shape) + e * gap * member,
            "member": member,
            "index": np.arange(120),
        }
        for e in (0, 1, 2)
    }
    one = trajectory(found, np.arange(40) // 2)
    group = clusters(plane(one), 2)
    assert (group[:40] == 1).mean() > 0.95 and (group[40:] == 0).mean() > 0.95
    assert ((clusters(advantage(plane(one)), 2) == 1) == (np.arange(120) < 40)).mean() > 0.95


def test_early_flags_of_chance_and_of_certainty() -> None:
    rng = np.random.default_rng(0)
    values = np.stack([rng.random(5000), np.arange(5000.0)])
    flagged = highest(values, 0.1)
    assert flagged.sum(axis=1).tolist() == [500, 500]
    found = early_detection(flagged, flagged[-1])
    assert found["share"][1] == found["precision"][1] == 1 and found["chance"].tolist() == [
        0.1,
        0.1,
    ]
    assert found["share"][0] == pytest.approx(0.1, abs=0.04)


def test_noise_alone_travels_and_a_null_takes_it_off() -> None:
    one, null = made([0.0] * 6, seed=1), made([0.0] * 6, seed=2)
    assert encoding_speed(plane(one), one.epochs).mean() > 0.005
    gap = jackknife(
        lambda a, b: float(
            encoding_speed(plane(a), a.epochs).mean() - encoding_speed(plane(b), b.epochs).mean()
        ),
        one,
        null,
    )
    assert gap.low < 0 < gap.high
    signed = jackknife(lambda a: float(encoding_speed(plane(a), a.epochs, signed=True).mean()), one)
    assert signed.low < 0 < signed.high


def test_what_a_course_encodes_is_that_of_the_normal_tails() -> None:
    one, null = made([0.0, 1.0, 2.0], 80, 2000, seed=1), made([0.0] * 3, 80, 2000, seed=2)
    found = dict(zip(ENCODING, encoding(one, null), strict=True))
    middle, end = (stats.norm.sf(stats.norm.isf(0.1) - gap) - 0.1 for gap in (1.0, 2.0))
    assert (
        found["displacement"]
        == pytest.approx(end, abs=0.01)
        == pytest.approx(found["way of the centre"], abs=0.02)
    )
    assert found["gain"] == pytest.approx(end, abs=0.01) and mean_advantage(one)[
        1
    ] == pytest.approx(middle, abs=0.01)
    assert 0.5 < found["way of a sample"] / end < 1, "noise and gain add as squares do"
    assert found["delay"] == pytest.approx(1 - (middle + end / 2) * 10 / 20 / end, abs=0.02)
    assert encoding(null, null)[1:3].tolist() == [0.0, 0.0]


def test_a_contrast_tells_doublings_and_differences() -> None:
    """Over ten draws, as one interval in twenty misses the truth."""
    near, far = (stats.norm.sf(stats.norm.isf(0.1) - gap) - 0.1 for gap in (1.0, 2.0))
    truths = {"displacement": far - near, "doublings of displacement": np.log2(far / near)}
    held = dict.fromkeys(truths, 0)
    for draw in range(10):
        half, null, one, noise = (
            made(gaps, 40, 400, seed=10 * draw + k)
            for k, gaps in enumerate(([0.0, 0.5, 1.0], [0.0] * 3, [0.0, 1.0, 2.0], [0.0] * 3))
        )
        found = encoding_contrast(half, null, one, noise)
        for name, truth in truths.items():
            held[name] += found[name].low < truth < found[name].high
            assert found[name].value == pytest.approx(truth, rel=0.15)
    assert min(held.values()) >= 8
    same = encoding_contrast(one, null, one, null)
    assert all(each.value == each.low == each.high == 0 for each in same.values())


def test_samples_are_as_unlike_as_their_true_advantages() -> None:
    one, null = made([0.0, 1.0], 40, 4000), made([0.0, 0.0], 40, 4000, seed=1)
    assert advantage_spread(one, null).max() < 0.04 < 0.1 < advantage(plane(one))[1].std()
    assert advantage_spread(one, one).tolist() == [0.0, 0.0]
    one.scores[1, :, ::2] += 9.0 * one.member[:, ::2]
    gap = 1 - stats.norm.sf(thresholds(one)[1] - 1)
    assert advantage_spread(one, null)[1] == pytest.approx(gap / 2, abs=0.03)


def test_a_jackknife_holds_the_truth_about_as_often_as_it_says() -> None:
    truth = stats.norm.sf(stats.norm.isf(0.1) - 1) - 0.1
    held = 0
    for seed in range(60):
        one = made([0.0, 1.0], networks=16, n=100, seed=seed)
        found = jackknife(lambda a: float(advantage(plane(a))[-1].mean()), one)
        held += found.low <= truth <= found.high
    assert held >= 53
    several = jackknife(lambda a: advantage(plane(a)).mean(axis=1), one)
    assert [each.value for each in several] == pytest.approx(
        [jackknife(lambda a: float(advantage(plane(a))[0].mean()), one).value, found.value]
    )


def unlike(seed: int, networks: int = 24, n: int = 240, learns: float = 0.0) -> Trajectory:
    """Scores of samples that leak unlike, half of whose noise stays from checkpoint to checkpoint.

    `learns`: how unlike networks are in what they leak of all their members.
    """
    rng, member = np.random.default_rng(1000 + seed), halves(networks, n, seed)
    leak = 2 * rng.gamma(1.5, 1 / 1.5, size=n)
    each = np.repeat(1 + learns * rng.normal(size=networks // 2), 2)[:, None]
    stays = rng.normal(size=member.shape)
    found = {}
    for epoch, share in ((0, 0.0), (10, 0.7), (20, 1.0)):
        noise = np.sqrt(0.5) * (stays + rng.normal(size=member.shape))
        found[epoch] = {
            "scores": noise + share * leak * each * member,
            "member": member,
            "index": np.arange(n),
        }
    return trajectory(found, np.arange(networks) // 2)


def early_share(one: np.ndarray, other: np.ndarray, index: np.ndarray) -> list[float]:
    """Of the tenth that is flagged in the end the share that is flagged before, by the same
    networks and by others.
    """
    now = highest(one)
    return [float(early_detection(now, end)["share"][1]) for end in (now[-1], highest(other)[-1])]


def calibrated(every: list[list[Estimate]]) -> tuple[np.ndarray, np.ndarray]:
    """How often each interval holds the mean over all draws, and the mean error over the deviation
    of the draws.
    """
    values = np.array([[each.value for each in one] for one in every])
    errors = np.array([[each.error for each in one] for one in every])
    ends = np.array([[(each.low, each.high) for each in one] for one in every])
    truth = values.mean(axis=0)
    held = ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean(axis=0)
    return held, np.sqrt(np.square(errors).mean(axis=0)) / values.std(axis=0, ddof=1)


@pytest.mark.parametrize("learns", [0.0, 0.4], ids=["networks alike", "networks unlike"])
def test_a_jackknifes_error_is_that_of_other_networks_and_samples(learns: float) -> None:
    """Of a mean, of a share of samples above a border and of a rank correlation."""

    def measure(one: Trajectory) -> list[float]:
        path = plane(one, 0.1, "fitted")
        gain = advantage(path)
        return [
            gain[-1].mean(),
            (states(path)[-1] == HIGH).mean(),
            stats.spearmanr(gain[1], gain[-1]).statistic,
        ]

    held, ratio = calibrated(
        [jackknife(measure, unlike(seed, learns=learns)) for seed in range(80)]
    )
    assert (held >= 0.9).all() and (ratio > 0.8).all() and (ratio < 1.4).all(), (held, ratio)


@pytest.mark.parametrize("learns", [0.0, 0.4], ids=["networks alike", "networks unlike"])
def test_halves_have_the_error_of_other_networks_and_samples(learns: float) -> None:
    """Of whom halves flag: a sum of two jackknives has 1.7 times the error."""
    every = [
        across_halves(early_share, parted(unlike(seed, learns=learns), 2, seed))
        for seed in range(60)
    ]
    held, ratio = calibrated(every)
    assert (held >= 0.9).all() and (ratio > 0.8).all() and (ratio < 1.4).all(), (held, ratio)


def test_a_jackknife_needs_groups() -> None:
    with pytest.raises(ValueError, match="two groups"):
        jackknife(lambda a: 0.0, made([0.0], networks=2))


def parted(one: Trajectory, number: int, seed: int = 0) -> list[tuple[Trajectory, Trajectory]]:
    """A course's networks in halves, as if each half had been attacked alone."""
    rng, groups = np.random.default_rng(seed), np.unique(one.group)
    firsts = [
        np.isin(one.group, rng.permutation(groups)[: len(groups) // 2]) for _ in range(number)
    ]
    return [(one.part(first), one.part(~first)) for first in firsts]


def test_halves_agree_on_what_is_true_and_not_on_luck() -> None:
    one = made([0.0, 1.0], n=400)
    luck = across_halves(lambda a, b, index: float(np.corrcoef(a[1], b[1])[0, 1]), parted(one, 3))
    assert luck.low < 0 < luck.high < 0.2
    one.scores[1, :, ::2] += 2.0 * one.member[:, ::2]
    alike = across_halves(
        lambda a, b, index: float(np.corrcoef(a[1], index % 2 == 0)[0, 1]),
        parted(one, 1),
        np.square,
    )
    assert alike.low > 0.3
    twice = across_halves(lambda a, b, index: a.mean(axis=1), parted(one, 2), lambda v: 2 * v)
    centres = across_halves(
        lambda a, b, index: a[-1].mean(axis=1), parted(one, 2), np.diff, seen=lambda path: path
    )
    assert centres[0].value == pytest.approx(twice[-1].value / 2)
    whole = 2 * advantage(plane(one, 0.1, "fitted")).mean(axis=1)
    assert [each.value for each in twice] == pytest.approx(whole, abs=0.05)


def test_halves_hold_the_truth_about_as_often_as_they_say() -> None:
    truth = stats.norm.sf(stats.norm.isf(0.1) - 1) - 0.1
    held = 0
    for seed in range(40):
        found = across_halves(
            lambda a, b, index: float(a[0].mean()), parted(made([1.0], 16, 100, seed=seed), 2, seed)
        )
        held += found.low <= truth <= found.high
    assert held >= 35


def test_a_course_takes_the_numbers_of_its_pairs() -> None:
    member = halves(4, 10)
    found = {3: {"scores": np.zeros((4, 10)), "member": member, "index": np.arange(10)}}
    assert trajectory(found, [5, 5, 9, 9]).group.tolist() == [5, 5, 9, 9]
