"""When membership is encoded: each sample's path through the plane of false and true positives.

For each sample and checkpoint, the plane has how often an attack calls it a member of networks that
trained on it (TPR) and of the others (FPR). The definitions of Chen et al. 2025 (*Dynamics*) are
not published: those here are ours. E counts checkpoints, J networks, n samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from leak_atlas.audit import BoolArray, FloatArray, IntArray, cutoff_at_fpr
from leak_atlas.localization.over_time import (
    Half,
    Trajectory,
    generalisation_gaps,
    interval,
    samples_of,
)

Rule = float | Literal["balanced"]  # an FPR, or where balanced accuracy is largest
Form = Literal["counted", "fitted"]

LOW, MIDDLE, HIGH = 0, 1, 2  # states of a sample


# --- rates of each sample -----------------------------------------------------------------------


def thresholds(trajectory: Trajectory, rule: Rule = 0.1) -> FloatArray:
    """The attack's threshold at each checkpoint, `(E,)`, one for all samples and networks.

    The lowest that at most a share `rule` of all non-members reach, or ("balanced") the one with
    the largest balanced accuracy.
    """
    if rule == "balanced":
        member = trajectory.member
        return np.array([_most_accurate(scores, member) for scores in trajectory.scores])
    outside = trajectory.scores[:, ~trajectory.member]
    # A threshold is reached, a cutoff is exceeded.
    return np.nextafter(cutoff_at_fpr(outside, rule), np.inf)


def _most_accurate(scores: FloatArray, member: BoolArray) -> float:
    """The threshold with the largest balanced accuracy, of scores `(J, n)`."""
    candidates = np.unique(scores)
    inside = np.sort(scores[member])
    outside = np.sort(scores[~member])
    tnr = np.searchsorted(outside, candidates) / len(outside)
    fnr = np.searchsorted(inside, candidates) / len(inside)
    return candidates[np.argmax(tnr - fnr)]


@np.errstate(invalid="ignore", divide="ignore")
def plane(
    trajectory: Trajectory,
    rule: Rule = 0.1,
    form: Form = "counted",
) -> FloatArray:
    """FPR and TPR of each sample at each checkpoint, `(E, 2, n)`, at the threshold of a rule.

    NaN where a sample has no networks on a side ("fitted": fewer than two). "counted" rates have
    steps of 2 / J with J networks half of which trained on a sample, and a standard error of up to
    1 / sqrt(2 J). "fitted" is the upper tail of a normal distribution with the mean and standard
    deviation of the sample's scores on either side.
    """
    rates = _counted if form == "counted" else _fitted
    threshold = thresholds(trajectory, rule)[:, None]
    sides = ~trajectory.member, trajectory.member
    return np.stack([rates(trajectory.scores, side, threshold) for side in sides], axis=1)


def _counted(
    scores: FloatArray,
    side: BoolArray,
    threshold: FloatArray,
) -> FloatArray:
    """The share of a side's networks whose scores reach a threshold, `(E, n)`.

    Scores `(E, J, n)`, `side (J, n)`, `threshold (E, 1)`.
    """
    above = scores >= threshold[:, None]
    return (above & side).sum(axis=1) / side.sum(axis=0)


def _fitted(
    scores: FloatArray,
    side: BoolArray,
    threshold: FloatArray,
) -> FloatArray:
    """The upper tail at a threshold of normal distributions of a side's scores, `(E, n)`."""
    number = side.sum(axis=0)
    mean = _sum_over(side, scores) / number
    deviations = scores - mean[:, None]
    variance = _sum_over(side, np.square(deviations)) / (number - 1)
    return special.ndtr((mean - threshold) / np.sqrt(variance))


def _sum_over(side: BoolArray, values: FloatArray) -> FloatArray:
    """Sums of values `(E, J, n)` over the networks of a `side (J, n)`: `(E, n)`."""
    return np.einsum("ejn,jn->en", values, side.astype(float))  # quicker than sum(where=side)


def advantage(path: FloatArray) -> FloatArray:
    """TPR minus FPR of each sample, `(E, n)`, of a plane `(E, 2, n)`."""
    return path[:, 1] - path[:, 0]


def encoding_epoch(
    path: FloatArray,
    epochs: IntArray,
    part: float = 0.5,
    least: float = 0.2,
) -> FloatArray:
    """The epoch at which each sample first has a part of its last advantage, `(n,)`.

    Linear between checkpoints. `path (E, 2, n)` is a plane. A sample whose last advantage is below
    `least` is not encoded: NaN.
    """
    gained = advantage(path)
    reached = np.full(gained.shape[1], np.nan)
    for sample, own in enumerate(gained.T):
        if own[-1] >= least:
            reached[sample] = _when_reached(part * own[-1], own, epochs)
    return reached


