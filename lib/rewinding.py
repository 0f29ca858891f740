"""Edits of a trained model, as *(values, held)*: rewind the back of a network, hold its front (PPTP, Alg. 1); rewind
and hold single weights by Boolean masks (CWRF, eq. 5-7).

A state is a state dict whose names begin with the part they belong to (``stage4.0.conv1.weight``), in order of depth.
A place is a part ("stage4") or a block in one ("stage4.1"). `held` has a Boolean mask for each tensor that is held, and
the training re-imposes the held values after each step: masking gradients alone would hold nothing still under
momentum or weight decay, and BatchNorm's running statistics have no gradients at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

import torch
from torch import Tensor

from lib import BadInput, nearest, selection, store
from lib.compute import Of, Weights, edit, weights_of
from lib.recipe import Hold, HoldWeights, Rewind, RewindWeights

FRESH = 10**9  # added to a training's seed: an initialisation that no training has


def places(names: Iterable[str]) -> dict[str, int]:
    """Every part and block of a state dict with the position of its first entry, in order of depth."""
    found: dict[str, int] = {}
    for position, name in enumerate(names):
        head = name.split(".")
        found.setdefault(head[0], position)
        if len(head) > 2 and head[1].isdigit():
            found.setdefault(".".join(head[:2]), position)
    return found


def _first(state: Mapping[str, Tensor], place: str) -> int:
    known = places(state)
    if place not in known:
        raise BadInput(f"the network has no part '{place}'{nearest(place, list(known))}")
    return known[place]


def rewind(state: Mapping[str, Tensor], init: Mapping[str, Tensor], start: str) -> dict[str, Tensor]:
    """The state with `start` and all behind it as in `init`: weights and BatchNorm statistics alike.

    No tensor is copied. Raises BadInput on an unknown place and where the two are not states of one architecture.
    """
    first = _first(state, start)
    if [(name, value.shape) for name, value in state.items()] != [(name, value.shape) for name, value in init.items()]:
        raise BadInput("a network can only be rewound to an initialisation of the same architecture")
    return {name: init[name] if i >= first else value for i, (name, value) in enumerate(state.items())}


def hold(state: Mapping[str, Tensor], until: str, later: bool = False) -> dict[str, Tensor]:
    """Masks, all True, for every entry before `until`: weights and BatchNorm statistics alike; none for the rest.

    With `later` for every entry from `until` on instead. Raises BadInput on an unknown place.
    """
    first = _first(state, until)
    chosen = islice(state.items(), first, None) if later else islice(state.items(), first)
    return {name: torch.ones_like(value, dtype=torch.bool) for name, value in chosen}


def rewind_weights(
    state: Mapping[str, Tensor], init: Mapping[str, Tensor], chosen: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The state with the weights under the masks `chosen` as in `init`, bit for bit; all else as it is."""
    return {
        name: torch.where(chosen[name], init[name], value) if name in chosen else value for name, value in state.items()
    }


STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def hold_weights(state: Mapping[str, Tensor], chosen: Mapping[str, Tensor], rest: bool = False) -> dict[str, Tensor]:
    """Masks of the weights under `chosen`; with `rest`, of all weights and biases that are not. Statistics go on."""
    if not rest:
        return dict(chosen)
    return {
        name: ~chosen[name] if name in chosen else torch.ones_like(value, dtype=torch.bool)
        for name, value in state.items()
        if not name.endswith(STATISTICS)
    }


def both(held: Mapping[str, Tensor], more: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Masks of what either holds."""
    return dict(held) | {name: held[name] | mask if name in held else mask for name, mask in more.items()}


def _chosen(state: RewindWeights | HoldWeights) -> dict[str, Tensor]:
    chosen = selection.highest(weights_of(store.read(state.by.key).arrays), state.share)
    return {name: torch.as_tensor(mask) for name, mask in chosen.items()}


@edit.register(Rewind)
def _(state: Rewind, before: Weights, of: Of) -> Weights:
    if state.fresh:
        start = {name: value.cpu() for name, value in of(state).initial(FRESH).state_dict().items()}
    else:
        start = dict(of(state.initial()).weights.values)
    return before._replace(values=rewind(before.values, start, state.start))


@edit.register(RewindWeights)
def _(state: RewindWeights, before: Weights, of: Of) -> Weights:
    init = of(state.initial()).weights.values
    return before._replace(values=rewind_weights(before.values, init, _chosen(state)))


@edit.register(Hold)
def _(state: Hold, before: Weights, of: Of) -> Weights:
    return before._replace(held=both(before.held, hold(before.values, state.until, state.later)))


@edit.register(HoldWeights)
def _(state: HoldWeights, before: Weights, of: Of) -> Weights:
    more = hold_weights(before.values, _chosen(state), state.rest)
    return before._replace(held=both(before.held, more))
