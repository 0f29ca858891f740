"""Correlations: linear, of ranks, and what remains of them when another quantity is held fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.audit.estimates import Estimate
from leak_atlas.audit.rates import FloatArray, IntArray

__all__ = [
    "TrueCorrelations",
    "correlation",
    "disattenuated",
    "filled",
    "rank_correlation",
    "rank_correlation_interval",
    "ranks_within",
]

RELIABLE = 0.05  # least reliability of a measure whose true correlations are resolved


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


def filled(values: ArrayLike) -> FloatArray:
    """``values (n,)`` with each NaN, a sample without a rank, replaced by the median of the others.

    All 0 if every value is NaN.
    """
    measured = np.array(values, np.float64)
    missing = np.isnan(measured)
    measured[missing] = 0.0 if missing.all() else np.median(measured[~missing])
    return measured


def ranks_within(values: ArrayLike, groups: IntArray) -> FloatArray:
    """Ranks of ``values (..., n)`` within each group of samples, as shares of it between 0 and 1.

    Differences between groups are removed. ``groups (n,)`` numbers or names each sample's group.
    """
    from scipy.stats import rankdata

    measured = np.asarray(values)
    shares = np.empty(measured.shape)
    for group in np.unique(groups):
        own = groups == group
        ranks = rankdata(measured[..., own], axis=-1)
        shares[..., own] = (ranks - 0.5) / own.sum()
    return shares


def rank_correlation_interval(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Spearman's correlation of ``x (n,)`` and ``y (n,)`` with its 95 % interval over samples.

    Fisher's interval, with the variance of Bonett & Wright (2000): (1 + r^2 / 2) / (n - 3). Of
    fewer than four samples it is [-1, 1], not resolved.
    """
    rho = float(rank_correlation(x, y))
    n = np.size(x)
    if n < 4:
        return Estimate(rho, -1.0, 1.0, n, resolved=False, bounds=(-1, 1))
    variance = (1 + rho**2 / 2) / (n - 3)
    reach = 1.96 * np.sqrt(variance)
    transformed = np.arctanh(np.clip(rho, -1 + 1e-12, 1 - 1e-12))
    low = np.tanh(transformed - reach)
    high = np.tanh(transformed + reach)
    return Estimate(rho, float(low), float(high), n, bounds=(-1, 1))


@dataclass(frozen=True)
class TrueCorrelations:
    """Rank correlations of M measures of the same samples, without the measures' own errors.

    `values (M, M)`; `draws (R, M, M)`, the same in each bootstrap sample; `n` samples. The diagonal
    is each measure's reliability: the rank correlation of its two halves.
    """

    names: Sequence[str]
    values: FloatArray
    draws: FloatArray
    n: int

    def reliability(self, name: str) -> Estimate:
        """Rank correlation of a measure's two halves, with its 95 % interval over samples."""
        place = self._place((name, name))
        return self._estimate(self.values[place], self.draws[:, *place])

    def of(self, one: str, other: str) -> Estimate:
        """Rank correlation of two measures, with its 95 % interval over samples.

        Not resolved where a measure is not reliable, and `reason` names it.
        """
        place = self._place((one, other))
        estimate = self._estimate(self.values[place], self.draws[:, *place])
        return self._checked(estimate, one, other)

    def difference(self, pair: tuple[str, str], other: tuple[str, str]) -> Estimate:
        """Correlation of one pair of measures minus that of another pair, over the same samples."""
        first, second = self._place(pair), self._place(other)
        value = self.values[first] - self.values[second]
        draws = self.draws[:, *first] - self.draws[:, *second]
        return self._checked(self._estimate(value, draws), *pair, *other)

    def _place(self, pair: tuple[str, str]) -> tuple[int, int]:
        names = list(self.names)
        return names.index(pair[0]), names.index(pair[1])

    def _estimate(self, value: float, draws: FloatArray) -> Estimate:
        low, high = np.quantile(draws, (0.025, 0.975))
        return Estimate(float(value), float(low), float(high), self.n, error=float(draws.std()))

    def _checked(self, estimate: Estimate, *names: str) -> Estimate:
        weak = [name for name in dict.fromkeys(names) if self.reliability(name).low < RELIABLE]
        reason = f"halves do not agree on {' and '.join(weak)}" if weak else ""
        return replace(estimate, resolved=not weak, reason=reason)


def disattenuated(
    names: Sequence[str],
    halves: ArrayLike,
    groups: IntArray | None = None,
    draws: int = 400,
    seed: int = 0,
) -> TrueCorrelations:
    """Rank correlations of M measures of n samples, corrected for the measures' own errors.

    `halves (D, 2, M, n)` has each measure twice, from sources with independent errors, in D random
    divisions of the sources. Two measures are correlated across halves alone, so that errors that
    they share in one half do not make them agree. The mean correlation is divided by the square
    root of the product of the two reliabilities (Spearman 1904); it can be larger than 1.

    With `groups (n,)`, samples are ranked within their group: differences between groups are
    removed. Intervals are percentiles of a bootstrap over samples. They are about other samples and
    the errors that sources make on each sample alone, not about what a source does to all samples.
    """
    values = np.asarray(halves, np.float64)
    n = values.shape[-1]
    labels = np.zeros(n, np.int_) if groups is None else np.asarray(groups)
    random = np.random.default_rng(seed)
    resampled = []
    for _ in range(draws):
        chosen = random.integers(n, size=n)
        resampled.append(_corrected(values[..., chosen], labels[chosen]))
    whole = _corrected(values, labels)
    return TrueCorrelations(tuple(names), whole, np.array(resampled), n)


def _corrected(values: FloatArray, groups: IntArray) -> FloatArray:
    """True rank correlations `(M, M)` with reliabilities on the diagonal; see `disattenuated`."""
    ranks = ranks_within(values, groups)
    ranks -= ranks.mean(axis=-1, keepdims=True)
    sizes = np.linalg.norm(ranks, axis=-1, keepdims=True)
    unit = np.divide(ranks, sizes, out=np.zeros_like(ranks), where=sizes > 0)
    across = np.mean(unit[:, 0] @ np.swapaxes(unit[:, 1], -1, -2), axis=0)
    across = (across + across.T) / 2
    reliability = across.diagonal().copy()
    root = np.sqrt(np.maximum(reliability, 1e-3))
    corrected = across / np.outer(root, root)
    np.fill_diagonal(corrected, reliability)
    return np.asarray(corrected)
