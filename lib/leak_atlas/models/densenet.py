"""DenseNet for small images (Huang et al., CVPR 2017): each layer reads the maps of all earlier
layers of its stage.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from leak_atlas.models.net import Head, Net, Norm, Stage, assembled, conv, he_normal, norm_of
from leak_atlas.models.resnet import stem
from leak_atlas.recipe import Model

DEPTHS = (6, 12, 24, 16)  # layers of each stage
INNER = 4  # channels inside a layer, as a multiple of the channels that the layer adds


class Dense(nn.Module):
    """1x1 and 3x3 convolution, each after a norm and a ReLU. The output is the input with the new
    channels appended.
    """

    def __init__(
        self,
        norm: Norm,
        before: int,
        growth: int,
    ) -> None:
        super().__init__()
        self.norm1 = norm(before)
        self.conv1 = conv(before, INNER * growth, 1)
        self.norm2 = norm(INNER * growth)
        self.conv2 = conv(INNER * growth, growth, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(functional.relu(self.norm1(x)))
        added = self.conv2(functional.relu(self.norm2(y)))
        return torch.cat([x, added], dim=1)


class Last(nn.Module):
    """The norm and ReLU after the last layer."""

    def __init__(self, norm: Norm, before: int) -> None:
        super().__init__()
        self.norm = norm(before)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.norm(x))


class Transition(Last):
    """Norm, ReLU and a 1x1 convolution to half the channels, then a 2x2 average pool, unless the
    map is one pixel wide or high.
    """

    def __init__(self, norm: Norm, before: int) -> None:
        super().__init__(norm, before)
        self.conv = conv(before, before // 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(super().forward(x))
        return functional.avg_pool2d(y, 2) if min(y.shape[-2:]) > 1 else y


def densenet(
    model: Model,
    channels: int,
    classes: int,
) -> Net:
    """DenseNet-121: stem, four stages of layers, head. Each layer adds half the model's width (the
    growth) in channels.

    The last block of a stage is its transition; that of stage 4 is the last norm. The stem has a
    norm, as in the paper's network for large images and in PPB's published code. Initialised from
    torch's global generator.
    """
    norm = norm_of(model)
    width = model.width
    growth = width // 2
    first = stem(norm, channels, width, model.stem == "conv3-pool")
    stages = []
    for number, depth in enumerate(DEPTHS, 1):
        layers: list[nn.Module] = []
        for _ in range(depth):
            layers.append(Dense(norm, width, growth))
            width += growth
        if number < len(DEPTHS):
            layers.append(Transition(norm, width))
            width //= 2
        else:
            layers.append(Last(norm, width))
        stages.append(Stage(*layers))
    return he_normal(assembled(first, stages, Head(width, classes)))
