"""What is done: trainings, edits, and what is read off the models they make."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from lib import BadInput
from lib.recipe.core import Step
from lib.recipe.criteria import Change, Criterion, Vulnerability
from lib.recipe.subjects import (
    DPSGD,
    PAST,
    AdversarialRegularization,
    CrossEntropy,
    Data,
    Design,
    Distillation,
    Model,
    Objective,
    Schedule,
)


@dataclass(frozen=True, eq=False)
class State(Step, ABC):
    """A model with weights: a training's end, one of its epochs, or an edit of another state."""

    @abstractmethod
    def origin(self) -> Train:
        """The training from scratch at the root of this chain."""

    @property
    @abstractmethod
    def training(self) -> Train:
        """The nearest training at or before this state: it tells data, design, row and architecture."""

    def rewind(self, start: str, fresh: bool = False) -> Rewind:
        return Rewind(self, start, fresh)

    def hold(self, until: str) -> Hold:
        return Hold(self, until)

    def score(self, criterion: Criterion | None = None) -> Score:
        return Score(self, criterion or Vulnerability())

    def rewind_weights(self, by: Score, share: float) -> RewindWeights:
        return RewindWeights(self, by, share)

    def hold_weights(self, by: Score, share: float, rest: bool = False) -> HoldWeights:
        return HoldWeights(self, by, share, rest)

    def prune(self, sparsity: float, by: Score | None = None, scope: Literal["global", "layer"] = "global") -> Prune:
        return Prune(self, sparsity, by, scope)

    def remove(self, by: Score, share: float) -> Prune:
        """Without the `share` of the weights with the largest scores (CWRF's A1)."""
        return Prune(self, share, by, largest=True)

    def train(self, schedule: Schedule, objective: Objective | None = None, teachers: tuple[State, ...] = ()) -> Train:
        """Go on from here on the same members, with a fresh optimizer and the same order seed."""
        chosen = objective or CrossEntropy()
        return dataclasses.replace(
            self.training, schedule=schedule, objective=chosen, parent=self, teachers=tuple(teachers)
        )

    def at(self, when: int | Literal["init"]) -> State:
        """The state after epoch `when` of this training, or at its initialisation."""
        if not isinstance(self, Train):
            raise BadInput(f"a {type(self).__name__} has no epochs; ask its training: chain.train(...).at(5)")
        ends = when == self.schedule.epochs and self.schedule.patience is None
        return self if ends else At(self, when)


@dataclass(frozen=True, eq=False)
class Train(State):
    """One training; its end is the last epoch, or the best on dev where the schedule has a patience.

    What is asked of the trajectory (`at`) is not part of its key.
    """

    data: Data
    design: Design
    row: int
    model: Model
    schedule: Schedule
    objective: Objective = field(default_factory=CrossEntropy)
    seed: int = 0  # of initialisation and order
    precision: Literal["fp32", "bf16"] = "fp32"
    parent: State | None = None  # where the weights come from; None: a fresh initialisation
    teachers: tuple[State, ...] = ()  # whose answers a Distillation learns

    def __post_init__(self) -> None:
        super().__post_init__()
        _readable(self.data, self.model)
        if self.schedule.augment and self.data.kind != "images":
            raise BadInput(f"only images are augmented: leave augment out with {self.data.name}")
        if bool(self.teachers) != isinstance(self.objective, Distillation):
            raise BadInput("teachers and Distillation() come together: train(schedule, Distillation(), teachers=...)")
        if any(teacher.training.data != self.data for teacher in self.teachers):
            raise BadInput("teachers need the same data as their student")
        name = type(self.objective).__name__
        if isinstance(self.objective, AdversarialRegularization | PAST) and not getattr(self.design, "reference", 0):
            raise BadInput(f"{name} needs non-members to look at: give the design reference samples")
        if isinstance(self.objective, DPSGD) and self.model.name.startswith(("resnet", "vgg")):
            raise BadInput(f"{name} needs a network without BatchNorm, unlike a {self.model.name}: take a vit")
        if self.schedule.patience is not None and not getattr(self.design, "dev", 0):
            raise BadInput("a schedule with a patience needs samples to look at: give the design a dev set")

    def origin(self) -> Train:
        return self.parent.origin() if self.parent else self

    @property
    def training(self) -> Train:
        return self


