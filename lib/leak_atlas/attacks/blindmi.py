"""BlindMI's differential comparison with generated non-members (Hui et al. 2021): no shadows, no
threshold to learn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.special import softmax

from leak_atlas.attacks.case import Case, Scored, infer
from leak_atlas.audit import FloatArray
from leak_atlas.recipe import BlindMI

# What the published code divides half the squared distance by; one kernel is the sum over these.
SIGMAS = (*(10.0**k for k in range(-6, 0)), 1, 5, 10, 15, 20, 25, 30, 35, 100, 1e3, 1e4, 1e5, 1e6)
LEAST = 1e-4  # MMDs below it are as good as this


def features(logits: ArrayLike, labels: ArrayLike) -> FloatArray:
    """The posterior of the label and the two largest ones, ``(N, 3)``, of ``logits (N, C)`` and
    ``labels (N,)``.
    """
    p = softmax(np.asarray(logits, np.float64), axis=1)
    own = np.take_along_axis(p, np.asarray(labels)[:, None], axis=1)
    return np.concatenate([own, np.sort(p, axis=1)[:, :-3:-1]], axis=1)


def kernel(points: FloatArray, others: FloatArray) -> FloatArray:
    """Sum of 19 Gaussian kernels of ``(N, d)`` and ``(M, d)``: ``(N, M)``."""
    square = cdist(points, others, "sqeuclidean")
    return np.sum([np.exp(-square / (2 * sigma)) for sigma in SIGMAS], axis=0)


def differential(targets: FloatArray, outside: FloatArray) -> FloatArray:
    """How much smaller the MMD of targets ``(n, d)`` and non-members ``(m, d)`` is when one target
    has changed sides.

    ``(n,)``, negative where it is larger: those are non-members. In each round all that are left
    are tried against the same two sets and leave together; the non-members stay the generated ones,
    as in the published code. What has left keeps the value with which it left. The MMD is the
    biased V-statistic; sums of a kernel over a set change by a row of it, so nothing is summed
    anew.
    """
    m, left = len(outside), np.ones(len(targets), bool)
    own, cross, rest = (
        kernel(targets, targets),
        kernel(targets, outside).sum(axis=1),
        kernel(outside, outside).sum(),
    )
    itself = np.diag(own)
    found = np.zeros(len(targets))
    while left.sum() > 1:  # a set of one has nothing to leave behind
        n, row = left.sum(), own[:, left].sum(axis=1)
        inside, between = row[left].sum(), cross[left].sum()
        now = inside / n**2 + rest / m**2 - 2 * between / (n * m)
        less, more = inside - 2 * row + itself, rest + 2 * cross + itself
        mixed = between - cross + row - itself
        then = less / (n - 1) ** 2 + more / (m + 1) ** 2 - 2 * mixed / ((n - 1) * (m + 1))
        change = max(LEAST, now) - np.maximum(LEAST, then)
        found[left] = change[left]
        leaves = left & (change < 0)
        if not leaves.any():
            break
        left &= ~leaves
    return found


def blindmi(
    logits: ArrayLike,
    labels: ArrayLike,
    generated: ArrayLike,
    generated_labels: ArrayLike,
    attacker: BlindMI,
) -> FloatArray:
    """Scores ``(N,)`` of samples with ``logits (N, C)`` and ``labels (N,)`` beside generated
    non-members; 0 decides.
    """
    points, outside = features(logits, labels), features(generated, generated_labels)
    order = np.random.default_rng(attacker.seed).permutation(len(points))
    scores = np.empty(len(points))
    for start in range(0, len(points), attacker.batch):
        batch = order[start : start + attacker.batch]
        scores[batch] = differential(points[batch], outside)
    return scores


@infer.register(BlindMI)
def _(attacker: BlindMI, case: Case) -> Scored:
    pool = case.pool
    mine, made = case.target, (case.target["generated"], case.target["generated_labels"])
    return Scored(blindmi(mine["logits"][pool], mine["labels"][pool], *made, attacker), 0.0)
