"""A network as an ordered list of named parts."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from torch import Tensor, nn

from lib import BadInput
from lib.recipe import Model


class Stage(nn.Sequential):
    """A part that consists of blocks, numbered from 0."""


class Net(nn.Sequential):
    """Named parts, applied one after another; the output of each is a feature map that can be read.

    `PARTS` are those of most architectures; a VGG has no stem and five stages.

    Parameter names start with their part's: `stem.conv.weight`, `stage1.0.conv1.weight`, `head.fc.weight`.
    """

    PARTS = ("stem", "stage1", "stage2", "stage3", "stage4", "head")

    def parts(self) -> tuple[str, ...]:
        """The names of the parts, in the order of the forward pass."""
        return tuple(name for name, _ in self.named_children())

    def blocks(self) -> Iterator[tuple[str, nn.Module]]:
        """Name and module of the finest units in order: stem, stage1.0, stage1.1, ..., head."""
        for name, part in self.named_children():
            if isinstance(part, Stage):
                for number, block in part.named_children():
                    yield f"{name}.{number}", block
            else:
                yield name, part


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


def he_normal(net: Net) -> Net:
    """The network with convolutions drawn He normal over the fan-out, their biases zero."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return net


def widths(model: Model, factors: tuple[int, ...]) -> list[int]:
    """Output channels of each stage: `factors` times the model's width, or what the model gives for the stage."""
    found = [model.width * factor for factor in factors]
    for stage, channels in ((3, model.stage3_channels), (4, model.stage4_channels)):
        if channels is not None:
            found[stage - 1] = channels
    if min(found) < 1:
        raise BadInput(f"every stage of a {model.name} needs a channel or more, not {found}: raise width or channels")
    return found
