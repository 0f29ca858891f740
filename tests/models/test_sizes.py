"""Architectures against known parameter counts, and their maps' sizes."""

import pytest
import torch
from torch import nn

from leak_atlas.models import Net, build, skeleton
from leak_atlas.recipe import Model

COUNTS = [  # model, channels (words, bits), classes, size, parameters
    (Model("resnet18"), 3, 10, None, 11_173_962),
    (Model("resnet18"), 3, 200, None, 11_271_432),
    (Model("resnet34"), 3, 100, None, 21_328_292),
    (Model("resnet50"), 3, 10, None, 23_520_842),
    (Model("resnet101"), 3, 100, None, 42_697_380),
    (Model("resnet152"), 3, 100, None, 58_341_028),
    (Model("vgg11"), 3, 100, None, 9_225_984 + 51_300),  # convolutions and norms, linear layer
    (Model("vgg13"), 3, 100, None, 9_410_880 + 51_300),
    (Model("vgg16"), 3, 100, None, 14_723_136 + 51_300),
    (Model("vgg19"), 3, 100, None, 20_035_392 + 51_300),
    (Model("densenet121"), 3, 10, None, 6_956_426),
    (Model("densenet121"), 3, 100, None, 7_048_676),
    (Model("wrn28", width=32), 3, 10, None, 1_467_610),  # WRN28-2, in the authors' code
    (Model("wrn28", width=160), 3, 10, None, 36_479_194),  # the paper prints 36.5 M for WRN28-10
    (Model("wrn16", width=64), 3, 10, None, 2_748_890),
    (Model("atm-xt"), 3, 1000, None, 15_349_128),  # published as 15, 27, 39 and 52 million
    (Model("atm-t"), 3, 1000, None, 27_152_232),
    (Model("atm-s"), 3, 1000, None, 38_631_448),
    (Model("atm-b"), 3, 1000, None, 52_154_792),
    (Model("vit"), 3, 10, 32, 9_523_722),
    (Model("fc", width=256), 446, 30, 1, 151_198),
    (Model("fc", width=256), 600, 100, 1, 199_652),
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


@pytest.mark.parametrize("name", ["cnn2", "cnn4", "cnn6"])
def test_parameters_of_plain_networks_by_hand(name: str) -> None:
    each = int(name.removeprefix("cnn")) // 2  # convolutions of a stage
    inner = [(3, 8), *[(8, 8)] * (each - 1), (8, 16), *[(16, 16)] * (each - 1)]
    convolutions = sum(9 * before * after + after for before, after in inner)
    net = skeleton(Model(name, width=8), 3, 10, 28)
    linear = (16 * 7**2 + 1) * 10
    assert sum(parameter.numel() for parameter in net.parameters()) == convolutions + linear


def test_parameters_of_the_text_transformer_by_hand() -> None:
    d, words, length, classes = 64, 10_000, 64, 14
    block = 2 * 2 * d + 3 * d * d + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d)
    expected = words * d + length * d + 2 * block + 2 * d + classes * (d + 1)
    net = skeleton(Model("transformer"), words, classes, length)
    assert sum(parameter.numel() for parameter in net.parameters()) == expected


@pytest.mark.parametrize(
    ("model", "size", "shares"),
    [(Model("resnet18"), None, (99.50, 0.457, 0.043)), (Model("vit"), 32, (99.39, 0.539, 0.070))],
)
def test_shares_of_weights_are_those_of_the_weights_paper(
    model: Model,
    size: int | None,
    shares: tuple[float, ...],
) -> None:
    """Percent of the weights that CWRF's Table 1 seems to count: convolutions, or attention and MLP;
    the last linear layer; norms.
    """
    main = linear = norm = 0
    for name, module in skeleton(model, 3, 100, size).named_modules():
        if isinstance(module, nn.BatchNorm2d | nn.LayerNorm):
            norm += module.weight.numel()
        elif name == "head.fc":
            linear += module.weight.numel()  # type: ignore[operator, union-attr]
        elif isinstance(module, nn.Linear) or (isinstance(module, nn.Conv2d) and size is None):
            main += module.weight.numel()
    percent = [100 * count / (main + linear + norm) for count in (main, linear, norm)]
    assert percent == pytest.approx(shares, abs=0.005)


