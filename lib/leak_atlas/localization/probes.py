"""PPTP's probe of several variants of a network: in which stage each shows a disparity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from leak_atlas import BadInput, nearest
from leak_atlas.audit import (
    Comparison,
    Estimate,
    Rows,
    auc,
    largest,
    least,
    mean_ci,
)
from leak_atlas.localization import disparity
from leak_atlas.localization.disparity import Halved

__all__ = ["ProbeComparison"]

# as figures and columns call a measure
LABELS = {
    "euclidean": "Euclidean distance (the paper's)",
    "direction": "direction (1 − cosine)",
}


@dataclass(frozen=True)
class ProbeComparison:
    """Variants of a pair of networks, M_all and M_h1, compared stage by stage.

    The *AUC* of a part of the network says how well the distance between the features of M_all and
    M_h1 separates samples that M_all alone saw from samples that both saw. The *disparity* of a
    part is |AUC − 0.5|: 0 where the part does not distinguish the two halves. Measures of distance
    are those of `disparity.measured`, by default the paper's Euclidean distance.

    `distances` has a `Distance` step for each pair of each variant. `floor` is the control: steps
    of two M_all of the first variant, which differ in their seed alone. `whole` compares the
    networks M_all of all variants, `half` the networks M_h1, which attackers attack. Pairs have
    the same seeds and halves in every variant, so differences are paired.
    """

    results: Any  # what `lab.realize` returned
    distances: Mapping[str, Sequence[Any]]
    floor: Sequence[Any]
    whole: Comparison
    half: Comparison
    _halved: dict[Any, Halved] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def variants(self) -> list[str]:
        """The names of all variants, in their order."""
        return list(self.distances)

    @property
    def parts(self) -> list[str]:
        """Names of the parts of the network, in order of depth: stem, stages or blocks, head."""
        return list(self.results[self.distances[self.variants[0]][0]].parts)

    @property
    def stages(self) -> list[str]:
        """The last part of each stage: of stages the stage itself, of blocks its last block."""
        ends = {part.split(".")[0]: part for part in self.parts if part.startswith("stage")}
        return list(ends.values())

    def before(self, part: str) -> list[str]:
        """The last part of each stage before the stage of a part."""
        order = list(dict.fromkeys(each.split(".")[0] for each in self.parts))
        earlier = order[: order.index(part.split(".")[0])]
        return [stage for stage in self.stages if stage.split(".")[0] in earlier]

    def _place(self, part: str) -> int:
        """The position of a part. Raises BadInput if the network has no such part."""
        if part not in self.parts:
            raise BadInput(f"the network has no part '{part}'{nearest(part, self.parts)}")
        return self.parts.index(part)

    def auc(
        self,
        variant: str,
        part: str,
        measure: str = "euclidean",
    ) -> Estimate:
        """AUC of a part: 0.5 where it does not distinguish the halves."""
        profile = disparity.profile(*self.halved(variant, measure))
        return profile[self._place(part)]

    def disparity(
        self,
        variant: str,
        part: str,
        measure: str = "euclidean",
    ) -> Estimate:
        """|AUC − 0.5| of a part."""
        return disparity.strength(self.auc(variant, part, measure))

    def lead(
        self,
        part: str,
        measure: str = "euclidean",
        variants: Sequence[str] | None = None,
        others: Sequence[str] | None = None,
    ) -> Estimate:
        """Disparity of a part minus the largest of others (default: of the stages before it), mean
        over variants.
        """
        settings = [self.halved(variant, measure) for variant in variants or self.variants]
        rivals = [self._place(other) for other in others or self.before(part)]
        if not rivals:
            raise BadInput(f"no stage stands before {part}: name others")
        return disparity.lead(settings, self._place(part), rivals)

    def change(
        self,
        one: str,
        other: str,
        part: str,
        measure: str = "euclidean",
    ) -> Estimate:
        """Disparity of a part in variant `one` minus that in `other`, paired over pairs."""
        settings = self.halved(one, measure), self.halved(other, measure)
        return disparity.setting_difference(*settings, self._place(part))

    def farther(
        self,
        one: str,
        other: str,
        parts: Sequence[str],
    ) -> Estimate:
        """P(a Euclidean distance under variant `one` is larger than one under `other`).

        0.5 where both variants are equally far from M_all, which they share. Mean over parts; pairs
        are the units.
        """
        chosen = [self._place(part) for part in parts]
        chances = []
        for first, second in zip(self.distances[one], self.distances[other], strict=True):
            of_one = self.results[first]["euclidean"]
            of_other = self.results[second]["euclidean"]
            both = np.concatenate([of_one, of_other], axis=1)[chosen]
            under_one = np.arange(both.shape[1]) < of_one.shape[1]
            chances.append(float(np.mean(auc(both, under_one))))
        return mean_ci(chances, bounds=(0, 1))

    def onset(self, begins: str) -> dict[str, Estimate]:
        """The estimates of `report.onset_claims`, for `report.judge`."""
        early = [
            self.disparity(variant, stage)
            for variant in self.variants
            for stage in self.before(begins)
        ]
        later = [self.disparity(variant, begins) for variant in self.variants]
        return {
            "early_silent": largest(early),
            "begins_loud": least(later),
            "begins": self.lead(begins),
        }

    def regime(self) -> dict[str, float]:
        """What the networks learned, for `report.judge`: the lowest mean accuracy of a variant, on
        members (of M_all and of M_h1) and on test samples (of M_all).
        """
        members = []
        for networks in (self.whole, self.half):
            for variant in self.variants:
                members.append(networks.estimate(variant, "", "member accuracy").value)
        tests = [self.whole.accuracy(variant).value for variant in self.variants]
        return {"member accuracy": min(members), "test accuracy": min(tests)}

    def rows(
        self, measures: Sequence[str] = ("euclidean",), parts: Sequence[str] | None = None
    ) -> Rows:
        """Rows for `report.profile`: the AUC of each part (default: all stages) of each variant, in
        columns "part", "value", "variant" and "measure".
        """
        rows = []
        for measure in measures:
            for variant in self.variants:
                aucs = disparity.profile(*self.halved(variant, measure))
                rows += self._rows(aucs, measure, parts, {"variant": variant})
        return rows

    def floor_rows(
        self, measures: Sequence[str] = ("euclidean",), parts: Sequence[str] | None = None
    ) -> Rows:
        """Rows for `report.profile(floor=)`: the AUC of two seeds on the same data."""
        rows = []
        for measure in measures:
            couples = disparity.measured([self.results[step] for step in self.floor], measure)
            floor = disparity.floor(couples, self.halved(self.variants[0], measure)[1])
            rows += self._rows(floor, measure, parts)
        return rows

    def _rows(
        self,
        aucs: Sequence[Estimate],
        measure: str,
        parts: Sequence[str] | None,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> Rows:
        """A row for each part, of the AUCs of all parts."""
        values = dict(zip(self.parts, aucs, strict=True))
        own = {"measure": LABELS.get(measure, measure), **more}
        return [{"part": part, **own, "value": values[part]} for part in parts or self.stages]

    def histograms(
        self,
        parts: Sequence[str],
        pair: int = 0,
        measure: str = "euclidean",
    ) -> dict[Any, Any]:
        """Panels for `report.histograms`: one pair's distances of samples that both saw, and of
        those that M_all alone saw. Keys are parts, or (variant, part) of several variants.
        """
        panels: dict[Any, Any] = {}
        for variant in self.variants:
            distances, seen = self.halved(variant, measure)
            for part in parts:
                values = distances[pair][self._place(part)]
                key = (variant, part) if len(self.variants) > 1 else part
                panels[key] = values[seen[pair]], values[~seen[pair]]
        return panels

    def halved(self, variant: str, measure: str) -> Halved:
        """Distances and halves of each pair, as `disparity.read` returns them."""
        key = variant, measure
        if key not in self._halved:
            steps = self.distances[variant]
            self._halved[key] = disparity.read([self.results[step] for step in steps], measure)
        return self._halved[key]
