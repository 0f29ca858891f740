"""Pruned filters are removed, and nothing else changes."""

from collections import OrderedDict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from leak_atlas import BadInput, lab
from leak_atlas.models import Net
from leak_atlas.pruning import prune, prune_filters, units
from leak_atlas.recipe import Compacted, Data, Model, RandomHalves, Schedule, Setup
from leak_atlas.training.compact import compacted
from leak_atlas.training.cost import anatomy
from tests.test_pruning import trained

X = torch.rand(20, 1, 16, 16, generator=torch.Generator().manual_seed(2))


class PreActivation(nn.Module):
    """A layer of a DenseNet: norm, convolution, norm, convolution; its input with the new channels
    appended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(2), nn.Conv2d(2, 4, 1)
        self.norm2, self.conv2 = nn.BatchNorm2d(4), nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(torch.relu(self.norm1(torch.cat([x], dim=1))))
        return torch.cat([x, self.conv2(torch.relu(self.norm2(y)))], dim=1)


def numbers(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


def smaller(net: Net) -> Net:
    """The compacted network, of which the outputs are those of the network itself."""
    before = {name: value.clone() for name, value in net.eval().state_dict().items()}
    small = compacted(net, X[:1])
    with torch.no_grad():
        expected, found = net(X), small(X)
    assert float(expected.std(dim=0).mean()) > 1e-3, "the network tells samples apart"
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert all(value.equal(before[name]) for name, value in net.state_dict().items()), "a copy"
    return small


def filtered(model: Model, sparsity: float, by: Any = "l1") -> tuple[Net, list[int]]:
    """A network without some of its filters, and how many each convolution keeps."""
    net, parts = trained(model), units(model, 1, 3, 16)
    net.load_state_dict(prune_filters(net.state_dict(), parts, sparsity, by)[0])
    sizes = [len(net.get_parameter(f"{convolution}.weight")) for convolution, *_ in parts]
    return net, [size - round(sparsity * size) for size in sizes]


@pytest.mark.parametrize("name", ["resnet10", "resnet18", "resnet50", "vgg11", "wrn16"])
@pytest.mark.parametrize("by", ["l1", "scale"])
def test_outputs_stay_and_parameters_go(name: str, by: str) -> None:
    net, _ = filtered(Model(name, width=4), 0.5, by)
    assert numbers(smaller(net)) < 0.75 * numbers(net)


def test_a_vgg_keeps_just_the_remaining_filters() -> None:
    net, kept = filtered(Model("vgg11", width=5), 0.3)
    expected = sum(9 * a * b + 3 * b for a, b in pairwise([1, *kept])) + 3 * kept[-1] + 3
    assert numbers(smaller(net)) == expected


def test_a_sum_loses_a_channel_when_all_its_terms_have_lost_it() -> None:
    """Stage 1 of a ResNet18 sums the stem and two blocks: a channel of one of them stays in all."""
    net = trained(Model("resnet18", width=4))
    lost = {"stem.conv": [1, 2], "stage1.0.conv2": [2, 3], "stage1.1.conv2": [2, 3]}
    state = net.state_dict()
    for unit in units(Model("resnet18", width=4), 1, 3, 16):
        for name in (f"{module}.{part}" for module in unit for part in ("weight", "bias")):
            if unit[0] in lost and name in state:
                state[name][lost[unit[0]]] = 0
    small = smaller(net)
    assert [small.get_submodule(name).out_channels for name in lost] == [3, 3, 3]


def test_a_layer_that_lost_everything_keeps_a_channel() -> None:
    net, _ = filtered(Model("vgg11", width=2), 1.0)
    small = compacted(net.eval(), X[:1])
    assert {m.out_channels for m in small.modules() if isinstance(m, nn.Conv2d)} == {1}
    with torch.no_grad():
        torch.testing.assert_close(small(X), net.head.fc.bias.expand(20, 3))


class Pool(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x.mean(dim=(2, 3)))


def test_joined_maps_keep_what_a_norm_behind_them_makes_of_zeros() -> None:
    torch.manual_seed(0)
    stem, stage1, tail = nn.Conv2d(1, 2, 3), PreActivation(), nn.BatchNorm2d(4)
    net = Net(OrderedDict(stem=stem, stage1=stage1, tail=tail, head=Pool())).eval()
    with torch.no_grad():
        for tensor in (tail.weight, tail.bias, tail.running_mean):
            tensor.copy_(torch.rand(4) + 0.5)
        for channel, module in ((1, stage1.conv2), (2, stage1.conv1), (2, stage1.norm2)):
            module.weight[channel], module.bias[channel] = 0, 0
    small = smaller(net)
    assert (small.stage1.conv1.out_channels, small.stage1.conv2.out_channels) == (3, 2)
    with torch.no_grad():
        tail.weight[3], tail.bias[3] = 0, 0
    small = smaller(net)
    assert (small.stage1.conv2.out_channels, small.head.fc.in_features) == (1, 3)


def test_a_network_without_zero_filters_stays_as_it_is() -> None:
    net = trained(Model("resnet10", width=4))
    net.load_state_dict(prune(net.state_dict(), 0.5)[0])
    assert numbers(smaller(net)) == numbers(net)


class Untraceable(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("two\nlines")


def test_what_cannot_be_compacted_is_named_in_a_line() -> None:
    with pytest.raises(BadInput, match="two lines"):
        compacted(Net(OrderedDict(stem=Untraceable())), X[:1])
    with pytest.raises(BadInput, match="GroupNorm"):
        compacted(Net(OrderedDict(stem=nn.Conv2d(1, 2, 3), norm=nn.GroupNorm(1, 2))), X[:1])


def test_a_compacted_state_is_measured_together_with_the_whole_one() -> None:
    model, schedule = Model("resnet10", width=4), Schedule(2, 32)
    setup = Setup(Data(pixels=8), RandomHalves(80, test=40), model, schedule, 1)
    dense = setup.trained()[0]
    states = (dense.prune_filters(0.5).train(schedule), dense.prune(0.5), dense)
    results = lab.realize([Compacted(state) for state in states])
    found = [results[Compacted(state)] for state in states]
    for name in ("parameters", "flops"):
        ratios = [each[name][1] / each[name][0] for each in found]
        assert ratios[0] < 0.6 and ratios[1:] == [1, 1]
    for each in found:
        assert each["difference"] < 1e-5 and each["accuracy"][0] == each["accuracy"][1] > 0
        assert each["seconds"].shape == (2,) and (each["seconds"] > 0).all()
        assert each["flops"][0] == anatomy(model, 1, 10, 8)["flops"].sum()
    with pytest.raises(BadInput, match="Compacted needs convolutions"):
        Compacted(replace(setup, model=Model("vit", width=1)).trained()[0])
