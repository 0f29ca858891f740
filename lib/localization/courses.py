"""What an attack says of a population at each checkpoint of training, and intervals of measures of it (numpy)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from lib.audit import Estimate, FloatArray
from lib.audit.targets import Scored
from lib.recipe import Attack

BLOCKS, GROUPS = 20, 32  # of samples, and of networks, that a jackknife leaves out in turn, at most so many


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


def course(found: Mapping[int, Scored], group: Sequence[int] | None = None) -> Course:
    """From what an `Attack` stores at each checkpoint, by epoch (`Population.course`).

    `group (J,)` numbers what is independent; without it each network is a group. ValueError where checkpoints judge
    other samples.
    """
    epochs = sorted(found)
    first = found[epochs[0]]
    member = np.broadcast_to(first["member"], np.shape(first["scores"]))
    if any(not np.array_equal(found[e][name], first[name]) for e in epochs for name in ("member", "index")):
        raise ValueError("the checkpoints of a course judge the same samples of the same networks")
    numbers = np.arange(len(member)) if group is None else np.array(group)
    return Course(np.array(epochs), np.stack([found[e]["scores"] for e in epochs]), member, first["index"], numbers)


def read(results: Any, attacks: Mapping[int, Attack]) -> Course:
    """The course that `Population.course` asked for, from what `lab.realize` gave; groups are the pairs of the design.

    So courses of one population's halves number their groups alike, as `crossed` wants it.
    """
    rows = [target.training for target in next(iter(attacks.values())).targets]
    return course({t: results[step] for t, step in attacks.items()}, [own.design.pair(own.row) for own in rows])


def levelled(*courses: Course) -> Course:
    """One course of the networks of several, in which each network is judged at rates of its own.

    At each checkpoint a score becomes the share of that network's non-members that score less (its own half). So
    attacks are compared whose scores have another scale in each network: RMIA's, and those of learners, of which each
    course may have one. Each AUC stays. ValueError where epochs or samples differ.
    """
    first, made, groups = courses[0], [], [np.unique(one.group, return_inverse=True)[1] for one in courses]
    if any(
        not (np.array_equal(one.epochs, first.epochs) and np.array_equal(one.index, first.index)) for one in courses
    ):
        raise ValueError("courses are joined at the same checkpoints, on the same samples")
    for one in courses:
        for scores, inside in zip(one.scores.swapaxes(0, 1), one.member, strict=True):
            ranks = [np.sort(own[~inside]).searchsorted(own, side) for own in scores for side in ("left", "right")]
            made.append(np.reshape(ranks, (len(scores), 2, -1)).mean(axis=1) / np.sum(~inside))
    starts = np.cumsum([0, *(own.max() + 1 for own in groups)])
    group = np.concatenate([own + start for own, start in zip(groups, starts[:-1], strict=True)])
    member = np.concatenate([one.member for one in courses])
    return Course(first.epochs, np.stack(made, axis=1), member, first.index, group)


def dealt(one: Course, draw: int = 0) -> Course:
    """A null of the same scores: each sample with the membership of another one, the same in every network.

    For attacks that do not know who trained on the sample that they judge, such as a learner: what one learns from
    membership that is dealt out (`Attack.dealt`) points anywhere.
    """
    order = np.random.default_rng(draw).permutation(len(one.index))
    return Course(one.epochs, one.scores, one.member[:, order], one.index, one.group)


def exchanged(one: Course, seed: int = 0) -> Course:
    """The course as it were if no sample differed from another: each network's scores are dealt out anew.

    Members' scores among its members and others' among the others, whole courses at once, so that the centre of mass
    and how decisions last stay as they are.
    """
    rng = np.random.default_rng(seed)
    given, taken = (np.argsort(one.member + 0.5 * rng.random(one.member.shape), axis=1) for _ in range(2))
    scores = np.empty_like(one.scores)
    np.put_along_axis(
        scores, np.broadcast_to(given, scores.shape), np.take_along_axis(one.scores, taken[None], axis=2), axis=2
    )
    return replace(one, scores=scores)


def sides(one: Course) -> FloatArray:
    """The mean of what a course holds of members, and of others, at each checkpoint, `(2, E)`.

    Of `Threshold("correctness", by_class=False)`, whose scores are 1 where a network is right, these are accuracies.
    """
    weights = [side / side.sum() for side in (one.member, ~one.member)]
    return np.array([(one.scores * weight).sum(axis=(1, 2)) for weight in weights])


def gaps(right: Course) -> FloatArray:
    """The generalisation gap at each checkpoint, `(E,)`, of the course that `sides` names."""
    return np.asarray(np.subtract(*sides(right)))


def gaps_of_each(right: Course) -> dict[int, FloatArray]:
    """As `gaps`, of each network: `(J,)` by epoch."""
    made = np.transpose([gaps(right.part(np.array([j]))) for j in range(len(right.group))])
    return dict(zip(right.epochs.tolist(), made, strict=True))


@overload
def jackknifed(measure: Callable[..., float], *courses: Course) -> Estimate: ...


@overload
def jackknifed(measure: Callable[..., FloatArray], *courses: Course) -> list[Estimate]: ...


def jackknifed(measure: Callable[..., Any], *courses: Course) -> Estimate | list[Estimate]:
    """What `measure(*courses)` gives, a number or several `(k,)`, with Student's intervals for each.

    Two errors are added: other networks and other samples (`parts`). Adding counts what both share twice, so intervals
    are rather too wide. Attacks are not made again without a group. Courses may be of one population or of independent
    ones; of as many groups each.
    """
    numbers = [np.unique(each.group, return_inverse=True)[1] for each in courses]
    if len({own.max() for own in numbers}) != 1 or numbers[0].max() < 1:
        raise ValueError("a jackknife needs two groups of networks or more, as many in each course")
    kept = [parts(own, len(each.index)) for each, own in zip(courses, numbers, strict=True)]
    networks, samples = (list(zip(*side, strict=True)) for side in zip(*kept, strict=True))
    without = [measure(*(each.part(own) for each, own in zip(courses, left, strict=True))) for left in networks]
    fewer = [measure(*(each.part(samples=own) for each, own in zip(courses, left, strict=True))) for left in samples]
    return estimates(measure(*courses), without, fewer)


def parts(groups: NDArray[np.int_], n: int) -> tuple[list[NDArray[np.bool_]], list[NDArray[np.bool_]]]:
    """What a jackknife keeps: of networks numbered by group `(J,)`, from 0, and of `n` samples.

    Each group is left out in turn, of more than 32 several at once; then each of 20 blocks of samples.
    """
    networks = [groups % GROUPS != k for k in range(min(int(groups.max()) + 1, GROUPS))]
    return networks, [np.arange(n) % BLOCKS != k for k in range(BLOCKS)]


def estimates(whole: Any, networks: Sequence[Any], samples: Sequence[Any]) -> Any:
    """Estimates of `whole`, a number or several, from what each part (`parts`) of networks and of samples gives."""
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
