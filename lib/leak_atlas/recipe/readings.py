"""What is read off models, architectures and designs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from leak_atlas import BadInput
from leak_atlas.recipe.core import Count, Positive, Step, Whole
from leak_atlas.recipe.designs import Design
from leak_atlas.recipe.steps import Signals, State, Train, check_has_nonmembers, check_reads
from leak_atlas.recipe.subjects import Architecture, Data

__all__ = [
    "Anatomy",
    "Cost",
    "Distance",
    "Generated",
    "GradientNorm",
    "Memorization",
    "PredictionDepth",
    "SelfAudit",
    "Sensitivity",
    "ShuffledRanking",
    "Similarity",
    "Sparsity",
    "StageMembership",
    "StageProbe",
]


JUDGED = 10  # members, and non-members, that a blind classifier needs

Parts = Literal["stages", "blocks"]  # of a network


class Compared(Step):
    """What is read off two states part by part, over the pool."""

    revision: ClassVar = 2  # whether b trained on a sample is looked up by the sample's index

    a: State
    b: State
    parts: Parts = "stages"

    def verify(self) -> None:
        if self.a.training.data != self.b.training.data:
            raise BadInput(
                f"{type(self).__name__} compares two networks on the same data: give both the same"
            )

    def operations(self, count: Count) -> float:
        return _walk(self.a, count) * 2


class Distance(Compared):
    """Per-sample feature distances between two states, part by part, over the pool (PPTP, section
    3.2).

    Result, each `(parts, n)`: `euclidean`, `direction` (1 - cosine), `length_a`, `length_b` (norms
    over root d); each `(n,)`: `seen_a`, `seen_b`, `index`; `parts`, their names.
    """


class Similarity(Compared):
    """How alike two states' features are up to a rotation of channels: the control of `Distance`.

    A random half of a's members (the design's seed draws it) fits the rotations; the other half, m
    samples, is judged. Result: `aligned (parts, m)`, the distance that the best rotation leaves;
    `seen_a`, `seen_b` and `index` `(m,)`.
    """


class StageProbe(Step):
    """Test accuracy of a linear SVM on each stage's features (PPTP, Fig. 8)."""

    of: State
    dimensions: int = 4096  # wider features are projected at random to this many

    def verify(self) -> None:
        if not self.of.tests:
            raise BadInput("StageProbe is judged on test samples: give the design some")

    def operations(self, count: Count) -> float:
        """To fit the machines of all stages, as measured: half a millisecond a sample, two at 4,096
        dimensions.
        """
        return (1.5e7 + 1.3e4 * self.dimensions) * self.of.members


class StageMembership(Step):
    """Do a stage's features show who is a member? An attack on each part by an attacker who knows a
    random half of the pool.

    The pool is that of the state's own row, which needs non-members too (any row of RandomHalves,
    an odd one of Halves). Result: log-odds `scores (parts, m)` of the other half, and their
    `member` and `index` `(m,)`.
    """

    of: State
    dimensions: int = 4096  # wider features are check_has_nonmembers down to this many

    def verify(self) -> None:
        check_has_nonmembers(self.of, "StageMembership")

    def operations(self, count: Count) -> float:
        # to fit and ask the attacks, as measured
        return _walk(self.of, count) + 9e6 * self.of.training.design.pool


class Anatomy(Step):
    """Parameters, activations and forward FLOPs of each part of an architecture on one sample of a
    data set.
    """

    place: ClassVar = "host"

    data: Data
    model: Architecture

    def verify(self) -> None:
        check_reads(self.data, self.model)


class Cost(Step):
    """Operations and memory of trainings from where they start (PPTP, Fig. 16), counted in two
    epochs of each.

    Of what goes before a training nothing is in here: a chain costs the sum over its trainings.
    Result, each `(k,)`: `saved_bytes` for the backward pass of a step; `flops` of an epoch, and
    `flops_once` of what only the first one does; `epochs` it has.
    """

    revision: ClassVar = 3

    of: tuple[Train, ...]
    # These two have no effect: an older version measured times in so many rounds of so many epochs.
    # They stay because keys of stored results hold them.
    rounds: Positive = 5
    epochs: int = 4

    def verify(self) -> None:
        fewest = min((one.schedule.epochs for one in self.of), default=0)
        if fewest < 2:
            raise BadInput("Cost takes one training or more, of two epochs or more")

    def parents(self) -> Iterator[Step]:
        for one in self.of:
            yield from one.parents()  # not the training's end: it is run anew

    def operations(self, count: Count) -> float:
        return sum(2 * one.operations(count) / one.schedule.epochs for one in self.of)


class SelfAudit(Step):
    """Is the tool itself honest? Duplicates across the split, and a blind classifier on the inputs
    (AUC .5).
    """

    revision: ClassVar[int] = 2  # the blind classifier's halves are cut within class and side
    place: ClassVar = "host"

    data: Data
    design: Design
    rows: tuple[int, ...]

    def verify(self) -> None:
        judged = getattr(self.design, "judged", self.design.pool)
        for row in self.rows:
            members = self.design.members(row)
            sides = members, judged - members
            if sides[1] <= 0:  # the row trains on the whole pool
                continue
            if min(sides) < JUDGED:
                raise BadInput(
                    f"{sides[0]} members and {sides[1]} non-members are too few to check the "
                    f"design: take a pool with {JUDGED} or more of each"
                )
            return  # the first row with both sides is judged


