"""Weights from outside: a safetensors file becomes a state of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from leak_atlas import BadInput, reason
from leak_atlas.engine import files
from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.models import Net, build
from leak_atlas.recipe import Brought

SHOWN = 3  # names of tensors in a message
PARALLEL = "module."  # what DataParallel writes before each name


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


def bare(given: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under the network's names `own`: without the `module.` that DataParallel writes
    before each.
    """
    prefixed = all(name.startswith(PARALLEL) for name in given)
    if not prefixed or any(name in own for name in given):
        return dict(given)
    return {name.removeprefix(PARALLEL): tensor for name, tensor in given.items()}


def misfits(
    given: Mapping[str, Tensor], own: Mapping[str, Tensor], told: str, name: object
) -> list[str]:
    """Why tensors of the file `name` do not fit a network `told` with the state `own`: a sentence
    for each reason.
    """
    given = bare(given, own)
    both = [each for each in own if each in given]
    lacks = [each for each in own if each not in given]
    odd = [each for each in given if each not in own]
    shapes = [each for each in both if given[each].shape != own[each].shape]
    infinite = [each for each in both if not given[each].isfinite().all()]
    wrong = []
    if lacks:
        wrong.append(f"{name} lacks {_listed(lacks)}")
    if odd:
        wrong.append(f"{told} has no place for {_listed(odd)} of {name}")
    for each in shapes[:SHOWN]:
        wrong.append(
            f"'{each}' has shape {tuple(given[each].shape)}, and {told} has {tuple(own[each].shape)}"
        )
    if more := shapes[SHOWN:]:
        wrong.append(f"{len(more)} more tensors have another shape")
    if infinite:
        wrong.append(f"{_listed(infinite)} of {name} holds values that are no finite numbers")
    return wrong


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(map(repr, names[:SHOWN]))}{more}"


def fitted(
    given: Mapping[str, Tensor], own: Mapping[str, Tensor], told: str, name: object
) -> dict[str, Tensor]:
    """The tensors of the file `name` in the order, and of the types, of a network's state `own`.

    BadInput, which names all reasons, where they do not fit the network, which is called `told`.
    """
    if wrong := misfits(given, own, told, name):
        raise BadInput("; ".join(wrong))
    given = bare(given, own)
    return {each: given[each].to(value.dtype) for each, value in own.items()}


def network(step: Brought) -> Net:
    """The network with the weights of the step's file, ready to be asked. BadInput where the file
    has changed.
    """
    path = Path(step.file)
    if digest(path) != step.sha256:
        raise BadInput(
            f"{path} has changed since it was brought ({step.sha256[:12]}): run the cell that brings it again"
        )
    net = build(step.model, step.data.channels, step.data.classes, step.seed, step.data.size)
    net.load_state_dict(fitted(read(path), net.state_dict(), step.model.told, path))
    return net.eval()


@compute.register(Brought)
def _(step: Brought, of: Of) -> Arrays:
    if not step.file:
        told = step.sha256[:12]
        raise BadInput(
            f"the weights {told} are not in this store: bring their file again (leak_atlas.own.weights.bring)"
        )
    return {name: value.contiguous().numpy() for name, value in network(step).state_dict().items()}
