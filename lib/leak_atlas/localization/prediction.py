"""Which samples end vulnerable: how well hardness, early attacks and other networks predict it.

A sample's risk is its final advantage, TPR minus FPR (`trajectories.plane`). The attack uses none
of the networks that judge a sample's hardness. There are E checkpoints and n samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from leak_atlas.audit import Estimate, FloatArray, IntArray, rank_correlation, ranks_within
from leak_atlas.localization import places_of
from leak_atlas.localization.over_time import Trajectory, jackknife
from leak_atlas.localization.trajectories import (
    Rule,
    across_halves,
    advantage,
    encoding_speed,
    flagged_early,
    highest,
    plane,
)

Halvings = Sequence[tuple[Trajectory, Trajectory]]
Groups = Mapping[str, Sequence[str]]


# --- hardness -----------------------------------------------------------------------------------


def hard_minus_easy(
    trajectory: Trajectory,
    hardness: FloatArray,
    pool: IntArray,
    part: float = 0.25,
    rule: Rule = 0.1,
) -> FloatArray:
    """Mean advantage of the hardest part of the samples minus that of the easiest part, `(E,)`.

    `hardness (n,)` is that of the samples `pool (n,)`. Rates are counted.
    """
    own = hardness[places_of(trajectory.index, pool)]
    gained = advantage(plane(trajectory, rule))
    hard = highest(own, part)
    easy = highest(-own, part)
    of_hard = gained[:, hard].mean(axis=1)
    return of_hard - gained[:, easy].mean(axis=1)


class Correlations(NamedTuple):
    """Rank correlations of a hardness measure, over samples."""

    risk: Estimate
    speed: Estimate  # with the length of the path per epoch, minus that in the permutation null
    within_class: Estimate  # with the risk, where both are ranked within the sample's class


def correlations_with_risk(
    trajectory: Trajectory,
    null: Trajectory,
    measures: Mapping[str, FloatArray],
    pool: IntArray,
    labels: IntArray,
    groups: Groups,
    rule: Rule = 0.1,
) -> dict[str, Correlations]:
    """Rank correlations of each measure, and the mean over each group of measures, by name.

    `measures (n,)` and `labels (n,)` are those of the samples `pool (n,)`. Risk and speed are those
    of fitted rates.
    """
    values = np.array(list(measures.values()))

    def measure(one: Trajectory, noise: Trajectory) -> FloatArray:
        place = places_of(one.index, pool)
        hard = values[:, place]
        label = labels[place]
        path = plane(one, rule, "fitted")
        still = plane(noise, rule, "fitted")
        risk = advantage(path)[-1]
        speed = encoding_speed(path, one.epochs) - encoding_speed(still, noise.epochs)
        ranked = ranks_within(hard, label), ranks_within(risk, label)
        correlations = [
            rank_correlation(hard, risk),
            rank_correlation(hard, speed),
            rank_correlation(*ranked),
        ]
        return _with_means(np.transpose(correlations), measures, groups)

    rows = zip([*measures, *groups], jackknife(measure, trajectory, null), strict=True)
    return {name: Correlations(*estimates) for name, estimates in rows}


def correlations_with_true_risk(
    halvings: Halvings,
    measures: Mapping[str, FloatArray],
    pool: IntArray,
    groups: Groups,
    rule: Rule = 0.1,
) -> tuple[dict[str, Estimate], Estimate]:
    """Rank correlations with the risk without its noise, by name; and how well halves agree on it.

    Noise in the risk lowers a correlation by the root of the rank correlation between the risks of
    two halves of the networks (Spearman 1904). `measures` and `groups` as in
    `correlations_with_risk`.
    """
    values = np.array(list(measures.values()))

    def measure(
        one: FloatArray,
        other: FloatArray,
        index: IntArray,
    ) -> FloatArray:
        hard = values[:, places_of(index, pool)]
        with_risk = _with_means(rank_correlation(hard, one[-1]), measures, groups)
        return np.append(with_risk, rank_correlation(one[-1], other[-1]))

    def without_noise(correlations: FloatArray) -> FloatArray:
        *with_risk, agreement = correlations
        reliability = np.sqrt(max(agreement, 1e-9))
        return np.append(np.array(with_risk) / reliability, agreement)

    *estimates, agreement = across_halves(measure, halvings, without_noise, rule)
    return dict(zip([*measures, *groups], estimates, strict=True)), agreement


def agreement_of_halves(halvings: Halvings, rule: Rule = 0.1) -> Estimate:
    """Rank correlation of the risks by two halves of the networks, which share no shadow model."""

    def measure(
        one: FloatArray,
        other: FloatArray,
        index: IntArray,
    ) -> FloatArray:
        return rank_correlation(one[-1], other[-1])

    return across_halves(measure, halvings, rule=rule)


def _with_means(
    values: FloatArray,
    measures: Mapping[str, FloatArray],
    groups: Groups,
) -> FloatArray:
    """The values `(measures, ...)`, then their means over the measures of each group."""
    place = {name: number for number, name in enumerate(measures)}
    means = []
    for group in groups.values():
        own = [place[name] for name in group]
        means.append(values[own].mean(axis=0))
    return np.array([*values, *means])


# --- early signals ------------------------------------------------------------------------------


class EarlyFlags(NamedTuple):
    """Of the samples with the highest risk, the share already flagged at each of E checkpoints."""

    same: list[Estimate]  # highest by the same networks
    other: list[Estimate]  # highest by networks with which these share no shadow model


def early_flags(
    halvings: Halvings,
    share: float = 0.1,
    rule: Rule = 0.1,
) -> EarlyFlags:
    """How early the samples with the highest risk are flagged.

    A half of the networks flags a `share` of the samples at each checkpoint: those with the largest
    advantage.
    """

    def measure(
        one: FloatArray,
        other: FloatArray,
        index: IntArray,
    ) -> FloatArray:
        flagged = highest(one, share)
        by_same = flagged_early(flagged, flagged[-1])
        by_other = flagged_early(flagged, highest(other[-1], share))
        return np.stack([by_same, by_other])

    return EarlyFlags(*across_halves(measure, halvings, rule=rule))


class Foresight(NamedTuple):
    """How well a signal at each of E checkpoints predicts the risk by networks that it ignores."""

    correlation: list[Estimate]  # rank correlation with the risk
    found: list[Estimate]  # share of the samples with the highest risk that it flags
    beyond_attack: list[Estimate]  # correlation minus that of the attack at the same checkpoint
    beyond_final_attack: list[Estimate]  # correlation minus that of the attack at the last one


def foresight(
    halvings: Halvings,
    signals: Mapping[str, FloatArray],
    pool: IntArray,
    share: float = 0.1,
    rule: Rule = 0.1,
) -> dict[str, Foresight]:
    """How well signals predict the risk, by name; "attack" is that of the other half of the
    networks.

    `signals (E, n)` of the samples `pool (n,)` are larger where more risk is expected. The risk is
    that of one half. A `share` of the samples counts as at the highest risk, and the same share is
    flagged.
    """

    def measure(
        one: FloatArray,
        other: FloatArray,
        index: IntArray,
    ) -> FloatArray:
        place = places_of(index, pool)
        risk = other[-1]
        most = highest(risk, share)
        correlations = []
        found = []
        for signal in (one, *(each[:, place] for each in signals.values())):
            correlations.append(rank_correlation(signal, risk))
            found.append(flagged_early(highest(signal, share), most))
        correlation = np.array(correlations)
        of_attack = correlation[0]
        beyond_attack = correlation - of_attack
        beyond_final = correlation - of_attack[-1]
        return np.stack([correlation, found, beyond_attack, beyond_final], axis=1)

    rows = zip(["attack", *signals], across_halves(measure, halvings, rule=rule), strict=True)
    return {name: Foresight(*estimates) for name, estimates in rows}


class Exposure(NamedTuple):
    """Mean advantage at each of E checkpoints, and the same as a share of that at the last."""

    flagged: list[Estimate]  # of the samples that other networks flag at the end
    everybody: list[Estimate]
    flagged_left: list[Estimate]
    everybody_left: list[Estimate]
    left_difference: list[Estimate]  # flagged minus everybody


def exposure_of_flagged(
    halvings: Halvings,
    share: float = 0.1,
    rule: Rule = 0.1,
) -> Exposure:
    """How exposed samples are over time, by one half of the networks; the other half flags them.

    Flagged is the `share` of the samples with the highest risk by the other half.
    """

    def measure(
        one: FloatArray,
        other: FloatArray,
        index: IntArray,
    ) -> FloatArray:
        flagged = highest(other[-1], share)
        return np.stack([one[:, flagged].mean(axis=1), one.mean(axis=1)])

    def with_shares(means: FloatArray) -> FloatArray:
        left = means / means[:, -1:]
        return np.stack([*means, *left, left[0] - left[1]])

    return Exposure(*across_halves(measure, halvings, with_shares, rule))


# --- other attacks ------------------------------------------------------------------------------


class Agreement(NamedTuple):
    """Rank correlations of the risks that attacks find on two halves of the networks."""

    with_itself: Estimate
    with_reference: Estimate
    difference: Estimate  # with itself minus with the reference


def agreement(
    first: Mapping[str, Trajectory],
    second: Mapping[str, Trajectory],
    reference: str,
    rule: Rule = 0.1,
) -> dict[str, Agreement]:
    """Whether attacks expose the same samples as a `reference` attack, by name.

    Each attack is made on two halves of the networks, `first` and `second`. Both orders are
    averaged. Rates are counted.
    """
    names = list(first)
    at = names.index(reference)

    def measure(*both: Trajectory) -> FloatArray:
        risks = np.array([advantage(plane(each, rule))[-1] for each in both])
        one, other = np.split(risks, 2)
        ranks = rank_correlation(one[:, None], other[None])
        itself = np.diag(ranks)
        with_reference = (ranks[at] + ranks[:, at]) / 2
        return np.stack([itself, with_reference, itself - with_reference], axis=1)

    estimates = jackknife(measure, *first.values(), *(second[name] for name in names))
    return {name: Agreement(*row) for name, row in zip(names, estimates, strict=True)}
