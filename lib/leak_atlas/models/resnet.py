"""Residual networks for small images (He et al., CVPR 2016), after the two stems that the papers
use.
"""

from collections import OrderedDict
from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.models.net import Head, Net, Stage, assembled, he_normal, norm_of, widths
from leak_atlas.recipe import Model

DEPTHS: dict[str, tuple[int, int, int, int]] = {
    "resnet10": (1, 1, 1, 1),
    "resnet18": (2, 2, 2, 2),
    "resnet34": (3, 4, 6, 3),
    "resnet50": (3, 4, 6, 3),
    "resnet101": (3, 4, 23, 3),
    "resnet152": (3, 8, 36, 3),
}
Norm = Callable[[int], nn.Module]  # by the channels
BOTTLENECKS = ("resnet50", "resnet101", "resnet152")


def conv(before: int, after: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False)


def _shortcut(norm: Norm, before: int, after: int, stride: int) -> nn.Module:
    """A 1x1 convolution where a block changes the shape of its map."""
    if before == after and stride == 1:
        return nn.Identity()
    parts = OrderedDict[str, nn.Module]()
    parts["conv"] = conv(before, after, 1, stride)
    parts["norm"] = norm(after)
    return nn.Sequential(parts)


class Basic(nn.Module):
    """Two 3x3 convolutions."""

    expansion = 1

    def __init__(
        self,
        norm: Norm,
        before: int,
        after: int,
        stride: int,
    ) -> None:
        super().__init__()
        self.conv1 = conv(before, after, 3, stride)
        self.norm1 = norm(after)
        self.conv2 = conv(after, after, 3)
        self.norm2 = norm(after)
        self.shortcut = _shortcut(norm, before, after, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return functional.relu(y + self.shortcut(x))


class Bottleneck(nn.Module):
    """1x1, 3x3 (which carries the stride), 1x1; the inner map has a quarter of the channels."""

    expansion = 4

    def __init__(
        self,
        norm: Norm,
        before: int,
        after: int,
        stride: int,
    ) -> None:
        super().__init__()
        inner = after // self.expansion
        self.conv1 = conv(before, inner, 1)
        self.norm1 = norm(inner)
        self.conv2 = conv(inner, inner, 3, stride)
        self.norm2 = norm(inner)
        self.conv3 = conv(inner, after, 1)
        self.norm3 = norm(after)
        self.shortcut = _shortcut(norm, before, after, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm1(self.conv1(x)))
        y = functional.relu(self.norm2(self.conv2(y)))
        y = self.norm3(self.conv3(y))
        return functional.relu(y + self.shortcut(x))


class Stem(nn.Sequential):
    """A 3x3 convolution, and a 3x3 max-pool of stride 2 where `pool` is set."""

    def __init__(
        self,
        norm: Norm,
        channels: int,
        width: int,
        pool: bool,
    ) -> None:
        parts = OrderedDict[str, nn.Module]()
        parts["conv"] = conv(channels, width, 3)
        parts["norm"] = norm(width)
        parts["relu"] = nn.ReLU()
        if pool:
            parts["pool"] = nn.MaxPool2d(3, stride=2, padding=1)
        super().__init__(parts)


def resnet(model: Model, channels: int, classes: int) -> Net:
    """Stem, four stages of blocks, head; initialised from torch's global generator (see
    `leak_atlas.models.build`).
    """
    block = Bottleneck if model.name in BOTTLENECKS else Basic
    if model.stage4_stride not in (1, 2, 4):
        raise BadInput(
            f"a {model.name} needs a stage4_stride of 1, 2 or 4, not {model.stage4_stride}"
        )
    outputs = widths(model, tuple(block.expansion * factor for factor in (1, 2, 4, 8)))
    if any(after % block.expansion for after in outputs):
        raise BadInput(
            f"channels of a {model.name}'s stages must be multiples of {block.expansion},"
            f" not {outputs}"
        )

    norm = norm_of(model)
    stem = Stem(norm, channels, model.width, model.stem == "conv3-pool")
    strides = (1, 2, 2, model.stage4_stride)
    stages = []
    before = model.width
    for depth, after, stride in zip(DEPTHS[model.name], outputs, strides, strict=True):
        blocks = [block(norm, before, after, stride)]
        for _ in range(depth - 1):
            blocks.append(block(norm, after, after, 1))
        stages.append(Stage(*blocks))
        before = after
    return he_normal(assembled(stem, stages, Head(before, classes)))
