"""Plain convolutional networks that differ only in depth. The dynamics paper does not describe its
CNNs.

Two stages of one, two or three 3x3 convolutions with ReLU and without norms, then one linear layer
on the flattened map.
"""

from torch import nn

from leak_atlas.models.net import Net, assembled, chain, he_normal, widths
from leak_atlas.models.vgg import vgg_stages
from leak_atlas.recipe import Model


def cnn(
    model: Model,
    channels: int,
    classes: int,
    pixels: int,
) -> Net:
    """Two stages, of the model's width and twice that width, and a head, for images of `pixels` x
    `pixels`.

    The number in `cnn2`, `cnn4`, `cnn6` counts the convolutions. Units are those of a VGG, so each
    stage ends with a 2x2 max-pool where its map is larger than one pixel. The head is the same for
    all depths.
    """
    convolutions = int(model.name.removeprefix("cnn"))
    depth = convolutions // 2
    outputs = widths(model, (1, 2))
    stages = vgg_stages(_no_norm, channels, outputs, [depth, depth])
    side = max(1, pixels // 4)
    features = outputs[-1] * side**2
    head = chain(flat=nn.Flatten(), fc=nn.Linear(features, classes))
    return he_normal(assembled(None, stages, head))


def _no_norm(channels: int) -> nn.Module:
    return nn.Identity()
