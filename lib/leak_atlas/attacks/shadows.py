"""What the shadows say about each sample: checked arrays and masked moments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.audit import BoolArray, FloatArray


class Moments(NamedTuple):
    """Over the chosen shadows, for each sample and query ``(N, A)``: how many, their mean, their
    sum of squares.
    """

    number: FloatArray
    mean: FloatArray
    squares: FloatArray


def paired(shadows: ArrayLike, member: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Shadows' signals (M, N, ...) and membership (M, N); ValueError where they do not belong
    together.
    """
    others, inside = np.asarray(shadows, np.float64), np.asarray(member)
    if inside.dtype != np.bool_ or inside.ndim != 2 or others.shape[:2] != inside.shape:
        found = f"{others.shape} and {inside.dtype} {inside.shape}"
        raise ValueError(f"need shadows (M, N, ...) and Boolean member (M, N), got {found}")
    return others, inside


def checked(
    target: ArrayLike, shadows: ArrayLike, member: ArrayLike
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The three arrays as (N, A), (M, N, A) and (M, N); ValueError where they do not belong
    together.

    NaN among the shadows means "not evaluated" and is left out later; NaN in the target is an
    error.
    """
    own, (others, inside) = np.asarray(target, np.float64), paired(shadows, member)
    if own.ndim not in (1, 2) or others.shape[1:] != own.shape:
        raise ValueError(
            f"need target (N[, A]) and shadows (M, N[, A]), got {own.shape} and {others.shape}"
        )
    if np.isnan(own).any():
        raise ValueError("the target's signals hold NaN")
    return own.reshape(len(own), -1), others.reshape(*inside.shape, -1), inside


def require(found: Moments, side: str, least: int) -> None:
    """ValueError naming the first sample that has fewer than ``least`` shadows on this side."""
    short = np.flatnonzero(found.number.min(axis=1) < least)
    if short.size:
        have = int(found.number[short[0]].min())
        raise ValueError(
            f"sample {short[0]} has {have} {side} shadows, {least} needed ({short.size} samples short)"
        )


def chosen(shadows: FloatArray, use: BoolArray) -> FloatArray:
    """What the used shadows say about each sample, in rising order: ``(M, N, A)`` and ``(M, N)`` to
    ``(N, A, K)``.

    K is the largest number that a sample has; others end in NaN. One sort packs what is used to the
    front, faster than picking it out by the mask, and serves the medians.
    """
    # Copied to lie side by side before anything else: every later pass over a sample's shadows is
    # then contiguous.
    values = shadows.transpose(1, 2, 0).copy()
    # Adding NaN from a table of two: masks of random halves make `where` mispredict every other
    # branch.
    values += np.array([np.nan, 0.0]).take(use.T.astype(np.int8))[:, None, :]
    values.sort(axis=2)  # NaN comes last
    return values[:, :, : int(use.sum(axis=0).max(initial=0))]


def present(values: FloatArray) -> tuple[FloatArray, BoolArray | bool]:
    """How many of ``(N, A, K)`` are not NaN, and which: True where it is all of them, as numpy is
    faster unmasked.
    """
    valid = ~np.isnan(values)
    number = valid.sum(axis=2).astype(np.float64)
    return number, True if valid.all() else valid


def moments(values: FloatArray) -> Moments:
    """Moments of ``(N, A, K)`` over what is not NaN."""
    number, valid = present(values)
    mean = np.sum(values, axis=2, where=valid) / np.maximum(number, 1)
    # Two passes: the one-pass formula loses all digits where a sample's signal is large and hardly
    # varies.
    squares = np.sum(np.square(values - mean[:, :, None]), axis=2, where=valid)
    return Moments(number, mean, squares)


def medians(values: FloatArray) -> FloatArray:
    """Medians ``(N, A)`` of ``(N, A, K)`` in rising order, over what is not NaN."""
    number = np.asarray(present(values)[0], dtype=np.intp)[:, :, None]
    middle = [
        np.take_along_axis(values, i, axis=2)[:, :, 0]
        for i in (np.maximum(number - 1, 0) // 2, number // 2)
    ]
    return 0.5 * middle[0] + 0.5 * middle[1]
