"""Wide residual networks for small images (Zagoruyko and Komodakis, BMVC 2016)."""

from functools import partial

from torch import Tensor, nn
from torch.nn import functional

from leak_atlas.models.densenet import Last
from leak_atlas.models.net import (
    Dropout,
    Head,
    Net,
    Norm,
    assembled,
    conv,
    he_normal,
    norm_of,
    residual_stages,
    thinned,
    widths,
)
from leak_atlas.recipe import Model

STEM = 16  # channels, whatever the width


class Wide(nn.Module):
    """Two 3x3 convolutions, each after a norm and a ReLU, with dropout before the second.

    Where a block changes the shape of its map, its shortcut is a 1x1 convolution of the first
    convolution's input, as in the authors' code.
    """

    def __init__(
        self,
        norm: Norm,
        dropout: float,
        before: int,
        after: int,
        stride: int,
    ) -> None:
        super().__init__()
        self.norm1 = norm(before)
        self.conv1 = conv(before, after, 3, stride)
        self.norm2 = norm(after)
        self.dropout = Dropout(dropout) if dropout else nn.Identity()
        self.conv2 = conv(after, after, 3)
        self.stride = stride
        self.shortcut = conv(before, after, 1) if before != after or stride > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        activated = functional.relu(self.norm1(x))
        y = functional.relu(self.norm2(self.conv1(activated)))
        y = self.conv2(self.dropout(y))
        if self.shortcut is None:
            return y + x
        return y + self.shortcut(thinned(activated, self.stride))


def wrn(
    model: Model,
    channels: int,
    classes: int,
) -> Net:
    """Stem, three stages of (depth - 4) / 6 blocks, head. The model's width is that of stage 1, 16
    times the paper's k: WRN28-2 is `Model("wrn28", 32)`.

    The last block of stage 3 is the norm and ReLU before the pool. Initialised from torch's global
    generator (see `leak_atlas.models.build`).
    """
    norm = norm_of(model)
    depth = int(model.name.removeprefix("wrn"))
    depths = [(depth - 4) // 6] * 3
    outputs = widths(model, (1, 2, 4))
    block = partial(Wide, norm, model.dropout)
    stages = residual_stages(block, STEM, outputs, depths, strides=(1, 2, 2))
    stages[-1].append(Last(norm, outputs[-1]))
    stem = conv(channels, STEM, 3)
    return he_normal(assembled(stem, stages, Head(outputs[-1], classes)))
