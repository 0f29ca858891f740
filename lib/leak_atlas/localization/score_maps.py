"""Scores of weights, read from stored results: where selected weights are, how two scores agree,
and how concentrated one is.

CWRF, Tab. 1 and Fig. 3. A *map* is an array of scores, one for each weight of a tensor. No torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from leak_atlas.audit import FloatArray, correlation
from leak_atlas.engine.selection import highest
from leak_atlas.localization import Arrays

Groups = Mapping[str, str]  # the layer type of each tensor


def maps(result: Arrays) -> Arrays:
    """The score maps of a `Score`'s result, by state-dict name, in the order of the network."""
    return {name: array for name, array in result.items() if "/" not in name}


def kinds(result: Arrays) -> dict[str, str]:
    """The layer type of each scored tensor: conv, linear, norm, attention or embedding."""
    lines = bytes(result["scored/kinds"]).decode().split("\n")
    return dict(line.rsplit(" ", 1) for line in lines)


def flat(
    score: Arrays,
    groups: Groups,
    kind: str = "all",
) -> FloatArray:
    """The scores `(n,)` of all weights of one layer type, or of all types, tensor by tensor."""
    chosen = [values.ravel() for name, values in score.items() if kind in ("all", groups[name])]
    return np.concatenate(chosen).astype(float)


# --- where selected weights are -----------------------------------------------------------------


class Share(NamedTuple):
    """How many weights of a tensor, or of a layer type, are selected."""

    of: str  # a tensor's name, or a layer type
    weights: int
    selected: int

    @property
    def share(self) -> float:
        """Of these weights, the share that is selected."""
        return self.selected / self.weights


def shares(chosen: Arrays, groups: Groups | None = None) -> tuple[Share, ...]:
    """How many weights of each tensor, or of each layer type, the masks `chosen` select.

    `groups` are the layer types, as `kinds` gives them.
    """
    weights: Counter[str] = Counter()
    selected: Counter[str] = Counter()
    for name, mask in chosen.items():
        group = groups[name] if groups else name
        weights[group] += mask.size
        selected[group] += int(mask.sum())
    return tuple(Share(group, weights[group], selected[group]) for group in weights)


def overlap(chosen: Arrays, other: Arrays) -> float:
    """The share of the weights that `chosen` selects which `other` selects too.

    By chance it is the share of all weights that `other` selects.
    """
    count = sum(int(mask.sum()) for mask in chosen.values())
    both = [mask & other[name] for name, mask in chosen.items()]
    return sum(int(mask.sum()) for mask in both) / count


# --- how two scores agree, and how concentrated one is ------------------------------------------


def correlations(a: Arrays, b: Arrays, groups: Groups) -> dict[str, float]:
    """Pearson's correlation of two scores over "all" weights and over those of each layer type.

    CWRF, Tab. 1. NaN where a score does not vary.
    """
    by_kind = {}
    for kind in ["all", *dict.fromkeys(groups[name] for name in a)]:
        x = flat(a, groups, kind)
        y = flat(b, groups, kind)
        by_kind[kind] = float(correlation(x, y, undefined=np.nan))
    return by_kind


def concentration(score: Arrays, share: float, by: Arrays | None = None) -> float:
    """The share of a score's sum that the `share` of the weights with the largest scores holds.

    `by` chooses the weights by another score. A noisy score looks concentrated if it chooses its
    own weights, so choose by a score from other batches.
    """
    chosen = highest(score if by is None else by, share)
    held = total = 0.0
    for name, values in score.items():
        held += float(values[chosen[name]].sum(dtype=float))
        total += float(values.sum(dtype=float))
    return held / total


def shuffled_gradients(score: Arrays, magnitude: Arrays, seed: int) -> Arrays:
    """A Taylor score whose gradients are shuffled among the weights of each tensor: a null.

    The score |g w| over the magnitude |w| is permuted, and multiplied with |w| again. Each weight's
    magnitude and each layer's scale stay.
    """
    draws = np.random.default_rng(seed)
    permuted = {}
    for name, values in score.items():
        size = magnitude[name]
        gradient = np.divide(values, size, out=np.zeros_like(size), where=size > 0)
        shuffled = draws.permutation(gradient.ravel())
        permuted[name] = shuffled.reshape(size.shape) * size
    return permuted
