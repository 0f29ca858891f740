"""The statistics against closed forms, against scikit-learn, and against counting by hand."""

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.metrics import balanced_accuracy_score, roc_auc_score, roc_curve

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


# --- rates -------------------------------------------------------------------------------------------------------


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
def test_auc_symmetries(case: tuple[np.ndarray, np.ndarray]) -> None:
    scores, member = case
    area = audit.auc(scores, member)
    assert audit.auc(-scores, member) == pytest.approx(1 - area, abs=1e-12)
    assert audit.auc(scores, ~member) == pytest.approx(1 - area, abs=1e-12)
    assert audit.auc(np.arctan(scores), member) == area
    order = np.random.default_rng(0).permutation(scores.size)
    assert audit.auc(scores[order], member[order]) == area
    wins = scores[member][:, None] > scores[~member]
    ties = scores[member][:, None] == scores[~member]
    assert area == pytest.approx(np.mean(wins + 0.5 * ties), abs=1e-12)


@quick
@given(labelled())
def test_intervals_hold_their_value_and_stay_in_range(case: tuple[np.ndarray, np.ndarray]) -> None:
    scores, member = case
    rates = [audit.tpr(scores, member, fpr) for fpr in (0.0, 0.1, 0.3, 1.0)]
    assert rates == sorted(rates) and rates[-1] == 1
    for estimate in (
        audit.auc_interval(scores, member),
        audit.tpr_at_fpr(scores, member, 0.1),
        *row(np.stack([scores, -scores]), member).values(),
    ):
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


@quick
@given(labelled(), st.sampled_from([-np.inf, -1.5, 0.0, 0.25, 1.0, np.inf]))
def test_no_threshold_is_better_than_the_best(
    case: tuple[np.ndarray, np.ndarray], threshold: float
) -> None:
    scores, member = case
    assert (
        audit.balanced_accuracy(scores, member)
        >= balanced_accuracy_score(member, scores >= threshold) - 1e-12
    )


def test_many_vectors_equal_one_at_a_time() -> None:
    rng = np.random.default_rng(0)
    scores, common = np.round(rng.normal(size=(3, 4, 200)), 1), rng.random(200) < 0.4
    own = rng.random((3, 4, 200)) < 0.5  # unequal class sizes from vector to vector
    measures: list[Callable[..., np.ndarray]] = [
        audit.auc,
        audit.balanced_accuracy,
        lambda s, m: audit.tpr(s, m, 0.03),
    ]
    for measure in measures:
        for member in (common, own):
            found = measure(scores, member)
            assert found.shape == (3, 4)
            each = np.broadcast_to(member, scores.shape)
            for at in np.ndindex(3, 4):
                assert found[at] == measure(scores[at], each[at])


def test_extremes() -> None:
    member = np.arange(2000) < 1000
    perfect, constant = member.astype(float), np.zeros(2000)
    for fpr in audit.HEADLINE_FPRS:
        assert audit.tpr(perfect, member, fpr) == 1
        assert audit.tpr(constant, member, fpr) == 0
    assert audit.auc(perfect, member) == 1 and audit.auc(constant, member) == 0.5
    assert audit.balanced_accuracy(constant, member) == 0.5
    assert audit.tie_mass(constant) == 1 and audit.tie_mass(perfect) == 0.5
    np.testing.assert_array_equal(audit.tie_mass(np.array([[1.0, 2.0], [3.0, 3.0]])), [0.5, 1.0])


def test_tied_top_gets_no_interpolated_tpr() -> None:
    # 10 members and 1 of 100 non-members share the top: at FPR 0 nobody passes, at 1 % all ten do.
    scores = np.r_[np.ones(10), np.zeros(90), np.ones(1), np.zeros(99)]
    member = np.arange(200) < 100
    assert audit.tpr(scores, member, 0.009) == 0
    assert audit.tpr(scores, member, 0.01) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("fpr", "non_members", "allowed"), [(0.29, 100, 29), (0.07, 100, 7), (0.001, 999, 0), (1, 7, 7)]
)
def test_allowed_false_positives_do_not_suffer_from_rounding(
    fpr: float, non_members: int, allowed: int
) -> None:
    scores = np.arange(non_members + 1.0)
    member = np.zeros(non_members + 1, dtype=bool)
    # `allowed` above the member, or one more
    for place in (non_members - allowed, non_members - allowed - 1):
        if place < 0:
            continue
        member[:] = False
        member[place] = True
        assert audit.tpr(scores, member, fpr) == (place == non_members - allowed)


