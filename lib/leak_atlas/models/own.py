"""A user's own module as a network of the library: any forward pass, its state dict as it is.

Architectures of the library are chains of parts. A user's module is read by forward hooks at the
modules it names: so its forward need be no chain, and weights that were trained elsewhere fit by
their own names.
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

OUTPUT = "output"  # the last part of which features are read: the logits
# Folders of code that is not the user's: installed packages, and this one.
OTHERS = str(Path(torch.__file__).parents[1]), str(Path(__file__).parent)
SHOWN = 60  # characters of a line of code in a message


class Own(Net):
    """One part, `output`, that has the module's own names of weights; features are read at `stages`
    and of the logits.

    Weights keep the layout that the module gives them, and images come to it contiguous, so that a
    `view` in its forward does what it does elsewhere. Of a module that is called twice the last
    output is read. Each `nn.Dropout` is drawn as the library's are: repeatably. Randomness of
    another sort follows torch's global generator.
    """

    def __init__(self, module: nn.Module, stages: tuple[str, ...], told: str) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise BadInput(f"{told} takes a torch.nn.Module, not {type(module).__name__}")
        if wrong := unknown(stages, module):
            raise BadInput(f"{told}.{'; '.join(wrong)}")
        for owner in module.modules():
            if getattr(owner, "inplace", False):
                owner.inplace = False  # type: ignore[assignment]  # the same numbers; DP-SGD's hooks refuse to be written into
            for name, child in owner.named_children():
                if type(child) is nn.Dropout:
                    setattr(owner, name, Dropout(child.p))
        # The module's own tables: names, moves to a device and loaded weights are those of the
        # module.
        self._parameters = module._parameters
        self._buffers = module._buffers
        self._modules = module._modules  # type: ignore[assignment]
        self._non_persistent_buffers_set = module._non_persistent_buffers_set
        # Not by `nn.Module.__setattr__`, which refuses names that children of the module have.
        for name, value in {"module": module, "stages": stages, "told": told}.items():
            object.__setattr__(self, name, value)

    module: nn.Module
    stages: tuple[str, ...]
    told: str

    def get_submodule(self, target: str) -> nn.Module:
        # torch's own asks for attributes by name, and finds this class's `features` before the
        # module's.
        return self.module.get_submodule(target)

    def get_parameter(self, target: str) -> nn.Parameter:
        return self.module.get_parameter(target)

    def get_buffer(self, target: str) -> Tensor:
        return self.module.get_buffer(target)

    def forward(self, x: Tensor) -> Tensor:
        # Of one channel `contiguous()` would leave the strides of channels_last, after which the
        # next layer asks.
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

    def features(
        self, x: Tensor, parts: Literal["stages", "blocks"] = "stages"
    ) -> Iterator[tuple[str, Tensor]]:
        found: dict[str, Tensor] = {}
        wrong: dict[str, str] = {}

        def look(name: str, module: nn.Module, given: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.ndim > 1:
                found[name] = output.clone()  # what comes next may write into it
            else:
                wrong[name] = (
                    f"'{name}' puts out no tensor (n, ...): name a module inside or behind it"
                )

        with ExitStack() as hooks:
            for name in self.stages:
                hooks.enter_context(
                    self.get_submodule(name).register_forward_hook(partial(look, name))
                )
            found[OUTPUT] = self(x)
        for name in self.stages:
            if name not in found:
                wrong.setdefault(name, f"it does not call '{name}'; take that out of stages")
        if wrong:
            raise BadInput(f"{self.told}: {'; '.join(wrong.values())}")
        for name in self.parts():
            yield name, found[name]


def unknown(stages: tuple[str, ...], module: nn.Module) -> list[str]:
    """What is wrong with the names of stages, a sentence for each: it is no module, or stands there
    twice.
    """
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
    module: nn.Module, stages: tuple[str, ...], told: str, x: Tensor, classes: int
) -> list[str]:
    """What keeps a module from being trained on samples like `x (n, ...)` and read at its stages, a
    sentence for each.

    The module is called once as it is trained and once as it is asked, so that its statistics may
    change.
    """
    wrong = unknown(stages, module)
    net = Own(
        module,
        tuple(name for name in dict.fromkeys(stages) if name in dict(module.named_modules())),
        told,
    )
    return [f"{told}.{each}" for each in wrong] + _called(net, x, classes)


def _called(net: Own, x: Tensor, classes: int) -> list[str]:
    """What goes wrong where the module is called, as it is trained and as it is asked, and where it
    is read.
    """
    expected = (len(x), classes)
    try:
        with torch.no_grad():
            shapes = [tuple(net.train(mode)(x).shape) for mode in (True, False)]
            odd = next((shape for shape in shapes if shape != expected), None)
            list(net.features(x))
    except BadInput as error:
        return [str(error)]
    except Exception as error:  # the user's code may raise anything
        return [f"{net.told} fails on samples {tuple(x.shape)}{_line(error)}: {reason(error)}"]
    return (
        [f"{net.told} gives logits {odd} of {len(x)} samples, and the data have {classes} classes"]
        if odd
        else []
    )


def _line(error: Exception) -> str:
    """The line of the user's code that failed, as text."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(OTHERS) and frame.line:
            return f" in `{frame.line.strip()[:SHOWN]}`"
    return ""
