"""Which samples a network memorizes, and what an attack infers about each part of a ranking.

A *ranking* is what a step that scores samples stores: `score (n,)` of the samples `index (n,)`,
which ascend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leak_atlas.audit import (
    BoolArray,
    Estimate,
    FloatArray,
    IntArray,
    auc,
    cutoff_at_fpr,
    filled,
    mean_ci,
    own_rates,
    paired_difference,
    rank_correlation_interval,
)
from leak_atlas.audit.targets import Scored, by_target, units
from leak_atlas.data import designs, readers
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.engine.compute import Of, compute
from leak_atlas.localization import Arrays, places_of
from leak_atlas.localization.divergence import losses
from leak_atlas.recipe import Memorization, Population, ShuffledRanking, Window, WindowStudy

# what an attack says of a subset of samples, a `Scored` a target
Targets = list[dict[str, NDArray]]


# --- memorization -------------------------------------------------------------------------------


def members_of(networks: Sequence[Arrays]) -> tuple[BoolArray, BoolArray]:
    """Which of N samples are in the pool of all K networks, and which of these n each trained on.

    `networks` are what `Signals` of each network have stored. Returns `(N,)` and `(K, n)`.
    """
    roles = np.stack([signals["role"] for signals in networks])
    pool: BoolArray = np.all(designs.in_pool(roles), axis=0)
    return pool, roles[:, pool] == Role.MEMBER


def memorization(right: FloatArray, member: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Memorization score of each sample, its standard error, and the mean over OUT models.

    Arrays `(n,)`. The score is the mean of `right (M, n)` over the models that trained on the
    sample (IN) minus that over the others (OUT); `member (M, n)` says which did (Feldman & Zhang
    2020, eq. 1). NaN where a side has no models. A side with one model makes the error infinite.
    """
    mean_in, variance_in = _mean_and_variance(right, member)
    mean_out, variance_out = _mean_and_variance(right, ~member)
    return mean_in - mean_out, np.sqrt(variance_in + variance_out), mean_out


