"""Plain convolutional networks that differ in depth alone; what the dynamics paper's CNNs are is
not known.

Two stages of one, two or three 3x3 convolutions with ReLU, no norm, then one linear layer on the
flat map.
"""

from collections import OrderedDict

from torch import nn

from leak_atlas.models.net import Net, Stage, assembled, he_normal, widths
from leak_atlas.models.vgg import Unit
from leak_atlas.recipe import Model


def cnn(model: Model, channels: int, classes: int, pixels: int) -> Net:
    """Stages of 1 and 2 times the model's width, head; for images of `pixels` x `pixels`.

    `cnn2`, `cnn4`, `cnn6`: the number is that of the convolutions. Units are a VGG's, so that each
    stage ends with a 2x2 max-pool where its map is larger than one pixel. The head does not depend
    on the depth.
    """
    stages, before = [], channels
    for after in widths(model, (1, 2)):
        inputs = [before, *[after] * (int(model.name[3:]) // 2 - 1)]
        units = (
            Unit(lambda _: nn.Identity(), each, after, i == len(inputs))
            for i, each in enumerate(inputs, 1)
        )
        stages.append(Stage(*units))
        before, pixels = after, max(1, pixels // 2)
    flat = OrderedDict(flat=nn.Flatten(), fc=nn.Linear(before * pixels**2, classes))
    return he_normal(assembled(None, stages, nn.Sequential(flat)))
