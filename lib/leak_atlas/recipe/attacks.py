"""How membership is inferred from signals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from leak_atlas import BadInput
from leak_atlas.recipe.core import (
    Amount,
    Count,
    Place,
    Positive,
    Recipe,
    Share,
    Step,
    Whole,
    Within,
)
from leak_atlas.recipe.readings import Generated, Sensitivity
from leak_atlas.recipe.steps import Signals, State, check_has_nonmembers

__all__ = [
    "BASE",
    "PRUNING_NET",
    "RMIA",
    "SAMIA",
    "Attack",
    "Attacker",
    "BlindMI",
    "Learner",
    "Learnt",
    "LiRA",
    "Network",
    "Threshold",
]


class Attacker(Recipe):
    """An attack: a way to score samples from what networks output. Larger scores mean "more likely
    a member".

    A subclass says here which results it reads and which shadow models it needs. Its function is
    registered with `leak_atlas.attacks.case.infer`.
    """

    uses_shadows: ClassVar[bool] = True
    by_sample: ClassVar[bool] = True  # compares a sample with itself on the shadow models
    needs_population: ClassVar[bool] = False  # test or dev samples, on which nobody trained
    is_trained: ClassVar[bool] = False  # on shadow models, once for all targets (`Learnt`)
    place: ClassVar[Place] = "host"  # where it is trained
    needs_in_models: ClassVar[bool] = False  # shadow models that trained on the target's samples
    # variance of the mean AUC over targets that are each other's shadow models, divided by that over
    # independent targets; at most
    max_design_effect: ClassVar[float] = 1.0

    def shadows_needed(self, in_models: bool) -> int:
        """The least number of shadow models. `in_models`: half of them trained on a given sample
        (`Design.has_in_models`), otherwise none did.
        """
        return 1

    def required_steps(self, state: State) -> tuple[Step, ...]:
        """The steps whose results the attack reads of a target or shadow model."""
        return (Signals(state, getattr(self, "views", 1)),)

    def operations(self, count: Count, samples: float, classes: int) -> float:
        """The cost of training the attack on so many samples."""
        return 0.0


class Threshold(Attacker):
    """The threshold attacks of Song & Mittal, and Yeom's gap attack (`correctness`). Thresholds are
    chosen on the shadow models.

    What the pruning papers print: "Conf" is `confidence`, the true class' posterior, "Mentr" is
    `modified_entropy`, and "Xent" is `entropy`, the prediction's. "Top1-Conf" is in their text the
    largest posterior, `top1`; their code has `Threshold("confidence", by_class=False)` under that
    name.
    """

    by_sample: ClassVar = False

    signal: Literal["correctness", "confidence", "loss", "entropy", "modified_entropy", "top1"] = (
        "confidence"
    )
    by_class: bool = True
    # `shadows`: they say whether members have the larger loss
    sign: Literal["fixed", "shadows"] = "fixed"


class LiRA(Attacker):
    """Carlini et al. 2022. The paper's offline test is one-sided (`offline_cdf`), its code's
    two-sided (`offline_pdf`); the code's fixed variance is `code`, and its centre the median."""

    mode: Literal["online", "offline_cdf", "offline_pdf"] = "online"
    variance: Literal["pooled", "per_sample", "code"] = "pooled"
    centre: Literal["mean", "median"] = "mean"
    views: int = 1

    @property
    def needs_in_models(self) -> bool:  # type: ignore[override]
        return self.mode == "online"

    def shadows_needed(self, in_models: bool) -> int:
        """One for the mean, and a second one for the variance, on each side."""
        return (1 + in_models) * (1 if self.variance == "code" else 2)

    @property
    def max_design_effect(self) -> float:  # type: ignore[override]
        """Measured: 1.2 to 2.3 online, .35 to 1.2 offline."""
        return 2.3 if self.mode == "online" else 1.2


