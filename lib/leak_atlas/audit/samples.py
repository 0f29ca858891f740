"""Intervals over samples: what other samples of the same population would have given for this one
model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.audit.estimates import Estimate
from leak_atlas.audit.rates import (
    FloatArray,
    checked,
    is_resolved,
    mann_whitney,
    passing,
    single,
)

__all__ = ["auc_interval", "clopper_pearson", "delong", "delong_difference", "tpr_at_fpr"]


def clopper_pearson(
    k: ArrayLike, n: ArrayLike, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Exact two-sided interval of a binomial rate, elementwise for ``k`` successes of ``n``."""
    from scipy import special

    hits = np.asarray(k, dtype=np.float64)
    total = np.asarray(n, dtype=np.float64)
    tail = (1 - level) / 2
    misses = total - hits
    if np.any((hits < 0) | (misses < 0) | (total < 1)):
        raise ValueError("need 0 <= k <= n and n >= 1")
    low = special.betaincinv(np.maximum(hits, 1), misses + 1, tail)
    high = special.betaincinv(hits + 1, np.maximum(misses, 1), 1 - tail)
    low = np.where(hits > 0, low, 0.0)
    high = np.where(misses > 0, high, 1.0)
    return low[()], high[()]


def tpr_at_fpr(scores: ArrayLike, member: ArrayLike, fpr: float, level: float = 0.95) -> Estimate:
    """TPR of one vector at an FPR (see `tpr`) with an interval over samples: the population's TPR
    at exactly this FPR.

    Both sources of error count, without resampling (which fails for the few extreme points that
    matter here). Of the threshold: the number of non-members above the true quantile is
    Bin(non-members, fpr), which brackets the threshold between two order statistics, and the TPR
    between those at them. Of the rate: Clopper-Pearson. Both are taken at ``level`` and joined in
    quadrature, end by end (MOVER, Zou & Donner 2008). The lower end reaches 0 below about 3.7 / fpr
    non-members, since the true threshold may then lie above all of them. ``n`` is the number of
    samples; ``resolved`` is `is_resolved`.
    """
    from scipy import stats

    inside, outside = single(scores, member)
    number = outside.size
    hits = passing(inside, outside, fpr)
    value = hits / inside.size
    low, high = clopper_pearson(hits, inside.size, level)

    tails = [(1 - level) / 2, (1 + level) / 2]
    fewest, most = stats.binom.ppf(tails, number, fpr).astype(int)
    stricter = 0.0
    if fewest > 0:
        stricter = np.mean(inside >= outside[number - fewest])
    laxer = 1.0
    if most < number:
        laxer = np.mean(inside > outside[-1 - most])
    below = float(np.hypot(value - low, max(0.0, value - stricter)))
    above = float(np.hypot(high - value, max(0.0, laxer - value)))
    ends = max(0.0, value - below), min(1.0, value + above)
    resolved = is_resolved(fpr, number)
    return Estimate(value, *ends, inside.size + number, resolved, bounds=(0, 1))


def delong(scores: ArrayLike, member: ArrayLike) -> FloatArray:
    """Covariance over samples of the AUCs of several scores of the same samples, ``(P, N)`` to
    ``(P, P)``. ``member (N,)`` is that of all scores, otherwise ValueError.

    By placements (DeLong et al. 1988). A variance that comes out zero (perfect separation, constant
    scores) is taken from ``m`` samples without an exception, m the smaller class: its 95 % interval
    reaches 1 - .025^(1/m).
    """
    rows, members, _ = checked(scores, member)
    if (members != members[0]).any():
        raise ValueError("delong needs one membership (N,) for all scores")
    inside = rows[:, members[0]]
    outside = rows[:, ~members[0]]
    fewer = min(inside.shape[1], outside.shape[1])
    total = np.zeros((len(rows), len(rows)))
    if fewer > 1:
        total += np.cov(placements(inside, outside)) / inside.shape[1]
        total += np.cov(placements(outside, inside)) / outside.shape[1]
    certain = np.diag(total) <= 0
    reach = 1 - 0.025 ** (1 / fewer)
    total[certain, certain] = (reach / 1.959964) ** 2
    return total


def placements(own: FloatArray, other: FloatArray) -> FloatArray:
    """The share of `other (P, m)` below each score of `own (P, n)`, ties counted one half."""
    from scipy.stats import rankdata

    both = np.concatenate([own, other], axis=1)
    among_all = rankdata(both, axis=1)[:, : own.shape[1]]
    among_own = rankdata(own, axis=1)
    return (among_all - among_own) / other.shape[1]


def delong_difference(
    first: ArrayLike, second: ArrayLike, first_member: ArrayLike, second_member: ArrayLike
) -> float:
    """Variance over samples of the AUC of ``first`` minus that of ``second``, each ``(N,)`` with
    its own membership.

    With equal memberships the scores are of the same samples, and their covariance counts. With
    different ones both errors are taken as independent.
    """
    if np.array_equal(first_member, second_member):
        both = delong(np.stack([first, second]), first_member)
        covariance = both[0, 1]
        return float(np.trace(both) - 2 * covariance)
    return _variance(first, first_member) + _variance(second, second_member)


def _variance(scores: ArrayLike, member: ArrayLike) -> float:
    """DeLong's variance of one AUC."""
    return delong(np.atleast_2d(scores), member).item()


def auc_interval(scores: ArrayLike, member: ArrayLike, level: float = 0.95) -> Estimate:
    """AUC of one vector with DeLong's interval over samples, made on the logit scale.

    On the plain scale it is too short near the ends of [0, 1]: at an AUC of .99 it covers 82 to 94
    %. An AUC of exactly 0 or 1 has no logit: there the interval is plain, see `delong`.
    """
    from scipy import special

    inside, outside = single(scores, member)
    value = mann_whitney(inside, outside)
    n = inside.size + outside.size
    if min(inside.size, outside.size) < 2:
        return Estimate(value, 0.0, 1.0, n, resolved=False, bounds=(0, 1))
    error = float(np.sqrt(_variance(scores, member)))
    reach = float(-special.ndtri((1 - level) / 2)) * error
    if value in (0, 1):
        low = max(0.0, value - reach)
        high = min(1.0, value + reach)
        return Estimate(value, low, high, n, error=error, bounds=(0, 1))
    centre = special.logit(value)
    stretched = reach / (value * (1 - value))
    low = float(special.expit(centre - stretched))
    high = float(special.expit(centre + stretched))
    return Estimate(value, low, high, n, error=error, bounds=(0, 1))
