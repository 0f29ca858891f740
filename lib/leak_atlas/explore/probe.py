"""One probe of PPTP as the rows of a figure: an AUC for each cell, who carries it, each sample's path.

A sample carries the disparity of a cell as far as its value exceeds those of the samples that both
networks have seen: the percentage that lies below is its *rank*. The AUC is the mean rank of the
unseen samples, over 100.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leak_atlas import audit
from leak_atlas.audit import Estimate
from leak_atlas.data import readers
from leak_atlas.explore import charts
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
Row: TypeAlias = dict[str, Any]
Values: TypeAlias = Sequence[tuple[NDArray, NDArray[np.bool_], NDArray]]  # see `_values`


def _values(results: Sequence[Arrays], measure: str) -> Values:
    """Of each pair: a value of each part and sample `(P, n)`, which samples M_h1 has seen, and
    their index in the data set.
    """
    if measure == "membership probe":
        return [(-each["scores"], each["member"], each["index"]) for each in results]
    values, seen = disparity.read(results, FIELDS.get(measure, measure))
    index = [each["index"][each["seen_a"]] for each in results]
    return list(zip(values, seen, index, strict=True))


class Side:
    """One probe: its cells, and the path of each sample that carries one."""

    def __init__(
        self, setting: Setting, found: Mapping[str, Mapping[int, Sequence[Arrays]]]
    ) -> None:
        self.data = setting.data
        first = next(iter(found["distance"].values()))[0]
        self.parts = bytes(first["parts"]).decode().split("\n")
        self.epochs = sorted({epoch for by_epoch in found.values() for epoch in by_epoch})
        self.index = np.unique(first["index"])
        labels = readers.load(self.data.name, self.data.pixels).labels[self.index]
        many = len(registry.find(self.data.name).classes) > CLASSES
        self._labels = np.zeros_like(labels) if many else labels
        self.cells: list[Row] = []
        self._paths: dict[str, tuple[NDArray, NDArray]] = {}
        for measure in MEASURES:
            kind = measure if measure in found else "distance"
            if kind == measure or measure in disparity.MEASURES:
                self._measure(measure, found[kind])

    def _measure(self, measure: str, found: Mapping[int, Sequence[Arrays]]) -> None:
        """Adds a measure's cells, and the ranks of all samples when unseen and when seen."""
        shape = len(self.epochs), len(self.parts), len(self.index)
        ranks = np.full((2, *shape), np.nan)
        for epoch, results in found.items():
            pairs = _values(results, measure)
            place = self.epochs.index(epoch)
            ranks[:, place] = self._ranks(pairs)
            by_class = self._by_class(pairs)
            aucs = disparity.profile(
                [values for values, *_ in pairs], [seen for _, seen, _ in pairs]
            )
            for row, (part, auc) in enumerate(zip(self.parts, aucs, strict=True)):
                where = {"measure": measure, "epoch": epoch, "part": part}
                unseen = ranks[0, place, row]
                cell = where | self._cell(row, auc, pairs, unseen)
                self.cells.append(cell | {"by_class": charts.listed(by_class[row], 3)})
        self._paths[measure] = ranks[0].reshape(-1, shape[2]), ranks[1].reshape(-1, shape[2])

    def _ranks(self, pairs: Values) -> NDArray:
        """Ranks `(2, P, n)` of each sample, mean over the pairs whose M_h1 has not seen it, and
        over the others; NaN where there is none.
        """
        total = np.zeros((2, len(self.parts), len(self.index)))
        count = np.zeros((2, 1, len(self.index)))
        for values, seen, index in pairs:
            known = np.searchsorted(self.index, index)
            own = charts.ranks(values, seen)
            for group, chosen in enumerate((~seen, seen)):
                total[group][:, known[chosen]] += own[:, chosen]
                count[group][:, known[chosen]] += 1
        return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)

    def _cell(self, row: int, auc: Estimate, pairs: Values, unseen: NDArray) -> Row:
        """What one cell shows; `unseen` are its samples' ranks."""
        values = np.concatenate([values[row] for values, *_ in pairs])
        seen = np.concatenate([seen for _, seen, _ in pairs])
        sign = 1 if auc.value >= 0.5 else -1
        carriers = np.argsort(-sign * unseen, kind="stable")[:SHOWN]  # NaN stands last
        carriers = carriers[~np.isnan(unseen[carriers])]
        return (
            charts.interval(auc)
            | {"meaning": charts.meaning(auc, "unseen samples have", "values here")}
            | charts.histogram(values, {BOTH: seen, ONE: ~seen})
            | {
                "sample": [self._sample(at) for at in carriers],
                "rank": charts.listed(unseen[carriers]),
            }
        )

    def _by_class(self, pairs: Values) -> NDArray:
        """AUC of each part in each class and pair, `(P, classes * pairs)`; NaN where a class lacks
        seen or unseen samples.
        """
        made = np.full((len(self.parts), len(np.unique(self._labels)), len(pairs)), np.nan)
        for place, label in enumerate(np.unique(self._labels)):
            for pair, (values, seen, index) in enumerate(pairs):
                own = self._labels[np.searchsorted(self.index, index)] == label
                if 0 < seen[own].sum() < own.sum():
                    made[:, place, pair] = audit.auc(values[:, own], ~seen[own])
        return made.reshape(len(self.parts), -1)

    def _sample(self, at: int) -> str:
        return f"{self.data.name} {self.index[at]}"

    def path(self, measure: str, sample: str) -> Row | None:
        """A sample's ranks over epochs and parts, when unseen and when seen; None where it is not
        of this side.
        """
        name, _, index = sample.rpartition(" ")
        at = int(np.searchsorted(self.index, int(index)))
        known = name == self.data.name and measure in self._paths and at < len(self.index)
        if not known or self.index[at] != int(index):
            return None
        unseen, seen = self._paths[measure]
        return {"unseen": charts.listed(unseen[:, at]), "seen": charts.listed(seen[:, at])}
