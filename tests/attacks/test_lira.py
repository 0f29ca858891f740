"""LiRA against closed forms and against the official code's definition, written out slowly."""

from functools import partial

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from leak_atlas import audit
from leak_atlas.attacks import lira as likelihood
from leak_atlas.recipe import LiRA
from tests.attacks.simulated import complement_pairs, other_pairs

VARIANCES = ("per_sample", "pooled", "code")


def lira(target: ArrayLike, shadows: ArrayLike, member: ArrayLike, **options: str) -> np.ndarray:
    return likelihood.lira(target, shadows, member, LiRA(**options))  # type: ignore[arg-type]


def known_moments(n: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Four shadow models whose IN signals have mean `shift` and variance 1, OUT mean 0 and variance
    1, exactly.
    """
    shadows = np.array([shift - 1, shift + 1, -1.0, 1.0])
    inside = np.array([True, True, False, False])
    return np.tile(shadows[:, None], (1, n)), np.tile(inside[:, None], (1, n))


@pytest.mark.parametrize(("shift", "tprs"), [(1.0, (0.0183, 0.000548)), (2.0, (0.1378, 0.0118))])
def test_lira_with_true_moments_has_its_closed_form(
    shift: float, tprs: tuple[float, float]
) -> None:
    n = 100_000
    member = np.arange(2 * n) < n
    phi = np.random.default_rng(4).normal(size=2 * n) + shift * member
    scores = lira(phi, *known_moments(2 * n, shift), variance="per_sample")
    np.testing.assert_allclose(scores, shift * phi - shift**2 / 2, atol=1e-9)
    area = audit.auc_interval(scores, member, level=0.999)
    assert area.low <= stats.norm.cdf(shift / np.sqrt(2)) <= area.high
    for fpr, expected in zip((0.001, 0.00001), tprs, strict=True):
        rate = audit.tpr_at_fpr(scores, member, fpr, level=0.999)
        assert rate.low <= expected <= rate.high
        assert rate.resolved
    accuracy = audit.balanced_accuracy(scores, member)
    assert accuracy == pytest.approx(stats.norm.cdf(shift / 2), abs=0.004)


def test_offline_lira_with_few_shadows_has_its_closed_form() -> None:
    """Each sample has a level of its own, far wider than the signal; k OUT models remove it up to
    variance 1 + 1/k.
    """
    rng = np.random.default_rng(0)
    n = 50_000
    k = 4
    member = np.arange(2 * n) < n
    level = rng.normal(0, 5, 2 * n)
    inside = np.tile(np.arange(2 * k)[:, None] % 2 == 0, (1, 2 * n))
    shadows = level + 1.5 * inside + rng.normal(size=inside.shape)
    phi = level + 1.5 * member + rng.normal(size=2 * n)
    area = audit.auc_interval(lira(phi, shadows, inside, mode="offline_cdf"), member, level=0.999)
    assert area.low <= stats.norm.cdf(1.5 / np.sqrt(2 * (1 + 1 / k))) <= area.high
    assert audit.auc(phi, member) < 0.6  # what a global threshold sees
    assert audit.auc(lira(phi, shadows, inside), member) > 0.78


def test_offline_tests_are_one_sided_and_two_sided() -> None:
    run = partial(lira, [-3.0, 0.0, 3.0], *known_moments(3, 5.0), variance="per_sample")
    one = run(mode="offline_cdf")
    two = run(mode="offline_pdf")
    np.testing.assert_allclose(one, -stats.norm.logsf([-3.0, 0.0, 3.0]))
    np.testing.assert_allclose(two, -stats.norm.logpdf([-3.0, 0.0, 3.0]))
    far = lira(np.linspace(9, 300, 200), *known_moments(200, 0.0), mode="offline_cdf")
    assert np.all(np.diff(far) > 0), "the order stays where the CDF is 1"


def official(
    phi: np.ndarray,
    shadows: np.ndarray,
    inside: np.ndarray,
    mode: str,
    fixed: bool,
) -> np.ndarray:
    """The official code's scores, one sample at a time: medians, numpy's std, IN's std for both
    when it is fixed.
    """
    columns = range(len(phi))
    ins = [shadows[inside[:, j], j] for j in columns]
    outs = [shadows[~inside[:, j], j] for j in columns]
    fixed_in = np.std(np.concatenate([signals.ravel() for signals in ins]))
    fixed_out = np.std(np.concatenate([signals.ravel() for signals in outs]))
    scores = []
    for j in columns:
        std_in = fixed_in if fixed else ins[j].std(axis=0)
        std_out = fixed_out if fixed else outs[j].std(axis=0)
        if fixed and mode == "online":
            std_out = fixed_in
        score = -stats.norm.logpdf(phi[j], np.median(outs[j], axis=0), std_out)
        if mode == "online":
            score += stats.norm.logpdf(phi[j], np.median(ins[j], axis=0), std_in)
        scores.append(score.mean())
    return np.array(scores)


@pytest.mark.parametrize("mode", ["online", "offline_pdf"])
@pytest.mark.parametrize("variance", ["per_sample", "code"])
@pytest.mark.parametrize("models", [8, 9])
def test_lira_equals_the_official_definition(mode: str, variance: str, models: int) -> None:
    rng = np.random.default_rng(0)
    inside = rng.permuted(np.tile(np.arange(models)[:, None] % 2 == 0, (1, 60)), axis=0)
    shadows = rng.normal(size=(models, 60, 3)) + rng.normal(size=(60, 1))
    phi = rng.normal(size=(60, 3))
    scores = lira(phi, shadows, inside, mode=mode, variance=variance, centre="median")
    expected = official(phi, shadows, inside, mode, variance == "code")
    np.testing.assert_allclose(scores, expected, rtol=1e-9)


def test_a_pooled_variance_is_that_of_one_query_and_one_side() -> None:
    """Each sample has four shadow models on a side; the three queries vary differently."""
    rng = np.random.default_rng(0)
    inside = complement_pairs(rng, 4, 60)
    shadows = rng.normal(size=(8, 60, 3)) * [1.0, 2.0, 5.0]
    phi = rng.normal(size=(60, 3))
    expected = np.zeros((60, 3))
    for sign, side in ((1, inside), (-1, ~inside)):
        own = np.stack([shadows[side[:, j], j] for j in range(60)])
        deviation = np.sqrt(own.var(axis=1, ddof=1).mean(axis=0))
        expected += sign * stats.norm.logpdf(phi, own.mean(axis=1), deviation)
    np.testing.assert_allclose(lira(phi, shadows, inside), expected.mean(axis=1), rtol=1e-9)


@pytest.mark.parametrize(("variance", "distance"), [("pooled", 1.0), ("code", 0.1)])
def test_pooled_variance_is_the_within_sample_one(variance: str, distance: float) -> None:
    """OUT signals vary by 2 within a sample, by 20 between samples. At phi = mean + 2 the p-value
    shows which standard deviation was used.
    """
    rng = np.random.default_rng(0)
    inside = complement_pairs(rng, 4, 20_000)
    shadows = rng.normal(0, 20, 20_000) + np.where(inside, 0.5, 2.0) * rng.normal(size=inside.shape)
    mean = shadows.mean(axis=0, where=~inside)
    scores = lira(mean + 2, shadows, inside, mode="offline_cdf", variance=variance)
    assert scores[0] == pytest.approx(-stats.norm.logsf(distance), abs=0.01)


@pytest.mark.parametrize("centre", ["mean", "median"])
@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("mode", ["online", "offline_cdf", "offline_pdf"])
def test_a_shadow_that_was_not_evaluated_changes_nothing(
    mode: str, variance: str, centre: str
) -> None:
    rng = np.random.default_rng(0)
    inside = complement_pairs(rng, 4, 40)
    shadows = rng.normal(size=(8, 40, 2))
    phi = rng.normal(size=(40, 2))
    more = np.concatenate([shadows, np.full((2, 40, 2), np.nan)])
    run = partial(lira, phi, mode=mode, variance=variance, centre=centre)
    padded = run(more, np.concatenate([inside, inside[:2]]))
    np.testing.assert_allclose(padded, run(shadows, inside))


def test_too_few_shadows_are_refused() -> None:
    inside = np.array([[True, True], [True, True], [False, True], [False, False]])
    phi = np.zeros(2)
    shadows = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match="sample 1 has 1 shadow models to compare with, 2 needed"):
        lira(phi, shadows, inside, variance="per_sample")
    assert np.isfinite(lira(phi, shadows, inside)).all()
    with pytest.raises(ValueError, match="two shadow models on a side"):
        lira(phi[:1], shadows[1:3, :1], inside[1:3, :1])


def test_targets_that_are_each_others_shadows_need_the_wider_interval() -> None:
    """A population's mean AUC varies near twice as much as its targets' own spread says: hence a
    design effect.
    """
    rng = np.random.default_rng(0)
    areas = np.empty((150, 6))
    for run in range(len(areas)):
        member = complement_pairs(rng, 3, 400)
        values = rng.normal(size=member.shape)
        for target in range(6):
            others = other_pairs(6, target)
            scores = lira(values[target], values[others], member[others])
            areas[run, target] = audit.auc(scores, member[target])
    effect = areas.mean(axis=1).var(ddof=1) / (areas.var(axis=1, ddof=1).mean() / 6)
    assert effect > 1.4

    def coverage(design_effect: float) -> float:
        intervals = [audit.mean_ci(row, design_effect=design_effect) for row in areas]
        return float(np.mean([one.low <= 0.5 <= one.high for one in intervals]))

    assert coverage(1.0) < 0.9 < 0.92 < coverage(LiRA().max_design_effect)
