"""Score maps of weights, read from stored results: where selected weights sit, and how two scores agree (CWRF, Tab. 1,
Fig. 3). numpy and scipy alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lib import BadInput
from lib.audit import FloatArray

# Weights that a null looks at: ranks of ten million numbers, ten times over, would take minutes.
SAMPLE = 200_000

Maps = Mapping[str, NDArray]


def maps(result: Maps) -> dict[str, NDArray]:
    """The score maps of a `Score`'s result, by state-dict name, in the order of the network."""
    return {name: array for name, array in result.items() if "/" not in name}


def kinds(result: Maps) -> dict[str, str]:
    """The layer type of each scored tensor: conv, linear, norm, attention or embedding."""
    return dict(line.rsplit(" ", 1) for line in bytes(result["scored/kinds"]).decode().split("\n"))


def flat(score: Maps, groups: Mapping[str, str], kind: str = "all") -> FloatArray:
    """The scores `(n,)` of the weights of one layer type, or of all, tensor behind tensor."""
    chosen = [np.ravel(score[name]) for name in score if kind in ("all", groups[name])]
    if not chosen:
        raise BadInput(f"no weight is of type '{kind}': there are {', '.join(dict.fromkeys(groups.values()))}")
    return np.concatenate(chosen).astype(float)


def reached(score: Maps, signals: Maps, part: float = 0.2) -> tuple[float, float]:
    """How far a vulnerability score's updates did what they are for (CWRF, section 4.1), over their last `part`.

    Of the members' accuracy, the share that is kept; and of the way from the test samples' accuracy down to chance, the
    share that the reference samples' has gone, 1 where there was none to go. `signals` is what `Signals` gives of the
    state that was scored.
    """
    last = max(1, round(part * len(score["history/accuracy"])))
    members, others = (float(score[f"history/{name}"][-last:].mean()) for name in ("accuracy", "accuracy_reference"))
    start, chance = float(signals["accuracy_test"]), 1 / signals["logits"].shape[1]
    return members / float(signals["accuracy_member"]), (start - others) / (start - chance) if start > chance else 1.0


class Share(NamedTuple):
    """How much of something was selected."""

    of: str  # a tensor's name, or a layer type
    weights: int
    selected: int

    @property
    def share(self) -> float:
        """Of its own weights, how many are selected."""
        return self.selected / self.weights


def shares(chosen: Maps, groups: Mapping[str, str] | None = None) -> tuple[Share, ...]:
    """Of each tensor, or of each of `groups` (as `kinds` gives them), how many weights the masks `chosen` select."""
    counts: dict[str, list[int]] = {}
    for name, mask in chosen.items():
        count = counts.setdefault(groups[name] if groups else name, [0, 0])
        count[0] += mask.size
        count[1] += int(mask.sum())
    return tuple(Share(of, weights, selected) for of, (weights, selected) in counts.items())


def _shapes(maps: Maps) -> dict[str, tuple[int, ...]]:
    return {name: np.shape(array) for name, array in maps.items()}


def overlap(chosen: Maps, other: Maps) -> float:
    """Of the weights that the masks `chosen` select, how many `other` selects too; by chance, `other`'s own share.

    Raises BadInput where the masks do not belong together or `chosen` selects nothing.
    """
    if _shapes(chosen) != _shapes(other):
        raise BadInput("an overlap is of two selections from the same weights: masks differ in names or shapes")
    count = sum(int(mask.sum()) for mask in chosen.values())
    if not count:
        raise BadInput("no weight is selected, so none can be selected again: take a larger share")
    return sum(int((mask & other[name]).sum()) for name, mask in chosen.items()) / count


class Agreement(NamedTuple):
    """How two scores of the same weights go together; each correlation NaN where a score does not vary.

    `null` and `null_spearman` are the middle 95 % of what is left of `pearson` and `spearman` when the first score's
    gradients are shuffled inside each tensor (see `agreement`). `within` is Pearson's correlation inside a tensor, mean
    over the tensors in which both scores vary: how large a layer's scores are as a whole has no part in it.
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
    null_spearman: tuple[float, float]


def agreement(
    a: Maps, b: Maps, magnitude: Maps, groups: Mapping[str, str], *, shuffles: int = 10, seed: int = 0
) -> tuple[Agreement, ...]:
    """Correlations of two score maps over all weights and over those of each layer type (CWRF, Tab. 1).

    `magnitude` holds |w|. Taylor scores share that factor, which alone makes them correlate: so the partial
    correlations take it out, and the null keeps it, and the layers' own scales with it. There the gradient part a / |w|
    is shuffled among the weights of each tensor (of more than `SAMPLE` in a group, among a random `SAMPLE`) and
    multiplied with |w| again, `shuffles` times. Raises BadInput where the maps do not belong together.
    """
    if shuffles < 1:
        raise BadInput(f"a null takes one shuffle or more, not {shuffles}")
    if not _shapes(a) == _shapes(b) == _shapes(magnitude):
        raise BadInput("two scores and a magnitude of the same weights are needed: maps differ in names or shapes")
    total = sum(np.size(array) for array in a.values())
    found: list[Agreement] = []
    for kind in ("all", *dict.fromkeys(groups[name] for name in a)):
        x, y, w = (flat({name: each[name] for name in a}, groups, kind) for each in (a, b, magnitude))
        names = [name for name in a if kind in ("all", groups[name])]
        tensor = np.repeat(range(len(names)), [np.size(a[name]) for name in names])
        low, high = _null(x, y, w, tensor, shuffles, np.random.default_rng([seed, len(found)]))
        inside = [_pearson(*(np.ravel(each[name]).astype(float) for each in (a, b))) for name in names]
        within = float(np.mean([one for one in inside if not np.isnan(one)] or [np.nan]))
        ranks = [stats.rankdata(each) for each in (x, y, w)]
        nulls = [(float(least), float(most)) for least, most in zip(low, high, strict=True)]
        alike = _pearson(x, y), _pearson(*ranks[:2]), _partial(x, y, w), _partial(*ranks), within
        found.append(Agreement(kind, len(x), len(x) / total, *alike, *nulls))
    return tuple(found)


def _null(
    x: FloatArray, y: FloatArray, w: FloatArray, tensor: NDArray, shuffles: int, draws: np.random.Generator
) -> FloatArray:
    """The least and the largest of Pearson and Spearman (columns), in 95 % of the shuffles inside each `tensor`."""
    few = np.sort(draws.choice(len(x), SAMPLE, replace=False)) if len(x) > SAMPLE else np.arange(len(x))
    scale, other = w[few], y[few]
    gradient = np.divide(x[few], scale, out=np.zeros_like(scale), where=scale > 0)
    rank = stats.rankdata(other)
    shuffled = []
    for _ in range(shuffles):
        again = gradient[np.lexsort((draws.random(len(few)), tensor[few]))] * scale
        shuffled.append((_pearson(again, other), _pearson(stats.rankdata(again), rank)))
    return np.quantile(shuffled, [0.025, 0.975], axis=0)


def _pearson(x: FloatArray, y: FloatArray) -> float:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(stats.pearsonr(x, y).statistic)


def _partial(x: FloatArray, y: FloatArray, w: FloatArray) -> float:
    """The correlation of what a straight line through w leaves of x and of y."""
    xy, xw, yw = _pearson(x, y), _pearson(x, w), _pearson(y, w)
    left = (1 - xw**2) * (1 - yw**2)
    return (xy - xw * yw) / np.sqrt(left) if left > 1e-12 else float("nan")
