"""Intervals over targets: what other models, trained the same way, would have given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.audit.correlations import rank_correlation
from leak_atlas.audit.estimates import Estimate
from leak_atlas.audit.rates import FloatArray, auc, balanced_accuracy, checked, is_resolved, tpr
from leak_atlas.audit.samples import clopper_pearson

__all__ = [
    "HEADLINE_FPRS",
    "audit",
    "exposed_alike",
    "mean_ci",
    "own_accuracy",
    "own_rates",
    "paired_difference",
    "tpr_over",
]

HEADLINE_FPRS = (0.01, 0.001, 0.00001)

# Fewer than so many targets that depend on each other more than this tell nothing about new ones.
# Variance of their mean, relative to independent targets: online LiRA's is 1.2 to 2.3 times from
# five targets on, up to 2.8 with four.
DEPENDENT, FEWEST = 2.0, 5

# what an `Attack` stores: scores (T, N), member (T, N) or (N,), perhaps thresholds (T,)
Scored = Mapping[str, Any]


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
    if units.size == 0 or np.isnan(units).any():
        raise ValueError("need at least one value and no NaN")
    mean = float(units.mean())
    if units.size == 1:
        return Estimate(mean, bounds[0], bounds[1], 1, resolved=False, bounds=bounds)
    error, df = float(units.std(ddof=1) * np.sqrt(design_effect / units.size)), units.size - 1
    reach = float(special.stdtrit(df, (1 + level) / 2)) * error
    resolved = resolved and (design_effect <= DEPENDENT or units.size >= FEWEST)
    low, high = max(bounds[0], mean - reach), min(bounds[1], mean + reach)
    return Estimate(mean, low, high, units.size, resolved, error, df, bounds=bounds)


def paired_difference(
    a: ArrayLike, b: ArrayLike, level: float = 0.95, design_effect: float = 1.0
) -> Estimate:
    """Mean of ``a - b`` over units that were measured under both (same target, same seed); see
    `mean_ci`.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"paired values need one shape (n,), got {first.shape} and {second.shape}")
    return mean_ci(first - second, level, design_effect=design_effect)


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
    each = [found] if isinstance(found, Mapping) else list(found)
    effect = design_effect if len(each) == 1 else 1.0
    row = {"auc": mean_ci(units(each, auc), bounds=(0, 1), design_effect=effect)}
    if (own := own_accuracy(each)) is not None:
        row["accuracy"], guess = mean_ci(own, bounds=(0, 1)), units(each, _majority)
        certain = float(guess.mean())
        row["majority"] = Estimate(certain, certain, certain, guess.size)
    row["best_balanced_accuracy"] = mean_ci(
        units(each, balanced_accuracy), bounds=(0, 1), design_effect=effect
    )
    return row | {f"tpr_at_{100 * fpr:g}%": tpr_over(each, fpr) for fpr in fprs}


def tpr_over(found: Sequence[Scored], fpr: float) -> Estimate:
    """Mean over targets of the `tpr` at an FPR of each target's own; interval as `audit` says."""
    rates, (low, high), resolved = pooled(found, fpr)
    mean = mean_ci(rates, bounds=(0, 1), resolved=resolved)
    return mean.widened(low, high)


def exposed_alike(one: Scored, other: Scored, members: bool = True) -> FloatArray:
    """Are the same samples exposed? Spearman's correlation of the scores that two attacks give, of
    each target `(T,)`.

    Among its members, or among its non-members: over both, membership alone would make them agree.
    The attacks judge the same targets on the same samples, ValueError where not. Where all scores
    are equal the correlation is 0.
    """
    first, second = (checked(each["scores"], each["member"]) for each in (one, other))
    inside = [np.broadcast_to(each[1], each[0].shape) for each in (first, second)]
    if not np.array_equal(inside[0], inside[1]) or not np.array_equal(
        one.get("index", ()), other.get("index", ())
    ):
        raise ValueError("two attacks agree or not on the same samples of the same targets")
    made = []
    for a, b, own in zip(first[0], second[0], inside[0] == members, strict=True):
        made.append(rank_correlation(a[own], b[own]))
    return np.array(made)


def units(found: Sequence[Scored], measure: Callable[[Any, Any], ArrayLike]) -> FloatArray:
    """``measure(scores, member)`` of each target of one experiment, or the means of several
    experiments: ``(n,)``.
    """
    return _means([measure(one["scores"], one["member"]) for one in found])


def pooled(found: Sequence[Scored], fpr: float) -> tuple[FloatArray, tuple[float, float], bool]:
    """TPR of each unit, Clopper-Pearson's interval of all targets' counts, and whether each target
    shows the FPR.
    """
    rates = [np.atleast_1d(tpr(one["scores"], one["member"], fpr)) for one in found]
    members = [
        np.broadcast_to(np.sum(one["member"], axis=-1), rate.shape)
        for one, rate in zip(found, rates, strict=True)
    ]
    hits = sum(rate @ count for rate, count in zip(rates, members, strict=True))
    low, high = clopper_pearson(np.rint(hits), sum(count.sum() for count in members))
    fewest = min(
        np.shape(one["scores"])[-1] - count.max() for one, count in zip(found, members, strict=True)
    )
    return _means(rates), (float(low), float(high)), is_resolved(fpr, int(fewest))


def own_accuracy(found: Sequence[Scored]) -> FloatArray | None:
    """Share of samples that the attacker's own threshold calls rightly, of each unit, `(n,)`; None:
    it names none.
    """
    own = [_right(one) for one in found]
    return _means(own) if all(one is not None for one in own) else None


def own_rates(found: Scored | Sequence[Scored]) -> tuple[FloatArray, FloatArray]:
    """TPR and FPR at the attacker's own thresholds, `(n,)` each, of the targets of an attack or of
    several experiments.

    ValueError where the attacker names no threshold.
    """
    each = [found] if isinstance(found, Mapping) else list(found)
    rates = []
    for one in each:
        if np.isnan(borders := np.asarray(one["thresholds"], np.float64)).any():
            raise ValueError("the attacker names no threshold")
        rows, inside, lead = checked(one["scores"], one["member"])
        called = rows >= np.broadcast_to(borders, lead).reshape(-1, 1)
        sides = (np.broadcast_to(side, rows.shape) for side in (inside, ~inside))
        rates.append([(called & side).sum(axis=1) / side.sum(axis=1) for side in sides])
    return _means([one[0] for one in rates]), _means([one[1] for one in rates])


def _means(each: Sequence[Any]) -> FloatArray:
    return np.atleast_1d(each[0]) if len(each) == 1 else np.array([np.mean(one) for one in each])


def _majority(scores: ArrayLike, member: ArrayLike) -> FloatArray:
    share = np.mean(np.asarray(member, np.float64), axis=-1)
    return np.broadcast_to(np.maximum(share, 1 - share), np.shape(scores)[:-1])


def _right(found: Scored) -> FloatArray | None:
    """Of one experiment, `(T,)`."""
    borders = found.get("thresholds")
    if borders is None or np.isnan(borders).any():
        return None
    rows, inside, lead = checked(found["scores"], found["member"])
    called = rows >= np.broadcast_to(np.asarray(borders, np.float64), lead).reshape(-1, 1)
    return np.mean(called == inside, axis=-1).reshape(lead)
