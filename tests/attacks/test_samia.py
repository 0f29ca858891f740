"""Nets that see sensitivities: SAMIA, its parts against torch's own, and the pruning papers' net."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from leak_atlas import audit
from leak_atlas.attacks import networks
from leak_atlas.attacks.networks import _xavier, build, reads, trained
from leak_atlas.attacks.samia import Dropout, Encoder
from leak_atlas.engine.compute import Arrays
from leak_atlas.recipe import PRUNING_NET, SAMIA, Learner
from tests.attacks.simulated import complement_pairs, finds_nothing

QUICK = SAMIA(epochs=6, batch=64, lr=0.03)
NETS: tuple[Learner, ...] = (
    QUICK,
    replace(PRUNING_NET, inputs="posterior_sensitivity_label", epochs=6),
)
each_net = pytest.mark.parametrize("attacker", NETS, ids=lambda one: type(one).__name__)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@cache
def planted(gap: float, n: int = 400, seed: int = 0) -> tuple[Arrays, np.ndarray]:
    """Arrays `(3, n, ...)` and membership `(3, n)` of three models that answer members and others
    alike, whose members are less sensitive by a factor of e^gap.
    """
    rng = np.random.default_rng(seed)
    member = complement_pairs(rng, 2, n)[:3]
    labels = rng.integers(5, size=n)
    logits = rng.normal(size=(3, n, 5)) + 2 * np.eye(5)[labels]
    sensitivity = np.exp(rng.normal(size=(3, n, 5)) - gap * member[..., None])
    labels = np.tile(labels, (3, 1))
    return {"logits": logits, "labels": labels, "sensitivity": sensitivity}, member


def learnt(attacker: Learner, arrays: Arrays, member: np.ndarray, most: int) -> Arrays:
    """What the attacker learns from the first `most` samples of the second and the third model."""
    of_shadows = [np.concatenate(arrays[name][1:, :most]) for name in reads(attacker)]
    return trained(attacker, np.concatenate(member[1:, :most]), *of_shadows)


def auc(attacker: Learner, gap: float, judged: np.ndarray | None = None, **size: int) -> float:
    """AUC on the first model, attacked by the two others; judged by its own members unless others
    are given.
    """
    arrays, member = planted(gap, **size)
    net = learnt(attacker, arrays, member, 400)
    scores = networks.scores(attacker, net, *(arrays[name][0] for name in reads(attacker)))
    return float(audit.auc(scores, member[0] if judged is None else judged))


@pytest.mark.parametrize("classes", [10, 30])
def test_samia_has_the_published_size(classes: int) -> None:
    layer = 64 * 192 + 192 + 64 * 64 + 64 + 64 * 128 + 128 + 128 * 64 + 64 + 4 * 64
    whole = 2 * 3 * classes + (3 * 64 + 64) + 3 * layer + (64 * classes * 64 + 64) + (64 * 2 + 2)
    assert sum(p.numel() for p in build(SAMIA(), classes).parameters()) == whole
    assert whole == {10: 141_886, 30: 223_926}[classes]
    alone = build(SAMIA("posterior"), classes)
    assert sum(p.numel() for p in alone.parameters()) == whole - 2 * 2 * classes - 2 * 64


def test_each_token_is_a_class() -> None:
    """Posterior, sensitivity and label of one class meet before the attention, those of two classes
    in it.
    """
    net = build(SAMIA(), 4).eval()
    x = torch.zeros(1, 12)
    with torch.no_grad():
        still = net.embed(net.tokens(net.norm(x)).transpose(1, 2))
        for place in range(12):
            moved = net.embed(net.tokens(net.norm(x + torch.eye(12)[place])).transpose(1, 2))
            assert (moved != still).any(dim=2).nonzero()[:, 1].tolist() == [place % 4]
    assert net(torch.rand(7, 12)).shape == (7, 1)


def test_the_layers_written_out_are_torchs() -> None:
    torch.manual_seed(0)
    layer = Encoder(64, 128).eval()
    theirs = nn.TransformerEncoderLayer(64, 4, 128, 0.2, "gelu", batch_first=True).eval()
    renamed = {"attention": "self_attn", "up": "linear1", "down": "linear2"}
    state = {}
    for name in layer.state_dict():
        part, _, rest = name.partition(".")
        state[name] = theirs.state_dict()[f"{renamed.get(part, part)}.{rest}"]
    layer.load_state_dict(state)
    x = torch.randn(3, 10, 64)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), theirs(x), atol=1e-5, rtol=1e-5)


def test_dropout_keeps_the_mean() -> None:
    ones = Dropout()(torch.ones(1001, 999))
    assert ones.mean() == pytest.approx(1, abs=0.003)
    assert (ones == 0).float().mean() == pytest.approx(0.2, abs=0.002)


def rms(tensor: torch.Tensor) -> float:
    return float(tensor.detach().square().mean().sqrt())


def test_weights_begin_as_in_the_published_code() -> None:
    """Linear maps by Xavier, without biases; attention's output map as torch begins it."""
    torch.manual_seed(0)
    net = build(SAMIA(), 10).apply(_xavier)
    first = net.layers[0].attention.out_proj.weight
    assert rms(first) == pytest.approx(1 / 8 / 3**0.5, rel=0.03)
    assert first.abs().max() <= 1 / 8, "uniform, as torch's linear maps are"
    for layer in net.layers:
        assert torch.equal(layer.attention.out_proj.weight, first), "layers are copies of one"
        assert rms(layer.up.weight) == pytest.approx((2 / 192) ** 0.5, rel=0.05)
        assert rms(layer.down.weight) == pytest.approx((2 / 192) ** 0.5, rel=0.05)
        assert not layer.up.bias.any()
        assert not layer.down.bias.any()
    assert rms(net.embed.weight) == pytest.approx((2 / 67) ** 0.5, rel=0.2)
    assert not net.embed.bias.any()


