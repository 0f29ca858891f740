"""Which weights: an exact share of all, by their scores. numpy alone, for the explorers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput

BoolArray = NDArray[np.bool_]
Maps = Mapping[str, NDArray]  # an array for each tensor, of its shape


def highest(scores: Maps, share: float) -> dict[str, BoolArray]:
    """Masks of exactly round(share n) of all n weights, those with the largest scores.

    Of equal scores the first is taken, in the order of the mapping and of each array's elements.
    Raises BadInput if `share` is not between 0 and 1, and on scores that are not finite.
    """
    if not 0 <= share <= 1:
        raise BadInput(f"a share of the weights lies between 0 and 1, not at {share}")
    flat = _flat(scores)
    count = round(share * flat.size)
    if not count:
        return _shaped(np.zeros(flat.size, bool), scores)
    place = flat.size - count
    least = np.partition(flat, place)[place]
    chosen = flat > least
    missing = count - int(chosen.sum())
    chosen[np.flatnonzero(flat == least)[:missing]] = True
    return _shaped(chosen, scores)


def lowest(scores: Maps, share: float) -> dict[str, BoolArray]:
    """As `highest`, of the smallest scores."""
    return highest({name: -values for name, values in scores.items()}, share)


def ranks(scores: Maps) -> dict[str, NDArray[np.int32]]:
    """Each weight's place among all n, 0 for the largest score.

    The weights with places below round(share n) are the `highest` of a share: the scores are sorted
    once, and any share is a comparison. Raises BadInput on scores that are not finite.
    """
    flat = _flat(scores)
    place = np.empty(flat.size, np.int32)
    place[np.argsort(-flat, kind="stable")] = np.arange(flat.size)
    return _shaped(place, scores)


def _flat(scores: Maps) -> NDArray:
    """All scores, `(n,)`."""
    if not scores:
        return np.empty(0)
    flat = np.concatenate([values.ravel() for values in scores.values()])
    finite = np.isfinite(flat)
    if not finite.all():
        wrong = flat.size - int(finite.sum())
        raise BadInput(f"{wrong} of {flat.size} scores are no finite numbers")
    return flat


def _shaped(flat: NDArray, like: Maps) -> dict[str, NDArray]:
    """The pieces of an array `(n,)`, each with the name and the shape of its tensor."""
    shaped = {}
    start = 0
    for name, values in like.items():
        end = start + values.size
        shaped[name] = flat[start:end].reshape(values.shape)
        start = end
    return shaped