def test_at_a_cutoff_as_many_non_members_pass_as_the_fpr_allows() -> None:
    outside = np.random.default_rng(0).permutation(20).astype(float)
    for allowed in range(21):
        cutoff = audit.cutoff_at_fpr(
            [outside, outside], (allowed + 0.5) / 20 if allowed < 20 else 1.0
        )
        assert cutoff.shape == (2,) and (outside > cutoff[0]).sum() == allowed
    assert audit.cutoff_at_fpr([1.0, 2.0, 2.0], 0.4) == 2.0, "tied with one that may not pass"
    assert audit.cutoff_at_fpr([], 0.1) == -np.inf


@pytest.mark.parametrize(
    ("scores", "member", "says"),
    [
        ([0.1, np.nan], [True, False], "NaN"),
        ([0.1, 0.2], [1, 0], "Boolean"),
        ([0.1, 0.2], [True, True], "one member and one non-member"),
        ([0.1, 0.2, 0.3], [True, False], "shape"),
        (
            [[0.1, 0.2], [0.1, 0.2]],
            [[True, False], [False, False]],
            "one member and one non-member",
        ),
    ],
)
def test_bad_input_is_named(scores: list[float], member: list[bool], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        audit.auc(scores, member)


# --- closed forms ------------------------------------------------------------------------------------------------


def test_gaussian_shift_has_its_closed_forms() -> None:
    for shift in (1.0, 2.0):
        scores, member = gaussian(shift, 100_000)
        truth = stats.norm.cdf(shift / np.sqrt(2))
        found = audit.auc_interval(scores, member, level=0.999)
        assert found.low <= truth <= found.high and found.high - found.low < 0.01
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
    found = audit.auc_interval(scores, member)
    error, value = np.sqrt(expected[0, 0]), found.value
    assert found.error == pytest.approx(error)
    ends = special.expit(
        special.logit(value)
        + np.array([-1, 1]) * stats.norm.ppf(0.975) * error / (value * (1 - value))
    )
    assert (found.low, found.high) == pytest.approx(tuple(ends))


def test_a_perfect_score_on_few_samples_is_not_certain() -> None:
    member = np.arange(20) < 10
    found = audit.auc_interval(member.astype(float), member)
    assert found.high == 1 and found.low == pytest.approx(0.025**0.1)
    assert not audit.auc_interval([1.0, 0.0], [True, False]).resolved


def test_resolution_is_named_for_what_it_is() -> None:
    assert audit.resolution(2000) == 0.0005
    assert audit.tpr_label(0.001, 1000) == "TPR at 0.1 % FPR (0.2 % expected)"
    assert audit.tpr_label(0.01, 500) == "TPR at 1 % FPR (1.2 % expected)"
    assert audit.tpr_label(0.001, 20_000) == "TPR at 0.1 % FPR"
    assert audit.tpr_label(0.001, 999) == "TPR at zero false positives"
    assert audit.tpr_label(0.00001, 99_999) == "TPR at zero false positives"
    assert audit.tpr_label(0.00001, 100_000) == "TPR at 0.001 % FPR (0.002 % expected)"
    scores, member = gaussian(2.0, 500)
    assert audit.tpr_at_fpr(scores, member, 0.01).resolved
    assert not audit.tpr_at_fpr(scores, member, 0.001).resolved


def test_clopper_pearson_values() -> None:
    low, high = audit.clopper_pearson([0, 0, 5, 50], [2000, 25_000, 25_000, 25_000])
    np.testing.assert_allclose(low, [0, 0, 0.00006, 0.00148], atol=6e-6)
    np.testing.assert_allclose(high, [0.0018, 0.00015, 0.00047, 0.00264], atol=5e-5)
    assert high[0] == pytest.approx(1 - 0.025 ** (1 / 2000))
    exact = stats.binomtest(7, 60).proportion_ci(method="exact")
    assert audit.clopper_pearson(7, 60) == pytest.approx((exact.low, exact.high))
    assert audit.clopper_pearson(60, 60)[1] == 1
    with pytest.raises(ValueError, match="k <= n"):
        audit.clopper_pearson(3, 2)


# --- coverage: an interval that claims 95 % has it ---------------------------------------------------------------


def test_intervals_over_samples_cover() -> None:
    truth = {"auc": stats.norm.cdf(1 / np.sqrt(2)), "tpr": stats.norm.sf(stats.norm.isf(0.02) - 1)}
    hit = dict.fromkeys(truth, 0)
    for seed in range(300):
        scores, member = gaussian(1.0, 250, seed)
        found = {
            "auc": audit.auc_interval(scores, member),
            "tpr": audit.tpr_at_fpr(scores, member, 0.02),
        }
        for name, estimate in found.items():
            hit[name] += estimate.low <= truth[name] <= estimate.high
    for name, count in hit.items():
        assert count / 300 > 0.92, name
    assert hit["auc"] / 300 < 0.99  # not by being too wide


# --- targets -----------------------------------------------------------------------------------------------------


def test_over_is_students_interval() -> None:
    values = np.array([0.61, 0.58, 0.66, 0.6])
    expected = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    found = audit.mean_ci(values)
    assert (found.low, found.high) == pytest.approx(expected) and found.n == 4 and found.resolved
    alone = audit.mean_ci([0.6])
    assert (alone.low, alone.high, alone.resolved) == (-np.inf, np.inf, False)
    assert audit.mean_ci([0.0, 1.0], bounds=(0, 1)).high == 1
    assert (found.error, found.df) == (pytest.approx(stats.sem(values)), 3)
    wider = audit.mean_ci(values, design_effect=2.0)
    assert wider.high - wider.value == pytest.approx(np.sqrt(2) * (found.high - found.value))
    for bad in ([], [0.5, np.nan]):
        with pytest.raises(ValueError, match="at least one"):
            audit.mean_ci(bad)


def test_paired_difference_removes_what_targets_share() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(0, 5, 8)
    a, b = common + rng.normal(0, 0.1, 8) + 0.5, common + rng.normal(0, 0.1, 8)
    found = audit.paired_difference(a, b)
    expected = stats.ttest_rel(a, b).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.high - found.low < 0.2 < audit.mean_ci(a).high - audit.mean_ci(a).low
    with pytest.raises(ValueError, match="shape"):
        audit.paired_difference(a, b[1:])


def test_audit_of_targets() -> None:
    rng = np.random.default_rng(0)
    member = rng.random((5, 4000)) < 0.5
    scores = rng.normal(size=member.shape) + member
    found = row(scores, member)
    assert found["auc"] == audit.mean_ci(audit.auc(scores, member))
    wide = row(scores, member, design_effect=2.3)
    assert wide["auc"] == audit.mean_ci(audit.auc(scores, member), design_effect=2.3)
    assert wide["tpr_at_1%"] == found["tpr_at_1%"], "a TPR depends on no other target's"
    assert list(found) == [
        "auc",
        "best_balanced_accuracy",
        "tpr_at_1%",
        "tpr_at_0.1%",
        "tpr_at_0.001%",
    ]
    assert all(estimate.n == 5 for estimate in found.values())
    assert found["auc"].low < stats.norm.cdf(1 / np.sqrt(2)) < found["auc"].high
    assert found["tpr_at_0.1%"].resolved and not found["tpr_at_0.001%"].resolved
    for one in (slice(1), 0):
        single = row(member[one].astype(float), member[one])
        assert not single["auc"].resolved and (single["auc"].low, single["auc"].high) == (0, 1)
    halves = [{"scores": scores[part], "member": member[part]} for part in (slice(2), slice(2, 5))]
    areas = [audit.auc(half["scores"], half["member"]).mean() for half in halves]
    assert audit.audit(halves, design_effect=2.3)["auc"] == audit.mean_ci(areas, bounds=(0, 1)), (
        "each is a unit"
    )


def test_no_true_positive_in_any_target_is_not_certainty() -> None:
    scores, member = np.zeros((4, 1000)), np.arange(1000) < 500
    found = row(scores, member)["tpr_at_1%"]
    assert (found.value, found.low) == (0, 0) and found.high == pytest.approx(
        1 - 0.025 ** (1 / 2000)
    )


def test_estimates_print_as_in_tables() -> None:
    assert str(Estimate(0.7031, 0.6899, 0.7162)) == "0.703 [0.690, 0.716]"
    assert f"{Estimate(0.0012, 0.0, 0.01):.2%}" == "0.12% [0.00%, 1.00%]"


def test_import_stays_light() -> None:
    heavy = "{'torch', 'sklearn', 'pandas', 'scipy.stats', 'matplotlib'}"
    code = (
        "import sys, leak_atlas.audit, leak_atlas.attacks.lira, leak_atlas.attacks.rmia, leak_atlas.attacks.signals, leak_atlas.attacks.threshold;"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_an_attackers_own_threshold_stands_beside_the_oracles_and_the_majority() -> None:
    rng = np.random.default_rng(0)
    member = np.arange(1000) < 700
    scores = rng.normal(size=(6, 1000)) + 2.0 * member
    found = row(scores, member, thresholds=np.full(6, 1.0))
    by_hand = ((scores >= 1.0) == member).mean(axis=1)
    assert found["accuracy"] == audit.mean_ci(by_hand, bounds=(0, 1))
    assert (found["majority"].value, found["majority"].low) == (
        pytest.approx(0.7),
        pytest.approx(0.7),
    )
    assert (
        found["best_balanced_accuracy"].value
        >= audit.balanced_accuracy(scores, member).mean() - 1e-12
    )
    assert "accuracy" not in row(scores, member, thresholds=np.full(6, np.nan)), (
        "LiRA names no threshold"
    )


def test_four_targets_that_are_each_others_shadows_are_not_resolved() -> None:
    values = [0.6, 0.62, 0.61, 0.63, 0.6]
    assert (
        audit.mean_ci(values, design_effect=2.3).resolved
        and audit.mean_ci(values[:4], design_effect=1.2).resolved
    )
    assert not audit.mean_ci(values[:4], design_effect=2.3).resolved


# --- several claims ----------------------------------------------------------------------------------------------


def test_an_interval_moves_to_another_level_as_students_does() -> None:
    values = np.random.default_rng(1).normal(size=6)
    found, strict = audit.mean_ci(values), audit.mean_ci(values, level=0.99)
    assert (found.at(0.99).low, found.at(0.99).high) == pytest.approx((strict.low, strict.high))
    scores, member = gaussian(0.0, 200)
    assert audit.auc_interval(scores, member).at(0.99).high == pytest.approx(
        audit.auc_interval(scores, member, 0.99).high, abs=1e-3
    )


@quick
@given(st.lists(st.floats(-3, 3), min_size=3, max_size=8, unique=True), st.floats(-4, 4))
def test_p_is_students_and_agrees_with_the_interval(values: list[float], border: float) -> None:
    found = audit.mean_ci(values)
    assert found.p(border) == pytest.approx(stats.ttest_1samp(values, border).pvalue, abs=1e-9)
    assert (found.p(border) < 0.05) == (not found.low <= border <= found.high)


def test_p_where_there_is_no_error() -> None:
    assert (Estimate(2, 2, 2).p(1), Estimate(2, 2, 2).p(2)) == (0, 1)
    assert np.isnan(audit.mean_ci([0.6]).p(0.5))
    skewed = Estimate(0.01, 0.005, 0.04)  # of no form: the end that faces the border decides
    assert skewed.p(0.005) == pytest.approx(0.05) and skewed.p(0.04) == pytest.approx(0.05)


def test_claims_of_all_pay_for_their_number_at_the_far_end() -> None:
    rng = np.random.default_rng(0)
    each = [audit.mean_ci(rng.normal(i, 1, 6)) for i in range(3)]
    found = audit.least(each)
    assert found.value == min(e.value for e in each) and found.low == min(e.low for e in each)
    assert found.high == pytest.approx(min(e.at(1 - 0.05 / 3).high for e in each))
    assert found.high > min(e.high for e in each)
    mirror = audit.largest(-e for e in each)
    assert (mirror.value, mirror.low, mirror.high) == (-found.value, -found.high, -found.low)
    assert audit.least(each[:1]) == each[0]
    assert not audit.least([each[0], Estimate(0, 0, 0, 1, False)]).resolved
    with pytest.raises(ValueError, match="at least one"):
        audit.least([])


def test_p_of_several_is_that_of_the_least_sure() -> None:
    """What reaches farthest down need not be what lies lowest: the p is no smaller than each one's
    own.
    """
    wide, narrow = Estimate(0.10, 0.022, 0.178), Estimate(0.05, 0.026, 0.074)
    assert audit.least([wide, narrow]).p(0) == pytest.approx(wide.p(0)) and wide.p(
        0
    ) > 100 * narrow.p(0)
    assert audit.least([wide, narrow]).p(0.07) == pytest.approx(2 * narrow.p(0.07))
    assert audit.largest([-wide, -narrow]).p(0) == pytest.approx(wide.p(0))
    rng = np.random.default_rng(4)
    for _ in range(50):
        each = [audit.mean_ci(values) for values in rng.normal(0.5, 1, (3, 6))]
        for joined in (audit.least(each), audit.largest(each)):
            for border in rng.normal(0.5, 1, 5):
                assert (joined.p(border) < 0.05) == (not joined.low <= border <= joined.high)


def test_joined_ends_move_by_the_normal_law_and_inside_the_range() -> None:
    """Two targets, no member found: Clopper-Pearson's end is not stretched by one degree of
    freedom.
    """
    none = {
        "scores": np.tile(np.arange(40.0), (2, 1)),
        "member": np.tile(np.arange(40) < 20, (2, 1)),
    }
    found = audit.audit(none)["tpr_at_1%"]
    assert (found.value, found.low) == (0, 0) and found.df == np.inf
    assert found.at(0.99).low == 0 and found.high < found.at(0.99).high < 1.5 * found.high


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


# --- moderated variance ------------------------------------------------------------------------------------------


def family(
    rng: np.random.Generator, size: int, n: int, d0: float = 8.0
) -> tuple[list[Estimate], np.ndarray, np.ndarray]:
    """Comparisons whose true unit variances scatter around what samples tell; the truth is 0."""
    expected = rng.uniform(0.5, 2, size)
    true = 1.3 * expected * d0 / rng.chisquare(d0, size)
    units = rng.normal(size=(size, n)) * np.sqrt(true)[:, None]
    return [audit.mean_ci(values) for values in units], expected / n, true / expected


def test_moderated_intervals_cover_and_are_shorter() -> None:
    rng = np.random.default_rng(3)
    hits, widths, apart = [], [], []
    for _ in range(60):
        plain, expected, excess = family(rng, 30, 4)
        found = audit.moderate(plain, expected)
        hits += [one.low <= 0 <= one.high for one in found]
        widths.append(
            np.mean([one.error * stats.t.ppf(0.975, one.df) for one in found])
            / np.mean([p.high - p.value for p in plain])
        )
        apart += list(excess > np.quantile(excess, 0.9))
    assert 0.93 < np.mean(hits) < 0.97 and np.mean(widths) < 0.8
    assert 0.75 < np.mean(np.array(hits)[apart]) < 0.93, (
        "the most heterogeneous tenth is covered less, as the page says"
    )


def test_a_family_without_scatter_is_pooled_and_keeps_what_has_no_error() -> None:
    rng = np.random.default_rng(5)
    plain = [audit.mean_ci(values) for values in rng.normal(size=(40, 4))]
    odd = audit.mean_ci([0.3])
    *found, last = audit.moderate([*plain, odd], np.full(41, 0.25))
    assert last is odd
    errors = np.array([one.error for one in found])
    assert errors.std() < 0.1 and errors.mean() == pytest.approx(0.5, abs=0.06)
    assert all(one.moderated and one.value == p.value for one, p in zip(found, plain, strict=True))
    with pytest.raises(ValueError, match="at least three"):
        audit.moderate(plain[:2], [1, 1])
