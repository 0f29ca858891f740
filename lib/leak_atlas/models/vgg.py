"""VGG with BatchNorm for small images (Simonyan and Zisserman, ICLR 2015).

One linear layer comes after the convolutions, or three as in PPB's published code: 4096 - 4096 -
classes.
"""

from torch import Tensor, nn
from torch.nn import functional

from leak_atlas.models.net import Head, Net, Stage, assembled, he_normal, norm_of, widths
from leak_atlas.models.resnet import Norm
from leak_atlas.recipe import Model

DEPTHS: dict[str, tuple[int, int, int, int, int]] = {
    "vgg11": (1, 1, 2, 2, 2),
    "vgg13": (2, 2, 2, 2, 2),
    "vgg16": (2, 2, 3, 3, 3),
    "vgg19": (2, 2, 4, 4, 4),
}


class Unit(nn.Module):
    """A 3x3 convolution with bias, norm, ReLU. The last unit of a stage halves the map by a 2x2
    max-pool.

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


def vgg_stage(norm: Norm, before: int, after: int, depth: int) -> Stage:
    """A stage of `depth` units, which maps `before` channels to `after` channels."""
    units = []
    for number in range(1, depth + 1):
        units.append(Unit(norm, before, after, pool=number == depth))
        before = after
    return Stage(*units)


def vgg(model: Model, channels: int, classes: int) -> Net:
    """Five stages of units, and a head of average pool and linear layers; initialised from torch's
    global generator.

    Raises BadInput where a stage has no channels.
    """
    outputs = widths(model, (1, 2, 4, 8, 8))
    stages = []
    before = channels
    for depth, after in zip(DEPTHS[model.name], outputs, strict=True):
        stages.append(vgg_stage(norm_of(model), before, after, depth))
        before = after
    return he_normal(assembled(None, stages, Head(before, classes, model.hidden)))
