"""Pruning, by weight or by filter: an exact number of zeros, which all later steps keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leak_atlas.engine import selection, store
from leak_atlas.engine.compute import Arrays, Of, Weights, compute, edit, text, weights_of
from leak_atlas.models import blank, skeleton
from leak_atlas.models.net import Tensors
from leak_atlas.recipe import Architecture, Prune, PruneFilters, Sparsity
from leak_atlas.recipe.steps import Filters, Part, Scope
from leak_atlas.rewinding import Masks, either

Scores = Mapping[str, NDArray]  # by state-dict name, of each tensor's shape
Units = Sequence[tuple[str, ...]]  # names of modules whose channels are pruned together
Pruned = tuple[dict[str, Tensor], dict[str, Tensor]]  # values, and masks of what is pruned

KINDS = {1: "norm", 2: "linear"}  # of tensors, by their number of dimensions; else "conv"
LARGEST = np.finfo(np.float32).max  # larger than any score


# --- single weights -----------------------------------------------------------------------------


def magnitudes(state: Tensors) -> dict[str, NDArray]:
    """|w| of every weight with two dimensions or more: no norms and no biases."""
    return {
        name: value.detach().abs().cpu().numpy()
        for name, value in state.items()
        if name.endswith("weight") and value.dim() > 1
    }


def prune(
    state: Tensors,
    sparsity: float,
    scores: Scores | None = None,
    scope: Scope = "global",
    largest: bool = False,
    before: Masks | None = None,
    part: Part = "all",
) -> Pruned:
    """The state with zeros for the weights with the smallest scores, and masks of the zeros.

    Scores are `scores`, by default magnitudes. Exactly round(sparsity n) weights are chosen: of all
    n scored weights together, or of each tensor's n (scope `layer`). `largest` chooses those with
    the largest scores instead. Weights that were pruned `before` are chosen first, and count.
    `part` limits the removal to some of the weights so chosen: those of norms, which have one
    dimension, or all others. Untouched tensors are not copied. Raises BadInput as
    `leak_atlas.engine.selection.highest`.
    """
    importance = dict(magnitudes(state) if scores is None else scores)
    first = LARGEST if largest else -LARGEST  # chosen before all else
    for name, gone in (before or {}).items():
        if name in importance:
            importance[name] = np.where(gone.numpy(), first, importance[name])
    chosen = _smallest(importance, sparsity, scope == "global", largest)
    pruned = {}
    for name, mask in chosen.items():
        if part == "all" or (mask.ndim == 1) == (part == "norms"):
            pruned[name] = torch.from_numpy(mask)
    return _zeroed(state, pruned), pruned


def _smallest(
    importance: Scores, sparsity: float, together: bool, largest: bool = False
) -> dict[str, NDArray]:
    """Masks of the smallest (or `largest`) values: of all together, or of each array."""
    choose = selection.highest if largest else selection.lowest
    if together:
        return choose(importance, sparsity)
    chosen: dict[str, NDArray] = {}
    for name, values in importance.items():
        chosen |= choose({name: values}, sparsity)
    return chosen


def _zeroed(state: Tensors, pruned: Masks) -> dict[str, Tensor]:
    zeroed = {name: state[name].masked_fill(mask, 0) for name, mask in pruned.items()}
    return {**state, **zeroed}


@edit.register(Prune)
def _(
    step: Prune,
    before: Weights,
    of: Of,
) -> Weights:
    if step.by is None:
        scores = magnitudes(before.values)
    else:
        scores = weights_of(store.read(step.by.key).arrays)
    importance = {
        name: score
        for name, score in scores.items()
        if (step.norms or score.ndim > 1) and (step.head or not name.startswith("head."))
    }
    values, pruned = prune(
        before.values,
        step.sparsity,
        importance,
        step.scope,
        step.largest,
        before.gone,
        step.part,
    )
    return Weights(values, before.frozen, either(before.gone, pruned))


# --- filters ------------------------------------------------------------------------------------


@cache
def units(
    model: Architecture,
    channels: int,
    classes: int,
    size: int,
) -> Units:
    """The modules whose channels are pruned together, in the order of the forward pass.

    A unit is a convolution and, if a norm reads its output, that norm. A norm that reads anything
    else, such as concatenated maps, is a unit by itself. Units are found in a forward pass on
    tensors without memory (see `leak_atlas.models`).
    """
    net = skeleton(model, channels, classes, size).eval()
    names = {module: name for name, module in net.named_modules()}
    unit_of: dict[int, tuple[str, ...]] = {}  # by the address of a unit's output
    kept: list[Tensor] = []  # outputs, which would share addresses if they were freed

    def look(
        module: nn.Module,
        inputs: tuple[Tensor, ...],
        output: Tensor,
    ) -> None:
        kept.append(output)
        before = id(inputs[0])
        if isinstance(module, nn.Conv2d) or before not in unit_of:
            unit_of[id(output)] = (names[module],)
        else:
            unit_of[before] = (*unit_of[before], names[module])

    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.BatchNorm2d | nn.GroupNorm):
            module.register_forward_hook(look)
    with torch.no_grad():
        net(blank(model, channels, size))
    return tuple(unit_of.values())


def prune_filters(
    state: Tensors,
    units: Units,
    sparsity: float,
    by: Filters = "l1",
    seed: int = 0,
    before: Masks | None = None,
) -> Pruned:
    """The state with zeros for whole filters, and masks of the zeros, as `PruneFilters` describes.

    `units` are what the function of this name gives; `seed` is that of `random`; filters that were
    pruned `before` are counted. By `scale` the filters of all layers are ranked together, by the
    other criteria those of each layer.
    """
    draws = np.random.default_rng(seed)
    unit_of = dict(_judged(state, units, by))
    importance = {}
    for name in unit_of:
        worth = _worth(state[name], by, draws)
        if before and name in before:
            pruned_before = before[name].flatten(1).all(dim=1) if by != "scale" else before[name]
            worth = np.where(pruned_before.numpy(), -1.0, worth)  # chosen before all else
        importance[name] = worth
    pruned = {}
    for name, mask in _smallest(importance, sparsity, by == "scale").items():
        for module in unit_of[name]:
            for tensor in (f"{module}.weight", f"{module}.bias"):
                if tensor in state:
                    pruned[tensor] = _whole_filters(mask, state[tensor])
    return _zeroed(state, pruned), pruned


def _judged(
    state: Tensors,
    units: Units,
    by: str,
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The tensor by which a unit's filters are judged, with the unit; without one it is skipped.

    A norm's scales by `scale`, a convolution's weights by the other criteria.
    """
    for unit in units:
        module = unit[-1] if by == "scale" else unit[0]
        name = f"{module}.weight"
        if (state[name].dim() == 1) == (by == "scale"):
            yield name, unit


