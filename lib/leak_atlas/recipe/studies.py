"""Experiments that several pages share: their sizes, and the populations that follow from them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from leak_atlas import BadInput
from leak_atlas.recipe.attacks import Attack, Attacker, LiRA, Threshold
from leak_atlas.recipe.criteria import Criterion
from leak_atlas.recipe.designs import Design, Halves, RandomHalves, VictimAttacker
from leak_atlas.recipe.objectives import RMR, AdversarialRegularization, Objective
from leak_atlas.recipe.populations import Pair, Population, Pruner, Setup
from leak_atlas.recipe.readings import (
    Distance,
    Memorization,
    Parts,
    Sensitivity,
    Sparsity,
)
from leak_atlas.recipe.sampling import Window
from leak_atlas.recipe.steps import Score, Signals, Step
from leak_atlas.recipe.subjects import (
    Architecture,
    Data,
    Model,
    Precision,
    Schedule,
)

__all__ = [
    "PRUNERS",
    "DefenceStudy",
    "ProbeStudy",
    "PruningStudy",
    "RewindStudy",
    "StageStudy",
    "TrajectoryStudy",
    "WindowStudy",
]

PRUNERS: tuple[Pruner, ...] = ("L1 unstructured", "L1 structured", "L2 structured", "slimming")


class Study:
    """Fields of all studies."""

    data: Data
    model: Architecture
    schedule: Schedule  # from scratch
    seed: int
    precision: Precision

    def setup_of(self, design: Design, models: int) -> Setup:
        """What all trainings share."""
        return Setup(
            self.data, design, self.model, self.schedule, models, self.seed, self.precision
        )


@dataclass(frozen=True)
class PruningStudy(Study):
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
    precision: Precision = "fp32"

    @property
    def setup(self) -> Setup:
        """What all trainings share."""
        design = VictimAttacker(self.pool, seed=self.seed, dev=self.dev, victims=self.targets)
        return self.setup_of(design, self.targets + self.shadows)

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
        self,
        pruner: Pruner,
        sparsity: float,
        objective: Objective | None = None,
        reference: int | None = None,
    ) -> Population:
        """Networks that are pruned and fine-tuned, with a defence or without.

        `reference`: samples outside the pool that the defence may see.
        """
        pruned = self.dense.pruned(pruner, sparsity)
        return pruned.train(self.tuning, objective, reference=reference)

    def target_networks(self, population: Population) -> Population:
        """The targets alone, where other networks attack them."""
        return Population(population.states[: self.targets])

    def shadow_models(self, population: Population) -> Population:
        """The shadow models alone."""
        return Population(population.states[self.targets :])

    def stopped(self, epochs: Sequence[int]) -> dict[int, Population]:
        """Dense networks whose training stops after some epochs, without a patience.

        At a constant rate these are checkpoints of one training, that of the dense networks where
        these have no patience; where the rate decays, each is a training of its own.
        """
        networks = {}
        for epoch in epochs:
            constant = self.schedule.decay == "constant"
            end = max(self.schedule.epochs, *epochs) if constant else epoch
            schedule = replace(self.schedule, epochs=end, patience=None)
            networks[epoch] = self.setup.trained(schedule=schedule).at(epoch)
        return networks

    def pruned_early(
        self, pruner: Pruner, sparsity: float, before: Sequence[int], after: Sequence[int]
    ) -> dict[int, Population]:
        """Pruned networks that train for fewer epochs, by their epochs in total: early stopping.

        `after`: the fine-tuning stops after so many epochs. `before`: the dense network stops after
        so many, is pruned, and is fine-tuned for the fewest of `after`.
        """
        if not after:
            raise BadInput("pruned networks that stop early need an epoch or more of fine-tuning")
        starts = self.stopped(before) if before else {}
        found: dict[int, Population] = {}
        fewest = min(after)
        for epochs, dense in starts.items():
            pruned = dense.pruned(pruner, sparsity)
            found[epochs + fewest] = self._tuned_early(pruned, [fewest])[fewest]
        pruned = self.dense.pruned(pruner, sparsity)
        for epochs, tuned in self._tuned_early(pruned, after).items():
            found[self.schedule.epochs + epochs] = tuned
        return found

    def _tuned_early(self, pruned: Population, epochs: Sequence[int]) -> dict[int, Population]:
        """Fine-tuning that stops after some epochs, without a patience; see `stopped`."""
        whole = replace(self.tuning, patience=None)
        if whole.decay == "constant":
            return {epoch: pruned.train(whole).at(epoch) for epoch in epochs}
        return {epoch: pruned.train(replace(whole, epochs=epoch)) for epoch in epochs}

    def removed(self, population: Population) -> list[Sparsity]:
        """What is pruned of each target."""
        return [Sparsity(state) for state in population.states[: self.targets]]

    def sensitivities(
        self, variants: Mapping[Hashable, Population], queries: int
    ) -> dict[Hashable, tuple[Sensitivity, ...]]:
        """How far `queries` noisy copies move each target of each variant."""
        steps = {}
        for variant, population in variants.items():
            steps[variant] = self.target_networks(population).sensitivity(queries)
        return steps


@dataclass(frozen=True, kw_only=True)
class DefenceStudy(PruningStudy):
    """PPB's experiment: pruned networks are fine-tuned with a defence, or with none ("Base")."""

    sparsity: float
    defences: Mapping[str, Objective]
    reference: int = 0  # samples outside the pool that ADV takes for non-members

    def networks(self, pruners: Sequence[Pruner]) -> dict[Hashable, Population]:
        """Targets and shadow models by pruner and defence; all of a pruner start from the same
        pruned networks.
        """
        found: dict[Hashable, Population] = {}
        for pruner in pruners:
            found[pruner, "Base"] = self.pruned(pruner, self.sparsity)
            for name, objective in self.defences.items():
                is_adv = isinstance(objective, AdversarialRegularization)
                outside = self.reference if is_adv else None
                found[pruner, name] = self.pruned(pruner, self.sparsity, objective, outside)
        return found


