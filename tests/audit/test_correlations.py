"""Correlations against scikit-learn and scipy, and how often their interval holds the truth."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from leak_atlas.audit import correlation, rank_correlation, rank_correlation_interval


def test_a_partial_correlation_is_that_of_the_residuals() -> None:
    draws = np.random.default_rng(0)
    given = draws.normal(size=(200, 2))
    x = given @ [1.0, 2.0] + draws.normal(size=200)
    y = given @ [3.0, 0.5] + draws.normal(size=200)
    left = [each - LinearRegression().fit(given, each).predict(given) for each in (x, y)]
    assert correlation(x, y, given) == pytest.approx(np.corrcoef(left)[0, 1])
    assert abs(correlation(x, y, given)) < 0.2 < correlation(x, y)
    assert correlation(x, x + y) == pytest.approx(np.corrcoef(x, x + y)[0, 1])
    several = correlation([x, given[:, 0], x], y, [given, given, 0 * given])
    assert several == pytest.approx([correlation(x, y, given), 0, correlation(x, y)])
    groups = np.eye(4)[np.arange(200) % 4]  # with the constant they depend on each other
    fewer = correlation(x, y, groups[:, 1:])
    assert correlation(x, y, groups) == pytest.approx(fewer, rel=1e-12)


def test_a_constant_has_no_correlation() -> None:
    x = np.arange(50.0)
    assert correlation(x, np.full(50, 0.7)) == correlation(x, x**2, x[:, None]) == 0
    assert np.isnan(correlation(x, np.full(50, 0.7), undefined=np.nan))


def test_rank_correlations_are_spearmans_with_and_without_another_rank() -> None:
    rng = np.random.default_rng(1)
    common = rng.normal(size=3000)
    risk, cause = rng.normal(size=(2, 3000)) + common
    measures = np.stack([cause, np.exp(cause), -cause, cause.round()])
    found = rank_correlation(measures, risk)
    expected = [stats.spearmanr(each, risk).statistic for each in measures]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    left = rank_correlation(measures, risk, given=common)
    ranks = [stats.rankdata(each)[:, None] for each in (cause, risk, common)]
    rests = [r - LinearRegression().fit(ranks[2], r).predict(ranks[2]) for r in ranks[:2]]
    assert left[0] == pytest.approx(np.corrcoef(rests[0][:, 0], rests[1][:, 0])[0, 1])
    assert rank_correlation(cause, risk, given=cause) == 0


def test_the_interval_of_a_rank_correlation_holds_the_truth() -> None:
    rng = np.random.default_rng(0)
    truth, held = 6 / np.pi * np.arcsin(0.6 / 2), 0
    for _ in range(300):
        pair = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 80)
        found = rank_correlation_interval(pair[:, 0], pair[:, 1])
        held += found.low <= truth <= found.high
    assert stats.binomtest(held, 300, 0.95).pvalue > 1e-3
