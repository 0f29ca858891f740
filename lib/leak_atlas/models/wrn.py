"""Wide residual networks for small images (Zagoruyko and Komodakis, BMVC 2016)."""

from torch import Tensor, nn
from torch.nn import functional

from leak_atlas.models.densenet import Last
from leak_atlas.models.net import Dropout, Head, Net, Stage, assembled, he_normal, norm_of, widths
from leak_atlas.models.resnet import Norm, conv
from leak_atlas.recipe import Model

STEM = 16  # channels, whatever the width


class Wide(nn.Module):
    """Two 3x3 convolutions, each after its norm and a ReLU, dropout before the second.

    Where a block changes the shape of its map, its shortcut is a 1x1 convolution of what the first
    convolution reads, as in the authors' code.
    """

    def __init__(self, norm: Norm, before: int, after: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = norm(before)
        self.conv1 = conv(before, after, 3, stride)
        self.norm2 = norm(after)
        self.dropout = Dropout(dropout) if dropout else nn.Identity()
        self.conv2 = conv(after, after, 3)
        self.shortcut = conv(before, after, 1, stride) if before != after or stride > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        own = functional.relu(self.norm1(x))
        y = self.conv2(self.dropout(functional.relu(self.norm2(self.conv1(own)))))
        return y + (x if self.shortcut is None else self.shortcut(own))


def wrn(model: Model, channels: int, classes: int) -> Net:
    """Stem, three stages of (depth - 4) / 6 blocks, head; the model's width is that of stage 1, 16
    times the paper's k.

    So WRN28-2 is `Model("wrn28", 32)`. The last block of stage 3 is the norm and ReLU before the
    pool. Initialised from torch's global generator (see `leak_atlas.models.build`).
    """
    norm, stages, before = norm_of(model), [], STEM
    for after, stride in zip(widths(model, (1, 2, 4)), (1, 2, 2), strict=True):
        shapes = [(before, stride), *[(after, 1)] * ((int(model.name[3:]) - 4) // 6 - 1)]
        stages.append(
            Stage(*(Wide(norm, each, after, step, model.dropout) for each, step in shapes))
        )
        before = after
    stages[-1].append(Last(norm, before))
    return he_normal(assembled(conv(channels, STEM, 3), stages, Head(before, classes)))
