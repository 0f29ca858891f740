"""When membership is encoded: each sample's path through the plane of false and true positives (numpy).

Of each sample the plane has how often the attack calls it a member of networks that trained on it (TPR) and of others
(FPR), at every checkpoint. The definitions of Chen et al. 2025 (*Dynamics*) are not known: what stands here is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lib.audit import Estimate, FloatArray
from lib.localization.courses import Course, estimates, jackknifed, parts

LOW, MIDDLE, HIGH = 0, 1, 2  # states of a sample


def borders(one: Course, rule: float | Literal["balanced"] = 0.1) -> FloatArray:
    """The threshold at each checkpoint, `(E,)`, one for all samples and networks.

    A number: at most that share of all non-members reach it. `balanced`: the one of the largest balanced accuracy.
    """
    outside = one.scores[:, ~one.member]
    if rule != "balanced":
        place = max(outside.shape[1] - 1 - int(rule * outside.shape[1]), 0)
        return np.nextafter(np.partition(outside, place, axis=1)[:, place], np.inf)
    made = []
    for scores, out in zip(one.scores, np.sort(outside, axis=1), strict=True):
        inside, tried = np.sort(scores[one.member]), np.unique(scores)
        better = np.searchsorted(out, tried) / len(out) - np.searchsorted(inside, tried) / len(inside)
        made.append(tried[np.argmax(better)])
    return np.array(made)


def plane(
    one: Course, rule: float | Literal["balanced"] = 0.1, form: Literal["counted", "fitted"] = "counted"
) -> FloatArray:
    """FPR and TPR of each sample at each checkpoint, `(E, 2, n)`; NaN where a side has no network (`fitted`: one).

    `counted` lies on a lattice: of J networks half trained on a sample, so rates have steps of 2 / J, and a standard
    error of up to 1 / sqrt(2 J). `fitted` is the upper tail of a normal law through the sample's scores on either side.
    """
    from scipy import special

    border, made = borders(one, rule)[:, None], []
    above = (one.scores >= border[..., None]).astype(np.float32) if form == "counted" else None
    for side in (~one.member, one.member):
        number, own = side.sum(axis=0), side.astype(np.float32)
        with np.errstate(invalid="ignore", divide="ignore"):
            if above is not None:
                made.append(np.einsum("ejn,jn->en", above, own).astype(float) / number)
                continue
            mean = np.einsum("ejn,jn->en", one.scores, side.astype(float)) / number
            away = (one.scores - mean[:, None]) * side
            deviation = np.sqrt(np.einsum("ejn,ejn->en", away, away) / (number - 1))
            made.append(special.ndtr((mean - border) / deviation))
    return np.stack(made, axis=1)


def advantage(path: FloatArray) -> FloatArray:
    """TPR minus FPR of each sample, `(E, n)` of a plane `(E, 2, n)`."""
    return np.asarray(path[:, 1] - path[:, 0])


def gained(
    one: Course, rule: float | Literal["balanced"] = 0.1, form: Literal["counted", "fitted"] = "counted"
) -> FloatArray:
    """The mean advantage at each checkpoint, `(E,)`: how far the centre of mass lies off the diagonal."""
    return np.asarray(advantage(plane(one, rule, form)).mean(axis=1))


def speed(path: FloatArray, epochs: NDArray[np.int_], signed: bool = False) -> FloatArray:
    """Encoding speed of each sample, `(n,)`, per epoch: the length of its path over the epochs that it takes.

    `signed`: by how much its advantage grows instead. Noise moves a sample too: take off what a null travels.
    """
    if signed:
        moved = advantage(path)[-1] - advantage(path)[0]
    else:
        moved = np.linalg.norm(np.diff(path, axis=0), axis=1).sum(axis=0)
    return np.asarray(moved / (epochs[-1] - epochs[0]))


def centre(path: FloatArray) -> FloatArray:
    """The centre of mass at each checkpoint, `(E, 2)`; with networks on halves of a pool the attack's own rates."""
    return np.asarray(path.mean(axis=2))


