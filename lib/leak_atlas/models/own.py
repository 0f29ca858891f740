"""A user's own module as a network of the library, with any forward pass and its own state dict.

Architectures of the library are chains of parts. Forward hooks read a user's module at the stages
that the user names. So its forward pass need not be a chain, and weights from elsewhere keep their
names.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from leak_atlas import BadInput, nearest, reason
from leak_atlas.models.net import Dropout, Net

OUTPUT = "output"  # the name of the last part, whose features are the logits
# Folders of code that is not the user's: installed packages, and this folder.
OTHERS = str(Path(torch.__file__).parents[1]), str(Path(__file__).parent)
SHOWN = 60  # characters of a line of code in a message


class Own(Net):
    """A network of one part, `output`, with the weights' names of the user's module. `features` reads
    the modules named in `stages`, and the logits.

    Weights keep the module's memory layout, and inputs are contiguous, so that a `view` in its
    forward pass works as elsewhere. If a stage is called twice, the last output counts. The
    library's reproducible dropout replaces each `nn.Dropout`. Other random numbers follow torch's
    global generator.
    """

    def __init__(
        self,
        module: nn.Module,
        stages: tuple[str, ...],
        description: str,
    ) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise BadInput(f"{description} takes a torch.nn.Module, not {type(module).__name__}")
        if wrong := unknown(stages, module):
            raise BadInput(f"{description}.{'; '.join(wrong)}")
        for owner in module.modules():
            if getattr(owner, "inplace", False):
                owner.inplace = False  # type: ignore[assignment]  # same numbers; DP-SGD's hooks need it
            for name, child in owner.named_children():
                if type(child) is nn.Dropout:
                    setattr(owner, name, Dropout(child.p))
        # Both share these tables: names, moves to a device and loaded weights.
        self._parameters = module._parameters
        self._buffers = module._buffers
        self._modules = module._modules  # type: ignore[assignment]
        self._non_persistent_buffers_set = module._non_persistent_buffers_set
        # `nn.Module.__setattr__` refuses names that children of the module have.
        for name, value in {"module": module, "stages": stages, "description": description}.items():
            object.__setattr__(self, name, value)

    module: nn.Module
    stages: tuple[str, ...]
    description: str

    def get_submodule(self, target: str) -> nn.Module:
        # torch's method reads attributes, and would find this class's `features` first.
        return self.module.get_submodule(target)

    def get_parameter(self, target: str) -> nn.Parameter:
        return self.module.get_parameter(target)

    def get_buffer(self, target: str) -> Tensor:
        return self.module.get_buffer(target)

    def forward(self, x: Tensor) -> Tensor:
        # With one channel, `contiguous()` would leave the strides of channels_last.
        logits = self.module(x.clone(memory_format=torch.contiguous_format))
        if not isinstance(logits, Tensor) or logits.ndim != 2:
            shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise BadInput(
                f"{self.description} answers with {shape}, and logits (n, classes) are needed"
            )
        return logits

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

    def features(
        self,
        x: Tensor,
        parts: Literal["stages", "blocks"] = "stages",
    ) -> Iterator[tuple[str, Tensor]]:
        outputs: dict[str, Tensor] = {}
        errors: dict[str, str] = {}

        def read(
            name: str,
            module: nn.Module,
            inputs: Any,
            output: Any,
        ) -> None:
            if isinstance(output, Tensor) and output.ndim > 1:
                outputs[name] = output.clone()  # the next module may change it in place
            else:
                errors[name] = (
                    f"'{name}' puts out no tensor (n, ...): name a module inside or behind it"
                )

        with ExitStack() as hooks:
            for name in self.stages:
                stage = self.get_submodule(name)
                hooks.enter_context(stage.register_forward_hook(partial(read, name)))
            outputs[OUTPUT] = self(x)
        for name in self.stages:
            if name not in outputs:
                errors.setdefault(name, f"it does not call '{name}'; take that out of stages")
        if errors:
            raise BadInput(f"{self.description}: {'; '.join(errors.values())}")
        for name in self.parts():
            yield name, outputs[name]


def unknown(stages: tuple[str, ...], module: nn.Module) -> list[str]:
    """The errors in the names of stages, a sentence for each name that is no module or is repeated."""
    known = dict(module.named_modules())
    children = [name for name, _ in module.named_children()]
    wrong = []
    for name in dict.fromkeys(stages):
        if not name or name not in known:
            near = get_close_matches(name, known, n=1)
            there = nearest(name, near or children)
            wrong.append(f"stages names '{name}', which is no module of it{there}")
        elif stages.count(name) > 1:
            wrong.append(f"stages names '{name}' twice")
    return wrong


def misfits(
    module: nn.Module,
    stages: tuple[str, ...],
    description: str,
    x: Tensor,
    classes: int,
) -> list[str]:
    """Why a module cannot be trained on samples like `x (n, ...)` or read at its stages, a sentence
    for each reason.

    The module is called in training mode and in evaluation mode, so its statistics may change.
    """
    errors = [f"{description}.{error}" for error in unknown(stages, module)]
    modules = dict(module.named_modules())
    valid = tuple(name for name in dict.fromkeys(stages) if name in modules)
    return errors + _call_errors(Own(module, valid, description), x, classes)


def _call_errors(net: Own, x: Tensor, classes: int) -> list[str]:
    """The errors of the module's calls in training mode and in evaluation mode, and of its reading."""
    try:
        with torch.no_grad():
            shapes = [tuple(net.train(mode)(x).shape) for mode in (True, False)]
            list(net.features(x))
    except BadInput as error:
        return [str(error)]
    except Exception as error:  # the user's code may raise anything
        return [
            f"{net.description} fails on samples {tuple(x.shape)}{_line(error)}: {reason(error)}"
        ]
    n = len(x)
    for shape in shapes:
        if shape != (n, classes):
            return [
                f"{net.description} gives logits {shape} of {n} samples, and the data have"
                f" {classes} classes"
            ]
    return []


def _line(error: Exception) -> str:
    """The line of the user's code that failed, as text."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(OTHERS) and frame.line:
            return f" in `{frame.line.strip()[:SHOWN]}`"
    return ""
