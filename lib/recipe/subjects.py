"""What an experiment is about: data, design, model, objective, schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from lib import BadInput
from lib.data import registry
from lib.recipe.core import Recipe, at_least


@dataclass(frozen=True, eq=False)
class Data(Recipe):
    """A data set by name; its pinned digest enters the key."""

    name: str = "fashion-mnist-small"
    pixels: int | None = None  # side of the image after area resize; None leaves it as it is
    words: int = 10_000  # of text: the vocabulary, padding (0) and the word for unknown ones (1) included
    length: int = 64  # of text: words kept of each sample

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = registry.find(self.name).kind
        for own, owner, usual in (("pixels", "images", None), ("words", "text", 10_000), ("length", "text", 64)):
            if kind != owner and getattr(self, own) != usual:
                raise BadInput(f"{self.name} holds {kind}, not {owner}: leave {own} out")
        at_least(self, pixels=1, words=3, length=1)
        if self.pixels and self.pixels > registry.find(self.name).shape[0]:
            side = registry.find(self.name).shape[0]
            raise BadInput(f"Data.pixels cannot be {self.pixels}: images of {self.name} can be reduced to 1 to {side}")

    @property
    def kind(self) -> Literal["images", "bits", "text"]:
        return registry.find(self.name).kind

    @property
    def classes(self) -> int:
        return len(registry.find(self.name).classes)

    @property
    def channels(self) -> int:
        """Channels of an image, bits of a sample, words of the vocabulary."""
        return self.words if self.kind == "text" else registry.find(self.name).shape[-1]

    @property
    def size(self) -> int:
        """Side of an image in pixels, words of a text; bits have one place."""
        if self.kind == "text":
            return self.length
        return (self.pixels or registry.find(self.name).shape[0]) if self.kind == "images" else 1

    def record(self) -> dict[str, Any]:
        return super().record() | {"name": self.name, "digest": registry.find(self.name).digest}


@dataclass(frozen=True, eq=False)
class Design(Recipe):
    """Who plays which role: one row a model. Row i never depends on how many rows are asked for.

    The pool is a class-balanced draw from the data set's train part; test samples come from its test part and are
    never trained on by any row.
    """

    pool: int = 1000  # samples from which members are drawn
    test: int | None = None  # held-out samples (accuracy, and RMIA's population); None: the whole test part
    seed: int = 0

    def members(self, row: int) -> int:
        """How many samples row `row` trains on."""
        return self.pool // 2


@dataclass(frozen=True, eq=False)
class Halves(Design):
    """PPTP, section 3.2. Row 2p trains on the whole pool (M_all), row 2p+1 on its half number p (M_h1)."""

    def members(self, row: int) -> int:
        return self.pool // (1 + row % 2)


@dataclass(frozen=True, eq=False)
class RandomHalves(Design):
    """Random halves drawn as complement pairs: rows 2p and 2p+1 share no member and together hold the pool.

    Every even prefix is exactly balanced, so the shadows of a target whose pair leaves are balanced too.
    """

    dev: int = 0  # samples outside the pool on which strengths are chosen
    reference: int = 0  # samples outside the pool that a defence may see and no row trains on


@dataclass(frozen=True, eq=False)
class VictimAttacker(Design):
    """SAMIA's disjoint halves. Row 0 is the victim's split of the one, the others re-split the other."""

    dev: float = 0.1  # share of a half on which early stopping looks; the rest is half member, half non-member

    def members(self, row: int) -> int:
        return int(self.pool * (1 - self.dev) / 4)


@dataclass(frozen=True, eq=False)
class LeftOut(Design):
    """SELENA's Split-AI (Tang et al. 2022): K sub-models for each row of a design, each without some of its members.

    Each member of row r is left out by exactly `leave_out` of the `models` sub-models, drawn anew for each member and
    each row. Row `models * r + k` is sub-model k of row r; what it leaves out is a non-member to it.
    """

    pool: int = field(init=False)  # these three are the base's
    test: int | None = field(init=False)
    seed: int = field(init=False)
    base: Design
    models: int = 25  # K; the SELENA and PPTP papers'
    leave_out: int = 10  # L; SELENA's for all data sets, PPTP searches 3 to 10

    def __post_init__(self) -> None:
        for name in ("pool", "test", "seed"):
            object.__setattr__(self, name, getattr(self.base, name))
        super().__post_init__()
        if not 1 <= self.leave_out < self.models:
            raise BadInput(
                f"of {self.models} sub-models 1 to {self.models - 1} leave a sample out, not {self.leave_out}"
            )

    def record(self) -> dict[str, Any]:
        return {name: value for name, value in super().record().items() if name not in ("pool", "test", "seed")}

    @property
    def dev(self) -> int | float:
        return getattr(self.base, "dev", 0)

    @property
    def reference(self) -> int:
        return getattr(self.base, "reference", 0)

    def members(self, row: int) -> int:
        """In expectation: sub-models differ by what the draw leaves out."""
        return self.base.members(row // self.models) * (self.models - self.leave_out) // self.models


@dataclass(frozen=True, eq=False)
class Model(Recipe):
    """An architecture at a width; the papers' nets are the defaults at width 64."""

    name: Literal[
        "resnet10", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
        "vgg11", "vgg13", "vgg16", "vgg19",
        "atm-xt", "atm-t", "atm-s", "atm-b",
        "vit", "transformer",
    ] = "resnet18"  # fmt: skip  # VGG with BatchNorm; ATM: Active Token Mixer; transformer: reads text
    width: int = 64  # channels of stage 1; of a ViT, of each of its 8 heads
    stem: Literal["conv3", "conv3-pool"] = "conv3"  # ResNet: 3x3 convolution, without or with a 3x3/2 max-pool
    stage4_stride: int = 2  # ResNet; 1, 2, 4: the stage-4 map is as wide as stage 3's, half, a quarter
    stage4_channels: int | None = None  # output channels of stage 4; None: eight (bottlenecks: 32) times the width
    stage3_channels: int | None = None  # output channels of stage 3; None: four (16; ATM: five) times
    patch: int = 4  # ViT: side of its patches, pixels; ATM, 1, 2, 4: stride of the 7x7 patch embedding

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, width=1, stage4_stride=1, stage4_channels=1, stage3_channels=1, patch=1)
        staged = ("resnet", "vgg", "atm")
        for own, families, usual in (
            ("stem", ("resnet",), "conv3"),
            ("stage4_stride", ("resnet",), 2),
            ("stage4_channels", staged, None),
            ("stage3_channels", staged, None),
            ("patch", ("atm", "vit"), 4),
        ):
            if not self.name.startswith(families) and getattr(self, own) != usual:
                owners = " and ".join(families)
                raise BadInput(f"{own} belongs to the {owners} architectures: leave it out of a {self.name}")

    @property
    def reads(self) -> Literal["images", "text"]:
        """The kind of data that the architecture takes."""
        return "text" if self.name == "transformer" else "images"


