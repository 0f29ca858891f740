"""What each weight is worth: scores that are read off a few updates of one network, streaming (CWRF, eq. 2-4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from lib import BadInput, store
from lib.code import generic
from lib.compute import Arrays, Of, compute, text
from lib.data import augmentation
from lib.data.designs import Role
from lib.data.resident import Resident
from lib.models import Net
from lib.models.transformer import Attention
from lib.recipe import CrossEntropy, Schedule, Score, Shuffled, Updated
from lib.recipe.criteria import SNIP, Change, Criterion, Magnitude, Random, Taylor, Vulnerability
from lib.subject import Subject
from lib.training.answers import logits as answered
from lib.training.defences import turns
from lib.training.held import holding
from lib.training.update import Task, Update, float32

# Streams of random numbers beside those of the defences. A stream keeps its number for ever.
MEMBERS, REFERENCE = 21, 22


def kinds(net: Net) -> dict[str, str]:
    """The scored tensors of a network by state-dict name, in its order, each with its layer type.

    Weights without biases: "conv", "linear", "norm"; "attention", in a transformer, for all linear maps of its blocks
    (attention and MLP, as CWRF's Tab. 1 joins them); "embedding", of words or, there, of patches.
    """
    modules = dict(net.named_modules())
    transformer = any(isinstance(module, Attention) for module in modules.values())
    found: dict[str, str] = {}
    for name, parameter in net.named_parameters():
        if not name.endswith("weight"):
            continue
        module, part = modules[name.rpartition(".")[0]], name.split(".")[0]
        if parameter.dim() < 2:
            found[name] = "norm"
        elif isinstance(module, nn.Embedding) or (transformer and part == "stem"):
            found[name] = "embedding"
        elif isinstance(module, nn.Conv1d | nn.Conv2d):
            found[name] = "conv"
        else:
            found[name] = "attention" if transformer and part != "head" else "linear"
    return found


class Scoring(Update):
    """Updates that are watched: before each one, what it does to first order to the loss is added up, weight by weight.

    A step's samples are a batch of members followed by one of reference samples, where `goal (r, C)` has the logits
    that these shall have; both come in permutations one after another, however many there are. Evaluation mode: the
    two share BatchNorm's statistics, which stay.
    """

    def __init__(
        self, net: Net, data: Resident, members: Tensor, criterion: Taylor, reference: Tensor, goal: Tensor | None
    ) -> None:
        own = criterion.batch, criterion.optimizer, criterion.lr
        schedule = Schedule(1, *own, momentum=0.0, weight_decay=0.0, decay="constant")
        with holding(net, {}) as hold:
            super().__init__(CrossEntropy(), Task(net, hold, data, members, schedule, "fp32", 0), reference)
        self.criterion = criterion
        self.goal = None if goal is None else goal.to(data.device).log_softmax(dim=1)
        self.sizes = min(criterion.batch, self.n), min(criterion.batch, len(reference))
        self.order = torch.zeros(4, 1, criterion.steps * sum(self.sizes), dtype=torch.int64, device=data.device)
        self.ahead = torch.arange(sum(self.sizes), device=data.device)
        self.weights = {name: net.get_parameter(name) for name in kinds(net)}
        self.sums = {name: torch.zeros_like(weight) for name, weight in self.weights.items()}
        self.history = torch.zeros(4, criterion.steps, device=data.device)

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        """All steps': the members and the reference samples of each, one behind the other."""
        rest = len(self.samples) - self.n
        steps, (one, other) = self.criterion.steps, self.sizes
        members = turns(self.n, steps * one, augmentation.generator(seed, epoch, MEMBERS)).view(steps, one)
        reference = turns(rest, steps * other, augmentation.generator(seed, epoch, REFERENCE)).view(steps, other)
        order = torch.cat([members, self.n + reference], dim=1).flatten()
        still = torch.zeros_like(order)
        return augmentation.Tables(order, still, still, still.bool())

    def begin(self, epoch: int, rate: float, tables: augmentation.Tables) -> None:
        super().begin(epoch, rate, tables)
        self.net.eval()

    def value(self, size: int, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        members, reference = logits.float().split(self.sizes)
        own, others = labels.split(self.sizes)
        found = ce = functional.cross_entropy(members, own)
        kl = torch.zeros_like(ce)
        if self.goal is not None and isinstance(self.criterion, Vulnerability):
            goal = self.goal.index_select(0, places[self.sizes[0] :] - self.n)
            kl = divergence(self.criterion, reference, goal)
            found = (1 - self.criterion.weight) * ce + self.criterion.weight * kl
        right = [(z.argmax(dim=1) == y).float().mean() for z, y in ((members, own), (reference, others))]
        row = torch.stack([ce.detach(), kl.detach(), *right])
        self.history.index_copy_(1, (self.position // size).view(1), row[:, None])
        return found

    def update(self) -> None:
        """Adds up |g w|, or its square, of the update that is due, and takes it."""
        with torch.no_grad():
            for name, weight in self.weights.items():
                if weight.grad is not None:
                    term = weight.grad * weight
                    self.sums[name].add_(term.abs_() if self.criterion.form == "absolute" else term.square_())
        super().update()


def divergence(criterion: Vulnerability, logits: Tensor, goal: Tensor) -> Tensor:
    """KL between the model's outputs, from `logits (B, C)`, and the initial net's, `goal (B, C)` in logarithms: their
    mean over the batch, a scalar."""
    model = functional.log_softmax(logits, dim=1)
    right, left = (goal, model) if criterion.divergence == "model||init" else (model, goal)
    return functional.kl_div(right, left, reduction="batchmean", log_target=True)


def taylor(
    net: Net,
    data: Resident,
    members: Tensor,
    criterion: Taylor,
    *,
    seed: int,
    reference: Tensor | None = None,
    init: Net | None = None,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Scores by state-dict name, and of each of the T updates `ce`, `accuracy`, `kl` and `accuracy_reference`, `(T,)`.

    Members are samples `(n,)` of `data`; for a `Vulnerability` so are `reference (r,)`, and `init` is the net as it was
    initialised. Batches depend on `seed` and `criterion.draw` alone. `net` is trained away from where it was: give a
    copy. All float32, on the CPU. Raises BadInput where something is missing, and where the updates diverge.
    """
    others, goal = members[:0].to(data.device), None
    if isinstance(criterion, Vulnerability):
        if reference is None or not len(reference) or init is None:
            raise BadInput("a vulnerability score needs reference samples and the initial network")
        others, goal = reference.to(data.device), answered(init, data, reference)[0]
    step = Scoring(net, data, members.to(data.device), criterion, others, goal)
    step.begin(0, criterion.lr, step.tables(seed, criterion.draw))
    for _ in range(criterion.steps):
        step(sum(step.sizes))
    net.zero_grad(set_to_none=True)
    scores = {name: value.cpu().contiguous() for name, value in step.sums.items()}
    if not all(bool(torch.isfinite(value).all()) for value in scores.values()):
        raise BadInput(f"scoring diverged within {criterion.steps} updates: lower lr, {criterion.lr:g}")
    ce, kl, right, right_reference = step.history.cpu()
    history = {"ce": ce, "accuracy": right}
    return scores, history if goal is None else history | {"kl": kl, "accuracy_reference": right_reference}


def snip(net: Net, data: Resident, members: Tensor, criterion: SNIP, *, seed: int) -> dict[str, Tensor]:
    """|g w| / sum |g w| on one batch of the members, as class-balanced as they allow (Lee et al. 2019, eq. 6)."""
    order = members[torch.randperm(len(members), generator=augmentation.generator(seed, 0, MEMBERS))].to(data.device)
    label = data.labels[order]
    turn = functional.one_hot(label, data.classes).cumsum(dim=0).gather(1, label[:, None])[:, 0]
    batch = order[turn.argsort(stable=True)[: criterion.batch]]
    weights = [net.get_parameter(name) for name in kinds(net)]
    net.eval()
    with float32():
        loss = functional.cross_entropy(net(augmentation.plain(data, batch)).float(), data.labels[batch])
        gradients = torch.autograd.grad(loss, weights)
    found = [(g * w).abs().detach() for g, w in zip(gradients, weights, strict=True)]
    total = torch.stack([each.double().sum() for each in found]).sum()
    return {name: (each / total).cpu().contiguous() for name, each in zip(kinds(net), found, strict=True)}


Maps = Mapping[str, NDArray[np.float32] | Tensor]


@generic
def weigh(criterion: Criterion, own: Subject, init: Subject | None) -> tuple[Maps, dict[str, Tensor]]:
    """Scores of a subject's weights by state-dict name, and the history of making them.

    `init` is the chain's initialisation, where the criterion compares with it.
    """
    raise TypeError(f"nothing says what {type(criterion).__name__} makes of weights")


@weigh.register(Taylor)
def _(criterion: Taylor, own: Subject, init: Subject | None) -> tuple[Maps, dict[str, Tensor]]:
    members, reference = own.samples(Role.MEMBER)[:: criterion.every], own.samples(Role.REFERENCE)
    start = init.net if init else None
    return taylor(own.net, own.data, members, criterion, seed=own.training.seed, reference=reference, init=start)


@weigh.register(SNIP)
def _(criterion: SNIP, own: Subject, init: Subject | None) -> tuple[Maps, dict[str, Tensor]]:
    return snip(own.net, own.data, own.samples(Role.MEMBER), criterion, seed=own.training.seed), {}


@weigh.register(Magnitude)
@weigh.register(Change)
def _(criterion: Magnitude | Change, own: Subject, init: Subject | None) -> tuple[Maps, dict[str, Tensor]]:
    state, start = own.weights.values, init.weights.values if init else {}
    return {name: (state[name] - start.get(name, 0)).abs() for name in kinds(own.net)}, {}


@weigh.register(Random)
def _(criterion: Random, own: Subject, init: Subject | None) -> tuple[Maps, dict[str, Tensor]]:
    draws = np.random.default_rng(np.random.SeedSequence([criterion.seed, own.training.seed]))
    state = own.weights.values
    return {name: draws.random(tuple(state[name].shape), np.float32) for name in kinds(own.net)}, {}


@compute.register(Score)
def _(step: Score, of: Of) -> Arrays:
    own = of(step.of)
    named = [f"{name} {kind}" for name, kind in kinds(own.net).items()]
    init = of(step.of.initial()) if step.criterion.compares else None
    maps, history = weigh(step.criterion, own, init)
    found = {**maps, **{f"history/{name}": value for name, value in history.items()}, "scored/kinds": text(named)}
    return {name: np.asarray(value) for name, value in found.items()}


@compute.register(Shuffled)
def _(step: Shuffled, of: Of) -> Arrays:
    (score,) = step.parents()
    draws = np.random.default_rng(np.random.SeedSequence([step.seed, step.of.training.seed]))
    return {
        name: array if "/" in name else draws.permutation(array.ravel()).reshape(array.shape)
        for name, array in store.read(score.key).arrays.items()
    }


@compute.register(Updated)
def _(step: Updated, of: Of) -> Arrays:
    own = of(step.of)
    weigh(step.criterion, own, of(step.of.initial()) if step.criterion.compares else None)
    return {name: value.cpu().numpy() for name, value in own.net.state_dict().items()}
