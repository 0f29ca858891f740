"""How differently a network behaves on members and on non-members (SAMIA, section 4.1), from stored arrays (numpy)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from lib.attacks import signals as scores
from lib.audit import FloatArray
from lib.data.designs import Role

GAPS = ("confidence", "sensitivity", "generalisation")


def behaviour(signals: Mapping[str, NDArray], sensitivity: Mapping[str, NDArray]) -> dict[str, FloatArray]:
    """Of the members and non-members of a state, from its stored `Signals` and `Sensitivity`, `(n,)` each.

    `confidence` and `sensitivity` of the true class, `generalisation` (1 where the network is right), and `member` and
    `label`. The two steps need not know the same other samples.
    """
    pool = np.isin(signals["role"], (Role.MEMBER, Role.NONMEMBER))
    logits, label = signals["logits"][pool], signals["labels"][pool]
    place = np.searchsorted(sensitivity["index"], signals["index"][pool])
    return {
        "confidence": scores.confidence(logits, label),
        "sensitivity": sensitivity["sensitivity"][place, label].astype(np.float64),
        "generalisation": scores.correctness(logits, label),
        "member": signals["role"][pool] == Role.MEMBER,
        "label": label,
    }


def gap(values: ArrayLike, member: ArrayLike) -> float:
    """Mean of `values (n,)` over members minus mean over non-members (eq. 3, 4); NaN where a side is missing."""
    each, inside = np.asarray(values, np.float64), np.asarray(member, bool)
    return float(each[inside].mean() - each[~inside].mean()) if inside.any() and not inside.all() else float("nan")


def gap_at_accuracy(values: ArrayLike, member: ArrayLike, right: ArrayLike, share: float) -> float:
    """`gap` with non-members weighted so that `share` of them are `right (n,)`; all or none right stay so.

    Ours: how far the gaps of two networks differ beyond their accuracy.
    """
    each, inside, hit = np.asarray(values, np.float64), np.asarray(member, bool), np.asarray(right, bool)
    outside = hit[~inside]
    if not inside.any() or inside.all() or outside.all() or not outside.any():
        return gap(each, inside)
    weights = np.where(outside, share / outside.mean(), (1 - share) / (1 - outside.mean()))
    return float(each[inside].mean() - np.average(each[~inside], weights=weights))


def gap_by_class(values: ArrayLike, member: ArrayLike, label: ArrayLike, classes: int) -> FloatArray:
    """The same within each class, `(classes,)`."""
    each, inside, own = np.asarray(values, np.float64), np.asarray(member, bool), np.asarray(label)
    found = []
    for side in (inside, ~inside):
        count = np.bincount(own[side], minlength=classes)[:classes]
        total = np.bincount(own[side], each[side], classes)[:classes]
        found.append(np.divide(total, count, out=np.full(classes, np.nan), where=count > 0))
    return np.asarray(found[0] - found[1])


def shuffled_within(label: ArrayLike, member: ArrayLike, rng: np.random.Generator) -> NDArray:
    """Labels `(n,)` dealt out anew among members and among non-members: the chance control of `gap_by_class`."""
    dealt, inside = np.array(label), np.asarray(member, bool)
    for side in (inside, ~inside):
        dealt[side] = rng.permutation(dealt[side])
    return dealt


def ranked(signals: Mapping[str, NDArray]) -> float:
    """How unlike the ranked posteriors of a state's members are, from its stored `Signals`: PPB's penalty (6.2).

    The mean of KL(second || first), in nats, over pairs of a member of the first half and one of the second.
    """
    logits = signals["logits"][signals["role"] == Role.MEMBER].astype(np.float64)
    log_p = special.log_softmax(np.sort(logits, axis=1), axis=1)
    first, second = (log_p[part : part + len(log_p) // 2] for part in (0, len(log_p) // 2))
    return float((np.exp(second) * (second - first)).sum(axis=1).mean())


def partial_correlation(x: ArrayLike, y: ArrayLike, given: ArrayLike) -> FloatArray:
    """Pearson's correlation of `x (..., n)` and `y (..., n)` with what `given (..., n, k)` explains linearly taken out.

    Of each leading index apart, `(...)`. 0 where nothing is left of one of them, as of a constant.
    """
    both, known = np.stack([x, y], axis=-1).astype(np.float64), np.asarray(given, np.float64)
    known = np.concatenate([np.ones((*known.shape[:-1], 1)), known], axis=-1)
    small = max(known.shape[-2:]) * np.finfo(np.float64).eps  # as `lstsq` has it: columns may depend on each other
    left = both - known @ (np.linalg.pinv(known, small) @ both)
    size, whole = (np.linalg.norm(each, axis=-2) for each in (left, both))
    found = (size > 1e-9 * whole).all(axis=-1)
    product = left.prod(axis=-1).sum(axis=-1)
    return np.asarray(np.divide(product, size.prod(axis=-1), out=np.zeros(product.shape), where=found))[()]