def _worth(tensor: Tensor, by: str, draws: np.random.Generator) -> NDArray:
    """The worth of each filter of a tensor `(n, ...)`, `(n,)`: L2 or L1 norm, or a random draw."""
    if by == "random":
        return draws.random(len(tensor))
    filters = tensor.double().reshape(len(tensor), -1)
    return filters.norm(2 if by == "l2" else 1, dim=1).cpu().numpy()


def _whole_filters(mask: NDArray, like: Tensor) -> Tensor:
    """A mask of filters `(n,)` as one of a tensor `(n, ...)`."""
    further = [1] * (like.dim() - 1)
    column = torch.from_numpy(mask).view(-1, *further)
    return column.expand(like.shape).clone()


@edit.register(PruneFilters)
def _(
    step: PruneFilters,
    before: Weights,
    of: Of,
) -> Weights:
    training, data = step.training, step.training.data
    together = units(training.model, data.channels, data.classes, data.size)
    values, pruned = prune_filters(
        before.values,
        together,
        step.sparsity,
        step.by,
        training.seed,
        before.gone,
    )
    return Weights(values, before.frozen, either(before.gone, pruned))


# --- what is pruned -----------------------------------------------------------------------------


@compute.register(Sparsity)
def _(step: Sparsity, of: Of) -> Arrays:
    values, _, gone = of(step.of).weights
    names = [name for name in values if name.endswith("weight")]
    kinds = [KINDS.get(values[name].dim(), "conv") for name in names]
    sizes = np.array([values[name].numel() for name in names])
    removed = np.array([int(gone[name].sum()) if name in gone else 0 for name in names])
    filters = np.zeros(len(names), int)
    filters_gone = np.zeros(len(names), int)
    for place, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind == "conv":
            filters[place] = len(values[name])
            if name in gone:
                filters_gone[place] = gone[name].flatten(1).all(dim=1).sum()
    return {
        "names": text(names),
        "kinds": text(kinds),
        "weights": sizes,
        "gone": removed,
        "filters": filters,
        "filters_gone": filters_gone,
        "network": np.asarray(removed.sum() / sizes.sum()),
    }
