"""The defences of all papers on the same networks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from leak_atlas import BadInput
from leak_atlas.recipe.criteria import Criterion
from leak_atlas.recipe.objectives import DPSGD, RMR, Objective
from leak_atlas.recipe.populations import Population
from leak_atlas.recipe.readings import Memorization
from leak_atlas.recipe.sampling import Window
from leak_atlas.recipe.studies import RetrainingStudy, RewindStudy, StageStudy
from leak_atlas.recipe.subjects import Model

__all__ = ["AtlasStudy"]

Strengths = Mapping[str, Objective | None]  # a defence at several strengths, by their names
Networks = dict[Hashable, Population]  # by (defence, strength)


@dataclass(frozen=True, kw_only=True)
class AtlasStudy(RetrainingStudy):
    """Every defence on networks of the same members, initialisations and epochs.

    Defences that retrain a network (PPTP, CWRF, those of pruned networks) start from the ordinary
    networks and take `retraining` epochs; WeMem's take them in several rounds.
    """

    risky_from: str  # PPTP: the first stage that is rewound
    criterion: Criterion  # CWRF: scores the weights
    share: float  # CWRF: of the weights, rewound
    sparsity: float  # of the pruned networks
    rounds: int  # WeMem: of pruning
    judges: int  # WeMem: networks that give the memorization scores
    score_epochs: int  # of each of them

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.retraining % self.rounds:
            raise BadInput(
                f"{self.retraining} epochs of retraining are shared by {self.rounds} rounds: give a "
                "number that divides them"
            )

    @cached_property
    def stages(self) -> StageStudy:
        """PPTP's experiment on these networks."""
        return StageStudy(risky_from=self.risky_from, **self._shared)

    @cached_property
    def weights(self) -> RewindStudy:
        """CWRF's experiment on these networks."""
        return RewindStudy(criterion=self.criterion, **self._shared)

    @cached_property
    def pruned(self) -> Population:
        """Networks whose smallest weights are removed, before any retraining."""
        return self.ordinary.pruned("L1 unstructured", self.sparsity)

    @cached_property
    def ranking(self) -> Memorization:
        """The memorization score of each sample of the pool, by networks that no attack knows."""
        schedule = replace(self.schedule, epochs=self.score_epochs)
        return self.setup.memorization(self.judges, schedule=schedule)

    def from_scratch(self, defence: str, strengths: Strengths) -> Networks:
        """Networks that are trained with a defence from the start."""
        return {(defence, name): self.defended(one) for name, one in strengths.items()}

    def inside_stages(self, defence: str, strengths: Strengths) -> Networks:
        """PPTP: the risky stages are rewound and retrained with a defence."""
        place = f"{defence} inside PPTP"
        return {(place, name): self.stages.inside(one) for name, one in strengths.items()}

    def inside_weights(self, defence: str, strengths: Strengths) -> Networks:
        """CWRF: some weights are rewound and frozen, the others are retrained with a defence."""
        place, share = f"{defence} inside CWRF", self.share
        return {(place, name): self.weights.inside(share, one) for name, one in strengths.items()}

    def after_pruning(self, defence: str, strengths: Strengths) -> Networks:
        """Pruned networks are fine-tuned with a defence."""
        pruned, short = self.pruned, self.short
        return {(defence, name): pruned.train(short, one) for name, one in strengths.items()}

    def with_schedules(self, defence: str, changes: Mapping[str, Mapping[str, Any]]) -> Networks:
        """Networks that are trained from the start by a changed schedule: augmentation, SAM."""
        networks: Networks = {}
        for name, change in changes.items():
            networks[defence, name] = self.setup.trained(schedule=replace(self.schedule, **change))
        return networks

    @cached_property
    def grouped(self) -> AtlasStudy:
        """The same study of networks with GroupNorm."""
        assert isinstance(self.model, Model)
        return replace(self, model=replace(self.model, norm="group"))

    def privately(self, noises: Sequence[float]) -> Networks:
        """DP-SGD at several noise multipliers, with GroupNorm: BatchNorm mixes samples."""
        return {("DP-SGD", f"{noise:g}"): self.grouped.defended(DPSGD(noise)) for noise in noises}

    def distilled(self, sub_models: int, leave_out: int) -> Networks:
        """SELENA from scratch and inside PPTP, with sub-models of its own in both."""
        names = {"sub_models": sub_models, "leave_out": leave_out}
        inside = self.stages.rewound().distil(self.short, self.schedule, **names)
        return {
            ("SELENA", f"{sub_models} sub-models"): self.setup.selena(self.schedule, **names),
            ("SELENA inside PPTP", f"{sub_models} sub-models"): inside,
        }

    def in_rounds(self, penalty: RMR | None = None, window: Window | None = None) -> Population:
        """WeMem: networks after several rounds of pruning, with a penalty, a window, or both."""
        ranking = self.ranking if penalty or window else None
        schedule = replace(self.schedule, epochs=self.retraining // self.rounds)
        rounds = self.ordinary.iteratively(
            "L1 unstructured",
            self.sparsity,
            schedule,
            self.rounds,
            objective=penalty,
            sampling=window,
            ranking=ranking,
        )
        return rounds[-1]

    @property
    def _shared(self) -> dict[str, Any]:
        """The fields of every `RetrainingStudy`."""
        return {field.name: getattr(self, field.name) for field in fields(RetrainingStudy)}
