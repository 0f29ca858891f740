"""Which samples a network remembers: memorization scores of a population (numpy)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lib import store
from lib.audit import Estimate, FloatArray
from lib.audit.targets import Scored
from lib.compute import Arrays, Of, compute
from lib.data.designs import Role
from lib.recipe import Memorization, ShuffledRanking, Window


def memorization(right: FloatArray, member: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Score, its standard error, and the mean over OUT models, of each sample `(n,)`.

    The score is the mean of `right (M, n)` over IN models minus that over OUT ones.

    `member (M, n)` says which models trained on it. A side without models makes the score NaN; a side with one model
    has no variance, and makes the error infinite.
    """

    @np.errstate(invalid="ignore", divide="ignore")
    def moments(side: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        number = side.sum(axis=0)
        mean = np.where(side, right, 0.0).sum(axis=0) / number
        squares = np.where(side, np.square(right - mean), 0.0).sum(axis=0)
        return mean, np.where(number > 1, squares / (number - 1) / number, np.inf)

    (mean_in, error_in), (mean_out, error_out) = moments(member), moments(~member)
    return mean_in - mean_out, np.sqrt(error_in + error_out), mean_out


def agreement(one: Mapping[str, NDArray], other: Mapping[str, NDArray]) -> Estimate:
    """Spearman's correlation of two rankings, over the samples that both know; a ranking is what a step of it stores.

    The interval over samples is Fisher's with the variance of Bonett & Wright (2000): (1 + r^2 / 2) / (n - 3).
    """
    from scipy import stats

    _, first, second = np.intersect1d(one["index"], other["index"], assume_unique=True, return_indices=True)
    rho = float(stats.spearmanr(one["score"][first], other["score"][second]).statistic)
    error = np.sqrt((1 + rho**2 / 2) / (len(first) - 3))
    low, high = np.tanh(np.arctanh(np.clip(rho, -1 + 1e-12, 1 - 1e-12)) + np.array([-1.96, 1.96]) * error)
    return Estimate(rho, float(low), float(high), len(first))


def parted(scored: Scored, ranking: Mapping[str, NDArray], parts: int) -> list[list[dict[str, NDArray]]]:
    """What an attack says of the samples of each part of a ranking, from the lowest scores to the highest.

    Each of the `parts` has as many of the ranked samples, members or not, as any other (of equal scores the first in
    the lower part). Of each part a list, one `Scored` a target, since in a part targets have members of other numbers.
    ValueError where the ranking does not know a sample.
    """
    place = np.argsort(np.argsort(ranking["score"], kind="stable"), kind="stable")
    found = _known(ranking, np.broadcast_to(scored["index"], np.shape(scored["scores"])))
    return divided(scored, place[found] * parts // len(place), parts)


def visited(
    scored: Scored, ranking: Mapping[str, NDArray], labelled: Mapping[str, NDArray], window: Window, epochs: int
) -> NDArray[np.int_]:
    """How often a training with a window visits each sample that an attack judges, `(T, n)`.

    A non-member, which no training visits, has the number of the member whose rank in its class it would take: so
    members of every number have non-members of like scores beside them. `labelled` has `labels (n,)` of the samples
    `index (n,)`. ValueError where ranking or labels do not know a sample.
    """
    size = np.shape(scored["scores"])
    index = np.broadcast_to(scored["index"], size)
    label = labelled["labels"][_known(labelled, index)]
    score = ranking["score"][_known(ranking, index)] * (-1 if window.order == "high-to-low" else 1)
    found = np.zeros(size, np.int_)
    for target, inside in enumerate(np.broadcast_to(scored["member"], size)):
        for one in np.unique(label[target, inside]):
            own = label[target] == one
            members = np.sort(score[target, own & inside])
            times = np.array(window.visits(len(members), epochs))
            found[target, own] = times[np.minimum(np.searchsorted(members, score[target, own]), len(members) - 1)]
    return found


def divided(scored: Scored, part: NDArray[np.int_], parts: int) -> list[list[dict[str, NDArray]]]:
    """As `parted`, by a number of each sample's part, `(T, n)`, from 0 on."""
    inside = np.broadcast_to(scored["member"], np.shape(scored["scores"]))
    made = [*zip(scored["scores"], inside, scored["thresholds"], part, strict=True)]
    return [
        [{"scores": s[None, o == p], "member": m[None, o == p], "thresholds": b[None]} for s, m, b, o in made]
        for p in range(parts)
    ]


def _known(table: Mapping[str, NDArray], index: NDArray) -> NDArray[np.int_]:
    """Where samples stand in a table whose `index` ascends."""
    found = np.minimum(np.searchsorted(table["index"], index), len(table["index"]) - 1)
    if not np.array_equal(table["index"][found], index):
        raise ValueError("the attack judges samples that the ranking does not know")
    return found


@compute.register(Memorization)
def _(step: Memorization, of: Of) -> Arrays:
    read = [store.read(signals.key).arrays for signals in step.parents()]
    roles = np.stack([arrays["role"] for arrays in read])
    pool = np.isin(roles, (Role.MEMBER, Role.NONMEMBER)).all(axis=0)
    if step.measure == "accuracy":
        right = np.stack([arrays["logits"].argmax(axis=1) == arrays["labels"] for arrays in read]).astype(float)
    else:
        right = np.stack([np.exp(-np.logaddexp(0, -arrays["views"][:, 0])) for arrays in read])
    score, error, outside = memorization(right[:, pool], (roles == Role.MEMBER)[:, pool])
    return {"score": score, "error": error, "outside": outside, "index": read[0]["index"][pool]}


@compute.register(ShuffledRanking)
def _(step: ShuffledRanking, of: Of) -> Arrays:
    arrays = store.read(step.of.key).arrays
    order = np.random.default_rng(step.seed).permutation(len(arrays["score"]))
    return arrays | {name: arrays[name][order] for name in ("score", "error", "outside")}