def states(path: FloatArray) -> IntArray:
    """The state of each sample at each checkpoint, `(E, n)`.

    LOW: an advantage below .2; HIGH: a TPR of at least .8 at an FPR of at most .2; MIDDLE: neither.
    """
    fpr = path[:, 0]
    tpr = path[:, 1]
    exposed = (tpr >= 0.8 - 1e-9) & (fpr <= 0.2 + 1e-9)  # rates are not exact
    state = np.where(advantage(path) < 0.2, LOW, MIDDLE)
    state[exposed] = HIGH
    return state


def entry_shares(state: IntArray) -> FloatArray:
    """Of the samples that are not HIGH, the share that is HIGH at the next checkpoint, `(E - 1,)`.

    `state (E, n)` is what `states` gives. NaN where all samples are HIGH.
    """
    high = state == HIGH
    outside = ~high[:-1]
    entered = outside & high[1:]
    with np.errstate(invalid="ignore"):
        return entered.sum(axis=1) / outside.sum(axis=1)


def mean_entry_share(trajectory: Trajectory, rule: Rule = 0.1) -> float:
    """The mean of `entry_shares` over all intervals between checkpoints."""
    return float(entry_shares(states(plane(trajectory, rule))).mean())


# --- how far and how fast membership is encoded -------------------------------------------------


def mean_advantage(trajectory: Trajectory, rule: Rule = 0.1) -> FloatArray:
    """The mean advantage over samples at each checkpoint, `(E,)`."""
    return advantage(plane(trajectory, rule)).mean(axis=1)


def high_share(trajectory: Trajectory, rule: Rule = 0.1) -> FloatArray:
    """The share of samples in the state HIGH at each checkpoint, `(E,)`."""
    return (states(plane(trajectory, rule)) == HIGH).mean(axis=1)


def encoding_speed(
    path: FloatArray,
    epochs: IntArray,
) -> FloatArray:
    """Length of each sample's path `(E, 2, n)` per epoch, `(n,)`.

    Noise moves a sample too: subtract the speed in a permutation null.
    """
    steps = np.diff(path, axis=0)
    length = np.linalg.norm(steps, axis=1).sum(axis=0)
    return length / (epochs[-1] - epochs[0])


def mean_speed(
    trajectory: Trajectory,
    null: Trajectory,
    rule: Rule = 0.1,
) -> float:
    """The mean `encoding_speed` over samples, minus that in the permutation null."""
    speed = encoding_speed(plane(trajectory, rule), trajectory.epochs)
    noise = encoding_speed(plane(null, rule), null.epochs)
    return float(speed.mean() - noise.mean())


def delay(
    trajectory: Trajectory,
    rule: Rule = 0.1,
) -> float:
    """The mean share of the training at which the final mean advantage is gained.

    .5 where it grows at a constant rate; larger where it comes late.
    """
    growth = mean_advantage(trajectory, rule)
    growth = growth - growth[0]
    duration = trajectory.epochs[-1] - trajectory.epochs[0]
    mean_growth = np.trapezoid(growth, trajectory.epochs) / duration
    return float(1 - mean_growth / (growth[-1] or np.nan))


def epochs_to_reach(
    one: Trajectory,
    other: Trajectory,
    part: float = 0.9,
    rule: Rule = 0.1,
) -> FloatArray:
    """Epochs at which two mean advantages first reach the same level, and how they differ.

    `(3,)`: the one's epoch, the other's, and the other's minus the one's. The level is a part of
    the one's last mean advantage. Linear between checkpoints.
    """
    first = mean_advantage(one, rule)
    second = mean_advantage(other, rule)
    level = part * first[-1]
    epoch = _when_reached(level, first, one.epochs)
    other_epoch = _when_reached(level, second, other.epochs)
    return np.array([epoch, other_epoch, other_epoch - epoch])


def advantage_at_gap(
    one: Trajectory,
    one_loss: Trajectory,
    other: Trajectory,
    other_loss: Trajectory,
    rule: Rule = 0.1,
) -> float:
    """Mean advantage of one minus the other's, at an equal generalisation gap in loss.

    `one_loss` and `other_loss` have minus the loss of each sample as scores. The gap is the smaller
    of both last ones. The trajectory that ends there has its last advantage, the other one that
    where its gap first is as wide; linear between checkpoints.
    """
    first = mean_advantage(one, rule)
    second = mean_advantage(other, rule)
    gaps = generalisation_gaps(one_loss)
    other_gaps = generalisation_gaps(other_loss)
    if gaps[-1] > other_gaps[-1]:
        return float(_when_reached(other_gaps[-1], gaps, first) - second[-1])
    return float(first[-1] - _when_reached(gaps[-1], other_gaps, second))


