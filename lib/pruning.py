"""Pruning, by weight or by filter: zeros of an exact number, which all that follows keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lib import selection, store
from lib.compute import Arrays, Of, Weights, compute, edit, text, weights_of
from lib.models import blank, skeleton
from lib.recipe import Architecture, Prune, PruneFilters, Sparsity
from lib.rewinding import both

Units = Sequence[tuple[str, ...]]


def magnitudes(state: Mapping[str, Tensor]) -> dict[str, NDArray]:
    """|w| of every weight of two dimensions or more: convolutions, linear maps, embeddings; no norms, no biases."""
    found = {name: value for name, value in state.items() if name.endswith("weight") and value.dim() > 1}
    return {name: value.detach().abs().cpu().numpy() for name, value in found.items()}


def prune(
    state: Mapping[str, Tensor],
    sparsity: float,
    scores: Mapping[str, NDArray] | None = None,
    scope: Literal["global", "layer"] = "global",
    largest: bool = False,
    before: Mapping[str, Tensor] | None = None,
    part: Literal["all", "norms", "others"] = "all",
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The state with zeros in place of the weights with the smallest `scores` (or magnitudes), and masks of the zeros.

    Exactly round(sparsity n): of all n scored weights together, or of each tensor's (`layer`). `largest` removes those
    with the largest scores instead. What was gone `before` is counted, and stays. Of those that would go, a `part` may
    be all that goes: the weights of norms, which have one dimension, or all others. Untouched tensors are not copied.
    Raises BadInput as `lib.selection.highest`.
    """
    importance = dict(magnitudes(state) if scores is None else scores)
    choose = selection.highest if largest else selection.lowest
    ends = [end(values) for values in importance.values() if values.size for end in (np.min, np.max)]
    first = max(ends) + 1 if largest else min(ends) - 1  # what is gone goes first
    for name, mask in (before or {}).items():
        if name in importance:
            importance[name] = np.where(mask.numpy(), first, importance[name])
    groups = [importance] if scope == "global" else [{name: values} for name, values in importance.items()]
    gone = {name: torch.from_numpy(mask) for group in groups for name, mask in choose(group, sparsity).items()}
    if part != "all":
        gone = {name: mask for name, mask in gone.items() if (mask.dim() == 1) == (part == "norms")}
    return _zeroed(state, gone), gone


def _zeroed(state: Mapping[str, Tensor], gone: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.masked_fill(gone[name], 0.0) if name in gone else value for name, value in state.items()}


@edit.register(Prune)
def _(state: Prune, before: Weights, of: Of) -> Weights:
    scores = weights_of(store.read(state.by.key).arrays) if state.by else None
    if scores and not state.norms:
        scores = {name: score for name, score in scores.items() if score.ndim > 1}
    if not state.head:
        scores = magnitudes(before.values) if scores is None else scores
        scores = {name: score for name, score in scores.items() if not name.startswith("head.")}
    values, gone = prune(before.values, state.sparsity, scores, state.scope, state.largest, before.gone, state.part)
    return Weights(values, before.held, both(before.gone, gone))


@cache
def units(model: Architecture, channels: int, classes: int, size: int) -> Units:
    """The modules whose channels are pruned together, by name, in the order of the forward pass (see `lib.models`).

    Of each convolution its name, followed by that of the norm that reads its output, if one does; of a norm that reads
    something else, as joined maps, its name alone. The network itself is asked, without memory.
    """
    net = skeleton(model, channels, classes, size).eval()
    names = {module: name for name, module in net.named_modules()}
    found: dict[int, tuple[str, ...]] = {}
    maps: list[Tensor] = []  # which would share addresses if they went

    def look(module: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        joins = isinstance(module, nn.BatchNorm2d | nn.GroupNorm) and id(given[0]) in found
        maps.append(output)
        found[id(given[0] if joins else output)] = (*(found[id(given[0])] if joins else ()), names[module])

    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.BatchNorm2d | nn.GroupNorm):
            module.register_forward_hook(look)
    with torch.no_grad():
        net(blank(model, channels, size))
    return tuple(found.values())


def prune_filters(
    state: Mapping[str, Tensor],
    units: Units,
    sparsity: float,
    by: Literal["l1", "l2", "scale", "random"] = "l1",
    seed: int = 0,
    before: Mapping[str, Tensor] | None = None,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The state with zeros in place of whole filters, and masks of the zeros: exactly as `PruneFilters` says.

    `units` as the function of this name gives them; `seed` is that of `random`; filters that were gone `before` count.
    """
    by_norm, draws = by == "scale", np.random.default_rng(seed)
    judged = {f"{unit[-1 if by_norm else 0]}.weight": unit for unit in units}
    judged = {name: unit for name, unit in judged.items() if (state[name].dim() == 1) == by_norm}
    importance = {}
    for name in judged:
        rows = state[name].double().reshape(len(state[name]), -1)
        worth = draws.random(len(rows)) if by == "random" else rows.norm(2 if by == "l2" else 1, dim=1).cpu().numpy()
        dead = before[name].reshape(rows.shape).all(dim=1).numpy() if before and name in before else False
        importance[name] = np.where(dead, -1.0, worth)  # what is gone goes first
    groups = [importance] if by_norm else [{name: worth} for name, worth in importance.items()]
    gone = {}
    for name, which in (pair for group in groups for pair in selection.lowest(group, sparsity).items()):
        for own in (f"{module}.{part}" for module in judged[name] for part in ("weight", "bias")):
            if own in state:
                column = torch.from_numpy(which).view(-1, *[1] * (state[own].dim() - 1))
                gone[own] = column.expand(state[own].shape).clone()
    return _zeroed(state, gone), gone


@edit.register(PruneFilters)
def _(state: PruneFilters, before: Weights, of: Of) -> Weights:
    own = state.training
    parts = units(own.model, own.data.channels, own.data.classes, own.data.size)
    values, gone = prune_filters(before.values, parts, state.sparsity, state.by, own.seed, before.gone)
    return Weights(values, before.held, both(before.gone, gone))


@compute.register(Sparsity)
def _(step: Sparsity, of: Of) -> Arrays:
    found = of(step.of).weights
    tensors = {name: value for name, value in found.values.items() if name.endswith("weight")}
    masks = {name: found.gone.get(name, torch.zeros_like(value, dtype=torch.bool)) for name, value in tensors.items()}
    kinds = [{1: "norm", 2: "linear"}.get(value.dim(), "conv") for value in tensors.values()]
    filters = {name: mask.flatten(1).all(dim=1).numpy() for name, mask in masks.items() if mask.dim() > 2}
    weights = np.array([value.numel() for value in tensors.values()])
    gone = np.array([int(mask.sum()) for mask in masks.values()])
    conv = np.array(kinds) == "conv"
    return {
        "names": text(list(tensors)),
        "kinds": text(kinds),
        "weights": weights,
        "gone": gone,
        "filters": np.array([len(filters.get(name, ())) for name in tensors]),
        "filters_gone": np.array([int(np.sum(filters.get(name, 0))) for name in tensors]),
        "convolutions": np.asarray(gone[conv].sum() / max(1, weights[conv].sum())),
        "network": np.asarray(gone.sum() / weights.sum()),
    } | {f"filter/{name}": which for name, which in filters.items()}