def displacement(path: FloatArray, travelled: bool = False) -> float:
    """How far the centre of mass gets, from the first checkpoint to the last; or the length of its way there."""
    middle = centre(path)
    return float(
        np.linalg.norm(np.diff(middle, axis=0), axis=1).sum() if travelled else np.linalg.norm(middle[-1] - middle[0])
    )


ENCODED = ("displacement", "way of the centre", "way of a sample", "gain", "delay")


def encoded(
    one: Course, null: Course, rule: float | Literal["balanced"] = 0.1, form: Literal["counted", "fitted"] = "counted"
) -> FloatArray:
    """How far and how fast a course encodes membership, `(5,)`, named by `ENCODED`; what moves at random is taken off.

    Displacement of the centre of mass; the length of its way, and of a sample's in the mean, each less the null's;
    by how much the mean advantage grows. Ways and gain are over the whole course: over its epochs they are the unsigned
    and the signed encoding speed. Delay: when the advantage comes, as a mean share of the course; .5 at an even rate.
    """
    path, noise = (plane(each, rule, form) for each in (one, null))
    (way, far), (rough, still) = ((displacement(p, True), float(speed(p, one.epochs).mean())) for p in (path, noise))
    gain, span = advantage(path).mean(axis=1), one.epochs[-1] - one.epochs[0]
    gain = gain - gain[0]
    delay = 1 - np.trapezoid(gain, one.epochs) / span / (gain[-1] or np.nan)
    return np.array([displacement(path), way - rough, (far - still) * span, gain[-1], delay])


def spread(one: Course, null: Course, rule: float | Literal["balanced"] = 0.1) -> FloatArray:
    """How unlike the samples are at each checkpoint, `(E,)`: the standard deviation of their true advantages.

    The variance of the counted ones less what counting adds, p (1 - p) / (m - 1) for a rate p of m networks on each
    side; less the same of the null, as networks that are each other's shadows do not decide on a sample independently.
    0 where that is more.
    """
    left = []
    for each in (one, null):
        path, sides = plane(each, rule), np.array([(~each.member).sum(axis=0), each.member.sum(axis=0)])
        noise = (path * (1 - path) / (sides - 1)).sum(axis=1).mean(axis=1)
        left.append(advantage(path).var(axis=1, ddof=1) - noise)
    return np.asarray(np.sqrt(np.maximum(left[0] - left[1], 0.0)))


def entropy(path: FloatArray, grid: int | Sequence[int] = 10) -> FloatArray:
    """Spatial entropy at each checkpoint, `(E,)`, in nats: of the shares of samples in `grid` x `grid` cells.

    Of several grids the mean, which depends less on where borders fall between the points of a lattice.
    """
    if not isinstance(grid, int):
        return np.asarray(np.mean([entropy(path, each) for each in grid], axis=0))
    cell = np.minimum((path * grid).astype(int), grid - 1)
    made = []
    for x, y in cell:
        share = np.bincount(x * grid + y) / len(x)
        made.append(-np.sum(share[share > 0] * np.log(share[share > 0])))
    return np.array(made)


def entropy_of_equals(
    one: Course, rule: float | Literal["balanced"] = 0.1, grid: int | Sequence[int] = 10
) -> FloatArray:
    """The `entropy` to expect at each checkpoint, `(E,)`, if all samples had the rates of the centre of mass.

    What counting alone spreads over the counted plane, decisions of different networks taken for independent; exact for
    a finite number of samples. The sides have as many networks as in the mean over samples.
    """
    from scipy import stats

    grids, terms = [grid] if isinstance(grid, int) else grid, _surprise(len(one.index))
    sides = [round(side.sum(axis=0).mean()) for side in (~one.member, one.member)]
    made = []
    for rates in centre(plane(one, rule)):
        mass = [stats.binom.pmf(np.arange(m + 1), m, p) for m, p in zip(sides, rates, strict=True)]
        found = []
        for g in grids:
            cells = [np.minimum(np.arange(m + 1) / m * g, g - 1).astype(int) for m in sides]
            likely = np.outer(*(np.bincount(cell, own, g) for cell, own in zip(cells, mass, strict=True)))
            found.append(np.interp(likely, *terms).sum())
        made.append(np.mean(found))
    return np.array(made)


