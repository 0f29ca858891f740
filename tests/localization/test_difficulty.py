"""Hardness measures of networks whose answers are made up."""

import numpy as np
import pytest
from scipy import special, stats

from leak_atlas.data.designs import Role
from leak_atlas.localization.difficulty import (
    difficulty,
    mean_loss_until,
    mean_over_members,
)

EPOCHS = (0, 1, 2, 4)


def answers(
    posteriors: dict[int, np.ndarray], role: np.ndarray
) -> dict[int, list[dict[str, np.ndarray]]]:
    """Networks whose posteriors of class 0, the right one of two, are `(K, n)` at each epoch."""
    n = role.shape[1]
    found: dict[int, list[dict[str, np.ndarray]]] = {epoch: [] for epoch in posteriors}
    for epoch, each in posteriors.items():
        for p, own in zip(each, role, strict=True):
            logits = np.stack([special.logit(p), np.zeros(n)], axis=1).astype(np.float32)
            signals = {"logits": logits, "labels": np.zeros(n, int), "index": np.arange(n)}
            found[epoch].append(signals | {"role": own})
    return found


def test_measures_by_hand() -> None:
    """Two networks trained on the first two of four samples; the last is not in the pool."""
    role = np.array([[Role.MEMBER, Role.MEMBER, Role.NONMEMBER, Role.TEST]] * 2)
    easy = [0.5, 0.9, 0.9, 0.9]
    hard = [0.5, 0.6, 0.4, 0.8]
    out = [0.5, 0.4, 0.4, 0.2]
    posteriors = np.array([easy, hard, out, [0.5] * 4]).T
    each = {epoch: np.stack([p, p]) for epoch, p in zip(EPOCHS, posteriors, strict=True)}
    found = difficulty(answers(each, role), early=1)
    assert found["index"].tolist() == [0, 1, 2]
    assert found["labels"].tolist() == [0, 0, 0]
    p = np.array([easy[1:], hard[1:]])
    assert found["mean loss"][:2] == pytest.approx(-np.log(p).mean(axis=1), rel=1e-5)
    assert found["last loss"][:2] == pytest.approx(-np.log(p[:, -1]), rel=1e-5)
    assert found["iteration learned"][:2].tolist() == [1, 4]
    assert found["forgetting"][:2].tolist() == [0, 1]
    assert found["aleatoric"][:2] == pytest.approx((p * (1 - p)).mean(axis=1), rel=1e-5)
    assert found["epistemic"][:2] == pytest.approx(p.var(axis=1), rel=1e-4, abs=1e-9)
    assert found["inconsistency"][2] == 1
    until = mean_loss_until(answers(each, role))[:, :2]
    assert until[:, 1] == pytest.approx(np.cumsum(-np.log(p[1])) / [1, 2, 3], rel=1e-5)
    assert until[-1] == pytest.approx(found["mean loss"][:2])


def test_measures_are_means_over_networks_that_differ() -> None:
    """Three of five networks trained on the first sample, the other two on the second one."""
    rng = np.random.default_rng(0)
    inside = np.array([[True, False]] * 3 + [[False, True]] * 2)
    role = np.where(inside, Role.MEMBER, Role.NONMEMBER)
    labels = np.array([0, 2])
    z = rng.normal(size=(3, 5, 2, 3))
    stored = {}
    for epoch, networks in zip((1, 2, 4), z, strict=True):
        stored[epoch] = [
            {"logits": logits, "role": own, "labels": labels, "index": np.arange(2)}
            for logits, own in zip(networks, role, strict=True)
        ]
    found = difficulty(stored, early=2)
    posterior = special.softmax(z, axis=-1)
    for sample, label in enumerate(labels):
        members = inside[:, sample]
        error = posterior[1, members, sample] - np.eye(3)[label]
        others = np.delete(z[:, members, sample], label, axis=-1)
        margin = others.max(axis=-1) - z[:, members, sample, label]
        losses = -np.log(posterior[:, members, sample, label])
        last_outside = posterior[-1, ~members, sample, label]
        expected = {
            "early error": np.linalg.norm(error, axis=-1).mean(),
            "margin": margin.mean(),
            "spread of loss": stats.iqr(losses, axis=0).mean(),
            "ensemble variance": last_outside.var(),
        }
        assert {name: found[name][sample] for name in expected} == pytest.approx(expected)


def test_what_was_never_learned_and_who_was_never_in() -> None:
    role = np.array([[Role.MEMBER, Role.MEMBER], [Role.NONMEMBER, Role.MEMBER]])
    each = {e: np.array([[0.9, 0.1], [0.3, 0.1]]) for e in EPOCHS}
    found = difficulty(answers(each, role), early=4)
    assert found["iteration learned"].tolist() == [1, 8], "never right: double the last checkpoint"
    assert found["memorization"][0] == pytest.approx(0.6, rel=1e-5)
    assert found["inconsistency"].tolist() == [1, 1], (
        "the second one takes the median of the others"
    )


def test_a_reading_is_averaged_over_networks_that_trained_on_a_sample() -> None:
    role = np.array(
        [[Role.MEMBER, Role.MEMBER, Role.NONMEMBER, Role.TEST], [Role.MEMBER, Role.NONMEMBER] * 2]
    )
    role[1, 3] = Role.TEST
    read = [{"norm": np.array([1, 2, 3])}, {"norm": np.array([5, 6, 7])}]
    assert mean_over_members(read, "norm", [{"role": own} for own in role]).tolist() == [3, 2, 7]