class RMIA(Attacker):
    """Zarifzadeh et al. 2024, with a held-out population.

    The paper's score is the share of the population that a sample beats. `ties` says what orders
    samples of one share: the ratio (online, and for one query, the order is then exactly that of
    `BASE`), or nothing, as in the paper.
    """

    needs_population: ClassVar = True

    mode: Literal["online", "offline"] = "online"
    gamma: Annotated[float, Within(1e-9)] = 2.0
    a: Share = 0.3  # of the offline mode
    views: int = 1
    # `share`: the paper's plain share, at most Z + 1 levels
    ties: Literal["ratio", "share"] = "ratio"

    def shadows_needed(self, in_models: bool) -> int:
        """Offline, one that did not train on the sample: of a complement pair, one did not."""
        return 2 if in_models and self.mode == "offline" else 1


class BASE(Attacker):
    """Lassila et al. 2025: the log ratio of the target's confidence and the shadows' mean."""


class Learner(Attacker):
    """An attack network. It is trained on the outputs of the shadow models for their own members
    and non-members; one network serves all classes.

    `inputs` names what it reads of a sample, in this order: the posterior (`top3`: its three
    largest values in falling order, 0 if there are fewer, as in ML-Leaks), the sensitivity
    (`Sensitivity`), the one-hot label. "adam" has torch's moments, "sgd" a momentum of .9. The
    learning rate falls to a tenth after each share of the epochs in `milestones`.
    """

    by_sample: ClassVar = False
    is_trained: ClassVar = True

    inputs: Literal[
        "posterior",
        "posterior_label",
        "top3",
        "posterior_sensitivity",
        "posterior_sensitivity_label",
    ] = "posterior"
    epochs: Positive = 20
    batch: Positive = 256
    lr: float = 1e-3
    seed: int = 0
    optimizer: Literal["adam", "sgd"] = "adam"
    weight_decay: Amount = 0.0
    milestones: tuple[Share, ...] = ()
    # `xavier`: normal weights of linear maps, zero biases; `own`: torch's
    init: Literal["own", "xavier"] = "own"
    # members and non-members have the same weight in its loss; False: all samples have, as published
    balanced: bool = True

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of its inputs; each but `top3` has a number for each class."""
        return tuple(self.inputs.split("_"))

    def required_steps(self, state: State) -> tuple[Step, ...]:
        if "sensitivity" in self.input_names:
            return Signals(state), Sensitivity(state)
        return (Signals(state),)


class Network(Learner):
    """A net of linear maps and ReLU: Shokri et al. 2017 on posteriors, Nasr et al. 2018 on label
    and posterior.

    PPTP names both and prints nothing of the net: widths and dropout are those of its authors'
    earlier code, Adam at 1e-3 is Nasr's, batch and epochs are ours: a second on one core for eight
    shadows of 1,000 samples, and on made-up shadows twice the epochs score no better. What the
    pruning papers print is `PRUNING_NET`. Where the sensitivity is among the inputs a BatchNorm
    goes before the net, as in SAMIA: sensitivities have a heavy tail.
    """

    revision: ClassVar = 2  # targets with the same shadows share a net

    hidden: tuple[Positive, ...] = (128, 64, 64)
    dropout: float | tuple[float, ...] = 0.2  # after each hidden layer; several: one for each

    def verify(self) -> None:
        if isinstance(self.dropout, tuple) and len(self.dropout) != len(self.hidden):
            raise BadInput(
                f"Network.dropout has {len(self.dropout)} rates for {len(self.hidden)} hidden "
                "layers: give one for each"
            )

    def operations(self, count: Count, samples: float, classes: int) -> float:
        units = (3 if self.inputs == "top3" else classes * len(self.input_names), *self.hidden, 1)
        # half a millisecond of small kernels
        step = 6.0 * sum(a * b for a, b in pairwise(units)) * self.batch + 2e7
        return step * samples / self.batch * self.epochs


# The net of SAMIA's and WeMem's NN (posterior), Top3-NN (top3) and NNCls (posterior_label):
# `replace(PRUNING_NET, inputs=...)`. The rate is the paper's, that of the code .001. One logit,
# where theirs has two.
PRUNING_NET = Network(
    hidden=(512, 256, 128),
    dropout=(0.2, 0.2, 0.0),
    epochs=100,
    batch=128,
    lr=0.01,
    optimizer="sgd",
    weight_decay=5e-4,
    milestones=(0.5, 0.75),
    init="xavier",
)


class SAMIA(Learner):
    """Yuan & Zhang 2022: self-attention over the classes, each a token of posterior, sensitivity
    and 1 for the label.

    BatchNorm of all inputs, a linear map to 64 channels and GELU, three encoder layers with
    LayerNorm after each half (4 heads, 128 inner channels, GELU, dropout .2), all tokens in a row
    through 64 units with ReLU to two logits. So the published code has it; the paper's text leaves
    open how inputs become tokens, and is taken for the rate (.001 in the code). Fewer `inputs` are
    its ablations; `PRUNING_NET` on the same inputs is the one without attention. On five made-up
    shadows of 500 samples, trained once each, its accuracy is .655 after 10 epochs and .651 after
    100; that of `PRUNING_NET` on posterior and label is .598 after 20 and .622 after 100, so fewer
    epochs handicap that one.
    """

    revision: ClassVar = 2  # the maps of its attention are initialised as in the published code
    place: ClassVar = "device"  # with 100 classes it is no small net

    WIDTH: ClassVar = 64
    INNER: ClassVar = 128
    LAYERS: ClassVar = 3

    inputs: Literal[
        "posterior", "posterior_label", "posterior_sensitivity", "posterior_sensitivity_label"
    ] = "posterior_sensitivity_label"
    epochs: Positive = 100
    batch: Positive = 128
    lr: float = 0.01
    optimizer: Literal["adam", "sgd"] = "sgd"
    weight_decay: Amount = 5e-4
    milestones: tuple[Share, ...] = (0.5, 0.75)
    init: Literal["own", "xavier"] = "xavier"

    def operations(self, count: Count, samples: float, classes: int) -> float:
        """26 ms a batch of 128 with 10 classes, 73 with 30, 365 with 100, measured on one core."""
        layer = 4 * self.WIDTH**2 + 2 * self.WIDTH * self.INNER + 2 * classes * self.WIDTH
        each = len(self.input_names) * self.WIDTH + self.LAYERS * layer + self.WIDTH**2
        return 6.5 * each * classes * samples * self.epochs


class BlindMI(Attacker):
    """Hui et al. 2021, differential comparison with generated non-members; it needs no shadows.

    Targets go in batches of 20 beside `count` non-members that it makes itself (`Generated`). A
    target that makes the two sets differ more (MMD) when it changes sides is a non-member and
    leaves; until none leaves. The decision is the attack (a threshold of 0). It has no score of its
    own: ours is by how much the change brings the sets together. Both depend on who shares a batch,
    which `seed` decides.
    """

    uses_shadows: ClassVar = False
    by_sample: ClassVar = False

    count: Positive = 20
    batch: Positive = 20
    seed: Whole = 0

    def required_steps(self, state: State) -> tuple[Step, ...]:
        return Signals(state), Generated(state, self.count, self.seed)


class Learnt(Step):
    """An attack that is trained on shadow models, for any number of targets. Result: the tensors of
    its network, by name.
    """

    attacker: Attacker
    shadows: tuple[State, ...]
    permuted: Whole | None = field(default=None, metadata={"recorded": "dealt"})  # see `Attack`

    @property
    def place(self) -> Place:  # type: ignore[override]
        return self.attacker.place

    def parents(self) -> Iterator[Step]:
        for shadow in self.shadows:
            yield from self.attacker.required_steps(shadow)

    def operations(self, count: Count) -> float:
        samples = sum(2 * shadow.members for shadow in self.shadows)
        return self.attacker.operations(count, samples, self.shadows[0].training.data.classes)


class Attack(Step):
    """Scores of the members and non-members of each target.

    A target's shadow models are all `shadows` outside its own complement pair. Results of different
    networks are aligned by sample.

    `permuted` is a seed for the permutation null: membership labels are permuted over the pool, in
    the same way for all targets and shadow models. Numbers of members and complement pairs stay as
    they are, and there is nothing to infer.

    Result: `scores (T, n)`; `member (T, n)`; `thresholds (T,)`, NaN if the attack sets none;
    `index`, the samples: `(n,)`, or `(T, n)` if targets have different pools.
    """

    place: ClassVar = "host"

    attacker: Attacker
    targets: tuple[State, ...]
    # empty: the targets are each other's shadow models (an adaptive attacker)
    shadows: tuple[State, ...] = ()
    permuted: Whole | None = field(default=None, metadata={"recorded": "dealt"})

    def verify(self) -> None:
        if not self.targets:
            raise BadInput("an attack needs a target or more")
        name = type(self.attacker).__name__
        first = self.targets[0]
        design = first.training.design
        for state in (*self.targets, *self.shadows):
            if state.training.data != first.training.data:
                raise BadInput(f"{name}: targets and shadows need the same data")
            if self.attacker.by_sample and _samples(state) != _samples(first):
                raise BadInput(
                    f"{name} asks shadows about the target's own samples, but designs draw others "
                    f"({design} and {state.training.design}): give both one pool, test and seed"
                )
        for target in self.targets:
            check_has_nonmembers(target, name)
        if self.attacker.needs_in_models and not design.has_in_models:
            raise BadInput(
                f"{name} online needs shadows that trained on the target's samples, and a "
                f"{type(design).__name__} has none: take an offline mode"
            )
        if self.attacker.needs_population and not (design.dev or first.tests):
            raise BadInput(
                f"{name} needs a population that nobody trained on: give the design test or dev "
                "samples"
            )
        if self.attacker.uses_shadows:
            self._count_shadows(name, self.attacker.shadows_needed(design.has_in_models))

    def _count_shadows(self, name: str, needed: int) -> None:
        """Raises BadInput if a target has too few shadow models outside its own pair."""
        pairs = Counter(map(_pair, self.shadows or self.targets))
        for target in self.targets:
            found = pairs.total() - pairs[_pair(target)]
            if found < needed:
                raise BadInput(
                    f"{name}: row {target.training.row} has {found} shadows outside its own pair, "
                    f"and needs {needed}: ask for more models"
                )

    def shadows_of(self, target: State) -> tuple[State, ...]:
        """The shadow models of a target: those outside its complement pair."""
        others = [state for state in self.shadows or self.targets if state.key != target.key]
        return tuple(state for state in others if _pair(state) != _pair(target))

    @property
    def states_read(self) -> tuple[State, ...]:
        """The networks whose results this step reads. A trained attack reads the targets alone:
        `Learnt` has read the shadow models.
        """
        if self.attacker.is_trained or not self.attacker.uses_shadows:
            return self.targets
        return (*self.targets, *self.shadows)

    @property
    def targets_are_shadows(self) -> bool:
        """Whether some targets are each other's shadow models: their scores are not independent."""
        if not self.attacker.uses_shadows:
            return False
        targets = set(self.targets)
        return any(not targets.isdisjoint(self.shadows_of(target)) for target in self.targets)

    @property
    def design_effect(self) -> float:
        """Variance of the mean AUC over these targets, divided by that over independent targets, at
        most. It is for the AUC alone: a TPR's is 1.
        """
        return self.attacker.max_design_effect if self.targets_are_shadows else 1.0

    def learnt(self, target: State) -> Learnt:
        """The attack that is trained on a target's shadow models."""
        return Learnt(self.attacker, self.shadows_of(target), self.permuted)

    def parents(self) -> Iterator[Step]:
        steps: dict[Step, None] = {}  # each once, in their order
        for state in self.states_read:
            steps |= dict.fromkeys(self.attacker.required_steps(state))
        if self.attacker.is_trained:
            steps |= dict.fromkeys(self.learnt(target) for target in self.targets)
        yield from steps


def _samples(state: State) -> tuple[int, int | None, int]:
    """The fields of a design that decide which samples it draws: pool, test part and seed."""
    design = state.training.design.drawn
    return design.pool, design.test, design.seed


def _pair(state: State) -> tuple[object, int]:
    design = state.training.design
    return (type(design.drawn), *_samples(state)), design.pair(state.training.row)
