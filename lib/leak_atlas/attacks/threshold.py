"""Threshold attacks on one signal (Yeom et al. 2018; Song & Mittal 2021). The shadows alone choose
the thresholds.

Signals have the orientation "larger = more likely member" (`signals.score`). The attack averages
several queries first. The gap attack is one threshold on ``correctness``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leak_atlas.attacks.case import Case, Scored, infer
from leak_atlas.attacks.shadows import paired
from leak_atlas.attacks.signals import score
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.engine.compute import Arrays
from leak_atlas.recipe import Threshold


def best_thresholds(
    signal: FloatArray,
    member: BoolArray,
    group: NDArray[np.intp],
    groups: int,
) -> tuple[FloatArray, FloatArray]:
    """Per group, the threshold with the best balanced accuracy of ``signal >= threshold``, and that
    accuracy.

    ``signal``, ``member``, ``group``: ``(K,)``; returns two ``(groups,)`` arrays. A threshold lies
    halfway between two neighbouring values. Of equally good thresholds the middle one counts, so
    the order of the samples has no effect. A group without members or without non-members gets NaN
    and 0. One sort: O(K log K).
    """
    order = np.lexsort((signal, group))
    ends = np.bincount(group, minlength=groups).cumsum()
    thresholds = np.empty(groups)
    accuracies = np.empty(groups)
    for number, rows in enumerate(np.split(order, ends[:-1])):
        thresholds[number], accuracies[number] = _best(signal[rows], member[rows])
    return thresholds, accuracies


def _best(signal: FloatArray, member: BoolArray) -> tuple[float, float]:
    """Threshold and balanced accuracy of one group, whose signals are in rising order."""
    members = int(member.sum())
    nonmembers = int((~member).sum())
    if not members or not nonmembers:
        return np.nan, 0.0
    # Cut i calls every sample from position i on a member. `worth` is balanced accuracy times
    # 2 * members * nonmembers: whole numbers compare without rounding.
    members_below: np.ndarray = np.cumsum(member) - member
    nonmembers_below = np.arange(len(signal)) - members_below
    worth = (members - members_below) * nonmembers + nonmembers_below * members
    equal_to_last = signal[1:] == signal[:-1]
    worth[1:][equal_to_last] = -1  # no cut between equal signals
    best_cuts = np.flatnonzero(worth == worth.max())
    cut = best_cuts[len(best_cuts) // 2]
    accuracy = worth[cut] / (2 * members * nonmembers)
    below = signal[max(cut - 1, 0)]
    above = signal[cut]
    with np.errstate(invalid="ignore"):
        middle = 0.5 * below + 0.5 * above
    # Neighbouring floats and infinite values have no midpoint between them.
    return float(middle if below < middle < np.inf else above), accuracy


def threshold(
    target: ArrayLike,
    labels: ArrayLike,
    shadows: ArrayLike,
    shadow_labels: ArrayLike,
    member: ArrayLike,
    attacker: Threshold,
) -> Scored:
    """Scores and threshold: one threshold on the signal (Yeom et al. 2018), or one for each class
    (Song & Mittal 2021).

    ``target (N[, A])``, ``labels (N,)``; ``shadows (M, N'[, A])`` with ``shadow_labels (N',)`` and
    ``member (M, N')`` may be of other samples; NaN there = not evaluated. With one threshold the
    score is the signal. By class the score is signal - tau_label, its threshold 0; a class without
    members or without non-members among the shadows takes the threshold of all classes. With few
    samples per class tau overfits: report the attack with one threshold too. ``sign="shadows"`` is
    the adaptive attacker on a defence under which members may have the *larger* loss: the shadows
    choose the signal's sign. ValueError where shapes do not match or a side is missing.
    """
    signals, inside = paired(shadows, member)
    mean_signals = signals.reshape(*inside.shape, -1).mean(axis=2)
    # Each evaluated pair of a shadow and a sample is one observation.
    evaluated = ~np.isnan(mean_signals)
    values = mean_signals[evaluated]
    group = np.broadcast_to(shadow_labels, inside.shape)[evaluated]
    inside = inside[evaluated]
    if inside.all() or not inside.any():
        raise ValueError("the shadows need at least one member and one non-member")

    one_group = np.zeros_like(group)
    options = []
    for sign in (1.0, -1.0) if attacker.sign == "shadows" else (1.0,):
        (tau,), (accuracy,) = best_thresholds(sign * values, inside, one_group, 1)
        options.append((accuracy, sign, tau))
    _, sign, overall = max(options)  # of equal accuracies the one of sign +1

    queries = np.asarray(target, np.float64)
    scores = sign * queries.reshape(len(queries), -1).mean(axis=1)
    if not attacker.by_class:
        return Scored(scores, overall)
    classes = np.asarray(labels)
    count = int(max(classes.max(), group.max())) + 1
    by_class, _ = best_thresholds(sign * values, inside, group, count)
    thresholds = np.where(np.isnan(by_class), overall, by_class)
    return Scored(scores - thresholds[classes], 0.0)


@infer.register(Threshold)
def _(attacker: Threshold, case: Case) -> Scored:
    def signal(arrays: Arrays, which: np.ndarray) -> FloatArray:
        logits = arrays["logits"][which]
        labels = arrays["labels"][which]
        values = np.full(len(logits), np.nan)
        known = ~np.isnan(logits).any(axis=1)
        values[known] = score(attacker.signal, logits[known], labels[known])
        return values

    shadows, member, shadow_labels = case.known(signal)
    return threshold(
        signal(case.target, case.pool),
        case.target["labels"][case.pool],
        shadows,
        shadow_labels,
        member,
        attacker,
    )
