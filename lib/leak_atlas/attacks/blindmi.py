"""BlindMI (Hui et al. 2021): its differential comparison with generated non-members. The attack
uses no shadow models and learns no threshold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.special import softmax

from leak_atlas.attacks.case import Case, Scored, infer
from leak_atlas.audit import FloatArray
from leak_atlas.recipe import BlindMI

# The 19 divisors of half the squared distance in the published code, one Gaussian kernel each.
SIGMAS = (*(10.0**k for k in range(-6, 0)), 1, 5, 10, 15, 20, 25, 30, 35, 100, 1e3, 1e4, 1e5, 1e6)
LEAST = 1e-4  # a smaller MMD counts as this one


def features(logits: ArrayLike, labels: ArrayLike) -> FloatArray:
    """The posterior of the label and the two largest posteriors, ``(N, 3)``, of ``logits (N, C)``
    and ``labels (N,)``.
    """
    posterior = softmax(np.asarray(logits, np.float64), axis=1)
    columns = np.asarray(labels)[:, None]
    of_label = np.take_along_axis(posterior, columns, axis=1)
    ascending = np.sort(posterior, axis=1)
    two_largest = ascending[:, :-3:-1]
    return np.concatenate([of_label, two_largest], axis=1)


def kernel(points: FloatArray, others: FloatArray) -> FloatArray:
    """Sum of 19 Gaussian kernels of ``(N, d)`` and ``(M, d)``: ``(N, M)``."""
    square = cdist(points, others, "sqeuclidean")
    gaussians = [np.exp(-square / (2 * sigma)) for sigma in SIGMAS]
    return np.sum(gaussians, axis=0)


def differential(targets: FloatArray, outside: FloatArray) -> FloatArray:
    """The decrease ``(n,)`` of the MMD between targets ``(n, d)`` and non-members ``(m, d)`` when
    one target moves to the non-members.

    A negative decrease identifies a non-member. Each round computes the decrease of every remaining
    target against the same two sets, then removes all identified non-members at once and keeps
    their values. As in the published code, the set of non-members stays the generated one. The MMD
    is the biased V-statistic. A move changes each sum of kernels by one row, so no sum is computed
    again.
    """
    within = kernel(targets, targets)
    diagonal = np.diag(within)
    to_outside = kernel(targets, outside).sum(axis=1)
    outside_sum = kernel(outside, outside).sum()
    m = len(outside)
    remaining = np.ones(len(targets), bool)
    scores = np.zeros(len(targets))
    while remaining.sum() > 1:  # no target moves out of a set of one
        n = remaining.sum()
        to_targets = within[:, remaining].sum(axis=1)
        target_sum = to_targets[remaining].sum()
        cross_sum = to_outside[remaining].sum()
        before = target_sum / n**2 + outside_sum / m**2 - 2 * cross_sum / (n * m)

        target_part = (target_sum - 2 * to_targets + diagonal) / (n - 1) ** 2
        outside_part = (outside_sum + 2 * to_outside + diagonal) / (m + 1) ** 2
        cross = cross_sum - to_outside + to_targets - diagonal
        after = target_part + outside_part - 2 * cross / ((n - 1) * (m + 1))

        decrease = max(LEAST, before) - np.maximum(LEAST, after)
        scores[remaining] = decrease[remaining]
        identified = remaining & (decrease < 0)
        if not identified.any():
            break
        remaining &= ~identified
    return scores


def blindmi(
    logits: ArrayLike,
    labels: ArrayLike,
    generated: ArrayLike,
    generated_labels: ArrayLike,
    attacker: BlindMI,
) -> FloatArray:
    """BlindMI scores ``(N,)`` of samples with ``logits (N, C)`` and ``labels (N,)``, compared with
    the logits and labels of generated non-members. A score of at least 0 means member.
    """
    points = features(logits, labels)
    outside = features(generated, generated_labels)
    order = np.random.default_rng(attacker.seed).permutation(len(points))
    scores = np.empty(len(points))
    for start in range(0, len(points), attacker.batch):
        batch = order[start : start + attacker.batch]
        scores[batch] = differential(points[batch], outside)
    return scores


@infer.register(BlindMI)
def _(attacker: BlindMI, case: Case) -> Scored:
    logits, labels = case.target_arrays("logits", "labels")
    scores = blindmi(
        logits,
        labels,
        case.target["generated"],
        case.target["generated_labels"],
        attacker,
    )
    return Scored(scores, threshold=0.0)
