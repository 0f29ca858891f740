"""From membership scores to numbers with intervals.

Pure statistics: arrays in, :class:`Estimate` or arrays out. Scores are float64 and **larger means more likely
member**; ``member`` is Boolean. A sample is called a member when ``score >= threshold``. Scores may be tied or
infinite, never NaN: an attack that did not score a sample has to say so before it comes here.

Two kinds of interval exist and are not interchangeable. Over *samples* (`auc_interval`, `balanced_accuracy_interval`,
`tpr_at_fpr`): what other samples from the same population would have given for this one model. Over *targets* (`over`,
`paired_difference`, `audit` of a matrix): what other models, trained the same way, would have given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

HEADLINE_FPRS = (0.01, 0.001, 0.00001)

# Variance of a mean over targets that are each other's shadows, at most, relative to independent targets. "Target t
# scored with shadow u" and "target u scored with shadow t" share one product of signals, so each pair counts twice.
# Measured on ten models with online LiRA and a weak signal: Student's 95 % interval covers 84 % without, 94 % with it.
CROSSED = 2.0


@dataclass(frozen=True)
class Estimate:
    """A number with its interval: the common currency of tables and claims.

    ``n`` counts the independent units behind the interval (models, samples); ``resolved`` is False where there were
    too few of them for the question (one model, or an FPR below one non-member).
    """

    value: float
    low: float
    high: float
    n: int = 0
    resolved: bool = True

    def __format__(self, spec: str) -> str:
        spec = spec or ".3f"
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __str__(self) -> str:
        return format(self)


class TwoSided(NamedTuple):
    """How far apart two score distributions lie, whichever of them is the larger."""

    ks: float
    border: float
    auc: float


# --- scores to rates ---------------------------------------------------------------------------------------------


def _checked(scores: ArrayLike, member: ArrayLike) -> tuple[FloatArray, BoolArray, tuple[int, ...]]:
    """Scores as a matrix (R, N), membership as (N,) or (R, N), and the leading shape to give back."""
    values, inside = np.asarray(scores, dtype=np.float64), np.asarray(member)
    if inside.dtype != np.bool_:
        raise ValueError(f"member must be Boolean, not {inside.dtype}: labels and scores are easily swapped")
    if values.ndim == 0 or inside.shape not in (values.shape, values.shape[-1:]):
        raise ValueError(f"scores {values.shape} need member of shape (N,) or their own shape, not {inside.shape}")
    if np.isnan(values.min(initial=np.inf)):
        raise ValueError("scores hold NaN; drop the samples that the attack did not score")
    size = values.shape[-1]
    inside = inside if inside.ndim == 1 else inside.reshape(-1, size)
    members = inside.sum(axis=-1)
    if np.any(members == 0) or np.any(members == size):
        raise ValueError("every score vector needs at least one member and one non-member")
    return values.reshape(-1, size), inside, values.shape[:-1]


def _one(scores: ArrayLike, member: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The sorted members' and non-members' scores of a single vector."""
    rows, inside, lead = _checked(scores, member)
    if lead:
        raise ValueError(f"expected one score vector (N,), got leading shape {lead}")
    return np.sort(rows[0, inside]), np.sort(rows[0, ~inside])


def _each(
    scores: ArrayLike, member: ArrayLike, *measures: Callable[[FloatArray, FloatArray], float]
) -> tuple[FloatArray, ...]:
    """Apply ``measure(members sorted, non-members sorted)`` to every vector.

    Sorting the two classes apart and merging them by binary search is exact under ties and several times faster than
    one argsort of both with cumulative counts.
    """
    rows, inside, lead = _checked(scores, member)
    if inside.ndim == 1:
        pairs = zip(np.sort(rows[:, inside], axis=1), np.sort(rows[:, ~inside], axis=1), strict=True)
        found = [[measure(pos, neg) for measure in measures] for pos, neg in pairs]
    else:
        found = []
        for row, mask in zip(rows, inside, strict=True):
            pos, neg = np.sort(row[mask]), np.sort(row[~mask])
            found.append([measure(pos, neg) for measure in measures])
    table = np.asarray(found, dtype=np.float64).reshape(*lead, len(measures))
    return tuple(table[..., i][()] for i in range(len(measures)))


