"""DenseNet for small images (Huang et al., CVPR 2017): a layer's maps are handed on to all that
follow in its stage.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from leak_atlas.models.net import Head, Net, Stage, assembled, he_normal, norm_of
from leak_atlas.models.resnet import Norm, Stem, conv
from leak_atlas.recipe import Model

DEPTHS: dict[str, tuple[int, int, int, int]] = {"densenet121": (6, 12, 24, 16)}
INNER = 4  # channels inside a layer, in those that it adds


class Dense(nn.Module):
    """1x1 and 3x3 convolution, each after its norm and a ReLU; what comes out joins what came in."""

    def __init__(self, norm: Norm, before: int, growth: int) -> None:
        super().__init__()
        self.norm1 = norm(before)
        self.conv1 = conv(before, INNER * growth, 1)
        self.norm2 = norm(INNER * growth)
        self.conv2 = conv(INNER * growth, growth, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(functional.relu(self.norm1(x)))
        return torch.cat([x, self.conv2(functional.relu(self.norm2(y)))], dim=1)


class Transition(nn.Module):
    """Norm, ReLU and a 1x1 convolution to half the channels, then the mean of each four pixels, if
    there are four.
    """

    def __init__(self, norm: Norm, before: int) -> None:
        super().__init__()
        self.norm = norm(before)
        self.conv = conv(before, before // 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(functional.relu(self.norm(x)))
        return functional.avg_pool2d(y, 2) if min(y.shape[-2:]) > 1 else y


class Last(nn.Module):
    """The norm and ReLU after the last layer, as each layer before it has them from the next one."""

    def __init__(self, norm: Norm, before: int) -> None:
        super().__init__()
        self.norm = norm(before)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.norm(x))


def densenet(model: Model, channels: int, classes: int) -> Net:
    """Stem, four stages of layers, head; each layer adds half the model's width (the growth) in
    channels.

    A stage's last block is its transition, that of stage 4 the last norm. The stem has a norm of
    its own, as the paper's for large images and PPB's published code. Initialised from torch's
    global generator.
    """
    norm, depths, before = norm_of(model), DEPTHS[model.name], model.width
    stem, stages = Stem(norm, channels, before, model.stem == "conv3-pool"), []
    for number, depth in enumerate(depths, 1):
        growth, after = model.width // 2, before + depth * (model.width // 2)
        layers = [Dense(norm, each, growth) for each in range(before, after, growth)]
        last = number == len(depths)
        stages.append(Stage(*layers, Last(norm, after) if last else Transition(norm, after)))
        before = after if last else after // 2
    return he_normal(assembled(stem, stages, Head(before, classes)))
