"""The same chain over several models."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import pairwise
from typing import Any, Literal, get_args

from leak_atlas import BadInput, nearest
from leak_atlas.recipe.attacks import Attack, Attacker
from leak_atlas.recipe.criteria import Criterion, Random
from leak_atlas.recipe.designs import Design, Folds, LeftOut, Subsets
from leak_atlas.recipe.objectives import CrossEntropy, Distillation, Objective
from leak_atlas.recipe.readings import (
    Distance,
    Memorization,
    Parts,
    SelfAudit,
    Sensitivity,
    Similarity,
)
from leak_atlas.recipe.steps import (
    Filters,
    Score,
    Signals,
    State,
    Train,
)
from leak_atlas.recipe.subjects import (
    Architecture,
    Data,
    Precision,
    Schedule,
)

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


Pruner = Literal[
    "L1 unstructured",
    "L1 structured",
    "L2 structured",
    "slimming",
    "random weights",
    "random filters",
]
FILTERS: dict[str, Filters] = {
    "L1 structured": "l1",
    "L2 structured": "l2",
    "slimming": "scale",
    "random filters": "random",
}


def of_each(method: Callable[..., State]) -> Callable[..., Population]:
    """A method of a state as one of a population: it is called on each state.

    Of a sequence of scores, one for each model, every model goes by its own.
    """

    @wraps(method)
    def on_each(models: Population, *args: Any, **options: Any) -> Population:
        states = []
        for number, state in enumerate(models.states):
            own = [_own(value, number, len(models)) for value in args]
            named = {name: _own(value, number, len(models)) for name, value in options.items()}
            states.append(method(state, *own, **named))
        return Population(tuple(states))

    return on_each


def _own(value: Any, number: int, models: int) -> Any:
    """Of a sequence of scores that of one model; any other value as it is."""
    if not isinstance(value, tuple | list) or not any(isinstance(one, Score) for one in value):
        return value
    if len(value) != models:
        raise BadInput(
            f"{models} models go by as many scores, not by {len(value)}: take population.score(...)"
        )
    return value[number]


@dataclass(frozen=True)
class Population:
    """The same chain over several rows of a design: each method is called on each state."""

    states: tuple[State, ...]

    at = of_each(State.at)
    train = of_each(State.train)
    rewind = of_each(State.rewind)
    freeze = of_each(State.freeze)
    updated = of_each(State.updated)
    prune = of_each(State.prune)
    prune_filters = of_each(State.prune_filters)
    rewind_weights = of_each(State.rewind_weights)
    freeze_weights = of_each(State.freeze_weights)
    remove = of_each(State.remove)

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[State]:
        return iter(self.states)

    def __getitem__(self, index: int) -> State:
        return self.states[index]

    @property
    def complement_pairs(self) -> tuple[int, ...]:
        """The complement pair of each model, or its row where it has none."""
        return tuple(state.training.design.pair(state.training.row) for state in self.states)

    def halvings(self, number: int = 4) -> tuple[tuple[Population, Population], ...]:
        """Random divisions of the models in two halves that share neither a model nor a complement
        pair.

        If each half is attacked by itself, the halves share no shadow model either
        (`leak_atlas.localization.trajectories.across_halves`).
        """
        pairs = sorted(set(self.complement_pairs))
        divisions = []
        for k in range(number):
            draws = random.Random(f"0 {k}")
            chosen = draws.sample(pairs, len(pairs) // 2)
            divisions.append(self._divided(set(chosen)))
        return tuple(divisions)

    def _divided(self, chosen: set[int]) -> tuple[Population, Population]:
        """The models of the chosen complement pairs, and the others."""
        first: list[State] = []
        second: list[State] = []
        for state, pair in zip(self.states, self.complement_pairs, strict=True):
            half = first if pair in chosen else second
            half.append(state)
        return Population(tuple(first)), Population(tuple(second))

    def score(self, criterion: Criterion | None = None) -> tuple[Score, ...]:
        return tuple(state.score(criterion) for state in self.states)

    def pruned(self, pruner: Pruner, sparsity: float, head: bool = True) -> Population:
        """Networks that are pruned by one of SAMIA's four pruners, or by a control that removes the
        same number of random weights or of random filters.

        `head`: whether pruners of single weights prune the last layer too; pruners of filters
        ignore it. Raises BadInput for an unknown pruner.
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
        """WeMem's iterative pruning: the networks at the end of each round.

        In each round the remaining weights are pruned further and trained on by `train(schedule,
        **training)`, with batches of its own; none is rewound. Of n rounds, counted from 0, round k
        has a sparsity of 1 - (1 - sparsity)^(k / (n - 1)), so that the first one only trains, as in
        the published code. There a round goes on from the last epoch; here from the training's end,
        which with a patience is the best. Without a `pruner` (the control) nothing is pruned.
        """
        if pruner and rounds < 2:
            raise BadInput(
                f"iterative pruning takes two rounds or more, not {rounds}: the first one only "
                "trains"
            )
        ends = [self.train(schedule, order=1, **training)]
        for k in range(1, rounds):
            share = 1 - (1 - sparsity) ** (k / (rounds - 1))
            start = ends[-1].pruned(pruner, share, head) if pruner else ends[-1]
            ends.append(start.train(schedule, order=1 + k, **training))
        return tuple(ends)

    def distil(
        self,
        schedule: Schedule,
        sub_schedule: Schedule | None = None,
        *,
        sub_models: int = 25,
        leave_out: int = 10,
    ) -> Population:
        """Continues each model with SELENA: it is trained on labels that its own sub-models give
        (see `left_out`).
        """
        sub_models_of = partial(
            left_out, schedule=sub_schedule, sub_models=sub_models, leave_out=leave_out
        )
        students = []
        for state in self.states:
            teachers = sub_models_of(state.origin().training)
            students.append(state.train(schedule, Distillation(), teachers))
        return Population(tuple(students))

    def signals(self, views: Literal[1, 2, 18] = 1) -> tuple[Signals, ...]:
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
        Raises BadInput if `shadows` is empty.
        """
        others = self.states if targets else ()  # (): the models attack each other
        if shadows is not None:
            if not shadows.states:
                raise BadInput("shadows has no models: leave it out, or give some")
            others = shadows.states
        return Attack(attacker, self.states[:targets], others, permuted)

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

        attacks = {}
        for epoch in epochs:
            when: int | Literal["init"] = epoch or "init"
            others = None if shadows is None else shadows.at(when)
            attacks[epoch] = self.at(when).attack(attacker, shadows=others, permuted=permuted)
        return attacks


def model_seed(seed: int, index: int) -> int:
    """The seed of model `index` of an experiment with `seed`.

    Experiments of fewer than 10,000 models never share a seed.
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
    precision: Precision = "fp32"

    def __post_init__(self) -> None:
        if self.models < 1:
            raise BadInput(f"an experiment needs a network or more, not {self.models}")

    def trained(
        self, objective: Objective | None = None, schedule: Schedule | None = None
    ) -> Population:
        """One training from scratch for each of the design's first rows, each with its own
        initialisation.
        """
        first = Train(
            self.data,
            self.design,
            0,
            self.model,
            schedule or self.schedule,
            objective or CrossEntropy(),
            precision=self.precision,
        )
        rows = range(self.models)
        return Population(
            tuple(replace(first, row=row, seed=model_seed(self.seed, row)) for row in rows)
        )

    def pairs(self, objective: Objective | None = None) -> tuple[Pair, ...]:
        """Pair p trains rows 2p and 2p+1 of `Halves` with one seed: only the data differ."""
        firsts = (state.training for state in self.trained(objective))
        wholes = [replace(first, row=2 * first.row) for first in firsts]
        halves = [replace(whole, row=whole.row + 1) for whole in wholes]
        return tuple(map(Pair, wholes, halves))

    def memorization(
        self,
        networks: int,
        share: float = 0.7,
        schedule: Schedule | None = None,
    ) -> Memorization:
        """Scores of the pool's samples by `networks` of their own, which no attack knows (Feldman &
        Zhang 2020).

        Each trains on a random `share` of the pool. Scores are differences of confidence, because
        accuracy cannot tell apart samples that all networks get right.
        """
        base = self.design
        design = Subsets(base.pool, base.test, base.seed, share=share)
        return self._memorization(design, networks, 1000, schedule)

    def fold_memorization(self, folds: int = 5, schedule: Schedule | None = None) -> Memorization:
        """Scores computed as we believe WeMem computed its published ones: one network for each
        fold of the pool, measured by confidence.

        Of each sample one network is IN and the others are OUT, so that it has no standard error.
        """
        base = self.design
        design = Folds(base.pool, base.test, base.seed, folds=folds)
        return self._memorization(design, folds, 2000, schedule)

    def _memorization(
        self, design: Design, networks: int, seed: int, schedule: Schedule | None
    ) -> Memorization:
        own = replace(self, design=design, models=networks, seed=seed + self.seed)
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
        plain = [state.training for state in self.trained()]
        return Population(
            tuple(replace(one, objective=Distillation(), teachers=own(one)) for one in plain)
        )