@dataclass(frozen=True, eq=False)
class Objective(Recipe):
    """What a training minimizes."""

    @property
    def looks(self) -> int:
        """Samples that the network is only asked about for each one that it learns from."""
        return 0

    @property
    def batches(self) -> int | None:
        """Batches of an epoch that the network learns from; None: as many as cover the members."""
        return None


@dataclass(frozen=True, eq=False)
class CrossEntropy(Objective):
    smoothing: float = 0.0  # label smoothing


@dataclass(frozen=True, eq=False)
class RelaxLoss(Objective):
    """Chen et al. 2022. `paper`: posterior flattening with a fixed soft label; `code`: the official CIFAR code."""

    alpha: float = 1.0  # target loss, nats
    upper: float = 1.0  # cap of the soft label's true class
    form: Literal["paper", "code"] = "paper"


@dataclass(frozen=True, eq=False)
class HAMP(Objective):
    """The training part of HAMP (Chen & Pattabiraman 2024): KL(soft label || output) - weight * entropy of the output.

    The soft label of a sample has an entropy of `entropy` * ln C: p on its class, the rest shared out evenly. `paper`:
    the divergence is summed over classes; `code`: averaged over them, as the published code's `kl_div` does by its
    default, so that its divergence is C times smaller: a `weight` of the code is one of C times as much here.
    """

    entropy: float = 0.95  # gamma, share of ln C; published: .95 CIFAR-10, .5 CIFAR-100, .8 Purchase, .6 Texas
    weight: float = 0.01  # alpha; published, times C: .01 CIFAR-10, .5 CIFAR-100, 1 Purchase and Texas
    form: Literal["paper", "code"] = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.entropy <= 1:
            raise BadInput(f"HAMP.entropy is a share of the largest entropy, 0 to 1, not {self.entropy}")


@dataclass(frozen=True, eq=False)
class CCL(Objective):
    """The convex-concave loss (Liu et al. 2024): beta * (alpha * cross-entropy - (1 - alpha) * g(p)).

    p is the probability of the true class; g is e^p (`exponential`) or p + p^2 / 2 (`quadratic`). `beta` is a factor
    of the whole loss: under Adam it changes nothing but how much weight decay (and Adam's epsilon) weigh against it,
    which a beta of .05 makes twenty times as strong.
    """

    alpha: float = 0.5  # the published example's, as is beta; 1 leaves cross-entropy
    beta: float = 0.05
    form: Literal["exponential", "quadratic"] = "exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.alpha <= 1:
            raise BadInput(f"CCL.alpha mixes two terms: give 0 to 1, not {self.alpha}")


