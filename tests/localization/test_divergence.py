"""Gaps between members and non-members, by hand and against scikit-learn."""

from types import SimpleNamespace

import numpy as np
import pytest

from leak_atlas.data.designs import Role
from leak_atlas.localization.divergence import (
    GAPS,
    behaviour,
    behaviours,
    gap,
    gap_by_class,
    gaps,
    losses,
    output_entropies,
    permuted_labels,
    same_predictions,
)


def test_gaps_by_hand() -> None:
    values = [1.0, 3.0, 0.0, 1.0]
    member = [True, True, False, False]
    label = [0, 1, 0, 1]
    assert gap(values, member) == 1.5
    assert gap_by_class(values, member, label, 3)[:2].tolist() == [1.0, 2.0]
    assert np.isnan(gap_by_class(values, member, label, 3)[2])
    assert np.isnan(gap(values, [True] * 4))


SIGNALS = {
    "role": np.array([Role.MEMBER, Role.DEV, Role.NONMEMBER, Role.UNUSED]),
    "labels": np.array([1, 0, 0, 1]),
    "index": np.array([2, 5, 7, 9]),
    "logits": np.log([[0.25, 0.75], [0.5, 0.5], [0.1, 0.9], [0.5, 0.5]]),
}
SENSITIVITY = {
    "index": np.array([2, 7]),
    "sensitivity": np.array([[1.0, 2.0], [3.0, 4.0]], np.float32),
}


def test_behaviour_is_that_of_the_true_class_on_members_and_non_members() -> None:
    found = behaviour(SIGNALS, SENSITIVITY)
    assert found["confidence"] == pytest.approx([0.75, 0.1])
    assert found["sensitivity"].tolist() == [2.0, 3.0]
    assert found["generalization"].tolist() == [1.0, 0.0]
    assert {name: gap(found[name], found["member"]) for name in GAPS}["sensitivity"] == -1.0
    assert {kind: values.tolist() for kind, values in gaps([found, found]).items()} == {
        "confidence": pytest.approx([0.65, 0.65]),
        "sensitivity": [1.0, 1.0],
        "generalization": [1.0, 1.0],
    }


def test_behaviours_are_those_of_the_first_networks_of_each_variant() -> None:
    results = {"first": SIGNALS, "its sensitivity": SENSITIVITY}
    population = SimpleNamespace(signals=lambda: ("first", "second"))
    found = behaviours(results, {"plain": population}, {"plain": ["its sensitivity"]})
    (first,) = found["plain"]
    assert first["confidence"] == pytest.approx([0.75, 0.1])
    assert first["sensitivity"].tolist() == [2.0, 3.0]


def test_two_networks_predict_the_same_classes_of_non_members() -> None:
    role = np.array([Role.MEMBER, Role.NONMEMBER, Role.NONMEMBER, Role.NONMEMBER, Role.NONMEMBER])
    one = {"role": role, "logits": np.eye(3)[[0, 0, 1, 2, 2]]}
    other = {"role": role, "logits": np.eye(3)[[1, 0, 1, 2, 0]]}
    assert same_predictions(one, other) == 0.75


def test_labels_are_shuffled_on_each_side_alone() -> None:
    label = np.arange(200) % 7
    member = np.arange(200) % 3 > 0
    permuted = permuted_labels(label, member, np.random.default_rng(0))
    assert (permuted != label).mean() > 0.5
    for side in (member, ~member):
        assert np.array_equal(np.bincount(permuted[side]), np.bincount(label[side]))


def test_losses_are_the_cross_entropy_of_each_network() -> None:
    probability = np.array([0.5, 0.25, 0.9])
    stored = {
        "views": np.log(probability / (1 - probability))[:, None],
        "role": np.array([Role.MEMBER, Role.MEMBER, Role.TEST]),
    }
    results = {"first": stored, "second": stored | {"role": stored["role"][::-1]}}
    assert losses(results, results, Role.MEMBER) == pytest.approx(
        [np.log(8) / 2, -np.log(0.25 * 0.9) / 2]
    )
    assert losses(results, ["first"], Role.TEST) == pytest.approx([-np.log(0.9)])


def test_output_entropies_are_shares_of_the_largest_one() -> None:
    certain = [0.0, 99.0, 0.0, 0.0]
    undecided = [1.0] * 4
    stored = {
        "logits": np.array([certain, undecided, undecided]),
        "labels": np.array([1, 0, 0]),
        "role": np.array([Role.MEMBER, Role.MEMBER, Role.TEST]),
    }
    assert output_entropies({"one": stored}, ["one"]) == pytest.approx([0.5])
