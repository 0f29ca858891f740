"""From feature distances to "which stage tells D_h2 from D_h1": two-sided statistics with their intervals. No torch.

PPTP's probe (section 3.2) compares M_all, trained on the whole pool, with M_h1, trained on a half of it. ``seen (n,)``
is True on D_h1 (seen by both models) and False on D_h2 (seen by M_all only); a ``distance (P, n)`` holds one value a
part and sample. Everywhere

    AUC = P(distance of a D_h2 sample > distance of a D_h1 sample),

0.5 where the part does not know the half. Either side of 0.5 is disparity: unseen samples point elsewhere (distance up)
*and* have shorter features (distance down), so the paper's Euclidean distance may go either way, or cancel.

The independent unit is the pair of models: each has its own seed and its own half of the pool. Intervals speak about
new seeds and new halves of this pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from lib import BadInput, audit, nearest
from lib.audit import BoolArray, Estimate, FloatArray

Arrays = Mapping[str, NDArray]
Halved = tuple[Sequence[ArrayLike], Sequence[ArrayLike]]  # distances and seen, one of each a pair: what `read` returns

MEASURES: dict[str, Callable[[Arrays], NDArray]] = {
    "euclidean": lambda result: np.asarray(result["euclidean"]),
    "direction": lambda result: np.asarray(result["direction"]),
    "length": lambda result: np.asarray(result["length_b"]),
    "length difference": lambda result: np.asarray(result["length_a"], np.float64) - result["length_b"],
    "aligned": lambda result: np.asarray(result["aligned"]),
}


def measured(results: Sequence[Arrays], measure: str = "euclidean") -> list[NDArray]:
    """The values `(P, n)` of one measure in each result of a `Distance` step, over the samples that model a saw.

    `measure` is a key of `MEASURES`; "length" is the feature norm in M_h1, "length difference" the norm in M_all minus
    that in M_h1; "aligned" is of a `Similarity` step. Raises BadInput on an unknown measure.
    """
    if measure not in MEASURES:
        raise BadInput(f"no measure '{measure}'{nearest(measure, list(MEASURES))}")
    return [MEASURES[measure](result)[:, np.asarray(result["seen_a"], bool)] for result in results]


def read(results: Sequence[Arrays], measure: str = "euclidean") -> tuple[list[NDArray], list[BoolArray]]:
    """Distances and halves, as `profile` and the others take them, from one result a model pair; see `measured`.

    Raises BadInput where all samples or none were seen by both models.
    """
    halves = [np.asarray(result["seen_b"], bool)[np.asarray(result["seen_a"], bool)] for result in results]
    if any(seen.all() or not seen.any() for seen in halves):
        raise BadInput("a disparity needs samples that both models saw and samples that only the first one saw")
    return measured(results, measure), halves


# --- AUC and KS of each part ----------------------------------------------------------------------------------------


def areas(distances: Sequence[ArrayLike], seen: Sequence[ArrayLike]) -> FloatArray:
    """AUC of every pair and part, ``(pairs, P)``."""
    return np.stack([audit.auc(d, ~np.asarray(s)) for d, s in zip(distances, seen, strict=True)])


def _covariance(distances: Sequence[ArrayLike], seen: Sequence[ArrayLike]) -> FloatArray:
    """DeLong's covariance over samples of the parts' AUCs, in every pair: ``(pairs, P, P)``."""
    return np.stack([audit.delong(d, ~np.asarray(s)) for d, s in zip(distances, seen, strict=True)])


def _variances(distances: Sequence[ArrayLike], seen: Sequence[ArrayLike]) -> FloatArray:
    """The diagonals of `_covariance`, ``(pairs, P)``."""
    return np.diagonal(_covariance(distances, seen), axis1=1, axis2=2)


def _estimate(units: FloatArray, variances: FloatArray, bounds: tuple[float, float], level: float = 0.95) -> Estimate:
    """Mean of units ``(m,)`` with the wider of two intervals.

    Student's over the units is right when the units are many. With three, their spread is now and then far too small by
    chance; but it cannot truly be smaller than what the finite samples in each unit cause, ``variances (m,)``. So the
    interval never gets narrower than the mean of m such units can be.
    """
    over = audit.over(units, level, bounds)
    error = float(np.sqrt(np.mean(variances) / len(units)))
    floor = float(special.ndtri((1 + level) / 2)) * error
    if over.n > 1 and special.stdtrit(over.df, (1 + level) / 2) * over.error >= floor:
        return over
    low, high = max(over.value - floor, bounds[0]), min(over.value + floor, bounds[1])
    return replace(over, low=low, high=high, error=error, df=np.inf)


def profile(distances: Sequence[ArrayLike], seen: Sequence[ArrayLike]) -> list[Estimate]:
    """AUC of each part over several model pairs.

    ``distances`` holds one ``(P, n)`` a pair, ``seen`` its Boolean ``(n,)``; see `read`. Each interval is the wider of
    Student's over the pairs and DeLong's over the samples divided by the root of the number of pairs: it covers 0.5 in
    at least 95 % of all nulls, however few the pairs (tested by simulation). ``n`` counts pairs; a single pair has
    the sample interval, which does not know what another seed would give, and is not ``resolved``.
    """
    found, sampling = areas(distances, seen), _variances(distances, seen)
    return [_estimate(a, s, (0.0, 1.0)) for a, s in zip(found.T, sampling.T, strict=True)]


def floor(distances: Sequence[ArrayLike], halves: Sequence[ArrayLike]) -> list[Estimate]:
    """The control of `profile`: AUC between the halves, of distances between two seeds *on the same data*.

    ``distances`` holds one ``(P, n)`` a couple of seeds, ``halves`` one ``(n,)`` a half of the probe. No model here
    knows any of the halves, so every AUC should be 0.5; what it is not, is noise. Each half looks at every couple. The
    halves are drawn independently, the couples share models and hard samples: so the halves are the units (``n``), and
    the couples of one half count as one.
    """
    seen = [[half] * len(distances) for half in halves]
    table = np.stack([areas(distances, each).mean(axis=0) for each in seen])
    sampling = np.stack([np.sqrt(_variances(distances, each)).mean(axis=0) ** 2 for each in seen])
    return [_estimate(a, s, (0.0, 1.0)) for a, s in zip(table.T, sampling.T, strict=True)]


# --- what the profile says ------------------------------------------------------------------------------------------


def strength(found: Estimate) -> Estimate:
    """How far an AUC lies from 0.5 on either side, with the image of its interval: 0 is in it where 0.5 was.

    The value is a little above the truth where the truth is 0: it cannot be negative.
    """
    ends = sorted((abs(found.low - 0.5), abs(found.high - 0.5)))
    low = 0.0 if found.low <= 0.5 <= found.high else ends[0]
    return replace(found, value=abs(found.value - 0.5), low=low, high=ends[1], error=np.nan, bounds=(0.0, 0.5))


def _strengths(distances: Sequence[ArrayLike], seen: Sequence[ArrayLike]) -> tuple[FloatArray, FloatArray]:
    """Strength of every pair and part, `(pairs, P)`, and the sign of each part's AUC minus 0.5, `(P,)`.

    A part's direction is that of its mean AUC, so a part whose AUC scatters around 0.5 gets no strength from the
    scatter of single pairs.
    """
    found = areas(distances, seen) - 0.5
    signs = np.where(found.mean(axis=0) < 0, -1.0, 1.0)
    return found * signs, signs


def contrast(
    distances: Sequence[ArrayLike], seen: Sequence[ArrayLike], target: int | Sequence[int], others: Sequence[int]
) -> Estimate:
    """Two-sided strength of part `target` minus the largest strength among `others`, paired over pairs and samples.

    Parts are positions in ``P``; of several targets the mean is taken. Taking a maximum is paid for by an
    intersection-union test: the target is compared with *each* other part, and the lowest of the lower ends is given,
    so "low > 0" has at most the error of a single comparison, whatever the number of others. The upper end holds for
    the largest part whichever it is, hence its correction for their number.
    """
    aims = [target] if isinstance(target, int) else list(target)
    if not aims or not others:
        raise ValueError("a contrast needs a target and at least one other part")
    strengths, signs = _strengths(distances, seen)
    covariance = _covariance(distances, seen) * np.outer(signs, signs)
    near, far = [], []
    for other in others:
        weights = np.mean(np.eye(len(signs))[aims], axis=0) - np.eye(len(signs))[other]
        gap, variances = strengths @ weights, np.einsum("i,pij,j->p", weights, covariance, weights)
        near.append(_estimate(gap, variances, (-0.5, 0.5)))
        far.append(_estimate(gap, variances, (-0.5, 0.5), 1 - 0.05 / len(others)))
    return replace(audit.least(near), high=min(each.high for each in far))


def versus(first: Halved, second: Halved, part: int) -> Estimate:
    """Two-sided strength of one part in the first setting minus that in the second, paired over the model pairs.

    A setting is what `read` returns: the same pairs under another measure, or pairs with the same seeds and halves
    trained another way. Where both have the same halves, they are paired over the samples too. Raises ValueError where
    the numbers of pairs differ.
    """
    (one, one_signs), (two, two_signs) = (_strengths(*setting) for setting in (first, second))
    if len(one) != len(two):
        raise ValueError(f"settings are compared pair by pair, and there are {len(one)} and {len(two)}")
    variances = [
        audit.delong_difference(one_signs[part] * a[part], two_signs[part] * b[part], ~s, ~o)
        for a, b, s, o in (map(np.asarray, pair) for pair in zip(first[0], second[0], first[1], second[1], strict=True))
    ]
    return _estimate(one[:, part] - two[:, part], np.array(variances), (-0.5, 0.5))


def onset(
    found: Sequence[Estimate], control: Sequence[Estimate] | None, parts: Sequence[str], margin: float = 0.02
) -> str | None:
    """The first stage or block, in order of depth, that tells the halves apart; None where none does.

    The rule: its AUC interval lies wholly above 0.5 + margin or wholly below 0.5 - margin, and does not meet the
    interval of the same part in `control` (the `floor`; None: no control was run). `found`, `control` and `parts`
    (their names) run alike; stem and head are never an onset.
    """
    for i, (name, each) in enumerate(zip(parts, found, strict=True)):
        apart = each.low > 0.5 + margin or each.high < 0.5 - margin
        beyond = control is None or each.low > control[i].high or each.high < control[i].low
        if name.startswith("stage") and apart and beyond:
            return name
    return None


# --- up to a rotation -----------------------------------------------------------------------------------------------


def cka(result: Arrays, seen: bool = True) -> list[Estimate]:
    """Debiased linear CKA of each part, from one result of a `Similarity` step.

    Over the samples that both models saw, or (`seen` False) those that only the first one saw. 1 for features that are
    equal up to a rotation and a scale, 0 in the mean for unrelated ones: hence it may be negative. The estimate is a
    ratio of sums of unbiased HSIC over blocks of samples; its interval is Student's over the delete-one jackknife of
    the blocks (``n``): what other samples would have given for these two models. Raises BadInput where no sample is of
    that group, or a part's features are constant.
    """
    terms = np.asarray(result["hsic"], np.float64)[:, np.asarray(result["block_seen"]) == seen]
    blocks = terms.shape[1]
    if not blocks:
        raise BadInput(f"no sample was {'seen by both models' if seen else 'seen by the first model only'}")
    whole = terms.sum(axis=1, keepdims=True)
    if (whole[..., 1:] <= 0).any():
        raise BadInput("features of a part do not vary over the samples: they have no CKA")

    def ratio(sums: FloatArray) -> FloatArray:
        return sums[..., 0] / np.sqrt(np.maximum(sums[..., 1] * sums[..., 2], np.finfo(float).tiny))

    value = ratio(whole)
    # Pseudo-values give the interval its width; their mean would undo a bias of order 1 / blocks at the price of noise.
    pseudo = blocks * value - (blocks - 1) * ratio(whole - terms)
    spread = [audit.over(part) for part in pseudo]
    reach = [(each.high - each.low) / 2 for each in spread]
    return [
        replace(each, value=float(v), low=float(v - r), high=min(1.0, float(v + r)))
        for v, r, each in zip(value[:, 0], reach, spread, strict=True)
    ]


class Survey(NamedTuple):
    """What several settings say by several measures; all but `read` and `onsets` as their functions give it."""

    read: dict[tuple[Any, str], Halved]
    profiles: dict[tuple[Any, str], list[Estimate]]
    controls: dict[tuple[Any, str], list[Estimate]]
    onsets: dict[tuple[Any, str], str]  # "none" where no part tells the halves apart


def survey(
    results: Any,
    distances: Mapping[Any, Sequence[Any]],
    floors: Mapping[Any, Sequence[Any]],
    measures: Iterable[str],
    parts: Sequence[str],
    margin: float = 0.02,
) -> Survey:
    """`read`, `profile`, `floor` and `onset` of each setting by each measure, keyed (setting, measure).

    `distances` and `floors` hold each setting's `Distance` steps, one a pair, of which `results[step]` has the arrays;
    `parts` are their parts' names.
    """
    out = Survey({}, {}, {}, {})
    for key in product(distances, measures):
        setting, measure = key
        halved = read([results[step] for step in distances[setting]], measure)
        out.read[key], out.profiles[key] = halved, profile(*halved)
        out.controls[key] = floor(measured([results[step] for step in floors[setting]], measure), halved[1])
        out.onsets[key] = onset(out.profiles[key], out.controls[key], parts, margin) or "none"
    return out


# --- direction or length --------------------------------------------------------------------------------------------


def carriers(direction: ArrayLike, length_a: ArrayLike, length_b: ArrayLike, seen: ArrayLike) -> dict[str, FloatArray]:
    """Which effect carries the gap in mean squared distance between D_h2 and D_h1: four shares, each ``(P,)``.

    By the law of cosines, with lengths and distance over root d and direction = 1 - cosine, of every sample
    ``euclidean**2 == (length_a - length_b)**2 + 2 * length_a * length_b * direction``. All shares are relative to the
    mean squared distance of the whole pool, and sum exactly to the relative gap:

    - ``length``: the lengths in the two models differ more on D_h2;
    - ``scale``: features on D_h2 are shorter or longer, so the same angle spans more or less;
    - ``direction``: the angle itself is wider;
    - ``joint``: angle and scale go together in one half more than in the other.

    The last three split the gap of the second term, scale times angle, at the mean of both halves (Kitagawa 1955), so
    no order of the effects has to be chosen.
    """
    angle, a, b = (np.asarray(each, np.float64) for each in (direction, length_a, length_b))
    known, scale = np.asarray(seen, bool), 2 * a * b
    terms = (a - b) ** 2, scale * angle, scale, angle
    new, old = (np.stack([term[..., half].mean(axis=-1) for term in terms]) for half in (~known, known))
    (length, chord, wider, turned), (*_, scale, angle) = new - old, (new + old) / 2
    whole = (terms[0] + terms[1]).mean(axis=-1)
    scaled, turned = wider * angle, turned * scale
    shares = {"length": length, "scale": scaled, "direction": turned, "joint": chord - scaled - turned}
    return {name: np.divide(share, whole, out=np.zeros_like(whole), where=whole > 0) for name, share in shares.items()}
