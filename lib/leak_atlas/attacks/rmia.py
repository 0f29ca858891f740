"""RMIA (Zarifzadeh et al. 2024) and BASE (Lassila et al. 2025) compare the target's confidence with
the average confidence of reference models.

Both take **log confidences** log p_y <= 0 (`signals.log_confidence`), because p itself rounds to
1 where models are confident.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit

from leak_atlas.attacks.case import Case, Scored, Signal, infer
from leak_atlas.attacks.shadows import by_query, chosen, counted
from leak_atlas.attacks.signals import log_confidence
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.engine.compute import Arrays
from leak_atlas.recipe import BASE, RMIA

# Entries of the (sample, z) comparison in memory at once when several queries vote.
BLOCK = 2**24


def _log_mean(values: FloatArray, use: BoolArray) -> FloatArray:
    """Log of the mean probability over the selected shadow models: (M, N, A) and (M, N) to (N, A).

    expm1 and log1p relative to the largest probability: exact where all agree, and precise where
    all are close to 1.
    """
    selected = chosen(values, use)
    number, valid = counted(selected, least=1)
    largest = np.max(selected, axis=2, where=valid, initial=-np.inf)
    relative = np.expm1(selected - largest[:, :, None])
    mean = np.sum(relative, axis=2, where=valid) / number
    return np.asarray(largest + np.log1p(mean))


def log_ratio(
    target: ArrayLike,
    shadows: ArrayLike,
    member: ArrayLike,
    attacker: RMIA,
) -> FloatArray:
    """Log of (target's confidence / reference confidence), (N, A) (Zarifzadeh et al. 2024).

    Online, the reference is the mean over all shadow models. Offline, it is the mean over the OUT
    models, corrected by the attacker's `a`.
    """
    of_target, of_shadows = by_query(target, shadows)
    inside = np.asarray(member, np.bool_)
    if attacker.mode == "online":
        return of_target - _log_mean(of_shadows, np.ones_like(inside))
    log_out = _log_mean(of_shadows, ~inside)
    if attacker.a == 1:  # the formula below would lose digits of small p
        return of_target - log_out
    # log(((1 + a) p + 1 - a) / 2) = log(1 + (1 + a) / 2 (p - 1)): precise where p is close to 1.
    share = (1 + attacker.a) / 2
    return of_target - np.log1p(share * np.expm1(log_out))


def rmia(
    target: ArrayLike,
    shadows: ArrayLike,
    member: ArrayLike,
    target_z: ArrayLike,
    shadows_z: ArrayLike,
    attacker: RMIA,
    *,
    member_z: ArrayLike | None = None,
) -> FloatArray:
    """RMIA scores ``(N,)``: the share of population samples z with ratio(x) / ratio(z) > gamma,
    strictly.

    ratio = p / mean p over the reference models: all shadow models online, ((1 + a) mean of OUT + 1
    - a) / 2 offline. Log confidences ``target (N[, A])``, ``shadows (M, N[, A])``, ``member (M,
    N)``; of the population ``target_z (Z[, A])``, ``shadows_z (M, Z[, A])``. ``member_z (M, Z)``
    marks the shadow models that trained on z (None: none did). Several queries vote for every pair
    (x, z); an even split is no majority, as in the authors' code.

    For one query the score is a step function of ratio(x): z and gamma cannot change the ranking,
    but they round it to at most Z + 1 levels. ``attacker.ties`` "ratio" therefore orders equal
    shares by the log ratio (mean over queries), adding its rank among these N samples, scaled below
    1/Z; "share" gives the paper's plain share. NaN among the shadows as in `lira`. Raises
    ValueError if a sample has no reference model.
    """
    if member_z is None:
        member_z = np.zeros(np.shape(shadows_z)[:2], dtype=np.bool_)
    x = log_ratio(target, shadows, member, attacker)
    z = log_ratio(target_z, shadows_z, member_z, attacker)
    wins = _wins(x - np.log(attacker.gamma), z)
    if attacker.ties == "share":
        return wins / len(z)
    levels, rank = np.unique(x.mean(axis=1), return_inverse=True)
    return (wins + rank / levels.size) / len(z)


def _wins(x: FloatArray, z: FloatArray) -> NDArray:
    """For each row of x (N, A), the number of rows of z (Z, A) that are smaller in most queries."""
    size, queries = z.shape
    if queries == 1:
        rising = np.sort(z[:, 0])
        return np.searchsorted(rising, x[:, 0], side="left")
    wins = []
    for rows in np.array_split(x, 1 + len(x) * size // BLOCK):
        votes = np.zeros((len(rows), size), dtype=np.int16)
        for query in range(queries):
            votes += rows[:, query, None] > z[:, query]
        majority = 2 * votes > queries
        wins.append(np.sum(majority, axis=1))
    return np.concatenate(wins)


def base(
    target: ArrayLike,
    shadows: ArrayLike,
    member: ArrayLike,
) -> FloatArray:
    """BASE scores ``(N,)``: log p - log mean p over the shadow models, averaged over queries
    (Lassila et al. 2025). For one query, the ranking is that of RMIA online without z. Arrays and
    errors as in `rmia`.
    """
    return np.asarray(log_ratio(target, shadows, member, RMIA("online")).mean(axis=1))


def confidences(case: Case, views: int = 1) -> Signal:
    """What both attacks read from a model: log confidences of the true labels."""

    def signal(arrays: Arrays, samples: BoolArray) -> FloatArray:
        if views > 1:  # stored as logit(p) of the true label, one column for each view
            return np.asarray(log_expit(arrays["views"][samples]))
        labels = case.target["labels"][samples]
        return log_confidence(arrays["logits"][samples], labels)

    return signal


@infer.register(RMIA)
def _(attacker: RMIA, case: Case) -> Scored:
    signal = confidences(case, attacker.views)
    target, shadows = case.signals_on(signal, case.pool)
    target_z, shadows_z = case.signals_on(signal, case.population)
    # A population of dev samples may hold members of a shadow model.
    member_z = case.trained_on(case.population)
    scores = rmia(
        target, shadows, case.shadow_membership, target_z, shadows_z, attacker, member_z=member_z
    )
    return Scored(scores)


@infer.register(BASE)
def _(attacker: BASE, case: Case) -> Scored:
    target, shadows = case.signals_on(confidences(case), case.pool)
    return Scored(base(target, shadows, case.shadow_membership))
