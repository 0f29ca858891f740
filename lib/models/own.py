"""A user's own module as a network of the library: any forward pass, its state dict as it is.

Architectures of the library are chains of parts. A user's module is read by forward hooks at the modules it names: so
its forward need be no chain, and weights that were trained elsewhere fit by their own names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lib import BadInput, nearest
from lib.models.net import Dropout, Net

OUTPUT = "output"  # the last part of which features are read: the logits


class Own(Net):
    """One part, `output`, that has the module's own names of weights; features are read at `stages` and of the logits.

    Weights keep the layout that the module gives them, and images come to it contiguous, so that a `view` in its
    forward does what it does elsewhere. Of a module that is called twice the last output is read. Each `nn.Dropout` is
    drawn as the library's are: repeatably. Randomness of another sort follows torch's global generator.
    """

    def __init__(self, module: nn.Module, stages: tuple[str, ...], told: str) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise BadInput(f"{told} takes a torch.nn.Module, not {type(module).__name__}")
        known = dict(module.named_modules())
        for name in stages:
            if name not in known or not name or stages.count(name) > 1:
                raise BadInput(f"{told}.stages names '{name}', which is no module of it, or twice{_near(name, known)}")
        for owner in known.values():
            if getattr(owner, "inplace", False):
                owner.inplace = False  # the same numbers; DP-SGD's hooks refuse to be written into
            for name, child in owner.named_children():
                if type(child) is nn.Dropout:
                    setattr(owner, name, Dropout(child.p))
        # The module's own tables: names, moves to a device and loaded weights are those of the module.
        self._parameters, self._buffers, self._modules = module._parameters, module._buffers, module._modules  # type: ignore[assignment]
        self._non_persistent_buffers_set = module._non_persistent_buffers_set
        object.__setattr__(self, "module", module)  # not as a child
        self.stages, self.told = stages, told

    module: nn.Module

    def forward(self, x: Tensor) -> Tensor:
        # Of one channel `contiguous()` would leave the strides of channels_last, after which the next layer asks.
        found = self.module(x.clone(memory_format=torch.contiguous_format))
        if not isinstance(found, Tensor) or found.ndim != 2:
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise BadInput(f"{self.told} answers with {shape}, and logits (n, classes) are needed")
        return found

    def train(self, mode: bool = True) -> Own:
        super().train(mode)
        self.module.training = mode
        return self

    def parts(self) -> tuple[str, ...]:
        return *self.stages, OUTPUT

    def names(self, parts: Literal["stages", "blocks"] = "stages") -> tuple[str, ...]:
        return self.parts()

    def blocks(self) -> Iterator[tuple[str, nn.Module]]:
        yield OUTPUT, self

    def features(self, x: Tensor, parts: Literal["stages", "blocks"] = "stages") -> Iterator[tuple[str, Tensor]]:
        found: dict[str, Tensor] = {}

        def look(name: str, module: nn.Module, given: Any, output: Any) -> None:
            if not isinstance(output, Tensor) or output.ndim < 2:
                raise BadInput(f"{self.told}: '{name}' puts out no tensor (n, ...): name a module inside or behind it")
            found[name] = output.clone()  # what comes next may write into it

        with ExitStack() as hooks:
            for name in self.stages:
                hooks.enter_context(self.get_submodule(name).register_forward_hook(partial(look, name)))
            found[OUTPUT] = self(x)
        for name in self.parts():
            if name not in found:
                raise BadInput(f"{self.told}: its forward pass does not call '{name}'; take it out of stages")
            yield name, found[name]


def _near(name: str, known: dict[str, nn.Module]) -> str:
    return nearest(name, [each for each in known if each])