@dataclass(frozen=True, kw_only=True)
class WindowStudy(PruningStudy):
    """WeMem's experiment: networks are pruned in rounds, and each round fine-tunes them on a window
    of the members in the order of their memorization scores.

    A round fine-tunes for `fine_tuning` epochs. The scores come from networks of their own.
    """

    sparsity: float  # after the last round
    rounds: int
    judges: int = 0  # networks that give the memorization scores
    share: float = 0.7  # of the pool, on which each of them trains
    score_epochs: int = 0  # of each of them, without a patience

    @cached_property
    def ranking(self) -> Memorization:
        """The memorization score of each sample of the pool."""
        return self.setup.memorization(self.judges, self.share, self.scoring)

    @property
    def scoring(self) -> Schedule:
        """The training of the networks that give the scores."""
        return replace(self.schedule, epochs=self.score_epochs, patience=None)

    @property
    def head(self) -> bool:
        """Whether the last layer is pruned too: not in fully connected networks, as published."""
        return self.model.name != "fc"

    @property
    def class_members(self) -> int:
        """Members of a class that a target trains on, in the mean, rounded down. Raises BadInput if
        there are fewer members than classes.
        """
        members = self.setup.design.members(0)
        if members < self.data.classes:
            raise BadInput(
                f"a window needs a member of each of {self.data.classes} classes: ask for a larger "
                "pool"
            )
        return members // self.data.classes

    def iterative(
        self, start: Population | None = None, schedule: Schedule | None = None, **training: Any
    ) -> tuple[Population, ...]:
        """Networks at the end of each round, see `Population.iteratively`.

        `start`: what the first round begins with (default: the dense networks); `schedule`: of a
        round; `training`: keyword arguments of `State.train`: `objective`, `sampling` (a window)
        and `ranking`.
        """
        return (start or self.dense).iteratively(
            "L1 unstructured",
            self.sparsity,
            schedule or self.tuning,
            self.rounds,
            self.head,
            **training,
        )

    @cached_property
    def base(self) -> Population:
        """Networks that are pruned in rounds without a defence: "Base" on the slides."""
        return self.iterative()[-1]

    def defended(self, objective: Objective) -> Population:
        """Networks whose rounds train with a defence that needs no memorization scores."""
        return self.iterative(objective=objective)[-1]

    def penalized(self, penalty: RMR, ranking: Step | None = None) -> Population:
        """RMR: the rounds penalize the members with the highest memorization scores.

        `ranking`: scores other than the memorization scores, such as permuted ones.
        """
        return self.iterative(objective=penalty, ranking=ranking or self.ranking)[-1]

    def windowed(
        self, window: Window, ranking: Step | None = None, penalty: RMR | None = None
    ) -> Population:
        """RSW: an epoch of a round visits a window of the members; with a penalty, SWMR.

        `ranking`: the order of the members, by default that of their memorization scores.
        """
        order = ranking or self.ranking
        return self.iterative(objective=penalty, sampling=window, ranking=order)[-1]

    def same_visits(self, window: Window) -> Population:
        """Base with so few epochs a round that it visits members as often as a window does."""
        fewer = replace(self.tuning, epochs=self.epochs_like(window))
        return self.iterative(schedule=fewer)[-1]

    def same_members(self, window: Window) -> Population:
        """Base, but a round visits only the members that a window reaches, and these as often as
        the window does (up to whole epochs).
        """
        reached = self._reached(window)
        fixed = Window(reached, 0, window.order)
        fewer = replace(self.tuning, epochs=self._epochs(window, reached))
        return self.iterative(schedule=fewer, sampling=fixed, ranking=self.ranking)[-1]

    def stopped_early(self, epochs: Sequence[int]) -> dict[int, Population]:
        """Base stopped early, by epoch: dense networks of some epochs, pruned with one epoch a
        round. All are as sparse as Base.
        """
        short = replace(self.tuning, epochs=1, patience=None)
        dense = self.stopped(epochs)
        return {epoch: self.iterative(dense[epoch], short)[-1] for epoch in epochs}

    def rounds_without_pruning(self) -> tuple[Population, ...]:
        """Networks at the end of each round, where no round removes a weight."""
        return self.dense.iteratively(None, 0, self.tuning, self.rounds)

    def pruned_at_once(self) -> tuple[Population, ...]:
        """One-shot pruning: all weights are removed before the first round, none afterwards."""
        pruned = self.dense.pruned("L1 unstructured", self.sparsity, self.head)
        return pruned.iteratively(None, 0, self.tuning, self.rounds)

    def epochs_like(self, window: Window) -> int:
        """Epochs of all members with the same number of visits as a round with a window."""
        return self._epochs(window, self.class_members)

    def extra_visits(self, window: Window) -> tuple[float, float]:
        """By what share of a window's visits `same_visits` and `same_members` have more (below 0:
        fewer), because their epochs are whole.
        """
        visits = self._visits(window)
        everyone, reached = self.class_members, self._reached(window)
        by_all = everyone * self._epochs(window, everyone)
        by_reached = reached * self._epochs(window, reached)
        return by_all / visits - 1, by_reached / visits - 1

    def coverage(self, window: Window) -> float:
        """The share of a class' members that a round with a window visits at least once."""
        return self._reached(window) / self.class_members

    def _epochs(self, window: Window, members: int) -> int:
        """Epochs in which so many members of a class get the visits of a round with a window."""
        return round(self._visits(window) / members)

    def _visits(self, window: Window) -> int:
        """Visits to members of a class in a round with a window."""
        return sum(window.visits(self.class_members, self.fine_tuning))

    def _reached(self, window: Window) -> int:
        """Members of a class that a round with a window visits at least once."""
        visits = window.visits(self.class_members, self.fine_tuning)
        return sum(number > 0 for number in visits)