def spread_at_advantage(
    one: Trajectory,
    null: Trajectory,
    other: Trajectory,
    other_null: Trajectory,
    rule: Rule = 0.1,
) -> float:
    """`advantage_spread` of one at the other's last mean advantage, minus the other's.

    The one's spread is that where its mean advantage first is as large; linear between
    checkpoints.
    """
    level = mean_advantage(other, rule)[-1]
    spread = advantage_spread(one, null, rule)
    reached = _when_reached(level, mean_advantage(one, rule), spread)
    return float(reached - advantage_spread(other, other_null, rule)[-1])


def _when_reached(
    level: float,
    levels: FloatArray,
    values: NDArray,
) -> Any:
    """`values (E,)` where `levels (E,)` first reach a level."""
    return np.interp(level, np.maximum.accumulate(levels), values)


# --- how samples differ -------------------------------------------------------------------------


def advantage_spread(
    trajectory: Trajectory,
    null: Trajectory,
    rule: Rule = 0.1,
) -> FloatArray:
    """The standard deviation over samples of their true advantages at each checkpoint, `(E,)`.

    Of the variance of the counted advantages, that of counting is subtracted: p (1 - p) / (m - 1)
    for a rate p of m networks on each side. So is what remains in the permutation null, since
    networks that are each other's shadows do not decide independently. 0 where the rest is
    negative.
    """
    excess = _variance_beyond_counting(trajectory, rule) - _variance_beyond_counting(null, rule)
    return np.sqrt(np.maximum(excess, 0.0))


def _variance_beyond_counting(trajectory: Trajectory, rule: Rule) -> FloatArray:
    """`(E,)`."""
    path = plane(trajectory, rule)
    inside = trajectory.member.sum(axis=0)
    outside = len(trajectory.member) - inside
    networks = np.stack([outside, inside])  # on each side, (2, n)
    variances = path * (1 - path) / (networks - 1)
    counting = variances.sum(axis=1)
    spread = advantage(path).var(axis=1, ddof=1)
    return spread - counting.mean(axis=1)


# --- early detection ----------------------------------------------------------------------------


def highest(values: FloatArray, share: float = 0.1) -> BoolArray:
    """The `share` of samples with the largest of `values (..., n)`; of equal ones the first."""
    number = round(share * values.shape[-1])
    rank = stats.rankdata(-values, method="ordinal", axis=-1)
    return rank <= number


def flagged_early(flagged: BoolArray, vulnerable: BoolArray) -> FloatArray:
    """Of the samples `vulnerable (n,)` in the end, the share that is `flagged (E, n)` before,
    `(E,)`.
    """
    return (flagged & vulnerable).sum(axis=1) / vulnerable.sum()


# --- independent halves -------------------------------------------------------------------------


def across_halves(
    measure: Callable[[Any, Any, IntArray], Any],
    halvings: Sequence[tuple[Trajectory, Trajectory]],
    then: Callable[[FloatArray], Any] = np.asarray,
    rule: Rule = 0.1,
) -> Any:
    """A measure of one half of the networks against the other: Estimates.

    The halves share neither targets nor shadows; `halvings` are those of `Population.halvings`, as
    `over_time.read` gives them. `measure` takes the fitted advantages `(E, n)` of two halves and
    the samples `index (n,)`, and gives a number or an array. The mean is over halvings and both
    orders; `then` is applied to it. The intervals are those of `over_time.interval`: a group is
    left out of each half that it is in.
    """
    groups = np.unique(np.concatenate([half.group for pair in halvings for half in pair]))
    sets = [np.searchsorted(groups, np.unique(half.group)) for pair in halvings for half in pair]

    def measured(left_out: IntArray, samples: Half | None) -> Any:
        """The measure without some groups of networks, on a half of the samples."""
        values = []
        for pair in halvings:
            parts = []
            for half in pair:
                kept = ~np.isin(half.group, groups[left_out])
                parts.append(half.part(kept, samples_of(samples, half)))
            one, other = (advantage(plane(part, rule, "fitted")) for part in parts)
            index = parts[0].index
            values.append(measure(one, other, index))
            values.append(measure(other, one, index))
        return then(np.mean(values, axis=0))

    return interval(measured, sets)