@cache
def _surprise(n: int) -> FloatArray:
    """What a cell adds to the entropy of `n` samples in the mean, by its probability: 500 of these, and the terms."""
    from scipy import stats

    likely, share = np.geomspace(1e-9, 1, 500), np.arange(1, n + 1) / n
    terms = stats.binom.pmf(np.arange(1, n + 1), n, likely[:, None]) @ -(share * np.log(share))
    return np.array([[0, *likely], [0, *terms]])


def entropy_gained(
    one: Course,
    null: Course,
    rule: float | Literal["balanced"] = 0.1,
    grid: int | Sequence[int] = 10,
    form: Literal["counted", "fitted", "equals"] = "counted",
) -> float:
    """Entropy at the last checkpoint less the null's; `equals`: that of equal samples, less that of the null's."""
    if form == "equals":
        return float(entropy_of_equals(one, rule, grid)[-1] - entropy_of_equals(null, rule, grid)[-1])
    ends = [entropy(plane(each, rule, form)[-1:], grid)[0] for each in (one, null)]
    return float(ends[0] - ends[1])


def at_equal(values: FloatArray, levels: FloatArray, other: FloatArray, ends: FloatArray) -> float:
    """What one course has when it first reaches the level at which another ends, less what the other has at its end.

    `values (E,)` and `levels (E,)` of the one, `other (E,)` and `ends (E,)` of the other; straight in between, and even
    beyond the one's levels.
    """
    return float(np.interp(ends[-1], np.maximum.accumulate(levels), values) - other[-1])


def until(one: Course, other: Course, parts: Sequence[float] = (0.5, 0.75, 0.9), rule: float = 0.1) -> FloatArray:
    """Epochs to parts of the one's last mean advantage: the one's, the other's, and how much later the other's are.

    `(3 * len(parts),)`; where the mean advantage first is as large, straight between checkpoints.
    """
    means = gained(one, rule), gained(other, rule)
    asked = np.array(parts) * means[0][-1]
    found = [np.interp(asked, np.maximum.accumulate(own), c.epochs) for own, c in zip(means, (one, other), strict=True)]
    return np.concatenate([*found, found[1] - found[0]])


def states(path: FloatArray, low: float = 0.2, high: float = 0.8) -> NDArray[np.int_]:
    """LOW: an advantage below `low`; HIGH: TPR of `high` or more at an FPR of 1 - `high` or less; MIDDLE. `(E, n)`."""
    found = np.where(advantage(path) < low, LOW, MIDDLE)
    found[(path[:, 1] >= high - 1e-9) & (path[:, 0] <= 1 - high + 1e-9)] = HIGH
    return found


def transitions(found: NDArray[np.int_]) -> FloatArray:
    """Of the samples in a state the share that is in each one at the next checkpoint, `(E - 1, 3, 3)`; NaN: of none."""
    counts = np.array([np.bincount(3 * a + b, minlength=9).reshape(3, 3) for a, b in pairwise(found)])
    with np.errstate(invalid="ignore"):
        return np.asarray(counts / counts.sum(axis=2, keepdims=True))


def entering(found: NDArray[np.int_], state: int = HIGH) -> FloatArray:
    """Of the samples outside a state the share that is in it at the next checkpoint, `(E - 1,)`; NaN: of none."""
    with np.errstate(invalid="ignore"):
        return np.array([((b == state) & (a != state)).sum() / np.sum(a != state) for a, b in pairwise(found)])


