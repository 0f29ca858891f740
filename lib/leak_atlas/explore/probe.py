"""One probe of PPTP as the rows of a figure: an AUC for each cell, who carries it, each sample's
path.

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
from leak_atlas.explore.records import BoolArray, Row
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
    seen: BoolArray
    place: NDArray


def _values(results: Sequence[Arrays], measure: str, index: NDArray) -> list[Values]:
    """The values of each pair; `index (N,)` are all samples of the probe."""
    pairs = []
    for each in results:
        if measure == "membership probe":
            value = -each["scores"]
            seen = each["member"]
            samples = each["index"]
        else:
            (value,) = disparity.measured([each], FIELDS.get(measure, measure))
            seen = each["seen_b"][each["seen_a"]]
            samples = each["index"][each["seen_a"]]
        place = np.searchsorted(index, samples)
        pairs.append(Values(value, seen, place))
    return pairs


class Side:
    """One probe: its cells, and the path of each sample that carries one."""

    def __init__(
        self, setting: Setting, results: Mapping[str, Mapping[int, Sequence[Arrays]]]
    ) -> None:
        """`results` are those of a probe by kind and epoch."""
        self.data = setting.data
        by_epoch = results["distance"]
        first, *_ = next(iter(by_epoch.values()))
        self.parts = bytes(first["parts"]).decode().split("\n")
        self.epochs = sorted(set().union(*results.values()))
        self._index = np.unique(first["index"])
        self._samples = [records.sample_name(self.data, at) for at in self._index]
        self._labels = self._shown_labels()
        self.cells: list[Row] = []
        self._ranks: dict[str, NDArray] = {}  # by measure: see `_measure`
        for measure in MEASURES:
            if measure in results:
                self._measure(measure, results[measure])
            elif measure in disparity.MEASURES:
                self._measure(measure, results["distance"])

    def _shown_labels(self) -> NDArray:
        """The class of each sample, `(N,)`; all 0 where there are too many classes."""
        classes = registry.find(self.data.name).classes
        labels = readers.load(self.data.name, self.data.pixels).labels[self._index]
        return np.zeros_like(labels) if len(classes) > CLASSES else labels

    def _measure(self, measure: str, results: Mapping[int, Sequence[Arrays]]) -> None:
        """Adds a measure's cells, and the ranks of all samples when unseen and when seen,
        `(2, epochs, P, N)`.
        """
        shape = 2, len(self.epochs), len(self.parts), len(self._index)
        ranks = np.full(shape, np.nan)
        for at, epoch in enumerate(self.epochs):
            if epoch in results:
                pairs = _values(results[epoch], measure, self._index)
                ranks[:, at] = self._mean_ranks(pairs)
                for cell in self._cells(pairs, ranks[0, at]):
                    place = {"measure": measure, "epoch": epoch}
                    self.cells.append(place | cell)
        self._ranks[measure] = ranks

    def _mean_ranks(self, pairs: Sequence[Values]) -> NDArray:
        """Ranks `(2, P, N)` of each sample, mean over the pairs whose M_h1 has not seen it, and
        over the others; NaN where there is none.
        """
        shape = len(pairs), len(self.parts), len(self._index)
        ranks = np.zeros(shape)
        unseen = np.zeros(shape, bool)
        seen = np.zeros(shape, bool)
        for pair, each in enumerate(pairs):
            ranks[pair][:, each.place] = records.ranks(each.value, each.seen)
            unseen[pair][:, each.place] = ~each.seen
            seen[pair][:, each.place] = each.seen
        when_unseen = records.mean_where(ranks, unseen)
        when_seen = records.mean_where(ranks, seen)
        return np.stack([when_unseen, when_seen])

    def _cells(self, pairs: Sequence[Values], ranks: NDArray) -> list[Row]:
        """The cell of each part; `ranks (P, N)` are those of unseen samples."""
        values = [each.value for each in pairs]
        seen = [each.seen for each in pairs]
        all_values = np.concatenate(values, axis=1)
        all_seen = np.concatenate(seen)
        groups = {BOTH: all_seen, ONE: ~all_seen}
        by_class = self._by_class(pairs)
        cells = []
        for row, auc in enumerate(disparity.profile(values, seen)):
            carriers = _carriers(ranks[row], auc)
            cell = {
                "part": self.parts[row],
                **records.interval(auc),
                "meaning": records.meaning(auc, "unseen samples have", "values here"),
                **records.histogram(all_values[row], groups),
                "sample": [self._samples[at] for at in carriers],
                "rank": records.rounded(ranks[row, carriers]),
                "by_class": records.rounded(by_class[row], 3),
            }
            cells.append(cell)
        return cells

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
                    values = each.value[:, own]
                    aucs[:, number, pair] = audit.auc(values, unseen)
        return aucs.reshape(len(self.parts), -1)

    def path(self, measure: str, sample: str) -> Row | None:
        """A sample's ranks over epochs and parts, when unseen and when seen; None where it is not
        of this side.
        """
        if measure not in self._ranks or sample not in self._samples:
            return None
        place = self._samples.index(sample)
        unseen, seen = self._ranks[measure][..., place].reshape(2, -1)
        return {
            "unseen": records.rounded(unseen),
            "seen": records.rounded(seen),
        }


def _carriers(ranks: NDArray, auc: Estimate) -> NDArray:
    """The places of the unseen samples that stand out most, where an AUC is above or below 0.5."""
    known = np.flatnonzero(~np.isnan(ranks))
    downwards = -ranks[known] if auc.value >= 0.5 else ranks[known]
    order = np.argsort(downwards, kind="stable")
    return known[order[:SHOWN]]
