"""Whole ROC curves, with a band."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.audit.rates import FloatArray, checked, resolution
from leak_atlas.audit.samples import tpr_at_fpr
from leak_atlas.audit.targets import TargetScores, tpr_mean

__all__ = ["Roc", "roc_band"]

POINTS = 60  # places on either scale


class Roc(NamedTuple):
    """An ROC curve at the places ``fpr (G,)``, rising from 0 to 1, each with the ends of its
    pointwise 95 % interval.

    ``resolution`` is the smallest FPR above zero that every target's non-members can show.
    """

    fpr: FloatArray
    tpr: FloatArray
    low: FloatArray
    high: FloatArray
    resolution: float


def roc_band(scores: ArrayLike, member: ArrayLike) -> Roc:
    """The ROC curve of one target ``(N,)``, or the mean over targets ``(T, N)`` at each FPR, with
    pointwise intervals.

    Of one target, each point is `tpr_at_fpr`: the interval is over samples, and counts the error of
    the threshold. Of several, each point is `tpr_mean`: every target has its own threshold for an
    FPR, and the interval is over targets. Places are even on the linear scale and, from the
    resolution up, on the logarithmic one. Shapes and errors as `auc`.
    """
    rows, inside, lead = checked(scores, member)
    if len(lead) > 1:
        raise ValueError(f"roc_band takes scores (T, N) or (N,), not {np.shape(scores)}")
    non_members = int((~inside).sum(axis=1).min())
    finest = resolution(non_members)
    linear = np.linspace(0, 1, POINTS)
    logarithmic = np.geomspace(finest, 1, POINTS)
    places = np.union1d(linear, logarithmic)
    if lead:
        targets = TargetScores(rows, inside, None)
        points = [tpr_mean([targets], fpr) for fpr in places]
    else:
        points = [tpr_at_fpr(scores, member, fpr) for fpr in places]
    ends = np.array([(point.value, point.low, point.high) for point in points])
    value, low, high = ends.T
    return Roc(places, value, low, high, finest)
