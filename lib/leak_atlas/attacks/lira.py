"""LiRA, the likelihood-ratio attack (Carlini et al. 2022, algorithms 1 and 2), and its variants by
name.

| ``mode`` | score, averaged over the queries |
| --- | --- |
| ``online`` | log N(phi; in) - log N(phi; out) |
| ``offline_cdf`` | -log P(N(out) > phi): the paper's one-sided test, as its p-value in nats |
| ``offline_pdf`` | -log N(phi; out): two-sided, what the official code does |

| ``variance`` | of a sample's signal over shadow models |
| --- | --- |
| ``per_sample`` | the sample's own, ddof 0; mostly noise below some 32 shadow models a side |
| ``pooled`` | one within-sample variance per query and side: sum of squares / degrees of freedom |
| ``code`` | the official code's fixed variance of all signals, not centred per sample |

Online, ``code`` uses the IN variance for both sides, as the official code does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from leak_atlas.attacks.case import Case, Scored, infer
from leak_atlas.attacks.shadows import Moments, by_query, chosen, moments
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.engine.compute import Arrays
from leak_atlas.recipe import LiRA

# Added to each standard deviation, as in the official code: a sample's shadow models may all agree.
TINY = 1e-30


def _deviation(shadows: Moments, variance: str) -> FloatArray:
    """Standard deviations of the signals, broadcastable to (N, A)."""
    number, squares = shadows.number, shadows.squares
    if variance == "per_sample":
        return np.sqrt(squares / number) + TINY
    if variance == "code":
        mean = np.average(shadows.mean, weights=number)
        between = number * np.square(shadows.mean - mean)
        whole = np.sum(squares + between) / number.sum()
        return np.asarray(np.sqrt(whole) + TINY)
    freedom = np.sum(number - 1, axis=0)
    if np.any(freedom < 1):
        raise ValueError("a pooled variance needs some sample with two shadow models on a side")
    return np.sqrt(squares.sum(axis=0) / freedom) + TINY


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
) -> FloatArray:
    """LiRA scores ``(N,)`` from scaled confidences (`signals.scaled_confidence`), larger = more
    likely member.

    ``target (N[, A])``, ``shadows (M, N[, A])``, ``member (M, N)``; query a must be the same view
    of a sample in every model. NaN among the shadows = not evaluated. Raises ValueError if a sample
    has too few shadow models: ``per_sample`` needs 2 a side, the others 1. Offline modes need OUT
    models only.
    """
    phi, signals = by_query(target, shadows)
    inside = np.asarray(member)
    least = 2 if attacker.variance == "per_sample" else 1

    def side(use: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Centre and standard deviation of the signals of the shadow models on one side."""
        values = chosen(signals, use)
        of_side = moments(values, least)
        deviation = _deviation(of_side, attacker.variance)
        if attacker.centre == "median":
            return np.nanmedian(values, axis=2), deviation
        return of_side.mean, deviation

    out_centre, out_deviation = side(~inside)
    if attacker.mode == "offline_cdf":
        # The upper tail keeps its digits where the CDF rounds to 1, which decides low FPRs.
        return -special.log_ndtr((out_centre - phi) / out_deviation).mean(axis=1)
    if attacker.mode == "offline_pdf":
        return -_log_density(phi, out_centre, out_deviation).mean(axis=1)
    in_centre, in_deviation = side(inside)
    if attacker.variance == "code":
        out_deviation = in_deviation
    log_in = _log_density(phi, in_centre, in_deviation)
    log_out = _log_density(phi, out_centre, out_deviation)
    return (log_in - log_out).mean(axis=1)


def _views(arrays: Arrays, samples: NDArray) -> NDArray:
    """Scaled confidences of each query, `(k, A)`."""
    return arrays["views"][samples]


@infer.register(LiRA)
def _(attacker: LiRA, case: Case) -> Scored:
    target, shadows = case.signals_on(_views, case.pool)
    return Scored(lira(target, shadows, case.shadow_membership, attacker))
