"""Who is exposed by an attack: by class and by sample.

A member is exposed as far as its attack score exceeds those of the target's non-members. That share
is its *rank*; the AUC is the mean rank of the members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leak_atlas import audit
from leak_atlas.explore import charts
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import registry

MEMBERS, OTHERS = "members", "non-members"
GROUPS = {OTHERS: charts.GREY, MEMBERS: charts.PURPLE}
ALL = "all classes"
SHOWN = 9  # samples in a strip


@dataclass(frozen=True)
class Exposed:
    """Who is exposed by an attack: cells by class, and each sample's rank by whether the target has
    trained on it, mean over the targets.
    """

    cells: list[dict[str, Any]]
    ranks: dict[str, dict[str, float | None]]  # by sample and group

    @classmethod
    def of(cls, data: str, attack: Arrays, signals: Arrays) -> Exposed:
        scores, inside, outside = in_pool(attack, signals["index"])
        names = np.array([f"{data} {index}" for index in signals["index"]])
        ranks = target_ranks(scores, outside)
        mean = {
            MEMBERS: charts.mean_where(ranks, inside),
            OTHERS: charts.mean_where(ranks, outside),
        }
        rows = {ALL: np.ones(len(names), bool)}
        for label, name in enumerate(registry.find(data).classes):
            rows[name] = signals["labels"] == label
        cells = []
        for name, here in rows.items():
            kept = [here & (inside[at] | outside[at]) for at in range(len(scores))]
            aucs = [
                float(audit.auc(scores[at, own], inside[at, own]))
                for at, own in enumerate(kept)
                if 0 < inside[at, own].sum() < own.sum()
            ]
            if not aucs:
                continue
            auc = audit.mean_ci(aucs, bounds=(0, 1))
            shown = np.array(kept)
            groups = {MEMBERS: inside[shown], OTHERS: outside[shown]}
            places = np.flatnonzero(here & inside.any(axis=0))
            order = places[np.argsort(-mean[MEMBERS][places], kind="stable")][:SHOWN]
            cells.append(
                {"class": name, "meaning": charts.meaning(auc, "members have", "attack scores")}
                | charts.interval(auc)
                | charts.histogram(scores[shown], groups)
                | {"sample": names[order].tolist(), "rank": charts.listed(mean[MEMBERS][order])}
            )
        listed = {group: charts.listed(of) for group, of in mean.items()}
        return cls(
            cells,
            {
                str(name): {group: of[at] for group, of in listed.items()}
                for at, name in enumerate(names)
            },
        )


def in_pool(attack: Arrays, index: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Scores of each target on the whole pool `(T, N)`, 0 where there is none, and who is a member
    or a non-member of it.
    """
    finite = attack["scores"][np.isfinite(attack["scores"])]
    scores = np.atleast_2d(attack["scores"]).clip(finite.min(), finite.max())
    places = np.searchsorted(index, np.broadcast_to(attack["index"], scores.shape))
    made = []
    for values in (scores, np.atleast_2d(attack["member"]), ~np.atleast_2d(attack["member"])):
        whole = np.zeros((len(scores), len(index)), values.dtype)
        np.put_along_axis(whole, places, np.broadcast_to(values, scores.shape), axis=1)
        made.append(whole)
    scores, inside, outside = made
    return scores, inside, outside


def target_ranks(scores: NDArray, outside: NDArray) -> NDArray:
    """The rank of each sample in each target, of what `in_pool` gives: percent, `(T, N)`."""
    ranks = np.empty(scores.shape)
    for target, others in enumerate(outside):
        ranks[target] = charts.ranks(scores[[target]], others)
    return ranks


def exposed_ranks(attack: Arrays, index: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """The rank of each sample in each target, percent `(T, N)`, and its means over the targets that
    trained on it and over the others, `(N,)`; NaN without any.
    """
    scores, inside, outside = in_pool(attack, index)
    ranks = target_ranks(scores, outside)
    return ranks, charts.mean_where(ranks, inside), charts.mean_where(ranks, outside)


def path_rows(exposed: Mapping[float, Exposed], samples: Sequence[str]) -> list[dict[str, Any]]:
    """The ranks of each sample through the sparsities."""
    made = []
    for sample in samples:
        row: dict[str, Any] = {"sample": sample, "at": list(exposed)}
        for group in GROUPS:
            row[group] = [of.ranks[sample][group] for of in exposed.values()]
        made.append(row)
    return made
