"""LiRA, the likelihood-ratio attack (Carlini et al. 2022, algorithms 1 and 2), in these variants.

| ``mode`` | score, averaged over the queries |
| --- | --- |
| ``online`` | log N(phi; in) - log N(phi; out) |
| ``offline_cdf`` | -log P(N(out) > phi): the paper's one-sided test, as its p-value in nats |
| ``offline_pdf`` | -log N(phi; out): two-sided, what the official code does |

| ``variance`` | estimate of the variance of a sample's signal over shadow models |
| --- | --- |
| ``per_sample`` | of this sample alone, ddof 0; mostly noise below about 32 shadow models a side |
| ``pooled`` | mean within-sample variance over all samples, for each query and side |
| ``code`` | the official code's: one variance of all signals around their common mean |

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

# Added to each standard deviation, as in the official code, because it can be 0.
TINY = 1e-30


def _deviation(shadows: Moments, variance: str) -> FloatArray:
    """Standard deviation of each sample's signals, in a shape that broadcasts to ``(N, A)``."""
    number, squares = shadows.number, shadows.squares
    if variance == "per_sample":
        return np.sqrt(squares / number) + TINY
    if variance == "code":
        mean = np.average(shadows.mean, weights=number)
        between = number * np.square(shadows.mean - mean)
        total = np.sum(squares + between) / number.sum()
        return np.asarray(np.sqrt(total) + TINY)
    degrees = np.sum(number - 1, axis=0)
    if np.any(degrees < 1):
        raise ValueError("a pooled variance needs some sample with two shadow models on a side")
    return np.sqrt(squares.sum(axis=0) / degrees) + TINY


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

    ``target (N[, A])``, ``shadows (M, N[, A])``, ``member (M, N)``; a query must be the same view
    of a sample in every model. A NaN in ``shadows`` means "not evaluated". Offline modes need OUT
    models only. Raises ValueError if a sample has too few shadow models on a side: ``per_sample``
    needs 2, the others 1 (``pooled`` needs 2 for one sample at least).
    """
    phi, signals = by_query(target, shadows)
    inside = np.asarray(member, np.bool_)
    least = 2 if attacker.variance == "per_sample" else 1

    def side(use: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Centre and standard deviation of the signals of the shadow models on one side."""
        values = chosen(signals, use)
        shadow_moments = moments(values, least)
        deviation = _deviation(shadow_moments, attacker.variance)
        if attacker.centre == "median":
            return np.nanmedian(values, axis=2), deviation
        return shadow_moments.mean, deviation

    out_centre, out_deviation = side(~inside)
    if attacker.mode == "offline_cdf":
        # P(N(out) > phi) as a lower tail: 1 - CDF rounds to 0 for the scores that decide low FPRs.
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
