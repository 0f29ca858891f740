"""What is done: trainings and edits, and what they need to know of the models before them."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar, Literal

from leak_atlas import BadInput
from leak_atlas.recipe.core import Count, Share, Step, Whole
from leak_atlas.recipe.criteria import Criterion, Taylor, Vulnerability
from leak_atlas.recipe.designs import Design
from leak_atlas.recipe.objectives import CrossEntropy, Objective, Slimming
from leak_atlas.recipe.sampling import Sampling
from leak_atlas.recipe.subjects import NORMED, Architecture, Data, Model, Schedule

__all__ = [
    "At",
    "Edit",
    "Freeze",
    "FreezeWeights",
    "ImportedModel",
    "Prune",
    "PruneFilters",
    "Rewind",
    "RewindWeights",
    "Score",
    "Shuffled",
    "Signals",
    "State",
    "Train",
    "Updated",
]


ORDERS = 10**12  # beyond the seeds of all models (`populations.model_seed`)


class State(Step, ABC):
    """A model with weights: a training's end, one of its epochs, or an edit of another state."""

    @property
    @abstractmethod
    def before(self) -> State | None:
        """The state that this one is made of; None: it is trained from scratch."""

    @property
    def pruned(self) -> bool:
        """Whether weights were pruned somewhere before this state; they stay so down the whole
        chain.
        """
        return self.before is not None and self.before.pruned

    def origin(self) -> Train | ImportedModel:
        """The root of this chain: a training from scratch, or weights from outside."""
        return self.before.origin() if self.before else self.training

    def initial(self) -> At:
        """The initialisation at the root of this chain. BadInput where weights were brought: theirs
        is not known.
        """
        root = self.origin()
        if isinstance(root, ImportedModel):
            raise BadInput(
                "weights from outside come without their initialisation: nothing can be rewound to it or compared "
                "with it; take fresh=True, a criterion that looks at trained weights alone, or train the model here"
            )
        return At(root, "init")

    @property
    def training(self) -> Train:
        """The nearest training at or before this state: it tells data, design, row and
        architecture.
        """
        assert self.before
        return self.before.training

    def rewind(self, start: str, fresh: bool = False) -> Rewind:
        return Rewind(self, start, fresh)

    def freeze(self, until: str, later: bool = False) -> Freeze:
        return Freeze(self, until, later)

    def score(self, criterion: Criterion | None = None) -> Score:
        return Score(self, criterion or Vulnerability())

    def rewind_weights(self, by: Score, share: float) -> RewindWeights:
        return RewindWeights(self, by, share)

    def freeze_weights(self, by: Score, share: float, rest: bool = False) -> FreezeWeights:
        return FreezeWeights(self, by, share, rest)

    def prune(
        self,
        sparsity: float,
        by: Score | None = None,
        scope: Literal["global", "layer"] = "global",
        norms: bool = True,
        head: bool = True,
    ) -> Prune:
        return Prune(self, sparsity, by, scope, norms=norms, head=head)

    def prune_filters(
        self, sparsity: float, by: Literal["l1", "l2", "scale", "random"] = "l1"
    ) -> PruneFilters:
        return PruneFilters(self, sparsity, by)

    def remove(
        self, by: Score, share: float, part: Literal["all", "norms", "others"] = "all"
    ) -> Prune:
        """Without the `share` of the weights with the largest scores (CWRF's A1), or a `part` of
        these alone.
        """
        return Prune(self, share, by, largest=True, part=part)

    def updated(self, criterion: Taylor) -> Updated:
        return Updated(self, criterion)

    def train(
        self,
        schedule: Schedule,
        objective: Objective | None = None,
        teachers: tuple[State, ...] = (),
        sampling: Sampling | None = None,
        ranking: Step | None = None,
        reference: int | None = None,
        order: Whole = 0,
    ) -> Train:
        """Go on from here on the same members, with a fresh optimizer; batches come as in the
        training before.

        Another `order` takes other batches, each number its own. `reference`: so many samples
        outside the pool that the objective may see, where the design has others or none; what goes
        before needs not be trained anew for them.
        """
        goal, design = objective or CrossEntropy(), self.training.design
        return dataclasses.replace(
            self.training,
            schedule=schedule,
            objective=goal,
            parent=self,
            teachers=teachers,
            sampling=sampling,
            ranking=ranking,
            design=design
            if reference is None
            else dataclasses.replace(design, reference=reference),
            seed=self.origin().seed + order * ORDERS if order else self.training.seed,
        )

    def at(self, when: int | Literal["init"]) -> State:
        """The state after epoch `when` of this training, or at its initialisation."""
        if not isinstance(self, Train):
            raise BadInput(
                f"a {type(self).__name__} has no epochs; ask its training: chain.train(...).at(5)"
            )
        ends = when == self.schedule.epochs and self.schedule.patience is None
        return self if ends else At(self, when)


