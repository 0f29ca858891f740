"""A network as an ordered list of named parts."""

from collections.abc import Iterator

from torch import nn


class Stage(nn.Sequential):
    """A part that consists of blocks, numbered from 0."""


class Net(nn.Sequential):
    """Named parts, applied one after another; every part's output is a feature that can be looked at.

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