def clusters(path: FloatArray, count: int = 3, seed: int = 0) -> NDArray[np.int_]:
    """Groups of samples with like paths, `(n,)`: k-means on all rates, numbered by their mean advantage at the end.

    Or on the courses of their advantages, `(E, n)`, where nothing but membership shall tell groups apart.
    """
    from sklearn.cluster import KMeans

    found = KMeans(count, n_init=3, random_state=seed).fit_predict(path.reshape(-1, path.shape[-1]).T)
    last = (path if path.ndim == 2 else advantage(path))[-1]
    order = np.argsort([last[found == k].mean() for k in range(count)])
    return np.argsort(order)[found]


def highest(values: FloatArray, share: float = 0.1) -> NDArray[np.bool_]:
    """The `share` of samples with the largest values, at each checkpoint, `(E, n)`; of equal ones the first."""
    number = round(share * values.shape[-1])
    first = np.argsort(-values, axis=-1, kind="stable")[..., :number]
    found = np.zeros(values.shape, bool)
    np.put_along_axis(found, first, True, axis=-1)
    return found


def early(flagged: NDArray[np.bool_], finally_: NDArray[np.bool_]) -> dict[str, FloatArray]:
    """Who is flagged early: at each checkpoint `(E,)` of `flagged (E, n)`, against `finally_ (n,)`.

    `share` of the finally vulnerable that are flagged already; `precision`, of the flagged those that end vulnerable
    (NaN where nobody is); `chance`, the share that as many flags at random would find.
    """
    both, number = (flagged & finally_).sum(axis=1), flagged.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return {"share": both / finally_.sum(), "precision": both / number, "chance": number / flagged.shape[1]}


def contrast(
    one: Course,
    null: Course,
    other: Course,
    noise: Course,
    rule: float | Literal["balanced"] = 0.1,
    form: Literal["counted", "fitted"] = "counted",
) -> dict[str, Estimate]:
    """How much more `other` encodes than `one`, each with its null: differences by the names of `ENCODED`, jackknifed.

    Then, by "doublings of" each but the delay, log2 of the ratio: 1 is twice as much, NaN where a null leaves nothing.
    """

    def measure(one: Course, null: Course, other: Course, noise: Course) -> FloatArray:
        first, second = encoded(one, null, rule, form), encoded(other, noise, rule, form)
        left = np.where((first > 0) & (second > 0), [first, second], np.nan)[:, :4]
        return np.append(second - first, np.log2(left[1] / left[0]))

    names = (*ENCODED, *(f"doublings of {name}" for name in ENCODED[:4]))
    return dict(zip(names, jackknifed(measure, one, null, other, noise), strict=True))


def crossed(
    measure: Callable[[Any, Any, NDArray[np.int_]], Any],
    halvings: Sequence[tuple[Course, Course]],
    then: Callable[[FloatArray], Any] = np.asarray,
    rule: float | Literal["balanced"] = 0.1,
    seen: Callable[[FloatArray], Any] = advantage,
) -> Any:
    """What one half of the networks says against another that shares none, neither targets nor shadows: Estimates.

    `measure` takes the fitted advantages `(E, n)` of two halves, or what else is `seen` in their planes, and the
    samples `index (n,)`, and gives a number or several. The mean is over the `halvings` (of `Population.halvings`, as
    `read` gives them) and both orders; `then` makes of it what is wanted. Errors as `jackknifed` has them: a group is
    left out of each half that it is in.
    """

    def told(pairs: Sequence[Sequence[Course]]) -> Any:
        made = []
        for pair in pairs:
            one, other = (seen(plane(half, rule, "fitted")) for half in pair)
            made += [measure(one, other, pair[0].index), measure(other, one, pair[0].index)]
        return then(np.mean(made, axis=0))

    groups, index = np.unique([g for pair in halvings for half in pair for g in half.group]), halvings[0][0].index
    networks, samples = parts(np.arange(len(groups)), len(index))
    left = [np.isin(np.arange(groups.max() + 1), groups[kept]) for kept in networks]
    without = [told([[half.part(kept[half.group]) for half in pair] for pair in halvings]) for kept in left]
    fewer = [told([[half.part(samples=kept) for half in pair] for pair in halvings]) for kept in samples]
    return estimates(told(halvings), without, fewer)
