"""DenseNet for small images (Huang et al., CVPR 2017): each layer reads the maps of all earlier
layers of its stage.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from leak_atlas.models.net import Head, Net, Stage, assembled, he_normal, norm_of
from leak_atlas.models.resnet import Norm, Stem, conv
from leak_atlas.recipe import Model

DEPTHS: dict[str, tuple[int, int, int, int]] = {"densenet121": (6, 12, 24, 16)}
INNER = 4  # channels inside a layer, as a multiple of the channels that the layer adds


class Dense(nn.Module):
    """1x1 and 3x3 convolution, each after a norm and a ReLU. The output is the input with the new
    channels appended.
    """

    def __init__(self, norm: Norm, before: int, growth: int) -> None:
        super().__init__()
        self.norm1 = norm(before)
        self.conv1 = conv(before, INNER * growth, 1)
        self.norm2 = norm(INNER * growth)
        self.conv2 = conv(INNER * growth, growth, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(functional.relu(self.norm1(x)))
        added = self.conv2(functional.relu(self.norm2(y)))
        return torch.cat([x, added], dim=1)


class Transition(nn.Module):
    """Norm, ReLU and a 1x1 convolution to half the channels, then a 2x2 average pool, unless the map
    is one pixel wide or high.
    """

    def __init__(self, norm: Norm, before: int) -> None:
        super().__init__()
        self.norm = norm(before)
        self.conv = conv(before, before // 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(functional.relu(self.norm(x)))
        return functional.avg_pool2d(y, 2) if min(y.shape[-2:]) > 1 else y


class Last(nn.Module):
    """The norm and ReLU after the last layer."""

    def __init__(self, norm: Norm, before: int) -> None:
        super().__init__()
        self.norm = norm(before)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.norm(x))


def densenet(model: Model, channels: int, classes: int) -> Net:
    """Stem, four stages of layers, head. Each layer adds half the model's width (the growth) in
    channels.

    The last block of a stage is its transition; that of stage 4 is the last norm. The stem has a
    norm, as in the paper's network for large images and in PPB's published code. Initialised from
    torch's global generator.
    """
    norm = norm_of(model)
    growth = model.width // 2
    width = model.width
    stem = Stem(norm, channels, width, model.stem == "conv3-pool")
    *depths, last_depth = DEPTHS[model.name]
    stages = []
    for depth in depths:
        layers, width = _layers(norm, width, growth, depth)
        stages.append(Stage(*layers, Transition(norm, width)))
        width //= 2
    layers, width = _layers(norm, width, growth, last_depth)
    stages.append(Stage(*layers, Last(norm, width)))
    return he_normal(assembled(stem, stages, Head(width, classes)))


def _layers(
    norm: Norm,
    width: int,
    growth: int,
    depth: int,
) -> tuple[list[nn.Module], int]:
    """The layers of a stage, and the channels of their output."""
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers.append(Dense(norm, width, growth))
        width += growth
    return layers, width
