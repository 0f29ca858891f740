"""What the shadows say about each sample: checked arrays and masked moments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lib.audit import BoolArray, FloatArray


class Moments(NamedTuple):
    """Over the chosen shadows, for each sample and query ``(N, A)``: how many, their mean, their sum of squares."""

    number: FloatArray
    mean: FloatArray
    squares: FloatArray


def checked(target: ArrayLike, shadows: ArrayLike, member: ArrayLike) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The three arrays as (N, A), (M, N, A) and (M, N); ValueError where they do not belong together.

    NaN among the shadows means "not evaluated" and is left out later; NaN in the target is an error.
    """
    own, others, inside = np.asarray(target, np.float64), np.asarray(shadows, np.float64), np.asarray(member)
    if inside.dtype != np.bool_:
        raise ValueError(f"member must be Boolean, not {inside.dtype}")
    if own.ndim not in (1, 2) or others.shape[1:] != own.shape or inside.shape != others.shape[:2]:
        raise ValueError(
            "need target (N[, A]), shadows (M, N[, A]) and member (M, N); "
            f"got {own.shape}, {others.shape} and {inside.shape}"
        )
    if np.isnan(own).any():
        raise ValueError("the target's signals hold NaN")
    return own.reshape(len(own), -1), others.reshape(*inside.shape, -1), inside


def equal_counts(member: BoolArray) -> BoolArray:
    """Which (shadow, sample) entries to keep so that every sample has the same number of members as of non-members.

    The first k of each, k the smallest count that occurs. With fixed-half designs from which only the target was
    taken out, a sample has one member shadow less exactly when the target holds it: the counts give the answer away
    (AUC near .43 on noise with 8 models), and every attack that weighs the two sides picks it up, the wrong way round.
    """
    ins, outs = np.cumsum(member, axis=0), np.cumsum(~member, axis=0)
    k = min(int(ins[-1].min()), int(outs[-1].min()))
    return np.where(member, ins, outs) <= k


def require(found: Moments, side: str, least: int) -> None:
    """ValueError naming the first sample that has fewer than ``least`` shadows on this side."""
    short = np.flatnonzero(found.number.min(axis=1) < least)
    if short.size:
        have = int(found.number[short[0]].min())
        raise ValueError(f"sample {short[0]} has {have} {side} shadows, {least} needed ({short.size} samples short)")


def moments(shadows: FloatArray, use: BoolArray) -> Moments:
    """Masked moments of ``shadows (M, N, A)`` over the entries of ``use (M, N)`` that are not NaN."""
    valid = use[:, :, None] & ~np.isnan(shadows)
    count = valid.sum(axis=0).astype(np.float64)
    mean = np.sum(shadows, axis=0, where=valid) / np.maximum(count, 1)
    # Two passes: the one-pass formula loses all digits where a sample's signal is large and hardly varies.
    squares = np.sum(np.square(shadows - mean), axis=0, where=valid)
    return Moments(count, mean, squares)


def medians(shadows: FloatArray, use: BoolArray) -> FloatArray:
    """Masked medians ``(N, A)``; NaN entries are left out, +inf stands in for whatever is."""
    valid = use[:, :, None] & ~np.isnan(shadows)
    ordered = np.sort(np.where(valid, shadows, np.inf), axis=0)
    count = valid.sum(axis=0)
    middle = [np.take_along_axis(ordered, np.maximum(i, 0)[None], axis=0)[0] for i in ((count - 1) // 2, count // 2)]
    return 0.5 * middle[0] + 0.5 * middle[1]
