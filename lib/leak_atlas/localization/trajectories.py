"""When membership is encoded: each sample's path through the plane of false and true positives.

For each sample and checkpoint, the plane has how often an attack calls it a member of networks that
trained on it (TPR) and of the others (FPR). The definitions of Chen et al. 2025 (*Dynamics*) are
not published: those here are ours. E counts checkpoints, J networks, n samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from leak_atlas.audit import BoolArray, Estimate, FloatArray, IntArray, cutoff_at_fpr
from leak_atlas.localization.over_time import Half, Trajectory, interval, jackknife, samples_of

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


def states(
    path: FloatArray,
    low: float = 0.2,
    high: float = 0.8,
) -> IntArray:
    """The state of each sample at each checkpoint, `(E, n)`.

    LOW: an advantage below `low`; HIGH: a TPR of at least `high` at an FPR of at most 1 - `high`;
    MIDDLE: neither.
    """
    fpr, tpr = path[:, 0], path[:, 1]
    exposed = (tpr >= high - 1e-9) & (fpr <= 1 - high + 1e-9)  # rates are not exact
    state = np.where(advantage(path) < low, LOW, MIDDLE)
    state[exposed] = HIGH
    return state


def transitions(state: IntArray) -> FloatArray:
    """Of the samples in each state, the share in each one at the next checkpoint, `(E - 1, 3, 3)`.

    `state (E, n)` is what `states` gives. NaN for a state without samples.
    """
    from sklearn.metrics import confusion_matrix

    labels = LOW, MIDDLE, HIGH
    counts = np.array(
        [confusion_matrix(now, later, labels=labels) for now, later in pairwise(state)]
    )
    with np.errstate(invalid="ignore"):
        return counts / counts.sum(axis=2, keepdims=True)


def entry_shares(state: IntArray) -> FloatArray:
    """Of the samples that are not HIGH, the share that is HIGH at the next checkpoint, `(E - 1,)`.

    `state (E, n)` is what `states` gives. NaN where all samples are HIGH.
    """
    high = state == HIGH
    outside = ~high[:-1]
    entered = outside & high[1:]
    with np.errstate(invalid="ignore"):
        return entered.sum(axis=1) / outside.sum(axis=1)


# --- how far and how fast membership is encoded -------------------------------------------------


def mean_advantage(
    trajectory: Trajectory,
    rule: Rule = 0.1,
    form: Form = "counted",
) -> FloatArray:
    """The mean advantage over samples at each checkpoint, `(E,)`."""
    return advantage(plane(trajectory, rule, form)).mean(axis=1)


def encoding_speed(
    path: FloatArray,
    epochs: IntArray,
    signed: bool = False,
) -> FloatArray:
    """Length of each sample's path per epoch, `(n,)`; `signed`: growth of its advantage per epoch.

    Noise moves a sample too: subtract the speed in a permutation null.
    """
    if signed:
        gained = advantage(path)
        moved = gained[-1] - gained[0]
    else:
        moved = _length(path)
    return moved / (epochs[-1] - epochs[0])


def _length(path: FloatArray) -> FloatArray:
    """The length of a path `(E, 2)`, or of n paths `(E, 2, n)`."""
    steps = np.diff(path, axis=0)
    return np.linalg.norm(steps, axis=1).sum(axis=0)


def centre_of_mass(path: FloatArray) -> FloatArray:
    """Mean FPR and TPR over samples at each checkpoint, `(E, 2)`.

    With networks on halves of a pool these are the attack's own rates.
    """
    return path.mean(axis=2)


def displacement(path: FloatArray) -> float:
    """Distance of the centre of mass at the last checkpoint from that at the first."""
    centre = centre_of_mass(path)
    moved = centre[-1] - centre[0]
    return float(np.linalg.norm(moved))


ENCODING = ("displacement", "way of the centre", "way of a sample", "gain", "delay")


def encoding(
    trajectory: Trajectory,
    null: Trajectory,
    rule: Rule = 0.1,
    form: Form = "counted",
) -> FloatArray:
    """How far and how fast membership is encoded, `(5,)`, named by `ENCODING`.

    Displacement of the centre of mass; the length of its path, and the mean length of a sample's,
    each minus that in the permutation null; the growth of the mean advantage. These are over the
    whole training. Delay: the mean fraction of training at which the advantage is gained; .5 where
    it grows at a constant rate.
    """
    path = plane(trajectory, rule, form)
    noise = plane(null, rule, form)
    centre_length = _length(centre_of_mass(path)) - _length(centre_of_mass(noise))
    sample_length = _length(path).mean() - _length(noise).mean()

    growth = advantage(path).mean(axis=1)
    growth = growth - growth[0]
    duration = trajectory.epochs[-1] - trajectory.epochs[0]
    mean_growth = np.trapezoid(growth, trajectory.epochs) / duration
    delay = 1 - mean_growth / (growth[-1] or np.nan)
    return np.array(
        [
            displacement(path),
            centre_length,
            sample_length,
            growth[-1],
            delay,
        ]
    )


def encoding_contrast(
    one: Trajectory,
    null: Trajectory,
    other: Trajectory,
    other_null: Trajectory,
    rule: Rule = 0.1,
    form: Form = "counted",
) -> dict[str, Estimate]:
    """How much more `other` encodes than `one`, with jackknife intervals.

    Differences by the names of `ENCODING`; then, by "doublings of" each but the delay, log2 of the
    ratio (1: twice as much; NaN where one of the two is not positive).
    """

    def measure(*four: Trajectory) -> FloatArray:
        first = encoding(four[0], four[1], rule, form)
        second = encoding(four[2], four[3], rule, form)
        positive = ((first > 0) & (second > 0))[:4]
        ratio = np.full(4, np.nan)
        np.divide(second[:4], first[:4], out=ratio, where=positive)
        return np.append(second - first, np.log2(ratio))

    doublings = [f"doublings of {name}" for name in ENCODING[:4]]
    estimates = jackknife(measure, one, null, other, other_null)
    return dict(zip([*ENCODING, *doublings], estimates, strict=True))


def difference_at_level(
    values: FloatArray,
    levels: FloatArray,
    other_values: FloatArray,
    other_levels: FloatArray,
) -> float:
    """The difference of two trajectories' values at a level: the one's minus the other's.

    The level is the other's last one; the one's value is that where it first reaches this level.
    Arrays `(E,)`: values and levels of the one, and of the other. Linear between checkpoints, and
    constant beyond the one's levels.
    """
    value = _when_reached(other_levels[-1], levels, values)
    return float(value - other_values[-1])


def _when_reached(
    level: Any,
    levels: FloatArray,
    values: NDArray,
) -> Any:
    """`values (E,)` where `levels (E,)` first reach a level, or several."""
    return np.interp(level, np.maximum.accumulate(levels), values)


def epochs_to_reach(
    one: Trajectory,
    other: Trajectory,
    parts: Sequence[float] = (0.5, 0.75, 0.9),
    rule: float = 0.1,
) -> FloatArray:
    """Epochs at which two mean advantages first reach parts of the one's last, and the difference.

    `(3 * len(parts),)`: the one's epochs, the other's, and the other's minus the one's. Linear
    between checkpoints.
    """
    first, second = mean_advantage(one, rule), mean_advantage(other, rule)
    levels = np.array(parts) * first[-1]
    early = _when_reached(levels, first, one.epochs)
    late = _when_reached(levels, second, other.epochs)
    return np.concatenate([early, late, late - early])


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
    networks = np.stack([len(trajectory.member) - inside, inside])  # on each side, (2, n)
    counting = (path * (1 - path) / (networks - 1)).sum(axis=1)
    return advantage(path).var(axis=1, ddof=1) - counting.mean(axis=1)


def entropy(path: FloatArray, grid: int | Sequence[int] = 10) -> FloatArray:
    """Spatial entropy at each checkpoint, `(E,)`, in nats: of the shares of samples in each cell.

    The plane has `grid` x `grid` cells. Of several grids the mean, which depends less on where
    borders of cells fall between counted rates.
    """
    entropies = []
    for size in np.atleast_1d(grid):
        fpr, tpr = np.moveaxis(_cell(path, size), 1, 0)
        counts = [np.bincount(cells) for cells in fpr * size + tpr]
        entropies.append([special.entr(count / count.sum()).sum() for count in counts])
    return np.mean(entropies, axis=0)


def _cell(rate: FloatArray, grid: int) -> IntArray:
    """The row or column of a rate; a rate of 1 is in the last one."""
    return np.minimum((rate * grid).astype(int), grid - 1)


def entropy_of_equal_samples(
    trajectory: Trajectory,
    rule: Rule = 0.1,
    grid: int | Sequence[int] = 10,
) -> FloatArray:
    """The expected `entropy` at each checkpoint, `(E,)`, if all samples had equal true rates.

    The rates are those of the centre of mass; decisions of different networks are assumed
    independent, and each side to have its mean number of networks. Exact for finite samples.
    """
    inside = round(trajectory.member.sum(axis=0).mean())
    outside = round((~trajectory.member).sum(axis=0).mean())
    terms = _entropy_terms(len(trajectory.index))
    expected = []
    for fpr, tpr in centre_of_mass(plane(trajectory, rule)):
        entropies = []
        for size in np.atleast_1d(grid):
            columns = _cell_shares(outside, fpr, size)
            rows = _cell_shares(inside, tpr, size)
            likely = np.outer(columns, rows)  # the probability of each cell
            entropies.append(np.interp(likely, *terms).sum())
        expected.append(np.mean(entropies))
    return np.array(expected)


def _cell_shares(networks: int, rate: float, grid: int) -> FloatArray:
    """The probability of each row or column `(grid,)` for a sample with a true rate."""
    counts = np.arange(networks + 1)
    likely = stats.binom.pmf(counts, networks, rate)
    cells = _cell(counts / networks, grid)
    return np.bincount(cells, weights=likely, minlength=grid).astype(float)


@cache
def _entropy_terms(n: int) -> tuple[FloatArray, FloatArray]:
    """Probabilities of a cell, and what it adds in the mean to the entropy of `n` samples."""
    likely = np.geomspace(1e-9, 1, 500)
    counts = np.arange(1, n + 1)
    term = -counts / n * np.log(counts / n)
    expected = stats.binom.pmf(counts, n, likely[:, None]) @ term
    return np.append(0, likely), np.append(0, expected)


def entropy_above_null(
    trajectory: Trajectory,
    null: Trajectory,
    rule: Rule = 0.1,
    grid: int | Sequence[int] = 10,
    form: Literal["counted", "fitted", "equals"] = "counted",
) -> float:
    """`entropy` at the last checkpoint minus the null's; "equals": that of equal samples."""

    def last(one: Trajectory) -> float:
        if form == "equals":
            return entropy_of_equal_samples(one, rule, grid)[-1]
        path = plane(one, rule, form)
        return entropy(path[-1:], grid)[0]

    return float(last(trajectory) - last(null))


