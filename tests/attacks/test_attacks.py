"""Every attack against closed forms, against nothing (the null), and against its own definition,
written out slowly.
"""

import re
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.metrics import balanced_accuracy_score

from leak_atlas import audit
from leak_atlas.attacks import lira as likelihood
from leak_atlas.attacks import networks, signals
from leak_atlas.attacks import rmia as ratios
from leak_atlas.attacks.case import Case, Scored, infer
from leak_atlas.attacks.networks import features, trained
from leak_atlas.attacks.rmia import base, log_ratio
from leak_atlas.attacks.threshold import best_thresholds, threshold
from leak_atlas.data.designs import Role
from leak_atlas.recipe import RMIA, LiRA, Network, Threshold

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def complement_pairs(rng: np.random.Generator, pairs: int, samples: int) -> np.ndarray:
    """Membership (2 * pairs, samples): rows 2i and 2i + 1 are a random half and its complement."""
    halves = rng.permuted(np.tile(np.arange(samples) < samples // 2, (pairs, 1)), axis=1)
    return np.stack([halves, ~halves], axis=1).reshape(2 * pairs, samples)


def without_pair(models: int, target: int) -> np.ndarray:
    return np.arange(models) // 2 != target // 2


def lira(
    target: ArrayLike, shadows: ArrayLike, member: ArrayLike, prior: float = 4.0, **options: str
) -> np.ndarray:
    return likelihood.lira(target, shadows, member, LiRA(**options), prior=prior)  # type: ignore[arg-type]


def rmia(
    target: ArrayLike,
    shadows: ArrayLike,
    member: ArrayLike,
    target_z: ArrayLike,
    shadows_z: ArrayLike,
    member_z: ArrayLike | None = None,
    **options: str | float,
) -> np.ndarray:
    own = RMIA(**options)  # type: ignore[arg-type]
    return ratios.rmia(target, shadows, member, target_z, shadows_z, own, member_z=member_z)


def global_threshold(
    target: ArrayLike, shadows: ArrayLike, member: ArrayLike, **options: str
) -> Scored:
    return threshold(target, 0, shadows, 0, member, Threshold(by_class=False, **options))  # type: ignore[arg-type]


def class_thresholds(
    target: ArrayLike,
    labels: ArrayLike,
    shadows: ArrayLike,
    member: ArrayLike,
    shadow_labels: ArrayLike | None = None,
    **options: str,
) -> Scored:
    attacker = Threshold(**options)  # type: ignore[arg-type]
    return threshold(
        target,
        labels,
        shadows,
        labels if shadow_labels is None else shadow_labels,
        member,
        attacker,
    )


def agree(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two score vectors order the samples alike."""
    return bool(np.array_equal(np.argsort(a, kind="stable"), np.argsort(b, kind="stable")))


# --- signals -----------------------------------------------------------------------------------------------------


def test_scaled_confidence_closed_forms() -> None:
    assert signals.scaled_confidence([[3.0, 1.25]], [0]) == 1.75
    assert signals.scaled_confidence([1e4, 0.0], 0) == 1e4
    assert signals.scaled_confidence([0.0, 1e4, -1e4], 0) == -1e4
    z = np.random.default_rng(0).normal(0, 4, size=(50, 7))
    y = np.arange(50) % 7
    np.testing.assert_allclose(
        signals.scaled_confidence(z + 100, y), signals.scaled_confidence(z, y), atol=1e-10
    )
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    p_y = p[np.arange(50), y]
    np.testing.assert_allclose(signals.scaled_confidence(z, y), np.log(p_y / (1 - p_y)), atol=1e-9)
    np.testing.assert_allclose(signals.confidence(z, y), p_y, atol=1e-12)
    np.testing.assert_allclose(signals.loss(z, y), -np.log(p_y), atol=1e-12)
    np.testing.assert_allclose(signals.entropy(z), -(p * np.log(p)).sum(axis=1), atol=1e-12)
    hot = np.exp(z / 2) / np.exp(z / 2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        signals.log_confidence(z, y, temperature=2), np.log(hot[np.arange(50), y]), atol=1e-12
    )


def test_loss_separates_what_a_probability_has_rounded() -> None:
    z = np.stack([np.linspace(40, 600, 50), np.zeros(50)], axis=1)
    zero = np.zeros(50, dtype=int)
    assert audit.tie_mass(signals.confidence(z, zero)) == 1
    assert np.all(np.diff(signals.log_confidence(z, zero)) > 0)


def test_modified_entropy_closed_forms() -> None:
    sure = np.array([2000.0, 0.0, 0.0])
    assert signals.modified_entropy(sure, 0) == 0
    assert (
        signals.modified_entropy(sure, 1)
        == pytest.approx(2 * np.log(1e30))
        == pytest.approx(138.155, abs=1e-3)
    )
    assert signals.modified_entropy(np.zeros(10), 4) == pytest.approx(2.1672, abs=1e-4)
    assert signals.entropy(np.zeros(10)) == pytest.approx(np.log(10))
    assert signals.entropy(sure) == 0
    z = np.random.default_rng(1).normal(size=(20, 5))
    y = np.arange(20) % 5
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    other = p * np.log(1 - p)
    p_y = p[np.arange(20), y]
    expected = -(1 - p_y) * np.log(p_y) - (other.sum(axis=1) - other[np.arange(20), y])
    np.testing.assert_allclose(signals.modified_entropy(z, y), expected, atol=1e-12)
    # It falls as p_y grows while the others keep their proportions, even beside a class that is
    # nearly certain.
    rising = np.stack([np.linspace(-60, 60, 500), np.zeros(500), np.full(500, -45.0)], axis=1)
    assert np.all(np.diff(signals.modified_entropy(rising, np.zeros(500, dtype=int))) < 0)


def test_top1_is_the_largest_posterior() -> None:
    z = np.random.default_rng(0).normal(0, 3, size=(30, 4))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        signals.score("top1", z, np.zeros(30, int)), p.max(axis=1), atol=1e-12
    )


def test_correctness() -> None:
    np.testing.assert_array_equal(signals.correctness([[1.0, 2.0], [3.0, 2.0]], [1, 1]), [1, 0])


@quick
@given(
    hnp.arrays(
        float, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=st.floats(-800, 800)
    ),
    st.data(),
)
def test_every_signal_is_finite_and_orders_confident_above_wrong(
    z: np.ndarray, data: st.DataObject
) -> None:
    y = np.array(
        data.draw(st.lists(st.integers(0, z.shape[1] - 1), min_size=len(z), max_size=len(z)))
    )
    hit, miss = 1000.0 * (np.arange(z.shape[1]) == 0), 1000.0 * (np.arange(z.shape[1]) == 1)
    for name in signals.SCORES:
        assert np.all(np.isfinite(signals.score(name, z, y)))
        if name not in ("entropy", "top1"):  # which do not look at the label
            assert signals.score(name, hit, 0) > signals.score(name, miss, 0)


def test_signals_broadcast_over_models_and_queries() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(3, 8, 2, 5)), rng.integers(5, size=8)
    for name in signals.SCORES:
        found = signals.score(name, z, y[:, None])
        assert found.shape == (3, 8, 2) and found.dtype == np.float64
        np.testing.assert_allclose(found[1, :, 1], signals.score(name, z[1, :, 1], y))


def test_bad_signals_are_named() -> None:
    with pytest.raises(ValueError, match=r"unknown signal 'los'.*loss"):
        signals.score("los", [[1.0, 2.0]], [0])
    with pytest.raises(ValueError, match="two classes"):
        signals.loss([[1.0]], [0])
    for labels in ([2], [-1], [0.5]):
        with pytest.raises(ValueError, match="labels"):
            signals.loss([[1.0, 2.0]], labels)


# --- threshold attacks -------------------------------------------------------------------------------------------


def test_gap_attack_is_070_exactly() -> None:
    """All members right, 60 % of the non-members right: (1 + 0.4) / 2."""
    member = np.arange(1000) < 500
    logits = np.where(np.arange(1000)[:, None] < 800, [1.0, 0.0], [0.0, 1.0])
    right = signals.score("correctness", logits, np.zeros(1000, dtype=int))
    found = global_threshold(right, np.tile(right, (2, 1)), np.tile(member, (2, 1)))
    assert found.threshold == 0.5
    assert balanced_accuracy_score(member, found.scores >= found.threshold) == pytest.approx(
        0.70, abs=1e-12
    )
    assert audit.auc(found.scores, member) == pytest.approx(0.70, abs=1e-12)


@quick
@given(st.data())
def test_best_thresholds_beat_every_other_threshold(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 40))
    draw = partial(st.lists, min_size=size, max_size=size)
    signal = np.array(
        data.draw(
            draw(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, np.nextafter(0.5, 1), 2.0, np.inf]))
        )
    )
    member = np.array(data.draw(draw(st.booleans())))
    group = np.array(data.draw(draw(st.integers(0, 3))))
    tau, accuracy = best_thresholds(signal, member, group, 5)
    again = best_thresholds(signal[::-1], member[::-1], group[::-1], 5)
    np.testing.assert_array_equal(tau, again[0])
    for g in range(5):
        own, inside = signal[group == g], member[group == g]
        if inside.all() or not inside.any():
            assert np.isnan(tau[g]) and accuracy[g] == 0
            continue
        assert accuracy[g] == pytest.approx(audit.balanced_accuracy(own, inside))
        assert balanced_accuracy_score(inside, own >= tau[g]) == pytest.approx(accuracy[g])


def test_threshold_lies_in_the_middle_of_equally_good_ones() -> None:
    signal, member = np.array([0.0, 1.0, 2.0, 3.0]), np.array([False, False, True, True])
    zero = np.zeros(4, dtype=int)
    assert best_thresholds(signal, member, zero, 1)[0] == 1.5
    # Cuts at 0.5, 1.5 and 2.5 are worth 1/2 + 1/4, 1/2, 1/2 + 1/4 for this pattern: two maxima, the
    # upper is taken.
    assert best_thresholds(signal, np.array([False, True, False, True]), zero, 1)[0] == 2.5


def test_class_thresholds_remove_what_classes_differ_in() -> None:
    rng = np.random.default_rng(0)
    n, classes = 20_000, 5
    labels = rng.integers(classes, size=n)
    offset = np.array([-4.0, -2.0, 0.0, 2.0, 4.0])[labels]
    member = complement_pairs(rng, 3, n)
    values = offset + member + rng.normal(size=member.shape)
    found = class_thresholds(values[0], labels, values[2:], member[2:])
    # Each class alone is a unit shift; a threshold is off by some sampling error only.
    assert audit.auc(found.scores, member[0]) == pytest.approx(
        stats.norm.cdf(1 / np.sqrt(2)), abs=0.01
    )
    transferred = balanced_accuracy_score(member[0], found.scores >= found.threshold)
    assert transferred == pytest.approx(stats.norm.cdf(0.5), abs=0.01)
    pooled = global_threshold(values[0], values[2:], member[2:])
    assert audit.auc(pooled.scores, member[0]) < 0.65
    assert np.array_equal(pooled.scores, values[0])


def test_class_without_shadow_data_takes_the_global_threshold() -> None:
    shadows, member = np.array([[0.0, 1.0, 4.0, 5.0]]), np.array([[False, True, False, True]])
    found = class_thresholds(
        [0.5, 9.0, 9.0], [0, 1, 3], shadows, member, shadow_labels=[0, 0, 2, 2]
    )
    overall = global_threshold([0.5, 9.0, 9.0], shadows, member).threshold
    np.testing.assert_allclose(found.scores, [0.0, 9.0 - overall, 9.0 - overall])


def test_shadows_may_turn_the_sign() -> None:
    rng = np.random.default_rng(0)
    member = complement_pairs(rng, 2, 4000)
    values = rng.normal(size=member.shape) - member  # a defence that makes members look worse
    labels = rng.integers(3, size=4000)
    for attack in (
        partial(global_threshold, values[0]),
        partial(class_thresholds, values[0], labels),
    ):
        assert audit.auc(attack(values[2:], member[2:]).scores, member[0]) < 0.3
        turned = attack(values[2:], member[2:], sign="shadows")
        assert audit.auc(turned.scores, member[0]) > 0.7
        assert balanced_accuracy_score(member[0], turned.scores >= turned.threshold) > 0.65
    assert (
        global_threshold([1.0, 2.0], [[1.0, 1.0]], [[True, False]], sign="shadows").scores[1] == 2
    )


def test_thresholds_leave_out_what_was_not_evaluated() -> None:
    shadows = np.array([[0.0, 1.0, np.nan], [np.nan, np.nan, 2.0]])
    member = np.array([[False, True, True], [True, True, False]])
    assert global_threshold([0.0], shadows, member).threshold == 0.5
    with pytest.raises(ValueError, match="at least one member"):
        global_threshold([0.0], shadows[1:], member[1:])
    with pytest.raises(ValueError, match="Boolean"):
        global_threshold([0.0], shadows, member.astype(int))


# --- LiRA --------------------------------------------------------------------------------------------------------


def known_moments(n: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Four shadows whose IN signals have mean `shift` and variance 1, OUT mean 0 and variance 1,
    exactly.
    """
    shadows = np.tile(np.array([shift - 1, shift + 1, -1.0, 1.0])[:, None], (1, n))
    return shadows, np.tile(np.array([True, True, False, False])[:, None], (1, n))


@pytest.mark.parametrize("shift", [1.0, 2.0])
def test_lira_with_true_moments_has_its_closed_form(shift: float) -> None:
    n = 100_000
    member = np.arange(2 * n) < n
    phi = np.random.default_rng(4).normal(size=2 * n) + shift * member
    shadows, inside = known_moments(2 * n, shift)
    found = lira(phi, shadows, inside, variance="per_sample")
    np.testing.assert_allclose(found, shift * phi - shift**2 / 2, atol=1e-9)
    area = audit.auc_interval(found, member, level=0.999)
    assert area.low <= stats.norm.cdf(shift / np.sqrt(2)) <= area.high
    for fpr, expected in ((0.001, {1: 0.0183, 2: 0.1378}), (0.00001, {1: 0.000548, 2: 0.0118})):
        rate = audit.tpr_at_fpr(found, member, fpr, level=0.999)
        assert rate.low <= expected[int(shift)] <= rate.high and rate.resolved
    assert audit.balanced_accuracy(found, member) == pytest.approx(
        stats.norm.cdf(shift / 2), abs=0.004
    )


def test_offline_lira_with_few_shadows_has_its_closed_form() -> None:
    """Each sample has a level of its own, far wider than the signal; k OUT shadows remove it up to
    variance 1 + 1/k.
    """
    rng = np.random.default_rng(0)
    n, k = 50_000, 4
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
    shadows, inside = known_moments(3, 5.0)
    one = lira([-3.0, 0.0, 3.0], shadows, inside, mode="offline_cdf", variance="per_sample")
    two = lira([-3.0, 0.0, 3.0], shadows, inside, mode="offline_pdf", variance="per_sample")
    assert one[0] < one[1] < one[2] and one[1] == pytest.approx(-np.log(0.5))
    assert two[0] == two[2] > two[1] == pytest.approx(0.5 * np.log(2 * np.pi))
    np.testing.assert_allclose(one, -stats.norm.logsf([-3.0, 0.0, 3.0]))


def test_one_sided_beats_two_sided_on_shifted_members() -> None:
    n = 100_000
    member = np.arange(2 * n) < n
    phi = np.random.default_rng(0).normal(size=2 * n) + 2 * member
    for mode, expected in (("offline_cdf", 0.921), ("offline_pdf", 0.855)):
        found = lira(phi, *known_moments(2 * n, 2.0), mode=mode, variance="per_sample")
        assert audit.auc(found, member) == pytest.approx(expected, abs=0.003)


def test_offline_keeps_the_order_where_the_cdf_is_one() -> None:
    phi = np.linspace(9, 300, 200)
    shadows, inside = known_moments(200, 0.0)
    assert np.all(
        np.diff(lira(phi, shadows, inside, mode="offline_cdf", variance="per_sample")) > 0
    )


def slow_lira(
    phi: np.ndarray, shadows: np.ndarray, inside: np.ndarray, mode: str, fixed: bool
) -> np.ndarray:
    """The official code's scores, one sample at a time: medians, numpy's std, IN's std for both
    when it is fixed.
    """
    split = [(shadows[inside[:, j], j], shadows[~inside[:, j], j]) for j in range(len(phi))]
    raw_in, raw_out = (
        np.std(np.concatenate([pair[side].ravel() for pair in split])) for side in (0, 1)
    )
    found = []
    for x, (ins, outs) in zip(phi, split, strict=True):
        s_in = raw_in if fixed else ins.std(axis=0)
        s_out = (raw_in if mode == "online" else raw_out) if fixed else outs.std(axis=0)
        score = -stats.norm.logpdf(x, np.median(outs, axis=0), s_out)
        if mode == "online":
            score += stats.norm.logpdf(x, np.median(ins, axis=0), s_in)
        found.append(score.mean())
    return np.array(found)


@pytest.mark.parametrize("mode", ["online", "offline_pdf"])
@pytest.mark.parametrize("variance", ["per_sample", "code"])
@pytest.mark.parametrize("models", [8, 9])
def test_lira_equals_the_official_definition(mode: str, variance: str, models: int) -> None:
    rng = np.random.default_rng(0)
    inside = rng.permuted(np.tile(np.arange(models)[:, None] % 2 == 0, (1, 60)), axis=0)
    shadows, phi = (
        rng.normal(size=(models, 60, 3)) + rng.normal(size=(60, 1)),
        rng.normal(size=(60, 3)),
    )
    found = lira(phi, shadows, inside, mode=mode, variance=variance, centre="median")
    np.testing.assert_allclose(
        found, slow_lira(phi, shadows, inside, mode, variance == "code"), rtol=1e-9
    )


def test_variance_variants_meet_in_their_limits() -> None:
    rng = np.random.default_rng(0)
    inside = complement_pairs(rng, 4, 300)
    shadows, phi = (
        rng.normal(size=(8, 300, 2)) * rng.gamma(4, size=(300, 1)),
        rng.normal(size=(300, 2)),
    )
    run = partial(lira, phi, shadows, inside)
    np.testing.assert_allclose(
        run(variance="shrunk", prior=0), run(variance="per_sample"), rtol=1e-9
    )
    np.testing.assert_allclose(
        run(variance="shrunk", prior=1e12), run(variance="pooled"), rtol=1e-6
    )


def test_a_common_variance_cancels_from_the_online_ranking() -> None:
    rng = np.random.default_rng(0)
    inside = complement_pairs(rng, 4, 500)
    shadows, phi = rng.normal(size=(8, 500)), rng.normal(size=500)
    mean = [shadows.mean(axis=0, where=side) for side in (inside, ~inside)]
    assert agree(
        lira(phi, shadows, inside, variance="code"), (phi - mean[1]) ** 2 - (phi - mean[0]) ** 2
    )


def test_pooled_variance_is_the_within_sample_one() -> None:
    rng = np.random.default_rng(0)
    inside = complement_pairs(rng, 4, 20_000)
    shadows = rng.normal(0, 20, 20_000) + np.where(inside, 0.5, 2.0) * rng.normal(size=inside.shape)
    mean = shadows.mean(axis=0, where=~inside)
    # At phi = mean + 2 the p-value tells the standard deviation that was used: 2, not the 20
    # between samples.
    found = lira(mean + 2, shadows, inside, mode="offline_cdf")
    assert found[0] == pytest.approx(-stats.norm.logsf(1.0), abs=0.01)
    coded = lira(mean + 2, shadows, inside, mode="offline_cdf", variance="code")
    assert coded[0] == pytest.approx(-stats.norm.logsf(0.1), abs=0.01)


@pytest.mark.parametrize("variance", ["per_sample", "pooled", "shrunk", "code"])
def test_equal_in_and_out_score_zero(variance: str) -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(4, 50))
    inside = np.repeat([[True], [False]], 4, axis=0) & np.ones((8, 50), dtype=bool)
    found = lira(rng.normal(size=50), np.concatenate([half, half]), inside, variance=variance)
    np.testing.assert_array_equal(found, 0)


@pytest.mark.parametrize("centre", ["mean", "median"])
@pytest.mark.parametrize("variance", ["per_sample", "pooled", "shrunk", "code"])
@pytest.mark.parametrize("mode", ["online", "offline_cdf", "offline_pdf"])
def test_a_shadow_that_was_not_evaluated_is_as_good_as_absent(
    mode: str, variance: str, centre: str
) -> None:
    rng = np.random.default_rng(0)
    inside = complement_pairs(rng, 4, 40)
    shadows, phi = rng.normal(size=(8, 40, 2)), rng.normal(size=(40, 2))
    more = np.concatenate([shadows, np.full((2, 40, 2), np.nan)])
    run = partial(lira, mode=mode, variance=variance, centre=centre)
    padded = run(phi, more, np.concatenate([inside, inside[:2]]))
    np.testing.assert_allclose(padded, run(phi, shadows, inside))
    single = run(phi[:, 0], shadows[:, :, 0], inside)
    np.testing.assert_allclose(run(phi[:, :1], shadows[:, :, :1], inside), single)
    np.testing.assert_allclose(run(phi[:, [0, 0]], shadows[:, :, [0, 0]], inside), single)


def test_too_few_shadows_are_named() -> None:
    inside = np.array([[True, True], [True, True], [False, True], [False, False]])
    phi, shadows = np.zeros(2), np.arange(8.0).reshape(4, 2)
    with pytest.raises(
        ValueError, match=re.escape("sample 1 has 1 OUT shadows, 2 needed (1 samples short)")
    ):
        lira(phi, shadows, inside, variance="per_sample")
    assert np.isfinite(lira(phi, shadows, inside)).all()
    with pytest.raises(ValueError, match="sample 0 has 0 IN"):
        lira(phi, shadows, ~inside & inside)
    assert np.isfinite(lira(phi, shadows, ~inside & inside, mode="offline_cdf")).all()
    with pytest.raises(ValueError, match="two OUT shadows"):
        lira(phi[:1], shadows[1:3, :1], inside[1:3, :1])
    with pytest.raises(ValueError, match="sample 0 has no shadow"):
        log_ratio(phi, -shadows, inside | True, "offline", 0.3)


@pytest.mark.parametrize("attack", [lira, base])
def test_arrays_that_do_not_belong_together_are_named(attack: Callable[..., np.ndarray]) -> None:
    phi, shadows, inside = -np.ones(5), -np.ones((4, 5)), np.zeros((4, 5), dtype=bool)
    for bad in (
        (phi[1:], shadows, inside),
        (phi, shadows[1:], inside),
        (phi, shadows[..., None], inside),
    ):
        with pytest.raises(ValueError, match=r"need .*shadows \(M, N.*got \("):
            attack(*bad)
    with pytest.raises(ValueError, match="Boolean"):
        attack(phi, shadows, inside.astype(int))
    with pytest.raises(ValueError, match="NaN"):
        attack(phi * np.nan, shadows, inside)


@pytest.mark.parametrize(
    "wrong", [{"mode": "offline_both"}, {"variance": "fixed"}, {"centre": "mode"}, {"prior": -1.0}]
)
def test_unknown_variants_are_named(wrong: dict[str, str | float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        lira([0.0], [[0.0], [1.0]], [[True], [False]], **wrong)


# --- RMIA and BASE -----------------------------------------------------------------------------------------------


def rmia_case(seed: int, queries: int = 1, z: int = 300) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    inside = complement_pairs(rng, 4, 200)
    draw = lambda *shape: -rng.exponential(size=(*shape, queries))  # noqa: E731
    return draw(200), draw(8, 200), inside, draw(z), draw(8, z)


def test_rmia_of_the_reference_itself() -> None:
    """Every ratio is 1: no z is beaten strictly when gamma >= 1, every one when gamma < 1."""
    rng = np.random.default_rng(0)
    x, z, inside = (
        -rng.exponential(size=50),
        -rng.exponential(size=30),
        np.zeros((1, 50), dtype=bool),
    )
    for gamma, expected in ((2.0, 0.0), (1.0, 0.0), (0.999, 1.0)):
        np.testing.assert_array_equal(
            rmia(x, x[None], inside, z, z[None], gamma=gamma, ties="share"), expected
        )
    # A tie stays a tie, and the tie-break does not lift a share to the next one.
    assert np.unique(rmia(x, x[None], inside, z, z[None], gamma=1.0)).size == 1


@pytest.mark.parametrize("queries", [1, 2, 3])
@pytest.mark.parametrize("mode", ["online", "offline"])
def test_rmia_equals_its_definition(queries: int, mode: str) -> None:
    x, others, inside, z, others_z = rmia_case(0, queries)
    found = rmia(x, others, inside, z, others_z, mode=mode, a=0.4, gamma=1.3, ties="share")
    expected = np.empty(200)

    def ratio(own: np.ndarray, references: np.ndarray) -> np.ndarray:
        mean = np.exp(references).mean(axis=0)
        return np.exp(own) / (mean if mode == "online" else (1.4 * mean + 0.6) / 2)

    ratio_z = np.stack([ratio(z[k], others_z[:, k]) for k in range(len(z))])
    for j in range(200):
        used = others[:, j] if mode == "online" else others[~inside[:, j], j]
        votes = (ratio(x[j], used) / ratio_z > 1.3).sum(axis=1)
        expected[j] = np.mean(votes > queries / 2)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    order = np.random.default_rng(0).permutation(len(z))
    shuffled = rmia(
        x, others, inside, z[order], others_z[:, order], mode=mode, a=0.4, gamma=1.3, ties="share"
    )
    np.testing.assert_array_equal(found, shuffled)


def test_rmia_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    case = rmia_case(1, queries=2)
    whole = rmia(*case)
    monkeypatch.setattr("leak_atlas.attacks.rmia.BLOCK", 1000)
    np.testing.assert_array_equal(rmia(*case), whole)


def test_offline_rmia_has_its_limits() -> None:
    x, others, inside, z, others_z = rmia_case(2)
    run = partial(rmia, x, others, inside, z, others_z, mode="offline", ties="share")
    out = np.log(np.mean(np.exp(others), axis=0, where=~inside[:, :, None]))
    out_z = np.log(np.mean(np.exp(others_z), axis=0))
    for a, p, p_z in (
        (1.0, out, out_z),
        (0.0, *(np.log((np.exp(v) + 1) / 2) for v in (out, out_z))),
    ):
        expected = np.mean((x - p) > (z - p_z)[:, 0] + np.log(2), axis=1)
        np.testing.assert_allclose(run(a=a), expected)


def test_z_that_shadows_trained_on_leave_the_out_mean() -> None:
    x, others, inside, z, others_z = rmia_case(3)
    run = partial(rmia, x, others, inside, z, mode="offline", ties="share")
    trained = np.random.default_rng(0).permuted(
        np.tile(np.arange(8)[:, None] < 4, (1, len(z))), axis=0
    )
    blind = np.where(trained[:, :, None], np.nan, others_z)
    np.testing.assert_array_equal(run(others_z, member_z=trained), run(blind))


def test_gamma_and_z_cannot_change_the_ranking_and_base_is_its_limit() -> None:
    case = rmia_case(4)
    found = base(*case[:3])
    for gamma in (0.5, 1.0, 2.0, 8.0):
        assert agree(rmia(*case, gamma=gamma), found)
    few = rmia(*case[:3], case[3][:20], case[4][:, :20])
    assert agree(few, found)
    plain = rmia(*case, ties="share")
    assert stats.kendalltau(plain, found).statistic == pytest.approx(1, abs=0.05)
    np.testing.assert_array_equal(np.floor(rmia(*case) * 300 + 1e-6) / 300, plain)


def test_few_z_hide_low_false_positive_rates() -> None:
    """With 50 z all strong samples share the top score; the tie-break gives their order back."""
    rng = np.random.default_rng(0)
    member = np.arange(20_000) < 10_000
    x = -np.exp(-(rng.normal(size=20_000) + 0.8 * member))
    z = -np.exp(-rng.normal(size=50))
    flat = (
        np.full((2, 20_000), -1.0),
        np.zeros((2, 20_000), dtype=bool),
        z,
        np.full((2, 50), -1.0),
    )
    tied = rmia(x, *flat, gamma=1.0, ties="share")
    assert audit.tie_mass(tied) > 0.01 and audit.tpr(tied, member, 0.001) == 0
    assert audit.tpr(rmia(x, *flat, gamma=1.0), member, 0.001) == audit.tpr(x, member, 0.001) > 0


@pytest.mark.parametrize("attack", ["base", "rmia"])
def test_ratio_attacks_have_their_closed_form(attack: str) -> None:
    """Any increasing transform of a shifted Gaussian, against references that all agree: AUC is
    Phi(d / sqrt 2).
    """
    rng = np.random.default_rng(0)
    n = 40_000
    member = np.arange(2 * n) < n
    x, z = -np.exp(-(rng.normal(size=2 * n) + member)), -np.exp(-rng.normal(size=500))
    flat, inside = np.full((4, 2 * n), -0.7), np.zeros((4, 2 * n), dtype=bool)
    found = (
        base(x, flat, inside)
        if attack == "base"
        else rmia(x, flat, inside, z, np.full((4, 500), -0.7))
    )
    area = audit.auc_interval(found, member, level=0.999)
    assert area.low <= stats.norm.cdf(1 / np.sqrt(2)) <= area.high


def test_ratios_keep_the_digits_of_confident_models() -> None:
    """Losses near 1e-18 vanish in a probability; against references of loss 1e-12 their order must
    survive.
    """
    tiny = -np.linspace(1, 5, 50) * 1e-13
    others = np.tile([[-1e-12], [-3e-12]], (1, 50))
    assert agree(base(tiny, others, np.zeros((2, 50), dtype=bool)), tiny)
    single = base(tiny[:1], others[:, :1], np.zeros((2, 1), dtype=bool))
    assert single[0] == pytest.approx(-1e-13 + 2e-12, rel=1e-9)


def test_bad_ratios_are_named() -> None:
    x, others, inside, z, others_z = rmia_case(0)
    with pytest.raises(ValueError, match="log confidences"):
        rmia(np.exp(x), others, inside, z, others_z)
    with pytest.raises(ValueError, match="gamma"):
        rmia(x, others, inside, z, others_z, gamma=0.0)
    with pytest.raises(ValueError, match="queries"):
        rmia(x, others, inside, np.repeat(z, 2, axis=1), np.repeat(others_z, 2, axis=2))


def test_a_shadow_that_trained_on_the_population_is_no_reference_for_it() -> None:
    """A design without test samples: its dev samples are the population, and may be members of a
    shadow.
    """
    rng = np.random.default_rng(0)
    roles = rng.choice([Role.MEMBER, Role.NONMEMBER], size=(5, 60)).astype(np.int8)
    roles[0, 40:], roles[1] = Role.DEV, Role.NONMEMBER  # one shadow knows none of them
    logits = rng.normal(size=(5, 60, 4))
    logits[2:] += 9 * (roles[2:, :, None] == Role.MEMBER) * np.eye(4)[np.arange(60) % 4]
    one = [
        {"logits": z, "labels": np.arange(60) % 4, "role": role}
        for z, role in zip(logits, roles, strict=True)
    ]
    found = infer(RMIA("offline"), Case(one[0], one[1:], roles[1:], {})).scores
    p = signals.log_confidence(logits, np.arange(60) % 4)
    inside = roles[1:] == Role.MEMBER
    expected = rmia(
        p[0, :40],
        p[1:, :40],
        inside[:, :40],
        p[0, 40:],
        p[1:, 40:],
        member_z=inside[:, 40:],
        mode="offline",
    )
    np.testing.assert_array_equal(found, expected)
    unaware = rmia(p[0, :40], p[1:, :40], inside[:, :40], p[0, 40:], p[1:, 40:], mode="offline")
    assert not np.array_equal(found, unaware)


# --- attack networks ---------------------------------------------------------------------------------------------

TRAINED = ("posterior", "posterior_label")


def outputs(
    rng: np.random.Generator, member: np.ndarray, labels: np.ndarray, gap: float
) -> np.ndarray:
    """Logits (..., N, 5) of models that are surer of their members by `gap`."""
    return rng.normal(size=(*member.shape, 5)) + np.eye(5)[labels] * (gap * member)[..., None]


class Trained(NamedTuple):
    scores: np.ndarray
    net: dict[str, np.ndarray]


def network(target, labels, shadows, member, shadow_labels=None, **options) -> Trained:
    """Learns from the shadows, then scores the target."""
    attacker = Network(**options)
    net = trained(shadows, member, labels if shadow_labels is None else shadow_labels, attacker)
    return Trained(networks.scores(net, target, labels, attacker), net)


def test_features_are_posteriors_and_a_one_hot() -> None:
    z, y = np.random.default_rng(0).normal(0, 3, size=(40, 5)), np.arange(40) % 5
    plain, labelled = (features(z, y, Network(inputs)).numpy() for inputs in TRAINED)
    assert plain.dtype == np.float32 and labelled.shape == (40, 10)
    np.testing.assert_allclose(plain, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), atol=1e-7)
    np.testing.assert_array_equal(labelled[:, :5], plain)
    np.testing.assert_array_equal(labelled[:, 5:], np.eye(5)[y])
    with pytest.raises(RuntimeError, match="num_classes"):
        features(z, y + 1, Network("posterior_label"))
    top = features(z, y, Network("top3")).numpy()
    np.testing.assert_array_equal(top, np.sort(plain, axis=1)[:, :-4:-1])
    np.testing.assert_array_equal(
        features(z[:, :2], y % 2, Network("top3")).numpy()[:, 2], np.zeros(40)
    )
    moved = np.random.default_rng(1).random((40, 5)).astype(np.float32)
    for inputs in ("posterior_sensitivity", "posterior_sensitivity_label"):
        found = features(z, y, Network(inputs), moved).numpy()
        np.testing.assert_array_equal(
            found, np.concatenate([plain, moved, labelled[:, 5:]], axis=1)[:, : found.shape[1]]
        )


@pytest.mark.parametrize("inputs", TRAINED)
def test_networks_learn_what_can_be_learnt(inputs: str) -> None:
    """Separable posteriors give themselves away; where only right or wrong tells, the label is what
    it takes.
    """
    rng = np.random.default_rng(0)
    member, y = complement_pairs(rng, 3, 500), rng.integers(5, size=500)
    z = outputs(rng, member, y, 12.0)
    found = network(z[0], y, z[2:], member[2:], inputs=inputs, epochs=8, batch=32)
    assert balanced_accuracy_score(member[0], found.scores >= 0.0) > 0.98
    assert found.net["0.weight"].shape == (128, 5 * (1 + (inputs == "posterior_label")))

    # members are classified rightly, the others wrongly, all as surely
    answer = np.where(member, y, (y + 1) % 5)
    z = 4 * np.eye(5)[answer] + rng.normal(size=(*answer.shape, 5))
    area = audit.auc(
        network(z[0], y, z[2:], member[2:], inputs=inputs, epochs=8, batch=32).scores, member[0]
    )
    assert area > 0.98 if inputs == "posterior_label" else area < 0.6


@pytest.mark.parametrize("inputs", TRAINED)
def test_networks_find_nothing_where_there_is_nothing(inputs: str) -> None:
    """Shuffled membership: models that leak, and shadows whose members are not those that they say."""
    rng = np.random.default_rng(0)
    areas = []
    for seed in range(24):
        told, y = complement_pairs(rng, 3, 1000), rng.integers(5, size=1000)
        z = outputs(rng, complement_pairs(rng, 3, 1000), y, 3.0)
        areas.append(
            audit.auc(
                network(z[0], y, z[2:], told[2:], inputs=inputs, epochs=2, seed=seed).scores,
                told[0],
            )
        )
    found = audit.mean_ci(areas)
    assert finds_nothing(found), found


def test_unbalanced_networks_that_learn_nothing_call_all_samples_what_most_are() -> None:
    rng = np.random.default_rng(0)
    member, y = np.broadcast_to(np.arange(600) < 420, (4, 600)), rng.integers(5, size=600)
    z = outputs(rng, member, y, 0.0)
    alike = network(z[0], y, z[1:], member[1:], epochs=3, balanced=False)
    assert (alike.scores >= 0).all()


def test_networks_are_deterministic_and_leave_the_generator_alone() -> None:
    rng = np.random.default_rng(0)
    member, y = complement_pairs(rng, 2, 200), rng.integers(5, size=200)
    z = outputs(rng, member, y, 3.0)
    run = partial(network, z[0], y, z[2:], member[2:], epochs=2)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one = run()
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    two = run()
    np.testing.assert_array_equal(one.scores, two.scores)
    assert all(np.array_equal(one.net[name], two.net[name]) for name in one.net)
    assert not np.array_equal(run(seed=1).scores, one.scores)


def test_networks_weigh_both_sides_alike_and_leave_out_what_was_not_met() -> None:
    """One member in ten: the threshold stays in the middle. What a shadow never met changes
    nothing.
    """
    rng = np.random.default_rng(0)
    member, y = np.broadcast_to(np.arange(600) < 60, (4, 600)), rng.integers(5, size=600)
    z = outputs(rng, member, y, 12.0)
    found = network(z[0], y, z[1:], member[1:], epochs=8, batch=32)
    assert balanced_accuracy_score(member[0], found.scores >= 0.0) > 0.98
    more = np.concatenate([z[1:], np.full((3, 50, 5), np.nan)], axis=1)
    inside = np.concatenate([member[1:], np.ones((3, 50), bool)], axis=1)
    labels = np.concatenate([y, np.zeros(50, int)])
    again = network(z[0], y, more, inside, shadow_labels=labels, epochs=8, batch=32)
    np.testing.assert_array_equal(again.scores, found.scores)
    with pytest.raises(ValueError, match="one member and one non-member"):
        network(z[0], y, z[1:], np.ones_like(member[1:]))
    with pytest.raises(ValueError, match=r"labels \(N,\)"):
        network(z[0], y[:5], z[1:], member[1:])


# --- the null and the count leak ---------------------------------------------------------------------------------

ATTACKS: dict[str, Callable[..., np.ndarray]] = {
    "lira pooled": lira,
    "lira per_sample": partial(lira, variance="per_sample"),
    "lira per_sample median": partial(lira, variance="per_sample", centre="median"),
    "lira shrunk": partial(lira, variance="shrunk"),
    "lira code": partial(lira, variance="code", centre="median"),
    "lira offline_cdf": partial(lira, mode="offline_cdf"),
    "lira offline_pdf": partial(lira, mode="offline_pdf", variance="per_sample"),
    "base": base,
    "rmia": lambda t, s, m: rmia(
        t[:-200], s[:, :-200], m[:, :-200], t[-200:], s[:, -200:], member_z=m[:, -200:]
    ),
    "rmia offline": lambda t, s, m: rmia(
        t[:-200],
        s[:, :-200],
        m[:, :-200],
        t[-200:],
        s[:, -200:],
        member_z=m[:, -200:],
        mode="offline",
    ),
    "rmia two queries": lambda t, s, m: rmia(
        *(np.stack([v, v[..., ::-1]], axis=-1) if v.dtype == float else v for v in (t, s, m)),
        np.stack([t[:200]] * 2, axis=-1),
        np.stack([s[:, :200]] * 2, axis=-1),
    ),
    "threshold": lambda t, s, m: global_threshold(t, s, m, sign="shadows").scores,
    "class thresholds": lambda t, s, m: class_thresholds(t, np.arange(len(t)) % 10, s, m).scores,
}


# Targets that are each other's shadows depend on each other, so the unit of these tests is a whole
# population, drawn afresh. All their intervals hold together at 95 %: one in twenty would otherwise
# fail by chance, whatever the seed.
NULL_LEVEL = 1 - 0.05 / (len(ATTACKS) + 4)


def null_auc(
    attack: Callable[..., np.ndarray], pairs: int, pair_leaves: bool = True
) -> audit.Estimate:
    """AUC of signals that know nothing of membership, each model attacked with the others of its
    population.
    """
    rng = np.random.default_rng(0)
    units = []
    for _ in range(12):
        member = complement_pairs(rng, pairs, 2000)
        values = -rng.exponential(size=member.shape)  # below 0, so that ratio attacks take them too
        areas = []
        for target in range(len(member)):
            others = (
                without_pair(len(member), target)
                if pair_leaves
                else np.arange(len(member)) != target
            )
            scores = attack(values[target], values[others], member[others])
            areas.append(float(audit.auc(scores, member[target, : len(scores)])))
        units.append(np.mean(areas))
    return audit.mean_ci(units, level=NULL_LEVEL)


def finds_nothing(found: audit.Estimate) -> bool:
    """Whether 0.5 is inside an interval that would have noticed an AUC off by 0.02."""
    return found.low <= 0.5 <= found.high and found.high - found.low < 0.04


@pytest.mark.parametrize("name", ATTACKS)
def test_null(name: str) -> None:
    """Ten models in complement pairs; eight are left when a target's pair leaves."""
    found = null_auc(ATTACKS[name], pairs=5)
    assert finds_nothing(found), found


@pytest.mark.parametrize("name", ["lira per_sample", "lira per_sample median"])
def test_counts_leak_when_only_the_target_leaves(name: str) -> None:
    """Eight models: without the target a sample has 3 IN shadows if it is a member, else 4. Noise
    then gives .43.
    """
    assert 0.40 < null_auc(ATTACKS[name], pairs=4, pair_leaves=False).high < 0.45
    assert finds_nothing(null_auc(ATTACKS[name], pairs=4))


def test_targets_that_are_each_others_shadows_need_the_wider_interval() -> None:
    """A population's mean AUC varies near twice as much as its targets' own spread says: hence a
    design effect.
    """
    rng = np.random.default_rng(0)
    runs = []
    for _ in range(150):
        member = complement_pairs(rng, 3, 400)
        values = rng.normal(size=member.shape)
        runs.append([])
        for target in range(6):
            others = without_pair(6, target)
            runs[-1].append(
                float(
                    audit.auc(lira(values[target], values[others], member[others]), member[target])
                )
            )
    areas = np.array(runs)
    effect = areas.mean(axis=1).var(ddof=1) / (areas.var(axis=1, ddof=1).mean() / 6)
    assert effect > 1.4
    inside = [
        [
            found.low <= 0.5 <= found.high
            for row in areas
            for found in [audit.mean_ci(row, design_effect=wide)]
        ]
        for wide in (1.0, LiRA().crossing)
    ]
    assert np.mean(inside[0]) < 0.9 < 0.92 < np.mean(inside[1])


@pytest.mark.parametrize("a", [0.3, 1.0])
def test_offline_ratios_keep_their_digits(a: float) -> None:
    """Against 200 digits: mean OUT probabilities from e^-2000 to 1 - 1e-15."""
    out = np.array([-2000.0, -745.2, -30.0, -1e-3, -1e-9, -1e-15])
    own = np.array([-1.0, -700.0, -2.0, -2e-3, -3e-9, -2e-16])
    with localcontext() as context:
        context.prec = 1200
        average = [((1 + Decimal(a)) * Decimal(x).exp() + 1 - Decimal(a)) / 2 for x in out]
        exact = [float(Decimal(p) - q.ln()) for p, q in zip(own, average, strict=True)]
    population = np.array([-5.0])
    found = rmia(
        own, out[None], np.zeros((1, 6), bool), population, population[None], mode="offline", a=a
    )
    np.testing.assert_array_equal(np.argsort(found), np.argsort(exact))
    ratio = log_ratio(own, out[None], np.zeros((1, 6), bool), "offline", a)
    np.testing.assert_allclose(ratio[:, 0], exact, 1e-13)


# --- power under realistic shadows -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lira pooled", "lira shrunk", "lira offline_cdf", "base", "rmia"])
def test_calibrated_attacks_beat_the_threshold(name: str) -> None:
    """Samples differ in difficulty far more than by membership: shadows calibrate that, a global
    threshold cannot.
    """
    rng = np.random.default_rng(0)
    member = complement_pairs(rng, 5, 6000)
    margin = rng.normal(1, 3, 6000) + 1.5 * member + rng.normal(size=member.shape)
    values = -np.logaddexp(0, -margin) if "lira" not in name else margin
    others = without_pair(10, 0)
    scores = ATTACKS[name](values[0], values[others], member[others])
    inside = member[0, : len(scores)]
    assert audit.auc(scores, inside) > audit.auc(values[0, : len(scores)], inside) + 0.05
