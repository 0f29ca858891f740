"""One probe of PPTP as the rows of a figure: an AUC for each cell, who carries it, each sample's path.

A sample carries the disparity of a cell as far as its value exceeds those of the samples that both
networks have seen: the percentage that lies below is its *rank*. The AUC is the mean rank of the
unseen samples, over 100.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leak_atlas import audit
from leak_atlas.audit import Estimate
from leak_atlas.data import readers
from leak_atlas.explore import records
from leak_atlas.explore.records import Row
from leak_atlas.explore.setting import Setting
from leak_atlas.localization import disparity
from leak_atlas.localization.disparity import Arrays
from leak_atlas.recipe import registry

MEASURES = {
    "distance": "Euclidean distance of the features in M_all and in M_h1 (the paper's)",
    "distance after rotation": "distance that remains after the best rotation of the channels",
    "direction": "1 − cosine similarity of the features in M_all and in M_h1",
    "length": "length of the features in M_h1",
    "length difference": "length of the features in M_all, minus their length in M_h1",
    "membership probe": "negative score of a membership attack on M_h1's features",
}
FIELDS = {"distance": "euclidean", "distance after rotation": "aligned"}  # of results
BOTH, ONE = "seen by both networks", "seen by M_all only"
SHOWN = 9  # samples in a strip
CLASSES = 12  # at most so many are shown one by one


@dataclass(frozen=True)
class Values:
    """A measure of one pair of networks: a value of each part and sample `(P, n)`, which samples
    M_h1 has seen `(n,)`, and their places among all samples of the probe `(n,)`.
    """

    value: NDArray
    seen: NDArray[np.bool_]
    place: NDArray


def _values(results: Sequence[Arrays], measure: str, index: NDArray) -> list[Values]:
    """The values of each pair; `index (N,)` are all samples of the probe."""
    pairs = []
    for each in results:
        if measure == "membership probe":
            value, seen, samples = -each["scores"], each["member"], each["index"]
        else:
            (value,), (seen,) = disparity.read([each], FIELDS.get(measure, measure))
            samples = each["index"][each["seen_a"]]
        pairs.append(Values(value, seen, np.searchsorted(index, samples)))
    return pairs


@dataclass(frozen=True)
class Ranks:
    """Ranks of each sample `(epochs, P, N)`, mean over the pairs whose M_h1 has not seen it, and
    over the others; NaN where there is none.
    """

    unseen: NDArray
    seen: NDArray


class Side:
    """One probe: its cells, and the path of each sample that carries one."""

    def __init__(
        self, setting: Setting, found: Mapping[str, Mapping[int, Sequence[Arrays]]]
    ) -> None:
        """`found` are the results of a probe by kind and epoch."""
        self.data = setting.data
        first = next(iter(found["distance"].values()))[0]
        self.parts = bytes(first["parts"]).decode().split("\n")
        self.epochs = sorted(set().union(*found.values()))
        self.index = np.unique(first["index"])
        self._labels = self._shown_labels()
        self.cells: list[Row] = []
        self._ranks: dict[str, Ranks] = {}
        for measure in MEASURES:
            if measure in found:
                self._measure(measure, found[measure])
            elif measure in disparity.MEASURES:
                self._measure(measure, found["distance"])

    def _shown_labels(self) -> NDArray:
        """The class of each sample, `(N,)`; all 0 where there are too many classes."""
        labels = readers.load(self.data.name, self.data.pixels).labels[self.index]
        many = len(registry.find(self.data.name).classes) > CLASSES
        return np.zeros_like(labels) if many else labels

    def _measure(self, measure: str, found: Mapping[int, Sequence[Arrays]]) -> None:
        """Adds a measure's cells, and the ranks of all samples."""
        shape = len(self.epochs), len(self.parts), len(self.index)
        ranks = Ranks(np.full(shape, np.nan), np.full(shape, np.nan))
        for epoch, results in found.items():
            pairs = _values(results, measure, self.index)
            at = self.epochs.index(epoch)
            ranks.unseen[at], ranks.seen[at] = self._mean_ranks(pairs)
            by_class = self._by_class(pairs)
            aucs = disparity.profile([each.value for each in pairs], [each.seen for each in pairs])
            for row, part in enumerate(self.parts):
                cell = {"measure": measure, "epoch": epoch, "part": part}
                cell |= self._cell(row, aucs[row], pairs, ranks.unseen[at, row])
                cell["by_class"] = records.rounded(by_class[row], 3)
                self.cells.append(cell)
        self._ranks[measure] = ranks

    def _mean_ranks(self, pairs: Sequence[Values]) -> tuple[NDArray, NDArray]:
        """Ranks of each sample `(P, N)` as `Ranks` has them, when unseen and when seen."""
        ranks = np.zeros((len(pairs), len(self.parts), len(self.index)))
        unseen = np.zeros((len(pairs), 1, len(self.index)), bool)
        seen = unseen.copy()
        for pair, each in enumerate(pairs):
            ranks[pair][:, each.place] = records.ranks(each.value, each.seen)
            unseen[pair, 0, each.place] = ~each.seen
            seen[pair, 0, each.place] = each.seen
        return records.mean_where(ranks, unseen), records.mean_where(ranks, seen)

    def _cell(self, row: int, auc: Estimate, pairs: Sequence[Values], ranks: NDArray) -> Row:
        """What the cell of a part shows; `ranks (N,)` are those of unseen samples."""
        values = np.concatenate([each.value[row] for each in pairs])
        seen = np.concatenate([each.seen for each in pairs])
        known = np.flatnonzero(~np.isnan(ranks))
        downwards = -ranks[known] if auc.value >= 0.5 else ranks[known]
        carriers = known[np.argsort(downwards, kind="stable")[:SHOWN]]
        return {
            **records.interval(auc),
            "meaning": records.meaning(auc, "unseen samples have", "values here"),
            **records.histogram(values, {BOTH: seen, ONE: ~seen}),
            "sample": [records.sample_name(self.data, at) for at in self.index[carriers]],
            "rank": records.rounded(ranks[carriers]),
        }

    def _by_class(self, pairs: Sequence[Values]) -> NDArray:
        """AUC of each part in each class and pair, `(P, classes * pairs)`; NaN where a class lacks
        seen or unseen samples.
        """
        classes = np.unique(self._labels)
        aucs = np.full((len(self.parts), len(classes), len(pairs)), np.nan)
        for pair, each in enumerate(pairs):
            labels = self._labels[each.place]
            for number, label in enumerate(classes):
                own = labels == label
                unseen = ~each.seen[own]
                if unseen.any() and not unseen.all():
                    aucs[:, number, pair] = audit.auc(each.value[:, own], unseen)
        return aucs.reshape(len(self.parts), -1)

    def path(self, measure: str, sample: str) -> Row | None:
        """A sample's ranks over epochs and parts, when unseen and when seen; None where it is not
        of this side.
        """
        index = records.sample_index(sample)
        (places,) = np.nonzero(self.index == index)
        ranks = self._ranks.get(measure)
        if ranks is None or not len(places) or sample != records.sample_name(self.data, index):
            return None
        unseen, seen = ranks.unseen[..., places[0]], ranks.seen[..., places[0]]
        return {"unseen": records.rounded(unseen.ravel()), "seen": records.rounded(seen.ravel())}
