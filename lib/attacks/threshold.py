"""Threshold attacks on one signal (Yeom et al. 2018; Song & Mittal 2021), thresholds chosen on shadows alone.

Signals come in the orientation "larger = more likely member" (`signals.score`); several queries are averaged first.
The gap attack is `global_threshold` on ``correctness``.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lib.attacks.case import Case, Scored, infer
from lib.attacks.signals import score
from lib.audit import BoolArray, FloatArray
from lib.compute import Arrays
from lib.recipe import Threshold

Sign = Literal["fixed", "shadows"]


def best_thresholds(
    signal: FloatArray, member: BoolArray, group: NDArray[np.intp], groups: int
) -> tuple[FloatArray, FloatArray]:
    """Per group, the threshold with the best balanced accuracy of ``signal >= threshold``, and that accuracy.

    ``signal``, ``member``, ``group``: ``(K,)``; returns two ``(groups,)`` arrays. A threshold lies halfway between two
    neighbouring values; of equally good ones the middle one is taken, so the order of the samples plays no part. A
    group that lacks members or non-members gets NaN and 0. One sort: O(K log K).
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
    # Between neighbouring floats, and beside an infinite value, the midpoint falls on the wrong one.
    return float(middle if below < middle < np.inf else above), worth[pick] / (2 * ins * outs)


def _chosen(
    shadows: ArrayLike, member: ArrayLike, labels: ArrayLike, groups: int, sign: Sign
) -> tuple[float, float, FloatArray]:
    """Sign, global threshold and thresholds of the groups that labels name (global where a group is empty)."""
    Threshold(sign=sign)  # refuses an unknown name
    values, inside = np.asarray(shadows, np.float64), np.asarray(member)
    if inside.dtype != np.bool_ or inside.ndim != 2 or values.shape[:2] != inside.shape or values.ndim > 3:
        raise ValueError(f"need shadows (M, N[, A]) and Boolean member (M, N), got {values.shape} and {inside.shape}")
    values = values.reshape(*inside.shape, -1).mean(axis=2)
    known = ~np.isnan(values)
    # Every evaluated (shadow, sample) is one of a long sample.
    values, group, inside = values[known], np.broadcast_to(labels, inside.shape)[known], inside[known]
    if inside.all() or not inside.any():
        raise ValueError("the shadows need at least one member and one non-member")
    everyone = np.zeros(values.size, dtype=np.intp)
    options = []
    for turn in (1.0, -1.0) if sign == "shadows" else (1.0,):
        tau, accuracy = best_thresholds(turn * values, inside, everyone, 1)
        options.append((float(accuracy[0]), turn, float(tau[0])))
    _, turn, tau_all = max(options)  # an even score keeps the sign: +1 is the larger
    tau_group, _ = best_thresholds(turn * values, inside, group, groups)
    return turn, tau_all, np.where(np.isnan(tau_group), tau_all, tau_group)


def _mean_query(target: ArrayLike) -> FloatArray:
    own = np.asarray(target, np.float64)
    return own.reshape(len(own), -1).mean(axis=1)


def global_threshold(target: ArrayLike, shadows: ArrayLike, member: ArrayLike, *, sign: Sign = "fixed") -> Scored:
    """One threshold for all: the score is the signal itself (Yeom et al. 2018).

    ``target (N[, A])``; ``shadows (M, N'[, A])`` with ``member (M, N')`` may be of other samples; NaN there = not
    evaluated. ``sign="shadows"`` is the adaptive attacker of a defence under which members may have the *larger* loss:
    the shadows say which way the signal points.
    """
    turn, tau, _ = _chosen(shadows, member, np.intp(0), 1, sign)
    return Scored(turn * _mean_query(target), tau)


def class_thresholds(
    target: ArrayLike,
    labels: ArrayLike,
    shadows: ArrayLike,
    member: ArrayLike,
    *,
    shadow_labels: ArrayLike | None = None,
    sign: Sign = "fixed",
) -> Scored:
    """A threshold per class (Song & Mittal 2021): score = signal - tau_label, threshold 0.

    As `global_threshold`, with ``labels (N,)``, and ``shadow_labels (N',)`` where the shadows saw other samples. A
    class that the shadows lack on either side takes the global threshold. With few samples per class tau overfits:
    report the global attack beside it.
    """
    own = np.asarray(labels)
    theirs = own if shadow_labels is None else np.asarray(shadow_labels)
    turn, _, tau = _chosen(shadows, member, theirs, int(max(own.max(), theirs.max())) + 1, sign)
    return Scored(turn * _mean_query(target) - tau[own], 0.0)


@infer.register(Threshold)
def _(attacker: Threshold, case: Case) -> Scored:
    def signal(arrays: Arrays, which: np.ndarray) -> FloatArray:
        found = np.full(int(which.sum()), np.nan)
        known = ~np.isnan(arrays["logits"][which]).any(axis=1)  # what the state was asked about
        found[known] = score(attacker.signal, arrays["logits"][which][known], arrays["labels"][which][known])
        return found

    mine, (others, member, labels) = signal(case.target, case.pool), case.known(signal)
    if not attacker.by_class:
        return global_threshold(mine, others, member, sign=attacker.sign)
    own = case.labels[case.pool]
    return class_thresholds(mine, own, others, member, shadow_labels=labels, sign=attacker.sign)