@dataclass(frozen=True)
class RetrainingStudy(Study):
    """What PPTP's and CWRF's experiments share: networks on random halves of a pool, each attacked
    by all others except its complement.
    """

    data: Data
    model: Architecture
    schedule: Schedule  # from scratch
    _: KW_ONLY
    retraining: int  # epochs after the rewind
    pool: int  # samples from which each network draws half
    test: int
    models: int
    dev: int = 0  # samples outside the pool
    reference: int = 0  # further samples outside the pool, for a defence or a score
    seed: int = 0
    precision: Precision = "fp32"

    @property
    def setup(self) -> Setup:
        """What all trainings share."""
        design = RandomHalves(
            self.pool, test=self.test, seed=self.seed, dev=self.dev, reference=self.reference
        )
        return self.setup_of(design, self.models)

    @property
    def short(self) -> Schedule:
        """The retraining."""
        return replace(self.schedule, epochs=self.retraining)

    @cached_property
    def ordinary(self) -> Population:
        """Networks that are trained without a defence."""
        return self.setup.trained()

    def defended(self, objective: Objective | None, epochs: int | None = None) -> Population:
        """Networks that are trained from scratch with a defence, by default as long as without."""
        schedule = replace(self.schedule, epochs=epochs or self.schedule.epochs)
        return self.setup.trained(objective, schedule)


