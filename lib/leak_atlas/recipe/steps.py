"""What is done: trainings and edits, and what they need to know of the models before them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import ClassVar, Literal

from leak_atlas import BadInput
from leak_atlas.recipe.core import (
    Count,
    Record,
    Share,
    Step,
    Whole,
)
from leak_atlas.recipe.criteria import Criterion, Taylor, Vulnerability
from leak_atlas.recipe.designs import Design
from leak_atlas.recipe.objectives import CrossEntropy, Objective
from leak_atlas.recipe.sampling import Sampling
from leak_atlas.recipe.subjects import (
    NORMED,
    Architecture,
    Data,
    Model,
    Precision,
    Schedule,
)

__all__ = [
    "At",
    "Confined",
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


# between the seeds of two orders of batches: more than any model's seed (`populations.model_seed`)
ORDERS = 10**12


# what decides which filters are pruned, see `PruneFilters`
Filters = Literal["l1", "l2", "scale", "random"]
Scope = Literal["global", "layer"]  # in which weights are compared
Part = Literal["all", "norms", "others"]  # of the chosen weights


class State(Step):
    """A model with weights: a training's end, one of its epochs, or an edit of another state.

    The state that it is made of stands in its field `parent` or `of`.
    """

    prunes: ClassVar[bool] = False  # whether it sets weights to zero that stay so

    @property
    def before(self) -> State | None:
        """The state that this one is made of; None: it is trained from scratch."""
        found: State | None = getattr(self, "parent", None) or getattr(self, "of", None)
        return found

    @property
    def pruned(self) -> bool:
        """Whether weights are pruned here or before: they stay so down the whole chain."""
        return self.prunes or (self.before is not None and self.before.pruned)

    def origin(self) -> Train | ImportedModel:
        """The root of this chain: a training from scratch, or an imported model."""
        if self.before:
            return self.before.origin()
        assert isinstance(self, Train | ImportedModel)
        return self

    def initial(self) -> At:
        """The initialisation at the root of this chain. BadInput for an imported model, whose
        initialisation is not known.
        """
        root = self.origin()
        if isinstance(root, ImportedModel):
            raise BadInput(
                "weights from outside come without their initialisation: nothing can be rewound "
                "to it or compared "
                "with it; take fresh=True, a criterion that looks at trained weights alone, or "
                "train the model here"
            )
        return At(root, "init")

    @property
    def training(self) -> Train:
        """The nearest training at or before this state: with data, design, row and architecture."""
        assert self.before
        return self.before.training

    @property
    def members(self) -> int:
        """Number of samples that its row trains on."""
        own = self.training
        return own.design.members(own.row)

    @property
    def tests(self) -> int:
        """Number of its design's test samples."""
        own = self.training
        return own.design.tests(own.data.parts[1])

    def forward(self, count: Count) -> float:
        """Operations of a forward pass of one sample."""
        own = self.training
        return count("flops", own.data, own.model)

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
        scope: Scope = "global",
        norms: bool = True,
        head: bool = True,
        largest: bool = False,
    ) -> Prune:
        return Prune(self, sparsity, by, scope, largest=largest, norms=norms, head=head)

    def prune_filters(self, sparsity: float, by: Filters = "l1") -> PruneFilters:
        return PruneFilters(self, sparsity, by)

    def remove(self, by: Score, share: float, part: Part = "all") -> Prune:
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
        """Trains this state further on the same members, with a new optimizer.

        `order`: 0 takes the batches of the training before; every other number takes batches of its
        own. `reference`: number of samples
        outside the pool that the objective may use. Default: the design's own. Changing it does not
        retrain earlier steps.
        """
        own = self.training
        design, seed = own.design, own.seed
        if reference is not None:
            design = dataclasses.replace(design, reference=reference)
        if order:
            seed = self.origin().seed + order * ORDERS
        return dataclasses.replace(
            own,
            schedule=schedule,
            objective=objective or CrossEntropy(),
            parent=self,
            teachers=teachers,
            sampling=sampling,
            ranking=ranking,
            design=design,
            seed=seed,
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
    precision: Precision = "fp32"
    parent: State | None = None  # where the weights come from; None: a fresh initialisation
    teachers: tuple[State, ...] = ()  # whose answers a Distillation learns
    # which samples each epoch holds; None: every member once
    sampling: Sampling | None = field(default=None, metadata={"recorded": "diet"})
    # what a sampling schedule goes by: a step that gives `score (n,)` of the samples `index (n,)`
    ranking: Step | None = None

    def verify(self) -> None:
        check_reads(self.data, self.model)
        self.design.check(*self.data.parts)
        self.design.serve(self.objective, self.objective.needs)
        name = type(self.objective).__name__
        by_sample = self.objective.by_sample
        ranked = self.sampling is not None or self.objective.ranked
        if self.schedule.augment and self.data.kind != "images":
            raise BadInput(f"only images are augmented: leave augment out with {self.data.name}")
        if bool(self.teachers) != self.objective.taught:
            raise BadInput(
                "teachers and Distillation() come together: train(schedule, Distillation(), "
                "teachers=...)"
            )
        if any(teacher.training.data != self.data for teacher in self.teachers):
            raise BadInput("teachers need the same data as their student")
        if self.schedule.patience is not None and not self.design.dev:
            raise BadInput(
                "a schedule with a patience needs samples to look at: give the design a dev set"
            )
        if ranked != (self.ranking is not None):
            raise BadInput(
                "a ranking comes with a sampling schedule or RMR(), and they with it: "
                "train(schedule, ..., ranking=...)"
            )
        if self.sampling and by_sample:
            raise BadInput(f"{name} draws its own batches: train without a sampling schedule")
        if self.schedule.sharpness and by_sample:
            raise BadInput(f"{name} clips each sample's gradient: train with sharpness 0")
        if by_sample and self.model.shares_statistics:
            of_a_user = "where it has none, let its class say shares_statistics = False"
            remedy = "take norm='group'" if isinstance(self.model, Model) else of_a_user
            raise BadInput(
                f"{name} needs a network without BatchNorm, unlike a {self.model.description}: "
                f"{remedy}"
            )

    def record(self) -> Record:
        """For a pruned network the record has one more field: older versions did not store the
        masks of pruned weights, so their results have other keys.
        """
        return super().record() | ({"gone": "kept"} if self.pruned else {})

    @property
    def frozen_until(self) -> str | None:
        """All parts before this one are frozen; None: no first parts are frozen."""
        return self._frozen(later=False)

    def _frozen(self, later: bool) -> str | None:
        """`until` of the last `Freeze` with this `later`, among the edits since the training
        before; None: there is none.
        """
        state = self.parent
        while isinstance(state, Edit):
            if isinstance(state, Freeze) and state.later == later:
                return state.until
            state = state.parent
        return None

    @property
    def training(self) -> Train:
        return self

    def visits(self) -> float:
        """Samples that it learns from, over all epochs."""
        epochs = self.schedule.epochs
        samples = float(self.members * self.schedule.epochs)
        if self.sampling is not None:
            of_a_class = self.members // self.data.classes
            samples = self.data.classes * sum(self.sampling.visits(of_a_class, epochs))
        if self.objective.batches is not None:
            samples = min(samples, self.objective.batches * self.schedule.batch * epochs)
        return samples

    def operations(self, count: Count) -> float:
        objective = self.objective
        visits = self.visits()
        whole = self.forward(count)
        trained = count("flops", self.data, self.model, self.frozen_until)
        passes = objective.passes + (3.0 if self.schedule.sharpness else 0.0)  # SAM's second pass
        learning = visits * (passes * trained + objective.extra_operations(self, count))
        frozen_from = self._frozen(later=True)
        if (
            frozen_from is not None
        ):  # weights that are frozen need no gradients: a third of the work
            learning -= visits * passes / 3 * count("flops", self.data, self.model, frozen_from)
        # Frozen first parts run once, or in every epoch where augmentation changes what they see.
        if self.schedule.augment:
            seen = visits * (1 + objective.further_samples)
        else:
            seen = self.members + sum(getattr(self.design, role) for role in objective.needs)
        total = learning + seen * (whole - trained)
        for teacher in self.teachers:
            total += teacher.forward(count) * max(self.members - teacher.members, 0)
        return total


class ImportedModel(State, recorded="Brought"):
    """Weights from outside: those of a safetensors file with this digest
    (`leak_atlas.own.weights.import_model` makes the step).

    Data, design and row say what the network was trained on, as for a training here. It is
    attacked, scored, edited and trained on as any state is. The file is read once: then its weights
    are in the store.
    """

    data: Data
    design: Design
    row: int
    model: Architecture
    sha256: str  # of the file, in hex
    seed: Whole = 0  # of what is drawn for this model, and of trainings that go on from it
    precision: Precision = "fp32"  # of these trainings
    file: str = ""  # where it is; in no key

    def verify(self) -> None:
        self.training  # noqa: B018  # it looks at data, design and model

    def record(self) -> Record:
        return {name: value for name, value in super().record().items() if name != "file"}

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


class Edit(State):
    """New values for some weights, and masks of frozen and of pruned ones; computed where it is
    needed, never stored.

    Frozen weights are frozen in the training that follows. Pruned weights stay zero in all that
    follows, edits included.
    """

    stored: ClassVar = False

    parent: State

    def verify(self) -> None:
        by = getattr(self, "by", None)
        if isinstance(by, Score) and by.of.origin() != self.origin():
            raise BadInput(
                f"{type(self).__name__} goes by a score of another model: score a state of the "
                "same chain"
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

    With `later` these stages are the only ones that learn: `until` and all after it are frozen.
    """

    until: str
    later: bool = False


class Score(Step):
    """What each weight of a model is worth by a criterion. The target and each shadow model are
    scored separately.

    Weights of convolutions, linear maps, norms and embeddings are scored; biases and tokens are
    not. CWRF counts "all trainable scalars", but the shares of its Tab. 1 fit weights alone.
    Scores are computed in float32, whatever the training's precision, in evaluation mode (BatchNorm's statistics stay, no
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
        passes = self.criterion.passes(self.of.members, self.of.training.design.reference)
        return passes * self.of.forward(count)

    def shuffle(self, seed: int = 0) -> Shuffled:
        return Shuffled(self.of, self.criterion, seed)

    def confine(self, start: str, before: bool = False) -> Confined:
        return Confined(self.of, self.criterion, start, before)


class Shuffled(Score):
    """The same scores, permuted inside each tensor: of each layer the same number of weights is
    chosen, but others.

    The control of the choice of weights: Su et al. 2020 find that of many prunings only the layers'
    shares matter. Each model has a permutation of its own. Result: as the score's, which is
    computed (or looked up) first.
    """

    seed: int = 0

    def parents(self) -> Iterator[Step]:
        yield Score(self.of, self.criterion)

    def operations(self, count: Count) -> float:
        return 0.0


class Confined(Score):
    """The same scores in part `start` of the network and in all after it; elsewhere each is below
    all of these.

    So the weights with the largest scores lie there, as long as no larger share is asked for. With
    `before` the scores of the parts before `start` stay instead. Result: as the score's, which is
    computed (or looked up) first.
    """

    start: str = "stage4"
    before: bool = False

    def parents(self) -> Iterator[Step]:
        yield Score(self.of, self.criterion)

    def operations(self, count: Count) -> float:
        return 0.0


class Updated(State):
    """A model after the updates that a Taylor score watches, which the score throws away: do they
    change the model as intended?

    Batches and updates are the score's. Not for a pruned model, whose zeros the updates would fill.
    Result: the state dict.
    """

    of: State
    criterion: Taylor

    def verify(self) -> None:
        if self.of.pruned:
            raise BadInput(
                "the updates of a score fill what is pruned: ask for those of a state that is not "
                "pruned"
            )
        self.of.training.design.serve(self.criterion, self.criterion.needs)

    def parents(self) -> Iterator[Step]:
        yield from Score(self.of, self.criterion).parents()

    def operations(self, count: Count) -> float:
        return Score(self.of, self.criterion).operations(count)


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

    With `rest` they are the only ones that change: all other weights and all biases are frozen.
    BatchNorm's statistics go on in either case. CWRF (A3) rewinds and freezes the same weights; A2
    rewinds them and freezes the rest.
    """

    by: Score
    share: Share
    rest: bool = False


class Prune(Edit):
    """The weights with the smallest scores, or magnitudes, become zero, and stay so in all that
    follows.

    Exactly round(sparsity n) of the n competing weights are chosen. Weights that were pruned before
    are chosen first, and count. Of equal weights the first in the network is chosen. With a score
    (`by`) the scored weights compete; without one, all weights of two or more dimensions (no norms,
    no biases). `norms` and `head` exclude weights from the competition; `part` limits the removal
    to some of the chosen weights. A `Learnability` score makes it first-order Taylor pruning, which does not
    depend on the state that is pruned: the initialisation with the survivors of the trained net is
    `train.at("init").prune(0.85, train.score(Learnability()))`.
    """

    prunes: ClassVar = True

    sparsity: Share
    by: Score | None = None
    # "layer": each tensor gets this sparsity (NNI's LevelPruner)
    scope: Scope = "global"
    largest: bool = False  # those with the largest scores instead: CWRF's A1
    norms: bool = True  # of a score: whether the weights of norms compete too
    # whether the last part's weights compete too; WeMem's fully connected net keeps them
    head: bool = True
    # of the chosen weights those of norms alone, or all but them
    part: Part = "all"

    def verify(self) -> None:
        super().verify()
        if not self.head and not isinstance(self.training.model, Model):
            raise BadInput(
                f"which part of a {self.training.model.description} is the last is not known: "
                "prune with head=True"
            )


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
    of all n (network slimming, Liu et al. 2017, without its training: the pruning papers rank
    ordinary scales). Nothing saves a layer from losing all its channels, in NNI neither. A norm of
    joined maps has no convolution of its own: its scale and shift are pruned alone. Filters that
    were pruned before are counted; of equal ones the first is pruned.
    """

    prunes: ClassVar = True

    sparsity: Share
    by: Filters = "l1"

    def verify(self) -> None:
        check_has_filters(self.training.model, "PruneFilters")


class Signals(Step):
    """A state's logits on every sample that its design uses, and scaled confidences under fixed
    views.

    Result: `logits (n, C)`, `views (n, A)` (view 0 is the plain image), over `Design`'s used
    samples in index order; `labels`, `role` and `index` `(n,)`; `accuracy_member`,
    `accuracy_nonmember`, `accuracy_test` and `accuracy_dev`, where there are such samples. Without
    test samples `accuracy_test` is that on non-members.
    """

    of: State
    views: Literal[1, 2, 18] = 1  # 1: plain; 2: and mirrored; 18: mirror x 9 shifts

    def verify(self) -> None:
        data = self.of.training.data
        if self.views != 1 and data.kind != "images":
            raise BadInput(
                f"{data.name} holds {data.kind}, which have one view: "
                f"ask for views=1, not {self.views}"
            )

    def operations(self, count: Count) -> float:
        samples = self.of.training.design.pool + self.of.tests
        return self.of.forward(count) * samples * self.views


def check_reads(data: Data, model: Architecture) -> None:
    """Raises BadInput if an architecture does not read this kind of data."""
    if data.kind not in model.reads:
        kinds = " and ".join(model.reads)
        of_a_user = f"if it can read them, write reads = ({data.kind!r},) in its class"
        remedy = "take another of them" if isinstance(model, Model) else of_a_user
        raise BadInput(
            f"a {model.description} reads {kinds}, but {data.name} holds {data.kind}: {remedy}"
        )


def check_has_nonmembers(state: State, who: str) -> None:
    """Raises BadInput if a state's row trains on its whole pool, so that there are no non-members."""
    design = state.training.design
    row = state.training.row
    if state.members == getattr(design, "judged", design.pool):
        raise BadInput(
            f"{who}: row {row} of {type(design).__name__} holds the whole pool, so there are no "
            "non-members"
        )


def check_has_filters(model: Architecture, who: str) -> None:
    """Raises BadInput if an architecture has no convolutions with norms."""
    if not isinstance(model, Model) or not model.name.startswith(NORMED):
        raise BadInput(
            f"{who} needs convolutions with norms behind them, unlike a {model.description}: take "
            "a resnet"
        )
