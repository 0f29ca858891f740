"""A network as an ordered list of named parts, and the layers that architectures share."""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import torch
from torch import Tensor, nn

from leak_atlas import BadInput
from leak_atlas.recipe import Model


class Stage(nn.Sequential):
    """A part that consists of blocks, numbered from 0."""


class Net(nn.Sequential):
    """A chain of named parts. `features` reads the output of each part.

    `PARTS` are the parts of most architectures; a VGG has no stem and five stages. A parameter's
    name starts with its part: `stem.conv.weight`, `stage1.0.conv1.weight`, `head.fc.weight`.
    """

    PARTS = ("stem", "stage1", "stage2", "stage3", "stage4", "head")

    def parts(self) -> tuple[str, ...]:
        """The names of the parts, in the order of the forward pass."""
        return tuple(name for name, _ in self.named_children())

    def features(
        self,
        x: Tensor,
        parts: Literal["stages", "blocks"] = "stages",
    ) -> Iterator[tuple[str, Tensor]]:
        """Name and output of each part, or of each block, for samples `x`, in order."""
        if parts == "blocks":
            for name, block in self.blocks():
                x = block(x)
                yield name, x
            return
        for name, part in self.named_children():
            for block in part if isinstance(part, Stage) else [part]:
                x = block(x)
            yield name, x

    def names(self, parts: Literal["stages", "blocks"] = "stages") -> tuple[str, ...]:
        """The names that `features` gives."""
        return self.parts() if parts == "stages" else tuple(name for name, _ in self.blocks())

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
    (Steele, Lea and Flood 2014); after each call, turn increases by the number of elements. The
    first turn is drawn with the initial weights; states do not contain it.
    """

    turn: Tensor

    def __init__(self, share: float) -> None:
        super().__init__(share)
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


class Layer(nn.Sequential):
    """A linear layer, ReLU, dropout."""

    def __init__(self, before: int, after: int, dropout: float) -> None:
        layers = OrderedDict[str, nn.Module]()
        layers["fc"] = nn.Linear(before, after)
        layers["relu"] = nn.ReLU()
        layers["dropout"] = Dropout(dropout)
        super().__init__(layers)


class Head(nn.Module):
    """Global average pool and a linear layer; with `hidden` units, two hidden layers with dropout .5
    between them.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        hidden: int | None = None,
    ) -> None:
        super().__init__()
        self.hidden: nn.Module = nn.Identity()
        if hidden:
            self.hidden = nn.Sequential(Layer(features, hidden, 0.5), Layer(hidden, hidden, 0.5))
        self.fc = nn.Linear(hidden or features, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.hidden(x.mean(dim=(2, 3))))


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
    parts = OrderedDict[str, nn.Module]()
    if stem is not None:
        parts["stem"] = stem
    for number, stage in enumerate(stages, 1):
        parts[f"stage{number}"] = stage
    parts["head"] = head
    return Net(parts)


def norm_of(model: Model) -> Callable[[int], nn.Module]:
    """The function that makes a norm for a number of channels: BatchNorm, or GroupNorm of at most 32
    groups, as Opacus replaces BatchNorm.

    The number of groups is the greatest common divisor of 32 and the number of channels. If groups
    had one channel, they have two instead: a single channel of a one-pixel map is normalised to 0.
    """
    return nn.BatchNorm2d if model.norm == "batch" else _group_norm


def _group_norm(channels: int) -> nn.Module:
    groups = math.gcd(32, channels)
    if groups == channels:
        groups = max(1, channels // 2)
    return nn.GroupNorm(groups, channels)


def he_normal(net: Net) -> Net:
    """The network with convolutions drawn He normal over the fan-out, their biases zero."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return net


def xavier_normal(net: Net) -> Net:
    """The network with convolutions and linear layers drawn Xavier normal, their biases zero; all
    else as it is.
    """
    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.xavier_normal_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return net


def widths(model: Model, factors: tuple[int, ...]) -> list[int]:
    """Output channels of each stage: the model's width times one of `factors`, or the number that
    the model sets for the stage. BadInput where a stage has no channel.
    """
    outputs = [model.width * factor for factor in factors]
    if model.stage3_channels is not None:
        outputs[2] = model.stage3_channels
    if model.stage4_channels is not None:
        outputs[3] = model.stage4_channels
    if min(outputs) < 1:
        raise BadInput(
            f"every stage of a {model.name} needs a channel or more, not {outputs}:"
            " raise width or channels"
        )
    return outputs
