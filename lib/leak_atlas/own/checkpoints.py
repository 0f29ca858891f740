"""Reads the tensors of a PyTorch checkpoint and writes them as a safetensors file, which an audit
reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leak_atlas import BadInput
from leak_atlas.engine import files
from leak_atlas.own.weights import SUFFIX

NESTED = "state_dict", "model_state_dict", "model", "net", "weights"  # names of the weights


def convert(checkpoint: Path, out: Path | None = None) -> str:
    """Writes `out` (by default the checkpoint's name, ending in .safetensors) and describes it.

    Nothing in the checkpoint is run. Raises BadInput if it holds more than tensors, or numbers that
    are not finite, or if `out` exists.
    """
    import torch
    from safetensors.torch import save

    out = out or checkpoint.with_suffix(SUFFIX)
    if out.exists():
        raise BadInput(f"{out} is there already; name another --out")
    file = files.require_file(checkpoint)
    try:
        loaded = torch.load(file, map_location="cpu", weights_only=True)
        weights = {name: tensor.clone().contiguous() for name, tensor in tensors(loaded).items()}
        blob = save(weights)
    except Exception as error:  # a damaged file fails anywhere in torch's reader
        raise BadInput(
            f"{file} holds more than tensors, or is damaged, and is not read; where the model is, "
            "write torch.save(net.state_dict(), ...)"
        ) from error
    infinite = [name for name in weights if not weights[name].double().isfinite().all()]
    if infinite:
        raise BadInput(
            f"'{infinite[0]}' of {file} holds NaN or infinite values, so no audit takes it: leave "
            "this tensor out, or save the model before its training diverges"
        )
    with files.atomic_write(out) as partial:
        partial.write_bytes(blob)
    numbers = sum(tensor.numel() for tensor in weights.values())
    return f"{out} is ready: {len(weights)} tensors, {numbers:,} numbers"


def tensors(loaded: Any) -> dict[str, Any]:
    """The tensors of a checkpoint by name: it is a state dict, or a dictionary that holds one.
    Raises KeyError, TypeError or AttributeError if it is neither.
    """
    for name in NESTED:
        if isinstance(loaded.get(name), dict):
            loaded = loaded[name]
    if not loaded:
        raise KeyError
    return {name: tensor.detach() for name, tensor in loaded.items()}
