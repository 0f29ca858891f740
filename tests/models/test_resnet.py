"""Architectures against the papers' parameter counts and map sizes."""

import pytest
import torch

from leak_atlas import BadInput
from leak_atlas.models import Net, build, skeleton
from leak_atlas.models.resnet import DEPTHS
from leak_atlas.recipe import Model

COUNTS = {  # at width 64 for 10, 100 and 200 classes
    "resnet18": (11_173_962, 11_220_132, 11_271_432),
    "resnet34": (21_282_122, 21_328_292, 21_379_592),
    "resnet50": (23_520_842, 23_705_252, 23_910_152),
    "resnet101": (42_512_970, 42_697_380, 42_902_280),
    "resnet152": (58_156_618, 58_341_028, 58_545_928),
}


@pytest.mark.parametrize("name", COUNTS)
def test_full_width_is_the_papers_net(name: str) -> None:
    found = tuple(
        sum(p.numel() for p in skeleton(Model(name), 3, classes).parameters())
        for classes in (10, 100, 200)
    )
    assert found == COUNTS[name]


def test_shares_of_weights_are_those_of_the_weights_paper() -> None:
    net = skeleton(Model("resnet18"), 3, 100)
    kinds = {4: 0, 2: 0, 1: 0}
    for name, parameter in net.named_parameters():
        if name.endswith("weight"):
            kinds[parameter.dim()] += parameter.numel()
    shares = [round(100 * kinds[dim] / sum(kinds.values()), 3) for dim in (4, 2, 1)]
    assert shares == pytest.approx([99.50, 0.457, 0.043], abs=0.005)


@pytest.mark.parametrize(
    ("stem", "stride", "pixels", "sizes"),
    [
        ("conv3", 2, 32, (32, 32, 16, 8, 4)),
        ("conv3-pool", 2, 32, (16, 16, 8, 4, 2)),
        ("conv3", 2, 64, (64, 64, 32, 16, 8)),
        ("conv3-pool", 2, 64, (32, 32, 16, 8, 4)),
        ("conv3-pool", 1, 64, (32, 32, 16, 8, 8)),
        ("conv3-pool", 4, 64, (32, 32, 16, 8, 2)),
        ("conv3", 2, 28, (28, 28, 14, 7, 4)),
    ],
)
@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_map_sizes(name: str, stem: str, stride: int, pixels: int, sizes: tuple[int, ...]) -> None:
    net = skeleton(Model(name, stem=stem, stage4_stride=stride), 3, 10).eval()
    x = torch.empty(2, 3, pixels, pixels, device="meta")
    found = []
    for part in net:
        x = part(x)
        found.append(x.shape[-1])
    assert tuple(found[:-1]) == sizes
    assert x.shape == (2, 10)


@pytest.mark.parametrize("name", DEPTHS)
def test_parts_and_blocks(name: str) -> None:
    net = skeleton(Model(name, width=4), 1, 10)
    assert net.parts() == Net.PARTS
    names = [block for block, _ in net.blocks()]
    assert len(names) == 2 + sum(DEPTHS[name])
    assert names[:2] == ["stem", "stage1.0"] and names[-1] == "head"


def test_names() -> None:
    names = set(dict(skeleton(Model("resnet10", width=4), 1, 10).named_parameters()))
    assert {
        "stem.conv.weight",
        "stage1.0.conv1.weight",
        "stage2.0.shortcut.conv.weight",
        "head.fc.weight",
    } <= names


@pytest.mark.parametrize("channels", [16, 128])
@pytest.mark.parametrize("name", ["resnet10", "resnet50"])
def test_stage4_channels_resize_the_head(name: str, channels: int) -> None:
    net = build(Model(name, width=4, stage4_channels=channels), 3, 10, seed=0)
    assert net.head.fc.in_features == channels
    assert net(torch.randn(2, 3, 16, 16)).shape == (2, 10)


def test_stage3_channels_feed_stage4() -> None:
    net = build(Model("resnet10", width=4, stage3_channels=6), 3, 10, seed=0)
    assert net.stage3[0].conv2.out_channels == net.stage4[0].conv1.in_channels == 6
    assert net(torch.randn(2, 3, 16, 16)).shape == (2, 10)
    with pytest.raises(BadInput, match="multiples of 4"):
        build(Model("resnet50", width=4, stage3_channels=6), 3, 10, seed=0)
