"""Statistics of feature distances: known truths, coverage by simulation, and the identity of length
and direction.
"""

import numpy as np
import pytest
from scipy import stats

from leak_atlas import BadInput, audit
from leak_atlas.audit import Estimate
from leak_atlas.localization import disparity
from tests.localization.small import covers

N = 200


def halves(rng: np.random.Generator, pairs: int, n: int = N) -> list[np.ndarray]:
    return [rng.permutation(np.arange(n) < n // 2) for _ in range(pairs)]


def simulated(
    rng: np.random.Generator, shifts: np.ndarray, pairs: int, n: int = N, between: float = 0.0
):
    """Distances of `pairs` model pairs: a difficulty that all pairs share, noise, and a shift on
    D_h2 in each part.

    `between` is the standard deviation of a pair's own shift.
    """
    difficulty = rng.normal(size=(len(shifts), n))
    seen = halves(rng, pairs, n)
    distances = [
        difficulty
        + rng.normal(size=difficulty.shape)
        + (shifts + between * rng.normal(size=len(shifts)))[:, None] * ~s
        for s in seen
    ]
    return distances, seen


def truth(shift: float) -> float:
    """The AUC that a shift of Gaussians with variance 2 gives."""
    return float(stats.norm.cdf(shift / 2))


# --- coverage


@pytest.mark.parametrize("pairs", [3, 5])
def test_profile_covers_one_half_in_a_null(pairs: int) -> None:
    rng = np.random.default_rng(pairs)
    nulls = [disparity.profile(*simulated(rng, np.zeros(1), pairs))[0] for _ in range(800)]
    assert np.mean([covers(null, 0.5) for null in nulls]) >= 0.93


@pytest.mark.parametrize("between", [0.0, 0.3])
def test_profile_covers_a_disparity_that_scatters_over_pairs(between: float) -> None:
    """A shift that is Gaussian over pairs widens the Gaussian of variance 4 of two samples."""
    rng = np.random.default_rng(7)
    mean = float(stats.norm.cdf(0.5 / np.sqrt(4 + between**2)))
    covered = 0
    for _ in range(500):
        (auc,) = disparity.profile(*simulated(rng, np.array([0.5]), 3, between=between))
        covered += covers(auc, mean)
    assert covered >= 465


def test_profile_is_never_narrower_than_the_samples_allow() -> None:
    (distance,), (seen,) = simulated(np.random.default_rng(0), np.zeros(1), 1)
    error = np.sqrt(audit.delong(distance, ~seen).item())
    (same,) = disparity.profile([distance] * 4, [seen] * 4)  # pairs that agree by construction
    assert (same.n, same.resolved) == (4, True)
    assert same.high - same.value == pytest.approx(stats.norm.ppf(0.975) * error / 2)
    (single,) = disparity.profile([distance], [seen])
    assert (single.n, single.resolved) == (1, False)
    assert 0.3 < single.low < single.value < single.high < 0.7


def test_floor_covers_one_half() -> None:
    rng = np.random.default_rng(3)
    floors = []
    for _ in range(400):
        couples, _ = simulated(rng, np.zeros(1), 2)
        floors += disparity.floor(couples, halves(rng, 3))
    assert floors[0].n == 3
    assert np.mean([covers(floor, 0.5) for floor in floors]) >= 0.93


@pytest.mark.parametrize("rivals", [0.0, 0.5])
def test_contrast_is_honest_about_its_maximum(rivals: float) -> None:
    """With nothing anywhere, and with one strong rival, "low > 0" stays below its error."""
    rng = np.random.default_rng(5)
    shifts = np.array([0.0, 0.0, rivals, rivals])
    draws = [disparity.lead([simulated(rng, shifts, 3)], 3, [0, 1, 2]) for _ in range(300)]
    assert np.mean([one.low > 0 for one in draws]) <= 0.05


def test_contrast_covers_a_true_gap_on_either_side_of_one_half() -> None:
    rng = np.random.default_rng(5)
    shifts = np.array([0.0, 0.3, -0.2, -1.0])
    gap = truth(1.0) - truth(0.3)
    draws = [disparity.lead([simulated(rng, shifts, 5)], 3, [0, 1, 2]) for _ in range(300)]
    assert np.mean([covers(one, gap) for one in draws]) >= 0.93


def test_a_lead_covers_the_mean_over_settings() -> None:
    rng = np.random.default_rng(4)
    shifts = (np.array([0.0, 1.0]), np.array([0.0, 0.5]))
    true = np.mean([truth(shift[1]) - 0.5 for shift in shifts])
    covered = []
    for _ in range(200):
        distances, seen = simulated(rng, np.concatenate(shifts), pairs=6)
        first = [each[:2] for each in distances]
        second = [each[2:] for each in distances]
        covered.append(covers(disparity.lead([(first, seen), (second, seen)], 1, [0]), true))
    # |AUC - 0.5| of the silent part is a little above 0
    assert np.mean(covered) >= 0.9


def test_settings_are_compared_pair_by_pair() -> None:
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(300):
        one, other = (simulated(rng, np.array([0.5]), 3) for _ in range(2))
        covered += covers(disparity.setting_difference(one, other, 0), 0)
    assert covered >= 279
    strong, weak = (simulated(rng, np.array([0.0, shift]), 4, n=2000) for shift in (-1.0, 0.3))
    difference = disparity.setting_difference(strong, weak, 1)
    assert difference.low > 0
    assert difference.value == pytest.approx(truth(1.0) - truth(0.3), abs=0.03)


# --- values


def test_disparity_is_two_sided() -> None:
    rng = np.random.default_rng(1)
    aucs = disparity.profile(*simulated(rng, np.array([1.0, -1.0]), 4, n=2000))
    assert [auc.value for auc in aucs] == pytest.approx([truth(1.0), truth(-1.0)], abs=0.02)
    for auc in aucs:
        strength = disparity.strength(auc)
        assert strength.value == pytest.approx(abs(auc.value - 0.5))
        assert 0 < strength.low < strength.value < strength.high


def test_strength_of_nothing_reaches_zero() -> None:
    strength = disparity.strength(Estimate(0.51, 0.47, 0.55, 3))
    assert (strength.value, strength.low, strength.high) == pytest.approx((0.01, 0.0, 0.05))
    (auc,) = disparity.profile([np.zeros((1, N))] * 3, halves(np.random.default_rng(0), 3))
    assert auc.low < auc.value == 0.5 < auc.high, "a part without any distance"


# --- onset

PARTS = ("stem", "stage1", "stage2", "stage3", "stage4", "head")
CALM = [Estimate(0.5, 0.48, 0.52, 3)] * 6
WIDE = [Estimate(0.5, 0.4, 0.6, 3)] * 6


@pytest.mark.parametrize(
    ("intervals", "floor", "onset"),
    [
        ({"stage3": (0.53, 0.6), "stage4": (0.6, 0.7)}, CALM, "stage3"),
        ({"stage3": (0.51, 0.6), "stage4": (0.3, 0.4)}, CALM, "stage4"),
        ({"stem": (0.6, 0.7), "head": (0.6, 0.7)}, CALM, None),
        ({"stage3": (0.53, 0.6), "stage4": (0.61, 0.7)}, WIDE, "stage4"),
        ({"stage3": (0.515, 0.6)}, None, None),
    ],
)
def test_onset_is_the_first_stage_beyond_margin_and_floor(
    intervals: dict[str, tuple[float, float]], floor: list[Estimate] | None, onset: str | None
) -> None:
    aucs = [Estimate(0.5, *intervals.get(part, (0.48, 0.52))) for part in PARTS]
    assert disparity.onset(aucs, floor, PARTS) == onset


# --- direction or length


def test_the_squared_distance_is_length_plus_direction() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.normal(size=(2, 3, 50, 7))
    euclidean = np.linalg.norm(p - q, axis=-1) / np.sqrt(7)
    a = np.linalg.norm(p, axis=-1) / np.sqrt(7)
    b = np.linalg.norm(q, axis=-1) / np.sqrt(7)
    direction = 1 - np.sum(p * q, axis=-1) / (7 * a * b)
    seen = rng.permutation(np.arange(50) < 25)
    shares = disparity.gap_shares(direction, a, b, seen)
    square = euclidean**2
    gap = (square[:, ~seen].mean(axis=1) - square[:, seen].mean(axis=1)) / square.mean(axis=1)
    np.testing.assert_allclose(sum(shares.values()), gap, rtol=1e-10)


ONE = np.ones((1, 100))
SEEN = np.arange(100) < 50
LONGER = np.where(SEEN, 1.0, 1.5)[None]
WIDER = np.where(SEEN, 0.1, 0.2)[None]


@pytest.mark.parametrize(
    ("direction", "length_a", "length_b", "effect"),
    [
        (WIDER, ONE, ONE, "direction"),
        (0.1 * ONE, LONGER, LONGER, "scale"),
        (0 * ONE, LONGER, ONE, "length"),
    ],
)
def test_shares_name_the_effect(
    direction: np.ndarray, length_a: np.ndarray, length_b: np.ndarray, effect: str
) -> None:
    shares = disparity.gap_shares(direction, length_a, length_b, SEEN)
    assert max(shares, key=lambda name: abs(float(shares[name][0]))) == effect


def test_shares_of_scale_and_direction_by_hand() -> None:
    """Scale 2 and 4.5, angle .1 and .2: the mean squared distance is .55."""
    shares = disparity.gap_shares(WIDER, LONGER, LONGER, SEEN)
    expected = {"length": 0.0, "scale": 0.375 / 0.55, "direction": 0.325 / 0.55, "joint": 0.0}
    assert {name: share.item() for name, share in shares.items()} == pytest.approx(expected)


# --- reading results


COLUMNS = np.arange(12.0).reshape(2, 6)
RESULT = {
    "euclidean": COLUMNS,
    "length_a": COLUMNS + 5,
    "length_b": COLUMNS + 3,
    "seen_a": np.arange(6) > 0,
    "seen_b": np.arange(6) % 2 == 0,
}


def test_read_takes_a_measure_of_what_the_first_model_saw() -> None:
    (distance,), (seen,) = disparity.read([RESULT], "length difference")
    assert distance.tolist() == [[2] * 5] * 2
    assert seen.tolist() == [False, True, False, True, False]
    np.testing.assert_array_equal(disparity.read([RESULT])[0][0], COLUMNS[:, 1:])


def test_distances_before_and_after_a_rotation_are_of_the_same_samples() -> None:
    judged = np.array([2, 3, 5])
    distance = RESULT | {"index": np.arange(6)}
    similarity = {"aligned": COLUMNS[:, judged] / 2, "index": judged}
    similarity |= {"seen_a": np.ones(3, bool), "seen_b": RESULT["seen_b"][judged]}
    after, before = disparity.rotated([distance], [similarity])
    np.testing.assert_array_equal(after[0], [COLUMNS[:, judged] / 2])
    np.testing.assert_array_equal(before[0], [COLUMNS[:, judged]])
    np.testing.assert_array_equal(after[1], [[True, False, False]])
    np.testing.assert_array_equal(before[1], after[1])


def test_read_refuses_what_cannot_be_asked() -> None:
    with pytest.raises(BadInput, match="did you mean 'euclidean'"):
        disparity.read([RESULT], "euclidian")


def test_a_sample_whose_features_remember_it_lies_farther_where_unseen() -> None:
    """Only the first ten samples move where M_h1 did not see them: by most of the other places."""
    rng = np.random.default_rng(11)
    results = []
    for seen in halves(rng, 40):
        distance = rng.random((2, N))
        distance[1, :10] += 5.0 * ~seen[:10]
        everyone = np.ones(N, bool)
        results.append({"euclidean": distance, "seen_a": everyone, "seen_b": seen})
    silent, loud = disparity.memory_of_samples(results)
    assert loud[:10].mean() == pytest.approx(0.5, abs=0.06)
    assert abs(loud[10:].mean()) < 0.03 and abs(silent.mean()) < 0.03


def test_a_sample_that_all_networks_saw_or_none_has_no_memory() -> None:
    distances = np.array([[[1.0, 1.0, 1.0]], [[1.0, 2.0, 3.0]]])
    seen = np.array([[True, False, False], [True, False, True]])
    results = []
    for distance, own in zip(distances, seen, strict=True):
        results.append({"euclidean": distance, "seen_a": np.ones(3, bool), "seen_b": own})
    found = disparity.memory_of_samples(results)[0]
    assert np.isnan(found[:2]).all()
    assert found[2] == pytest.approx(0.5 - 2.5 / 3)