@dataclass(frozen=True, eq=False)
class At(State):
    """The state of a training after epoch `when` (from 1), or at its initialisation."""

    of: Train
    when: int | str = "init"

    def __post_init__(self) -> None:
        super().__post_init__()
        last = self.of.schedule.epochs
        if self.when != "init" and not (isinstance(self.when, int) and 1 <= self.when <= last):
            raise BadInput(f"there is no epoch {self.when!r}: ask for 'init' or 1 to {last}")

    def origin(self) -> Train:
        return self.of.origin()

    @property
    def training(self) -> Train:
        return self.of


@dataclass(frozen=True, eq=False)
class Edit(State):
    """New values for some weights, and a mask of weights that are held; computed on the fly, never stored."""

    parent: State

    def origin(self) -> Train:
        return self.parent.origin()

    @property
    def training(self) -> Train:
        return self.parent.training


@dataclass(frozen=True, eq=False)
class Rewind(Edit):
    """Stage `start` and all behind it go back to their value at the chain's initialisation (PPTP, Alg. 1)."""

    start: str
    fresh: bool = False  # the control: to an initialisation that this network has never had

    def __post_init__(self) -> None:
        super().__post_init__()
        _unpruned(self.parent)

    def parents(self) -> Iterator[Step]:
        yield self.parent
        if not self.fresh:
            yield At(self.origin(), "init")


@dataclass(frozen=True, eq=False)
class Hold(Edit):
    """All stages before `until` keep their weights and BatchNorm statistics in the training that follows."""

    until: str


@dataclass(frozen=True, eq=False)
class Score(Step):
    """What each weight is worth by a criterion, for this very model: the target its own, each shadow its own.

    Scored are the weights of convolutions, linear maps, norms and embeddings; no biases and no tokens. CWRF counts
    "all trainable scalars", but the shares of its Tab. 1 fit weights alone. In float32 whatever the training's
    precision, in evaluation mode (BatchNorm's statistics stay, no dropout: the model as it is attacked) and on plain
    samples; the paper is silent on all three.

    Result: a float32 array of the tensor's shape for each scored one, by its state-dict name; `scored/kinds`, of which
    `lib.localization.weights.kinds` makes layer types; of a Taylor score `history/ce`, `history/accuracy` (members)
    and, where reference samples are looked at, `history/kl`, `history/accuracy_reference`, each `(T,)`, before the
    update.
    """

    of: State
    criterion: Criterion = field(default_factory=Vulnerability)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.criterion, Vulnerability) and not getattr(self.of.training.design, "reference", 0):
            raise BadInput("Vulnerability needs non-members to look at: give the design reference samples")

    def parents(self) -> Iterator[Step]:
        yield self.of
        if isinstance(self.criterion, Vulnerability | Change):
            yield At(self.of.origin(), "init")

    def shuffle(self, seed: int = 0) -> Shuffled:
        return Shuffled(self.of, self.criterion, seed)


@dataclass(frozen=True, eq=False)
class Shuffled(Score):
    """The same scores, dealt out anew inside each tensor: of each layer as many weights are chosen, but others.

    The control of "these very weights": Su et al. 2020 find that of many prunings only the layers' shares matter. Each
    model deals for itself. Result: as the score's, which is computed (or looked up) first.
    """

    seed: int = 0

    def parents(self) -> Iterator[Step]:
        yield Score(self.of, self.criterion)


@dataclass(frozen=True, eq=False)
class RewindWeights(Edit):
    """The `share` of the scored weights with the largest scores go back to the chain's initialisation (CWRF, eq. 5-6).

    Exactly round(share n) of the n weights, of equal scores the first in the network. Biases and BatchNorm's statistics
    stay as they are.
    """

    by: Score
    share: float  # CWRF's rewind rate r

    def __post_init__(self) -> None:
        super().__post_init__()
        _unpruned(self.parent)
        _own(self, self.by, self.share)

    def parents(self) -> Iterator[Step]:
        yield from (self.parent, self.by, At(self.origin(), "init"))


