"""Gaps between members and non-members, by hand and against scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from lib.data.designs import Role
from lib.localization.divergence import (
    GAPS,
    behaviour,
    gap,
    gap_at_accuracy,
    gap_by_class,
    partial_correlation,
    ranked,
    shuffled_within,
)


def test_gaps_by_hand() -> None:
    values, member, label = [1.0, 3.0, 0.0, 1.0], [True, True, False, False], [0, 1, 0, 1]
    assert gap(values, member) == 1.5
    assert gap_by_class(values, member, label, 3)[:2].tolist() == [1.0, 2.0]
    assert np.isnan(gap_by_class(values, member, label, 3)[2])
    assert np.isnan(gap(values, [True] * 4))


def test_a_gap_with_the_accuracy_held_forgets_how_many_are_right() -> None:
    values, member = [0.9, 0.8, 0.1, 0.1, 0.1], [True, False, False, False, False]
    right = [1.0, 1.0, 0.0, 0.0, 0.0]
    assert gap_at_accuracy(values, member, right, 0.25) == pytest.approx(gap(values, member))
    assert gap_at_accuracy(values, member, right, 0.5) == pytest.approx(0.9 - (0.8 + 0.1) / 2)
    assert gap_at_accuracy(values, member, [1.0] * 5, 0.5) == pytest.approx(gap(values, member))
    assert np.isnan(gap_at_accuracy(values, [True] * 5, right, 0.5))


def test_behaviour_is_that_of_the_true_class_on_members_and_non_members() -> None:
    role = np.array([Role.MEMBER, Role.DEV, Role.NONMEMBER, Role.UNUSED])
    signals = {"role": role, "labels": np.array([1, 0, 0, 1]), "index": np.array([2, 5, 7, 9])}
    signals["logits"] = np.log([[0.25, 0.75], [0.5, 0.5], [0.1, 0.9], [0.5, 0.5]])
    sensitivity = {"index": np.array([2, 7]), "sensitivity": np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)}
    found = behaviour(signals, sensitivity)
    assert found["confidence"] == pytest.approx([0.75, 0.1])
    assert found["sensitivity"].tolist() == [2.0, 3.0]
    assert found["generalisation"].tolist() == [1.0, 0.0]
    assert {name: gap(found[name], found["member"]) for name in GAPS}["sensitivity"] == -1.0


def test_partial_correlation_is_that_of_the_residuals() -> None:
    draws = np.random.default_rng(0)
    given = draws.normal(size=(200, 2))
    x, y = given @ [1.0, 2.0] + draws.normal(size=200), given @ [3.0, 0.5] + draws.normal(size=200)
    left = [each - LinearRegression().fit(given, each).predict(given) for each in (x, y)]
    assert partial_correlation(x, y, given) == pytest.approx(np.corrcoef(left)[0, 1])
    assert abs(partial_correlation(x, y, given)) < 0.2 < np.corrcoef(x, y)[0, 1]
    assert partial_correlation(x, np.full(200, 0.7), given) == partial_correlation(given[:, 0], y, given) == 0
    assert partial_correlation(x, x + y, np.empty((200, 0))) == pytest.approx(np.corrcoef(x, x + y)[0, 1])
    several = partial_correlation([x, given[:, 0], x], [y, y, y], [given, given, 0 * given])
    assert several == pytest.approx([partial_correlation(x, y, given), 0, np.corrcoef(x, y)[0, 1]])
    groups = np.eye(4)[np.arange(200) % 4]  # with the constant they depend on each other
    assert partial_correlation(x, y, groups) == pytest.approx(partial_correlation(x, y, groups[:, 1:]), rel=1e-12)


def test_labels_are_shuffled_on_each_side_alone() -> None:
    label, member = np.arange(200) % 7, np.arange(200) % 3 > 0
    dealt = shuffled_within(label, member, np.random.default_rng(0))
    assert (dealt != label).mean() > 0.5
    for side in (member, ~member):
        assert np.array_equal(np.bincount(dealt[side]), np.bincount(label[side]))


def test_ranked_posteriors_of_members_are_compared_in_pairs_whatever_their_classes() -> None:
    one, other = np.log([0.5, 0.3, 0.2]), np.log([0.2, 0.7, 0.1])

    def found(*logits: np.ndarray) -> float:
        role = np.array([Role.MEMBER] * len(logits) + [Role.NONMEMBER])
        return ranked({"role": role, "logits": np.array([*logits, [9.0, 0.0, 0.0]], np.float32)})

    assert found(one, one[::-1]) == pytest.approx(0, abs=1e-6)
    second = np.array([0.7, 0.2, 0.1])
    assert found(one, other) == pytest.approx((second * np.log(second / [0.5, 0.3, 0.2])).sum(), rel=1e-6)
    assert found(one, one, other, one, other) == pytest.approx(found(one, other) / 2)  # the last has no partner
