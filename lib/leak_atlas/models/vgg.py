"""VGG with BatchNorm for small images (Simonyan and Zisserman, ICLR 2015).

One linear layer comes after the convolutions.
"""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from leak_atlas.models.net import Head, Net, Norm, Stage, assembled, he_normal, norm_of, widths
from leak_atlas.recipe import Model

DEPTHS: dict[str, tuple[int, int, int, int, int]] = {
    "vgg11": (1, 1, 2, 2, 2),
    "vgg13": (2, 2, 2, 2, 2),
    "vgg16": (2, 2, 3, 3, 3),
    "vgg19": (2, 2, 4, 4, 4),
}


class Unit(nn.Module):
    """A 3x3 convolution with bias, norm, ReLU; with `pool` also a 2x2 max-pool.

    A map of one pixel is not pooled, so that images of 16 pixels and fewer work too.
    """

    def __init__(
        self,
        norm: Norm,
        before: int,
        after: int,
        pool: bool,
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(before, after, 3, padding=1)
        self.norm = norm(after)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm(self.conv(x)))
        return functional.max_pool2d(y, 2) if self.pool and min(y.shape[-2:]) > 1 else y


def vgg_stages(
    norm: Norm,
    before: int,
    outputs: Sequence[int],
    depths: Sequence[int],
) -> list[Stage]:
    """Stages of units for maps of `before` channels: `depths` units each, to `outputs` channels.
    The last unit of a stage halves the map.
    """
    stages = []
    for after, depth in zip(outputs, depths, strict=True):
        units = []
        for number in range(1, depth + 1):
            units.append(Unit(norm, before, after, pool=number == depth))
            before = after
        stages.append(Stage(*units))
    return stages


def vgg(
    model: Model,
    channels: int,
    classes: int,
) -> Net:
    """Five stages of units, and a head of average pool and linear layer; initialised from torch's
    global generator.
    """
    outputs = widths(model, (1, 2, 4, 8, 8))
    stages = vgg_stages(norm_of(model), channels, outputs, DEPTHS[model.name])
    return he_normal(assembled(None, stages, Head(outputs[-1], classes)))