def left_out(
    whole: Train, schedule: Schedule | None = None, *, sub_models: int = 25, leave_out: int = 10
) -> tuple[Train, ...]:
    """SELENA's sub-models of the model `whole`. Each trains from scratch on the members of `whole`,
    without those that it leaves out.

    They minimize cross-entropy with the architecture and precision of `whole`, and by `schedule`
    (default: that of `whole`). No model of a population has one of their seeds. In SELENA's paper
    10 of 25 sub-models leave out each member.
    """
    design = LeftOut(whole.design, sub_models, leave_out)
    plan = schedule or whole.schedule
    first = Train(whole.data, design, 0, whole.model, plan, precision=whole.precision)
    row = sub_models * whole.row
    seed = model_seed(10_000 + whole.seed, 0)
    return tuple(replace(first, row=row + k, seed=seed + k) for k in range(sub_models))


@dataclass(frozen=True)
class Pair:
    """M_all and M_h1 of PPTP's probe (section 3.2): the same initialisation and order, trained on
    the whole pool and on half of it.
    """

    whole: State
    half: State

    def at(self, when: int | Literal["init"]) -> Pair:
        return Pair(self.whole.at(when), self.half.at(when))

    def distance(self, parts: Parts = "stages") -> Distance:
        return Distance(self.whole, self.half, parts)

    def similarity(self, parts: Parts = "stages") -> Similarity:
        return Similarity(self.whole, self.half, parts)


def seed_floors(pairs: tuple[Pair, ...], parts: Parts = "stages") -> tuple[Distance, ...]:
    """Distances between two seeds on the same data: M_all of each pair and of the next pair."""
    return tuple(Distance(a.whole, b.whole, parts) for a, b in pairwise(pairs))


def self_audit(models: Population | tuple[Pair, ...]) -> SelfAudit:
    """The honesty checks of the design behind a population or behind pairs."""
    states: list[State] = []
    for model in models:
        states += [model.whole, model.half] if isinstance(model, Pair) else [model]
    first = states[0].training
    return SelfAudit(first.data, first.design, tuple(state.training.row for state in states))