def maps(net: Net, channels: int, pixels: int) -> list[tuple[int, ...]]:
    """The shape of each part's output for one image."""
    x = torch.empty(2, channels, pixels, pixels, device="meta")
    return [tuple(output.shape[1:]) for _, output in net.eval().features(x)]


RESNET, BOTTLENECK = (64, 64, 128, 256, 512), (64, 256, 512, 1024, 2048)
DENSE, VGG, ATM = (64, 128, 256, 512, 1024), (64, 128, 256, 512, 512), (64, 64, 128, 320, 512)
POOLED = "conv3-pool"


@pytest.mark.parametrize(
    ("model", "pixels", "channels", "sides"),
    [
        (Model("resnet18"), 32, RESNET, (32, 32, 16, 8, 4)),
        (Model("resnet18", stem=POOLED), 64, RESNET, (32, 32, 16, 8, 4)),
        (Model("resnet18", stage4_stride=1), 28, RESNET, (28, 28, 14, 7, 7)),
        (Model("resnet50", stem=POOLED, stage4_stride=4), 64, BOTTLENECK, (32, 32, 16, 8, 2)),
        (Model("vgg11"), 64, VGG, (32, 16, 8, 4, 2)),
        (Model("vgg19"), 28, VGG, (14, 7, 3, 1, 1)),
        (Model("densenet121"), 32, DENSE, (32, 16, 8, 4, 4)),
        (Model("densenet121", stem=POOLED), 8, DENSE, (4, 2, 1, 1, 1)),
        (Model("wrn16", width=32), 28, (16, 32, 64, 128), (28, 28, 14, 7)),
        (Model("wrn16", width=32), 2, (16, 32, 64, 128), (2, 2, 1, 1)),
        (Model("cnn2", width=8), 32, (8, 16), (16, 8)),
        (Model("cnn6", width=8), 3, (8, 16), (1, 1)),
        (Model("atm-xt"), 64, ATM, (16, 16, 8, 4, 2)),
        (Model("atm-xt", patch=2), 32, ATM, (16, 16, 8, 4, 2)),
        (Model("atm-xt", patch=4), 16, ATM, (4, 4, 2, 1, 1)),
        (Model("atm-xt", patch=1), 16, ATM, (16, 16, 8, 4, 2)),
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


@pytest.mark.parametrize(
    ("pixels", "patch", "tokens"), [(32, 4, 65), (28, 4, 50), (64, 4, 257), (32, 8, 17)]
)
def test_tokens_of_a_vit(pixels: int, patch: int, tokens: int) -> None:
    net = skeleton(Model("vit", width=2, patch=patch), 3, 10, pixels)
    assert maps(net, 3, pixels) == [(tokens, 16)] * 7 + [(10,)]


FOUR = ("stem", "stage1", "stage2", "stage3", "stage4", "head")


@pytest.mark.parametrize(
    ("name", "parts", "blocks"),
    [
        ("resnet10", FOUR, 2 + 4),
        ("resnet152", FOUR, 2 + 3 + 8 + 36 + 3),
        # the three fully connected layers of the number are one here
        ("vgg19", (*(f"stage{number}" for number in range(1, 6)), "head"), 16 + 1),
        ("densenet121", FOUR, 2 + 58 + 4),  # three transitions and the last norm
        ("wrn16", ("stem", "stage1", "stage2", "stage3", "head"), 2 + 6 + 1),
        ("cnn6", ("stage1", "stage2", "head"), 6 + 1),
        ("fc", ("stage1", "stage2", "head"), 3),
        ("atm-b", FOUR, 2 + 1 + 2 + 5 + 1),
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
    assert shapes["stage3"][0] == 20 and shapes["stage4"][0] == 16