@dataclass(frozen=True, eq=False)
class HoldWeights(Edit):
    """The `share` of the scored weights with the largest scores keep their values in the training that follows.

    With `rest` they are the only ones that change: all other weights and all biases are held. BatchNorm's statistics
    go on in either case. CWRF (A3) rewinds and holds the same weights; A2 rewinds them and holds the rest.
    """

    by: Score
    share: float
    rest: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _own(self, self.by, self.share)


@dataclass(frozen=True, eq=False)
class Prune(Edit):
    """The weights with the smallest scores, or magnitudes, become zero and are held there in the training that follows.

    Exactly round(sparsity n) of n weights, zeros that were there before counted; of equal ones the first in the
    network. By a score all scored weights compete; by magnitude (`by` None) all but those of norms. A `Learnability`
    score makes it first-order Taylor pruning, which does not depend on the state that is pruned: the initialisation
    with the survivors of the trained net is `train.at("init").prune(0.85, train.score(Learnability()))`.
    """

    sparsity: float
    by: Score | None = None
    scope: Literal["global", "layer"] = "global"  # `layer`: each tensor as sparse as all (NNI's LevelPruner)
    largest: bool = False  # those with the largest go instead: CWRF's A1

    def __post_init__(self) -> None:
        super().__post_init__()
        _own(self, self.by, self.sparsity)


def _unpruned(state: State) -> None:
    while isinstance(state, Edit):
        if isinstance(state, Prune):
            raise BadInput("a rewind would bring back what was pruned: prune the rewound state instead")
        state = state.parent


def _own(edit: Edit, by: Score | None, share: float) -> None:
    if not 0 <= share <= 1:
        raise BadInput(f"{type(edit).__name__} takes a share of the weights between 0 and 1, not {share}")
    if by and by.of.origin() != edit.origin():
        raise BadInput(f"{type(edit).__name__} goes by a score of another model: score a state of the same chain")


@dataclass(frozen=True, eq=False)
class Signals(Step):
    """A state's logits on every sample that its design uses, and scaled confidences under fixed views.

    Result: `logits (n, C)`, `views (n, A)` (view 0 is the plain image), over `Design`'s used samples in index order.
    """

    of: State
    views: int = 1  # 1: plain; 2: and mirrored; 18: mirror x 9 shifts

    def __post_init__(self) -> None:
        super().__post_init__()
        data = self.of.training.data
        if self.views != 1 and data.kind != "images":
            raise BadInput(f"{data.name} holds {data.kind}, which have one view: ask for views=1, not {self.views}")


@dataclass(frozen=True, eq=False)
class Choose(State):
    """One strength of a defence, chosen on the dev set of this very model: the target its own, each shadow its own.

    Of the candidates whose dev accuracy is within `slack` of the best one's, the one whose members are least told from
    dev samples by the confidence in the true class (`audit.choose`); list the weakest defence first. No non-member and
    no test sample is looked at. PPTP names ranges (Tab. 4) and no rule. What follows goes on from the chosen one.

    Result: `chosen ()`, its index; of each candidate `accuracy (k,)` on dev, `leak (k,)` = |AUC - 1/2|.
    """

    place: ClassVar = "host"

    candidates: tuple[State, ...]
    slack: float = 0.02  # of accuracy, absolute

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.candidates or self.slack < 0:
            raise BadInput("Choose takes one candidate or more, and a slack of 0 or more")
        # One seed too: what follows may rewind to the initialisation, which has to be that of all.
        same = {(t.data, t.design, t.row, t.model, t.seed) for c in self.candidates for t in (c.training, c.origin())}
        if len(same) > 1:
            raise BadInput("candidates differ in what is defended: give them one data set, design, row, model and seed")
        if not getattr(self.training.design, "dev", 0):
            raise BadInput("a choice needs samples to look at: give the design a dev set")

    def parents(self) -> Iterator[Step]:
        yield from (Signals(state) for state in self.candidates)

    def origin(self) -> Train:
        return self.candidates[0].origin()

    @property
    def training(self) -> Train:
        return self.candidates[0].training


