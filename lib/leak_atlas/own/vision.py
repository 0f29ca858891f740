"""torchvision beside a torch that it was not built for: who imports it gets one line.

pip may bring a torch without CUDA and a torchvision with CUDA, where the two come from different
indexes. Then `import torchvision` fails in torch's registry of operators, and its message says
nothing of the cause.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.metadata import version
from types import ModuleType
from typing import Any

from leak_atlas import BadInput, typed

NAME = "torchvision"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"


def remedy() -> str:
    """What is wrong, and the command that installs torch and torchvision from one index."""
    torch, vision = version("torch"), version(NAME)
    public = torch.partition("+")[0]
    index = f"--index-url {CPU_INDEX} " if torch.endswith("+cpu") else ""
    both = f"torch=={public} {NAME}=={vision.partition('+')[0]}"
    install = typed(f"pip install --force-reinstall --no-deps {index}{both}")
    cause = f"{NAME} {vision} was not built for torch {torch}"
    return f"{cause}: install both from one index, `{install}`"


class _Loader(SourceFileLoader):
    """Imports torchvision; BadInput with the remedy where its operators do not fit torch."""

    def exec_module(self, module: ModuleType) -> None:
        try:
            super().exec_module(module)
        except RuntimeError as error:
            if f"{NAME}::" not in str(error):
                raise
            # Half a module is left, which would fail in another way at the next import.
            for name in [name for name in sys.modules if name.startswith(f"{NAME}.")]:
                del sys.modules[name]
            raise BadInput(remedy()) from error


class _Finder(MetaPathFinder):
    """Finds torchvision as Python does, and has `_Loader` import it."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: Any = None,
    ) -> ModuleSpec | None:
        if fullname != NAME:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def explain_torchvision() -> None:
    """From now on an import of a torchvision that does not fit torch is one line of BadInput."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
