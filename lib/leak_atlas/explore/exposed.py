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
from leak_atlas.audit import Estimate
from leak_atlas.explore import charts
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import registry

MEMBERS, OTHERS = "members", "non-members"
GROUPS = {OTHERS: charts.GREY, MEMBERS: charts.PURPLE}
ALL = "all classes"
SHOWN = 9  # samples in a strip


@dataclass(frozen=True)
class Exposed:
    """Who is exposed by an attack: cells by class, and the rank of each sample of `index (N,)` by
    whether the target has trained on it, `(N,)`, mean over the targets.
    """

    cells: list[dict[str, Any]]
    index: NDArray
    ranks: dict[str, NDArray]  # by group

    @classmethod
    def of(cls, results: Sequence[Arrays], data: str) -> Exposed:
        """`results` are those of an attack, and the `Signals` of one target."""
        attack, signals = results
        index, labels = signals["index"], signals["labels"]
        scores, inside, outside = in_pool(attack, index)
        _, as_member, otherwise = exposed_ranks(attack, index)
        rows = {ALL: np.ones(len(index), bool)}
        for label, name in enumerate(registry.find(data).classes):
            rows[name] = labels == label
        cells = []
        for name, here in rows.items():
            members, others = inside & here, outside & here
            auc = _mean_auc(scores, members, others)
            if auc is None:
                continue
            cell: dict[str, Any] = {"class": name}
            cell["meaning"] = charts.meaning(auc, "members have", "attack scores")
            shown = members | others
            groups = {MEMBERS: members[shown], OTHERS: others[shown]}
            places = np.flatnonzero(members.any(axis=0))
            highest = places[np.argsort(-as_member[places], kind="stable")][:SHOWN]
            cell |= charts.interval(auc) | charts.histogram(scores[shown], groups)
            cell["sample"] = [f"{data} {at}" for at in index[highest]]
            cell["rank"] = charts.listed(as_member[highest])
            cells.append(cell)
        return cls(cells, index, {MEMBERS: as_member, OTHERS: otherwise})


def _mean_auc(scores: NDArray, members: NDArray, others: NDArray) -> Estimate | None:
    """AUC over the targets that have members and non-members; None where there is none."""
    aucs = []
    for own, inside, outside in zip(scores, members, others, strict=True):
        judged = inside | outside
        if inside.any() and outside.any():
            aucs.append(float(audit.auc(own[judged], inside[judged])))
    return audit.mean_ci(aucs, bounds=(0, 1)) if aucs else None


def in_pool(attack: Arrays, index: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Scores of each target on the whole pool `(T, N)`, 0 where there is none, and who is a member
    or a non-member of it.
    """
    own = np.atleast_2d(attack["scores"])
    finite = own[np.isfinite(own)]
    member = np.broadcast_to(attack["member"], own.shape)
    target = np.arange(len(own))[:, None]
    places = np.searchsorted(index, np.broadcast_to(attack["index"], own.shape))
    scores = np.zeros((len(own), len(index)))
    inside, outside = scores.astype(bool), scores.astype(bool)
    scores[target, places] = own.clip(finite.min(), finite.max())
    inside[target, places] = member
    outside[target, places] = ~member
    return scores, inside, outside


def exposed_ranks(attack: Arrays, index: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """The rank of each sample in each target, percent `(T, N)`, and its means over the targets that
    trained on it and over the others, `(N,)`; NaN without any.
    """
    scores, inside, outside = in_pool(attack, index)
    ranks = np.empty(scores.shape)
    for target, others in enumerate(outside):
        ranks[target] = charts.ranks(scores[[target]], others)
    return ranks, charts.mean_where(ranks, inside), charts.mean_where(ranks, outside)


def path_rows(exposed: Mapping[float, Exposed], samples: Sequence[str]) -> list[dict[str, Any]]:
    """The ranks of each sample through the sparsities."""
    index = [int(sample.rpartition(" ")[2]) for sample in samples]
    if not exposed:
        return []
    columns: dict[str, Any] = {"sample": samples, "at": [[*exposed]] * len(samples)}
    for group in GROUPS:
        ranks = [of.ranks[group][np.searchsorted(of.index, index)] for of in exposed.values()]
        columns[group] = np.transpose(ranks).round()
    return charts.records(columns)