def clusters(
    path: FloatArray,
    count: int = 3,
    seed: int = 0,
) -> IntArray:
    """Groups of samples with similar paths, `(n,)`, numbered by their mean advantage at the end.

    k-means on all rates of a plane `(E, 2, n)`, or on advantages `(E, n)` where only membership
    should separate groups.
    """
    from sklearn.cluster import KMeans

    features = path.reshape(-1, path.shape[-1]).T
    group = KMeans(count, n_init=3, random_state=seed).fit_predict(features)
    last = (path if path.ndim == 2 else advantage(path))[-1]
    means = [last[group == number].mean() for number in range(count)]
    rank = np.argsort(np.argsort(means))
    return rank[group]


# --- early detection ----------------------------------------------------------------------------


def highest(values: FloatArray, share: float = 0.1) -> BoolArray:
    """The `share` of samples with the largest of `values (..., n)`; of equal ones the first."""
    number = round(share * values.shape[-1])
    rank = stats.rankdata(-values, method="ordinal", axis=-1)
    return rank <= number


def early_detection(flagged: BoolArray, vulnerable: BoolArray) -> dict[str, FloatArray]:
    """How many of the samples `vulnerable (n,)` in the end are `flagged (E, n)` before.

    Arrays `(E,)`: `share` of the vulnerable that are flagged (NaN where none is vulnerable);
    `precision`, the share of the flagged that are vulnerable (NaN where none is flagged);
    `chance`, the share that the same number of random flags would find.
    """
    both = (flagged & vulnerable).sum(axis=1)
    number = flagged.sum(axis=1)
    with np.errstate(invalid="ignore"):
        share = both / vulnerable.sum()
        precision = both / number
    return {
        "share": share,
        "precision": precision,
        "chance": number / len(vulnerable),
    }


# --- independent halves -------------------------------------------------------------------------


def across_halves(
    measure: Callable[[Any, Any, IntArray], Any],
    halvings: Sequence[tuple[Trajectory, Trajectory]],
    then: Callable[[FloatArray], Any] = np.asarray,
    rule: Rule = 0.1,
    seen: Callable[[FloatArray], Any] = advantage,
) -> Any:
    """A measure of one half of the networks against the other: Estimates.

    The halves share neither targets nor shadows; `halvings` are those of `Population.halvings`, as
    `over_time.read` gives them. `measure` takes the fitted advantages `(E, n)` of two halves, or what
    else `seen` makes of their planes, and the samples `index (n,)`, and gives a number or several.
    The mean is over halvings and both orders; `then` is applied to it. The intervals are those of
    `over_time.interval`: a group is left out of each half that it is in.
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
            one, other = (seen(plane(part, rule, "fitted")) for part in parts)
            index = parts[0].index
            values.append(measure(one, other, index))
            values.append(measure(other, one, index))
        return then(np.mean(values, axis=0))

    return interval(measured, sets)
