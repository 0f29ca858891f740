"""Edits of a trained model: rewind and freeze parts of it, or single weights.

PPTP rewinds the back of a network and freezes its front (Alg. 1); CWRF rewinds and freezes single
weights by Boolean masks (eq. 5-7).

A state is a state dict whose names begin with the part they belong to (``stage4.0.conv1.weight``),
in order of depth. A place is a part ("stage4") or a block in one ("stage4.1"). `frozen` has a
Boolean mask for each tensor that is frozen, and the training restores the frozen values after each
step. Masking gradients is not enough: weight decay would still change the weights, and BatchNorm's
running statistics have no gradients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from leak_atlas import BadInput, nearest
from leak_atlas.engine import selection, store
from leak_atlas.engine.compute import Of, Weights, edit, weights_of
from leak_atlas.models.net import Tensors
from leak_atlas.recipe import Freeze, FreezeWeights, Rewind, RewindWeights

Masks = Mapping[str, Tensor]  # Boolean, of the shape of the tensor of that name

FRESH = 10**9  # added to a training's seed: an initialisation that no training has
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


# --- parts and blocks ---------------------------------------------------------------------------


def places(names: Iterable[str]) -> dict[str, int]:
    """Every part and block of a state dict with the position of its first entry, by depth."""
    found: dict[str, int] = {}
    for position, name in enumerate(names):
        part, *inner = name.split(".")
        found.setdefault(part, position)
        if len(inner) > 1 and inner[0].isdigit():
            found.setdefault(f"{part}.{inner[0]}", position)
    return found


def _first(state: Tensors, place: str) -> int:
    """The position of a place's first entry. Raises BadInput if there is no such place."""
    known = places(state)
    if place not in known:
        raise BadInput(f"the network has no part '{place}'{nearest(place, list(known))}")
    return known[place]


def rewind(
    state: Tensors,
    init: Tensors,
    start: str,
) -> dict[str, Tensor]:
    """The state with the entries from `start` on as in `init`, a state of the same architecture:
    weights and statistics alike.

    No tensor is copied. Raises BadInput on an unknown place.
    """
    names = list(state)[_first(state, start) :]
    return {**state, **{name: init[name] for name in names}}


def freeze(
    state: Tensors,
    until: str,
    later: bool = False,
) -> dict[str, Tensor]:
    """Masks, all True, for every entry before `until`: weights and statistics alike.

    With `later` for every entry from `until` on instead. Raises BadInput on an unknown place.
    """
    first = _first(state, until)
    names = list(state)
    chosen = names[first:] if later else names[:first]
    return {name: torch.ones_like(state[name], dtype=torch.bool) for name in chosen}


@edit.register(Rewind)
def _(
    step: Rewind,
    before: Weights,
    of: Of,
) -> Weights:
    if step.fresh:
        net = of(step).initial(FRESH)
        start = {name: value.cpu() for name, value in net.state_dict().items()}
    else:
        start = dict(of(step.initial()).weights.values)
    return before._replace(values=rewind(before.values, start, step.start))


@edit.register(Freeze)
def _(
    step: Freeze,
    before: Weights,
    of: Of,
) -> Weights:
    frozen = freeze(before.values, step.until, step.later)
    return before._replace(frozen=either(before.frozen, frozen))


# --- single weights -----------------------------------------------------------------------------


def rewind_weights(
    state: Tensors,
    init: Tensors,
    chosen: Masks,
) -> dict[str, Tensor]:
    """The state with the weights under the masks `chosen` as in `init`, bit for bit."""
    rewound = {name: torch.where(mask, init[name], state[name]) for name, mask in chosen.items()}
    return {**state, **rewound}


def freeze_weights(
    state: Tensors,
    chosen: Masks,
    rest: bool = False,
) -> dict[str, Tensor]:
    """Masks of the weights under `chosen`; with `rest`, of all weights and biases that are not.

    BatchNorm's statistics are not frozen.
    """
    if not rest:
        return dict(chosen)
    frozen = {}
    for name, value in state.items():
        if name in chosen:
            frozen[name] = ~chosen[name]
        elif not name.endswith(STATISTICS):
            frozen[name] = torch.ones_like(value, dtype=torch.bool)
    return frozen


def either(one: Masks, other: Masks) -> dict[str, Tensor]:
    """Masks of what is in one of two sets of masks, or in both."""
    joined = dict(one)
    for name, mask in other.items():
        joined[name] = joined[name] | mask if name in joined else mask
    return joined


def _weights_to_edit(step: RewindWeights | FreezeWeights) -> dict[str, Tensor]:
    scores = weights_of(store.read(step.by.key).arrays)
    chosen = selection.highest(scores, step.share)
    return {name: torch.as_tensor(mask) for name, mask in chosen.items()}


@edit.register(RewindWeights)
def _(
    step: RewindWeights,
    before: Weights,
    of: Of,
) -> Weights:
    init = of(step.initial()).weights.values
    return before._replace(values=rewind_weights(before.values, init, _weights_to_edit(step)))


@edit.register(FreezeWeights)
def _(
    step: FreezeWeights,
    before: Weights,
    of: Of,
) -> Weights:
    frozen = freeze_weights(before.values, _weights_to_edit(step), step.rest)
    return before._replace(frozen=either(before.frozen, frozen))
