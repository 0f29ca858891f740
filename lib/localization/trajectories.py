"""When membership is encoded: each sample's path through the plane of false and true positives (numpy).

Of each sample the plane has how often the attack calls it a member of networks that trained on it (TPR) and of others
(FPR), at every checkpoint. The definitions of Chen et al. 2025 (*Dynamics*) are not known: what stands here is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from lib.audit import Estimate, FloatArray
from lib.audit.targets import Scored
from lib.recipe import Attack

LOW, MIDDLE, HIGH = 0, 1, 2  # states of a sample
BLOCKS = 20  # of samples, that a jackknife leaves out in turn


@dataclass(frozen=True)
class Course:
    """What an attack says of J networks of one pool at E checkpoints.

    `epochs (E,)`, 0 the initialisation; `scores (E, J, n)`; `member (J, n)`; `index (n,)`, which samples. `group (J,)`
    numbers what is independent: a complement pair, or a network alone.
    """

    epochs: NDArray[np.int_]
    scores: FloatArray
    member: NDArray[np.bool_]
    index: NDArray[np.int_]
    group: NDArray[np.int_]

    def part(self, networks: NDArray[Any] | slice = slice(None), samples: NDArray[Any] | slice = slice(None)) -> Course:
        """The course of some networks and some samples only."""
        scores, member = self.scores[:, networks][:, :, samples], self.member[networks][:, samples]
        return Course(self.epochs, scores, member, self.index[samples], self.group[networks])

    def halves(self) -> tuple[Course, Course]:
        """Those of every other complement pair, and those of the rest: two courses that share no network."""
        first = np.unique(self.group, return_inverse=True)[1] % 2 == 0
        return self.part(first), self.part(~first)


def course(found: Mapping[int, Scored], group: Sequence[int] | None = None) -> Course:
    """From what an `Attack` stores at each checkpoint, by epoch (`Population.course`).

    Targets that are each other's complement are one group; or `group (J,)` numbers them, as those of a larger
    population. ValueError where checkpoints judge other samples.
    """
    epochs = sorted(found)
    first = found[epochs[0]]
    member = np.broadcast_to(first["member"], np.shape(first["scores"]))
    if any(not np.array_equal(found[e][name], first[name]) for e in epochs for name in ("member", "index")):
        raise ValueError("the checkpoints of a course judge the same samples of the same networks")
    numbers = np.arange(len(member))
    for own in range(len(member)):
        pair = np.flatnonzero((member[:own] != member[own]).all(axis=1))
        numbers[own] = numbers[pair[0]] if len(pair) else numbers[own]
    numbers = numbers if group is None else np.array(group)
    return Course(np.array(epochs), np.stack([found[e]["scores"] for e in epochs]), member, first["index"], numbers)


def read(results: Any, attacks: Mapping[int, Attack]) -> Course:
    """The course that `Population.course` asked for, from what `lab.realize` gave; groups are the pairs of the design.

    So courses of one population's halves number their groups alike, as `crossed` wants it.
    """
    rows = [target.training for target in next(iter(attacks.values())).targets]
    return course({t: results[step] for t, step in attacks.items()}, [own.design.pair(own.row) for own in rows])


def borders(one: Course, rule: float | Literal["balanced"] = 0.1) -> FloatArray:
    """The threshold at each checkpoint, `(E,)`, one for all samples and networks.

    A number: at most that share of all non-members reach it. `balanced`: the one of the largest balanced accuracy.
    """
    made = []
    for scores in one.scores:
        outside = scores[~one.member]
        if rule != "balanced":
            made.append(np.nextafter(np.quantile(outside, 1 - rule, method="lower"), np.inf))
            continue
        outside, inside = np.sort(outside), np.sort(scores[one.member])
        tried = np.unique(scores)
        gained = np.searchsorted(outside, tried) / len(outside) - np.searchsorted(inside, tried) / len(inside)
        made.append(tried[np.argmax(gained)])
    return np.array(made)


def plane(
    one: Course, rule: float | Literal["balanced"] = 0.1, form: Literal["counted", "fitted"] = "counted"
) -> FloatArray:
    """FPR and TPR of each sample at each checkpoint, `(E, 2, n)`; NaN where a side has no network (`fitted`: one).

    `counted` lies on a lattice: of J networks half trained on a sample, so rates have steps of 2 / J, and a standard
    error of up to 1 / sqrt(2 J). `fitted` is the upper tail of a normal law through the sample's scores on either side.
    """
    border, made = borders(one, rule)[:, None], []
    for side in (~one.member, one.member):
        number = side.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            if form == "counted":
                made.append(((one.scores >= border[..., None]) & side).sum(axis=1) / number)
                continue
            from scipy import special

            mean = np.where(side, one.scores, 0.0).sum(axis=1) / number
            squares = np.where(side, np.square(one.scores - mean[:, None]), 0.0).sum(axis=1)
            away = (mean - border) / np.sqrt(squares / (number - 1))
            made.append(special.ndtr(away))
    return np.stack(made, axis=1)


def advantage(path: FloatArray) -> FloatArray:
    """TPR minus FPR of each sample, `(E, n)` of a plane `(E, 2, n)`."""
    return np.asarray(path[:, 1] - path[:, 0])


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


def entropy(path: FloatArray, grid: int = 10) -> FloatArray:
    """Spatial entropy at each checkpoint, `(E,)`, in nats: of the shares of samples in `grid` x `grid` cells."""
    cell = np.minimum((path * grid).astype(int), grid - 1)
    made = []
    for x, y in cell:
        share = np.bincount(x * grid + y) / len(x)
        made.append(-np.sum(share[share > 0] * np.log(share[share > 0])))
    return np.array(made)


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


def clusters(path: FloatArray, count: int = 3, seed: int = 0) -> NDArray[np.int_]:
    """Groups of samples with like paths, `(n,)`: k-means on all rates, numbered by their mean advantage at the end."""
    from sklearn.cluster import KMeans

    found = KMeans(count, n_init=10, random_state=seed).fit_predict(path.reshape(-1, path.shape[2]).T)
    order = np.argsort([advantage(path)[-1, found == k].mean() for k in range(count)])
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


@overload
def jackknifed(measure: Callable[..., float], *courses: Course) -> Estimate: ...
@overload
def jackknifed(measure: Callable[..., FloatArray], *courses: Course) -> list[Estimate]: ...
def jackknifed(measure: Callable[..., Any], *courses: Course) -> Estimate | list[Estimate]:
    """What `measure(*courses)` gives, a number or several `(k,)`, with Student's intervals for each.

    Two errors are added: other networks (each group is left out in turn, the same number in all courses) and other
    samples (each of 20 blocks is). Adding counts what both share twice, so intervals are rather too wide. Attacks are
    not made again without a group. Courses may be of one population or of independent ones; of as many groups each.
    """
    sides: tuple[list[Any], list[Any]] = [], []
    numbers = [np.unique(each.group, return_inverse=True)[1] for each in courses]
    if len({own.max() for own in numbers}) != 1 or numbers[0].max() < 1:
        raise ValueError("a jackknife needs two groups of networks or more, as many in each course")
    for k in range(numbers[0].max() + 1):
        sides[0].append(measure(*(each.part(own != k) for each, own in zip(courses, numbers, strict=True))))
    for k in range(BLOCKS):
        sides[1].append(measure(*(each.part(samples=np.arange(len(each.index)) % BLOCKS != k) for each in courses)))
    return _with_errors(measure(*courses), *sides)


def _with_errors(whole: Any, networks: Sequence[Any], samples: Sequence[Any]) -> Any:
    """Estimates of `whole`, a number or several, from what is left without each group and without each block."""
    from scipy import special

    sides = networks, samples
    spread = [np.var(np.array(side, float), axis=0) * (len(side) - 1) for side in sides]
    error = np.atleast_1d(np.sqrt(sum(spread)))
    with np.errstate(invalid="ignore", divide="ignore"):
        least = sum(own**2 / (len(side) - 1) for own, side in zip(spread, sides, strict=True))
        df = np.atleast_1d(np.where(least > 0, sum(spread) ** 2 / least, len(sides[0]) - 1))
    reach = special.stdtrit(df, 0.975) * error
    each = zip(np.atleast_1d(whole).tolist(), reach.tolist(), error.tolist(), df.tolist(), strict=True)
    made = [Estimate(v, v - r, v + r, len(sides[0]), error=e, df=d) for v, r, e, d in each]
    return made if np.ndim(whole) else made[0]


def crossed(
    measure: Callable[[FloatArray, FloatArray, NDArray[np.int_]], Any],
    halvings: Sequence[tuple[Course, Course]],
    then: Callable[[FloatArray], Any] = np.asarray,
    rule: float | Literal["balanced"] = 0.1,
) -> Any:
    """What one half of the networks says against another that shares none, neither targets nor shadows: Estimates.

    `measure` takes the fitted advantages `(E, n)` of two halves and the samples `index (n,)`, and gives a number or
    several. The mean is over the `halvings` (of `Population.halvings`, as `read` gives them) and both orders; `then`
    makes of it what is wanted. Errors as `jackknifed` has them: a group is left out of each half that it is in.
    """

    def told(pairs: Sequence[Sequence[Course]]) -> Any:
        made = []
        for pair in pairs:
            one, other = (advantage(plane(half, rule, "fitted")) for half in pair)
            made += [measure(one, other, pair[0].index), measure(other, one, pair[0].index)]
        return then(np.mean(made, axis=0))

    groups, n = np.unique([g for pair in halvings for half in pair for g in half.group]), len(halvings[0][0].index)
    networks = [told([[half.part(half.group != g) for half in pair] for pair in halvings]) for g in groups]
    blocks = [np.arange(n) % BLOCKS != k for k in range(BLOCKS)]
    samples = [told([[half.part(samples=kept) for half in pair] for pair in halvings]) for kept in blocks]
    return _with_errors(told(halvings), networks, samples)


def stability(one: Course, measure: Callable[[Course], Sequence[int] | NDArray[np.int_]]) -> float:
    """Do other networks group the samples alike? Adjusted Rand index of what `measure` gives of the course's halves."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(*(measure(half) for half in one.halves())))
