"""The membership classifier on features: what it sees, what it must not see, and its numbers by
hand.
"""

import numpy as np
import torch

from leak_atlas import audit
from leak_atlas.localization.membership import geometry, membership_scores
from leak_atlas.models import build
from leak_atlas.recipe import CrossEntropy, Model, Schedule
from leak_atlas.training.loop import fit
from tests.localization.small import images


def halves(n: int, seed: int) -> np.ndarray:
    chosen = np.zeros(n, bool)
    chosen[np.random.default_rng(seed).permutation(n)[: n // 2]] = True
    return chosen


def test_a_network_trained_on_other_samples_tells_nothing() -> None:
    n = 9000
    net = build(Model("resnet10", width=2), 1, 4, 0)
    data = images(9000, classes=4)
    member = halves(n, 1)
    known = halves(n, 2)
    scores = membership_scores(net, data, torch.arange(n), member, known)
    assert scores.shape == (6, (~known).sum())
    found = [audit.auc_interval(part, member[~known], 0.99) for part in scores]
    assert all(each.low < 0.5 < each.high for each in found)
    assert all(
        audit.auc_interval(part, member[~known]).high - each.value < 0.02
        for part, each in zip(scores, found, strict=True)
    )


def test_an_overfitted_network_tells_at_its_end_and_not_at_its_stem() -> None:
    n = 600
    net = build(Model("resnet10", width=4), 1, 4, 0)
    data = images(600, classes=4)
    member = halves(n, 1)
    known = halves(n, 2)
    fit(
        net,
        data,
        torch.as_tensor(np.flatnonzero(member)),
        Schedule(25, 32, lr=0.1),
        CrossEntropy(),
        seed=0,
    )
    scores = membership_scores(net, data, torch.arange(n), member, known)
    stem, *_, last, head = (audit.auc_interval(part, member[~known]) for part in scores)
    assert last.low > 0.6
    assert head.low > 0.6
    assert stem.low < 0.5


def test_what_the_attacker_is_not_told_changes_nothing() -> None:
    n = 200
    net = build(Model("resnet10", width=2), 1, 4, 0)
    data = images(200, classes=4)
    member = halves(n, 1)
    known = halves(n, 2)
    swapped = np.where(known, member, ~member)
    first, second = (
        membership_scores(net, data, torch.arange(n), each, known, dimensions=50)
        for each in (member, swapped)
    )
    np.testing.assert_array_equal(first, second)


def test_geometry_by_hand() -> None:
    x = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0], [0.0, 4.0]])
    labels = np.array([0, 0, 1, 1])
    known = np.array([1, 1, 1, 0], bool)
    found = geometry(x, labels, known)
    # Of sample 0 the rest of its class is (1, 0), and the other class (0, 2).
    expected = [np.log(5), np.log(np.hypot(2, 4)), np.log(np.hypot(3, 2)), 3 / 5, 4 / 5]
    np.testing.assert_allclose(found[0], expected, rtol=1e-9)
    # Sample 2 is the only known one of its class, so the mean of all stands for it; sample 3 has
    # sample 2.
    np.testing.assert_allclose(
        found[2, 1], np.log(np.linalg.norm(x[2] - x[:3].mean(axis=0))), rtol=1e-9
    )
    np.testing.assert_allclose(found[3, [1, 3]], [np.log(2), 1], rtol=1e-9)
