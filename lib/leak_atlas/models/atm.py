"""Active Token Mixer for small images (Wei et al., AAAI 2023): each group of channels is sampled at
learnt offsets along an axis.

Written from the paper's description and the published parameter counts, with two differences. Each
stage begins with the convolution that halves the map, so that stages have maps of 16, 8, 4, 2
pixels at an image of 64 pixels, and a stage's channels change no other stage's maps. A block is a
run of layers that share their offsets, so the next block needs only its output.

The official training applies no weight decay to the position encodings. Here they decay like all
other weights.
"""

import math
from collections import OrderedDict
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.models.net import Net, NormHead, Stage, assembled, widths
from leak_atlas.recipe import Model

Grids = tuple[Tensor, Tensor]


class Variant(NamedTuple):
    """By stage: number of layers, and hidden width of the MLPs as a multiple of the channels. `run`
    is the number of layers that share offsets.
    """

    depths: tuple[int, int, int, int]
    ratios: tuple[int, int, int, int]
    run: int


VARIANTS = {
    "atm-xt": Variant((2, 2, 4, 2), (4, 4, 4, 4), 2),
    "atm-t": Variant((2, 3, 10, 3), (4, 4, 4, 4), 2),
    "atm-s": Variant((3, 4, 18, 3), (8, 8, 4, 4), 6),
    "atm-b": Variant((3, 8, 27, 3), (8, 8, 4, 4), 6),
}
FACTORS = (1, 2, 5, 8)
SHARES = (2, 4, 4, 8)  # neighbouring channels that share an offset, by stage


def runs(depth: int, run: int) -> list[int]:
    """Number of layers in each block of a stage of `depth` layers: `run`, fewer in the last block. A
    single last layer belongs to the block before it.
    """
    starts = [start for start in range(0, depth, run) if start == 0 or start != depth - 1]
    return [stop - start for start, stop in pairwise([*starts, depth])]


def grid(offsets: Tensor, axis: int) -> Tensor:
    """Places for `sample`, `(B * G, H, W, 2)`: each pixel's place plus `offsets (B, H, W, G)`, in
    pixels, down (axis 1) or right (axis 2).
    """
    _, height, width, _ = offsets.shape
    moved = offsets.float().permute(0, 3, 1, 2)
    y = torch.arange(height, device=offsets.device)[:, None].expand_as(moved)
    x = torch.arange(width, device=offsets.device).expand_as(moved)
    if axis == 2:
        x = x + moved
    else:
        y = y + moved
    right = (2 * x + 1) / width - 1  # -1 to 1 are the borders of the map
    down = (2 * y + 1) / height - 1
    return torch.stack([right, down], dim=-1).flatten(0, 1)