class Train(State):
    """One training; its end is the last epoch, or the best on dev where the schedule has a
    patience.

    What is asked of the trajectory (`at`) is not part of its key.
    """

    data: Data
    design: Design
    row: int
    model: Architecture
    schedule: Schedule
    objective: Objective = field(default_factory=CrossEntropy)
    seed: Whole = 0  # of initialisation and order
    precision: Literal["fp32", "bf16"] = "fp32"
    parent: State | None = None  # where the weights come from; None: a fresh initialisation
    teachers: tuple[State, ...] = ()  # whose answers a Distillation learns
    # which samples each epoch holds; None: every member once
    sampling: Sampling | None = field(default=None, metadata={"recorded": "diet"})
    # what a sampling schedule goes by: a step that gives `score (n,)` of the samples `index (n,)`
    ranking: Step | None = None

    def verify(self) -> None:
        readable(self.data, self.model)
        self.design.check(*self.data.parts)
        name = type(self.objective).__name__
        if self.schedule.augment and self.data.kind != "images":
            raise BadInput(f"only images are augmented: leave augment out with {self.data.name}")
        if bool(self.teachers) != self.objective.taught:
            raise BadInput(
                "teachers and Distillation() come together: train(schedule, Distillation(), teachers=...)"
            )
        if any(teacher.training.data != self.data for teacher in self.teachers):
            raise BadInput("teachers need the same data as their student")
        self.design.serve(self.objective, self.objective.needs)
        if self.sampling and getattr(self.design, "order", "own") == "common":
            raise BadInput(
                "a common order visits all members: train without a sampling schedule, or in an order of its own"
            )
        if self.objective.by_sample and self.model.shares_statistics:
            own = not isinstance(self.model, Model)
            how = (
                "where it has none, let its class say shares_statistics = False"
                if own
                else "take norm='group'"
            )
            raise BadInput(
                f"{name} needs a network without BatchNorm, unlike a {self.model.description}: {how}"
            )
        if self.schedule.patience is not None and not self.design.dev:
            raise BadInput(
                "a schedule with a patience needs samples to look at: give the design a dev set"
            )
        if isinstance(self.objective, Slimming):
            filtered(self.model, name)
        if (self.sampling is not None or self.objective.ranked) != (self.ranking is not None):
            raise BadInput(
                "a ranking comes with a sampling schedule or RMR(), and they with it: train(schedule, ..., ranking=...)"
            )
        if self.sampling and self.objective.by_sample:
            raise BadInput(f"{name} draws its own batches: train without a sampling schedule")
        if self.schedule.sharpness and self.objective.by_sample:
            raise BadInput(f"{name} clips each sample's gradient: train with sharpness 0")

    def record(self) -> dict[str, Any]:
        """A training of a pruned network keeps what is gone beside its weights, which older
        versions did not.
        """
        return super().record() | ({"gone": "kept"} if self.pruned else {})

    @property
    def before(self) -> State | None:
        return self.parent

    @property
    def held_until(self) -> str | None:
        """The first part that it may change; None: it may change all."""
        state = self.parent
        while isinstance(state, Edit):
            if isinstance(state, Freeze):
                return state.until
            state = state.parent
        return None

    def operations(self, count: Count) -> float:
        samples, objective = self.design.members(self.row), self.objective
        whole = count("flops", self.data, self.model)
        trained = count("flops", self.data, self.model, self.held_until)
        learnt: float = samples * self.schedule.epochs
        if self.sampling is not None:
            learnt = self.data.classes * sum(
                self.sampling.visits(samples // self.data.classes, self.schedule.epochs)
            )
        if objective.batches is not None:
            learnt = min(learnt, objective.batches * self.schedule.batch * self.schedule.epochs)
        passes = objective.passes + (3.0 if self.schedule.sharpness else 0.0)  # SAM's second look
        found = learnt * (passes * trained + objective.beside(self, count))
        held = whole - trained  # runs once, or every epoch where augmentation changes what it sees
        if self.schedule.augment:
            found += learnt * (1 + objective.looks) * held
        else:
            found += (samples + sum(getattr(self.design, role) for role in objective.needs)) * held
        for teacher in self.teachers:
            unseen = samples - teacher.training.design.members(teacher.training.row)
            found += count("flops", self.data, teacher.training.model) * max(unseen, 0)
        return found

    @property
    def training(self) -> Train:
        return self


class ImportedModel(State, recorded="Brought"):
    """Weights from outside: those of a safetensors file with this digest
    (`leak_atlas.own.weights.import_model` makes the step).

    Data, design and row say what the network was trained on, as they do for a training here; what
    follows is attacked, scored, edited and trained on as any state is. The file is read once: then
    its weights are in the store.
    """

    data: Data
    design: Design
    row: int
    model: Architecture
    sha256: str  # of the file, in hex
    seed: Whole = 0  # of what is drawn for this model, and of trainings that go on from it
    precision: Literal["fp32", "bf16"] = "fp32"  # of these trainings
    file: str = ""  # where it is; in no key

    def verify(self) -> None:
        self.training  # noqa: B018  # it looks at data, design and model

    def record(self) -> dict[str, Any]:
        return {name: value for name, value in super().record().items() if name != "file"}

    @property
    def before(self) -> None:
        return None

    def origin(self) -> ImportedModel:
        return self

    @cached_property
    def training(self) -> Train:
        """What a training here would have been called; its schedule is not the user's, and it is
        never run.
        """
        own = self.data, self.design, self.row, self.model
        return Train(*own, Schedule(), seed=self.seed, precision=self.precision)


class At(State):
    """The state of a training after epoch `when` (from 1), or at its initialisation."""

    of: Train
    when: int | str = "init"

    def verify(self) -> None:
        last = self.of.schedule.epochs
        if self.when != "init" and not (isinstance(self.when, int) and 1 <= self.when <= last):
            raise BadInput(f"there is no epoch {self.when!r}: ask for 'init' or 1 to {last}")

    @property
    def before(self) -> State:
        return self.of


class Edit(State):
    """New values for some weights, and masks of what is held and of what is gone; made on the fly,
    never stored.

    What is held is held in the training that follows; what is gone stays zero in all that follows,
    edits included.
    """

    stored: ClassVar = False

    parent: State

    @property
    def before(self) -> State:
        return self.parent

    def verify(self) -> None:
        by = getattr(self, "by", None)
        if by and by.of.origin() != self.origin():
            raise BadInput(
                f"{type(self).__name__} goes by a score of another model: score a state of the same chain"
            )


class Rewind(Edit):
    """Stage `start` and all behind it go back to their value at the chain's initialisation (PPTP,
    Alg. 1).
    """

    start: str
    fresh: bool = False  # the control: to an initialisation that this network has never had

    def parents(self) -> Iterator[Step]:
        yield self.parent
        if not self.fresh:
            yield self.initial()


class Freeze(Edit, recorded="Hold"):
    """All stages before `until` keep their weights and BatchNorm statistics in the training that
    follows.

    With `later` these stages are the only ones that learn: `until` and all after it are held.
    """

    until: str
    later: bool = False


class Score(Step):
    """What each weight is worth by a criterion, for this very model: the target its own, each
    shadow its own.

    Scored are the weights of convolutions, linear maps, norms and embeddings; no biases and no
    tokens. CWRF counts "all trainable scalars", but the shares of its Tab. 1 fit weights alone. In
    float32 whatever the training's precision, in evaluation mode (BatchNorm's statistics stay, no
    dropout: the model as it is attacked) and on plain samples; the paper is silent on all three.

    Result: a float32 array of the tensor's shape for each scored one, by its state-dict name;
    `scored/kinds`, of which `leak_atlas.localization.score_maps.kinds` makes layer types; of a
    Taylor score `history/ce`, `history/accuracy` (members) and, where reference samples are looked
    at, `history/kl`, `history/accuracy_reference`, each `(T,)`, before the update.
    """

    of: State
    criterion: Criterion = field(default_factory=Vulnerability)

    def verify(self) -> None:
        self.of.training.design.serve(self.criterion, self.criterion.needs)

    def parents(self) -> Iterator[Step]:
        yield self.of
        if self.criterion.compares:
            yield self.of.initial()

    def operations(self, count: Count) -> float:
        own = self.of.training
        passes = self.criterion.passes(own.design.members(own.row), own.design.reference)
        return passes * count("flops", own.data, own.model)

    def shuffle(self, seed: int = 0) -> Shuffled:
        return Shuffled(self.of, self.criterion, seed)


class Shuffled(Score):
    """The same scores, permuted inside each tensor: of each layer as many weights are chosen,
    but others.

    The control of "these very weights": Su et al. 2020 find that of many prunings only the layers'
    shares matter. Each model deals for itself. Result: as the score's, which is computed (or looked
    up) first.
    """

    seed: int = 0

    def parents(self) -> Iterator[Step]:
        yield Score(self.of, self.criterion)

    def operations(self, count: Count) -> float:
        return 0.0


class Updated(State):
    """A model after the updates that a Taylor score watches, which the score throws away: do they
    do what they are for?

    Batches are the score's, and so the updates. Not for a pruned model, whose zeros the updates
    would fill. Result: the state dict.
    """

    of: State
    criterion: Taylor

    def verify(self) -> None:
        if self.of.pruned:
            raise BadInput(
                "the updates of a score fill what is pruned: ask for those of a state that is not pruned"
            )
        self.of.training.design.serve(self.criterion, self.criterion.needs)

    def parents(self) -> Iterator[Step]:
        yield from Score(self.of, self.criterion).parents()

    def operations(self, count: Count) -> float:
        return Score(self.of, self.criterion).operations(count)

    @property
    def before(self) -> State:
        return self.of


class RewindWeights(Edit):
    """The `share` of the scored weights with the largest scores go back to the chain's
    initialisation (CWRF, eq. 5-6).

    Exactly round(share n) of the n weights, of equal scores the first in the network. Biases and
    BatchNorm's statistics stay as they are.
    """

    by: Score
    share: Share  # CWRF's rewind rate r

    def parents(self) -> Iterator[Step]:
        yield from (self.parent, self.by, self.initial())


class FreezeWeights(Edit, recorded="HoldWeights"):
    """The `share` of the scored weights with the largest scores keep their values in the training
    that follows.

    With `rest` they are the only ones that change: all other weights and all biases are held.
    BatchNorm's statistics go on in either case. CWRF (A3) rewinds and holds the same weights; A2
    rewinds them and holds the rest.
    """

    by: Score
    share: Share
    rest: bool = False


class Prune(Edit):
    """The weights with the smallest scores, or magnitudes, become zero, and stay so in all that
    follows.

    Exactly round(sparsity n) of n weights, those that were pruned before counted; of equal ones the
    first in the network. By a score all scored weights compete; by magnitude (`by` None) all but
    those of norms. A `Learnability` score makes it first-order Taylor pruning, which does not
    depend on the state that is pruned: the initialisation with the survivors of the trained net is
    `train.at("init").prune(0.85, train.score(Learnability()))`.
    """

    sparsity: Share
    by: Score | None = None
    # `layer`: each tensor as sparse as all (NNI's LevelPruner)
    scope: Literal["global", "layer"] = "global"
    largest: bool = False  # those with the largest go instead: CWRF's A1
    norms: bool = True  # of a score: whether the weights of norms compete too
    # whether the last part's weights compete too; WeMem's fully connected net keeps them
    head: bool = True
    # of those that would go, the norms' weights alone, or all but them
    part: Literal["all", "norms", "others"] = "all"

    def verify(self) -> None:
        super().verify()
        if not self.head and not isinstance(self.training.model, Model):
            raise BadInput(
                f"which part of a {self.training.model.description} is the last is not known: prune with head=True"
            )

    @property
    def pruned(self) -> bool:
        return True


class PruneFilters(Edit):
    """Whole filters become zero, and stay so in all that follows (Yuan & Zhang 2022, section
    5.1.3).

    A filter is an output channel of a convolution: its weights, its bias, and scale and shift of
    the norm that reads it, so that the channel is exactly zero behind the norm. Linear maps have
    none; BatchNorm's statistics stay.

    `l1`, `l2`: those with the smallest norm of their weights (Li et al. 2017); `random` is the
    control, drawn by the training's seed: each model its own. Of each convolution exactly
    round(sparsity n) of n, where NNI, which the published code calls, takes int(sparsity n).
    `scale`: the smallest |scale| of all norms' channels in the network, exactly round(sparsity n)
    of all n (network slimming, Liu et al. 2017, which learns by `Slimming` first). Nothing saves a
    layer from losing all its channels, in NNI neither. A norm of joined maps has no convolution of
    its own: its scale and shift go alone. Filters that were gone before are counted; of equal ones
    the first goes.
    """

    sparsity: Share
    by: Literal["l1", "l2", "scale", "random"] = "l1"

    def verify(self) -> None:
        filtered(self.training.model, "PruneFilters")

    @property
    def pruned(self) -> bool:
        return True


class Signals(Step):
    """A state's logits on every sample that its design uses, and scaled confidences under fixed
    views.

    Result: `logits (n, C)`, `views (n, A)` (view 0 is the plain image), over `Design`'s used
    samples in index order.
    """

    of: State
    views: int = 1  # 1: plain; 2: and mirrored; 18: mirror x 9 shifts

    def verify(self) -> None:
        data = self.of.training.data
        if self.views != 1 and data.kind != "images":
            raise BadInput(
                f"{data.name} holds {data.kind}, which have one view: ask for views=1, not {self.views}"
            )
        if self.views not in (1, 2, 18):
            raise BadInput(f"Signals.views cannot be {self.views}: 1, 2 or 18")

    def operations(self, count: Count) -> float:
        own = self.of.training
        samples = own.design.pool + own.design.tests(own.data.parts[1])
        return count("flops", own.data, own.model) * samples * self.views


def readable(data: Data, model: Architecture) -> None:
    if data.kind not in model.reads:
        kinds = " and ".join(model.reads)
        of_a_user = f"if it can read them, write reads = ({data.kind!r},) in its class"
        remedy = "take another of them" if isinstance(model, Model) else of_a_user
        raise BadInput(
            f"a {model.description} reads {kinds}, but {data.name} holds {data.kind}: {remedy}"
        )


def mixed(state: State, who: str) -> None:
    """BadInput where a state's row holds all samples of its pool, so that there is no non-member to
    find.
    """
    design, row = state.training.design, state.training.row
    if design.members(row) == getattr(design, "judged", design.pool):
        raise BadInput(
            f"{who}: row {row} of {type(design).__name__} holds the whole pool, so there are no non-members"
        )


def filtered(model: Architecture, who: str) -> None:
    if not isinstance(model, Model) or not model.name.startswith(NORMED):
        raise BadInput(
            f"{who} needs convolutions with norms behind them, unlike a {model.description}: take a resnet"
        )
