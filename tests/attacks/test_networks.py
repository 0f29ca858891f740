"""Attack networks: their inputs, what they learn, and that they learn nothing where there is nothing."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score
from torch import nn
from torch.nn import functional

from leak_atlas import audit
from leak_atlas.attacks import networks
from leak_atlas.attacks.networks import build, features, trained
from leak_atlas.engine.compute import Arrays
from leak_atlas.recipe import PRUNING_NET, Network
from tests.attacks.simulated import complement_pairs, finds_nothing

INPUTS = ("posterior", "posterior_label")
SHORT = {"epochs": 8, "batch": 32}


def outputs(
    rng: np.random.Generator,
    member: np.ndarray,
    labels: np.ndarray,
    gap: float,
) -> np.ndarray:
    """Logits (..., N, 5) of models that are more confident of their members by `gap`."""
    return rng.normal(size=(*member.shape, 5)) + np.eye(5)[labels] * (gap * member)[..., None]


def attack(
    logits: np.ndarray,
    labels: np.ndarray,
    member: np.ndarray,
    **options: object,
) -> tuple[np.ndarray, Arrays]:
    """Scores `(N,)` of the first model's samples, and the net that learnt from the later models:
    `logits (1 + M, N, C)`, `labels (N,)`, `member (M, N)`.
    """
    attacker = Network(**options)  # type: ignore[arg-type]
    shadow_labels = np.broadcast_to(labels, member.shape).ravel()
    net = trained(attacker, member.ravel(), logits[1:].reshape(-1, 5), shadow_labels)
    return networks.scores(attacker, net, logits[0], labels), net


def test_features_stand_side_by_side() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 3, size=(40, 5))
    y = np.arange(40) % 5
    sensitivity = rng.random((40, 5))
    posterior = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    columns = {"posterior": posterior, "sensitivity": sensitivity, "label": np.eye(5)[y]}
    for inputs in (*INPUTS, "posterior_sensitivity", "posterior_sensitivity_label"):
        given = (sensitivity,) if "sensitivity" in inputs else ()
        x = features(Network(inputs), z, y, *given).numpy()  # type: ignore[arg-type]
        expected = np.concatenate([columns[name] for name in inputs.split("_")], axis=1)
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, expected, atol=1e-7)
    top = features(Network("top3"), z, y).numpy()
    np.testing.assert_allclose(top, np.sort(posterior, axis=1)[:, :-4:-1], atol=1e-7)
    assert not features(Network("top3"), z[:, :2], y % 2).numpy()[:, 2].any()


@pytest.mark.parametrize("inputs", INPUTS)
def test_networks_learn_what_can_be_learnt(inputs: str) -> None:
    """Confident posteriors identify members; where members are only classified correctly, the net
    needs the label.
    """
    rng = np.random.default_rng(0)
    member = complement_pairs(rng, 3, 500)
    y = rng.integers(5, size=500)
    z = outputs(rng, member, y, 12.0)
    scores, _ = attack(z[[0, 2, 3, 4, 5]], y, member[2:], inputs=inputs, **SHORT)
    assert balanced_accuracy_score(member[0], scores >= 0.0) > 0.98

    answer = np.where(member, y, (y + 1) % 5)
    z = 4 * np.eye(5)[answer] + rng.normal(size=(*answer.shape, 5))
    scores, _ = attack(z[[0, 2, 3, 4, 5]], y, member[2:], inputs=inputs, **SHORT)
    area = audit.auc(scores, member[0])
    if inputs == "posterior_label":
        assert area > 0.98
    else:
        assert 0.4 < area < 0.6


@pytest.mark.parametrize("inputs", INPUTS)
def test_networks_find_nothing_where_there_is_nothing(inputs: str) -> None:
    """Permuted membership: models that leak, and shadow models with the membership of others."""
    rng = np.random.default_rng(0)
    areas = []
    for seed in range(24):
        permuted = complement_pairs(rng, 3, 1000)
        y = rng.integers(5, size=1000)
        z = outputs(rng, complement_pairs(rng, 3, 1000), y, 3.0)[[0, 2, 3, 4, 5]]
        scores, _ = attack(z, y, permuted[2:], inputs=inputs, epochs=2, seed=seed)
        areas.append(audit.auc(scores, permuted[0]))
    auc = audit.mean_ci(areas)
    assert finds_nothing(auc), auc


def test_both_sides_weigh_the_same_unless_the_net_is_unbalanced() -> None:
    """With one member in ten the threshold stays in the middle. An unbalanced net that can learn
    nothing calls all samples what most of them are.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=600)
    member = np.broadcast_to(np.arange(600) < 60, (4, 600))
    scores, _ = attack(outputs(rng, member, y, 12.0), y, member[1:], **SHORT)
    assert balanced_accuracy_score(member[0], scores >= 0.0) > 0.98
    most = np.broadcast_to(np.arange(600) < 420, (4, 600))
    scores, _ = attack(outputs(rng, most, y, 0.0), y, most[1:], epochs=3, balanced=False)
    assert (scores >= 0).all()
    with pytest.raises(ValueError, match="one member and one non-member"):
        attack(outputs(rng, member, y, 1.0), y, np.ones_like(member[1:]))


def test_networks_are_deterministic_and_leave_the_generator_alone() -> None:
    rng = np.random.default_rng(0)
    member = complement_pairs(rng, 2, 200)
    y = rng.integers(5, size=200)
    z = outputs(rng, member, y, 3.0)[[0, 2, 3]]
    run = partial(attack, z, y, member[2:], epochs=2)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    scores, net = run()
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    again, same_net = run()
    np.testing.assert_array_equal(scores, again)
    assert all(np.array_equal(net[name], same_net[name]) for name in net)
    assert not np.array_equal(run(seed=1)[0], scores)


def test_the_net_of_the_pruning_papers() -> None:
    layers = [*build(PRUNING_NET, 5)]
    assert [m.out_features for m in layers if isinstance(m, nn.Linear)] == [512, 256, 128, 1]
    assert [m.p for m in layers if isinstance(m, nn.Dropout)] == [0.2, 0.2, 0.0]
    assert isinstance(build(Network("posterior_sensitivity"), 5)[0], nn.BatchNorm1d)
    assert build(Network("top3"), 5)[0].in_features == build(Network("top3"), 2)[0].in_features == 3


def test_the_net_of_the_pruning_papers_begins_with_xavier_weights() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(40, 5))
    y = np.arange(40) % 5
    still = trained(replace(PRUNING_NET, epochs=1, lr=0.0), np.arange(40) < 20, z, y)
    assert not still["0.bias"].any()
    assert still["3.weight"].std() == pytest.approx(np.sqrt(2 / (512 + 256)), rel=0.02)


def test_the_net_of_the_pruning_papers_learns_by_torchs_sgd() -> None:
    """Two epochs of one batch, without dropout."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(40, 5))
    y = np.arange(40) % 5
    member = np.arange(40) < 20
    plain = replace(PRUNING_NET, epochs=2, batch=40, dropout=0.0, milestones=())
    start = trained(replace(plain, lr=0.0), member, z, y)
    net = build(plain, 5)
    net.load_state_dict({name: torch.tensor(value) for name, value in start.items()})
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    for _ in range(2):
        sgd.zero_grad()
        logit = net(features(plain, z, y))[:, 0]
        loss = functional.binary_cross_entropy_with_logits(logit, torch.tensor(member).float())
        loss.backward()
        sgd.step()
    learnt = trained(plain, member, z, y)
    for name, value in net.state_dict().items():
        np.testing.assert_allclose(learnt[name], value, rtol=0, atol=1e-6)
