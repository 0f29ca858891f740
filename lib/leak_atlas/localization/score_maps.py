"""Scores of weights, read from stored results: where selected weights are, and how two scores
agree.

CWRF, Tab. 1 and Fig. 3. A *map* is an array of scores, one for each weight of a tensor. No torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from leak_atlas import BadInput
from leak_atlas.audit import FloatArray, IntArray, correlation
from leak_atlas.localization import Arrays

SHUFFLES = 10  # of which a null is made
SAMPLE = 200_000  # weights that a null is computed from, of more: it would take minutes

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
    """The scores `(n,)` of all weights of one layer type, or of all types, tensor by tensor.

    Raises BadInput where no weight is of that type.
    """
    names = _names(score, groups, kind)
    if not names:
        types = ", ".join(dict.fromkeys(groups.values()))
        raise BadInput(f"no weight is of type '{kind}': there are {types}")
    return _joined(score, names)


def _names(
    score: Arrays,
    groups: Groups,
    kind: str,
) -> list[str]:
    return [name for name in score if kind in ("all", groups[name])]


def _joined(score: Arrays, names: list[str]) -> FloatArray:
    return np.concatenate([score[name].ravel() for name in names]).astype(float)


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

    By chance it is the share of all weights that `other` selects. Raises BadInput where the masks
    are of different weights or `chosen` selects nothing.
    """
    if _shapes(chosen) != _shapes(other):
        raise BadInput(
            "an overlap is of two selections from the same weights: masks differ in names or shapes"
        )
    count = sum(int(mask.sum()) for mask in chosen.values())
    if not count:
        raise BadInput("no weight is selected, so none can be selected again: take a larger share")
    both = [mask & other[name] for name, mask in chosen.items()]
    return sum(int(mask.sum()) for mask in both) / count


def _shapes(maps: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in maps.items()}


# --- agreement of two scores --------------------------------------------------------------------


class Agreement(NamedTuple):
    """Correlations of two scores of the same weights; NaN where a score does not vary.

    `null` is the middle 95 % of `pearson` when the first score's gradients are shuffled within each
    tensor (see `agreement`). `within` is Pearson's correlation within a tensor, mean over the
    tensors in which both scores vary: differences between layers are no part of it.
    """

    kind: str  # layer type, or "all"
    weights: int
    share: float  # of all weights
    pearson: float
    spearman: float
    partial: float  # Pearson, given |w|
    partial_spearman: float  # of the ranks, given the rank of |w|
    within: float
    null: tuple[float, float]


def agreement(
    a: Arrays,
    b: Arrays,
    magnitude: Arrays,
    groups: Groups,
) -> tuple[Agreement, ...]:
    """Correlations of two score maps over all weights and over those of each layer type.

    CWRF, Tab. 1. `magnitude` holds |w|. Taylor scores share that factor, which alone makes them
    correlate: the partial correlations remove it, and the null keeps it, and with it the layers'
    own scales. In the null the gradient part a / |w| is shuffled among the weights of each tensor
    (of more than `SAMPLE` in a group, among a random `SAMPLE`) and multiplied with |w| again,
    `SHUFFLES` times. Raises BadInput where the maps are of different weights.
    """
    if not _shapes(a) == _shapes(b) == _shapes(magnitude):
        raise BadInput(
            "two scores and a magnitude of the same weights are needed: "
            "maps differ in names or shapes"
        )
    total = sum(array.size for array in a.values())
    agreements = []
    for number, kind in enumerate(["all", *dict.fromkeys(groups[name] for name in a)]):
        names = _names(a, groups, kind)
        x, y, w = (_joined(score, names) for score in (a, b, magnitude))
        ranks = [rankdata(values) for values in (x, y, w)]
        tensor = np.repeat(range(len(names)), [a[name].size for name in names])
        agreements.append(
            Agreement(
                kind,
                weights=len(x),
                share=len(x) / total,
                pearson=_pearson(x, y),
                spearman=_pearson(ranks[0], ranks[1]),
                partial=_pearson(x, y, w),
                partial_spearman=_pearson(*ranks),
                within=_mean_within(a, b, names),
                null=_null(x, y, w, tensor, number),
            )
        )
    return tuple(agreements)


def _pearson(
    x: FloatArray,
    y: FloatArray,
    given: FloatArray | None = None,
) -> float:
    """Pearson's correlation, or the partial one given a third quantity; NaN where undefined."""
    known = None if given is None else given[:, None]
    return float(correlation(x, y, known, undefined=np.nan))


def _mean_within(
    a: Arrays,
    b: Arrays,
    names: list[str],
) -> float:
    values = [_pearson(a[name].ravel(), b[name].ravel()) for name in names]
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else np.nan


def _null(
    x: FloatArray,
    y: FloatArray,
    w: FloatArray,
    tensor: IntArray,
    seed: int,
) -> tuple[float, float]:
    """The middle 95 % of Pearson's correlation under shuffles within each tensor."""
    draws = np.random.default_rng([0, seed])
    if len(x) > SAMPLE:
        few = np.sort(draws.choice(len(x), SAMPLE, replace=False))
        x, y, w, tensor = x[few], y[few], w[few], tensor[few]
    gradient = np.divide(x, w, out=np.zeros_like(w), where=w > 0)
    correlations = []
    for _ in range(SHUFFLES):
        order = np.lexsort((draws.random(len(x)), tensor))  # at random within each tensor
        correlations.append(_pearson(gradient[order] * w, y))
    low, high = np.quantile(correlations, [0.025, 0.975]).tolist()
    return low, high
