"""Residual networks for small images (He et al., CVPR 2016), with the two stems of the papers."""

from functools import partial

from torch import Tensor, nn
from torch.nn import functional

from leak_atlas.models.net import (
    Head,
    Net,
    Norm,
    assembled,
    chain,
    conv,
    he_normal,
    norm_of,
    residual_stages,
    thinned,
    widths,
)
from leak_atlas.recipe import Model
from leak_atlas.recipe.subjects import BOTTLENECKS

DEPTHS: dict[str, tuple[int, int, int, int]] = {  # blocks of each stage
    "resnet10": (1, 1, 1, 1),
    "resnet18": (2, 2, 2, 2),
    "resnet34": (3, 4, 6, 3),
    "resnet50": (3, 4, 6, 3),
    "resnet101": (3, 4, 23, 3),
    "resnet152": (3, 8, 36, 3),
}


def _shortcut(
    norm: Norm,
    before: int,
    after: int,
    stride: int,
) -> nn.Module:
    """A 1x1 convolution and a norm where a block changes the shape of its map, else identity. Its
    input is `thinned` by the stride.
    """
    if before == after and stride == 1:
        return nn.Identity()
    return chain(conv=conv(before, after, 1), norm=norm(after))


class Basic(nn.Module):
    """Two 3x3 convolutions and a shortcut; the first convolution has the stride."""

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
        self.stride = stride
        self.shortcut = _shortcut(norm, before, after, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return functional.relu(y + self.shortcut(thinned(x, self.stride)))


class Bottleneck(nn.Module):
    """Convolutions of 1x1, 3x3 and 1x1, and a shortcut.

    The 3x3 convolution has the stride and a quarter of the output channels.
    """

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
        self.stride = stride
        self.shortcut = _shortcut(norm, before, after, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm1(self.conv1(x)))
        y = functional.relu(self.norm2(self.conv2(y)))
        y = self.norm3(self.conv3(y))
        return functional.relu(y + self.shortcut(thinned(x, self.stride)))


def stem(
    norm: Norm,
    channels: int,
    width: int,
    pool: bool,
) -> nn.Sequential:
    """A 3x3 convolution with norm and ReLU; with `pool` also a 3x3 max-pool of stride 2."""
    layers = chain(conv=conv(channels, width, 3), norm=norm(width), relu=nn.ReLU())
    if pool:
        layers.add_module("pool", nn.MaxPool2d(3, stride=2, padding=1))
    return layers


def resnet(
    model: Model,
    channels: int,
    classes: int,
) -> Net:
    """Stem, four stages of blocks, head.

    Initialised from torch's global generator (see `leak_atlas.models.build`).
    """
    block = Bottleneck if model.name in BOTTLENECKS else Basic
    outputs = widths(model, [block.expansion * factor for factor in (1, 2, 4, 8)])
    norm = norm_of(model)
    first = stem(norm, channels, model.width, model.stem == "conv3-pool")
    strides = (1, 2, 2, model.stage4_stride)
    depths = DEPTHS[model.name]
    stages = residual_stages(partial(block, norm), model.width, outputs, depths, strides)
    return he_normal(assembled(first, stages, Head(outputs[-1], classes)))
