"""The statistics against closed forms, against scikit-learn, and against counting by hand."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.metrics import roc_auc_score, roc_curve

from leak_atlas import audit
from leak_atlas.audit import Estimate

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@st.composite
def labelled(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A score vector full of ties, infinities among them, with both classes present."""
    size = draw(st.integers(2, 40))
    values = st.sampled_from([-np.inf, -2.0, -1.0, 0.0, 0.5, 1.0, 3.0, np.inf])
    scores = np.array(draw(st.lists(values, min_size=size, max_size=size)))
    member = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    member[:2] = [True, False]
    return scores, member


def gaussian(shift: float, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    member = np.arange(2 * n) < n
    return np.random.default_rng(seed).normal(size=2 * n) + shift * member, member


def row(
    scores: np.ndarray, member: np.ndarray, design_effect: float = 1.0, **more: np.ndarray
) -> dict[str, Estimate]:
    return audit.audit({"scores": scores, "member": member} | more, design_effect=design_effect)


# --- rates


@quick
@given(labelled(), st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.29, 0.5, 1.0]))
def test_rates_equal_sklearn_with_ties(case: tuple[np.ndarray, np.ndarray], fpr: float) -> None:
    scores, member = case
    # sklearn takes no infinities; clipping keeps the order and the ties
    finite = np.clip(scores, -9, 9)
    fprs, tprs, _ = roc_curve(member, finite, drop_intermediate=False)
    assert audit.auc(scores, member) == pytest.approx(roc_auc_score(member, finite), abs=1e-12)
    assert audit.balanced_accuracy(scores, member) == pytest.approx(
        np.max(1 + tprs - fprs) / 2, abs=1e-12
    )
    assert audit.tpr(scores, member, fpr) == tprs[fprs <= fpr].max()


@quick
@given(labelled())
def test_intervals_hold_their_value_and_stay_in_range(case: tuple[np.ndarray, np.ndarray]) -> None:
    scores, member = case
    rates = [audit.tpr(scores, member, fpr) for fpr in (0.0, 0.1, 0.3, 1.0)]
    assert rates == sorted(rates)
    assert rates[-1] == 1
    for estimate in (
        audit.auc_interval(scores, member),
        audit.tpr_at_fpr(scores, member, 0.1),
        *row(np.stack([scores, -scores]), member).values(),
    ):
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_many_vectors_equal_one_at_a_time() -> None:
    rng = np.random.default_rng(0)
    scores = np.round(rng.normal(size=(3, 4, 200)), 1)
    common = rng.random(200) < 0.4
    own = rng.random((3, 4, 200)) < 0.5  # unequal class sizes from vector to vector
    for member in (common, own):
        for measure in (audit.auc, partial(audit.tpr, fpr=0.03)):
            rates = measure(scores, member)
            each = np.broadcast_to(member, scores.shape)
            assert rates.shape == (3, 4)
            assert all(rates[at] == measure(scores[at], each[at]) for at in np.ndindex(3, 4))


@pytest.mark.parametrize(
    ("fpr", "non_members", "allowed"), [(0.29, 100, 29), (0.07, 100, 7), (0.001, 999, 0)]
)
def test_allowed_false_positives_do_not_suffer_from_rounding(
    fpr: float, non_members: int, allowed: int
) -> None:
    scores = np.arange(non_members + 1.0)
    for above in (allowed, allowed + 1):  # non-members above the only member
        assert audit.tpr(scores, scores == non_members - above, fpr) == (above == allowed)


def test_at_a_cutoff_as_many_non_members_pass_as_the_fpr_allows() -> None:
    outside = np.random.default_rng(0).permutation(20).astype(float)
    for allowed in range(20):
        cutoff = audit.cutoff_at_fpr([outside, outside], (allowed + 0.5) / 20)
        assert cutoff.shape == (2,)
        assert (outside > cutoff[0]).sum() == allowed
    assert audit.cutoff_at_fpr(outside, 1.0) == audit.cutoff_at_fpr([], 0.1) == -np.inf
    assert audit.cutoff_at_fpr([1.0, 2.0, 2.0], 0.4) == 2.0, "tied with one that may not pass"