def sample(x: Tensor, where: Tensor) -> Tensor:
    """Values of the map `x (B, H, W, C)` at the places of `grid`, float32: linear interpolation
    between pixels, zero outside.

    Each of G groups of offsets applies to C / G neighbouring channels. On CUDA the backward pass
    sums in no fixed order, so two trainings may differ in their last bits.
    """
    b, h, w, c = x.shape
    groups = len(where) // b
    maps = x.float().permute(0, 3, 1, 2).reshape(b * groups, c // groups, h, w)
    sampled = functional.grid_sample(maps, where, align_corners=False)
    return sampled.view(b, c, h, w).permute(0, 2, 3, 1)


class MLP(nn.Sequential):
    """Two linear layers with a GELU between them."""

    def __init__(self, before: int, inner: int, after: int) -> None:
        layers = OrderedDict[str, nn.Module]()
        layers["fc1"] = nn.Linear(before, inner)
        layers["gelu"] = nn.GELU()
        layers["fc2"] = nn.Linear(inner, after)
        super().__init__(layers)


class Offsets(nn.Module):
    """Sampling places of each group of channels at each pixel of a map `(B, H, W, C)`: one grid of
    offsets along the width, one along the height.
    """

    def __init__(self, channels: int, share: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.fc = nn.Linear(channels, 2 * channels // share)

    def forward(self, x: Tensor) -> Grids:
        across, down = self.fc(self.norm(x)).chunk(2, dim=-1)
        return grid(across, axis=2), grid(down, axis=1)


class Mixer(nn.Module):
    """Weighted sum of values along the width, along the height and of the pixel itself. The weights,
    by channel, are learnt functions of the image.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.width = nn.Linear(channels, channels)
        self.height = nn.Linear(channels, channels)
        self.here = nn.Linear(channels, channels, bias=False)
        self.fusion = MLP(channels, channels // 4, 3 * channels)
        self.project = nn.Linear(channels, channels)

    def forward(self, x: Tensor, grids: Grids) -> Tensor:
        across, down = grids
        width = self.width(sample(x, across))
        height = self.height(sample(x, down))
        here = self.here(x)
        mean = (width + height + here).mean(dim=(1, 2))
        weights = self.fusion(mean).unflatten(1, (3, -1)).softmax(dim=1)
        of_width, of_height, of_here = weights[:, :, None, None].unbind(dim=1)
        return self.project(width * of_width + height * of_height + here * of_here)


class Layer(nn.Module):
    """A mixer over the tokens, then an MLP over the channels, each after a LayerNorm and with a
    shortcut.
    """

    def __init__(self, channels: int, ratio: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(channels)
        self.mixer = Mixer(channels)
        self.norm2 = nn.LayerNorm(channels)
        self.mlp = MLP(channels, ratio * channels, channels)

    def forward(self, x: Tensor, grids: Grids) -> Tensor:
        x = x + self.mixer(self.norm1(x), grids)
        return x + self.mlp(self.norm2(x))


class Down(nn.Conv2d):
    """A 3x3 convolution that halves the map.

    On a map of one pixel the stride is 1, which gives the same result: with stride 2, the bfloat16
    kernel of CPUs with AMX (torch 2.13) leaves uninitialised memory in the gradient.
    """

    def __init__(self, before: int, after: int) -> None:
        super().__init__(before, after, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        stride = 2 if max(x.shape[-2:]) > 1 else 1
        return functional.conv2d(x, self.weight, self.bias, stride, padding=1)


class Block(nn.Module):
    """A run of layers that share their offsets: maps `(B, C, H, W)` to maps.

    A stage has one position encoding (PEG, a depthwise 3x3 convolution with a shortcut), applied
    before the offsets of each block. The encoding belongs to the first block, the `lender`; the
    other blocks use it, so a state has it once. Edits of the other blocks do not change it.
    """

    def __init__(
        self,
        before: int,
        after: int,
        down: bool,
        ratio: int,
        depth: int,
        share: int,
        lender: "Block | None",
    ):
        super().__init__()
        self.down = Down(before, after) if down else None
        if lender is None:
            self.peg = nn.Conv2d(after, after, 3, padding=1, groups=after)
        # The tuple prevents torch from registering the encoding as a part of this block.
        self.borrowed = ((lender or self).peg,)
        self.offsets = Offsets(after, share)
        self.layers = nn.ModuleList(Layer(after, ratio) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        if self.down is not None:
            x = self.down(x)
        x = x + self.borrowed[0](x)
        y = x.permute(0, 2, 3, 1)
        grids = self.offsets(y)
        for layer in self.layers:
            y = layer(y, grids)
        return y.permute(0, 3, 1, 2)


class Stem(nn.Sequential):
    """A 7x7 convolution whose stride is the patch."""

    def __init__(self, channels: int, width: int, patch: int) -> None:
        conv = nn.Conv2d(channels, width, 7, patch, padding=(8 - patch) // 2)
        super().__init__(OrderedDict(conv=conv))


def _mean(x: Tensor) -> Tensor:
    """The global average of a map."""
    return x.mean(dim=(2, 3))


def atm(model: Model, channels: int, classes: int) -> Net:
    """Stem, four stages of blocks, head; no dropout and no dropped paths; initialised from torch's
    global generator.

    Raises BadInput where a stage's channels do not divide into groups.
    """
    if model.patch not in (1, 2, 4):
        raise BadInput(f"an {model.name} needs a patch of 1, 2 or 4, not {model.patch}")
    variant = VARIANTS[model.name]
    outputs = widths(model, FACTORS)
    for number, (after, share) in enumerate(zip(outputs, SHARES, strict=True), 1):
        if after % share or after < 4:
            raise BadInput(
                f"stage {number} of an {model.name} needs a multiple of {max(4, share)} channels,"
                f" not {after}"
            )

    before = outputs[0]
    stem = Stem(channels, before, model.patch)
    stages: list[Stage] = []
    for number, after in enumerate(outputs):
        blocks: list[Block] = []
        for length in runs(variant.depths[number], variant.run):
            block = Block(
                before,
                after,
                down=number > 0 and not blocks,
                ratio=variant.ratios[number],
                depth=length,
                share=SHARES[number],
                lender=blocks[0] if blocks else None,
            )
            blocks.append(block)
            before = after
        stages.append(Stage(*blocks))
    net = assembled(stem, stages, NormHead(before, classes, _mean))
    for module in net.modules():
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.02)
        elif isinstance(module, nn.Conv2d):
            fan_out = module.weight[0, 0].numel() * module.out_channels // module.groups
            nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))
        if isinstance(module, nn.Linear | nn.Conv2d) and module.bias is not None:
            nn.init.zeros_(module.bias)
    return net