@dataclass(frozen=True, eq=False)
class Distance(Step):
    """Per-sample feature distances between two states, part by part, over the pool (PPTP, section 3.2).

    Result, each `(parts, n)`: `euclidean`, `direction` (1 - cosine), `length_a`, `length_b` (norms over root d).
    """

    a: State
    b: State
    parts: Literal["stages", "blocks"] = "stages"


@dataclass(frozen=True, eq=False)
class Similarity(Step):
    """How alike two states' features are up to a rotation of channels: the control of `Distance`.

    A random half of the pool (the design's seed draws it) fits the rotations, the other half, m samples, is judged.
    Result: `aligned (parts, m)`, the distance that the best rotation leaves; `hsic (parts, blocks, 3)` and `block_seen
    (blocks,)`, of which `lib.localization.disparity.cka` makes debiased CKA; `seen_a`, `seen_b` and `index` `(m,)`.
    """

    a: State
    b: State
    parts: Literal["stages", "blocks"] = "stages"


@dataclass(frozen=True, eq=False)
class StageProbe(Step):
    """Test accuracy of a linear SVM on each stage's features (PPTP, Fig. 8)."""

    of: State
    dimensions: int = 4096  # wider features are projected at random to this many


@dataclass(frozen=True, eq=False)
class StageMembership(Step):
    """Does a stage's feature tell members? An attack on each part by one who knows a random half of the pool.

    The pool is that of the state's own row, which needs non-members too (any row of RandomHalves, an odd one of
    Halves). Result: log-odds `scores (parts, m)` of the other half, and their `member` and `index` `(m,)`.
    """

    of: State
    dimensions: int = 4096  # wider features are mixed down to this many


@dataclass(frozen=True, eq=False)
class Anatomy(Step):
    """Parameters, activations and forward FLOPs of each part of an architecture on one sample of a data set."""

    place: ClassVar = "host"

    data: Data
    model: Model

    def __post_init__(self) -> None:
        super().__post_init__()
        _readable(self.data, self.model)


def _readable(data: Data, model: Model) -> None:
    if data.kind != model.reads:
        raise BadInput(f"a {model.name} reads {model.reads}, but {data.name} holds {data.kind}: take another of them")


@dataclass(frozen=True, eq=False)
class Cost(Step):
    """Time, memory and operations of a training from where it starts (PPTP, Fig. 16), measured in a fresh process.

    The measurement belongs to the machine that made it (`meta` names the device). Time, and on a CPU the peak too,
    suffer from whatever else runs there, this plan's other jobs included: let claims rest on `flops` and `saved_bytes`,
    which are counted. Of what goes before `of` nothing is in here: a chain costs the sum over its trainings.

    Result, each `()`: `seconds` of an epoch, median after the first; `first_seconds` of that with what goes before it;
    `peak_bytes` beyond weights and data; `saved_bytes` for the backward pass of a step; `flops` of an epoch, and
    `flops_once` of what only the first one does; `epochs` that the training has.
    """

    of: Train
    epochs: int = 4  # that are measured, the first of which warms up

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.epochs, self.of.schedule.epochs) < 2:
            raise BadInput("a cost needs two epochs or more: the first only warms up")

    def parents(self) -> Iterator[Step]:
        yield from self.of.parents()  # not the training's end: it is run anew


@dataclass(frozen=True, eq=False)
class SelfAudit(Step):
    """Is the tool itself honest? Duplicates across the split, and a blind classifier on the inputs (AUC .5)."""

    revision: ClassVar[int] = 2  # the blind classifier's halves are cut within class and side
    place: ClassVar = "host"
    travels: ClassVar = False  # it needs scikit-learn

    data: Data
    design: Design
    rows: tuple[int, ...]