def _auc(pos: FloatArray, neg: FloatArray) -> float:
    below = np.searchsorted(neg, pos, side="left").sum() + np.searchsorted(neg, pos, side="right").sum()
    return float(below / (2 * pos.size * neg.size))


def _best_accuracy(pos: FloatArray, neg: FloatArray) -> float:
    # The best threshold lies on a member's score: lowering it further admits non-members only. Of tied members the
    # first has the largest TPR, so the maximum needs no care for ties. One half is "call everybody a member".
    kept = np.arange(pos.size, 0, -1) / pos.size
    return max(0.5, float(np.max(kept + np.searchsorted(neg, pos, side="left") / neg.size)) / 2)


def _largest_gap(pos: FloatArray, neg: FloatArray) -> float:
    below = np.arange(1, pos.size + 1) / pos.size - np.searchsorted(neg, pos, side="right") / neg.size
    return max(2 * _best_accuracy(pos, neg) - 1, float(np.max(below)))


def auc(scores: ArrayLike, member: ArrayLike) -> FloatArray:
    """Area under the ROC curve, ties counted one half (Mann-Whitney with mid-ranks).

    ``scores (..., N)``, ``member (N,)`` or ``(..., N)``; returns ``(...)``. Raises ValueError on NaN, on a membership
    that is not Boolean and where one class is empty.
    """
    return _each(scores, member, _auc)[0]


def balanced_accuracy(scores: ArrayLike, member: ArrayLike, threshold: ArrayLike | None = None) -> FloatArray:
    """(TPR + TNR) / 2 at ``threshold`` (broadcast to ``(...)``), or at the best one for these very scores when None.

    The best one is an oracle: it never falls below 0.5 and rises above it by chance alone, about 0.31 * sqrt(1/members
    + 1/non-members) in a null. Shapes and errors as `auc`.
    """
    if threshold is None:
        return _each(scores, member, _best_accuracy)[0]
    rows, inside, lead = _checked(scores, member)
    inside = np.broadcast_to(inside, rows.shape)
    called = rows >= np.broadcast_to(np.asarray(threshold, dtype=np.float64), lead).reshape(-1, 1)
    tpr_, fpr = ((called & side).sum(axis=1) / side.sum(axis=1) for side in (inside, ~inside))
    return ((tpr_ + 1 - fpr) / 2).reshape(lead)[()]


def _allowed(fpr: float, non_members: NDArray[np.intp]) -> NDArray[np.intp]:
    """The largest whole number of false positives whose rate is at most ``fpr``."""
    if not 0 <= fpr <= 1:
        raise ValueError(f"an FPR lies in [0, 1], not {fpr}")
    # fpr * n alone would turn 0.29 * 100 into 28.
    allowed = np.floor(fpr * non_members + 1e-6).astype(np.intp)
    return allowed - (allowed / non_members > fpr)


def tpr(scores: ArrayLike, member: ArrayLike, fpr: float) -> FloatArray:
    """TPR at the largest attainable FPR that does not exceed ``fpr``; no interpolation through ties.

    Shapes and errors as `auc`. The false positives allowed are ``floor(fpr * non-members)``; members tied with the
    first non-member that may not pass do not pass either. For the interval see `tpr_at_fpr`.
    """
    rows, inside, lead = _checked(scores, member)
    size = rows.shape[1]
    members = np.broadcast_to(inside.sum(axis=-1), rows.shape[:1])
    shared = inside.ndim == 1
    outside = np.take(rows, np.flatnonzero(~inside), axis=1) if shared else np.where(inside, -np.inf, rows)
    allowed = _allowed(fpr, size - members)
    place = np.maximum(outside.shape[1] - 1 - allowed, 0)
    ordered = np.partition(outside, np.unique(place), axis=1)
    border = np.take_along_axis(ordered, place[:, None], axis=1)
    # Members above the border: everybody above it, less the few non-members. Quicker than picking the members out.
    passed = np.count_nonzero(rows > border, axis=1) - np.count_nonzero(ordered[:, place.min() :] > border, axis=1)
    return np.where(allowed >= size - members, 1.0, passed / members).reshape(lead)[()]


