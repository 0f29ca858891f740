"""Weights from outside: a safetensors file becomes a state of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from lib import BadInput, files, reason
from lib.compute import Arrays, Of, compute
from lib.models import skeleton
from lib.recipe import Architecture, Brought, Data

SHOWN = 3  # names of tensors in a message


def digest(path: Path) -> str:
    """SHA-256 of a file, in hex. BadInput where it cannot be read."""
    try:
        with open(files.regular(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name. BadInput where it is none."""
    try:
        with safe_open(files.regular(path), framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
    except (SafetensorError, OSError) as error:
        raise BadInput(f"{path} is no safetensors file: {reason(error)}") from error


def fitted(given: Mapping[str, Tensor], model: Architecture, data: Data, name: object) -> dict[str, Tensor]:
    """The tensors of `name` in the order, and of the types, of the network's own. BadInput where they do not fit it."""
    own = skeleton(model, data.channels, data.classes, data.size).state_dict()
    lacks, odd = [each for each in own if each not in given], [each for each in given if each not in own]
    for what, names in (("lacks", lacks), ("has no place for", odd)):
        if names:
            who = name if what == "lacks" else model.told
            more = f" and {len(names) - SHOWN} more" * (len(names) > SHOWN)
            raise BadInput(
                f"{name} does not fit {model.told}: {who} {what} {', '.join(map(repr, names[:SHOWN]))}{more}"
            )
    for each, value in own.items():
        if given[each].shape != value.shape:
            shapes = f"{tuple(given[each].shape)}, and {model.told} has {tuple(value.shape)}"
            raise BadInput(f"{name} does not fit {model.told}: '{each}' has shape {shapes}")
        if not given[each].isfinite().all():
            raise BadInput(f"{name}: '{each}' holds values that are no finite numbers")
    return {each: given[each].to(value.dtype) for each, value in own.items()}


@compute.register(Brought)
def _(step: Brought, of: Of) -> Arrays:
    told = step.sha256[:12]
    if not step.file:
        raise BadInput(f"the weights {told} are not in this store: bring their file again (lib.own.weights.bring)")
    path = Path(step.file)
    if digest(path) != step.sha256:
        raise BadInput(f"{path} has changed since it was brought ({told}): run the cell that brings it again")
    found = fitted(read(path), step.model, step.data, path)
    return {name: value.contiguous().numpy() for name, value in found.items()}
