"""Threshold attacks: the best threshold by search, and closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import balanced_accuracy_score

from leak_atlas import audit
from leak_atlas.attacks import signals
from leak_atlas.attacks.threshold import best_threshold, threshold
from leak_atlas.recipe import Threshold
from tests.attacks.simulated import complement_pairs, threshold_attack

VALUES = (-np.inf, -1.0, 0.0, 0.5, np.nextafter(0.5, 1), 2.0, np.inf)


def test_gap_attack_is_070_exactly() -> None:
    """All members right, 60 % of the non-members right: (1 + 0.4) / 2."""
    member = np.arange(1000) < 500
    logits = np.where(np.arange(1000)[:, None] < 800, [1.0, 0.0], [0.0, 1.0])
    right = signals.score("correctness", logits, np.zeros(1000, dtype=int))
    scored = threshold_attack(right, right[None], member[None])
    assert scored.threshold == 0.5
    assert balanced_accuracy_score(member, scored.scores >= 0.5) == pytest.approx(0.70)
    assert audit.auc(scored.scores, member) == pytest.approx(0.70, abs=1e-12)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(st.sampled_from(VALUES), st.booleans()), min_size=1, max_size=40))
def test_best_threshold_beats_every_other_threshold(rows: list[tuple[float, bool]]) -> None:
    signal = np.array([value for value, _ in rows])
    member = np.array([inside for _, inside in rows])
    tau, accuracy = best_threshold(signal, member)
    if member.all() or not member.any():
        assert np.isnan(tau)
        assert accuracy == 0
        return
    assert accuracy == pytest.approx(audit.balanced_accuracy(signal, member))
    assert balanced_accuracy_score(member, signal >= tau) == pytest.approx(accuracy)


@pytest.mark.parametrize(
    ("member", "tau"),
    [((0, 0, 1, 1), 1.5), ((0, 1, 0, 1), 2.5)],  # the second has two maxima, .5 and 2.5
)
def test_threshold_lies_in_the_middle_of_equally_good_ones(
    member: tuple[int, ...], tau: float
) -> None:
    assert best_threshold(np.arange(4.0), np.array(member, bool))[0] == tau


def test_class_thresholds_remove_what_classes_differ_in() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    labels = rng.integers(5, size=n)
    offset = np.array([-4.0, -2.0, 0.0, 2.0, 4.0])[labels]
    member = complement_pairs(rng, 3, n)
    values = offset + member + rng.normal(size=member.shape)
    scored = threshold_attack(values[0], values[2:], member[2:], labels)
    # Each class alone is a unit shift; a threshold is off by some sampling error only.
    closed_form = stats.norm.cdf(1 / np.sqrt(2))
    assert audit.auc(scored.scores, member[0]) == pytest.approx(closed_form, abs=0.01)
    transferred = balanced_accuracy_score(member[0], scored.scores >= scored.threshold)
    assert transferred == pytest.approx(stats.norm.cdf(0.5), abs=0.01)
    pooled = threshold_attack(values[0], values[2:], member[2:])
    assert audit.auc(pooled.scores, member[0]) < 0.65
    assert np.array_equal(pooled.scores, values[0])


def test_class_without_both_sides_takes_the_threshold_of_all_classes() -> None:
    shadows = np.array([0.0, 1.0, 4.0, 5.0])
    member = np.array([False, True, False, True])
    target = np.array([0.5, 9.0, 9.0])
    labels = np.array([0, 1, 3])
    shadow_labels = np.array([0, 0, 2, 3])
    scored = threshold(target, labels, shadows, shadow_labels, member, Threshold())
    overall, _ = best_threshold(shadows, member)
    np.testing.assert_allclose(scored.scores, [0.0, 9.0 - overall, 9.0 - overall])
    with pytest.raises(ValueError, match="at least one member"):
        threshold(target, labels, shadows, shadow_labels, member | True, Threshold())


@pytest.mark.parametrize("by_class", [False, True])
def test_shadows_may_turn_the_sign(by_class: bool) -> None:
    rng = np.random.default_rng(0)
    member = complement_pairs(rng, 2, 4000)
    values = rng.normal(size=member.shape) - member  # a defence that makes members look worse
    labels = rng.integers(3, size=4000) if by_class else None
    plain = threshold_attack(values[0], values[2:], member[2:], labels)
    assert audit.auc(plain.scores, member[0]) < 0.3
    turned = threshold_attack(values[0], values[2:], member[2:], labels, sign="shadows")
    assert audit.auc(turned.scores, member[0]) > 0.7
    assert balanced_accuracy_score(member[0], turned.scores >= turned.threshold) > 0.65
    flat = np.ones((1, 2))
    undecided = threshold_attack(
        np.array([1.0, 2.0]), flat, np.array([[True, False]]), sign="shadows"
    )
    assert undecided.scores[1] == 2