@dataclass(frozen=True, eq=False)
class AdversarialRegularization(Objective):
    """Nasr, Shokri & Houmansadr 2018: cross-entropy + alpha * (mean h on members - 1/2), against an attack net h.

    h (posterior, label) is trained beside the classifier to tell members from the design's `reference` samples.
    `epoch`: one classifier step for each batch of members; `one_step`: the published pruning code's (mia_prune, WeMem),
    whose epoch is `steps` attack steps and a single classifier step.
    """

    alpha: float = 3.0  # weight of the gain; SELENA's code: 3 Purchase, 2 Texas, 6 CIFAR-100; PPTP searches 1 to 5
    steps: int = 3  # attack steps before each classifier step; PPTP, Table 4
    form: Literal["epoch", "one_step"] = "epoch"
    width: int = 1024  # units of h's first layer, in all codes; the others keep their share of it
    attack_lr: float = 1e-3  # Adam's, of h; SELENA's code: 1e-3 Texas, 1e-4 Purchase and CIFAR-100 with far more steps

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps < 1 or self.width < 16:
            raise BadInput(f"h takes at least one step and 16 units, not {self.steps} and {self.width}")

    @property
    def looks(self) -> int:
        return 2 * self.steps

    @property
    def batches(self) -> int | None:
        return 1 if self.form == "one_step" else None


@dataclass(frozen=True, eq=False)
class CSKD(Objective):
    """Class-wise self-distillation (Yun et al. 2020): cross-entropy + weight * T^2 * KL(teacher || student).

    The teacher is the same network on another member of the same class, without a gradient.
    """

    temperature: float = 4.0  # T; the official code's
    weight: float = 1.0  # the official code's; 3 for fine-grained images

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature <= 0:
            raise BadInput(f"CSKD.temperature cannot be {self.temperature}: give a positive one")

    @property
    def looks(self) -> int:
        return 1


@dataclass(frozen=True, eq=False)
class PAST(Objective):
    """Privacy-aware sparsity tuning (Hu, Zhang & Wei 2024): cross-entropy + weight * sum of gamma_i |theta_i|.

    gamma is a weight's privacy sensitivity: the gradient's size of the gap between the losses of members and of the
    design's `reference` samples. The paper tunes a trained network: `population.train(schedule, PAST())`. There is no
    published code; `lib.training.defences.Sparsity` says what is inferred here. In a training a weight of sensitivity 1
    shrinks by the learning rates' sum over all steps, times `weight`.
    """

    weight: float = 1e-3  # lambda; not known: search 1e-4 to 1e-1 with Adam at 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weight < 0:
            raise BadInput(f"PAST.weight cannot be {self.weight}: a penalty is 0 or more")

    @property
    def looks(self) -> int:
        return 1


@dataclass(frozen=True, eq=False)
class DPSGD(Objective):
    """Differentially private training (Abadi et al. 2016): cross-entropy, each sample's gradient clipped, noise added.

    Batches are Poisson samples of the members: each member is in each with probability 1 / (steps of an epoch). The
    optimizer is the schedule's, Adam too. Needs a network without BatchNorm. `history/epsilon` tells what is spent by
    the end of each epoch; it is NaN where the training goes on from another one, whose weights, scores and masks know
    the members: inside CWRF or PPTP there is no guarantee. Noise and batches come from the recipe's seed, as they have
    to in a reproduction; who wants to be protected draws them in secret.
    """

    noise: float = 1.0  # noise multiplier sigma: deviation over `clip`; not in the paper, .5 to 1 is usual
    clip: float = 1.0  # largest norm of a sample's gradient; not in the paper
    delta: float = 1e-5  # of (epsilon, delta); not in the paper

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise < 0 or self.clip <= 0 or not 0 < self.delta < 1:
            raise BadInput(
                f"DPSGD takes noise from 0, a positive clip and a delta between 0 and 1, "
                f"not {self.noise}, {self.clip} and {self.delta}"
            )


@dataclass(frozen=True, eq=False)
class Distillation(Objective):
    """SELENA's second part: cross-entropy with the mean softmax of those teachers that did not train on the sample."""


@dataclass(frozen=True, eq=False)
class Augment(Recipe):
    """Random crop after zero padding, random horizontal flip."""

    crop: int = 4  # padding, pixels
    flip: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, crop=0)


@dataclass(frozen=True, eq=False)
class Schedule(Recipe):
    """Epochs, optimizer and learning rate."""

    epochs: int = 100
    batch: int = 128
    optimizer: Literal["sgd", "adam"] = "sgd"
    lr: float = 0.1
    momentum: float = 0.9  # of SGD
    nesterov: bool = False
    weight_decay: float = 5e-4  # added to the gradient (L2), under Adam too
    decay: Literal["constant", "cosine", "steps"] = "cosine"  # by the epoch
    milestones: tuple[int, ...] = ()  # epochs at which `steps` multiplies the rate by `factor`
    factor: float = 0.1
    warmup: int = 0  # first epochs at `factor` times the rate
    augment: Augment | None = None
    patience: int | None = None  # stop after more than this many epochs without a better dev accuracy; keep the best

    def __post_init__(self) -> None:
        super().__post_init__()
        least = {name: 0.0 for name in ("lr", "momentum", "weight_decay", "factor", "warmup", "patience")}
        at_least(self, epochs=1, batch=2, **least)
        if self.momentum >= 1:
            raise BadInput(f"Schedule.momentum lies below 1, unlike {self.momentum}")
        if any(epoch < 1 for epoch in self.milestones):
            raise BadInput(f"Schedule.milestones are epochs from 1 on, not {list(self.milestones)}")
