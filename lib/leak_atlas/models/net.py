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
    """Named parts, applied one after another; the output of each is a feature map that can be read.

    `PARTS` are those of most architectures; a VGG has no stem and five stages.

    Parameter names start with their part's: `stem.conv.weight`, `stage1.0.conv1.weight`,
    `head.fc.weight`.
    """

    PARTS = ("stem", "stage1", "stage2", "stage3", "stage4", "head")

    def parts(self) -> tuple[str, ...]:
        """The names of the parts, in the order of the forward pass."""
        return tuple(name for name, _ in self.named_children())

    def features(
        self, x: Tensor, parts: Literal["stages", "blocks"] = "stages"
    ) -> Iterator[tuple[str, Tensor]]:
        """Name and output of each part, or of each block, for samples `x`: one after another, none
        is kept.
        """
        units = list(self.blocks())
        names = [name if parts == "blocks" else name.partition(".")[0] for name, _ in units]
        for i, (_, unit) in enumerate(units):
            x = unit(x)
            if names[i] not in names[i + 1 :]:
                yield names[i], x

    def names(self, parts: Literal["stages", "blocks"] = "stages") -> tuple[str, ...]:
        """The names that `features` gives."""
        return self.parts() if parts == "stages" else tuple(name for name, _ in self.blocks())

    def blocks(self) -> Iterator[tuple[str, nn.Module]]:
        """Name and module of the finest units in order: stem, stage1.0, stage1.1, ..., head."""
        for name, part in self.named_children():
            if isinstance(part, Stage):
                for number, block in part.named_children():
                    yield f"{name}.{number}", block
            else:
                yield name, part


class Dropout(nn.Dropout):
    """Dropout that draws by a number of its own, `turn`, and by no generator.

    So a training's draws do not depend on those that run beside it, are the same on every device,
    and are new ones each time that a recorded step is replayed. An element counts on from the turn,
    and its count is mixed as in SplitMix64 (Steele, Lea and Flood 2014). The first turn is drawn
    with the initial weights; it is no part of a state.
    """

    turn: Tensor

    def __init__(self, share: float) -> None:
        super().__init__(share)
        self.register_buffer("turn", torch.randint(2**62, ()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        z = torch.arange(x.numel(), device=x.device).add_(self.turn).mul_(-0x61C8864680B583EB)
        for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
            # torch shifts in copies of the sign
            z = (z ^ ((z >> shift) & ((1 << (64 - shift)) - 1))) * factor
        self.turn.add_(x.numel())
        return x * (z >= round(self.p * 2**64) - 2**63).view(x.shape) / (1 - self.p)


class Layer(nn.Sequential):
    """A linear layer, ReLU, dropout."""

    def __init__(self, before: int, after: int, dropout: float) -> None:
        super().__init__(
            OrderedDict(fc=nn.Linear(before, after), relu=nn.ReLU(), dropout=Dropout(dropout))
        )


class Head(nn.Module):
    """Global average pool, two hidden layers with dropout .5 where `hidden` says how wide, and a
    linear layer.
    """

    def __init__(self, features: int, classes: int, hidden: int | None = None) -> None:
        super().__init__()
        if hidden:
            self.hidden = nn.Sequential(Layer(features, hidden, 0.5), Layer(hidden, hidden, 0.5))
        self.fc = nn.Linear(hidden or features, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = x.mean(dim=(2, 3))
        return self.fc(self.hidden(x) if hasattr(self, "hidden") else x)


class NormHead(nn.Module):
    """LayerNorm and a linear layer on what `pool` makes of a map."""

    def __init__(self, features: int, classes: int, pool: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.fc = nn.Linear(features, classes)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.norm(self.pool(x)))


def assembled(stem: nn.Module | None, stages: Iterable[nn.Module], head: nn.Module) -> Net:
    """The network of these parts: stem, stage1, stage2, ..., head."""
    parts = OrderedDict[str, nn.Module]() if stem is None else OrderedDict(stem=stem)
    parts |= {f"stage{number}": stage for number, stage in enumerate(stages, 1)}
    return Net(parts | {"head": head})


def norm_of(model: Model) -> Callable[[int], nn.Module]:
    """Makes the norm of a map with so many channels: BatchNorm, or GroupNorm of up to 32 groups, as
    Opacus replaces it.

    Groups are of equal size, so there are as many as the greatest common divisor of 32 and the
    channels. Only where that leaves a channel a group, each has two: alone on a map of one pixel, a
    channel would be nothing but its bias.
    """

    def grouped(channels: int) -> nn.Module:
        groups = math.gcd(32, channels)
        return nn.GroupNorm(groups if groups < channels else max(1, channels // 2), channels)

    return nn.BatchNorm2d if model.norm == "batch" else grouped


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
    """Output channels of each stage: `factors` times the model's width, or what the model gives for
    the stage.
    """
    found = [model.width * factor for factor in factors]
    for stage, channels in ((3, model.stage3_channels), (4, model.stage4_channels)):
        if channels is not None:
            found[stage - 1] = channels
    if min(found) < 1:
        raise BadInput(
            f"every stage of a {model.name} needs a channel or more, not {found}: raise width or channels"
        )
    return found
