"""Correlations against scikit-learn and scipy, and how often their interval holds the truth."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from leak_atlas.audit import (
    correlation,
    disattenuated,
    filled,
    rank_correlation,
    rank_correlation_interval,
    ranks_within,
)


def residuals(given: np.ndarray, *values: np.ndarray) -> list[np.ndarray]:
    return [each - LinearRegression().fit(given, each).predict(given) for each in values]


def test_a_partial_correlation_is_that_of_the_residuals() -> None:
    draws = np.random.default_rng(0)
    given = draws.normal(size=(200, 2))
    x = given @ [1.0, 2.0] + draws.normal(size=200)
    y = given @ [3.0, 0.5] + draws.normal(size=200)
    partial = correlation(x, y, given)
    assert partial == pytest.approx(np.corrcoef(residuals(given, x, y))[0, 1])
    assert abs(partial) < 0.2 < correlation(x, y)
    several = correlation([x, given[:, 0], x], y, [given, given, 0 * given])
    assert several == pytest.approx([partial, 0, np.corrcoef(x, y)[0, 1]])
    groups = np.eye(4)[np.arange(200) % 4]  # with the constant they depend on each other
    fewer = correlation(x, y, groups[:, 1:])
    assert correlation(x, y, groups) == pytest.approx(fewer, rel=1e-12)


def test_a_constant_has_no_correlation() -> None:
    x = np.arange(50.0)
    constant = np.full(50, 0.7)
    assert correlation(x, constant) == correlation(x, x**2, x[:, None]) == 0
    assert np.isnan(correlation(x, constant, undefined=np.nan))


def test_rank_correlations_are_spearmans() -> None:
    rng = np.random.default_rng(1)
    common = rng.normal(size=3000)
    risk, cause = rng.normal(size=(2, 3000)) + common
    measures = np.stack([cause, np.exp(cause), -cause, cause.round()])
    expected = [stats.spearmanr(each, risk).statistic for each in measures]
    np.testing.assert_allclose(rank_correlation(measures, risk), expected, rtol=1e-12)


def test_the_interval_of_a_rank_correlation_holds_the_truth() -> None:
    rng = np.random.default_rng(0)
    truth = 6 / np.pi * np.arcsin(0.6 / 2)
    held = 0
    for _ in range(300):
        pair = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 80)
        found = rank_correlation_interval(pair[:, 0], pair[:, 1])
        held += found.low <= truth <= found.high
    assert stats.binomtest(held, 300, 0.95).pvalue > 1e-3


def test_the_interval_of_a_rank_correlation_has_the_variance_of_bonett_and_wright() -> None:
    x = np.arange(30.0)
    y = x / 10 + np.random.default_rng(0).normal(size=30)
    found = rank_correlation_interval(x, y)
    rho = stats.spearmanr(x, y).statistic
    reach = 1.96 * np.sqrt((1 + rho**2 / 2) / 27)
    ends = np.tanh(np.arctanh(rho) + np.array([-reach, reach]))
    assert (found.low, found.high) == pytest.approx(tuple(ends))
    assert not rank_correlation_interval(x[:3], y[:3]).resolved


def test_within_a_group_what_it_has_in_common_is_gone() -> None:
    label = np.array([0, 0, 1, 1])
    found = ranks_within(np.array([[1.0, 2.0, 20.0, 10.0], [4.0, 3.0, 2.0, 1.0]]), label)
    assert found.tolist() == [[0.25, 0.75, 0.75, 0.25], [0.75, 0.25, 0.75, 0.25]]


def two_halves(true: np.ndarray, noise: list[float], shared: float, seed: int) -> np.ndarray:
    """Measures `(1, 2, M, n)` of true values `(M, n)`; errors of a half agree among measures."""
    draws = np.random.default_rng(seed)
    common = draws.normal(size=(2, 1, true.shape[1]))
    own = draws.normal(size=(2, *true.shape))
    error = shared**0.5 * common + (1 - shared) ** 0.5 * own
    return (true + np.array(noise)[:, None] * error)[None]


def correlated(n: int, r: float, seed: int) -> np.ndarray:
    """Two normal values `(2, n)` with Pearson's correlation r."""
    return np.random.default_rng(seed).multivariate_normal([0, 0], [[1, r], [r, 1]], n).T


