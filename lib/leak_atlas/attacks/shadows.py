"""Signals of shadow models: selection by membership, and moments for each sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.audit import BoolArray, FloatArray


class Moments(NamedTuple):
    """For each sample and query ``(N, A)``: number of selected shadow models, mean of their
    signals, sum of squared deviations from that mean.
    """

    number: FloatArray
    mean: FloatArray
    squares: FloatArray


def by_query(
    target: ArrayLike,
    shadows: ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """Target ``(N[, A])`` and shadows ``(M, N[, A])`` with an axis of A queries: ``(N, A)``, ``(M,
    N, A)``.
    """
    of_target = np.asarray(target, np.float64)
    of_shadows = np.asarray(shadows, np.float64)
    samples = len(of_target)
    models = len(of_shadows)
    return of_target.reshape(samples, -1), of_shadows.reshape(models, samples, -1)


def chosen(shadows: FloatArray, use: BoolArray) -> FloatArray:
    """The signals of the selected shadow models in rising order: ``(M, N, A)`` and ``(M, N)`` to
    ``(N, A, K)``.

    K is the largest number of selected models of a sample; samples with fewer end in NaN. A NaN
    among the signals means "not evaluated", and is not selected.
    """
    # The copy makes each sample's signals contiguous for every later pass.
    values = shadows.transpose(1, 2, 0).copy()
    # Adding 0 or NaN is faster than `where`, which mispredicts branches on random masks.
    nan_or_zero = np.array([np.nan, 0.0])
    values += nan_or_zero.take(use.T.astype(np.int8))[:, None, :]
    values.sort(axis=2)  # NaN comes last
    most = int(use.sum(axis=0).max(initial=0))
    return values[:, :, :most]


def counted(values: FloatArray, least: int) -> tuple[FloatArray, BoolArray | bool]:
    """How many of ``(N, A, K)`` are not NaN, ``(N, A)``, and which. The latter is True where all
    are: numpy is faster unmasked.

    Raises ValueError if a sample has fewer than ``least``.
    """
    valid = ~np.isnan(values)
    number = valid.sum(axis=2).astype(np.float64)
    fewest = number.min(axis=1)
    if (fewest < least).any():
        sample = fewest.argmin()
        raise ValueError(
            f"sample {sample} has {fewest[sample]:g} shadow models to compare with, {least} needed"
        )
    return number, True if valid.all() else valid


def moments(values: FloatArray, least: int) -> Moments:
    """Moments of ``(N, A, K)`` over the values that are not NaN, ``least`` or more of a sample."""
    number, valid = counted(values, least)
    mean = np.sum(values, axis=2, where=valid) / number
    # Two passes: the one-pass formula loses all digits of large signals that hardly vary.
    deviations = values - mean[:, :, None]
    squares = np.sum(np.square(deviations), axis=2, where=valid)
    return Moments(number, mean, squares)
