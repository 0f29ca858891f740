"""Statistics of feature distances: known truths, coverage by simulation, and the identity of length
and direction.
"""

import numpy as np
import pytest
from scipy import stats

from leak_atlas import BadInput, audit
from leak_atlas.audit import Estimate
from leak_atlas.localization import disparity

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
    difficulty, seen = rng.normal(size=(len(shifts), n)), halves(rng, pairs, n)
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
    hit = []
    for _ in range(1000):
        (found,) = disparity.profile(*simulated(rng, np.zeros(1), pairs))
        hit.append(found.low <= 0.5 <= found.high)
    assert np.mean(hit) >= 0.93


@pytest.mark.parametrize("between", [0.0, 0.3])
def test_profile_covers_a_disparity_that_scatters_over_pairs(between: float) -> None:
    rng = np.random.default_rng(7)
    # The shift is Gaussian over pairs; it widens the Gaussian of variance 4 that two samples differ
    # by.
    mean = float(stats.norm.cdf(0.5 / np.sqrt(4 + between**2)))
    hit = []
    for _ in range(500):
        (found,) = disparity.profile(*simulated(rng, np.array([0.5]), 3, between=between))
        hit.append(found.low <= mean <= found.high)
    assert np.mean(hit) >= 0.93


def test_profile_is_never_narrower_than_the_samples_allow() -> None:
    rng = np.random.default_rng(0)
    (distance,), (seen,) = simulated(rng, np.zeros(1), 1)
    (found,) = disparity.profile(
        [distance] * 4, [seen] * 4
    )  # four pairs that agree by construction
    error = np.sqrt(audit.delong(distance, ~seen).item())
    assert found.n == 4 and found.resolved
    assert found.high - found.value == pytest.approx(stats.norm.ppf(0.975) * error / 2)


def test_a_single_pair_is_not_resolved() -> None:
    (found,) = disparity.profile(*simulated(np.random.default_rng(0), np.zeros(1), 1))
    assert not found.resolved and found.n == 1
    assert 0.3 < found.low < found.value < found.high < 0.7


def test_floor_covers_one_half() -> None:
    rng = np.random.default_rng(3)
    hit = []
    for _ in range(400):
        couples, _ = simulated(rng, np.zeros(1), 2)
        (found,) = disparity.floor(couples, halves(rng, 3))
        assert found.n == 3
        hit.append(found.low <= 0.5 <= found.high)
    assert np.mean(hit) >= 0.93


def test_contrast_is_honest_about_its_maximum() -> None:
    """With nothing anywhere, and with one strong rival, "low > 0" stays below its error; a true gap
    is covered.
    """
    rng = np.random.default_rng(5)
    for shifts in (np.zeros(4), np.array([0.0, 0.0, 0.5, 0.5])):
        wrong = [
            disparity.contrast(*simulated(rng, shifts, 3), 3, [0, 1, 2]).low > 0 for _ in range(300)
        ]
        assert np.mean(wrong) <= 0.05
    hit = []
    for _ in range(300):
        found = disparity.contrast(
            *simulated(rng, np.array([0.0, 0.3, -0.2, 1.0]), 5), 3, [0, 1, 2]
        )
        hit.append(found.low <= truth(1.0) - truth(0.3) <= found.high)
    assert np.mean(hit) >= 0.93


def test_versus_compares_settings_pair_by_pair() -> None:
    rng = np.random.default_rng(6)
    wrong = []
    for _ in range(300):
        setting = [simulated(rng, np.array([0.5]), 3) for _ in range(2)]
        found = disparity.setting_difference(setting[0], setting[1], 0)
        wrong.append(not found.low <= 0 <= found.high)
    assert np.mean(wrong) <= 0.07
    strong, weak = (simulated(rng, np.array([0.0, shift]), 4, n=2000) for shift in (-1.0, 0.3))
    found = disparity.setting_difference(strong, weak, 1)
    assert found.low > 0 and found.value == pytest.approx(truth(1.0) - truth(0.3), abs=0.03)
    with pytest.raises(ValueError, match="there are 4 and 3"):
        disparity.setting_difference(strong, (weak[0][:3], weak[1][:3]), 1)


# --- values


def test_disparity_is_two_sided() -> None:
    rng = np.random.default_rng(1)
    up, down = disparity.profile(*simulated(rng, np.array([1.0, -1.0]), 4, n=2000))
    assert up.value == pytest.approx(truth(1.0), abs=0.02)
    assert down.value == pytest.approx(truth(-1.0), abs=0.02)
    for each in (up, down):
        found = disparity.strength(each)
        assert found.value == pytest.approx(abs(each.value - 0.5))
        assert 0 < found.low < found.value < found.high


def test_strength_of_nothing_reaches_zero() -> None:
    found = disparity.strength(Estimate(0.51, 0.47, 0.55, 3))
    assert (found.value, found.low, found.high) == pytest.approx((0.01, 0.0, 0.05))


def test_contrast_follows_the_part_below_one_half() -> None:
    rng = np.random.default_rng(2)
    found = disparity.contrast(*simulated(rng, np.array([0.0, 0.2, -1.0]), 4, n=2000), 2, [0, 1])
    assert found.low > 0.1


def test_a_part_without_any_distance_is_exactly_undecided() -> None:
    (found,) = disparity.profile([np.zeros((1, N))] * 3, halves(np.random.default_rng(0), 3))
    assert found.value == 0.5 and found.low < 0.5 < found.high


# --- onset

PARTS = ("stem", "stage1", "stage2", "stage3", "stage4", "head")
CALM = [Estimate(0.5, 0.48, 0.52, 3)] * 6


def profiled(**known: tuple[float, float]) -> list[Estimate]:
    return [Estimate(sum(known[p]) / 2, *known[p], 3) if p in known else CALM[0] for p in PARTS]


