"""Steps of the defences that need more than the batch: another network, other samples, or labels of
their own.
"""

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.engine.digests import generic
from leak_atlas.models.inference import InferenceNet
from leak_atlas.recipe import (
    CSKD,
    DPSGD,
    PAST,
    RMR,
    AdversarialRegularization,
    Distillation,
    Objective,
    Schedule,
    Slimming,
)
from leak_atlas.training import objectives
from leak_atlas.training.schedule import optimizer
from leak_atlas.training.update import (
    ADVERSARY,
    OUTSIDER_VIEWS,
    OUTSIDERS,
    PARTNER_VIEWS,
    PARTNERS,
    Batch,
    Task,
    Update,
    sizes,
    untracked,
)


@generic
def update_for(objective: Objective, task: Task) -> Update:
    """The step of an objective; the kinds that need more than the batch register themselves here.

    BadInput where the task lacks the samples or labels that the objective needs.
    """
    return Update(objective, task)


@update_for.register
def _private(objective: DPSGD, task: Task) -> Update:
    # Opacus takes seconds to import, and is not on every machine
    from leak_atlas.training.private import Private

    return Private(objective, task)


def turns(n: int, count: int, draws: torch.Generator) -> Tensor:
    """`(count,)` of n samples, as permutations one after another."""
    rounds = max(1, -(-count // max(1, n)))
    return torch.cat([torch.randperm(n, generator=draws) for _ in range(rounds)])[:count]


def joined(*tables: augmentation.Tables) -> augmentation.Tables:
    """Tables one after another, as those of looks follow the members' own."""
    return augmentation.Tables(*(torch.cat(columns) for columns in zip(*tables, strict=True)))


@update_for.register(AdversarialRegularization)
class Adversarial(Update):
    """Before each step of the classifier the inference net h takes some, on what the classifier
    says in evaluation mode of plain members and of as many plain outsiders, at a squared error (as
    SELENA's code has it all).

    Each of h's steps goes once through the epoch's members, in an order of its own; outsiders come
    in permutations one after another, however many there are.
    """

    objective: AdversarialRegularization

    def __init__(self, objective: AdversarialRegularization, task: Task) -> None:
        super().__init__(objective, task, task.role(objective.outsiders, objective))
        self.h = InferenceNet(task.data.classes, task.seed, objective.width).to(task.data.device)
        plain = Schedule(
            optimizer="adam", lr=objective.attack_lr, decay="constant", weight_decay=0.0
        )
        self.h_optimizer = optimizer(plain, list(self.h.parameters()))

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        visits, draws = self.visits(epoch), augmentation.generator(seed, epoch, ADVERSARY)
        count = self.objective.steps * len(visits)
        members = visits[turns(len(visits), count, draws)]
        others = self.n + turns(len(self.samples) - self.n, count, draws)
        still = torch.zeros(2 * count, dtype=torch.int64)
        looks = augmentation.Tables(torch.cat([members, others]), still, still, still.bool())
        return joined(super().tables(seed, epoch), looks)

    def prepare(self, size: int) -> None:
        steps = self.objective.steps
        drawn = self.beside(size).flatten(1)
        self.net.eval()
        with torch.no_grad():
            posterior = self.logits(self.images(drawn, plain=True)).float().softmax(dim=1)
        self.hold.train()
        label = self._one_hot(self.labels(drawn[0]))
        member = torch.arange(2 * size, device=drawn.device) < size
        for step in range(steps):
            both = [
                part.view(2, steps, size, -1)[:, step].flatten(0, 1) for part in (posterior, label)
            ]
            error = self.error(self.h(*both), member.float())
            self.h_optimizer.zero_grad(set_to_none=True)
            error.backward()  # type: ignore[no-untyped-call]
            self.h_optimizer.step()

    def value(self, size: int, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        weights = {name: parameter.detach() for name, parameter in self.h.named_parameters()}
        posterior = logits.float().softmax(dim=1)
        membership = functional_call(self.h, weights, (posterior, self._one_hot(labels)))
        return objectives.adversarial(self.objective, logits, labels, membership)

    def error(self, membership: Tensor, member: Tensor) -> Tensor:
        """What h descends."""
        if self.objective.form == "code":
            return self.objective.alpha * functional.binary_cross_entropy(membership, member)
        return functional.mse_loss(membership, member)

    def learners(self) -> list[tuple[nn.Module, torch.optim.Optimizer]]:
        return [*super().learners(), (self.h, self.h_optimizer)]

    def _one_hot(self, labels: Tensor) -> Tensor:
        # functional.one_hot asks the device for the largest label
        return (labels[:, None] == torch.arange(self.data.classes, device=labels.device)).float()


@update_for.register(Slimming)
class Scales(Update):
    """The penalty's gradient is that of its sign, zero at zero."""

    objective: Slimming

    def __init__(self, objective: Slimming, task: Task) -> None:
        super().__init__(objective, task)
        self.scales: list[Tensor] = [
            m.weight for m in task.net.modules() if isinstance(m, nn.BatchNorm2d | nn.GroupNorm)
        ]
        if not self.scales:
            raise BadInput("Slimming needs a network with BatchNorm or GroupNorm: take a resnet")

    def value(self, size: int, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        penalty = torch.cat(self.scales).abs().sum()
        return functional.cross_entropy(logits.float(), labels) + self.objective.weight * penalty


@update_for.register(PAST)
class Sparsity(Update):
    """PAST: after each step of the optimizer every weight moves towards zero, by rate * lambda *
    its sensitivity gamma.

    From the paper is what the penalty is: L1, weighted by the gradient of the gap between the mean
    losses of members and non-members. The rest is inferred:

    - the gap is that of each step's batch and as many reference samples, augmented alike; its
      gradient is the
      difference of the two gradients, the sign falls away with the absolute value. gamma is a
      constant of the step, no
      gradient goes through it;
    - penalised are tensors of two or more dimensions: weights of layers and embeddings, no biases,
      no norms;
    - gamma has mean one over each tensor's weights that are not held, so that lambda means the same
      in all layers;
    - the shrinkage is proximal, as Adam would scale a penalty's gradient away, and stops at zero.

    In BatchNorm reference samples are normalised by their own batch, as members are, and leave no
    trace in the statistics. Reference samples come in permutations one after another. The history's
    loss is cross-entropy alone.
    """

    objective: PAST

    def __init__(self, objective: PAST, task: Task) -> None:
        super().__init__(objective, task, task.role("reference", objective))
        held = {id(tensor): mask for tensor, mask, _ in self.hold.pinned}
        weights = [p for p in self.net.parameters() if p.requires_grad and p.dim() > 1]
        self.penalised = [
            (p, ~held[id(p)] if id(p) in held else torch.ones_like(p, dtype=torch.bool))
            for p in weights
        ]
        self.outside: tuple[Tensor, ...] = ()  # gradients of the reference samples' loss

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        own, draws = super().tables(seed, epoch), augmentation.generator(seed, epoch, OUTSIDERS)
        count = len(own.perm)
        others = self.n + turns(len(self.samples) - self.n, count, draws)
        return joined(
            own,
            augmentation.tables(seed, epoch, count, self.augment, OUTSIDER_VIEWS)._replace(
                perm=others
            ),
        )

    def prepare(self, size: int) -> None:
        drawn = self.beside(size)[:, 0]
        with untracked(self.net):
            logits = self.logits(self.images(drawn))
            value = self.value(size, drawn[0], logits, self.labels(drawn[0]))
            self.outside = torch.autograd.grad(value, [weight for weight, _ in self.penalised])

    def value(self, size: int, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(logits.float(), labels)

    def update(self) -> None:
        pairs = zip(self.penalised, self.outside, strict=True)
        with torch.no_grad():
            gamma = [sensitivity(weight.grad - outside, free) for (weight, free), outside in pairs]  # type: ignore[operator]
        super().update()
        rate = self.optimizer.param_groups[0]["lr"]
        with torch.no_grad():
            for (weight, _), own in zip(self.penalised, gamma, strict=True):
                weight.copy_(
                    weight.sign() * (weight.abs() - rate * self.objective.weight * own).clamp(min=0)
                )


def sensitivity(gap: Tensor, free: Tensor) -> Tensor:
    """PAST's gamma of a tensor: the size of the gap's gradient, of mean one where `free`; zeros
    where all are zero.
    """
    size = gap.abs() * free
    return size / (size.sum() / free.sum()).clamp(min=torch.finfo(size.dtype).tiny)


@update_for.register(RMR)
class Remembered(Update):
    """Weight decay by the batch's members. As under the schedule's own, its gradient goes through
    Adam. All parameters decay, as in torch, and the history's loss leaves the penalty out."""

    objective: RMR

    def __init__(self, objective: RMR, task: Task) -> None:
        decays = (objective.risky, objective.general) if objective.form == "code" else (0.0,)
        schedules = [dataclasses.replace(task.schedule, weight_decay=decay) for decay in decays]
        super().__init__(objective, task._replace(schedule=schedules[-1]))
        ranking = torch.as_tensor(self.ranking)
        if objective.tau is None:
            self.risky = torch.zeros(self.n, dtype=torch.bool)
            highest = ranking.argsort(descending=True, stable=True)
            self.risky[highest[: round(objective.share * self.n)]] = True
        else:
            self.risky = ranking >= objective.tau
        own = torch.where(self.risky, objective.risky, objective.general)
        self.decay, self.strength = (
            own.to(self.data.device, torch.float32),
            torch.zeros((), device=self.data.device),
        )
        self.weights = [parameter for parameter in self.net.parameters() if parameter.requires_grad]
        self.first = optimizer(schedules[0], self.weights) if objective.form == "code" else None
        for group in self.first.param_groups if self.first else ():
            group["lr"] = self.optimizer.param_groups[0]["lr"]

    def apart(self, epoch: int) -> int:
        """How many risky members come before the others in an epoch; 0 where they mix."""
        visits = self.visits(epoch)
        number = int(self.risky[visits].sum())
        return number if self.first and min(number, len(visits) - number) > 1 else 0

    def batches(self, epoch: int) -> Sequence[Batch]:
        if not (number := self.apart(epoch)):  # all go with the side that nearly all are on
            visits = self.visits(epoch)
            side = "risky" if self.first and 2 * int(self.risky[visits].sum()) > len(visits) else ""
            return [batch._replace(phase=side) for batch in super().batches(epoch)]
        sides = {"risky": number, "general": len(self.visits(epoch)) - number}
        return [
            Batch(size, side) for side, count in sides.items() for size in sizes(count, self.batch)
        ]

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        drawn = super().tables(seed, epoch)
        if not self.apart(epoch):
            return drawn
        return drawn._replace(perm=drawn.perm[(~self.risky[drawn.perm]).int().argsort(stable=True)])

    def value(self, size: int, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        self.strength = self.decay.index_select(0, places).mean()
        return functional.cross_entropy(logits.float(), labels)

    def update(self) -> None:
        if self.first is None:
            with torch.no_grad():
                for weight in self.weights:
                    weight.grad.add_(weight * self.strength)  # type: ignore[union-attr]
        (self.first if self.first and self.phase == "risky" else self.optimizer).step()

    def learners(self) -> list[tuple[nn.Module, torch.optim.Optimizer]]:
        return [*super().learners(), *([(self.net, self.first)] if self.first else [])]


@update_for.register(CSKD)
class ClassWise(Update):
    """CS-KD: the teacher's logits are the same network's, on another member of the class, drawn
    anew in each epoch.

    As in the official code both forward passes are in training mode, on batches of their own, the
    student's first, so that BatchNorm's statistics move twice in a step. There a sample may be its
    own partner, and a batch counts both sides: its 128 are a `batch` of 64 here. Here a sample is
    its own partner only where the epoch has no other.
    """

    objective: CSKD

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        own, draws = super().tables(seed, epoch), augmentation.generator(seed, epoch, PARTNERS)
        met = own.perm.unique()
        met = met[self.label[met].argsort(stable=True)]  # class by class
        label = self.label[met]
        # of each one's class
        count, first = label.bincount()[label], torch.searchsorted(label, label)
        ahead = (
            1 + (torch.rand(len(met), generator=draws, dtype=torch.float64) * (count - 1)).long()
        )
        partner = torch.empty(self.n, dtype=torch.int64)
        partner[met] = met[first + (torch.arange(len(met)) - first + ahead) % count]
        view = augmentation.tables(seed, epoch, len(own.perm), self.augment, PARTNER_VIEWS)
        return joined(own, view._replace(perm=partner[own.perm]))

    def value(self, size: int, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        with torch.no_grad():
            teacher = self.logits(self.images(self.beside(size)[:, 0]))
        return objectives.class_wise(self.objective, logits, teacher, labels)


@update_for.register(Distillation)
class Distilling(Update):
    """The members' labels are soft ones, fixed before the training: `soft (n, C)`, in the members'
    order.
    """

    def __init__(self, objective: Distillation, task: Task) -> None:
        if task.soft is None or task.soft.shape != (len(task.members), task.data.classes):
            raise BadInput(
                "a distillation needs a soft label of each class for each member: give it teachers"
            )
        super().__init__(objective, task)
        self.soft = task.soft.to(self.data.device, torch.float32)

    def value(self, size: int, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        return objectives.distillation(logits, self.soft.index_select(0, places))


def soft_labels(posteriors: Tensor, seen: Tensor) -> Tensor:
    """Mean posterior of those teachers that did not train on a sample, `(n, C)` float32.

    `posteriors (K, n, C)` and Boolean `seen (K, n)`; what `posteriors` holds where a teacher
    trained on the sample is never read. BadInput where all teachers trained on a sample.
    """
    known = (~seen).sum(dim=0)
    if not known.all():
        raise BadInput(
            f"{int((known == 0).sum())} members were seen by every teacher: let each be left out by some"
        )
    total = posteriors.double().masked_fill(seen[:, :, None], 0.0).sum(dim=0)
    return (total / known[:, None]).float()
