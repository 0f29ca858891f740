"""Wide residual networks against known parameter counts and map sizes, and through a training that
holds its front.
"""

import pytest
import torch
from torch import nn
from torch.nn import functional

from leak_atlas.models import build, skeleton
from leak_atlas.models.net import Dropout
from leak_atlas.recipe import Model


@pytest.mark.parametrize(
    ("name", "k", "count"),
    [("wrn28", 2, 1_467_610), ("wrn28", 10, 36_479_194), ("wrn16", 4, 2_748_890)],
)
def test_counts_are_those_of_the_papers_nets(name: str, k: int, count: int) -> None:
    """The paper prints 36.5 M for WRN28-10; the others are known of the authors' code."""
    net = skeleton(Model(name, width=16 * k), 3, 10)
    assert sum(p.numel() for p in net.parameters()) == count
    # shortcuts are counted
    assert sum(isinstance(module, nn.Conv2d) for module in net.modules()) == int(name[3:])


@pytest.mark.parametrize(
    ("pixels", "sizes"), [(32, (32, 32, 16, 8)), (28, (28, 28, 14, 7)), (2, (2, 2, 1, 1))]
)
def test_map_sizes(pixels: int, sizes: tuple[int, ...]) -> None:
    net, found = skeleton(Model("wrn16", width=32), 3, 10).eval(), []
    x = torch.empty(2, 3, pixels, pixels, device="meta")
    assert net.parts() == ("stem", "stage1", "stage2", "stage3", "head")
    for part in net:
        x = part(x)
        found.append(tuple(x.shape[1:]))
    assert found[:-1] == [
        (c, s, s) for c, s in zip((16, 32, 64, 128), sizes, strict=True)
    ] and x.shape == (2, 10)


def test_blocks_by_hand() -> None:
    net, x = build(Model("wrn16", width=4), 3, 10, seed=0).eval(), torch.randn(2, 16, 8, 8)
    first, second = net.stage1
    own = first.norm1(x).relu()
    y = first.conv2(first.norm2(first.conv1(own)).relu()) + functional.conv2d(
        own, first.shortcut.weight
    )
    torch.testing.assert_close(first(x), y)
    z = y + second.conv2(second.norm2(second.conv1(second.norm1(y).relu())).relu())
    torch.testing.assert_close(net.stage1(x), z)
    top = torch.randn(2, 16, 2, 2)
    torch.testing.assert_close(net.stage3[2](top), net.stage3[2].norm(top).relu())


def test_dropout_is_between_convolutions_and_off_when_asked() -> None:
    plain, net = (
        build(Model("wrn16", width=4, dropout=share), 3, 10, seed=0) for share in (0.0, 0.3)
    )
    drops = [
        (name, module.p) for name, module in net.named_modules() if isinstance(module, Dropout)
    ]
    assert len(drops) == 6 and all(name.endswith("dropout") and p == 0.3 for name, p in drops)
    assert [n for n in net.state_dict()] == [n for n in plain.state_dict()]
    x = torch.randn(4, 3, 8, 8)
    assert not torch.equal(net(x), net(x)) and torch.equal(net.eval()(x), net(x))
    assert (
        Model("wrn16", dropout=0.0) == Model("wrn16") and "dropout" not in Model("wrn16").record()
    )