@pytest.mark.parametrize(
    ("scores", "member", "says"),
    [
        ([0.1, np.nan], [True, False], "NaN"),
        ([0.1, 0.2], [1, 0], "Boolean"),
        ([0.1, 0.2, 0.3], [True, False], "shape"),
        (np.zeros((2, 2)), [[True, False], [False, False]], "one member and one non-member"),
    ],
)
def test_bad_input_is_named(scores: list[float], member: list[bool], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        audit.auc(scores, member)


# --- closed forms


def test_gaussian_shift_has_its_closed_forms() -> None:
    for shift in (1.0, 2.0):
        scores, member = gaussian(shift, 100_000)
        truth = stats.norm.cdf(shift / np.sqrt(2))
        found = audit.auc_interval(scores, member, level=0.999)
        assert found.low <= truth <= found.high
        assert found.high - found.low < 0.01
        at_best = audit.balanced_accuracy(scores, member)
        assert at_best == pytest.approx(stats.norm.cdf(shift / 2), abs=0.004)
        for fpr in (0.01, 0.001, 0.0001):
            found = audit.tpr_at_fpr(scores, member, fpr, level=0.999)
            assert found.low <= stats.norm.sf(stats.norm.isf(fpr) - shift) <= found.high


def test_delong_is_the_covariance_of_the_placements() -> None:
    scores, member = gaussian(0.7, 60, seed=3)
    both = np.stack([scores, np.random.default_rng(4).normal(size=120) + scores])
    placed = [[(s[member][:, None] > s[~member]).mean(axis=axis) for s in both] for axis in (1, 0)]
    expected = sum(np.cov(each) / 60 for each in placed)
    np.testing.assert_allclose(audit.delong(both, member), expected)
    paired = audit.delong_difference(*both, member, member)
    assert paired == pytest.approx(np.array([1, -1]) @ expected @ [1, -1])
    assert audit.delong_difference(*both, member, ~member) == pytest.approx(np.trace(expected))
    estimate = audit.auc_interval(scores, member)
    assert estimate.error == pytest.approx(np.sqrt(expected[0, 0]))
    reach = stats.norm.ppf(0.975) * estimate.error / (estimate.value * (1 - estimate.value))
    ends = special.expit(special.logit(estimate.value) + np.array([-reach, reach]))
    assert (estimate.low, estimate.high) == pytest.approx(tuple(ends))


def test_a_perfect_score_on_few_samples_is_not_certain() -> None:
    member = np.arange(20) < 10
    found = audit.auc_interval(member.astype(float), member)
    assert found.high == 1
    assert found.low == pytest.approx(0.025**0.1)
    assert not audit.auc_interval([1.0, 0.0], [True, False]).resolved


@pytest.mark.parametrize(
    ("fpr", "non_members", "label"),
    [
        (0.001, 1000, "TPR at 0.1 % FPR (0.2 % expected)"),
        (0.001, 20_000, "TPR at 0.1 % FPR"),
        (0.001, 999, "TPR at zero false positives"),
        (0.00001, 100_000, "TPR at 0.001 % FPR (0.002 % expected)"),
    ],
)
def test_a_tpr_is_named_for_what_it_is(fpr: float, non_members: int, label: str) -> None:
    assert audit.tpr_label(fpr, non_members) == label
    assert audit.is_resolved(fpr, non_members) == ("zero" not in label)


def test_clopper_pearson_is_scipys() -> None:
    for hits, number in ((7, 60), (0, 2000), (60, 60)):
        exact = stats.binomtest(hits, number).proportion_ci(method="exact")
        assert audit.clopper_pearson(hits, number) == pytest.approx((exact.low, exact.high))
    low, high = audit.clopper_pearson([0, 7], [2000, 60])
    assert (low[1], high[1]) == audit.clopper_pearson(7, 60)
    with pytest.raises(ValueError, match="k <= n"):
        audit.clopper_pearson(3, 2)


def test_the_interval_of_a_tpr_joins_the_errors_of_rate_and_threshold() -> None:
    scores, member = gaussian(1.0, 200, seed=1)
    inside = scores[member]
    outside = np.sort(scores[~member])[::-1]
    value = np.mean(inside > outside[20])
    low, high = audit.clopper_pearson(value * 200, 200)
    fewest, most = stats.binom.interval(0.95, 200, 0.1)  # non-members above the true threshold
    stricter = np.mean(inside >= outside[int(fewest) - 1])
    laxer = np.mean(inside > outside[int(most)])
    found = audit.tpr_at_fpr(scores, member, 0.1)
    assert found.value == value
    assert found.low == pytest.approx(value - np.hypot(value - low, value - stricter))
    assert found.high == pytest.approx(value + np.hypot(high - value, laxer - value))


# --- coverage: an interval that claims 95 % has it


@pytest.mark.parametrize("rate", ["auc", "tpr"])
def test_intervals_over_samples_cover(rate: str) -> None:
    truth = {"auc": stats.norm.cdf(1 / np.sqrt(2)), "tpr": stats.norm.sf(stats.norm.isf(0.02) - 1)}
    measure = {"auc": audit.auc_interval, "tpr": partial(audit.tpr_at_fpr, fpr=0.02)}[rate]
    estimates = [measure(*gaussian(1.0, 250, seed)) for seed in range(300)]
    covered = np.mean([one.low <= truth[rate] <= one.high for one in estimates])
    assert 0.92 < covered < (0.99 if rate == "auc" else 1)  # not by being too wide


# --- targets


def test_a_mean_has_students_interval() -> None:
    values = np.array([0.61, 0.58, 0.66, 0.6])
    mean = audit.mean_ci(values)
    expected = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert (mean.low, mean.high) == pytest.approx(expected)
    wider = audit.mean_ci(values, design_effect=2.0)
    assert wider.high - wider.value == pytest.approx(np.sqrt(2) * (mean.high - mean.value))
    alone = audit.mean_ci([0.6], bounds=(0, 1))
    assert (alone.low, alone.high, alone.resolved) == (0, 1, False)
    for bad in ([], [0.5, np.nan]):
        with pytest.raises(ValueError, match="at least one"):
            audit.mean_ci(bad)


@pytest.mark.parametrize(
    ("targets", "effect", "resolved"), [(5, 2.3, True), (4, 1.2, True), (4, 2.3, False)]
)
def test_four_targets_that_are_each_others_shadows_are_not_resolved(
    targets: int, effect: float, resolved: bool
) -> None:
    values = np.linspace(0.6, 0.63, targets)
    assert audit.mean_ci(values, design_effect=effect).resolved == resolved


def test_the_jackknife_of_a_mean_is_its_interval() -> None:
    values = np.random.default_rng(0).normal(size=9)
    jackknifed = audit.jackknife(lambda units: values[units].mean(), 9, design_effect=1.3)
    plain = audit.mean_ci(values, design_effect=1.3)
    assert (jackknifed.value, jackknifed.low) == pytest.approx((plain.value, plain.low))
    assert not audit.jackknife(lambda units: 1.0, 1).resolved


def test_paired_difference_removes_what_targets_share() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(0, 5, 8)
    a = common + rng.normal(0, 0.1, 8) + 0.5
    b = common + rng.normal(0, 0.1, 8)
    found = audit.paired_difference(a, b)
    expected = stats.ttest_rel(a, b).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.high - found.low < 0.2 < audit.mean_ci(a).high - audit.mean_ci(a).low
    with pytest.raises(ValueError, match="shape"):
        audit.paired_difference(a, b[1:])


def test_deviations_tell_which_variant_varies_more() -> None:
    assert audit.deviations([1.0, 5.0, 2.0]).tolist() == [1, 3, 0]
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(0, [[3], [1]], (2, 200))
    assert audit.paired_difference(audit.deviations(wide), audit.deviations(narrow)).low > 1


def test_audit_of_targets() -> None:
    rng = np.random.default_rng(0)
    member = rng.random((5, 4000)) < 0.5
    scores = rng.normal(size=member.shape) + member
    areas = audit.auc(scores, member)
    leak = row(scores, member)
    wide = row(scores, member, design_effect=2.3)
    rates = ["tpr_at_1%", "tpr_at_0.1%", "tpr_at_0.001%"]
    assert leak["auc"] == audit.mean_ci(areas)
    assert wide["auc"] == audit.mean_ci(areas, design_effect=2.3)
    best = audit.balanced_accuracy(scores, member)
    widened = audit.mean_ci(best, bounds=(0, 1), design_effect=2.3)
    assert wide["best_balanced_accuracy"] == widened
    assert wide["tpr_at_1%"] == leak["tpr_at_1%"], "a TPR depends on no other target's"
    assert [leak[rate].resolved for rate in rates] == [True, True, False]
    halves = [{"scores": scores[part], "member": member[part]} for part in (slice(2), slice(2, 5))]
    means = [areas[:2].mean(), areas[2:].mean()]
    several = audit.audit(halves, design_effect=2.3)["auc"]
    assert several == audit.mean_ci(means, bounds=(0, 1)), "each experiment is a unit"


def test_equal_tprs_have_the_interval_of_the_pooled_counts() -> None:
    """In each of three targets, 30 of 100 members are above all non-members."""
    member = np.tile(np.arange(200) < 100, (3, 1))
    scores = np.where(member, 0.0, 1.0)
    scores[:, :30] = 2.0
    rate = row(scores, member)["tpr_at_1%"]
    assert rate.value == pytest.approx(0.3)
    assert (rate.low, rate.high) == pytest.approx(audit.clopper_pearson(90, 300))


def test_no_true_positive_in_any_target_is_not_certainty() -> None:
    scores = np.zeros((4, 1000))
    member = np.arange(1000) < 500
    rate = row(scores, member)["tpr_at_1%"]
    assert (rate.value, rate.low, rate.df) == (0, 0, np.inf)
    assert rate.high == pytest.approx(1 - 0.025 ** (1 / 2000))
    assert rate.at(0.99).low == 0
    assert rate.high < rate.at(0.99).high < 1.5 * rate.high, "not stretched by Student's law"


def test_estimates_print_as_in_tables() -> None:
    assert str(Estimate(0.7031, 0.6899, 0.7162)) == "0.703 [0.690, 0.716]"
    assert f"{Estimate(0.0012, 0.0, 0.01):.2%}" == "0.12% [0.00%, 1.00%]"


def test_an_attackers_own_threshold_stands_beside_the_oracles_and_the_majority() -> None:
    member = np.arange(1000) < 700
    scores = np.random.default_rng(0).normal(size=(6, 1000)) + 2.0 * member
    leak = row(scores, member, thresholds=np.full(6, 1.0))
    by_hand = ((scores >= 1.0) == member).mean(axis=1)
    assert leak["accuracy"] == audit.mean_ci(by_hand, bounds=(0, 1))
    assert leak["majority"].value == pytest.approx(0.7)
    oracle = audit.balanced_accuracy(scores, member)
    assert leak["best_balanced_accuracy"] == audit.mean_ci(oracle, bounds=(0, 1))
    assert "accuracy" not in row(scores, member, thresholds=np.full(6, np.nan)), "as of LiRA"


# --- several claims


def test_an_interval_moves_to_another_level_as_students_does() -> None:
    values = np.random.default_rng(1).normal(size=6)
    moved = audit.mean_ci(values).at(0.99)
    strict = audit.mean_ci(values, level=0.99)
    assert (moved.low, moved.high) == pytest.approx((strict.low, strict.high))
    null = gaussian(0.0, 200)
    strict = audit.auc_interval(*null, 0.99)
    assert audit.auc_interval(*null).at(0.99).high == pytest.approx(strict.high, abs=1e-3)


def test_the_mirror_image_of_an_estimate_has_mirrored_bounds() -> None:
    mirrored = -Estimate(0.02, 0.0, 0.05, bounds=(0, 1))
    stricter = mirrored.at(0.99)
    assert stricter.low < mirrored.low == -0.05
    assert stricter.high == 0


def test_claims_of_all_pay_for_their_number_at_the_far_end() -> None:
    rng = np.random.default_rng(0)
    each = [audit.mean_ci(rng.normal(i, 1, 6)) for i in range(3)]
    least = audit.least(each)
    largest = audit.largest(-one for one in each)
    assert least.value == min(one.value for one in each)
    assert least.low == min(one.low for one in each)
    assert least.high == pytest.approx(min(one.at(1 - 0.05 / 3).high for one in each))
    assert (largest.value, largest.low, largest.high) == (-least.value, -least.high, -least.low)
    assert audit.least(each[:1]) == each[0]
    assert not audit.least([each[0], Estimate(0, 0, 0, 1, False)]).resolved
    with pytest.raises(ValueError, match="at least one"):
        audit.least([])


def test_no_effect_is_rarely_called_one_in_some_of_many() -> None:
    """Of eight comparisons without an effect, "some lies below" and "some lies above" err in 2.5 %
    each, at most.
    """
    rng = np.random.default_rng(2)
    wrong = []
    for _ in range(400):
        each = [audit.mean_ci(values) for values in rng.normal(size=(8, 10))]
        wrong.append([audit.least(each).high < 0, audit.largest(each).low > 0])
    assert np.mean(wrong, axis=0).max() < 0.05
