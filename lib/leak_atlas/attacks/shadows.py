"""Signals of shadow models: checks, selection by membership, moments for each sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.audit import BoolArray, FloatArray


class Moments(NamedTuple):
    """For each sample and query ``(N, A)``: number of selected shadows, mean of their signals, sum
    of squared deviations from that mean.
    """

    number: FloatArray
    mean: FloatArray
    squares: FloatArray


def paired(shadows: ArrayLike, member: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Shadows' signals (M, N, ...) and membership (M, N) as arrays. ValueError where the types or
    shapes do not match.
    """
    signals = np.asarray(shadows, np.float64)
    inside = np.asarray(member)
    if inside.dtype != np.bool_ or inside.ndim != 2 or signals.shape[:2] != inside.shape:
        given = f"{signals.shape} and {inside.dtype} {inside.shape}"
        raise ValueError(f"need shadows (M, N, ...) and Boolean member (M, N), got {given}")
    return signals, inside


def checked(
    target: ArrayLike,
    shadows: ArrayLike,
    member: ArrayLike,
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Target, shadows and membership as (N, A), (M, N, A) and (M, N).

    NaN among the shadows means "not evaluated"; `chosen` leaves it out. ValueError where shapes do
    not match or the target has a NaN.
    """
    of_target = np.asarray(target, np.float64)
    of_shadows, inside = paired(shadows, member)
    if of_target.ndim not in (1, 2) or of_shadows.shape[1:] != of_target.shape:
        given = f"{of_target.shape} and {of_shadows.shape}"
        raise ValueError(f"need target (N[, A]) and shadows (M, N[, A]), got {given}")
    if np.isnan(of_target).any():
        raise ValueError("the target's signals hold NaN")
    by_query = of_target.reshape(len(of_target), -1)
    return by_query, of_shadows.reshape(*inside.shape, -1), inside


def require(shadows: Moments, side: str, least: int) -> None:
    """Raises ValueError, which names the first sample with fewer than ``least`` shadows on this
    side.
    """
    fewest = shadows.number.min(axis=1)
    short = np.flatnonzero(fewest < least)
    if short.size:
        first = short[0]
        raise ValueError(
            f"sample {first} has {int(fewest[first])} {side} shadows, {least} needed"
            f" ({short.size} samples short)"
        )


def chosen(shadows: FloatArray, use: BoolArray) -> FloatArray:
    """The signals of the selected shadows in rising order: ``(M, N, A)`` and ``(M, N)`` to ``(N, A,
    K)``.

    K is the largest number of selected shadows of a sample; samples with fewer end in NaN. One sort
    moves the selected signals to the front, faster than indexing by the mask, and serves the
    medians.
    """
    # The copy makes each sample's signals contiguous for every later pass.
    values = shadows.transpose(1, 2, 0).copy()
    # Adding 0 or NaN is faster than `where`, which mispredicts branches on random masks.
    nan_or_zero = np.array([np.nan, 0.0])
    values += nan_or_zero.take(use.T.astype(np.int8))[:, None, :]
    values.sort(axis=2)  # NaN comes last
    most = int(use.sum(axis=0).max(initial=0))
    return values[:, :, :most]


def present(values: FloatArray) -> tuple[FloatArray, BoolArray | bool]:
    """How many of ``(N, A, K)`` are not NaN, and which. The latter is True where all are: numpy is
    faster unmasked.
    """
    valid = ~np.isnan(values)
    number = valid.sum(axis=2).astype(np.float64)
    return number, True if valid.all() else valid


def moments(values: FloatArray) -> Moments:
    """Moments of ``(N, A, K)`` over the values that are not NaN."""
    number, valid = present(values)
    mean = np.sum(values, axis=2, where=valid) / np.maximum(number, 1)
    # Two passes: the one-pass formula loses all digits of large signals that hardly vary.
    deviations = values - mean[:, :, None]
    squares = np.sum(np.square(deviations), axis=2, where=valid)
    return Moments(number, mean, squares)


def medians(values: FloatArray) -> FloatArray:
    """Medians ``(N, A)`` of ``(N, A, K)`` in rising order, over the values that are not NaN."""
    counts, _ = present(values)
    number = counts.astype(np.intp)[:, :, None]
    lower = np.maximum(number - 1, 0) // 2
    upper = number // 2
    below = np.take_along_axis(values, lower, axis=2)
    above = np.take_along_axis(values, upper, axis=2)
    middle = 0.5 * below + 0.5 * above
    return middle[:, :, 0]
