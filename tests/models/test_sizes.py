"""Architectures against known parameter counts, and their maps' sizes."""

import pytest
import torch

from leak_atlas.models import Net, build, skeleton
from leak_atlas.recipe import Model

COUNTS = [  # model, channels (words, bits), classes, size, parameters
    (Model("resnet18"), 3, 10, None, 11_173_962),
    (Model("resnet34"), 3, 10, None, 21_282_122),
    (Model("resnet50"), 3, 10, None, 23_520_842),
    (Model("resnet101"), 3, 100, None, 42_697_380),
    (Model("resnet152"), 3, 10, None, 58_156_618),
    (Model("vgg11"), 3, 100, None, 9_225_984 + 51_300),  # convolutions and norms, linear layer
    (Model("vgg13"), 3, 100, None, 9_410_880 + 51_300),
    (Model("vgg16"), 3, 100, None, 14_723_136 + 51_300),
    (Model("vgg19"), 3, 100, None, 20_035_392 + 51_300),
    (Model("densenet121"), 3, 10, None, 6_956_426),
    (Model("wrn28", width=32), 3, 10, None, 1_467_610),
    (Model("wrn28", width=160), 3, 10, None, 36_479_194),  # the paper prints 36.5 M for WRN28-10
    (Model("wrn16", width=64), 3, 10, None, 2_748_890),
    (Model("atm-xt"), 3, 1000, None, 15_349_128),  # published as 15, 27, 39 and 52 million
    (Model("atm-t"), 3, 1000, None, 27_152_232),
    (Model("atm-s"), 3, 1000, None, 38_631_448),
    (Model("atm-b"), 3, 1000, None, 52_154_792),
    (Model("vit"), 3, 10, 32, 9_523_722),
    (Model("fc", width=256), 6169, 100, 1, 1_625_316),
]


@pytest.mark.parametrize(
    ("model", "channels", "classes", "size", "count"),
    COUNTS,
    ids=lambda value: value.name if isinstance(value, Model) else str(value),
)
def test_parameters_are_those_of_the_papers_nets(
    model: Model,
    channels: int,
    classes: int,
    size: int | None,
    count: int,
) -> None:
    net = skeleton(model, channels, classes, size)
    assert sum(parameter.numel() for parameter in net.parameters()) == count


def maps(net: Net, channels: int, pixels: int) -> list[tuple[int, ...]]:
    """The shape of each part's output for one image."""
    x = torch.empty(2, channels, pixels, pixels, device="meta")
    return [tuple(output.shape[1:]) for _, output in net.eval().features(x)]


RESNET = (64, 64, 128, 256, 512)
BOTTLENECK = (64, 256, 512, 1024, 2048)
DENSE = (64, 128, 256, 512, 1024)
VGG = (64, 128, 256, 512, 512)
ATM = (64, 64, 128, 320, 512)
POOLED = "conv3-pool"


@pytest.mark.parametrize(
    ("model", "pixels", "channels", "sides"),
    [
        (Model("resnet18"), 32, RESNET, (32, 32, 16, 8, 4)),
        (Model("resnet18", stage4_stride=1), 28, RESNET, (28, 28, 14, 7, 7)),
        (Model("resnet50", stem=POOLED, stage4_stride=4), 64, BOTTLENECK, (32, 32, 16, 8, 2)),
        (Model("vgg19"), 28, VGG, (14, 7, 3, 1, 1)),
        (Model("densenet121", stem=POOLED), 8, DENSE, (4, 2, 1, 1, 1)),
        (Model("wrn16", width=32), 2, (16, 32, 64, 128), (2, 2, 1, 1)),
        (Model("cnn6", width=8), 3, (8, 16), (1, 1)),
        (Model("atm-xt"), 64, ATM, (16, 16, 8, 4, 2)),
        (Model("atm-xt", patch=4), 16, ATM, (4, 4, 2, 1, 1)),
    ],
)
def test_map_sizes(
    model: Model,
    pixels: int,
    channels: tuple[int, ...],
    sides: tuple[int, ...],
) -> None:
    *features, logits = maps(skeleton(model, 3, 10, pixels), 3, pixels)
    assert features == [(c, side, side) for c, side in zip(channels, sides, strict=True)]
    assert logits == (10,)


@pytest.mark.parametrize(("pixels", "patch", "tokens"), [(32, 4, 65), (28, 4, 50), (32, 8, 17)])
def test_tokens_of_a_vit(pixels: int, patch: int, tokens: int) -> None:
    net = skeleton(Model("vit", width=2, patch=patch), 3, 10, pixels)
    assert maps(net, 3, pixels) == [(tokens, 16)] * 7 + [(10,)]


FOUR = ("stem", "stage1", "stage2", "stage3", "stage4", "head")


@pytest.mark.parametrize(
    ("name", "parts", "blocks"),
    [
        ("resnet10", FOUR, 2 + 4),
        # the three fully connected layers of the number are one here
        ("vgg19", (*(f"stage{number}" for number in range(1, 6)), "head"), 16 + 1),
        ("densenet121", FOUR, 2 + 58 + 4),  # three transitions and the last norm
        ("fc", ("stage1", "stage2", "head"), 3),
        ("vit", ("stem", *(f"stage{number}" for number in range(1, 7)), "head"), 8),
        ("transformer", ("stem", "stage1", "stage2", "head"), 4),
    ],
)
def test_parts_and_blocks(name: str, parts: tuple[str, ...], blocks: int) -> None:
    net = skeleton(Model(name, width=8), 1, 10, 8)
    assert net.names() == parts
    assert len(net.names("blocks")) == blocks
    assert "head.fc.weight" in net.state_dict()


@pytest.mark.parametrize("name", ["resnet10", "resnet50", "vgg11", "atm-xt"])
def test_channels_of_a_stage(name: str) -> None:
    model = Model(name, width=8, stage3_channels=20, stage4_channels=16)
    net = build(model, 3, 10, seed=0)
    shapes = dict(zip(net.names(), maps(net.to("meta"), 3, 16), strict=True))
    assert shapes["stage3"][0] == 20
    assert shapes["stage4"][0] == 16
