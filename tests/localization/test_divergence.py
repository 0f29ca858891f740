"""Gaps between members and non-members, by hand and against scikit-learn."""

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
    permuted_labels,
    same_predictions,
)
from leak_atlas.recipe import Data, Model, Population, PruningStudy, Schedule


def test_gaps_by_hand() -> None:
    values, member, label = [1.0, 3.0, 0.0, 1.0], [True, True, False, False], [0, 1, 0, 1]
    assert gap(values, member) == 1.5
    assert gap_by_class(values, member, label, 3)[:2].tolist() == [1.0, 2.0]
    assert np.isnan(gap_by_class(values, member, label, 3)[2])
    assert np.isnan(gap(values, [True] * 4))


def test_behaviour_is_that_of_the_true_class_on_members_and_non_members() -> None:
    role = np.array([Role.MEMBER, Role.DEV, Role.NONMEMBER, Role.UNUSED])
    signals = {"role": role, "labels": np.array([1, 0, 0, 1]), "index": np.array([2, 5, 7, 9])}
    signals["logits"] = np.log([[0.25, 0.75], [0.5, 0.5], [0.1, 0.9], [0.5, 0.5]])
    sensitivity = {
        "index": np.array([2, 7]),
        "sensitivity": np.array([[1.0, 2.0], [3.0, 4.0]], np.float32),
    }
    found = behaviour(signals, sensitivity)
    assert found["confidence"] == pytest.approx([0.75, 0.1])
    assert found["sensitivity"].tolist() == [2.0, 3.0]
    assert found["generalization"].tolist() == [1.0, 0.0]
    assert {name: gap(found[name], found["member"]) for name in GAPS}["sensitivity"] == -1.0
    (state,) = PruningStudy(
        Data(pixels=8), Model(width=4), Schedule(1, 8), 1, pool=80, dev=8, targets=1
    ).dense
    population = Population((state, state))
    noise = population.sensitivity()[:1]
    results = {population.signals()[0]: signals, noise[0]: sensitivity}
    (same,) = behaviours(results, {"dense": population}, {"dense": noise})["dense"]
    assert all(np.array_equal(same[name], found[name]) for name in found)
    assert {kind: values.tolist() for kind, values in gaps([same, same]).items()} == {
        "confidence": pytest.approx([0.65, 0.65]),
        "sensitivity": [1.0, 1.0],
        "generalization": [1.0, 1.0],
    }


def test_two_networks_predict_the_same_classes_of_non_members() -> None:
    role = np.array([Role.MEMBER, Role.NONMEMBER, Role.NONMEMBER, Role.NONMEMBER, Role.NONMEMBER])
    one = {"role": role, "logits": np.eye(3)[[0, 0, 1, 2, 2]]}
    other = {"role": role, "logits": np.eye(3)[[1, 0, 1, 2, 0]]}
    assert same_predictions(one, other) == 0.75


def test_labels_are_shuffled_on_each_side_alone() -> None:
    label, member = np.arange(200) % 7, np.arange(200) % 3 > 0
    permuted = permuted_labels(label, member, np.random.default_rng(0))
    assert (permuted != label).mean() > 0.5
    for side in (member, ~member):
        assert np.array_equal(np.bincount(permuted[side]), np.bincount(label[side]))
