"""What a training minimizes: cross-entropy and the defences."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from leak_atlas.recipe.core import Amount, Count, Positive, Recipe, Share, Within

if TYPE_CHECKING:
    from leak_atlas.recipe.steps import Train

__all__ = [
    "CCL",
    "CSKD",
    "DPSGD",
    "HAMP",
    "PAST",
    "PPB",
    "RMR",
    "AdversarialRegularization",
    "CrossEntropy",
    "Distillation",
    "Objective",
    "RelaxLoss",
]


# Operations, for each weight and sample, to store a sample's gradient, take its norm and sum it.
# Measured on one core: 120 to 370 for ViTs of 40,000 to 2.4 million weights, limited by memory.
PRIVATE = 250.0

# Time of an operation in wide linear layers, divided by that in small convolutions. Measured on one
# core.
LINEAR = 1 / 3


class Objective(Recipe):
    """What a training minimizes. A kind says here what it needs and costs; `leak_atlas.training`
    has its loss or its step.
    """

    # samples of the design, other than members, that it uses: "reference"
    needs: ClassVar[tuple[str, ...]] = ()
    taught: ClassVar[bool] = False  # whether it learns from teachers
    ranked: ClassVar[bool] = False  # whether it goes by a ranking of the members
    # whether it needs a network in which samples do not share statistics
    by_sample: ClassVar[bool] = False
    # samples that the network is only asked about for each one that it learns from
    further_samples: ClassVar[int] = 0
    # of an epoch that the network learns from; None: what covers the members
    batches: ClassVar[int | None] = None

    @property
    def passes(self) -> float:
        """Passes through the network, each the cost of a forward one, for a sample that it learns
        from.
        """
        return (
            3.0 + self.further_samples
        )  # forward and backward; forward alone for what is looked at

    def extra_operations(self, step: Train, count: Count) -> float:
        """Operations for a sample that it learns from, in addition to the passes through the
        network.
        """
        return 0.0


class CrossEntropy(Objective):
    """The mean cross-entropy."""


class RelaxLoss(Objective):
    """Chen et al. 2022: posterior flattening with a fixed soft label, as in the paper."""

    alpha: float = 1.0  # target loss, nats


class HAMP(Objective):
    """The training part of HAMP (Chen & Pattabiraman 2024): KL(soft label || output) - weight *
    entropy of the output.

    The soft label of a sample has an entropy of `entropy` * ln C: p on its class, the rest shared
    out evenly. The divergence is summed over classes. The published code averages it over them: a
    `weight` of the code is one of C times as much here.
    """

    # gamma, share of ln C; published: .95 CIFAR-10, .5 CIFAR-100, .8 Purchase, .6 Texas
    entropy: Share = 0.95
    # alpha; published, times C: .01 CIFAR-10, .5 CIFAR-100, 1 Purchase and Texas
    weight: float = 0.01


class CCL(Objective):
    """The convex-concave loss (Liu et al. 2024): beta * (alpha * cross-entropy - (1 - alpha) *
    e^p).

    p is the probability of the true class. `beta` is a factor of the whole loss: under Adam it
    changes only how much weight decay (and Adam's epsilon) weigh against it, which a beta of .05
    makes twenty times as strong.
    """

    alpha: Share = 0.5  # the published example's, as is beta; 1 leaves cross-entropy
    beta: float = 0.05


class PPB(Objective):
    """Pair-based posterior balancing (Yuan & Zhang 2022, 6.2): cross-entropy + weight * KL of
    ranked posteriors.

    Each batch is cut in two halves, whose samples are paired in their order, which is random; a
    left-over sample is in no pair. The divergence is that of the second one's posterior, sorted,
    from the first one's, with a gradient through both. It is the mean over the pairs, as the
    published code has it; eq. 6 writes two sums, over samples and over pairs, by which a pair would
    weigh half as much. The paper defends the fine-tuning after a pruning alone.
    """

    weight: Amount = 4.0  # lambda; the code's default; the paper searches 1, 2, 4, 8, 16


class AdversarialRegularization(Objective):
    """Nasr, Shokri & Houmansadr 2018: cross-entropy + alpha * (mean h on members - 1/2), against an
    attack net h.

    h (posterior, label) is trained beside the classifier to tell members from the design's
    `reference` samples. `epoch`: one classifier step for each batch of members; `one_step`: the
    published pruning code's (mia_prune, WeMem), whose epoch is `steps` attack steps, 7 there, and a
    single classifier step. That code has other losses, another h, and weight decay on it, which are
    not taken over; its non-members are the `dev` samples.
    """

    # weight of the gain; SELENA's code: 3 Purchase, 2 Texas, 6 CIFAR-100; PPTP searches 1 to 5
    alpha: float = 3.0
    steps: Positive = 3  # attack steps before each classifier step; PPTP, Table 4
    form: Literal["epoch", "one_step"] = "epoch"
    width: Annotated[int, Within(16)] = (
        1024  # units of h's first layer, in all codes; the others keep their share of it
    )
    # Adam's, of h; SELENA's code: 1e-3 Texas, 1e-4 Purchase and CIFAR-100 with far more steps
    attack_lr: float = 1e-3
    # the design's samples that h is shown as non-members
    outsiders: Literal["reference", "dev"] = "reference"

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.outsiders,)

    @property
    def further_samples(self) -> int:  # type: ignore[override]
        return 2 * self.steps

    @property
    def batches(self) -> int | None:  # type: ignore[override]
        return None if self.form == "epoch" else 1

    def units(self, classes: int) -> tuple[tuple[int, ...], ...]:
        """Units of h's layers that read the posterior, that read the label, and that judge both."""
        part = self.width // 16
        posterior = classes, self.width, self.width // 2, part
        label = classes, self.width // 8, part
        both = 2 * part, self.width // 2, self.width // 4, self.width // 8, part
        return posterior, label, both

    def extra_operations(self, step: Train, count: Count) -> float:
        layers = [pair for units in self.units(step.data.classes) for pair in pairwise(units)]
        weights = sum(inputs * outputs for inputs, outputs in layers)
        # Forward and backward of h on further samples; forward, and backward to its inputs, on the
        # members that the network learns from.
        return (6 * self.further_samples + 4) * weights * LINEAR


class RMR(Objective):
    """Risky memory regularization (Shang et al., NDSS 2025): cross-entropy + lambda(x) / 2 *
    ||theta||^2.

    lambda is `risky` of the members with the highest memorization scores, `general` of the others;
    a batch has the mean of its members'. It replaces the schedule's weight decay. `code`: an epoch
    has first all batches of risky members, by an Adam of its own with the weight decay `risky`,
    then all others by a second one with `general`; a single member on a side goes with the others.
    With a `Window` it is SWMR.
    """

    ranked: ClassVar = True
    # of the code's form: an epoch of risky members alone has their weight decay
    revision: ClassVar = 2

    risky: Amount = 0.1  # lambda_r; the best of .01, .1, 1
    general: Amount = 5e-4  # lambda_g
    # of the members that is risky: those of the published scores from tau = .5 on (CIFAR-10,
    # ResNet18)
    share: Share = 0.176
    form: Literal["paper", "code"] = "paper"


class CSKD(Objective):
    """Class-wise self-distillation (Yun et al. 2020): cross-entropy + weight * T^2 * KL(teacher ||
    student).

    The teacher is the same network on another member of the same class, without a gradient.
    """

    further_samples: ClassVar = 1

    temperature: Annotated[float, Within(1e-9)] = 4.0  # T; the official code's
    weight: float = 1.0  # the official code's; 3 for fine-grained images


class PAST(Objective):
    """Privacy-aware sparsity tuning (Hu, Zhang & Wei 2024): cross-entropy + weight * sum of gamma_i
    |theta_i|.

    gamma is a weight's privacy sensitivity: the gradient's size of the gap between the losses of
    members and of the design's `reference` samples. The paper tunes a trained network:
    `population.train(schedule, PAST())`. There is no published code;
    `leak_atlas.training.defences.SparsityTuning` says what is inferred here. In a training a weight
    of sensitivity 1 shrinks by the learning rates' sum over all steps, times `weight`.
    """

    needs: ClassVar = ("reference",)
    further_samples: ClassVar = 1

    weight: Amount = 1e-3  # lambda; not known: search 1e-4 to 1e-1 with Adam at 1e-3

    @property
    def passes(self) -> float:
        return 6.0  # backward for what is looked at, too


class DPSGD(Objective):
    """Differentially private training (Abadi et al. 2016): cross-entropy, each sample's gradient
    clipped, noise added.

    Batches are Poisson samples of the members: each member is in each with probability 1 / (steps
    of an epoch). The optimizer is the schedule's, Adam too. Needs a network without BatchNorm.
    `history/epsilon` tells what is spent by the end of each epoch; it is NaN where the training
    goes on from another one, whose weights, scores and masks know the members: inside CWRF or PPTP
    there is no guarantee. Noise and batches come from the recipe's seed, as they have to in a
    reproduction; who wants to be protected draws them in secret.
    """

    by_sample: ClassVar = True

    # noise multiplier sigma: deviation over `clip`; not in the paper, .5 to 1 is usual
    noise: Amount = 1.0
    # largest norm of a sample's gradient; not in the paper
    clip: Annotated[float, Within(1e-12)] = 1.0
    # of (epsilon, delta); not in the paper
    delta: Annotated[float, Within(1e-300, 1 - 1e-12)] = 1e-5

    def extra_operations(self, step: Train, count: Count) -> float:
        """The weights' gradients are made twice: summed, and sample by sample."""
        network = step.data, step.model, step.frozen_until
        return count("flops", *network) + PRIVATE * count("parameters", *network)


class Distillation(Objective):
    """SELENA's second part: cross-entropy with the mean softmax of those teachers that did not
    train on the sample.
    """

    taught: ClassVar = True
