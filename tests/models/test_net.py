"""Layers that architectures share: norms, dropout, initialisation."""

import pytest
import torch
from torch import nn

from leak_atlas.models import build, skeleton
from leak_atlas.models.net import Dropout
from leak_atlas.recipe import Model


def dropout(share: float, seed: int = 0) -> Dropout:
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)
        return Dropout(share)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_dropout_leaves_out_its_share_independently(share: float) -> None:
    layer = dropout(share)
    x = torch.ones(400, 500)
    first = layer(x)
    second = layer(x)
    draws = [first, second, first.roll(1, 0), first.roll(1, 1)]
    gone = (torch.stack(draws) == 0).flatten(1).float()
    spread = (share * (1 - share) / x.numel()) ** 0.5
    assert abs(gone.mean(dim=1) - share).max() < 4.5 * spread
    together = torch.corrcoef(gone)[0, 1:]
    assert together.abs().max() < 4.5 / x.numel() ** 0.5
    torch.testing.assert_close(first.max(), torch.tensor(1 / (1 - share)))


def test_dropout_depends_on_its_seed_and_its_turn_alone() -> None:
    x = torch.ones(6, 50)
    one = dropout(0.5)
    again = dropout(0.5)
    other = dropout(0.5, seed=1)
    torch.rand(5)
    assert torch.equal(one(x), again(x))
    assert torch.equal(one(x), again(x))
    assert not torch.equal(one(x), other(x))
    assert torch.equal(one.eval()(x), x)
    assert not one.state_dict()


def test_dropout_has_the_gradient_of_what_it_keeps() -> None:
    x = torch.randn(4, 9, requires_grad=True)
    y = dropout(0.5)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2.0 * (y != 0))


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "vgg11", "densenet121", "wrn16"])
def test_groupnorm_takes_the_place_of_each_batchnorm(name: str) -> None:
    own = skeleton(Model(name, width=12), 3, 10)
    group = skeleton(Model(name, width=12, norm="group"), 3, 10)
    for path, module in own.named_modules():
        if isinstance(module, nn.BatchNorm2d):
            assert isinstance(group.get_submodule(path), nn.GroupNorm)
    assert [p.shape for p in own.parameters()] == [p.shape for p in group.parameters()]


def test_groups_have_two_channels_or_more_and_are_at_most_32() -> None:
    expected = {64: 32, 48: 16, 32: 16, 12: 4, 8: 4, 1: 1}
    found = {}
    for channels in expected:
        net = skeleton(Model("resnet10", width=channels, norm="group"), 3, 10)
        found[channels] = net.stem.norm.num_groups
    assert found == expected


def test_under_groupnorm_no_samples_meet() -> None:
    net = build(Model("resnet10", width=8, norm="group"), 3, 10, seed=0)
    x = torch.randn(4, 3, 16, 16)
    torch.testing.assert_close(net(x)[:2], net(x[:2]))
    assert not Model(norm="group").shares_statistics
    assert Model("densenet121").shares_statistics


@pytest.mark.parametrize("name", ["resnet10", "vgg11", "densenet121", "wrn16", "cnn4", "fc", "vit"])
def test_xavier_normal_has_its_variance_and_no_biases(name: str) -> None:
    net = build(
        Model(name, width=32, init="xavier"), 64 if name == "fc" else 3, 10, seed=0, size=16
    )
    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            weight = module.weight
            around = weight[0, 0].numel()
            scale = ((weight.shape[0] + weight.shape[1]) * around / 2) ** 0.5
            assert (
                abs((weight.detach() * scale).square().mean() - 1) < 6 * (2 / weight.numel()) ** 0.5
            )
            assert module.bias is None or not module.bias.any()
        if isinstance(module, nn.BatchNorm2d | nn.LayerNorm):
            assert (module.weight == 1).all()
