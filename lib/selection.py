"""Which weights: an exact share of all, by their scores. numpy alone: explorers select from stored score maps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lib import BadInput

BoolArray = NDArray[np.bool_]


def highest(scores: Mapping[str, NDArray], share: float) -> dict[str, BoolArray]:
    """Masks, of each tensor's shape, of exactly round(share n) of all n weights: those with the largest scores.

    Of equal scores the first is taken, in the order of the mapping and of each array's elements. Raises BadInput where
    `share` is not between 0 and 1, and on scores that are no finite numbers.
    """
    if not 0 <= share <= 1:
        raise BadInput(f"a share of the weights lies between 0 and 1, not at {share}")
    flat = _flat(scores)
    count = round(share * flat.size)
    chosen = np.zeros(flat.size, bool)
    if count:
        border = np.partition(flat, flat.size - count)[flat.size - count]
        np.greater(flat, border, out=chosen)
        chosen[np.flatnonzero(flat == border)[: count - int(chosen.sum())]] = True
    return _shaped(chosen, scores)


def lowest(scores: Mapping[str, NDArray], share: float) -> dict[str, BoolArray]:
    """As `highest`, of the smallest scores."""
    return highest({name: -np.asarray(values) for name, values in scores.items()}, share)


def ranks(scores: Mapping[str, NDArray]) -> dict[str, NDArray[np.int32]]:
    """Each weight's place among all n, 0 for the largest score: those below round(share n) are `highest` of a share.

    Sorted once, so that any share is a comparison. Raises BadInput on scores that are no finite numbers.
    """
    flat = _flat(scores)
    place = np.empty(flat.size, np.int32)
    place[np.argsort(-flat, kind="stable")] = np.arange(flat.size, dtype=np.int32)
    return _shaped(place, scores)


def _flat(scores: Mapping[str, NDArray]) -> NDArray:
    flat = np.concatenate([np.asarray(values).ravel() for values in scores.values()]) if scores else np.empty(0)
    if not np.isfinite(flat).all():
        raise BadInput(f"{int((~np.isfinite(flat)).sum())} of {flat.size} scores are no finite numbers")
    return flat


def _shaped(flat: NDArray, like: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """The pieces of an array, each with the name and the shape of its tensor."""
    parts = np.split(flat, np.cumsum([np.size(values) for values in like.values()])[:-1]) if like else []
    return {name: part.reshape(np.shape(like[name])) for name, part in zip(like, parts, strict=True)}