def test_onset_is_the_first_stage_beyond_margin_and_floor() -> None:
    assert disparity.onset(profiled(stage3=(0.53, 0.6), stage4=(0.6, 0.7)), CALM, PARTS) == "stage3"
    assert disparity.onset(profiled(stage3=(0.51, 0.6), stage4=(0.3, 0.4)), CALM, PARTS) == "stage4"
    assert disparity.onset(profiled(stem=(0.6, 0.7), head=(0.6, 0.7)), CALM, PARTS) is None
    wide = [Estimate(0.5, 0.4, 0.6, 3)] * 6
    assert (
        disparity.onset(profiled(stage3=(0.53, 0.6), stage4=(0.61, 0.7)), wide, PARTS) == "stage4"
    )
    assert disparity.onset(profiled(stage3=(0.53, 0.6)), None, PARTS, margin=0.05) is None


def test_onset_needs_no_stem_and_knows_a_fifth_stage() -> None:
    parts = ("stage1", "stage2", "stage3", "stage4", "stage5", "head")  # a VGG's
    late, none = Estimate(0.6, 0.55, 0.65, 3), CALM[0]
    assert disparity.onset([none] * 4 + [late, late], CALM, parts) == "stage5"
    assert disparity.onset([late] + [none] * 5, CALM, parts) == "stage1"
    assert disparity.onset([none] * 5 + [late], CALM, parts) is None


def test_a_survey_is_what_its_parts_say() -> None:
    rng, seen = np.random.default_rng(3), np.arange(80) < 40

    def result(shift: float) -> dict[str, np.ndarray]:
        values = rng.normal(size=(6, 80)) ** 2
        values[4, ~seen] += shift
        flags = {"seen_a": np.ones(80, bool), "seen_b": seen}
        return {"euclidean": values, "direction": values / 9, **flags}

    found = {
        name: [result(shift) for _ in range(4)] for name, shift in (("quiet", 0.0), ("loud", 9.0))
    }
    floors = {name: [result(0.0) for _ in range(3)] for name in found}
    results = [
        *found["quiet"],
        *found["loud"],
        *floors["quiet"],
        *floors["loud"],
    ]  # steps are numbers here
    steps = {"quiet": range(4), "loud": range(4, 8)}
    seeds = {"quiet": range(8, 11), "loud": range(11, 14)}
    surveyed = disparity.survey(results, steps, seeds, ("euclidean", "direction"), PARTS)
    _, profiles, controls, onsets = surveyed
    assert onsets["loud", "direction"] == "stage4" and onsets["quiet", "direction"] == "none"
    for (name, measure), profile in profiles.items():
        halved = disparity.read(found[name], measure)
        assert profile == disparity.profile(*halved)
        control = disparity.floor(disparity.measured(floors[name], measure), halved[1])
        assert controls[name, measure] == control


# --- direction or length


def test_the_squared_distance_is_length_plus_direction() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.normal(size=(2, 3, 50, 7))
    euclidean = np.linalg.norm(p - q, axis=-1) / np.sqrt(7)
    a, b = np.linalg.norm(p, axis=-1) / np.sqrt(7), np.linalg.norm(q, axis=-1) / np.sqrt(7)
    direction = 1 - np.sum(p * q, axis=-1) / (7 * a * b)
    seen = rng.permutation(np.arange(50) < 25)
    shares = disparity.gap_shares(direction, a, b, seen)
    square = euclidean**2
    gap = (square[:, ~seen].mean(axis=1) - square[:, seen].mean(axis=1)) / square.mean(axis=1)
    np.testing.assert_allclose(sum(shares.values()), gap, rtol=1e-10)


def test_carriers_name_the_effect() -> None:
    seen = np.arange(100) < 50
    one, longer, wider = (
        np.ones((1, 100)),
        np.where(seen, 1.0, 1.5)[None],
        np.where(seen, 0.1, 0.2)[None],
    )

    def largest(direction: np.ndarray, a: np.ndarray, b: np.ndarray) -> str:
        shares = disparity.gap_shares(direction, a, b, seen)
        return max(shares, key=lambda name: abs(float(shares[name][0])))

    assert largest(wider, one, one) == "direction"
    assert largest(0.1 * one, longer, longer) == "scale"
    assert largest(0 * one, longer, one) == "length"
    both = disparity.gap_shares(wider, 1 / longer, 1 / longer, seen)
    assert (
        both["direction"][0] > 0 > both["scale"][0]
    )  # the prototype's finding: two effects of opposite sign
    same = disparity.gap_shares(0 * one, one, one, seen)
    assert all(share[0] == 0 for share in same.values())


# --- reading results


def result(n: int = 6) -> dict[str, np.ndarray]:
    columns = np.arange(2.0 * n).reshape(2, n)
    seen = np.arange(n) % 2 == 0
    return {
        "euclidean": columns,
        "direction": columns + 1,
        "length_a": columns + 5,
        "length_b": columns + 3,
        "seen_a": np.arange(n) > 0,
        "seen_b": seen,
    }


def test_read_takes_a_measure_of_what_the_first_model_saw() -> None:
    (distance,), (seen,) = disparity.read([result()], "length difference")
    assert distance.shape == (2, 5) and np.all(distance == 2)
    assert seen.tolist() == [False, True, False, True, False]
    np.testing.assert_array_equal(disparity.read([result()])[0][0], result()["euclidean"][:, 1:])


def test_read_refuses_what_cannot_be_asked() -> None:
    with pytest.raises(BadInput, match="did you mean 'euclidean'"):
        disparity.read([result()], "euclidian")
    with pytest.raises(BadInput, match="both models saw"):
        disparity.read([result() | {"seen_b": np.ones(6, bool)}])
