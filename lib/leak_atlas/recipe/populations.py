"""The same chain over several models."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypeVar, get_args

from leak_atlas import BadInput, nearest
from leak_atlas.recipe.attacks import Attack, Attacker
from leak_atlas.recipe.criteria import Criterion, Random, Taylor
from leak_atlas.recipe.designs import Design, Folds, Halves, LeftOut, Subsets
from leak_atlas.recipe.objectives import CrossEntropy, Distillation, Objective
from leak_atlas.recipe.readings import Distance, Memorization, SelfAudit, Sensitivity, Similarity
from leak_atlas.recipe.sampling import Sampling
from leak_atlas.recipe.steps import Score, Signals, State, Step, Train
from leak_atlas.recipe.subjects import Architecture, Data, Schedule

__all__ = [
    "Pair",
    "Population",
    "Pruner",
    "Setup",
    "left_out",
    "model_seed",
    "seed_floors",
    "self_audit",
]


T = TypeVar("T")

Pruner = Literal[
    "L1 unstructured",
    "L1 structured",
    "L2 structured",
    "slimming",
    "random weights",
    "random filters",
]
FILTERS: dict[str, Literal["l1", "l2", "scale", "random"]] = {
    "L1 structured": "l1",
    "L2 structured": "l2",
    "slimming": "scale",
    "random filters": "random",
}


@dataclass(frozen=True)
class Population:
    """The same chain over several rows of a design; every method maps over its states."""

    states: tuple[State, ...]

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[State]:
        return iter(self.states)

    def __getitem__(self, index: int) -> State:
        return self.states[index]

    @property
    def pairs(self) -> tuple[int, ...]:
        """The complement pair of each model, or its row where it has none."""
        return tuple(state.training.design.pair(state.training.row) for state in self.states)

    def halvings(self, number: int = 4, seed: int = 0) -> tuple[tuple[Population, Population], ...]:
        """Ways to part the models in two at random, so that neither models nor complement pairs are
        shared.

        Attacked each by itself, the halves have no shadow in common either
        (`leak_atlas.localization.trajectories.across_halves`).
        """
        own, made = sorted(set(self.pairs)), []
        for k in range(number):
            first = {*random.Random(f"{seed} {k}").sample(own, len(own) // 2)}
            inside = [pair in first for pair in self.pairs]
            one = tuple(state for state, here in zip(self.states, inside, strict=True) if here)
            other = tuple(
                state for state, here in zip(self.states, inside, strict=True) if not here
            )
            made.append((Population(one), Population(other)))
        return tuple(made)

    def _map(self, change: Callable[[State], State]) -> Population:
        return Population(tuple(change(state) for state in self.states))

    def rewind(self, start: str, fresh: bool = False) -> Population:
        return self._map(lambda state: state.rewind(start, fresh))

    def freeze(self, until: str) -> Population:
        return self._map(lambda state: state.freeze(until))

    def score(self, criterion: Criterion | None = None) -> tuple[Score, ...]:
        return tuple(state.score(criterion) for state in self.states)

    def rewind_weights(self, by: Sequence[Score], share: float) -> Population:
        return self._each(by, lambda state, score: state.rewind_weights(score, share))

    def freeze_weights(self, by: Sequence[Score], share: float, rest: bool = False) -> Population:
        return self._each(by, lambda state, score: state.freeze_weights(score, share, rest))

    def updated(self, criterion: Taylor) -> Population:
        return self._map(lambda state: state.updated(criterion))

    def remove(
        self, by: Sequence[Score], share: float, part: Literal["all", "norms", "others"] = "all"
    ) -> Population:
        return self._each(by, lambda state, score: state.remove(score, share, part))

    def prune(
        self,
        sparsity: float,
        by: Sequence[Score] | None = None,
        scope: Literal["global", "layer"] = "global",
        norms: bool = True,
        head: bool = True,
    ) -> Population:
        own: Sequence[Score | None] = by or [None] * len(self)
        return self._each(
            own, lambda state, score: state.prune(sparsity, score, scope, norms, head)
        )

    def prune_filters(
        self, sparsity: float, by: Literal["l1", "l2", "scale", "random"] = "l1"
    ) -> Population:
        return self._map(lambda state: state.prune_filters(sparsity, by))

    def pruned(self, pruner: Pruner, sparsity: float, head: bool = True) -> Population:
        """By one of SAMIA's four pruners, or one of its two controls: as many weights, or filters,
        at random.

        Single weights of all layers, or of all but the last (`head`).
        """
        if pruner in FILTERS:
            return self.prune_filters(sparsity, FILTERS[pruner])
        if pruner not in ("L1 unstructured", "random weights"):
            raise BadInput(
                f"there is no pruner '{pruner}'{nearest(pruner, list(get_args(Pruner)))}"
            )
        by = self.score(Random()) if pruner == "random weights" else None
        return self.prune(sparsity, by, scope="layer", norms=False, head=head)

    def iteratively(
        self,
        pruner: Pruner | None,
        sparsity: float,
        schedule: Schedule,
        rounds: int = 5,
        head: bool = True,
        **training: Any,
    ) -> tuple[Population, ...]:
        """WeMem's iterative pruning: what each of the rounds ends with, where the last one is as
        sparse as asked.

        In each round the weights that are left are pruned further and trained on by
        `train(schedule, **training)`, on batches of its own; none is rewound. Of n rounds, counted
        from 0, round k has a sparsity of 1 - (1 - sparsity)^(k / (n - 1)), so that the first one
        only trains, as the published code has it. There a round goes on from the last epoch; here
        from the training's end, which with a patience is the best. Without a `pruner` (the control)
        no weight goes.
        """
        if pruner and rounds < 2:
            raise BadInput(
                f"iterative pruning takes two rounds or more, not {rounds}: the first one only trains"
            )
        found = [self.train(schedule, order=1, **training)]
        for k in range(1, rounds):
            share = 1 - (1 - sparsity) ** (k / (rounds - 1))
            left = found[-1].pruned(pruner, share, head) if pruner else found[-1]
            found.append(left.train(schedule, order=1 + k, **training))
        return tuple(found)

    def _each(self, by: Sequence[T], change: Callable[[State, T], State]) -> Population:
        """Each model by its own score."""
        if len(by) != len(self):
            raise BadInput(
                f"{len(self)} models go by as many scores, not by {len(by)}: take population.score(...)"
            )
        return Population(
            tuple(change(state, score) for state, score in zip(self.states, by, strict=True))
        )

    def train(
        self,
        schedule: Schedule,
        objective: Objective | None = None,
        sampling: Sampling | None = None,
        ranking: Step | None = None,
        reference: int | None = None,
        order: int = 0,
    ) -> Population:
        return self._map(
            lambda state: state.train(schedule, objective, (), sampling, ranking, reference, order)
        )

    def distil(
        self,
        schedule: Schedule,
        sub_schedule: Schedule | None = None,
        *,
        sub_models: int = 25,
        leave_out: int = 10,
    ) -> Population:
        """SELENA from here on: each model goes on with the labels of sub-models of its own (see
        `left_out`).
        """
        own = partial(left_out, schedule=sub_schedule, sub_models=sub_models, leave_out=leave_out)
        return self._map(
            lambda state: state.train(schedule, Distillation(), own(state.origin().training))
        )

    def at(self, when: int | Literal["init"]) -> Population:
        return self._map(lambda state: state.at(when))

    def signals(self, views: int = 1) -> tuple[Signals, ...]:
        return tuple(Signals(state, views) for state in self.states)

    def sensitivity(self, queries: int = 10, eps: float = 1e-3) -> tuple[Sensitivity, ...]:
        return tuple(Sensitivity(state, queries, eps) for state in self.states)

    def attack(
        self,
        attacker: Attacker,
        targets: int | None = None,
        shadows: Population | None = None,
        permuted: int | None = None,
    ) -> Attack:
        """The first `targets` models (all, by default) attacked by `shadows` (this population
        itself, by default).

        A number `permuted` makes it the null, in which membership is permuted (see `Attack`).
        """
        chosen = self.states[:targets]
        return Attack(
            attacker,
            chosen,
            shadows.states if shadows else self.states if targets else (),
            permuted,
        )

    def attack_over_time(
        self,
        attacker: Attacker,
        epochs: Sequence[int],
        permuted: int | None = None,
        shadows: Population | None = None,
    ) -> dict[int, Attack]:
        """These models attacked at each checkpoint by `shadows` (by each other, by default); 0 is
        the initialisation.

        `leak_atlas.localization.over_time.trajectory` reads what they store.
        """

        def attack(at: int | Literal["init"]) -> Attack:
            return self.at(at).attack(
                attacker, shadows=shadows and shadows.at(at), permuted=permuted
            )

        return {epoch: attack(epoch or "init") for epoch in epochs}


def model_seed(seed: int, index: int) -> int:
    """The seed of model `index` of an experiment with `seed`: no two experiments share one below
    10,000 models.
    """
    return 10_000 * seed + index


@dataclass(frozen=True)
class Setup:
    """What the trainings of an experiment share: whatever a figure varies is given to `trained` or
    to `replace`.
    """

    data: Data
    design: Design
    model: Architecture
    schedule: Schedule
    models: int  # or pairs of them
    seed: int = 0
    precision: Literal["fp32", "bf16"] = "fp32"

    def trained(
        self, objective: Objective | None = None, schedule: Schedule | None = None
    ) -> Population:
        """One training from scratch for each of the design's first rows, each with its own
        initialisation.
        """
        what, goal = schedule or self.schedule, objective or CrossEntropy()
        first = Train(self.data, self.design, 0, self.model, what, goal, precision=self.precision)
        rows = range(self.models)
        return Population(
            tuple(replace(first, row=row, seed=model_seed(self.seed, row)) for row in rows)
        )

    def pairs(self, objective: Objective | None = None, common: bool = False) -> tuple[Pair, ...]:
        """Pair p trains rows 2p and 2p+1 of `Halves` with one seed, so that nothing but data tells
        the two apart.

        In a `common` order M_h1 visits its members in the order of M_all, in batches of half the
        size: as many steps, but their borders are not those of M_all's.
        """
        firsts = (state.training for state in self.trained(objective))
        wholes = [replace(first, row=2 * first.row) for first in firsts]
        halves = [replace(whole, row=whole.row + 1) for whole in wholes]
        if common:
            if not isinstance(self.design, Halves):
                raise BadInput(
                    f"a common order is one of Halves, not of {type(self.design).__name__}"
                )
            if self.schedule.batch % 2:
                raise BadInput(
                    f"a common order halves the batch: give an even one, not {self.schedule.batch}"
                )
            design = replace(self.design, order="common")
            schedule = replace(self.schedule, batch=self.schedule.batch // 2)
            halves = [replace(half, schedule=schedule, design=design) for half in halves]
        return tuple(map(Pair, wholes, halves))

    def memorization(
        self,
        networks: int,
        share: float = 0.7,
        schedule: Schedule | None = None,
        measure: Literal["accuracy", "confidence"] = "confidence",
    ) -> Memorization:
        """Scores of the pool's samples by `networks` of their own, which no attack knows (Feldman &
        Zhang 2020).

        Each trains on a random `share` of the pool. Confidence tells samples apart that all
        networks get right.
        """
        design = Subsets(self.design.pool, self.design.test, self.design.seed, share=share)
        own = replace(self, design=design, models=networks, seed=1000 + self.seed)
        return Memorization(own.trained(schedule=schedule).states, measure)

    def fold_memorization(self, folds: int = 5, schedule: Schedule | None = None) -> Memorization:
        """Scores as WeMem's published ones seem to come about: a network a fold of the pool, judged
        by confidence.

        Of each sample one network is IN and the others are OUT, so that it has no standard error.
        """
        design = Folds(self.design.pool, self.design.test, self.design.seed, folds=folds)
        own = replace(self, design=design, models=folds, seed=2000 + self.seed)
        return Memorization(own.trained(schedule=schedule).states, "confidence")

    def selena(
        self, sub_schedule: Schedule | None = None, *, sub_models: int = 25, leave_out: int = 10
    ) -> Population:
        """SELENA's students (Tang et al. 2022): a population whose models learn from scratch what
        their sub-models say.

        `sub_models` and `leave_out` are the paper's K and L; sub-models train by `sub_schedule`, or
        as the students. Every model, a shadow too, has its own split and sub-models. Inside PPTP:
        `rewind(...).freeze(...).distil(...)`.
        """
        own = partial(left_out, schedule=sub_schedule, sub_models=sub_models, leave_out=leave_out)
        whole = (state.training for state in self.trained())
        return Population(
            tuple(replace(one, objective=Distillation(), teachers=own(one)) for one in whole)
        )


def left_out(
    whole: Train, schedule: Schedule | None = None, *, sub_models: int = 25, leave_out: int = 10
) -> tuple[Train, ...]:
    """SELENA's sub-models of one model: from scratch, each without those of its members that leave
    it out.

    They minimize cross-entropy. Architecture and precision are those of `whole`, and its schedule
    unless another is given; their seeds are of no population's models. SELENA's paper: each member
    is left out by 10 of 25.
    """
    design = LeftOut(whole.design, sub_models, leave_out)
    first = model_seed(10_000 + whole.seed, 0)
    start = Train(
        whole.data, design, 0, whole.model, schedule or whole.schedule, precision=whole.precision
    )
    return tuple(
        replace(start, row=sub_models * whole.row + k, seed=first + k) for k in range(sub_models)
    )


@dataclass(frozen=True)
class Pair:
    """M_all and M_h1 of PPTP's probe (section 3.2): one initialisation and order, the whole pool
    and half of it.
    """

    whole: State
    half: State

    def at(self, when: int | Literal["init"]) -> Pair:
        return Pair(self.whole.at(when), self.half.at(when))

    def distance(self, parts: Literal["stages", "blocks"] = "stages") -> Distance:
        return Distance(self.whole, self.half, parts)

    def similarity(self, parts: Literal["stages", "blocks"] = "stages") -> Similarity:
        return Similarity(self.whole, self.half, parts)


def seed_floors(pairs: tuple[Pair, ...]) -> tuple[Distance, ...]:
    """What two seeds on the same data differ by: M_all of each pair against M_all of the next."""
    return tuple(Distance(a.whole, b.whole) for a, b in pairwise(pairs))


def self_audit(models: Population | tuple[Pair, ...]) -> SelfAudit:
    """The honesty checks of the design behind a population or behind pairs."""
    states = (
        list(models)
        if isinstance(models, Population)
        else [s for p in models for s in (p.whole, p.half)]
    )
    first = states[0].training
    return SelfAudit(first.data, first.design, tuple(state.training.row for state in states))
