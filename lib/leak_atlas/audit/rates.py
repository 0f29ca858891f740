"""Scores to rates: AUC, accuracy, TPR at an FPR, and what few non-members can say of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int_]

__all__ = [
    "BoolArray",
    "FloatArray",
    "IntArray",
    "auc",
    "balanced_accuracy",
    "cutoff_at_fpr",
    "is_resolved",
    "resolution",
    "tpr",
    "tpr_label",
]


def checked(scores: ArrayLike, member: ArrayLike) -> tuple[FloatArray, BoolArray, tuple[int, ...]]:
    """Scores and membership as matrices ``(R, N)``, and the leading shape to give back."""
    values = np.asarray(scores, dtype=np.float64)
    inside = np.asarray(member)
    if inside.dtype != np.bool_:
        raise ValueError(
            f"member must be Boolean, not {inside.dtype}: labels and scores are easily swapped"
        )
    fits = inside.shape in (values.shape, values.shape[-1:])
    if values.ndim == 0 or not fits:
        raise ValueError(
            f"scores {values.shape} need member of shape (N,) or their own shape, not {inside.shape}"
        )
    if np.isnan(values).any():
        raise ValueError("scores hold NaN; drop the samples that the attack did not score")
    size = values.shape[-1]
    members = inside.sum(axis=-1)
    if np.any(members == 0) or np.any(members == size):
        raise ValueError("every score vector needs at least one member and one non-member")
    rows = np.broadcast_to(inside, values.shape).reshape(-1, size)
    return values.reshape(-1, size), rows, values.shape[:-1]


def single(scores: ArrayLike, member: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The sorted scores of members and of non-members, of a single vector."""
    rows, inside, lead = checked(scores, member)
    if lead:
        raise ValueError(f"expected one score vector (N,), got leading shape {lead}")
    members = np.sort(rows[inside])
    others = np.sort(rows[~inside])
    return members, others


def each(
    scores: ArrayLike, member: ArrayLike, measure: Callable[[FloatArray, FloatArray], float]
) -> FloatArray:
    """``measure(scores of members, scores of non-members)`` of every vector, ``(...)``."""
    rows, inside, lead = checked(scores, member)
    values = np.empty(len(rows))
    for place, (row, own) in enumerate(zip(rows, inside, strict=True)):
        values[place] = measure(row[own], row[~own])
    return values.reshape(lead)[()]


def mann_whitney(inside: FloatArray, outside: FloatArray) -> float:
    """AUC of the scores of members and of non-members; a tie counts one half."""
    inside, outside = np.sort(inside), np.sort(outside)  # sorted queries are found more quickly
    below = np.searchsorted(outside, inside, side="left").sum()
    not_above = np.searchsorted(outside, inside, side="right").sum()
    return float((below + not_above) / (2 * inside.size * outside.size))


def best_accuracy(inside: FloatArray, outside: FloatArray) -> float:
    """The largest (TPR + TNR) / 2 over all thresholds."""
    # The best threshold lies on a member's score: lowering it further admits non-members only. Of
    # tied members the first has the largest TPR, so the maximum needs no care for ties. At the
    # lowest of these thresholds the TPR is 1, so the result is at least one half.
    inside, outside = np.sort(inside), np.sort(outside)
    tprs = np.arange(inside.size, 0, -1) / inside.size
    tnrs = np.searchsorted(outside, inside, side="left") / outside.size
    return float(np.max(tprs + tnrs)) / 2


def auc(scores: ArrayLike, member: ArrayLike) -> FloatArray:
    """Area under the ROC curve, ties counted one half (Mann-Whitney with mid-ranks).

    ``scores (..., N)``, ``member (N,)`` or ``(..., N)``; returns ``(...)``. Raises ValueError on
    NaN, on a membership that is not Boolean and where one class is empty.
    """
    return each(scores, member, mann_whitney)


def balanced_accuracy(scores: ArrayLike, member: ArrayLike) -> FloatArray:
    """(TPR + TNR) / 2 at the best threshold for these very scores: an oracle's.

    It never falls below 0.5 and rises above it by chance alone, about 0.31 * sqrt(1/members +
    1/non-members) in a null. Shapes and errors as `auc`.
    """
    return each(scores, member, best_accuracy)


def false_positives(fpr: float, non_members: int) -> int:
    """The largest whole number of false positives whose rate is at most ``fpr``."""
    if not 0 <= fpr <= 1:
        raise ValueError(f"an FPR lies in [0, 1], not {fpr}")
    # fpr * n alone would turn 0.29 * 100 into 28.
    allowed = math.floor(fpr * non_members + 1e-6)
    return allowed - 1 if allowed / non_members > fpr else allowed


def cutoff_at_fpr(outside: ArrayLike, fpr: float) -> FloatArray:
    """The lowest cutoff that at most a share ``fpr`` of non-members exceeds, of their scores
    ``(..., m)``: ``(...)``.

    Non-members that are tied with the first one that may not pass do not pass either. -inf where
    all may pass, as where there is none. Raises ValueError if ``fpr`` is not between 0 and 1.
    """
    scores = np.asarray(outside, np.float64)
    number = scores.shape[-1]
    allowed = false_positives(fpr, number) if number else 0
    if allowed >= number:
        return np.full(scores.shape[:-1], -np.inf)[()]
    place = number - 1 - allowed  # of the largest score that may not pass
    return np.partition(scores, place, axis=-1)[..., place]


def passing(inside: FloatArray, outside: FloatArray, fpr: float) -> int:
    """How many members pass at an FPR, of the scores of members and of non-members."""
    if false_positives(fpr, outside.size) == outside.size:
        return inside.size
    return int(np.count_nonzero(inside > cutoff_at_fpr(outside, fpr)))


def tpr(scores: ArrayLike, member: ArrayLike, fpr: float) -> FloatArray:
    """TPR at the largest attainable FPR that does not exceed ``fpr``; no interpolation through
    ties.

    Shapes and errors as `auc`. The false positives allowed are ``floor(fpr * non-members)``;
    members tied with the first non-member that may not pass do not pass either. For the interval
    see `tpr_at_fpr`.
    """

    def rate(inside: FloatArray, outside: FloatArray) -> float:
        return passing(inside, outside, fpr) / inside.size

    return each(scores, member, rate)


def resolution(non_members: int) -> float:
    """The smallest FPR above zero that ``non_members`` samples can show."""
    return 1 / non_members


def is_resolved(fpr: float, non_members: int) -> bool:
    """Whether at least one false positive may occur: ``fpr * non_members >= 1``."""
    return false_positives(fpr, non_members) >= 1


def tpr_label(fpr: float, non_members: int) -> str:
    """The name of a TPR in tables: "TPR at 0.1 % FPR".

    It is "TPR at zero false positives" if no false positive is allowed. With fewer than about ten,
    the FPR to expect of new samples is more than a tenth larger than `fpr`: then the name states
    it.
    """
    allowed = false_positives(fpr, non_members)
    if not allowed:
        return "TPR at zero false positives"
    label = f"TPR at {100 * fpr:g} % FPR"
    expected = (allowed + 1) / (non_members + 1)  # mean of the true FPR of the threshold
    if expected > 1.1 * fpr:
        label += f" ({100 * expected:.2g} % expected)"
    return label
