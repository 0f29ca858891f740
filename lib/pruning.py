"""Unstructured pruning: zeros of an exact number, which all that follows keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lib import selection, store
from lib.compute import Of, Weights, edit, weights_of
from lib.recipe import Prune
from lib.rewinding import both


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
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The state with zeros in place of the weights with the smallest `scores` (or magnitudes), and masks of the zeros.

    Exactly round(sparsity n): of all n scored weights together, or of each tensor's (`layer`). `largest` removes those
    with the largest scores instead. What was gone `before` is counted, and stays. Untouched tensors are not copied.
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
    values = {name: value.masked_fill(gone[name], 0.0) if name in gone else value for name, value in state.items()}
    return values, gone


@edit.register(Prune)
def _(state: Prune, before: Weights, of: Of) -> Weights:
    scores = weights_of(store.read(state.by.key).arrays) if state.by else None
    values, gone = prune(before.values, state.sparsity, scores, state.scope, state.largest, before.gone)
    return Weights(values, before.held, both(before.gone, gone))
