"""LiRA, the likelihood-ratio attack (Carlini et al. 2022, algorithms 1 and 2), and its variants by
name.

| ``mode`` | score, averaged over the queries |
| --- | --- |
| ``online`` | log N(phi; in) - log N(phi; out) |
| ``offline_cdf`` | -log P(N(out) > phi): the paper's one-sided test, as its p-value in nats |
| ``offline_pdf`` | -log N(phi; out): two-sided, what the official code does |

| ``variance`` | of a sample's signal over shadows |
| --- | --- |
| ``per_sample`` | the sample's own, ddof 0; mostly noise below some 32 shadows a side |
| ``pooled`` | one within-sample variance per query and side: sum of squares / degrees of freedom |
| ``shrunk`` | (prior * pooled + sum of squares) / (prior + count): a conjugate prior |
| ``code`` | the official code's fixed variance of all signals, not centred per sample |

Online, ``code`` uses the IN variance for both sides, as the official code does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from leak_atlas.attacks.case import Case, Scored, infer
from leak_atlas.attacks.shadows import Moments, checked, chosen, medians, moments, require
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.engine.compute import Arrays
from leak_atlas.recipe import LiRA

# Added to each standard deviation, as in the official code: the shadows of a sample may all agree.
TINY = 1e-30


def _deviation(
    shadows: Moments,
    variance: str,
    prior: float,
    side: str,
) -> FloatArray:
    """Standard deviations of the signals, broadcastable to (N, A)."""
    require(shadows, side, 2 if variance == "per_sample" else 1)
    if variance == "code":
        mean = np.average(shadows.mean, weights=shadows.number)
        between = shadows.number * np.square(shadows.mean - mean)
        total = np.sum(shadows.squares + between)
        return np.asarray(np.sqrt(total / shadows.number.sum()) + TINY)
    if variance == "per_sample":
        return np.sqrt(shadows.squares / shadows.number) + TINY
    freedom = np.sum(shadows.number - 1, axis=0)
    if np.any(freedom < 1):
        raise ValueError(f"a pooled variance needs some sample with two {side} shadows")
    pooled = shadows.squares.sum(axis=0) / freedom
    if variance == "pooled":
        return np.sqrt(pooled) + TINY
    shrunk = (prior * pooled + shadows.squares) / (prior + shadows.number)
    return np.sqrt(shrunk) + TINY


def _log_density(
    phi: FloatArray,
    mean: FloatArray,
    deviation: FloatArray,
) -> FloatArray:
    """log N(phi; mean, deviation^2)."""
    standard = (phi - mean) / deviation
    return -0.5 * np.square(standard) - np.log(deviation) - 0.5 * np.log(2 * np.pi)


def lira(
    target: ArrayLike,
    shadows: ArrayLike,
    member: ArrayLike,
    attacker: LiRA,
    *,
    prior: float = 4.0,
) -> FloatArray:
    """LiRA scores ``(N,)`` from scaled confidences (`signals.scaled_confidence`), larger = more
    likely member.

    ``target (N[, A])``, ``shadows (M, N[, A])``, ``member (M, N)``; query a must be the same view
    of a sample in every model. NaN among the shadows = not evaluated. ``prior`` is the weight of
    ``shrunk`` in pseudo-shadows. ValueError where shapes do not match or a sample has too few
    shadows: ``per_sample`` needs 2 a side, the others 1. Offline modes need OUT shadows only.
    """
    if not prior >= 0:
        raise ValueError(f"prior is a weight, at least 0, not {prior}")
    phi, signals, inside = checked(target, shadows, member)

    def side(use: BoolArray, name: str) -> tuple[FloatArray, FloatArray]:
        """Centre and standard deviation of the signals of the shadows on one side."""
        values = chosen(signals, use)
        of_side = moments(values)
        deviation = _deviation(of_side, attacker.variance, prior, name)
        centre = medians(values) if attacker.centre == "median" else of_side.mean
        return centre, deviation

    out_mean, out_deviation = side(~inside, "OUT")
    if attacker.mode == "offline_cdf":
        # The upper tail keeps its digits where the CDF rounds to 1, which decides low FPRs.
        return -special.log_ndtr((out_mean - phi) / out_deviation).mean(axis=1)
    if attacker.mode == "offline_pdf":
        return -_log_density(phi, out_mean, out_deviation).mean(axis=1)
    in_mean, in_deviation = side(inside, "IN")
    if attacker.variance == "code":
        out_deviation = in_deviation
    log_in = _log_density(phi, in_mean, in_deviation)
    log_out = _log_density(phi, out_mean, out_deviation)
    return (log_in - log_out).mean(axis=1)


def _views(arrays: Arrays, which: np.ndarray) -> np.ndarray:
    return arrays["views"][which]


@infer.register(LiRA)
def _(attacker: LiRA, case: Case) -> Scored:
    target, shadows = case.read(_views, case.pool)
    return Scored(lira(target, shadows, case.member, attacker))