def test_the_correction_finds_the_true_correlation_whatever_the_errors() -> None:
    """Of normal values Spearman's correlation is 6 / pi arcsin(r / 2)."""
    for r in (-0.6, 0.0, 0.8):
        true = correlated(40_000, r, seed=1)
        spearman = 6 / np.pi * np.arcsin(r / 2)
        for shared in (0.0, 1.0):
            halves = two_halves(true, [0.5, 1.0], shared, seed=2)
            found = disattenuated(["one", "other"], halves, draws=2)
            # ranks of noisy values bend a little: Spearman's formula is exact for Pearson's
            assert found.values[0, 1] == pytest.approx(spearman, abs=0.025)
            assert found.values[1, 0] == found.values[0, 1]
            parts = [stats.spearmanr(*halves[0, :, k]).statistic for k in (0, 1)]
            assert found.values.diagonal() == pytest.approx(parts)


def test_it_is_spearmans_formula() -> None:
    halves = np.random.default_rng(3).normal(size=(2, 2, 3, 50)) + np.arange(50) / 15
    found = disattenuated(["a", "b", "c"], halves, draws=2)
    across = np.zeros((3, 3))
    for division in halves:
        for one, other in (division, division[::-1]):
            for a in range(3):
                for b in range(3):
                    across[a, b] += stats.spearmanr(one[a], other[b]).statistic / 4
    assert found.values[0, 2] == pytest.approx(across[0, 2] / np.sqrt(across[0, 0] * across[2, 2]))
    assert found.values[1, 1] == pytest.approx(across[1, 1])
    difference = found.difference(("a", "b"), ("a", "c"))
    assert difference.value == found.values[0, 1] - found.values[0, 2]


def test_its_interval_holds_the_true_correlation() -> None:
    """Of 60 samples, about 57 intervals hold the truth: fewer than 52 happen once in 200 times."""
    spearman = 6 / np.pi * np.arcsin(0.6 / 2)
    held = 0
    for seed in range(60):
        halves = two_halves(correlated(300, 0.6, seed), [0.5, 0.7], 0.5, seed + 1000)
        found = disattenuated(["one", "other"], halves, draws=200).of("one", "other")
        held += found.low < spearman < found.high
    assert held >= 52


def test_what_halves_do_not_agree_on_is_not_resolved() -> None:
    true = correlated(400, 0.9, seed=4)
    found = disattenuated(["good", "noise"], two_halves(true, [0.3, 30.0], 0.0, 5), draws=200)
    assert found.reliability("good").low > 0.5 and found.of("good", "good").resolved
    unknown = found.of("good", "noise")
    assert not unknown.resolved and unknown.reason == "halves do not agree on noise"
    assert not found.difference(("good", "good"), ("good", "noise")).resolved


def test_within_groups_their_differences_do_not_count() -> None:
    group = np.arange(400) % 2
    apart = correlated(400, 0.0, seed=6) + 10 * group
    halves = two_halves(apart, [0.3, 0.3], 0.0, 7)
    assert disattenuated(["one", "other"], halves, draws=2).values[0, 1] > 0.7
    inside = disattenuated(["one", "other"], halves, group, draws=200).of("one", "other")
    assert inside.low < 0 < inside.high
    constant = np.ones((1, 2, 1, 20))
    assert disattenuated(["one"], constant, draws=2).values.item() == 0


def test_a_sample_without_a_value_takes_the_median() -> None:
    assert filled([3.0, np.nan, 1.0, 2.0]).tolist() == [3, 2, 1, 2]
    assert filled([np.nan, np.nan]).tolist() == [0, 0]