@dataclass(frozen=True, kw_only=True)
class StageStudy(RetrainingStudy):
    """PPTP's experiment: the risky stages are rewound to their initialisation and retrained with a
    defence, all earlier stages are frozen.
    """

    risky_from: str  # the first risky stage, "stage4"; the classifier is risky too

    def rewound(self, start: Population | None = None, cut: str = "") -> Population:
        """Networks before any retraining: all from `cut` on is rewound, what is before is frozen.

        `start`: what is rewound, by default the ordinary networks. `cut`: by default the first
        risky stage; "head" is the classifier alone.
        """
        first = cut or self.risky_from
        return (start or self.ordinary).rewind(first).freeze(first)

    def inside(
        self,
        objective: Objective | None = None,
        start: Population | None = None,
        cut: str = "",
        epochs: int | None = None,
    ) -> Population:
        """PPTP: rewound networks that are retrained, with a defence or without.

        `start` and `cut`: as `rewound`; `epochs`: by default those of the retraining.
        """
        schedule = replace(self.schedule, epochs=epochs or self.retraining)
        return self.rewound(start, cut).train(schedule, objective)

    def tuned_head(
        self, objective: Objective | None = None, epochs: int | None = None
    ) -> Population:
        """Networks whose classifier alone is trained on, from where it is, for `epochs` (default:
        those of the retraining).
        """
        schedule = replace(self.schedule, epochs=epochs or self.retraining)
        return self.ordinary.freeze("head").train(schedule, objective)

    def strengths(
        self, defence: str, objectives: Mapping[str, Objective]
    ) -> dict[tuple[str, str, str], Population]:
        """A defence at several strengths, by (defence, place, strength).

        `objectives` has the strengths by name. Places are "from scratch" and "inside PPTP".
        """
        networks = {}
        for strength, objective in objectives.items():
            networks[defence, "from scratch", strength] = self.defended(objective)
        for strength, objective in objectives.items():
            networks[defence, "inside PPTP", strength] = self.inside(objective)
        return networks


@dataclass(frozen=True, kw_only=True)
class RewindStudy(RetrainingStudy):
    """CWRF's experiment: a share of the weights is rewound and frozen, the others are retrained."""

    criterion: Criterion  # its score chooses the weights

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        """The criterion's score of each network's weights."""
        return self.ordinary.score(self.criterion)

    @property
    def random_scores(self) -> tuple[Score, ...]:
        """These scores permuted inside each layer: they choose random weights, of each layer the
        same number.
        """
        return tuple(score.shuffle() for score in self.scores)

    def rewound(self, share: float, scores: Sequence[Score] = ()) -> Population:
        """Networks of which a share of the weights is rewound and frozen, before any retraining.

        `scores` choose the weights, by default the criterion's.
        """
        chosen = scores or self.scores
        return self.ordinary.rewind_weights(chosen, share).freeze_weights(chosen, share)

    def inside(
        self, share: float, objective: Objective | None = None, scores: Sequence[Score] = ()
    ) -> Population:
        """Rewound networks that are retrained, with a defence or without; see `rewound`."""
        return self.rewound(share, scores).train(self.short, objective)

    def tuned(self, objective: Objective | None = None) -> Population:
        """Networks that are retrained with nothing rewound."""
        return self.ordinary.train(self.short, objective)

    def in_three_ways(
        self, objective: Objective, share: float
    ) -> dict[Literal["from scratch", "nothing rewound", "inside CWRF"], Population]:
        """A defence from scratch, after ordinary training with nothing rewound, and inside CWRF."""
        return {
            "from scratch": self.defended(objective),
            "nothing rewound": self.tuned(objective),
            "inside CWRF": self.inside(share, objective),
        }


