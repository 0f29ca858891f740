"""What each kind of recipe does: generic functions. A kind's own function registers itself, beside
its science:

@compute.register(Distance)
def _(step: Distance, of: Of) -> Arrays: ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leak_atlas.engine.digests import generic
from leak_atlas.recipe import Edit, State, Step

if TYPE_CHECKING:
    from torch import Tensor

    from leak_atlas.models.subject import Subject

Arrays = dict[str, NDArray]
Of = Callable[[State], "Subject"]  # a state at hand: its network, its data, its roles


class Weights(NamedTuple):
    """A state's values by name, what is frozen in the training that follows, and what is pruned in
    all that follows.

    `frozen` and `gone` have a Boolean mask for each tensor of which something is.
    """

    values: Mapping[str, Tensor]
    frozen: Mapping[str, Tensor]
    gone: Mapping[str, Tensor]


@generic
def compute(step: Step, of: Of) -> Arrays:
    """The arrays of a step whose parents are stored; `of` gives the states that it looks at."""
    raise TypeError(f"nothing says what a {type(step).__name__} computes")


@generic
def edit(state: Edit, before: Weights, of: Of) -> Weights:
    """The weights of an edited state, from those of its parent."""
    raise TypeError(f"nothing says what a {type(state).__name__} changes")


def weights_of(arrays: Arrays) -> Arrays:
    """Of an entry's arrays those that belong to weights; the others' names have a slash."""
    return {name: array for name, array in arrays.items() if "/" not in name}


def text(words: list[str] | tuple[str, ...]) -> NDArray:
    """Words as an array of bytes: safetensors holds numbers."""
    return np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