@np.errstate(invalid="ignore", divide="ignore")
def _mean_and_variance(values: FloatArray, side: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Mean of `values (M, n)` over the models of a side, and the variance of this mean, `(n,)`."""
    number = side.sum(axis=0)
    mean = values.sum(axis=0, where=side) / number
    squares = np.square(values - mean).sum(axis=0, where=side)
    variance = squares / (number - 1) / number
    return mean, np.where(number > 1, variance, np.inf)


@compute.register(Memorization)
def _(step: Memorization, of: Of) -> Arrays:
    networks = [store.read(signals.key).arrays for signals in step.parents()]
    pool, member = members_of(networks)
    right = np.stack([_rightness(signals, step.measure)[pool] for signals in networks])
    score, error, outside = memorization(right, member)
    return {
        "score": filled(score),
        "error": error,
        "outside": filled(outside),
        "index": networks[0]["index"][pool],
    }


def _rightness(signals: Arrays, measure: str) -> FloatArray:
    """Whether a network is right (`accuracy`), or its probability of the true class, `(N,)`."""
    if measure == "accuracy":
        right = signals["logits"].argmax(axis=1) == signals["labels"]
        return right.astype(float)
    scaled = signals["views"][:, 0]  # log(p / (1 - p)) of the true class
    return np.exp(-np.logaddexp(0, -scaled))


@compute.register(ShuffledRanking)
def _(step: ShuffledRanking, of: Of) -> Arrays:
    arrays = dict(store.read(step.of.key).arrays)
    order = np.random.default_rng(step.seed).permutation(len(arrays["score"]))
    for name in ("score", "error", "outside"):
        arrays[name] = arrays[name][order]
    return arrays


# --- agreement of rankings ----------------------------------------------------------------------


def agreement(one: Arrays, other: Arrays) -> Estimate:
    """Spearman's correlation of two rankings over the samples that both score.

    Samples without a score (NaN) are left out. The interval is over samples, see
    `audit.rank_correlation_interval`.
    """
    import pandas as pd

    series = [pd.Series(ranking["score"], ranking["index"]) for ranking in (one, other)]
    common = pd.concat(series, axis=1, join="inner").dropna().to_numpy()
    return rank_correlation_interval(common[:, 0], common[:, 1])


# --- what an attack infers of some samples ------------------------------------------------------


def _by_target(scored: Scored, name: str) -> NDArray:
    """`member` or `index` of what an attack stores, as `(T, n)` for all its T targets."""
    return np.broadcast_to(scored[name], np.shape(scored["scores"]))


def loss_rise(
    results: Any,
    treated: Population,
    untreated: Population,
    targets: int | None = None,
) -> Estimate:
    """By how much the mean cross-entropy on members is higher in treated networks, nats.

    Paired over the first `targets` networks of both populations; `results` is what `lab.realize`
    returned, with the `Signals` of these networks.
    """
    with_treatment = losses(results, treated.signals()[:targets], Role.MEMBER)
    without = losses(results, untreated.signals()[:targets], Role.MEMBER)
    return paired_difference(with_treatment, without)


def exposure(scored: Scored) -> dict[str, NDArray]:
    """How much an attack's score of each sample depends on its membership, as a ranking.

    The mean score over targets that trained on the sample minus the mean over the others. Samples
    that no target has on a side are left out.
    """
    import pandas as pd

    table = pd.DataFrame(
        {
            "index": _by_target(scored, "index").ravel(),
            "member": _by_target(scored, "member").ravel(),
            "score": np.ravel(scored["scores"]),
        }
    )
    means = table.groupby(["index", "member"])["score"].mean().unstack()
    difference = (means[True] - means[False]).dropna()
    return {"score": difference.to_numpy(), "index": difference.index.to_numpy()}


def split_by_ranking(
    scored: Scored,
    ranking: Arrays,
    parts: int,
) -> list[Targets]:
    """What an attack says of the samples in each part of a ranking, from the lowest scores up.

    The parts have the same number of ranked samples, members or not; of equal scores the first is
    in the lower part. A list a part, see `split_by_group`. Raises ValueError if the attack judges a
    sample that is not ranked.
    """
    part = _part_of_each(ranking, parts)
    return split_by_group(scored, part[_places(ranking, _by_target(scored, "index"))], parts)


def _part_of_each(ranking: Arrays, parts: int) -> IntArray:
    """The part of each ranked sample, from 0 for the lowest scores, `(n,)`."""
    from scipy.stats import rankdata

    rank = rankdata(ranking["score"], method="ordinal").astype(int) - 1
    return rank * parts // len(rank)


def split_by_group(
    scored: Scored,
    group: IntArray,
    groups: int,
) -> list[Targets]:
    """What an attack says of the samples in each of several groups.

    `group (T, n)` numbers the groups of each target's samples from 0. For each group a list of one
    `Scored` a target, since targets have different numbers of members in it.
    """
    return [_restricted(scored, group == number) for number in range(groups)]


def _restricted(scored: Scored, chosen: BoolArray) -> Targets:
    """What an attack says of the samples `chosen (T, n)`, a `Scored` a target."""
    columns = scored["scores"], _by_target(scored, "member"), scored["thresholds"], chosen
    return [
        {
            "scores": scores[None, own],
            "member": member[None, own],
            "thresholds": threshold[None],
        }
        for scores, member, threshold, own in zip(*columns, strict=True)
    ]


def auc_by_part(
    scored: Scored,
    ranking: Arrays,
    parts: int,
) -> FloatArray:
    """AUC within each part of a ranking (see `split_by_ranking`), of each target: `(parts, T)`."""
    return _areas(split_by_ranking(scored, ranking, parts))


def _areas(groups: Sequence[Targets]) -> FloatArray:
    """AUC within each group of samples, of each target: `(groups, T)`."""
    return np.array([units(by_target(group), auc) for group in groups])


def rise_within_strata(
    scored: Scored,
    ranking: Arrays,
    strata_by: Arrays,
    strata: int,
) -> FloatArray:
    """Whether AUC rises with a ranking at nearly equal values of a second one: `(T,)`, by target.

    A stratum is one of `strata` equal parts of `strata_by`, a ranking of the same samples. In each
    we take the AUC in the upper half of `ranking` minus that in its lower half. The result is the
    mean over strata.
    """
    stratum = _part_of_each(strata_by, strata)
    upper = np.zeros(len(stratum), np.int_)
    for number in range(strata):
        own = stratum == number
        upper[own] = _part_of_each({"score": ranking["score"][own]}, 2)
    half = 2 * stratum + upper  # of each ranked sample
    places = _places(ranking, _by_target(scored, "index"))
    areas = _areas(split_by_group(scored, half[places], 2 * strata))
    rises = areas[1::2] - areas[::2]
    return np.asarray(rises.mean(axis=0))


def rates_by_part(
    scored: Scored,
    ranking: Arrays,
    parts: int,
    fpr: float | None = None,
) -> FloatArray:
    """TPR and FPR within each part of a ranking, of each target: `(parts, 2, T)`.

    At the attacker's own thresholds; with an `fpr`, at the threshold that this share of the
    target's non-members in all parts exceeds, which an attack without a threshold needs.
    """
    if fpr is not None:
        cutoffs = []
        for scores, member in zip(scored["scores"], _by_target(scored, "member"), strict=True):
            cutoffs.append(cutoff_at_fpr(scores[~member], fpr))
        # A threshold is reached, a cutoff is exceeded.
        scored = {**scored, "thresholds": np.nextafter(cutoffs, np.inf)}
    split = split_by_ranking(scored, ranking, parts)
    return np.array([own_rates(part) for part in split])


def rise(values: FloatArray) -> Estimate:
    """The highest part minus the mean of the others, of `values (parts, T)` paired over targets."""
    return paired_difference(values[-1], values[:-1].mean(axis=0))


# --- what a window visits -----------------------------------------------------------------------


def member_ranks(
    study: WindowStudy,
    ranking: Arrays,
    order: Literal["high-to-low", "low-to-high"] = "low-to-high",
) -> IntArray:
    """The rank of each of the n ranked samples among the members of its class in each target, from
    1; 0 where it is no member: `(T, n)`.

    Of equal scores the first sample ranks first, as in a training with a `Window`.
    """
    stored = readers.load(study.data.name, study.data.pixels)
    roles = designs.roles(study.setup.design, stored.labels, study.data.parts[0], study.targets)
    labels = readers.labels(study.data, stored)
    member = roles[:, ranking["index"]] == Role.MEMBER
    label = labels[ranking["index"]]
    score = -ranking["score"] if order == "high-to-low" else ranking["score"]
    ranks = np.zeros(member.shape, np.int_)
    for target, inside in enumerate(member):
        for number in np.unique(label[inside]):
            own = np.flatnonzero(inside & (label == number))
            ordered = own[np.argsort(score[own], kind="stable")]
            ranks[target, ordered] = np.arange(len(own)) + 1
    return ranks


def means_by_rank(values: FloatArray, ranks: IntArray) -> list[Estimate]:
    """Mean over the members of each rank that all targets have, with its interval over targets.

    Percentages `values (T, n)`; `ranks (T, n)` as `member_ranks` gives them.
    """
    means = []
    for rank in range(1, ranks.max(axis=1).min() + 1):
        of_targets = values.mean(axis=1, where=ranks == rank)
        means.append(mean_ci(of_targets, bounds=(0, 100)))
    return means


def nearest(x: NDArray, number: int) -> IntArray:
    """Places of the samples that are nearest to each of `x (n, ...)`, by Euclidean distance of the
    pixels: `(n, number)`.
    """
    from scipy.spatial.distance import cdist

    flat = x.reshape(len(x), -1).astype(float)
    distances = cdist(flat, flat)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :number]


def window_visits(
    scored: Scored,
    ranking: Arrays,
    labelled: Arrays,
    window: Window,
    epochs: int,
) -> IntArray:
    """How often a training with a window visits each sample that an attack judges, `(T, n)`.

    A non-member, which no training visits, has the number of the member whose rank in its class it
    would take, so that members of each number are compared with non-members of similar scores.
    `labelled` has `labels (n,)` of the samples `index (n,)`. Raises ValueError if the attack judges
    a sample that is not ranked or not labelled.
    """
    index = _by_target(scored, "index")
    member = _by_target(scored, "member")
    label = labelled["labels"][_places(labelled, index)]
    score = ranking["score"][_places(ranking, index)]
    if window.order == "high-to-low":
        score = -score
    visits = np.zeros(index.shape, np.int_)
    for target, inside in enumerate(member):
        for number in np.unique(label[target, inside]):
            own = label[target] == number
            scores = score[target, own]
            visits[target, own] = _visits_in_class(scores, inside[own], window, epochs)
    return visits


def _visits_in_class(
    score: FloatArray,
    member: BoolArray,
    window: Window,
    epochs: int,
) -> IntArray:
    """The visits `(n,)` of one class; the window goes by rising score, and of equal scores the
    first member comes first, as in training.
    """
    members = np.flatnonzero(member)
    members = members[np.argsort(score[members], kind="stable")]
    visits_by_rank = np.array(window.visits(len(members), epochs))
    rank = np.searchsorted(score[members], score)
    visits = visits_by_rank[np.minimum(rank, len(members) - 1)]
    visits[members] = visits_by_rank
    return visits


def _places(table: Arrays, index: ArrayLike) -> IntArray:
    """Positions of the samples `index` in a table whose own `index` ascends."""
    return places_of(np.asarray(index), table["index"])
