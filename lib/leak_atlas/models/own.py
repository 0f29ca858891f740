"""A user's own module as a network of the library, with any forward pass and its own state dict.

Architectures of the library are chains of parts. Forward hooks read a user's module at the stages
that the user names. So its forward pass need not be a chain, and weights from elsewhere keep their
names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from leak_atlas import BadInput, nearest
from leak_atlas.models.net import Dropout, Net, Parts

OUTPUT = "output"  # the name of the last part, whose features are the logits


class Own(Net):
    """A network of one part, `output`, with the weights' names of the user's module. `features`
    reads the modules named in `stages`, and the logits.

    Weights keep the module's memory layout, and inputs are contiguous, so that a `view` in its
    forward pass works as elsewhere. If a stage is called twice, the last output counts. The
    library's reproducible dropout replaces each `nn.Dropout`. Other random numbers follow torch's
    global generator. Raises BadInput if `stages` names no module, or one twice.
    """

    module: nn.Module
    classes: int
    stages: tuple[str, ...]
    description: str

    def __init__(
        self,
        module: nn.Module,
        classes: int,
        stages: tuple[str, ...],
        description: str,
    ) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise BadInput(f"{description} takes a torch.nn.Module, not {type(module).__name__}")
        _check(stages, module, description)
        _prepare(module)
        # Both share these tables: names, moves to a device and loaded weights.
        for table in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            object.__setattr__(self, table, getattr(module, table))
        # `nn.Module.__setattr__` refuses names that children of the module have.
        object.__setattr__(self, "module", module)
        object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "stages", stages)
        object.__setattr__(self, "description", description)

    def get_submodule(self, target: str) -> nn.Module:
        # torch's method reads attributes, and would find this class's `features` first.
        return self.module.get_submodule(target)

    def forward(self, x: Tensor) -> Tensor:
        # With one channel, `contiguous()` would leave the strides of channels_last.
        logits = self.module(x.clone(memory_format=torch.contiguous_format))
        needed = (len(x), self.classes)
        if not isinstance(logits, Tensor) or logits.shape != needed:
            shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise BadInput(
                f"{self.description} answers with {shape}, and logits {needed} are needed: one for "
                f"each of {self.classes} classes"
            )
        return logits

    def train(self, mode: bool = True) -> Own:
        super().train(mode)
        self.module.training = mode
        return self

    def names(self, parts: Parts = "stages") -> tuple[str, ...]:
        return *self.stages, OUTPUT

    def blocks(self) -> Iterator[tuple[str, nn.Module]]:
        yield OUTPUT, self

    def features(self, x: Tensor, parts: Parts = "stages") -> Iterator[tuple[str, Tensor]]:
        outputs: dict[str, Tensor] = {}

        def read(
            name: str,
            module: nn.Module,
            inputs: Any,
            output: Any,
        ) -> None:
            if isinstance(output, Tensor) and output.ndim > 1:
                outputs[name] = output.clone()  # the next module may change it in place

        with ExitStack() as hooks:
            for name in self.stages:
                hook = self.get_submodule(name).register_forward_hook(partial(read, name))
                hooks.enter_context(hook)
            outputs[OUTPUT] = self(x)
        missing = [f"'{name}'" for name in self.stages if name not in outputs]
        if missing:
            raise BadInput(
                f"{self.description} does not call {', '.join(missing)}, or gets no tensor (n, ...)"
                " there: take that out of stages"
            )
        for name in self.names():
            yield name, outputs[name]


def _check(
    stages: tuple[str, ...],
    module: nn.Module,
    description: str,
) -> None:
    """Raises BadInput if a name of a stage is that of no module, or comes twice."""
    known = [name for name, _ in module.named_modules() if name]
    for name in stages:
        if name not in known:
            raise BadInput(
                f"{description}.stages names '{name}', which is no module of it"
                f"{nearest(name, known)}"
            )
        if stages.count(name) > 1:
            raise BadInput(f"{description}.stages names '{name}' twice")


def _prepare(module: nn.Module) -> None:
    """Replaces the module's dropout by the reproducible one, and turns off changes in place, which
    give the same numbers but do not fit DP-SGD's hooks.
    """
    for owner in module.modules():
        if getattr(owner, "inplace", False):
            owner.inplace = False  # type: ignore[assignment]
        for name, child in owner.named_children():
            if type(child) is nn.Dropout:
                setattr(owner, name, Dropout(child.p))
