"""Intervals over samples: what other samples of the same population would have given for this one
model.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.audit.estimates import Estimate
from leak_atlas.audit.rates import (
    FloatArray,
    checked,
    false_positives,
    is_resolved,
    mann_whitney,
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
    if np.any(hits < 0) or np.any(hits > total) or np.any(total < 1):
        raise ValueError("need 0 <= k <= n and n >= 1")
    misses = total - hits
    low = special.betaincinv(np.maximum(hits, 1), misses + 1, tail)
    high = special.betaincinv(hits + 1, np.maximum(misses, 1), 1 - tail)
    return np.where(hits > 0, low, 0.0)[()], np.where(misses > 0, high, 1.0)[()]


def tpr_at_fpr(scores: ArrayLike, member: ArrayLike, fpr: float, level: float = 0.95) -> Estimate:
    """`tpr` of one vector with an interval for the population's TPR at exactly this FPR.

    Both sources of error count, without resampling (which fails for the few extreme points that
    matter here). Of the threshold: the number of non-members above the true quantile is
    Bin(non-members, fpr), which brackets the threshold between two order statistics, and the TPR
    between those at them. Of the rate: Clopper-Pearson. Both are taken at ``level`` and joined in
    quadrature, end by end (MOVER, Zou & Donner 2008). The lower end reaches 0 below about 3.7 / fpr
    non-members, since the true threshold may then lie above all of them. ``n`` is the number of
    samples; ``resolved`` is `is_resolved`.
    """
    return tpr_of_sorted(*single(scores, member), fpr, level)


def tpr_of_sorted(pos: FloatArray, neg: FloatArray, fpr: float, level: float = 0.95) -> Estimate:
    """`tpr_at_fpr` of the scores of members and of non-members, each in rising order: a curve sorts
    them once.
    """
    from scipy import stats

    def above(border: float, side: Literal["left", "right"]) -> int:
        """Members above a border, those that are equal to it too (left) or not (right)."""
        return pos.size - int(np.searchsorted(pos, border, side=side))

    m = neg.size
    allowed = int(false_positives(fpr, np.asarray(m)))
    passed = above(neg[-1 - allowed], "right") if allowed < m else pos.size
    tails = [(1 - level) / 2, (1 + level) / 2]
    fewest, most = (int(k) for k in stats.binom.ppf(tails, m, fpr))
    stricter = above(neg[m - fewest], "left") if fewest > 0 else 0
    laxer = above(neg[-1 - most], "right") if most < m else pos.size
    value = passed / pos.size
    low, high = (float(end) for end in clopper_pearson(passed, pos.size, level))
    below = np.hypot(value - low, max(0.0, value - stricter / pos.size))
    beyond = np.hypot(high - value, max(0.0, laxer / pos.size - value))
    return Estimate(
        value,
        max(0.0, value - float(below)),
        min(1.0, value + float(beyond)),
        pos.size + m,
        is_resolved(fpr, m),
    )


def delong(scores: ArrayLike, member: ArrayLike) -> FloatArray:
    """Covariance over samples of the AUCs of several scores of the same samples, ``(P, N)`` to
    ``(P, P)``.

    By placements (DeLong et al. 1988). A variance that comes out zero (perfect separation, constant
    scores) is taken from ``m`` samples without an exception, m the smaller class: its 95 % interval
    reaches 1 - .025^(1/m).
    """
    rows, inside, _ = checked(scores, member)
    pos, neg = rows[:, inside], rows[:, ~inside]
    fewer = min(pos.shape[1], neg.shape[1])
    total = np.zeros((len(rows), len(rows)))
    if fewer > 1:
        for own, other in ((pos, neg), (neg, pos)):
            places = np.array([_placements(*pair) for pair in zip(own, other, strict=True)])
            total += np.atleast_2d(np.cov(places)) / own.shape[1]
    none = np.diag(total) <= 0
    total[none, none] = ((1 - 0.025 ** (1 / fewer)) / 1.959964) ** 2
    return total


def _placements(own: FloatArray, other: FloatArray) -> FloatArray:
    """The share of `other (m,)` below each score of `own (n,)`, ties counted one half: `(n,)`."""
    order = np.argsort(own)  # what is looked up in order is found twice as quickly
    ordered, known = own[order], np.sort(other)
    sides = np.searchsorted(known, ordered, "left") + np.searchsorted(known, ordered, "right")
    places = np.empty(own.shape)
    places[order] = sides / (2 * other.size)
    return places


def delong_difference(
    first: ArrayLike, second: ArrayLike, member: ArrayLike, others: ArrayLike
) -> float:
    """Variance over samples of the AUC of ``first`` minus that of ``second``, each ``(N,)`` with
    its own membership.

    On the same members and non-members their errors go together; else they are independent.
    """
    if np.array_equal(member, others):
        both = delong(np.stack([first, second]), member)
        return float(both[0, 0] + both[1, 1] - 2 * both[0, 1])
    return _variance(first, member) + _variance(second, others)


def _variance(scores: ArrayLike, member: ArrayLike) -> float:
    """DeLong's variance of one AUC."""
    return float(delong(np.asarray(scores)[None], member)[0, 0])


def auc_interval(scores: ArrayLike, member: ArrayLike, level: float = 0.95) -> Estimate:
    """AUC of one vector with DeLong's interval over samples, made on the logit scale.

    On the plain scale it is too short near the ends of [0, 1]: at an AUC of .99 it covers 82 to 94
    %. An AUC of exactly 0 or 1 has no logit: there the interval is plain, see `delong`.
    """
    from scipy import special

    pos, neg = single(scores, member)
    value, n = mann_whitney(pos, neg), pos.size + neg.size
    if min(pos.size, neg.size) < 2:
        return Estimate(value, 0.0, 1.0, n, resolved=False)
    error = float(np.sqrt(_variance(scores, member)))
    reach = float(-special.ndtri((1 - level) / 2)) * error
    if value in (0, 1):
        return Estimate(value, max(0.0, value - reach), min(1.0, value + reach), n, error=error)
    ends = special.expit(special.logit(value) + np.array([-1, 1]) * reach / (value * (1 - value)))
    return Estimate(value, float(ends[0]), float(ends[1]), n, error=error)
