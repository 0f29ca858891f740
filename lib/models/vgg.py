"""VGG with BatchNorm for small images (Simonyan and Zisserman, ICLR 2015; one linear layer after the convolutions)."""

from torch import Tensor, nn
from torch.nn import functional

from lib.models.net import Net, Stage, assembled, he_normal, widths
from lib.models.resnet import Head
from lib.recipe import Model

DEPTHS: dict[str, tuple[int, int, int, int, int]] = {
    "vgg11": (1, 1, 2, 2, 2),
    "vgg13": (2, 2, 2, 2, 2),
    "vgg16": (2, 2, 3, 3, 3),
    "vgg19": (2, 2, 4, 4, 4),
}


class Unit(nn.Module):
    """A 3x3 convolution with bias, BatchNorm, ReLU; the last unit of a stage halves the map by a 2x2 max-pool.

    A map of one pixel is not pooled, so images of 16 pixels and fewer work too: their last stages have maps of 1x1.
    """

    def __init__(self, before: int, after: int, pool: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(before, after, 3, padding=1)
        self.norm = nn.BatchNorm2d(after)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm(self.conv(x)))
        return functional.max_pool2d(y, 2) if self.pool and min(y.shape[-2:]) > 1 else y


def vgg(model: Model, channels: int, classes: int) -> Net:
    """Five stages of units, head (average pool and one linear layer); initialised from torch's global generator.

    Raises BadInput where a stage would have no channels.
    """
    stages, before = [], channels
    for depth, after in zip(DEPTHS[model.name], widths(model, (1, 2, 4, 8, 8)), strict=True):
        inputs = [before, *[after] * (depth - 1)]
        stages.append(Stage(*(Unit(each, after, i == depth) for i, each in enumerate(inputs, 1))))
        before = after
    return he_normal(assembled(None, stages, Head(before, classes)))
