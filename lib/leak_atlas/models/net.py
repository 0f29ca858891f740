"""A network as an ordered list of named parts, and the layers that architectures share."""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from leak_atlas import BadInput
from leak_atlas.recipe import Model
from leak_atlas.recipe.readings import Parts

Tensors = Mapping[str, Tensor]  # by their names in a state dict
Norm = Callable[[int], nn.Module]  # makes a norm for a number of channels


class Stage(nn.Sequential):
    """A part that consists of blocks, numbered from 0."""


class Net(nn.Sequential):
    """A chain of named parts. `features` reads the output of each part.

    Most architectures have the parts stem, stage1, stage2, stage3, stage4, head. A parameter's name
    starts with its part: `stem.conv.weight`, `stage1.0.conv1.weight`, `head.fc.weight`.
    """

    def names(self, parts: Parts = "stages") -> tuple[str, ...]:
        """The names of the parts, or of the blocks, in the order of the forward pass."""
        modules = self.blocks() if parts == "blocks" else self.named_children()
        return tuple(name for name, _ in modules)

    def features(self, x: Tensor, parts: Parts = "stages") -> Iterator[tuple[str, Tensor]]:
        """Name and output of each part, or of each block, for samples `x`, in order."""
        modules = self.blocks() if parts == "blocks" else self.named_children()
        for name, module in modules:
            x = module(x)
            yield name, x

    def blocks(self) -> Iterator[tuple[str, nn.Module]]:
        """Name and module of each block in order: stem, stage1.0, stage1.1, ..., head."""
        for name, part in self.named_children():
            if isinstance(part, Stage):
                for number, block in part.named_children():
                    yield f"{name}.{number}", block
            else:
                yield name, part


class Dropout(nn.Dropout):
    """Dropout whose draws depend on a counter, `turn`, instead of a generator.

    So the draws do not depend on other trainings, are the same on every device, and differ in each
    replay of a recorded step. The random number of element i is SplitMix64's mix of turn + i
    without the last shift, which changes low bits alone (Steele, Lea and Flood 2014). After each
    call, turn increases by the number of elements. The first turn is drawn with the initial
    weights; states do not contain it. Raises BadInput if everything would be dropped.
    """

    turn: Tensor

    def __init__(self, share: float) -> None:
        super().__init__(share)
        if share >= 1:
            raise BadInput(f"dropout of {share:g} leaves nothing: take a share below 1")
        self.register_buffer("turn", torch.randint(2**62, ()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        counts = torch.arange(x.numel(), device=x.device).add_(self.turn)
        z = counts.mul_(-0x61C8864680B583EB)
        for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
            # torch's shift copies the sign bit: the mask removes the copies.
            mask = (1 << (64 - shift)) - 1
            z = (z ^ ((z >> shift) & mask)) * factor
        self.turn.add_(x.numel())
        kept = z >= round(self.p * 2**64) - 2**63
        return x * kept.view(x.shape) / (1 - self.p)


def chain(**modules: nn.Module) -> nn.Sequential:
    """Modules in this order, each under its name."""
    return nn.Sequential(OrderedDict(modules))


def hidden_layer(
    before: int,
    after: int,
    dropout: float,
) -> nn.Sequential:
    """A linear layer from `before` to `after` units, ReLU, dropout."""
    return chain(fc=nn.Linear(before, after), relu=nn.ReLU(), dropout=Dropout(dropout))


def conv(
    before: int,
    after: int,
    size: int,
    stride: int = 1,
) -> nn.Conv2d:
    """A convolution of `size` x `size` pixels without bias, which keeps the map's size at stride 1."""
    return nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False)


def thinned(x: Tensor, stride: int) -> Tensor:
    """Every `stride`-th row and column of maps `(b, c, h, w)`, before a 1x1 convolution.

    This is what a stride of that convolution does. But with AVX2 and fewer than eight channels,
    oneDNN's strided 1x1 convolution writes outside its memory (torch 2.13).
    """
    # Sliced with the channels last, so that output and gradient keep the memory order of x:
    # operators on tensors of both orders take many times as long.
    by_pixel = x.permute(0, 2, 3, 1)[:, ::stride, ::stride]
    return by_pixel.permute(0, 3, 1, 2)


class Head(nn.Module):
    """Global average pool and a linear layer."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.fc = nn.Linear(features, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x.mean(dim=(2, 3)))


class NormHead(nn.Module):
    """`pool`, which maps a feature map to `(B, features)`, then LayerNorm and a linear layer."""

    def __init__(
        self,
        features: int,
        classes: int,
        pool: Callable[[Tensor], Tensor],
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.fc = nn.Linear(features, classes)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.norm(self.pool(x)))


def assembled(
    stem: nn.Module | None,
    stages: Iterable[nn.Module],
    head: nn.Module,
) -> Net:
    """The network of these parts: stem, stage1, stage2, ..., head."""
    parts = {} if stem is None else {"stem": stem}
    for number, stage in enumerate(stages, 1):
        parts[f"stage{number}"] = stage
    return Net(OrderedDict(parts, head=head))


def residual_stages(
    block: Callable[[int, int, int], nn.Module],
    before: int,
    outputs: Sequence[int],
    depths: Sequence[int],
    strides: Sequence[int],
) -> list[Stage]:
    """Stages of blocks `block(before, after, stride)`. The first block of a stage changes the
    number of channels and has the stage's stride.
    """
    stages = []
    for after, depth, stride in zip(outputs, depths, strides, strict=True):
        blocks = [block(before, after, stride)]
        for _ in range(depth - 1):
            blocks.append(block(after, after, 1))
        stages.append(Stage(*blocks))
        before = after
    return stages


def norm_of(model: Model) -> Norm:
    """The function that makes a norm for a number of channels: BatchNorm, or GroupNorm of at most
    32 groups, as Opacus replaces BatchNorm, but with two channels or more in a group.
    """
    return nn.BatchNorm2d if model.norm == "batch" else _group_norm


def _group_norm(channels: int) -> nn.Module:
    """GroupNorm whose number of groups is the greatest common divisor of 32 and the channels.

    If groups had one channel, they have two instead: a single channel of a one-pixel map is
    normalised to 0.
    """
    groups = math.gcd(32, channels)
    if groups == channels:
        groups = max(1, channels // 2)
    return nn.GroupNorm(groups, channels)


def he_normal(net: Net) -> Net:
    """The network with convolutions drawn He normal over the fan-out, their biases zero."""
    draw = partial(nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu")
    return _drawn(net, (nn.Conv2d,), draw)


def xavier_normal(net: Net) -> Net:
    """The network with convolutions and linear layers drawn Xavier normal, their biases zero; all
    else as it is.
    """
    return _drawn(net, (nn.Conv2d, nn.Linear), nn.init.xavier_normal_)


def _drawn(
    net: Net, kinds: tuple[type[nn.Conv2d | nn.Linear], ...], draw: Callable[[Tensor], Tensor]
) -> Net:
    for module in net.modules():
        if isinstance(module, kinds):
            draw(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return net


def widths(model: Model, factors: Iterable[int]) -> list[int]:
    """Output channels of each stage: the model's width times one of `factors`, or the number that
    the model sets for the stage.
    """
    outputs = [model.width * factor for factor in factors]
    if model.stage3_channels is not None:
        outputs[2] = model.stage3_channels
    if model.stage4_channels is not None:
        outputs[3] = model.stage4_channels
    return outputs
