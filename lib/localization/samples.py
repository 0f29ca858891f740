"""Which samples a network remembers: memorization scores of a population (numpy)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lib import store
from lib.audit import Estimate, FloatArray, auc, own_rates, paired_difference
from lib.audit.rates import false_positives
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

    Samples without a score (NaN) are left out. The interval over samples is Fisher's with the variance of Bonett &
    Wright (2000): (1 + r^2 / 2) / (n - 3).
    """
    from scipy import stats

    scored = [np.isfinite(each["score"]) for each in (one, other)]
    indices = [each["index"][own] for each, own in zip((one, other), scored, strict=True)]
    _, first, second = np.intersect1d(indices[0], indices[1], assume_unique=True, return_indices=True)
    rho = float(stats.spearmanr(one["score"][scored[0]][first], other["score"][scored[1]][second]).statistic)
    error = np.sqrt((1 + rho**2 / 2) / (len(first) - 3))
    low, high = np.tanh(np.arctanh(np.clip(rho, -1 + 1e-12, 1 - 1e-12)) + np.array([-1.96, 1.96]) * error)
    return Estimate(rho, float(low), float(high), len(first))


def exposure(scored: Scored, least: int = 1) -> dict[str, NDArray]:
    """How far an attack tells each sample's membership: its mean score as a member minus that as a non-member.

    Means are over the attack's targets; samples that fewer than `least` of them have on a side are left out. So what
    the attack says of a sample whoever trained on it, as `audit.exposed_alike` has it too, is taken out. Result:
    `score (n,)` and `index (n,)`, as a ranking has them.
    """
    member = np.broadcast_to(scored["member"], np.shape(scored["scores"]))
    index = np.broadcast_to(scored["index"], member.shape)
    size = index.max() + 1
    sides = [
        (np.bincount(index[s], scored["scores"][s], size), np.bincount(index[s], None, size)) for s in (member, ~member)
    ]
    known = np.minimum(sides[0][1], sides[1][1]) >= max(1, least)
    inside, outside = (total[known] / count[known] for total, count in sides)
    return {"score": inside - outside, "index": np.flatnonzero(known)}


def agreement_difference(
    one: Mapping[str, NDArray], other: Mapping[str, NDArray], base: Mapping[str, NDArray], resamples: int = 400
) -> Estimate:
    """The `agreement` of one ranking with a base minus that of another; all three rank the same samples.

    The interval is that of a bootstrap over samples (percentiles). ValueError where the samples differ.
    """
    from scipy import stats

    if any(not np.array_equal(each["index"], base["index"]) for each in (one, other)):
        raise ValueError("the rankings are of other samples")

    def difference(*scores: FloatArray, axis: int = -1) -> FloatArray:
        ranks = [stats.zscore(stats.rankdata(each, axis=axis), axis=axis) for each in scores]
        return np.asarray(np.mean(ranks[2] * (ranks[0] - ranks[1]), axis=axis))

    data = [each["score"] for each in (one, other, base)]
    drawn = {"n_resamples": resamples, "method": "percentile", "rng": np.random.default_rng(0)}
    found = stats.bootstrap(data, difference, paired=True, vectorized=True, **drawn)
    low, high = map(float, found.confidence_interval)
    return Estimate(float(difference(*data)), low, high, len(data[0]), error=float(found.standard_error))


def reliability(one: Mapping[str, NDArray], other: Mapping[str, NDArray]) -> Estimate:
    """How far the score of all networks would agree with that of as many others, from its two halves' `agreement`.

    Spearman and Brown's 2 r / (1 + r), of the correlation and of both ends of its interval.
    """
    half = agreement(one, other)
    return replace(half, **{end: 2 * getattr(half, end) / (1 + getattr(half, end)) for end in ("value", "low", "high")})


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


def replayed(
    signals: Mapping[str, NDArray], ranking: Mapping[str, NDArray], window: Window, epochs: int
) -> tuple[NDArray[np.int_], FloatArray]:
    """How often a training with a window visits each of a network's members, and their scores: `(n,)` each.

    `signals` is what `Signals` of the network store. Counted as the training does it, so with the published code's slip
    too. ValueError where the ranking does not know a member.
    """
    import torch

    from lib.training.diets import places

    inside = signals["role"] == Role.MEMBER
    score = ranking["score"][_known(ranking, signals["index"][inside])]
    given = torch.as_tensor(score), torch.as_tensor(signals["labels"][inside].astype(np.int64))
    seen = torch.cat([places(window, *given, epoch) for epoch in range(epochs)])
    return np.bincount(seen.numpy(), minlength=len(score)), score


def divided(scored: Scored, part: NDArray[np.int_], parts: int) -> list[list[dict[str, NDArray]]]:
    """As `parted`, by a number of each sample's part, `(T, n)`, from 0 on."""
    inside = np.broadcast_to(scored["member"], np.shape(scored["scores"]))
    made = [*zip(scored["scores"], inside, scored["thresholds"], part, strict=True)]
    return [
        [{"scores": s[None, o == p], "member": m[None, o == p], "thresholds": b[None]} for s, m, b, o in made]
        for p in range(parts)
    ]


def areas(scored: Scored, ranking: Mapping[str, NDArray], parts: int) -> FloatArray:
    """AUC within each part of a ranking (`parted`), of each target: `(parts, T)`."""
    return np.array(
        [[float(auc(one["scores"][0], one["member"][0])) for one in p] for p in parted(scored, ranking, parts)]
    )


def rates(scored: Scored, ranking: Mapping[str, NDArray], parts: int, fpr: float | None = None) -> FloatArray:
    """TPR and FPR in each part of a ranking (`parted`), of each target: `(parts, 2, T)`.

    At the attacker's own thresholds; or with an `fpr` at the border that so many of a target's non-members pass, of
    whatever part, as an attack without a threshold needs.
    """
    borders = scored["thresholds"]
    if fpr is not None:
        sides = zip(scored["scores"], np.broadcast_to(scored["member"], np.shape(scored["scores"])), strict=True)
        outside = [np.sort(own[~inside]) for own, inside in sides]
        first = [len(own) - 1 - int(false_positives(fpr, np.asarray(len(own)))) for own in outside]  # that may not pass
        borders = np.nextafter([own[max(n, 0)] for own, n in zip(outside, first, strict=True)], np.inf)
    return np.array([own_rates(part) for part in parted({**scored, "thresholds": borders}, ranking, parts)])


def rise(each: FloatArray) -> Estimate:
    """Of the highest part minus the mean of the others, paired over targets; `each (parts, T)` as `areas` has it."""
    return paired_difference(each[-1], each[:-1].mean(axis=0))


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
    score, outside = (np.where(np.isnan(one), np.nanmedian(one), one) for one in (score, outside))
    return {"score": score, "error": error, "outside": outside, "index": read[0]["index"][pool]}


@compute.register(ShuffledRanking)
def _(step: ShuffledRanking, of: Of) -> Arrays:
    arrays = store.read(step.of.key).arrays
    order = np.random.default_rng(step.seed).permutation(len(arrays["score"]))
    return arrays | {name: arrays[name][order] for name in ("score", "error", "outside")}
