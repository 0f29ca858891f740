"""Correlations: linear, of ranks, and what remains of them when another quantity is held fixed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.audit.estimates import Estimate
from leak_atlas.audit.rates import FloatArray

__all__ = ["correlation", "rank_correlation", "rank_correlation_interval"]


def correlation(
    x: ArrayLike,
    y: ArrayLike,
    given: ArrayLike | None = None,
    undefined: float = 0.0,
) -> FloatArray:
    """Pearson's correlation of ``x (..., n)`` and ``y (..., n)``, one for each leading index.

    With ``given (..., n, k)``: the partial correlation, after what the k quantities explain
    linearly is subtracted from both. ``undefined`` where nothing remains of one of them, as of a
    constant.
    """
    pair = np.stack(np.broadcast_arrays(x, y), axis=-1).astype(np.float64)  # (..., n, 2)
    rest = pair - pair.mean(axis=-2, keepdims=True)
    if given is not None:
        known = np.asarray(given, np.float64)
        intercept = np.ones((*known.shape[:-1], 1))
        known = np.concatenate([intercept, known], axis=-1)  # (..., n, 1 + k)
        # Columns may depend on each other, hence the pseudo-inverse; `lstsq` has the same cut-off.
        cutoff = max(known.shape[-2:]) * np.finfo(np.float64).eps
        inverse = np.linalg.pinv(known, cutoff)
        rest = pair - known @ (inverse @ pair)
    size = np.linalg.norm(rest, axis=-2)  # (..., 2)
    whole = np.linalg.norm(pair, axis=-2)
    varies = (size > 1e-9 * whole).all(axis=-1)
    product = rest.prod(axis=-1).sum(axis=-1)
    value = np.full(product.shape, undefined)
    np.divide(product, size.prod(axis=-1), out=value, where=varies)
    return np.asarray(value)[()]


def rank_correlation(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Spearman's correlation of ``x (..., n)`` and ``y (..., n)``: `correlation` of their ranks."""
    from scipy.stats import rankdata

    first = rankdata(x, axis=-1)
    second = rankdata(y, axis=-1)
    return correlation(first, second)


def rank_correlation_interval(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Spearman's correlation of ``x (n,)`` and ``y (n,)`` with its 95 % interval over samples.

    Fisher's interval, with the variance of Bonett & Wright (2000): (1 + r^2 / 2) / (n - 3).
    """
    rho = float(rank_correlation(x, y))
    n = np.size(x)
    variance = (1 + rho**2 / 2) / (n - 3)
    reach = 1.96 * np.sqrt(variance)
    transformed = np.arctanh(np.clip(rho, -1 + 1e-12, 1 - 1e-12))
    low = np.tanh(transformed - reach)
    high = np.tanh(transformed + reach)
    return Estimate(rho, float(low), float(high), n)
