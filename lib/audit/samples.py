"""Intervals over samples: what other samples of the same population would have given for this one model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lib.audit.estimates import Estimate
from lib.audit.rates import FloatArray, balanced_accuracy, is_resolved, largest_gap, mann_whitney, single, tpr


class TwoSided(NamedTuple):
    """How far apart two score distributions lie, whichever of them is the larger."""

    ks: float
    border: float
    auc: float


def two_sided(scores: ArrayLike, member: ArrayLike, level: float = 0.95) -> TwoSided:
    """Kolmogorov-Smirnov distance of one vector, its border under the null, and the AUC of the better direction.

    ``ks`` above ``border`` (asymptotic, conservative under ties) rejects "members and non-members score alike".
    """
    from scipy import special

    pos, neg = single(scores, member)
    border = float(special.kolmogi(1 - level)) * np.sqrt(1 / pos.size + 1 / neg.size)
    area = mann_whitney(pos, neg)
    return TwoSided(largest_gap(pos, neg), float(border), max(area, 1 - area))


def clopper_pearson(k: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Exact two-sided interval of a binomial rate, elementwise for ``k`` successes of ``n``.

    It is also the interval of the *true* FPR of a threshold that let ``k`` of ``n`` non-members pass: see
    `threshold_law`.
    """
    from scipy import special

    hits, total, tail = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64), (1 - level) / 2
    if np.any(hits < 0) or np.any(hits > total) or np.any(total < 1):
        raise ValueError("need 0 <= k <= n and n >= 1")
    low = np.where(hits > 0, special.betaincinv(np.maximum(hits, 1), total - hits + 1, tail), 0.0)
    high = np.where(hits < total, special.betaincinv(hits + 1, np.maximum(total - hits, 1), 1 - tail), 1.0)
    return low[()], high[()]


def threshold_law(rank: int, non_members: int, level: float = 0.95) -> tuple[float, float]:
    """Central interval of the true FPR at the ``rank``-th largest of i.i.d. continuous non-member scores.

    That FPR follows Beta(rank, non_members - rank + 1). A threshold anywhere between the k-th and the (k+1)-th largest
    lies between the laws of ranks k and k + 1; their outer ends are the Clopper-Pearson interval of k.
    """
    from scipy import special

    if not 1 <= rank <= non_members:
        raise ValueError(f"rank must lie in 1..{non_members}, not {rank}")
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    low, high = special.betaincinv(rank, non_members - rank + 1, tails)
    return float(low), float(high)


def binomial_quantile(q: float, n: int, p: float) -> int:
    """The smallest k with P(Bin(n, p) <= k) >= q."""
    from scipy import special

    reach = 12 * np.sqrt(n * p * (1 - p)) + 12
    start = max(0, int(n * p - reach))
    k = np.arange(start, min(n, int(n * p + reach)) + 1)
    return start + int(np.searchsorted(special.bdtr(k, n, p), q))


def tpr_at_fpr(scores: ArrayLike, member: ArrayLike, fpr: float, level: float = 0.95) -> Estimate:
    """`tpr` of one vector with an interval for the population's TPR at exactly this FPR.

    Both sources of error count, without resampling (which fails for the few extreme points that matter here). Half of
    the error budget goes to the threshold: the number of non-members above the true quantile is Bin(non-members, fpr),
    the dual of `threshold_law`, which brackets the threshold between two order statistics. The other half goes to
    Clopper-Pearson intervals of the TPR at those two. The result is distribution-free and covers at least ``level``;
    it reaches down to 0 below about 4.4 / fpr non-members, since the true threshold may then lie above all of them.
    ``n`` is the number of samples; ``resolved`` is `is_resolved`.
    """
    pos, neg = single(scores, member)
    tail = (1 - level) / 4
    fewest, most = (binomial_quantile(q, neg.size, fpr) for q in (tail, 1 - tail))
    low = high = 0.0
    if fewest > 0:
        sure = pos.size - int(np.searchsorted(pos, neg[neg.size - fewest], side="left"))
        low = float(clopper_pearson(sure, pos.size, 1 - 2 * tail)[0])
    reachable = pos.size
    if most < neg.size:
        reachable -= int(np.searchsorted(pos, neg[neg.size - 1 - most], side="right"))
    high = float(clopper_pearson(reachable, pos.size, 1 - 2 * tail)[1])
    return Estimate(float(tpr(scores, member, fpr)), low, high, pos.size + neg.size, is_resolved(fpr, neg.size))


def auc_interval(scores: ArrayLike, member: ArrayLike, level: float = 0.95) -> Estimate:
    """AUC of one vector with DeLong's interval over samples (DeLong et al. 1988), clipped to [0, 1].

    Where DeLong's variance is zero (perfect separation, constant scores) the interval reaches 1 - ((1-level)/2)^(1/m)
    to both sides, m the smaller class: as far as m samples without an exception can rule one out.
    """
    from scipy import special

    pos, neg = single(scores, member)
    m = min(pos.size, neg.size)
    value = mann_whitney(pos, neg)
    if m < 2:
        return Estimate(value, 0.0, 1.0, pos.size + neg.size, resolved=False)
    spread = 0.0
    for own, other in ((pos, neg), (neg, pos)):
        placement = np.searchsorted(other, own, side="left") + np.searchsorted(other, own, side="right")
        spread += float(np.var(placement / (2 * other.size), ddof=1)) / own.size
    tail = (1 - level) / 2
    reach = -float(special.ndtri(tail) * np.sqrt(spread)) if spread > 0 else 1 - tail ** (1 / m)
    return Estimate(value, max(0.0, value - reach), min(1.0, value + reach), pos.size + neg.size)


def balanced_accuracy_interval(
    scores: ArrayLike, member: ArrayLike, threshold: float | None = None, level: float = 0.95
) -> Estimate:
    """`balanced_accuracy` of one vector with its interval over samples.

    At a given threshold: Clopper-Pearson for TPR and TNR, joined by Newcombe's square-and-add. At the best threshold
    (None): Massart's uniform bound on both empirical distributions, which holds although the threshold was picked on
    the same samples, and is therefore wider.
    """
    pos, neg = single(scores, member)
    value = float(balanced_accuracy(scores, member, threshold))
    if threshold is None:
        below = above = sum(np.sqrt(np.log(4 / (1 - level)) / (2 * side.size)) for side in (pos, neg)) / 2
        return Estimate(value, max(0.5, value - below), min(1.0, value + above), pos.size + neg.size)
    right = np.array([np.sum(pos >= threshold), np.sum(neg < threshold)])
    total = np.array([pos.size, neg.size])
    lows, highs = clopper_pearson(right, total, level)
    below, above = np.hypot(*(right / total - lows)) / 2, np.hypot(*(highs - right / total)) / 2
    return Estimate(value, max(0.0, value - float(below)), min(1.0, value + float(above)), pos.size + neg.size)