def roc(scores: ArrayLike, member: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Every attainable (FPR, TPR) of one vector ``(N,)``, from (0, 0) to (1, 1), strictest threshold first."""
    pos, neg = _one(scores, member)
    cuts = np.append(np.unique(np.concatenate([pos, neg])), np.inf)[::-1]
    # The last cut is above everything, even above an infinite score.
    rates = [1 - np.searchsorted(side, cuts, side="left") / side.size for side in (neg, pos)]
    for rate in rates:
        rate[0] = 0.0
    return rates[0], rates[1]


def tie_mass(scores: ArrayLike) -> FloatArray:
    """Share of the samples that have the highest score, ``(..., N)`` to ``(...)``; 1/N when the top is unique."""
    values = np.asarray(scores, dtype=np.float64)
    return np.mean(values == values.max(axis=-1, keepdims=True), axis=-1)


def two_sided(scores: ArrayLike, member: ArrayLike, level: float = 0.95) -> TwoSided:
    """Kolmogorov-Smirnov distance of one vector, its border under the null, and the AUC of the better direction.

    ``ks`` above ``border`` (asymptotic, conservative under ties) rejects "members and non-members score alike".
    """
    pos, neg = _one(scores, member)
    border = float(special.kolmogi(1 - level)) * np.sqrt(1 / pos.size + 1 / neg.size)
    area = _auc(pos, neg)
    return TwoSided(_largest_gap(pos, neg), float(border), max(area, 1 - area))


# --- what low false positive rates can say -----------------------------------------------------------------------


def resolution(non_members: int) -> float:
    """The smallest FPR above zero that ``non_members`` samples can show."""
    return 1 / non_members


def is_resolved(fpr: float, non_members: int) -> bool:
    """Whether at least one false positive may occur: ``fpr * non_members >= 1``."""
    return bool(_allowed(fpr, np.asarray(non_members)) >= 1)


def tpr_label(fpr: float, non_members: int) -> str:
    """The honest name of a TPR: "TPR at 0.1 % FPR", or "TPR at zero false positives" where it is nothing else."""
    return f"TPR at {100 * fpr:g} % FPR" if is_resolved(fpr, non_members) else "TPR at zero false positives"


def non_members_to_certify(fpr: float, level: float = 0.95) -> int:
    """How many non-members without one false positive it takes to certify a true FPR below ``fpr``."""
    return int(np.ceil(np.log(1 - level) / np.log1p(-fpr)))


def clopper_pearson(k: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Exact two-sided interval of a binomial rate, elementwise for ``k`` successes of ``n``.

    It is also the interval of the *true* FPR of a threshold that let ``k`` of ``n`` non-members pass: see
    `threshold_law`.
    """
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
    if not 1 <= rank <= non_members:
        raise ValueError(f"rank must lie in 1..{non_members}, not {rank}")
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    low, high = special.betaincinv(rank, non_members - rank + 1, tails)
    return float(low), float(high)


def _binomial_quantile(q: float, n: int, p: float) -> int:
    """The smallest k with P(Bin(n, p) <= k) >= q."""
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
    pos, neg = _one(scores, member)
    tail = (1 - level) / 4
    fewest, most = (_binomial_quantile(q, neg.size, fpr) for q in (tail, 1 - tail))
    low = high = 0.0
    if fewest > 0:
        sure = pos.size - int(np.searchsorted(pos, neg[neg.size - fewest], side="left"))
        low = float(clopper_pearson(sure, pos.size, 1 - 2 * tail)[0])
    reachable = pos.size
    if most < neg.size:
        reachable -= int(np.searchsorted(pos, neg[neg.size - 1 - most], side="right"))
    high = float(clopper_pearson(reachable, pos.size, 1 - 2 * tail)[1])
    return Estimate(float(tpr(scores, member, fpr)), low, high, pos.size + neg.size, is_resolved(fpr, neg.size))


# --- intervals over samples --------------------------------------------------------------------------------------


def auc_interval(scores: ArrayLike, member: ArrayLike, level: float = 0.95) -> Estimate:
    """AUC of one vector with DeLong's interval over samples (DeLong et al. 1988), clipped to [0, 1].

    Where DeLong's variance is zero (perfect separation, constant scores) the interval reaches 1 - ((1-level)/2)^(1/m)
    to both sides, m the smaller class: as far as m samples without an exception can rule one out.
    """
    pos, neg = _one(scores, member)
    m = min(pos.size, neg.size)
    value = _auc(pos, neg)
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
    pos, neg = _one(scores, member)
    value = float(balanced_accuracy(scores, member, threshold))
    if threshold is None:
        below = above = sum(np.sqrt(np.log(4 / (1 - level)) / (2 * side.size)) for side in (pos, neg)) / 2
        return Estimate(value, max(0.5, value - below), min(1.0, value + above), pos.size + neg.size)
    right = np.array([np.sum(pos >= threshold), np.sum(neg < threshold)])
    total = np.array([pos.size, neg.size])
    lows, highs = clopper_pearson(right, total, level)
    below, above = np.hypot(*(right / total - lows)) / 2, np.hypot(*(highs - right / total)) / 2
    return Estimate(value, max(0.0, value - float(below)), min(1.0, value + float(above)), pos.size + neg.size)


# --- intervals over targets --------------------------------------------------------------------------------------


def over(
    values: ArrayLike,
    level: float = 0.95,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    design_effect: float = 1.0,
    resolved: bool = True,
) -> Estimate:
    """Mean of independent units ``(n,)`` (models, pairs, targets) with Student's interval, clipped to ``bounds``.

    ``design_effect`` multiplies the variance of the mean where the units depend on each other (`CROSSED`). One value
    has the whole of ``bounds`` for an interval and is not resolved. Raises ValueError on none and on NaN.
    """
    units = np.asarray(values, dtype=np.float64).reshape(-1)
    if units.size == 0 or np.isnan(units).any():
        raise ValueError("need at least one value and no NaN")
    mean = float(units.mean())
    if units.size == 1:
        return Estimate(mean, bounds[0], bounds[1], 1, resolved=False)
    error = units.std(ddof=1) * np.sqrt(design_effect / units.size)
    reach = float(special.stdtrit(units.size - 1, (1 + level) / 2) * error)
    return Estimate(mean, max(bounds[0], mean - reach), min(bounds[1], mean + reach), units.size, resolved)


def paired_difference(a: ArrayLike, b: ArrayLike, level: float = 0.95, design_effect: float = 1.0) -> Estimate:
    """Mean of ``a - b`` over units that were measured under both (same target, same seed); see `over`."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"paired values need one shape (n,), got {first.shape} and {second.shape}")
    return over(first - second, level, design_effect=design_effect)


def bootstrap(
    statistic: Callable[..., ArrayLike],
    *groups: ArrayLike,
    paired: bool = False,
    repeats: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Percentile bootstrap of ``statistic(*groups)``, resampling the first axis of each group: the independent unit.

    ``statistic`` has to work on a stack: it gets each group with a leading axis of resamples ``(R, n, ...)`` and
    returns ``(R,)``. Groups are resampled apart (members, non-members), or by the same draw when ``paired`` (scores
    and membership of the same targets). Seeded, so a report repeats. Not for extremes: a TPR that rests on fewer
    than ten false positives belongs to `tpr_at_fpr`.
    """
    data = [np.asarray(group) for group in groups]
    sizes = [len(group) for group in data]
    if not data or min(sizes) == 0 or (paired and len(set(sizes)) > 1):
        raise ValueError(f"need non-empty groups, of one length if paired; got lengths {sizes}")
    rng = np.random.default_rng(seed)
    chunk = max(1, 2**22 // sum(group.size for group in data))
    found = []
    for start in range(0, repeats, chunk):
        count = min(chunk, repeats - start)
        draws = [rng.integers(n, size=(count, n)) for n in (sizes[:1] if paired else sizes)]
        picks = draws * len(data) if paired else draws
        found.append(np.asarray(statistic(*(g[i] for g, i in zip(data, picks, strict=True))), dtype=np.float64))
    low, high = np.quantile(np.concatenate(found), [(1 - level) / 2, (1 + level) / 2])
    value = float(np.asarray(statistic(*(group[None] for group in data)), dtype=np.float64).reshape(()))
    return Estimate(value, float(low), float(high), min(sizes), resolved=min(sizes) > 1)


def audit(
    scores: ArrayLike, member: ArrayLike, fprs: Sequence[float] = HEADLINE_FPRS, crossed: bool = True
) -> dict[str, Estimate]:
    """One row of every table: AUC, best balanced accuracy and TPR at low FPRs.

    ``scores (T, N)`` of T targets gives means with Student's intervals over the targets; a TPR's interval is never
    narrower than the Clopper-Pearson interval of the pooled counts, or T zeros would claim certainty. ``crossed`` says
    that the targets are each other's shadows and widens the intervals by `CROSSED`; False is for targets with shadows
    of their own. Either speaks about new targets on this pool of samples. ``scores (N,)`` of a single target gives
    intervals over samples instead; ``(1, N)`` asks about new targets, which one cannot tell: [0, 1], not resolved.

    Keys: ``auc``, ``balanced_accuracy``, ``tpr_at_1%``, ``tpr_at_0.1%``, ``tpr_at_0.001%``. A TPR is not resolved where
    some target has fewer than 1/fpr non-members; `tpr_label` has its honest name.
    """
    values = np.asarray(scores, dtype=np.float64)
    keys = {fpr: f"tpr_at_{100 * fpr:g}%" for fpr in fprs}
    if values.ndim == 1:
        row = {"auc": auc_interval(values, member), "balanced_accuracy": balanced_accuracy_interval(values, member)}
        return row | {key: tpr_at_fpr(values, member, fpr) for fpr, key in keys.items()}
    if values.ndim != 2:
        raise ValueError(f"audit takes scores (T, N) or (N,), not {values.shape}")
    areas, accuracies = _each(values, member, _auc, _best_accuracy)
    mean_of = partial(over, bounds=(0, 1), design_effect=CROSSED if crossed else 1.0)
    row = {"auc": mean_of(areas), "balanced_accuracy": mean_of(accuracies)}
    members = np.broadcast_to(np.asarray(member).sum(axis=-1), values.shape[:1])
    fewest = int(values.shape[1] - members.max())
    for fpr, key in keys.items():
        rates = tpr(values, member, fpr)
        mean = mean_of(rates, resolved=is_resolved(fpr, fewest))
        low, high = clopper_pearson(np.rint(rates @ members), members.sum())
        row[key] = Estimate(mean.value, min(mean.low, float(low)), max(mean.high, float(high)), mean.n, mean.resolved)
    return row


# --- several claims in one --------------------------------------------------------------------------------------


def least(estimates: Iterable[Estimate]) -> Estimate:
    """The smallest of several quantities, for claims that have to hold of all: "each is above the border".

    The lower end is the smallest of the lower ends, so "low > border" has at most the error of one comparison
    (intersection-union); so has "high < border", which says that at least one lies below. Raises ValueError on none.
    """
    every = list(estimates)
    if not every:
        raise ValueError("need at least one estimate")
    return Estimate(
        min(e.value for e in every),
        min(e.low for e in every),
        min(e.high for e in every),
        min(e.n for e in every),
        all(e.resolved for e in every),
    )


def largest(estimates: Iterable[Estimate]) -> Estimate:
    """The mirror image of `least`, for "each is below the border"."""
    found = least(Estimate(-e.value, -e.high, -e.low, e.n, e.resolved) for e in estimates)
    return Estimate(-found.value, -found.high, -found.low, found.n, found.resolved)


# --- one run ----------------------------------------------------------------------------------------------------


def one_run_epsilon(canaries: int, guesses: int, correct: int, delta: float = 0.0, error: float = 0.05) -> float:
    """The largest epsilon that one training refutes, at error rate ``error`` (Steinke, Nasr & Jagielski 2023, Thm 5.2).

    ``canaries`` samples were each included by a fair coin of their own; of ``guesses`` guesses made, with their number
    fixed beforehand, ``correct`` were right. 0 where nothing is refuted. Raises ValueError on impossible counts.
    """
    if not 0 <= correct <= guesses <= canaries or not guesses:
        raise ValueError(f"impossible counts: {correct} right of {guesses} guesses about {canaries} canaries")

    def surplus(epsilon: float) -> float:
        """How far the chance of so many right guesses, under (epsilon, delta), lies above the error rate."""
        q = special.expit(epsilon)
        # Chance of at least k right of `guesses`, for k = 0 .. correct.
        tail = special.betainc(np.arange(1, correct + 1), guesses - np.arange(correct), q)
        at_least = np.concatenate([[1.0], tail])
        steps = np.arange(1, correct + 1)
        slack = float(np.max((at_least[correct - steps] - at_least[correct]) / steps, initial=0.0))
        return float(at_least[correct]) + 2 * canaries * delta * slack - error

    if surplus(0.0) >= 0:
        return 0.0
    from scipy.optimize import brentq

    return float(brentq(surplus, 0.0, 50.0, xtol=1e-9))