@dataclass(frozen=True)
class ProbeStudy(Study):
    """PPTP's probe: pairs of networks with one initialisation, of which M_all trains on the pool
    and M_h1 on half of it. The distance of their features shows which stage carries membership.
    """

    data: Data
    model: Architecture
    schedule: Schedule
    pool: int  # samples of M_all
    pairs: int
    seed: int = 0
    precision: Precision = "fp32"

    @property
    def setup(self) -> Setup:
        """What all trainings share."""
        return self.setup_of(Halves(self.pool, seed=self.seed), self.pairs)

    @cached_property
    def probes(self) -> tuple[Pair, ...]:
        """The pairs."""
        return self.setup.pairs()

    def distances(self, parts: Parts = "stages") -> list[Distance]:
        """How far apart the features of a pair are, stage by stage or block by block."""
        return [pair.distance(parts) for pair in self.probes]

    def wholes(self) -> list[Signals]:
        """Logits of M_all of each pair."""
        return [Signals(pair.whole) for pair in self.probes]


@dataclass(frozen=True)
class TrajectoryStudy(Study):
    """Networks that are attacked at several epochs of their training, each by all the others."""

    data: Data
    model: Architecture
    schedule: Schedule
    pool: int  # samples from which each network draws half
    test: int
    networks: int
    checkpoints: Sequence[int]  # epochs; 0 is the initialisation
    seed: int = 0
    precision: Precision = "fp32"
    attacked: int | None = None  # this number of the networks, the first; None: all

    @property
    def setup(self) -> Setup:
        """What all trainings share."""
        design = RandomHalves(self.pool, test=self.test, seed=self.seed)
        return self.setup_of(design, self.networks)

    @cached_property
    def trained(self) -> Population:
        """The networks that are attacked, at the end of the training."""
        return Population(self.setup.trained().states[: self.attacked])

    def judges(self, number: int, share: float = 0.7) -> Population:
        """Networks that judge how hard each sample is, and that no attack knows.

        Each trains on a random `share` of the pool.
        """
        return Population(self.setup.memorization(number, share).models)

    def signals(self, networks: Population | None = None) -> dict[int, tuple[Signals, ...]]:
        """Logits at each checkpoint, of these networks or of others."""
        chosen = networks or self.trained
        return {epoch: chosen.at(epoch or "init").signals() for epoch in self.checkpoints}

    def attacks(
        self, attacker: Attacker | None = None, permuted: int | None = None
    ) -> dict[int, Attack]:
        """Attacks at each checkpoint, by LiRA if none is given.

        A number `permuted` draws the permutation null: membership labels are permuted among the
        samples.
        """
        return self.trained.attack_over_time(attacker or LiRA(), self.checkpoints, permuted)

    def fits(self, measure: Literal["correctness", "loss"]) -> dict[int, Attack]:
        """A threshold on the correctness or on the loss at each checkpoint: what networks learn."""
        return self.attacks(Threshold(measure, by_class=False))

    def halves(
        self,
        number: int,
        epochs: Sequence[int] | None = None,
    ) -> list[list[dict[int, Attack]]]:
        """LiRA against both halves of the networks, which share no shadow model, in several random
        divisions.
        """
        chosen = self.checkpoints if epochs is None else epochs

        def attacked(half: Population) -> dict[int, Attack]:
            return half.attack_over_time(LiRA(), chosen)

        pairs = []
        for first, second in self.trained.halvings(number):
            pairs.append([attacked(first), attacked(second)])
        return pairs

    def attacked_halves(
        self, attacker: Attacker, teachers: int | None = None
    ) -> list[dict[int, Attack]]:
        """Two halves of the networks, attacked after training.

        Each half is attacked by itself; or, with a number of `teachers`, by the first so many
        networks of the other half, for attackers that learn from networks of their own.
        """
        states = self.trained.states
        middle = len(states) // 2
        halves = states[:middle], states[middle:]
        attacks = []
        for half, others in (halves, halves[::-1]):
            shadows = Population(others[:teachers]) if teachers else None
            epochs = [self.schedule.epochs]
            attacks.append(Population(half).attack_over_time(attacker, epochs, shadows=shadows))
        return attacks
