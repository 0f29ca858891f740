"""Experiments that several pages share: their sizes, and the populations that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from leak_atlas.recipe.criteria import Criterion
from leak_atlas.recipe.designs import RandomHalves, VictimAttacker
from leak_atlas.recipe.objectives import Objective
from leak_atlas.recipe.populations import Population, Pruner, Setup
from leak_atlas.recipe.readings import Sparsity
from leak_atlas.recipe.steps import Score
from leak_atlas.recipe.subjects import Data, Model, Schedule

__all__ = ["PRUNERS", "PruningStudy", "RewindStudy"]

PRUNERS: tuple[Pruner, ...] = ("L1 unstructured", "L1 structured", "L2 structured", "slimming")


@dataclass(frozen=True)
class PruningStudy:
    """SAMIA's experiment: networks are trained, pruned and fine-tuned; shadow models too.

    Targets (the paper's victims) come first and share one half of the pool; the shadow models share
    the other half, the attacker's.
    """

    data: Data
    model: Model
    schedule: Schedule  # of the dense networks
    fine_tuning: int  # epochs after pruning
    pool: int  # samples of both halves
    dev: int  # samples of each half that are set apart
    targets: int
    shadows: int = 0
    seed: int = 0
    precision: Literal["fp32", "bf16"] = "fp32"

    @property
    def setup(self) -> Setup:
        """What all trainings share."""
        design = VictimAttacker(self.pool, seed=self.seed, dev=self.dev, victims=self.targets)
        models = self.targets + self.shadows
        return Setup(
            self.data, design, self.model, self.schedule, models, self.seed, self.precision
        )

    @property
    def tuning(self) -> Schedule:
        """The training after pruning."""
        return replace(self.schedule, epochs=self.fine_tuning)

    @cached_property
    def dense(self) -> Population:
        """Networks that are not pruned."""
        return self.setup.trained()

    def tuned(self) -> Population:
        """Dense networks that are fine-tuned without pruning."""
        return self.dense.train(self.tuning)

    def pruned(
        self, pruner: Pruner, sparsity: float, objective: Objective | None = None
    ) -> Population:
        """Networks that are pruned and fine-tuned, with a defence or without."""
        return self.dense.pruned(pruner, sparsity).train(self.tuning, objective)

    def smaller(self, width: int) -> Population:
        """Dense networks of another width, trained for all epochs of the pruned ones."""
        both = replace(self.schedule, epochs=self.schedule.epochs + self.fine_tuning)
        return replace(self.setup, model=replace(self.model, width=width)).trained(schedule=both)

    def stopped(self, epochs: Sequence[int]) -> dict[int, Population]:
        """Dense networks whose training stops after some epochs, without a patience.

        At a constant rate these are checkpoints of one training; where the rate decays, each is a
        training of its own.
        """
        constant = self.schedule.decay == "constant"
        ends = {epoch: max(epochs) if constant else epoch for epoch in epochs}
        schedules = {e: replace(self.schedule, epochs=ends[e], patience=None) for e in epochs}
        return {e: self.setup.trained(schedule=each).at(e) for e, each in schedules.items()}

    def removed(self, population: Population) -> list[Sparsity]:
        """What is pruned of each target."""
        return [Sparsity(state) for state in population.states[: self.targets]]


@dataclass(frozen=True)
class RewindStudy:
    """CWRF's experiment: a share of the weights is rewound and frozen, the others are retrained.

    A score chooses the weights. Each network is attacked by all others except its complement.
    """

    data: Data
    model: Model
    schedule: Schedule  # from scratch
    retraining: int  # epochs after the rewind
    criterion: Criterion  # chooses the weights
    pool: int  # samples from which each network draws half
    test: int
    models: int
    dev: int = 0  # samples outside the pool
    reference: int = 0  # non-members outside the pool, for the score alone
    seed: int = 0
    precision: Literal["fp32", "bf16"] = "fp32"

    @property
    def setup(self) -> Setup:
        """What all trainings share."""
        design = RandomHalves(
            self.pool, test=self.test, seed=self.seed, dev=self.dev, reference=self.reference
        )
        return Setup(
            self.data, design, self.model, self.schedule, self.models, self.seed, self.precision
        )

    @property
    def short(self) -> Schedule:
        """The retraining."""
        return replace(self.schedule, epochs=self.retraining)

    @cached_property
    def ordinary(self) -> Population:
        """Networks that are trained without a defence."""
        return self.setup.trained()

    def defended(self, objective: Objective) -> Population:
        """Networks that are trained from scratch with a defence."""
        return self.setup.trained(objective)

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        """The criterion's score of each network's weights."""
        return self.ordinary.score(self.criterion)

    def rewound(self, share: float) -> Population:
        """Networks of which a share of the weights is rewound and frozen, before any retraining."""
        return self.ordinary.rewind_weights(self.scores, share).hold_weights(self.scores, share)

    def inside(self, share: float, objective: Objective | None = None) -> Population:
        """Rewound networks that are retrained, with a defence or without."""
        return self.rewound(share).train(self.short, objective)

    def tuned(self, objective: Objective | None = None) -> Population:
        """Networks that are retrained with nothing rewound."""
        return self.ordinary.train(self.short, objective)
