"""Threshold attacks on one signal (Yeom et al. 2018; Song & Mittal 2021). The shadow models alone
choose the thresholds.

Signals have the orientation "larger = more likely member" (`signals.score`). The gap attack is one
threshold on ``correctness``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leak_atlas.attacks.case import Case, Scored, infer
from leak_atlas.attacks.signals import score
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.recipe import Threshold


def best_threshold(signal: FloatArray, member: BoolArray) -> tuple[float, float]:
    """The threshold with the best balanced accuracy of ``signal >= threshold``, and that accuracy.

    ``signal (K,)``, ``member (K,)``. A threshold lies halfway between two neighbouring values. Of
    equally good thresholds the middle one counts. Without members or without non-members it is NaN
    and the accuracy 0.
    """
    levels, place = np.unique(signal, return_inverse=True)
    members = np.bincount(place[member], minlength=len(levels))
    nonmembers = np.bincount(place[~member], minlength=len(levels))
    if not members.any() or not nonmembers.any():
        return np.nan, 0.0
    # Cut i calls every sample from level i on a member. `worth` is balanced accuracy times
    # 2 * members * nonmembers: whole numbers compare without rounding.
    members_above = members[::-1].cumsum()[::-1]
    nonmembers_below = nonmembers.cumsum() - nonmembers
    worth = members_above * nonmembers.sum() + nonmembers_below * members.sum()
    best_cuts = np.flatnonzero(worth == worth.max())
    cut = best_cuts[len(best_cuts) // 2]
    accuracy = worth[cut] / (2 * members.sum() * nonmembers.sum())
    below = levels[max(cut - 1, 0)]
    above = levels[cut]
    with np.errstate(invalid="ignore"):
        middle = 0.5 * below + 0.5 * above
    # Neighbouring floats and infinite values have no midpoint between them.
    return float(middle if below < middle < np.inf else above), float(accuracy)


def threshold(
    target: FloatArray,
    labels: NDArray,
    shadows: FloatArray,
    shadow_labels: NDArray,
    member: BoolArray,
    attacker: Threshold,
) -> Scored:
    """Scores and threshold: one threshold on the signal (Yeom et al. 2018), or one for each class
    (Song & Mittal 2021).

    Signals ``target (N,)`` with ``labels (N,)``; ``shadows (K,)`` of samples of any shadow model,
    with ``shadow_labels (K,)`` and ``member (K,)``. With one threshold the score is the signal. By
    class the score is signal - tau_label, its threshold 0; a class without members or without
    non-members among the shadow models takes the threshold of all classes. With few samples per
    class tau overfits: report the attack with one threshold too. ``sign="shadows"`` is the adaptive
    attacker on a defence under which members may have the *larger* loss: the shadow models choose
    the signal's sign. Raises ValueError if a side is missing.
    """
    if member.all() or not member.any():
        raise ValueError("the shadow models need at least one member and one non-member")
    sign = 1
    overall, accuracy = best_threshold(shadows, member)
    if attacker.sign == "shadows":
        turned, turned_accuracy = best_threshold(-shadows, member)
        if turned_accuracy > accuracy:
            sign, overall = -1, turned
    if not attacker.by_class:
        return Scored(sign * target, overall)

    thresholds = np.full(int(labels.max()) + 1, overall)
    for label in np.unique(labels):
        rows = shadow_labels == label
        of_class, accuracy = best_threshold(sign * shadows[rows], member[rows])
        if accuracy:
            thresholds[label] = of_class
    return Scored(sign * target - thresholds[labels], 0.0)


@infer.register(Threshold)
def _(attacker: Threshold, case: Case) -> Scored:
    logits, labels = case.target_arrays("logits", "labels")
    (shadow_logits, shadow_labels), member = case.training_set("logits", "labels")
    return threshold(
        score(attacker.signal, logits, labels),
        labels,
        score(attacker.signal, shadow_logits, shadow_labels),
        shadow_labels,
        member,
        attacker,
    )
