"""LiRA, the likelihood-ratio attack (Carlini et al. 2022, algorithms 1 and 2), and its variants by
name.

| ``mode`` | score, averaged over the queries |
| --- | --- |
| ``online`` | log N(phi; in) - log N(phi; out) |
| ``offline_cdf`` | -log P(N(out) > phi): the paper's one-sided test, as its p-value in nats |
| ``offline_pdf`` | -log N(phi; out): two-sided, what the official code does |

| ``variance`` | of a sample's signal over shadows |
| --- | --- |
| ``per_sample`` | its own, maximum likelihood (ddof 0); noise below some 32 shadows per side |
| ``pooled`` | one within-sample variance per query and side: sum of squares / degrees of freedom |
| ``shrunk`` | (prior * pooled + sum of squares) / (prior + count): conjugate, between the two above
|
| ``code`` | the official code's fixed variance: all signals raw, not centred per sample; IN's for
both sides online |
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from leak_atlas.attacks.case import Case, Scored, infer
from leak_atlas.attacks.shadows import Moments, checked, chosen, medians, moments, require
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.recipe import LiRA

# Keeps a sample whose shadows agree to the last bit from dividing by zero; the official code adds
# the same.
TINY = 1e-30


def _spread(found: Moments, variance: str, prior: float, side: str) -> FloatArray:
    """Standard deviations, broadcastable to (N, A)."""
    require(found, side, 2 if variance == "per_sample" else 1)
    own = found.squares / found.number
    if variance == "per_sample":
        return np.sqrt(own) + TINY
    if variance == "code":
        mean = np.average(found.mean, weights=found.number)
        total = np.sum(found.squares + found.number * np.square(found.mean - mean))
        return np.asarray(np.sqrt(total / found.number.sum()) + TINY)
    freedom = np.sum(found.number - 1, axis=0)
    if np.any(freedom < 1):
        raise ValueError(f"a pooled variance needs some sample with two {side} shadows")
    pooled = found.squares.sum(axis=0) / freedom
    if variance == "pooled":
        return np.sqrt(pooled) + TINY
    return np.sqrt((prior * pooled + found.squares) / (prior + found.number)) + TINY


def _log_density(phi: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    return -0.5 * np.square((phi - mean) / spread) - np.log(spread) - 0.5 * np.log(2 * np.pi)


def lira(
    target: ArrayLike, shadows: ArrayLike, member: ArrayLike, attacker: LiRA, *, prior: float = 4.0
) -> FloatArray:
    """LiRA scores ``(N,)`` from scaled confidences (`signals.scaled_confidence`), larger = more
    likely member.

    ``target (N[, A])``, ``shadows (M, N[, A])``, ``member (M, N)``; query a must be the same view
    of a sample in every model. NaN among the shadows = not evaluated. ``prior`` is the weight of
    ``shrunk`` in pseudo-shadows. ValueError where shapes do not match or a sample has too few
    shadows: 2 a side for ``per_sample``, else 1; offline needs OUT only.
    """
    variance = attacker.variance
    if not prior >= 0:
        raise ValueError(f"prior is a weight, at least 0, not {prior}")
    phi, others, inside = checked(target, shadows, member)

    def side(use: BoolArray, name: str) -> tuple[FloatArray, FloatArray]:
        values = chosen(others, use)
        found = moments(values)
        spread = _spread(found, variance, prior, name)
        return (medians(values) if attacker.centre == "median" else found.mean), spread

    out_mean, out_spread = side(~inside, "OUT")
    if attacker.mode == "offline_cdf":
        # The upper tail keeps its digits where the CDF has long rounded to 1: where low false
        # positive rates live.
        return -special.log_ndtr((out_mean - phi) / out_spread).mean(axis=1)
    if attacker.mode == "offline_pdf":
        return -_log_density(phi, out_mean, out_spread).mean(axis=1)
    in_mean, in_spread = side(inside, "IN")
    out_spread = in_spread if variance == "code" else out_spread
    return (_log_density(phi, in_mean, in_spread) - _log_density(phi, out_mean, out_spread)).mean(
        axis=1
    )


@infer.register(LiRA)
def _(attacker: LiRA, case: Case) -> Scored:
    mine, others = case.read(lambda arrays, which: arrays["views"][which], case.pool)
    return Scored(lira(mine, others, case.member, attacker))
