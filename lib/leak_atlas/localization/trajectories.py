"""When membership is encoded: each sample's path through the plane of false and true positives.

For each sample and checkpoint, the plane has how often an attack calls it a member of networks that
trained on it (TPR) and of the others (FPR). Chen et al. 2025 (*Dynamics*) publish no definitions:
those here are ours. E is the number of checkpoints, J of networks, n of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
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

Rule = float | Literal["balanced"]  # an FPR, or the threshold with the largest balanced accuracy
Form = Literal["counted", "fitted"]

LOW, MIDDLE, HIGH = 0, 1, 2  # states of a sample
EXPOSED = 0.2  # least advantage of a sample that is not LOW
ROUNDING = 1e-9  # of differences of counted rates


# --- rates of each sample -----------------------------------------------------------------------


def thresholds(trajectory: Trajectory, rule: Rule = 0.1) -> FloatArray:
    """The attack's threshold at each checkpoint, `(E,)`, one for all samples and networks.

    Of an FPR: the lowest threshold that at most this share of all non-members reach. "balanced":
    the threshold with the largest balanced accuracy.
    """
    if rule == "balanced":
        member = trajectory.member
        return np.array([_most_accurate(scores, member) for scores in trajectory.scores])
    outside = trajectory.scores[:, ~trajectory.member]
    # A score equal to a threshold counts as a member, one equal to a cutoff does not.
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

    A sample's networks on one side are those that trained on it, on the other side the rest.
    "counted" is the share of a side's networks that reach the threshold: if half of the J networks
    trained on a sample, it has steps of 2 / J and a standard error of up to 1 / sqrt(2 J). "fitted"
    is the upper tail of a normal distribution with the mean and standard deviation of the sample's
    scores on a side. NaN where a side has no network ("fitted": fewer than two).
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
    """P(score >= threshold) of a normal distribution of a side's scores, `(E, n)`."""
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
) -> FloatArray:
    """The epoch at which each sample first has half of its last advantage, `(n,)`.

    Linear between checkpoints. `path (E, 2, n)` is a plane. A sample whose last advantage is below
    .2 is not encoded: NaN.
    """
    gained = advantage(path)
    reached = np.full(gained.shape[1], np.nan)
    for sample, own in enumerate(gained.T):
        if own[-1] >= EXPOSED - ROUNDING:
            reached[sample] = _when_reached(0.5 * own[-1], own, epochs)
    return reached


def states(path: FloatArray) -> IntArray:
    """The state of each sample at each checkpoint, `(E, n)`.

    LOW: an advantage below .2; HIGH: a TPR of at least .8 at an FPR of at most .2; MIDDLE: neither.
    """
    fpr = path[:, 0]
    tpr = path[:, 1]
    state = np.where(advantage(path) < EXPOSED - ROUNDING, LOW, MIDDLE)
    state[(tpr >= 0.8 - ROUNDING) & (fpr <= 0.2 + ROUNDING)] = HIGH
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
    """The mean fraction of training at which the final mean advantage is gained.

    .5 if the advantage grows at a constant rate, more if it grows late. NaN if the last advantage
    equals the first.
    """
    growth = mean_advantage(trajectory, rule)
    growth = growth - growth[0]
    duration = trajectory.epochs[-1] - trajectory.epochs[0]
    if growth[-1] == 0:
        return float("nan")
    mean_growth = np.trapezoid(growth, trajectory.epochs) / duration
    return float(1 - mean_growth / growth[-1])


def epochs_to_reach(
    one: Trajectory,
    other: Trajectory,
    part: float = 0.9,
    rule: Rule = 0.1,
) -> FloatArray:
    """Epochs at which two mean advantages first reach the same level, and how they differ.

    `(3,)`: the epoch of `one`, that of `other`, and the second minus the first. The level is `part`
    of the last mean advantage of `one`. Linear between checkpoints. If `other` never reaches the
    level, its epoch is its last one.
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
    """Mean advantage of `one` minus that of `other`, at an equal generalisation gap in loss.

    `one_loss` and `other_loss` have minus the loss of each sample as scores. The gap compared is
    the smaller of the two last gaps. The trajectory whose last gap this is enters with its last
    advantage. The other one enters with its advantage where its gap first reaches this size, linear
    between checkpoints.
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
    """`advantage_spread` of `one` at the last mean advantage of `other`, minus that of `other`.

    The spread of `one` is taken where its mean advantage first reaches that of `other`, linear
    between checkpoints; if it never does, at its last checkpoint.
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
    """`values (E,)` where `levels (E,)` first reach a level, linear between checkpoints.

    The last value if they never reach it.
    """
    reached = np.maximum.accumulate(levels)
    first = np.searchsorted(reached, level)
    if first < len(reached) and reached[first] == level:
        return values[first]  # of equal levels `np.interp` takes the last
    return np.interp(level, reached, values)


# --- how samples differ -------------------------------------------------------------------------


def advantage_spread(
    trajectory: Trajectory,
    null: Trajectory,
    rule: Rule = 0.1,
) -> FloatArray:
    """The standard deviation over samples of their true advantages at each checkpoint, `(E,)`.

    The variance of counted advantages has two parts that are not differences between samples. The
    first is binomial noise: p (1 - p) / (m - 1) for a rate p of m networks, on each side. The
    second is what remains in the permutation null, because networks that are each other's shadow
    models do not decide independently. Both are subtracted. 0 if the difference is negative.
    """
    excess = _variance_beyond_counting(trajectory, rule) - _variance_beyond_counting(null, rule)
    return np.sqrt(np.maximum(excess, 0.0))


def _variance_beyond_counting(trajectory: Trajectory, rule: Rule) -> FloatArray:
    """Variance of counted advantages over samples, minus binomial noise, `(E,)`."""
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
    """Whether a sample is in the `share` with the largest `values (..., n)`; of ties the first."""
    number = round(share * values.shape[-1])
    rank = stats.rankdata(-values, method="ordinal", axis=-1)
    return rank <= number


def flagged_early(flagged: BoolArray, vulnerable: BoolArray) -> FloatArray:
    """Share of the samples `vulnerable (n,)` at the end that are `flagged (E, n)`, `(E,)`."""
    return (flagged & vulnerable).sum(axis=1) / vulnerable.sum()


# --- independent halves -------------------------------------------------------------------------


def across_halves(
    measure: Callable[[Any, Any, IntArray], Any],
    halvings: Sequence[tuple[Trajectory, Trajectory]],
    then: Callable[[FloatArray], Any] = np.asarray,
    rule: Rule = 0.1,
) -> Any:
    """A measure that compares one half of the networks with the other, as Estimates.

    The halves share neither targets nor shadow models; `halvings` are those of
    `Population.halvings`, as `over_time.read` gives them. `measure` takes the fitted advantages
    `(E, n)` of two halves and the samples `index (n,)`, and gives a number or an array. Its mean is
    over all halvings and both orders of the halves; `then` is applied to this mean. Intervals are
    those of `over_time.interval`. A group that they leave out is left out of each half that has it.
    """
    halves = list(chain.from_iterable(halvings))
    groups = np.unique(np.concatenate([half.group for half in halves]))
    sets = [np.searchsorted(groups, np.unique(half.group)) for half in halves]

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
