"""torchvision, imported where its compiled part cannot load: what our gather and our readers are
compared with.

The usual wheels of torchvision are built against CUDA. Beside a torch without CUDA its compiled
part cannot load: two operators then miss their schemas and the whole import fails, although data
sets and transforms need neither.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

_LIBRARY: Any = None  # torch forgets the declared schemas when this object goes
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def torchvision() -> Any:
    """The module torchvision, imported at the first call; where it works by itself nothing is
    changed.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
    global _LIBRARY
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]  # half imported
    if _LIBRARY is None:
        from torch.library import Library

        _LIBRARY = Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            _LIBRARY.define(operator + _SCHEMA)
    return importlib.import_module("torchvision")
