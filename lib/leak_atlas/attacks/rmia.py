"""RMIA (Zarifzadeh et al. 2024) and BASE (Lassila et al. 2025): the target's confidence against the
average model's.

Both take **log confidences** log p_y <= 0 (`signals.log_confidence`, with the temperature that the
paper names for the data set): where models are confident, p itself has rounded to 1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit

from leak_atlas.attacks.case import Case, Scored, infer
from leak_atlas.attacks.shadows import checked, chosen, present
from leak_atlas.attacks.signals import log_confidence
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.data.designs import Role
from leak_atlas.engine.compute import Arrays
from leak_atlas.recipe import BASE, RMIA

Mode = Literal["online", "offline"]

# Entries of the (sample, z) comparison held at once when several queries vote.
BLOCK = 2**24


def _log_mean(values: FloatArray, use: BoolArray) -> FloatArray:
    """log of the mean probability over the used shadows: (M, N, A) and (M, N) to (N, A).

    Against the largest one, by expm1 and log1p: exact where all agree, and precise where all are
    close to 1.
    """
    ours = chosen(values, use)
    number, valid = present(ours)
    short = np.flatnonzero(number.min(axis=1) == 0)
    if short.size:
        raise ValueError(
            f"sample {short[0]} has no shadow to compare with ({short.size} samples in all)"
        )
    top = np.max(ours, axis=2, where=valid, initial=-np.inf)
    gaps = np.expm1(ours - top[:, :, None])
    return np.asarray(top + np.log1p(np.sum(gaps, axis=2, where=valid) / number))


def log_ratio(
    target: ArrayLike, shadows: ArrayLike, member: ArrayLike, mode: Mode, a: float
) -> FloatArray:
    """log of target's confidence over the average model's, (N, A); of all shadows online, of OUT
    ones offline.
    """
    RMIA(mode)  # refuses an unknown name
    own, others, inside = checked(target, shadows, member)
    if any(np.any(values > 0) or np.any(np.isneginf(values)) for values in (own, others)):
        raise ValueError(
            "expected log confidences, which are finite and never above 0 (signals.log_confidence)"
        )
    known = np.asarray(~np.isnan(others).any(axis=2))
    out = _log_mean(others, known if mode == "online" else known & ~inside)
    if mode == "online" or a == 1:
        return own - out
    # log(((1 + a) p + 1 - a) / 2) = log(1 + (1 + a) / 2 (p - 1)), which keeps its digits where p is
    # close to 1.
    return np.asarray(own - np.log1p((1 + a) / 2 * np.expm1(out)))


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

    ratio = p / mean p over the reference models: all of them online, ((1 + a) mean of OUT + 1 - a)
    / 2 offline. Log confidences ``target (N[, A])``, ``shadows (M, N[, A])``, ``member (M, N)``; of
    the population ``target_z (Z[, A])``, ``shadows_z (M, Z[, A])``. No shadow trained on z, unless
    ``member_z (M, Z)`` says which did. Several queries vote for every pair (x, z); an even split is
    a no, as in the authors' code.

    For one query the score is a step function of ratio(x): z and gamma cannot change the ranking,
    but they round it to at most Z + 1 levels. ``attacker.ties`` "ratio" therefore orders equal
    shares by the log ratio (mean over queries), adding its rank among these N samples, scaled below
    1/Z; "share" gives the paper's plain share. NaN among the shadows as in `lira`. ValueError on
    shapes that do not match, values above 0, and samples without a reference model.
    """
    others_z = np.asarray(shadows_z, np.float64)
    inside_z = (
        np.zeros(others_z.shape[:2], dtype=np.bool_) if member_z is None else np.asarray(member_z)
    )
    x = log_ratio(target, shadows, member, attacker.mode, attacker.a)
    z = log_ratio(target_z, others_z, inside_z, attacker.mode, attacker.a)
    if x.shape[1] != z.shape[1]:
        raise ValueError(f"x has {x.shape[1]} queries, z has {z.shape[1]}")
    size, queries = z.shape
    bar = x - np.log(attacker.gamma)
    if queries == 1:
        wins = np.searchsorted(np.sort(z[:, 0]), bar[:, 0], side="left")
    else:
        blocks = []
        for rows in np.array_split(bar, 1 + len(x) * size // BLOCK):
            votes = np.zeros((len(rows), size), dtype=np.int16)
            for query in range(queries):
                votes += rows[:, query, None] > z[:, query]
            blocks.append(np.sum(2 * votes > queries, axis=1))
        wins = np.concatenate(blocks)
    if attacker.ties == "share":
        return wins / size
    levels, rank = np.unique(x.mean(axis=1), return_inverse=True)
    return (wins + rank / levels.size) / size


def base(target: ArrayLike, shadows: ArrayLike, member: ArrayLike) -> FloatArray:
    """BASE scores ``(N,)``: log p - log mean p over the shadows, averaged over queries; RMIA's
    ranking without z.

    Arrays and errors as `rmia`.
    """
    return np.asarray(log_ratio(target, shadows, member, "online", 1.0).mean(axis=1))


@infer.register(RMIA)
def _(attacker: RMIA, case: Case) -> Scored:
    def signal(arrays: Arrays, which: np.ndarray) -> FloatArray:
        if attacker.views > 1:
            return np.asarray(log_expit(arrays["views"][which]))
        return log_confidence(
            arrays["logits"][which], case.target["labels"][which], attacker.temperature
        )

    (mine, others), (z, others_z) = case.read(signal, case.pool), case.read(signal, case.population)
    # dev samples may be members of a shadow
    trained_on_z = case.roles[:, case.population] == Role.MEMBER
    return Scored(rmia(mine, others, case.member, z, others_z, attacker, member_z=trained_on_z))


@infer.register(BASE)
def _(attacker: BASE, case: Case) -> Scored:
    def signal(arrays: Arrays, which: np.ndarray) -> FloatArray:
        return log_confidence(arrays["logits"][which], case.target["labels"][which])

    return Scored(base(*case.read(signal, case.pool), case.member))
