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

import torch
from torch import Tensor, nn
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.models.net import Net, NormHead, Stage, assembled, chain, widths
from leak_atlas.recipe import Model

Grids = tuple[Tensor, Tensor]  # sampling places along the width and along the height

# By variant: for each stage, the layers of each block, and the hidden width of its MLPs as a multiple
# of its channels. The paper learns offsets anew after every 2 (atm-s, atm-b: 6) layers, but not for
# a last layer alone.
VARIANTS: dict[str, tuple[tuple[list[int], int], ...]] = {
    "atm-xt": (([2], 4), ([2], 4), ([2] * 2, 4), ([2], 4)),
    "atm-t": (([2], 4), ([3], 4), ([2] * 5, 4), ([3], 4)),
    "atm-s": (([3], 8), ([4], 8), ([6] * 3, 4), ([3], 4)),
    "atm-b": (([3], 8), ([6, 2], 8), ([6] * 4 + [3], 4), ([3], 4)),
}
FACTORS = (1, 2, 5, 8)
SHARES = (2, 4, 4, 8)  # neighbouring channels that share an offset, by stage


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
    maps = x.float().permute(0, 3, 1, 2)
    by_group = maps.reshape(b * groups, c // groups, h, w)
    sampled = functional.grid_sample(by_group, where, align_corners=False)
    return sampled.view(b, c, h, w).permute(0, 2, 3, 1)


def mlp(
    before: int,
    inner: int,
    after: int,
) -> nn.Sequential:
    """Two linear layers with a GELU between them."""
    return chain(fc1=nn.Linear(before, inner), gelu=nn.GELU(), fc2=nn.Linear(inner, after))


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
    """Weighted sum of values along the width, along the height and of the pixel itself. The
    weights, by channel, are learnt functions of the image.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.width = nn.Linear(channels, channels)
        self.height = nn.Linear(channels, channels)
        self.here = nn.Linear(channels, channels, bias=False)
        self.fusion = mlp(channels, channels // 4, 3 * channels)
        self.project = nn.Linear(channels, channels)

    def forward(self, x: Tensor, grids: Grids) -> Tensor:
        across, down = grids
        width = self.width(sample(x, across))
        height = self.height(sample(x, down))
        here = self.here(x)
        total = width + height + here
        mean = total.mean(dim=(1, 2))
        fused = self.fusion(mean).unflatten(1, (3, -1))
        weights = fused.softmax(dim=1)[:, :, None, None]
        of_width, of_height, of_here = weights.unbind(dim=1)
        mixed = width * of_width + height * of_height + here * of_here
        return self.project(mixed)


class Layer(nn.Module):
    """A mixer over the tokens, then an MLP over the channels, each after a LayerNorm and with a
    shortcut.
    """

    def __init__(self, channels: int, ratio: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(channels)
        self.mixer = Mixer(channels)
        self.norm2 = nn.LayerNorm(channels)
        self.mlp = mlp(channels, ratio * channels, channels)

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
    before the offsets of each block. The encoding belongs to the stage's first block, the `lender`;
    the other blocks use it, so a state has it once. Edits of the other blocks do not change it.
    """

    def __init__(
        self,
        channels: int,
        ratio: int,
        depth: int,
        share: int,
        down: Down | None,
        lender: "Block | None",
    ) -> None:
        super().__init__()
        self.down = down
        if lender is None:
            self.peg = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        # The tuple prevents torch from registering the encoding as a part of this block.
        self.borrowed = ((lender or self).peg,)
        self.offsets = Offsets(channels, share)
        self.layers = nn.ModuleList(Layer(channels, ratio) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        if self.down is not None:
            x = self.down(x)
        x = x + self.borrowed[0](x)
        y = x.permute(0, 2, 3, 1)
        grids = self.offsets(y)
        for layer in self.layers:
            y = layer(y, grids)
        return y.permute(0, 3, 1, 2)


def atm(
    model: Model,
    channels: int,
    classes: int,
) -> Net:
    """Stem, four stages of blocks, head; no dropout and no dropped paths; initialised from torch's
    global generator. The stem is a 7x7 convolution whose stride is the model's patch.

    Raises BadInput if a stage's channels do not divide into groups.
    """
    outputs = widths(model, FACTORS)
    if any(after % max(4, share) for after, share in zip(outputs, SHARES, strict=True)):
        raise BadInput(
            f"stages of an {model.name} need multiples of 4, 4, 4 and 8 channels, not {outputs}"
        )
    patch = model.patch
    stem = nn.Conv2d(channels, outputs[0], 7, patch, padding=(8 - patch) // 2)
    stages = _stages(model.name, outputs)
    net = assembled(chain(conv=stem), stages, NormHead(outputs[-1], classes, _mean))
    _initialise(net)
    return net


def _stages(name: str, outputs: list[int]) -> list[Stage]:
    """The stages of a variant, with blocks of `outputs` channels. Each stage but the first halves
    the map.
    """
    stages: list[Stage] = []
    before = outputs[0]
    for after, share, (depths, ratio) in zip(outputs, SHARES, VARIANTS[name], strict=True):
        down = Down(before, after) if stages else None
        lender = Block(after, ratio, depths[0], share, down, None)
        others = [Block(after, ratio, depth, share, None, lender) for depth in depths[1:]]
        stages.append(Stage(lender, *others))
        before = after
    return stages


def _mean(x: Tensor) -> Tensor:
    """The global average of a map."""
    return x.mean(dim=(2, 3))


def _initialise(net: Net) -> None:
    """Linear layers normal with 0.02, convolutions He normal over the fan-out, biases zero."""
    for module in net.modules():
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.02)
        elif isinstance(module, nn.Conv2d):
            height, width = module.kernel_size
            fan_out = height * width * module.out_channels // module.groups
            nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)
