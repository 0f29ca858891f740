"""Imported weights: a safetensors file becomes a state of the store."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError, safe_open

from leak_atlas import BadInput, reason
from leak_atlas.engine import files
from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.models import Net, build
from leak_atlas.models.net import Tensors
from leak_atlas.recipe import ImportedModel

SHOWN = 3  # names of tensors in a message
PARALLEL = "module."  # what DataParallel writes before each name


def read(path: Path) -> Tensors:
    """The tensors of a safetensors file, by name. Raises BadInput if it is none."""
    try:
        with safe_open(files.require_file(path), framework="pt") as file:
            names = file.keys()  # it is no mapping
            return {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise BadInput(f"{path} is no safetensors file: {reason(error)}") from error


def misfits(
    given: Tensors,
    own: Tensors,
    description: str,
    name: object,
) -> list[str]:
    """Why tensors of the file `name` do not fit a network, described by `description`, with the
    state `own`: a sentence for each reason.
    """
    given = bare(given, own)
    missing = [key for key in own if key not in given]
    unknown = [key for key in given if key not in own]
    infinite = [key for key in given if not given[key].double().isfinite().all()]
    reasons = []
    if missing:
        reasons.append(f"{name} lacks {_listed(missing)}")
    if unknown:
        reasons.append(f"{description} has no place for {_listed(unknown)} of {name}")
    if infinite:
        reasons.append(f"{_listed(infinite)} of {name} holds values that are no finite numbers")
    for key, tensor in own.items():
        here = tuple(tensor.shape)
        there = tuple(given.get(key, tensor).shape)
        if here != there:
            reasons.append(f"'{key}' has shape {there}, and {description} has {here}")
            break  # the first says enough
    return reasons


def bare(given: Tensors, own: Tensors) -> Tensors:
    """The tensors without the prefix `module.` of DataParallel, if all names of the file have it
    and no name is one of the network's state `own`.
    """
    prefixed = all(name.startswith(PARALLEL) for name in given) and given.keys().isdisjoint(own)
    return {name.removeprefix(PARALLEL) if prefixed else name: given[name] for name in given}


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(map(repr, names[:SHOWN]))}{more}"


def network(step: ImportedModel) -> Net:
    """The network with the weights of the step's file, in evaluation mode. Raises BadInput if the
    file has changed.
    """
    path = Path(step.file)
    if files.sha256(path) != step.sha256:
        raise BadInput(
            f"{path} has changed since it was imported ({step.sha256[:12]}): run the cell that "
            "imports it again"
        )
    net = build(
        step.model,
        step.data.channels,
        step.data.classes,
        step.seed,
        step.data.size,
    )
    given = read(path)
    own = net.state_dict()
    reasons = misfits(given, own, step.model.description, path)
    if reasons:
        raise BadInput("; ".join(reasons))
    net.load_state_dict(bare(given, own))
    return net.eval()


@compute.register(ImportedModel)
def _(step: ImportedModel, of: Of) -> Arrays:
    if not step.file:
        description = step.sha256[:12]
        raise BadInput(
            f"the weights {description} are not in this store: import their file again "
            "(leak_atlas.own.weights.import_model)"
        )
    state = network(step).state_dict()
    return {name: value.contiguous().numpy() for name, value in state.items()}
