"""BlindMI's differential comparison, against its definition written out, and on clouds."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from leak_atlas import BadInput, audit, lab
from leak_atlas.attacks.blindmi import blindmi, differential, features, kernel
from leak_atlas.data.resident import Resident
from leak_atlas.recipe import (
    BlindMI,
    Data,
    Generated,
    Model,
    RandomHalves,
    Schedule,
    Setup,
)
from leak_atlas.training.answers import generated
from tests.attacks.simulated import finds_nothing

Points = NDArray[np.float64]


def mmd(a: Points, b: Points) -> float:
    return max(1e-4, kernel(a, a).mean() + kernel(b, b).mean() - 2 * kernel(a, b).mean())


def slowly(targets: Points, outside: Points) -> list[bool]:
    """Whether each target is a member: every distance computed anew."""
    member = np.ones(len(targets), bool)
    while True:
        before = mmd(targets[member], outside)
        remaining = member.copy()
        for i in np.flatnonzero(member) if member.sum() > 1 else ():
            others = member & (np.arange(len(targets)) != i)
            moved = np.vstack([outside, targets[i]])
            remaining[i] = mmd(targets[others], moved) <= before
        if (remaining == member).all() or not remaining.any():
            return remaining.tolist()
        member = remaining


def test_kernel_and_features_closed_forms() -> None:
    assert kernel(np.zeros((1, 3)), np.zeros((1, 3))) == 19
    expected = sum(
        np.exp(-1 / (2 * s))
        for s in (1, 5, 10, 15, 20, 25, 30, 35, 100, 1e3, 1e4, 1e5, 1e6, 0.1, 0.01)
    )
    assert kernel(np.zeros((1, 2)), np.array([[0.6, 0.8]])) == pytest.approx(expected)
    z = np.log([[0.5, 0.3, 0.2]])
    np.testing.assert_allclose(features(z, [2]), [[0.2, 0.5, 0.3]])


def test_nothing_moves_between_equal_sets() -> None:
    assert not differential(np.ones((20, 3)), np.ones((20, 3))).any()


@pytest.mark.parametrize(("distance", "member"), [(3e-5, True), (1e-4, False)])
def test_an_mmd_below_the_published_minimum_is_no_difference(distance: float, member: bool) -> None:
    """All others are equal. If the one target moves, the MMD is 3e-5 or 3e-4."""
    targets = np.zeros((20, 1))
    targets[0] = distance
    assert (differential(targets, np.zeros((5, 1)))[0] >= 0) == member


@pytest.mark.parametrize("size", [1, 2, 7, 20])
def test_updated_sums_equal_sums_computed_anew(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(20):
        targets = rng.random((size, 3))
        outside = rng.random((5, 3)) ** 3
        assert (differential(targets, outside) >= 0).tolist() == slowly(targets, outside)


def test_a_batch_is_compared_with_the_generated_samples_alone() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(50, 4))
    labels = np.arange(50) % 4
    generated = rng.normal(size=(20, 4)), np.arange(20) % 4
    outside = features(*generated)
    expected = np.empty(50)
    for batch in np.split(np.random.default_rng(0).permutation(50), [20, 40]):
        expected[batch] = differential(features(logits[batch], labels[batch]), outside)
    scores = blindmi(logits, labels, *generated, BlindMI(batch=20))
    np.testing.assert_array_equal(scores, expected)


def test_samples_near_the_generated_ones_are_non_members() -> None:
    rng = np.random.default_rng(0)
    member = np.arange(2000) % 2 == 0
    labels = np.zeros(2000, int)
    zero = np.zeros(20, int)
    logits = np.zeros((2000, 3))
    generated = np.zeros((20, 3))
    logits[:, 0] = np.where(member, 6, 0.5) + 0.2 * rng.normal(size=2000)
    generated[:, 0] = 0.5 + 0.2 * rng.normal(size=20)
    scores = blindmi(logits, labels, generated, zero, BlindMI())
    assert ((scores >= 0) == member).mean() > 0.95
    assert audit.auc(scores, member) > 0.98
    np.testing.assert_array_equal(blindmi(logits, labels, generated, zero, BlindMI()), scores)
    assert not np.array_equal(blindmi(logits, labels, generated, zero, BlindMI(seed=1)), scores)


def test_null() -> None:
    rng = np.random.default_rng(0)
    areas = []
    for seed in range(12):
        labels = rng.integers(5, size=3000)
        member = rng.permutation(3000) < 1500
        logits = rng.normal(size=(3000, 5)) + 2 * np.eye(5)[labels]
        scores = blindmi(
            logits, labels, rng.normal(size=(20, 5)), rng.integers(5, size=20), BlindMI(seed=seed)
        )
        areas.append(float(audit.auc(scores, member)))
    assert finds_nothing(audit.mean_ci(areas)), areas


def test_generated_images_are_edges_and_bits_are_coins() -> None:
    steps = np.zeros((2, 6, 6, 1), np.uint8)
    steps[:, :, 3:] = 10
    labels = torch.tensor([3, 4])
    data = Resident(torch.tensor(steps), labels, torch.tensor([0.3]), torch.tensor([0.2]), 2, 5)
    made = generated(data, np.array([1, 0, 1]), 0)
    assert made.samples.dtype == torch.uint8
    assert made.labels.tolist() == [4, 3, 4]
    # 4 * 10 of the horizontal gradient on both sides of the step, halved with a vertical one of 0.
    assert made.samples[0, 2, :, 0].tolist() == [0, 0, 20, 20, 0, 0]
    for dtype, variance in ((torch.uint8, 0.25), (torch.float32, 1)):
        data = Resident(
            torch.zeros(9, 400, dtype=dtype), torch.zeros(9), torch.empty(0), torch.empty(0), 9, 5
        )
        vectors = generated(data, np.arange(9), 0).samples
        assert vectors.dtype == dtype
        assert vectors.double().var() == pytest.approx(variance, abs=0.1)
        assert vectors.unique().tolist() == [0, 1] or dtype != torch.uint8


def test_blindmi_uses_no_shadow_models() -> None:
    design = RandomHalves(80, test=40)
    models = Setup(Data(pixels=8), design, Model("resnet10", width=2), Schedule(2, 32), 3).trained()
    attack = models.attack(BlindMI(), targets=1, shadows=models)
    assert {step.of for step in attack.parents()} == {models[0]}
    assert not attack.targets_are_shadows
    found = lab.realize(attack, Generated(models[0]))
    assert found[attack]["scores"].shape == (1, 80)
    assert found[attack]["thresholds"].tolist() == [0]
    reader = Model("transformer", width=8)
    text = Setup(Data("wordnet-glosses"), RandomHalves(100), reader, Schedule(1), 1).trained()
    with pytest.raises(BadInput, match="no words"):
        list(text.attack(BlindMI()).parents())
