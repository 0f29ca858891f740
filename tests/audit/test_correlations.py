"""Correlations against scikit-learn and scipy, and how often their interval holds the truth."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from leak_atlas.audit import correlation, rank_correlation, rank_correlation_interval


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
    truth, held = 6 / np.pi * np.arcsin(0.6 / 2), 0
    for _ in range(300):
        pair = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 80)
        found = rank_correlation_interval(pair[:, 0], pair[:, 1])
        held += found.low <= truth <= found.high
    assert stats.binomtest(held, 300, 0.95).pvalue > 1e-3
