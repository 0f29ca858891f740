"""Threshold attacks on one signal (Yeom et al. 2018; Song & Mittal 2021), thresholds chosen on
shadows alone.

Signals come in the orientation "larger = more likely member" (`signals.score`); several queries are
averaged first. The gap attack is one threshold on ``correctness``.
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
    signal: FloatArray, member: BoolArray, group: NDArray[np.intp], groups: int
) -> tuple[FloatArray, FloatArray]:
    """Per group, the threshold with the best balanced accuracy of ``signal >= threshold``, and that
    accuracy.

    ``signal``, ``member``, ``group``: ``(K,)``; returns two ``(groups,)`` arrays. A threshold lies
    halfway between two neighbouring values; of equally good ones the middle one is taken, so the
    order of the samples plays no part. A group that lacks members or non-members gets NaN and 0.
    One sort: O(K log K).
    """
    ends = np.bincount(group, minlength=groups).cumsum()[:-1]
    each = [_best(signal[own], member[own]) for own in np.split(np.lexsort((signal, group)), ends)]
    tau, accuracy = zip(*each, strict=True)
    return np.array(tau), np.array(accuracy)


def _best(signal: FloatArray, member: BoolArray) -> tuple[float, float]:
    """Threshold and balanced accuracy of one group, whose signals are in rising order."""
    ins, outs = int(member.sum()), int((~member).sum())
    if not ins or not outs:
        return np.nan, 0.0
    # Cut i calls everything from position i on a member. Whole numbers compare without rounding.
    ins_below: np.ndarray = np.cumsum(member) - member
    worth = (ins - ins_below) * outs + (np.arange(len(signal)) - ins_below) * ins
    worth[1:][signal[1:] == signal[:-1]] = -1
    ties = np.flatnonzero(worth == worth.max())
    pick = ties[len(ties) // 2]
    below, above = signal[max(pick - 1, 0)], signal[pick]
    with np.errstate(invalid="ignore"):
        middle = 0.5 * below + 0.5 * above
    # Between neighbouring floats, and beside an infinite value, the midpoint falls on the wrong
    # one.
    return float(middle if below < middle < np.inf else above), worth[pick] / (2 * ins * outs)


def threshold(
    target: ArrayLike,
    labels: ArrayLike,
    shadows: ArrayLike,
    shadow_labels: ArrayLike,
    member: ArrayLike,
    attacker: Threshold,
) -> Scored:
    """One threshold for all, and the signal itself for a score (Yeom et al. 2018); or a threshold
    for each class.

    ``target (N[, A])``, ``labels (N,)``; ``shadows (M, N'[, A])`` with ``shadow_labels (N',)`` and
    ``member (M, N')`` may be of other samples; NaN there = not evaluated. By class (Song & Mittal
    2021) the score is signal - tau_label, its threshold 0; a class that the shadows lack on either
    side takes the threshold of all. With few samples per class tau overfits: report the attack with
    one threshold beside it. ``sign="shadows"`` is the adaptive attacker of a defence under which
    members may have the *larger* loss: the shadows say which way the signal points. ValueError
    where shapes do not match or a side is missing.
    """
    values, inside = paired(shadows, member)
    values = values.reshape(*inside.shape, -1).mean(axis=2)
    known = ~np.isnan(values)
    # Every evaluated (shadow, sample) is one of a long sample.
    values, group, inside = (
        values[known],
        np.broadcast_to(shadow_labels, inside.shape)[known],
        inside[known],
    )
    if inside.all() or not inside.any():
        raise ValueError("the shadows need at least one member and one non-member")
    options = []
    for turn in (1.0, -1.0) if attacker.sign == "shadows" else (1.0,):
        (tau,), (accuracy,) = best_thresholds(turn * values, inside, np.zeros_like(group), 1)
        options.append((accuracy, turn, tau))
    _, turn, overall = max(options)  # an even score keeps the sign: +1 is the larger
    own, classes = np.asarray(target, np.float64), np.asarray(labels)
    scores = turn * own.reshape(len(own), -1).mean(axis=1)
    if not attacker.by_class:
        return Scored(scores, overall)
    taus, _ = best_thresholds(
        turn * values, inside, group, int(max(classes.max(), group.max())) + 1
    )
    return Scored(scores - np.where(np.isnan(taus), overall, taus)[classes], 0.0)


@infer.register(Threshold)
def _(attacker: Threshold, case: Case) -> Scored:
    def signal(arrays: Arrays, which: np.ndarray) -> FloatArray:
        found = np.full(int(which.sum()), np.nan)
        known = ~np.isnan(arrays["logits"][which]).any(axis=1)  # what the state was asked about
        found[known] = score(
            attacker.signal, arrays["logits"][which][known], arrays["labels"][which][known]
        )
        return found

    others, member, labels = case.known(signal)
    return threshold(
        signal(case.target, case.pool),
        case.target["labels"][case.pool],
        others,
        labels,
        member,
        attacker,
    )
