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
from leak_atlas.explore import records, vega
from leak_atlas.explore.records import BoolArray, Row
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import Data, registry

MEMBERS, OTHERS = "members", "non-members"
GROUPS = {OTHERS: vega.GREY, MEMBERS: vega.PURPLE}
ALL = "all classes"
SHOWN = 9  # samples in a strip


@dataclass(frozen=True)
class Scores:
    """What an attack says of the whole pool, `(targets, N)` each."""

    score: NDArray  # 0 where there is none
    member: BoolArray  # of the target
    other: BoolArray  # non-members of the target

    @classmethod
    def of(cls, attack: Arrays, index: NDArray) -> Scores:
        """Scores on the samples `index (N,)` of the pool; infinite ones become the most extreme."""
        given = np.atleast_2d(attack["scores"])
        finite = given[np.isfinite(given)]
        member_given = np.broadcast_to(attack["member"], given.shape)
        samples = np.broadcast_to(attack["index"], given.shape)
        target = np.arange(len(given))[:, None]
        place = np.searchsorted(index, samples)
        shape = len(given), len(index)
        score = np.zeros(shape)
        member = np.zeros(shape, bool)
        other = np.zeros(shape, bool)
        score[target, place] = given.clip(finite.min(), finite.max())
        member[target, place] = member_given
        other[target, place] = ~member_given
        return cls(score, member, other)

    def ranks(self) -> NDArray:
        """The percentage of each target's non-members with a lower score, `(targets, N)`."""
        ranks = np.empty(self.score.shape)
        for target, others in enumerate(self.other):
            ranks[target] = records.ranks(self.score[[target]], others)
        return ranks

    def within(self, samples: BoolArray) -> Scores:
        """The same of some of the samples, `(N,)`; the others have no score."""
        return Scores(self.score, self.member & samples, self.other & samples)

    def auc(self) -> Estimate | None:
        """AUC over the targets that have members and non-members; None where there is none."""
        aucs = []
        for score, member, other in zip(self.score, self.member, self.other, strict=True):
            if member.any() and other.any():
                judged = member | other
                auc = audit.auc(score[judged], member[judged])
                aucs.append(float(auc))
        return audit.mean_ci(aucs, bounds=(0, 1)) if aucs else None

    def histogram(self) -> Row:
        """How the scores of members and of non-members are distributed."""
        judged = self.member | self.other
        groups = {
            MEMBERS: self.member[judged],
            OTHERS: self.other[judged],
        }
        return records.histogram(self.score[judged], groups)


@dataclass(frozen=True)
class Exposed:
    """Who is exposed by an attack: cells by class, and the rank of each sample of `index (N,)` as a
    member and as a non-member, `(N,)`, mean over the targets.
    """

    cells: list[Row]
    index: NDArray
    ranks: dict[str, NDArray]  # by group

    @classmethod
    def of(cls, results: Sequence[Arrays], data: Data) -> Exposed:
        """`results` are those of an attack, and the `Signals` of one target."""
        attack, signals = results
        index = signals["index"]
        scores = Scores.of(attack, index)
        ranks = mean_ranks(scores, scores.ranks())
        classes = {ALL: np.ones(len(index), bool)}
        for label, name in enumerate(registry.find(data.name).classes):
            classes[name] = signals["labels"] == label
        cells = []
        for name, samples in classes.items():
            own = scores.within(samples)
            if auc := own.auc():
                highest = _highest(own, ranks[MEMBERS])
                cell = {
                    "class": name,
                    "meaning": records.meaning(auc, "members have", "attack scores"),
                    **records.interval(auc),
                    **own.histogram(),
                    "sample": [records.sample_name(data, at) for at in index[highest]],
                    "rank": records.rounded(ranks[MEMBERS][highest]),
                }
                cells.append(cell)
        return cls(cells, index, ranks)


def _highest(scores: Scores, ranks: NDArray) -> NDArray:
    """The places of the members that are exposed most."""
    members = np.flatnonzero(scores.member.any(axis=0))
    order = np.argsort(-ranks[members], kind="stable")
    return members[order[:SHOWN]]


def mean_ranks(scores: Scores, ranks: NDArray) -> dict[str, NDArray]:
    """The rank of each sample `(N,)`, mean over the targets that trained on it, and over the
    others; NaN without any.
    """
    return {
        MEMBERS: records.mean_where(ranks, scores.member),
        OTHERS: records.mean_where(ranks, scores.other),
    }


def path_rows(exposed: Mapping[Any, Exposed], samples: Sequence[str]) -> list[Row]:
    """The ranks of each sample through the sparsities, or whatever the keys are."""
    if not exposed:
        return []
    index = [records.sample_index(sample) for sample in samples]
    columns: Row = {
        "sample": samples,
        "at": [[*exposed]] * len(samples),
    }
    for group in GROUPS:
        ranks = []
        for each in exposed.values():
            places = np.searchsorted(each.index, index)
            ranks.append(each.ranks[group][places])
        columns[group] = np.transpose(ranks).round()
    return records.records(columns)
