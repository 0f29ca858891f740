"""Vision transformer for small images (Dosovitskiy et al., ICLR 2021), in the size that CWRF's
Table 1 implies.

Its shares of weights (attention and MLP 99.39 %, linear 0.54 %, norm 0.07 %) fit only with 100
classes, depth 6, a last norm, and d channels with MLPs of m where 4 d + 2 m = 3,072. Of the three
nets that fit, this is a widely used one for CIFAR: 512 channels, MLPs of 512, 8 heads of 64,
patches of 4 pixels. That one has dropout of 0.1. Here there is none, as in the other architectures
of the weights paper.
"""

import torch
from torch import Tensor, nn

from leak_atlas import BadInput
from leak_atlas.models.net import Net, NormHead, assembled
from leak_atlas.models.transformer import Block
from leak_atlas.recipe import Model

DEPTH, HEADS = 6, 8


class Stem(nn.Module):
    """A class token and the patches as tokens, with a learnt vector of each place added."""

    def __init__(
        self,
        channels: int,
        width: int,
        patch: int,
        patches: int,
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, width, patch, patch)
        self.token = nn.Parameter(torch.empty(1, 1, width))
        self.positions = nn.Parameter(torch.empty(1, 1 + patches, width))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.conv(x).flatten(2).transpose(1, 2)
        token = self.token.expand(len(x), -1, -1)
        tokens = torch.cat([token, patches], dim=1)
        return tokens + self.positions


def _class_token(tokens: Tensor) -> Tensor:
    return tokens[:, 0]


def vit(
    model: Model,
    channels: int,
    classes: int,
    pixels: int,
) -> Net:
    """Stem, six stages of one block each, head, for images of `pixels` x `pixels`. Maps have 8
    times the model's width in channels.

    The class token and the positions are normal with 0.02, the rest torch's default. Raises
    BadInput if patches do not cover the image.
    """
    if pixels % model.patch:
        raise BadInput(
            f"a vit cuts an image into whole patches: {pixels} pixels are no multiple of {model.patch}"
        )
    width = HEADS * model.width
    stem = Stem(channels, width, model.patch, (pixels // model.patch) ** 2)
    stages = [Block(width, HEADS, width) for _ in range(DEPTH)]
    net = assembled(stem, stages, NormHead(width, classes, _class_token))
    nn.init.normal_(stem.token, std=0.02)
    nn.init.normal_(stem.positions, std=0.02)
    return net
