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

    hits, total, tail = (
        np.asarray(k, dtype=np.float64),
        np.asarray(n, dtype=np.float64),
        (1 - level) / 2,
    )
    if np.any(hits < 0) or np.any(hits > total) or np.any(total < 1):
        raise ValueError("need 0 <= k <= n and n >= 1")
    low = np.where(hits > 0, special.betaincinv(np.maximum(hits, 1), total - hits + 1, tail), 0.0)
    high = np.where(
        hits < total, special.betaincinv(hits + 1, np.maximum(total - hits, 1), 1 - tail), 1.0
    )
    return low[()], high[()]


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

    allowed = int(false_positives(fpr, np.asarray(neg.size)))
    passed = (
        pos.size - np.searchsorted(pos, neg[-1 - allowed], side="right")
        if allowed < neg.size
        else pos.size
    )
    value = float(passed / pos.size)
    fewest, most = (
        int(k) for k in stats.binom.ppf([(1 - level) / 2, (1 + level) / 2], neg.size, fpr)
    )
    stricter = (
        pos.size - np.searchsorted(pos, neg[neg.size - fewest], side="left") if fewest > 0 else 0
    )
    laxer = (
        pos.size - np.searchsorted(pos, neg[-1 - most], side="right")
        if most < neg.size
        else pos.size
    )
    low, high = (float(end) for end in clopper_pearson(round(value * pos.size), pos.size, level))
    below = np.hypot(value - low, max(0.0, value - stricter / pos.size))
    above = np.hypot(high - value, max(0.0, laxer / pos.size - value))
    ends = max(0.0, value - float(below)), min(1.0, value + float(above))
    return Estimate(value, *ends, pos.size + neg.size, is_resolved(fpr, neg.size))


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
    for own, other in ((pos, neg), (neg, pos)) if fewer > 1 else ():
        order = np.argsort(own, axis=1)  # what is looked up in order is found twice as quickly
        both = zip(np.sort(other, axis=1), np.take_along_axis(own, order, axis=1), strict=True)
        found = np.stack(
            [np.searchsorted(o, x, "left") + np.searchsorted(o, x, "right") for o, x in both]
        )
        places = np.empty(own.shape)
        np.put_along_axis(places, order, found / (2 * other.shape[1]), axis=1)
        total += np.atleast_2d(np.cov(places)) / own.shape[1]
    none = np.diag(total) <= 0
    total[none, none] = ((1 - 0.025 ** (1 / fewer)) / 1.959964) ** 2
    return total


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
    return sum(
        float(delong(np.asarray(s)[None], m)[0, 0]) for s, m in ((first, member), (second, others))
    )


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
    error = float(np.sqrt(delong(np.asarray(scores)[None], member)[0, 0]))
    reach = float(-special.ndtri((1 - level) / 2)) * error
    if value in (0, 1):
        return Estimate(value, max(0.0, value - reach), min(1.0, value + reach), n, error=error)
    ends = special.expit(special.logit(value) + np.array([-1, 1]) * reach / (value * (1 - value)))
    return Estimate(value, float(ends[0]), float(ends[1]), n, error=error)