def test_a_large_pool_is_asked_in_parts() -> None:
    net = build(SAMIA(), 3).eval()
    sizes: list[int] = []
    net.embed.register_forward_hook(lambda _, __, out: sizes.append(len(out)))
    x = torch.rand(2500, 9)
    with torch.no_grad():
        whole = net(x)
        assert sizes == [1000, 1000, 500]
        torch.testing.assert_close(whole, torch.cat([net(x[:1200]), net(x[1200:])]))


@each_net
def test_nets_learn_from_sensitivity_alone(attacker: Learner) -> None:
    assert auc(attacker, gap=1.0) > 0.8
    assert auc(replace(attacker, inputs="posterior_label"), gap=1.0) < 0.6


@each_net
def test_nets_with_sensitivity_find_nothing_where_there_is_nothing(attacker: Learner) -> None:
    """Permuted membership: the net knows what members look like, and is judged by those of another
    model.
    """
    areas = []
    for seed in range(16):
        judged = np.random.default_rng(100 + seed).permutation(2000) < 1000
        short = replace(attacker, epochs=2, batch=100, seed=seed)
        areas.append(auc(short, 1.0, judged, n=2000, seed=seed))
    assert finds_nothing(audit.mean_ci(areas)), areas


def test_a_batch_of_one_is_left_out_and_rates_fall() -> None:
    arrays, member = planted(1.0, n=43)
    assert 43 * 2 % 5 == 1
    assert learnt(replace(QUICK, epochs=1, batch=5), arrays, member, 43)

    def weights(epochs: int) -> np.ndarray:
        """After `epochs`, with rates that are nothing from the second one on."""
        attacker = replace(PRUNING_NET, epochs=epochs, milestones=(1 / epochs,) * 30)
        return learnt(attacker, arrays, member, 43)["0.weight"]

    np.testing.assert_array_equal(weights(4), weights(2))
