"""Gradients of single samples and prediction depth: by hand, against loops, in small networks."""

from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from leak_atlas import BadInput, lab
from leak_atlas.data import augmentation
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident
from leak_atlas.localization.difficulty import settled
from leak_atlas.localization.hardness import gradient_norms, neighbour_votes, pooled_maps
from leak_atlas.models import Net, build
from leak_atlas.recipe import (
    Data,
    GradientNorm,
    Model,
    PredictionDepth,
    RandomHalves,
    Schedule,
    Setup,
    Signals,
)
from tests.localization.small import images

NETS = [
    Model(name, width)
    for name, width in (("resnet10", 4), ("vgg11", 4), ("cnn4", 4), ("wrn16", 4), ("vit", 2))
]


def bits(n: int) -> Resident:
    x = torch.randint(2, (n, 12), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    return Resident(x, torch.arange(n) % 4, torch.empty(0), torch.empty(0), n, 4)


@pytest.mark.parametrize("model", [*NETS, Model("fc", 8)], ids=lambda model: model.name)
def test_a_gradient_is_that_of_the_sample_alone(model: Model) -> None:
    data = bits(40) if model.name == "fc" else images(40, classes=4)
    net = build(model, 12 if model.name == "fc" else 1, 4, 0, 8)
    net(augmentation.plain(data, torch.arange(40)))  # BatchNorm has statistics of its own
    before = {name: value.clone() for name, value in net.eval().state_dict().items()}
    index = torch.arange(35).flip(0)
    found = gradient_norms(net, data, index)
    expected = []
    for i in index:
        net.zero_grad()
        functional.cross_entropy(
            net(augmentation.plain(data, i[None])), data.labels[i][None]
        ).backward()
        expected.append(
            torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None]).norm()
        )
    np.testing.assert_allclose(found, torch.stack(expected), rtol=1e-5)
    assert found.dtype == np.float64
    assert all(torch.equal(before[n], v) for n, v in net.state_dict().items())


def test_of_a_linear_map_it_is_the_error_times_the_input() -> None:
    """dL/dW = (p - onehot) x^T and dL/db = p - onehot."""
    data = images(30, classes=4)
    net = Net(OrderedDict(flat=nn.Flatten(), head=nn.Linear(64, 4)))
    x = augmentation.plain(data, torch.arange(30))
    error = net(x).detach().softmax(dim=1) - functional.one_hot(data.labels, 4)
    expected = error.norm(dim=1) * (x.flatten(1).square().sum(dim=1) + 1).sqrt()
    np.testing.assert_allclose(gradient_norms(net, data, torch.arange(30)), expected, rtol=1e-5)


@settings(deadline=None)  # the first call imports scikit-learn
@given(st.integers(0, 2**16), st.integers(1, 6))
def test_votes_are_those_of_the_nearest(seed: int, neighbours: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(20, 3)) + 50
    labels = rng.integers(3, size=20)
    voters = rng.permutation(20)[:10]
    expected = []
    for i, row in enumerate(rows):
        near = sorted((np.linalg.norm(rows[j] - row), labels[j]) for j in voters if j != i)[
            :neighbours
        ]
        votes = []
        for label in range(3):
            own = [distance for distance, voter in near if voter == label]
            votes.append((len(own), -sum(own)))
        expected.append(votes.index(max(votes)))
    assert neighbour_votes(rows, voters, labels, neighbours).tolist() == expected


def test_of_equally_near_votes_the_first_class_counts() -> None:
    alike = np.array([[0.0], [1.0], [-1.0], [9.0]])
    assert neighbour_votes(alike, np.array([1, 2, 3]), np.array([0, 2, 1, 0]), 2)[0] == 1
    same = neighbour_votes(np.zeros((3, 1)), np.array([1, 2]), np.array([0, 2, 2]), 1)
    assert same.tolist() == [2, 2, 2]


def test_depth_by_hand() -> None:
    votes = np.array([[1, 1, 0, 1], [1, 0, 0, 1], [1, 1, 1, 0]])
    assert settled(votes == 1).tolist() == [0, 2, 2, 3]


def test_planted_features_decide_where_classes_part() -> None:
    """Classes lie apart from the second part on, but for some samples only from the third."""
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    late = np.arange(200) < 20
    voters = np.arange(20, 200)
    parted = [np.zeros(200), np.where(late, 1 - labels, labels), labels]
    rows = [10 * side[:, None] + rng.normal(size=(200, 4)) for side in parted]
    said = np.stack([neighbour_votes(each, voters, labels, 30) for each in rows])
    found = settled(said == labels)
    assert (found[late] == 2).all()
    assert set(found[~late]) <= {0, 1}
    assert 0.3 < found[~late].mean() < 0.7


def test_features_that_know_nothing_vote_by_chance() -> None:
    rng = np.random.default_rng(0)
    n = 2000
    labels = rng.integers(4, size=n)
    voters = np.arange(0, n, 2)
    votes = neighbour_votes(rng.normal(size=(n, 5)), voters, labels, 7)
    assert abs((votes == labels).mean() - 0.25) < 4 * (3 / 16 / n) ** 0.5


def test_large_maps_are_averaged_over_places() -> None:
    maps = torch.randn(2, 3, 8, 8)
    assert torch.allclose(
        pooled_maps("", maps).view(2, 3, 4, 4)[:, :, 0, 1], maps[:, :, :2, 2:4].mean(dim=(2, 3))
    )
    assert torch.equal(pooled_maps("", maps[:, :, :4, :2]), maps[:, :, :4, :2].flatten(1))
    assert torch.equal(pooled_maps("", maps[:, :, 0]), maps[:, :, 0].mean(dim=1))


def test_both_are_read_off_a_network_that_has_learnt_its_members() -> None:
    one = Setup(
        Data(pixels=8), RandomHalves(120), Model("resnet10", 4), Schedule(20, 16, lr=0.05), 1
    ).trained()[0]
    steps = GradientNorm(one), PredictionDepth(one, 5), Signals(one)
    results = lab.realize(*steps)
    norm, depth, signals = (results[step] for step in steps)
    pool = np.isin(signals["role"], (Role.MEMBER, Role.NONMEMBER))
    member = (signals["role"] == Role.MEMBER)[pool]
    for found in (norm, depth):
        np.testing.assert_array_equal(found["index"], signals["index"][pool])
    assert np.median(norm["norm"][member]) < 0.5 * np.median(norm["norm"][~member])
    final = signals["logits"][pool].argmax(axis=1)
    agreed = (depth["votes"] == final).mean(axis=1)
    assert agreed[-1] > 0.85
    np.testing.assert_array_equal(depth["depth"], settled(depth["votes"] == final))
    with pytest.raises(BadInput, match="neighbours cannot be 60: a row has 60 members"):
        PredictionDepth(one, 60)