class Memorization(Step):
    """How much a sample's own presence in training improves its prediction (Feldman & Zhang 2020,
    eq. 1, estimated).

    Mean over the models that trained on the sample minus mean over those that did not, of being
    right (`accuracy`) or of the probability of the true class (`confidence`, which resolves more
    with few models). All models share one pool.

    Result over the pool's samples: `score (n,)`, its standard error `error (n,)` (infinite with one
    model on a side), `outside (n,)`, the mean over those that did not train on it (how easy it is),
    `index (n,)`. A sample that all models trained on, or none, takes the medians of the others.
    """

    revision: ClassVar = 2  # `outside`

    place: ClassVar = "host"

    models: tuple[State, ...]
    measure: Literal["accuracy", "confidence"] = "accuracy"

    def verify(self) -> None:
        if not self.models:
            raise BadInput("Memorization needs networks")
        if len({(model.training.data, model.training.design) for model in self.models}) != 1:
            raise BadInput(
                "Memorization compares models of one pool: give a population of one data set and "
                "design"
            )

    def parents(self) -> Iterator[Step]:
        yield from (Signals(model) for model in self.models)

    def shuffle(self, seed: int = 0) -> ShuffledRanking:
        return ShuffledRanking(self, seed)


class ShuffledRanking(Step):
    """The same scores, permuted among the samples: the control of everything that goes by a
    ranking.
    """

    place: ClassVar = "host"

    of: Memorization
    seed: int = 0


class Sensitivity(Step):
    """How much noise on its input moves a state's posterior: SAMIA's PS(x) = mean |f(x + eps d) -
    f(x)| / eps.

    Over `queries` draws d ~ N(0, I), which a sample has in common to all states, and only for the
    samples on which the state's own row is attacked: the other half of a VictimAttacker's pool is
    left out. The paper tells the number of queries, its code eps and that the noise is added to the
    normalised input.

    Result: `sensitivity (n, C)`, and of these n samples `labels`, `role` and `index`, ascending.
    """

    of: State
    queries: Positive = 10
    eps: float = 1e-3
    seed: Whole = 0

    def verify(self) -> None:
        if not self.eps > 0:
            raise BadInput(f"Sensitivity.eps cannot be {self.eps}: give a positive one")
        if self.of.training.data.kind == "text":
            raise BadInput(
                "Sensitivity adds noise to numbers, and a text holds words: take images, bits or "
                "numbers"
            )

    def operations(self, count: Count) -> float:
        """A number of noise costs 7 ns, a sample's generator 45 microseconds, as measured."""
        own = self.of.training
        samples = min(own.design.pool, 2 * self.of.members)
        noise = 1.6e6 + 250.0 * self.queries * own.data.channels * own.data.size**2
        return samples * ((1 + self.queries) * self.of.forward(count) + noise)


class Sparsity(Step):
    """What is pruned, tensor by tensor: weights of convolutions, linear maps (embeddings too) and
    norms, no biases.

    Result: `names` (text) and `kinds` (text: conv, linear, norm) of the L tensors; `weights (L,)`
    and how many of them are pruned, `gone (L,)`; `filters (L,)` and how many of them are pruned
    wholly, `filters_gone (L,)`, both 0 where there are none. The pruned share of all these weights,
    `network ()`.
    """

    place: ClassVar = "host"

    of: State


class Generated(Step):
    """What a state answers to inputs that nobody trained on: BlindMI's non-members, which an
    attacker makes itself.

    They stand for `count` random samples of the row's own pool, whose labels they keep: images are
    those samples behind a Sobel filter, as published; bits are coins and numbers normal, as a
    filter would make no sense of them.

    Result: `generated (count, C)`, their logits, and `generated_labels (count,)`.
    """

    of: State
    count: Positive = 20
    seed: Whole = 0

    def verify(self) -> None:
        if self.of.training.data.kind == "text":
            raise BadInput(
                "Generated makes images, bits or numbers, and no words: take another data set or "
                "attack"
            )

    def operations(self, count: Count) -> float:
        return self.of.forward(count) * self.count


class GradientNorm(Step):
    """GraNd: how far a sample would move the weights, the norm of its cross-entropy's gradient
    (Paul et al. 2021).

    Of each plain sample of the pool alone, by all trainable parameters, biases and norms included,
    in float32 whatever the training's precision and in evaluation mode, where no other samples
    enter. The paper takes the mean over initialisations, at an early epoch: this is one network's,
    so average those of several.

    Result: `norm (n,)`, `index (n,)`.
    """

    of: State

    def operations(self, count: Count) -> float:
        """A sample's gradient takes as long as 5 to 22 samples' forward passes, as measured."""
        return 16 * _walk(self.of, count)


class PredictionDepth(Step):
    """After which part a sample's prediction no longer changes (Baldock et al. 2021, section 2).

    At each part (stem, stages, head) the nearest members in feature space vote with their labels; a
    sample has no vote of its own, and of equally many votes the nearer ones count. Its depth is the
    first part from which on all votes are what the network predicts, counted from 0; the number of
    parts where the last vote is another one. The paper looks after each layer and at the input too.
    Where it is silent: distances are Euclidean, maps of images are averaged over at most 4 x 4
    places, those of tokens over all; the head's features are its logits.

    Result: `depth (n,)`, `votes (parts, n)` (classes), `parts` (text), `index (n,)`.
    """

    of: State
    neighbours: Positive = 30

    def verify(self) -> None:
        members = self.of.members
        if self.neighbours >= members:
            raise BadInput(
                f"PredictionDepth.neighbours cannot be {self.neighbours}: a row has {members} "
                "members"
            )

    def operations(self, count: Count) -> float:
        """A quarter of a microsecond a pair of samples, all parts together, as measured."""
        return _walk(self.of, count) + 8e3 * self.of.training.design.pool * self.of.members


def _walk(state: State, count: Count) -> float:
    """Operations of a forward pass of the whole pool."""
    return state.forward(count) * state.training.design.pool
