"""Intervals over targets: what other models, trained the same way, would have given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.audit.correlations import rank_correlation
from leak_atlas.audit.estimates import Estimate
from leak_atlas.audit.rates import (
    BoolArray,
    FloatArray,
    auc,
    balanced_accuracy,
    checked,
    is_resolved,
    tpr,
)
from leak_atlas.audit.samples import clopper_pearson

__all__ = [
    "HEADLINE_FPRS",
    "audit",
    "deviations",
    "exposed_alike",
    "jackknife",
    "mean_ci",
    "own_accuracy",
    "own_rates",
    "paired_difference",
    "share_of_chosen",
]

HEADLINE_FPRS = (0.01, 0.001, 0.00001)

# Fewer than so many targets that depend on each other more than this tell nothing about new ones.
# Variance of their mean, relative to independent targets: online LiRA's is 1.2 to 2.3 times from
# five targets on, up to 2.8 with four.
DEPENDENT, FEWEST = 2.0, 5

# what an `Attack` stores: scores (T, n), member (T, n) or (n,), perhaps thresholds (T,)
Scored = Mapping[str, Any]


@dataclass(frozen=True)
class TargetScores:
    """What an `Attack` stores, a row a target: `scores (T, n)`, `member (T, n)`, `thresholds (T,)`
    (None where the attacker names none).
    """

    scores: FloatArray
    member: BoolArray
    thresholds: FloatArray | None

    @property
    def non_members(self) -> int:
        """The smallest number of non-members of a target."""
        return int((~self.member).sum(axis=1).min())

    def called(self) -> BoolArray:
        """Whom the attacker calls members, `(T, n)`. Raises ValueError if it names no threshold."""
        if self.thresholds is None:
            raise ValueError("the attacker names no threshold")
        return self.scores >= self.thresholds[:, None]


def by_target(stored: Scored | Sequence[Scored]) -> list[TargetScores]:
    """One attack, or one for each of several experiments. ValueError as `auc`."""
    experiments = []
    for one in [stored] if isinstance(stored, Mapping) else stored:
        scores, member, _ = checked(one["scores"], one["member"])
        thresholds = np.asarray(one.get("thresholds", np.nan), np.float64)
        named = not np.isnan(thresholds).any()
        experiments.append(TargetScores(scores, member, thresholds if named else None))
    return experiments


def mean_ci(
    values: ArrayLike,
    level: float = 0.95,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    design_effect: float = 1.0,
    resolved: bool = True,
) -> Estimate:
    """Mean of independent units ``(n,)`` (models, pairs, targets) with Student's interval, clipped
    to ``bounds``.

    ``design_effect`` multiplies the variance of the mean where the units depend on each other
    (`Attack.design_effect`). One value has the whole of ``bounds`` for an interval and is not
    resolved; nor are four units or fewer whose design effect is above 2. Raises ValueError on none
    and on NaN.
    """
    from scipy import special

    units = np.asarray(values, dtype=np.float64).reshape(-1)
    number = units.size
    if number == 0 or np.isnan(units).any():
        raise ValueError("need at least one value and no NaN")
    least, most = bounds
    mean = float(units.mean())
    if number == 1:
        return Estimate(mean, least, most, 1, resolved=False, bounds=bounds)
    if design_effect > DEPENDENT and number < FEWEST:
        resolved = False
    error = float(units.std(ddof=1) * np.sqrt(design_effect / number))
    df = number - 1
    reach = float(special.stdtrit(df, (1 + level) / 2)) * error
    low = max(least, mean - reach)
    high = min(most, mean + reach)
    return Estimate(mean, low, high, number, resolved, error, df, bounds=bounds)


def jackknife(
    statistic: Callable[[Any], float], n: int, design_effect: float = 1.0, resolved: bool = True
) -> Estimate:
    """A number made of ``n`` independent units, with an interval from leaving out one at a time
    (Efron 1982, chapter 3).

    ``statistic`` takes the indices of the units that it may use. The value is that of all units;
    its error is the jackknife's, with Student's law of ``n - 1`` degrees of freedom. Other
    arguments and one unit: as `mean_ci`.
    """
    every = np.arange(n)
    value = statistic(every)
    if n == 1:
        return mean_ci([value], resolved=resolved)
    without = np.empty(n)
    for unit in every:
        without[unit] = statistic(np.delete(every, unit))
    influence = (n - 1) * (without.mean() - without)
    return mean_ci(value + influence, design_effect=design_effect, resolved=resolved)


def share_of_chosen(true: ArrayLike, chosen: ArrayLike) -> Estimate:
    """Mean over units of the share of a unit's chosen cases that are true.

    `true` and `chosen` are ``(cases, units)``. A unit without a chosen case is left out; without
    any unit nothing is resolved.
    """
    counted = np.asarray(chosen, bool)
    among = counted.sum(axis=0)
    hits = (np.asarray(true, bool) & counted).sum(axis=0)
    some = among > 0
    if not some.any():
        return Estimate(np.nan, 0.0, 1.0, 0, resolved=False, bounds=(0, 1))
    return mean_ci(hits[some] / among[some], bounds=(0, 1))


def paired_difference(a: ArrayLike, b: ArrayLike, design_effect: float = 1.0) -> Estimate:
    """Mean of ``a - b`` over units that were measured under both (same target, same seed); see
    `mean_ci`.
    """
    first = np.asarray(a, dtype=np.float64)
    second = np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"paired values need one shape (n,), got {first.shape} and {second.shape}")
    return mean_ci(first - second, design_effect=design_effect)


def deviations(values: ArrayLike) -> FloatArray:
    """How far each of n units lies from their median, `(n,)`.

    Their paired difference tells which of two variants varies more from run to run (Brown &
    Forsythe 1974).
    """
    measured = np.asarray(values, np.float64)
    return np.abs(measured - np.median(measured))


def audit(
    found: Scored | Sequence[Scored],
    fprs: Sequence[float] = HEADLINE_FPRS,
    design_effect: float = 1.0,
) -> dict[str, Estimate]:
    """One row of every table: AUC, accuracies and TPR at low FPRs, of what an `Attack` stores.

    Means with Student's intervals over its T targets: what new targets on this pool of samples
    would have given. Of one target that cannot be told: [0, 1], not resolved (`auc_interval` and
    `tpr_at_fpr` are over its samples). Several experiments, each with its own targets, are a unit
    each. ``design_effect`` widens the AUC's and the best accuracy's interval where the targets are
    each other's shadows (`Attack.design_effect`; simulated for online LiRA: 1.1 to 2.3 and 1.2 to
    1.9); a TPR needs none. A TPR's interval is never narrower than the Clopper-Pearson interval of
    the pooled counts, or T zeros would claim certainty.

    Keys: ``auc``; ``accuracy`` at the attacker's own thresholds, where it names them, beside
    ``majority``, what a guess of the larger side reaches; ``best_balanced_accuracy``, at the
    threshold that is best on these very scores (an oracle's); ``tpr_at_1%``, ``tpr_at_0.1%``,
    ``tpr_at_0.001%``. `tpr_label` has a TPR's honest name.
    """
    experiments = by_target(found)
    effect = design_effect if len(experiments) == 1 else 1.0
    row = {"auc": mean_ci(units(experiments, auc), bounds=(0, 1), design_effect=effect)}
    if all(one.thresholds is not None for one in experiments):
        row["accuracy"] = mean_ci(own_accuracy(experiments), bounds=(0, 1))
        guess = units(experiments, _majority)
        share = float(guess.mean())
        row["majority"] = Estimate(share, share, share, guess.size)
    best = units(experiments, balanced_accuracy)
    row["best_balanced_accuracy"] = mean_ci(best, bounds=(0, 1), design_effect=effect)
    for fpr in fprs:
        row[tpr_key(fpr)] = tpr_mean(experiments, fpr)
    return row


def tpr_key(fpr: float) -> str:
    """The name of a TPR in a row of `audit`."""
    return f"tpr_at_{100 * fpr:g}%"


def tpr_mean(found: Sequence[TargetScores], fpr: float) -> Estimate:
    """Mean over targets of the `tpr` at an FPR of each target's own; interval as `audit` says."""
    rates = []
    hits = 0.0
    members = 0
    for one in found:
        rate = tpr(one.scores, one.member, fpr)
        inside = one.member.sum(axis=1)
        rates.append(rate)
        hits += rate @ inside
        members += inside.sum()
    low, high = clopper_pearson(np.rint(hits), members)
    resolved = is_resolved(fpr, min(one.non_members for one in found))
    mean = mean_ci(_means(rates), bounds=(0, 1), resolved=resolved)
    return mean.widened(float(low), float(high))


def exposed_alike(one: Scored, other: Scored) -> FloatArray:
    """Are the same samples exposed? Spearman's correlation of the scores that two attacks give, of
    each target `(T,)`.

    Among its members: over all samples, membership alone would make them agree.
    The attacks judge the same targets on the same samples, otherwise ValueError. Where all scores
    are equal the correlation is 0.
    """
    first, second = by_target([one, other])
    same_members = np.array_equal(first.member, second.member)
    same_samples = np.array_equal(one.get("index", ()), other.get("index", ()))
    if not same_members or not same_samples:
        raise ValueError("two attacks agree or not on the same samples of the same targets")
    correlations = []
    for own, others, inside in zip(first.scores, second.scores, first.member, strict=True):
        correlations.append(rank_correlation(own[inside], others[inside]))
    return np.array(correlations)


def units(found: Sequence[TargetScores], measure: Callable[[Any, Any], ArrayLike]) -> FloatArray:
    """``measure(scores, member)`` of each target of one experiment, or the means of several
    experiments: ``(n,)``.
    """
    return _means([measure(one.scores, one.member) for one in found])


def own_accuracy(found: Sequence[TargetScores]) -> FloatArray:
    """Share of samples that the attacker's own threshold calls rightly, of each unit, `(n,)`.
    Raises ValueError if it names none.
    """
    accuracies = []
    for one in found:
        right = one.called() == one.member
        accuracies.append(right.mean(axis=1))
    return _means(accuracies)


def own_rates(found: Scored | Sequence[Scored]) -> tuple[FloatArray, FloatArray]:
    """TPR and FPR at the attacker's own thresholds, `(n,)` each, of the targets of an attack or of
    several experiments.

    Raises ValueError if the attacker names no threshold.
    """
    hits = []
    alarms = []
    for one in by_target(found):
        called = one.called()
        hits.append(called.mean(axis=1, where=one.member))
        alarms.append(called.mean(axis=1, where=~one.member))
    return _means(hits), _means(alarms)


def _means(experiments: Sequence[Any]) -> FloatArray:
    """The targets of one experiment, or the mean of each of several."""
    if len(experiments) == 1:
        return np.atleast_1d(experiments[0])
    return np.array([np.mean(one) for one in experiments])


def _majority(scores: ArrayLike, member: BoolArray) -> FloatArray:
    share = member.mean(axis=1)
    return np.maximum(share, 1 - share)
