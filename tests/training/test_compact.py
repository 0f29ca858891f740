"""Filters that are gone are taken out, and nothing else changes."""

from collections import OrderedDict
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from leak_atlas import BadInput, lab
from leak_atlas.lab.prices import work
from leak_atlas.models import Net
from leak_atlas.pruning import prune, prune_filters, units
from leak_atlas.recipe import Compacted, Data, Model, RandomHalves, Schedule, Setup, State
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


def same(net: Net, small: Net, x: Tensor = X) -> bool:
    with torch.no_grad():
        before, after = net.eval()(x), small(x)
    assert float(before.std(dim=0).mean()) > 1e-3, "the network tells samples apart"
    torch.testing.assert_close(after, before, atol=1e-5, rtol=1e-5)
    return True


@pytest.mark.parametrize("name", ["resnet10", "resnet18", "resnet50", "vgg11", "wrn16"])
@pytest.mark.parametrize("by", ["l1", "random", "scale"])
def test_outputs_stay_and_parameters_go(name: str, by: str) -> None:
    model = Model(name, width=4)
    net = trained(model)
    net.load_state_dict(prune_filters(net.state_dict(), units(model, 1, 3, 16), 0.5, by)[0])  # type: ignore[arg-type]
    before = {name: value.clone() for name, value in net.state_dict().items()}
    small = compacted(net.eval(), X[:1])
    assert numbers(small) < 0.75 * numbers(net) and same(net, small)
    assert all(value.equal(before[name]) for name, value in net.state_dict().items()), (
        "it is a copy that shrinks"
    )


def test_a_vgg_keeps_just_the_filters_that_are_left() -> None:
    model, sparsity = Model("vgg11", width=5), 0.3
    net, parts = trained(model), units(Model("vgg11", width=5), 1, 3, 16)
    net.load_state_dict(prune_filters(net.state_dict(), parts, sparsity)[0])
    sizes = [len(net.get_parameter(f"{conv}.weight")) for conv, _ in parts]
    left = [1, *(size - round(sparsity * size) for size in sizes)]
    expected = sum(9 * a * b + 3 * b for a, b in pairwise(left)) + 3 * left[-1] + 3
    assert numbers(compacted(net.eval(), X[:1])) == expected


def test_a_sum_loses_a_channel_when_all_its_terms_have_lost_it() -> None:
    """Stage 1 of a ResNet18 sums the stem and two blocks: what one of them still has stays in all."""
    model = Model("resnet18", width=4)
    net, parts = trained(model), units(Model("resnet18", width=4), 1, 3, 16)
    ends = ("stem.conv", "stage1.0.conv2", "stage1.1.conv2")
    for unit in (unit for unit in parts if unit[0] in ends):
        channels = [1, 2] if unit[0] == ends[0] else [2, 3]
        for name in (f"{module}.{part}" for module in unit for part in ("weight", "bias")):
            if name in net.state_dict():
                net.state_dict()[name][channels] = 0
    small = compacted(net.eval(), X[:1])
    assert [small.get_submodule(name).out_channels for name in ends] == [3, 3, 3] and same(
        net, small
    )


def test_a_layer_that_lost_everything_keeps_a_channel() -> None:
    model = Model("vgg11", width=2)
    net = trained(model)
    net.load_state_dict(prune_filters(net.state_dict(), units(model, 1, 3, 16), 1.0)[0])
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
    net = Net(
        OrderedDict(
            stem=nn.Conv2d(1, 2, 3), stage1=PreActivation(), tail=nn.BatchNorm2d(4), head=Pool()
        )
    ).eval()
    for tensor in (net.tail.weight, net.tail.bias, net.tail.running_mean):
        tensor.data.copy_(torch.rand(4) + 0.5)
    with torch.no_grad():
        for tensor in (net.stage1.conv2.weight, net.stage1.conv2.bias):
            tensor[1] = 0
        for module in (net.stage1.conv1, net.stage1.norm2):
            module.weight[2], module.bias[2] = 0, 0
    small = compacted(net, X[:1])
    assert (
        small.stage1.conv1.out_channels == 3
        and small.stage1.conv2.out_channels == 2
        and same(net, small)
    )
    with torch.no_grad():
        net.tail.weight[3], net.tail.bias[3] = 0, 0
    small = compacted(net, X[:1])
    assert (
        small.stage1.conv2.out_channels == 1 and small.head.fc.in_features == 3 and same(net, small)
    )


def test_what_has_no_dead_filters_stays_as_it_is() -> None:
    net = trained(Model("resnet10", width=4))
    assert numbers(compacted(net.eval(), X[:1])) == numbers(net)
    net.load_state_dict(prune(net.state_dict(), 0.5)[0])
    assert numbers(compacted(net.eval(), X[:1])) == numbers(net)


class Untraceable(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("two\nlines")


def test_what_cannot_be_followed_is_told_in_a_line() -> None:
    with pytest.raises(BadInput, match="RuntimeError: two lines"):
        compacted(Net(OrderedDict(stem=Untraceable())), X[:1])
    with pytest.raises(BadInput, match="GroupNorm"):
        compacted(Net(OrderedDict(stem=nn.Conv2d(1, 2, 3), norm=nn.GroupNorm(1, 2))), X[:1])


def test_a_compacted_state_is_measured_beside_what_it_was() -> None:
    schedule = Schedule(2, 32)
    pool = Setup(
        Data(pixels=8), RandomHalves(80, test=40), Model("resnet10", width=4), schedule, 1
    ).trained()
    states: tuple[State, ...] = (
        pool[0].prune_filters(0.5).train(schedule),
        pool[0].prune(0.5),
        pool[0],
    )
    found = lab.realize([Compacted(state) for state in states])
    less, *equal = [found[Compacted(state)] for state in states]
    assert (
        less["parameters"][1] < 0.6 * less["parameters"][0]
        and less["flops"][1] < 0.6 * less["flops"][0]
    )
    assert all(each[what][0] == each[what][1] for each in equal for what in ("parameters", "flops"))
    for each in (less, *equal):
        assert each["difference"] < 1e-5 and each["accuracy"][0] == each["accuracy"][1] > 0
        assert each["seconds"].shape == (2,) and (each["seconds"] > 0).all()
        assert each["flops"][0] == anatomy(Model("resnet10", width=4), 1, 10, 8)["flops"].sum()
    assert work(Compacted(pool[0])) > 0
    with pytest.raises(BadInput, match="Compacted needs convolutions"):
        Compacted(
            Setup(Data(pixels=8), RandomHalves(80), Model("vit", width=1), schedule, 1).trained()[0]
        )
