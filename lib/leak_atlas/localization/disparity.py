"""Which stage's feature distances tell D_h2 from D_h1: two-sided statistics with their intervals.

PPTP's probe (section 3.2) compares M_all, trained on the whole pool, with M_h1, trained on a half
of it. ``seen (n,)`` is True on D_h1 (seen by both models) and False on D_h2 (seen by M_all only); a
``distance (P, n)`` holds one value for each of P parts of the network and each sample. Everywhere

    AUC = P(distance of a D_h2 sample > distance of a D_h1 sample),

0.5 where the part does not distinguish the halves. Either side of 0.5 is disparity: features of
unseen samples have another direction (which increases the distance) *and* are shorter (which
decreases it), so the paper's Euclidean distance may go either way, or cancel.

The independent unit is the pair of models: each has its own seed and its own half of the pool.
Intervals are about new seeds and new halves of this pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leak_atlas import BadInput, audit, nearest
from leak_atlas.audit import BoolArray, Estimate, FloatArray
from leak_atlas.localization import Arrays

Values = Sequence[NDArray]  # an array for each pair of models
Halved = tuple[Values, Values]  # distances and seen of each pair: what `read` returns

MARGIN = 0.02  # of an onset's AUC from 0.5
MEASURES = "euclidean", "direction", "length", "length difference", "aligned"


def measured(results: Sequence[Arrays], measure: str = "euclidean") -> list[NDArray]:
    """The values `(P, n)` of a measure in each result of a `Distance` step, for the samples that
    its network `a` (M_all) trained on.

    `measure` is one of `MEASURES`. "length" is the feature norm in M_h1, "length difference" the
    norm in M_all minus that in M_h1; "aligned" is of a `Similarity` step. Raises BadInput on an
    unknown measure.
    """
    if measure not in MEASURES:
        raise BadInput(f"no measure '{measure}'{nearest(measure, list(MEASURES))}")
    return [_values(result, measure)[:, result["seen_a"]] for result in results]


def _values(result: Arrays, measure: str) -> NDArray:
    if measure == "length":
        return result["length_b"]
    if measure == "length difference":
        return result["length_a"].astype(np.float64) - result["length_b"]
    return result[measure]


def read(
    results: Sequence[Arrays], measure: str = "euclidean"
) -> tuple[list[NDArray], list[BoolArray]]:
    """Distances and halves, as `profile` takes them, from one result for each pair of models.

    See `measured`.
    """
    halves = [result["seen_b"][result["seen_a"]] for result in results]
    return measured(results, measure), halves


# --- one sample ---------------------------------------------------------------------------------


def memory_of_samples(results: Sequence[Arrays]) -> FloatArray:
    """How much farther apart each sample's features are where M_h1 did not see it, `(P, n)`.

    In each pair and part a sample has the share of the samples at smaller distances. The mean over
    pairs whose M_h1 did not see it, minus the mean over the others: 0 in the mean where features
    show no membership. NaN for a sample that all saw, or none. Distances are Euclidean.
    """
    distances, seen = read(results)
    everyone = np.zeros(distances[0].shape[1], np.int_)
    places = np.stack([audit.ranks_within(each, everyone) for each in distances])  # (pairs, P, n)
    known = np.stack(seen)[:, None].astype(float)
    with np.errstate(invalid="ignore"):
        inside = (places * known).sum(axis=0) / known.sum(axis=0)
        outside = (places * (1 - known)).sum(axis=0) / (1 - known).sum(axis=0)
    return np.asarray(outside - inside)


# --- AUC of each part ---------------------------------------------------------------------------


def areas(distances: Values, seen: Values) -> FloatArray:
    """AUC of every pair and part, ``(pairs, P)``; D_h2 are the positives."""
    pairs = zip(distances, seen, strict=True)
    return np.stack([audit.auc(distance, ~half) for distance, half in pairs])


def _covariances(distances: Values, seen: Values) -> FloatArray:
    """DeLong's covariance over samples of the parts' AUCs, in every pair: ``(pairs, P, P)``."""
    pairs = zip(distances, seen, strict=True)
    return np.stack([audit.delong(distance, ~half) for distance, half in pairs])


def _variances(distances: Values, seen: Values) -> FloatArray:
    """The diagonals of `_covariances`, ``(pairs, P)``."""
    return np.diagonal(_covariances(distances, seen), axis1=1, axis2=2)


def _estimate(
    units: FloatArray,
    variances: FloatArray,
    bounds: tuple[float, float],
    level: float = 0.95,
) -> Estimate:
    """Mean of units ``(m,)`` with the wider of two intervals.

    Student's over the units is right when the units are many. With three, their spread is sometimes
    far too small by chance; but it cannot truly be smaller than what the finite samples in each
    unit cause, ``variances (m,)``. So the interval is never narrower than the mean of m such units
    can be.
    """
    over_units = audit.mean_ci(units, level, bounds)
    error = float(np.sqrt(np.mean(variances) / len(units)))
    reach = float(special.ndtri((1 + level) / 2)) * error
    if over_units.n > 1:
        quantile = special.stdtrit(over_units.df, (1 + level) / 2)
        if quantile * over_units.error >= reach:
            return over_units
    low = max(over_units.value - reach, bounds[0])
    high = min(over_units.value + reach, bounds[1])
    return replace(
        over_units,
        low=low,
        high=high,
        error=error,
        df=np.inf,
    )


def _auc_estimates(aucs: FloatArray, variances: FloatArray) -> list[Estimate]:
    """Of each part, from AUCs and their variances over samples, both ``(units, P)``."""
    parts = zip(aucs.T, variances.T, strict=True)
    return [_estimate(auc, variance, (0.0, 1.0)) for auc, variance in parts]


def profile(distances: Values, seen: Values) -> list[Estimate]:
    """AUC of each part over several pairs of models.

    ``distances`` holds one ``(P, n)`` for each pair, ``seen`` its Boolean ``(n,)``; see `read`.
    Each interval is the wider of Student's over the pairs and DeLong's over the samples divided by
    the root of the number of pairs: it covers 0.5 in at least 95 % of all nulls, however few the
    pairs (tested by simulation). ``n`` counts pairs. A single pair has the interval over samples,
    which does not cover what another seed would give, and is not ``resolved``.
    """
    return _auc_estimates(areas(distances, seen), _variances(distances, seen))


def floor(distances: Values, halves: Values) -> list[Estimate]:
    """The control of `profile`: AUC of the distances between two networks that differ in their seed
    alone, with a half of the probe as D_h1.

    ``distances`` holds one ``(P, n)`` for each couple of seeds, ``halves`` one ``(n,)`` for each
    half of the probe. No model here saw any of the halves alone, so every true AUC is 0.5. Each
    half is compared on every couple. The halves are drawn independently, the couples share models
    and hard samples: so the halves are the units (``n``), and the couples of one half count as one.
    """
    aucs, variances = [], []
    for half in halves:
        seen = [half] * len(distances)
        errors = np.sqrt(_variances(distances, seen))
        aucs.append(areas(distances, seen).mean(axis=0))
        variances.append(errors.mean(axis=0) ** 2)
    return _auc_estimates(np.stack(aucs), np.stack(variances))


# --- comparison of parts and of settings --------------------------------------------------------


def strength(auc: Estimate) -> Estimate:
    """How far an AUC is from 0.5, on either side; its interval contains 0 where the AUC's has 0.5.

    The value is a little above the truth where the truth is 0, since it cannot be negative.
    """
    ends = abs(auc.low - 0.5), abs(auc.high - 0.5)
    low = min(ends)
    high = max(ends)
    if auc.low <= 0.5 <= auc.high:
        low = 0.0
    value = abs(auc.value - 0.5)
    return replace(
        auc,
        value=value,
        low=low,
        high=high,
        error=np.nan,
        bounds=(0.0, 0.5),
    )


def _strengths(distances: Values, seen: Values) -> tuple[FloatArray, FloatArray]:
    """Strength of every pair and part, `(pairs, P)`, and the sign of each part's AUC minus 0.5.

    The sign, `(P,)`, is that of the part's mean AUC, so a part whose AUC scatters around 0.5 gets
    no strength from the scatter of single pairs.
    """
    excess = areas(distances, seen) - 0.5
    signs = np.where(excess.mean(axis=0) < 0, -1.0, 1.0)
    return excess * signs, signs


def lead(
    settings: Sequence[Halved],
    target: int,
    others: Sequence[int],
) -> Estimate:
    """Strength of part `target` minus the largest strength among `others`, both as means over
    settings of the same pairs and halves, paired over pairs.

    Parts are positions in ``P``. The largest of several strengths is compared by an
    intersection-union test: the target is compared with *each* other part, and the lowest of the
    lower ends is given, so "low > 0" has at most the error of a single comparison, whatever the
    number of others. The upper end is valid for the largest part whichever it is, hence its
    correction for their number.
    """
    of_settings = [distances for distances, _ in settings]
    stacked = [np.concatenate(pair) for pair in zip(*of_settings, strict=True)]
    seen = settings[0][1]
    strengths, signs = _strengths(stacked, seen)  # (pairs, S * P)
    covariances = _covariances(stacked, seen) * np.outer(signs, signs)
    parts = stacked[0].shape[0] // len(settings)
    comparisons, upper_ends = [], []
    level = 1 - 0.05 / len(others)
    for other in others:
        weights = np.zeros(parts)
        weights[target], weights[other] = 1, -1
        over_settings = np.tile(weights / len(settings), len(settings))
        gap = strengths @ over_settings
        variances = over_settings @ covariances @ over_settings  # (pairs,)
        comparisons.append(_estimate(gap, variances, (-0.5, 0.5)))
        upper_ends.append(_estimate(gap, variances, (-0.5, 0.5), level).high)
    return replace(audit.least(comparisons), high=min(upper_ends))


def setting_difference(
    first: Halved,
    second: Halved,
    part: int,
) -> Estimate:
    """Strength of one part in the first setting minus that in the second, paired over the pairs.

    A setting is what `read` returns: the same pairs under another measure, or pairs with the same
    seeds and halves trained in another way. Where both have the same halves, they are paired over
    the samples too.
    """
    one, one_signs = _strengths(*first)
    two, two_signs = _strengths(*second)
    variances = []
    for a, seen_a, b, seen_b in zip(*first, *second, strict=True):
        signed_a = one_signs[part] * a[part]
        signed_b = two_signs[part] * b[part]
        variances.append(audit.delong_difference(signed_a, signed_b, ~seen_a, ~seen_b))
    gap = one[:, part] - two[:, part]
    return _estimate(gap, np.array(variances), (-0.5, 0.5))


def onset(
    aucs: Sequence[Estimate],
    control: Sequence[Estimate] | None,
    parts: Sequence[str],
) -> str | None:
    """The first stage or block, in order of depth, that distinguishes the halves; None: none does.

    The rule: the interval of its AUC lies wholly above 0.5 + MARGIN or wholly below 0.5 - MARGIN,
    and does not meet the interval of the same part in `control` (the `floor`; None: no control was
    run). `aucs`, `control` and `parts` (their names) have the same order; stem and head are never
    an onset.
    """
    for i, (name, auc) in enumerate(zip(parts, aucs, strict=True)):
        apart = auc.low > 0.5 + MARGIN or auc.high < 0.5 - MARGIN
        null = control[i] if control else None
        beyond = null is None or auc.low > null.high or auc.high < null.low
        if name.startswith("stage") and apart and beyond:
            return name
    return None


# --- up to a rotation ---------------------------------------------------------------------------


def rotated(distances: Sequence[Arrays], similarities: Sequence[Arrays]) -> tuple[Halved, Halved]:
    """Euclidean distances after the best rotation and before it, as `read` returns them.

    From the `Distance` and the `Similarity` step of each pair, of the samples to which no rotation
    was fitted.
    """
    after = read(similarities, "aligned")
    before = []
    for distance, similarity in zip(distances, similarities, strict=True):
        judged = np.isin(distance["index"], similarity["index"]) & distance["seen_a"]
        before.append(distance["euclidean"][:, judged])
    return after, (before, after[1])


# --- direction or length ------------------------------------------------------------------------


def gap_shares(
    direction: NDArray,
    length_a: NDArray,
    length_b: NDArray,
    seen: BoolArray,
) -> dict[str, FloatArray]:
    """Which effect causes the gap in mean squared distance between D_h2 and D_h1: four shares
    ``(P,)``.

    By the law of cosines, with lengths and distance over root d and direction = 1 - cosine, of
    every sample ``euclidean**2 == (length_a - length_b)**2 + 2 * length_a * length_b * direction``.
    All shares are relative to the mean squared distance of the whole pool, and sum to the relative
    gap:

    - ``length``: the lengths in the two models differ more on D_h2;
    - ``scale``: features on D_h2 are shorter or longer, so the same angle spans more or less;
    - ``direction``: the angle itself is wider;
    - ``joint``: angle and scale are more correlated in one half than in the other.

    The last three split the gap of the second term, scale times angle, at the mean of both halves
    (Kitagawa 1955), so no order of the effects has to be chosen.
    """
    arrays = direction, length_a, length_b
    angle, a, b = (array.astype(np.float64) for array in arrays)  # (P, n) each
    scale = 2 * a * b
    length_term = (a - b) ** 2
    angle_term = scale * angle

    def halves(term: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Difference and middle of the means over D_h2 and over D_h1, `(P,)` each."""
        new = term[:, ~seen].mean(axis=1)
        old = term[:, seen].mean(axis=1)
        return new - old, (new + old) / 2

    angle_gap, angle_middle = halves(angle)
    scale_gap, scale_middle = halves(scale)
    by_scale = scale_gap * angle_middle
    by_direction = angle_gap * scale_middle
    gaps = {
        "length": halves(length_term)[0],
        "scale": by_scale,
        "direction": by_direction,
        "joint": halves(angle_term)[0] - by_scale - by_direction,
    }
    whole = (length_term + angle_term).mean(axis=1)
    # Where no part of the pool is at any distance, all shares are 0.
    whole = np.where(whole > 0, whole, np.inf)
    return {name: value / whole for name, value in gaps.items()}
