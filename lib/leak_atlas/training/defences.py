"""Training steps of the defences that need more than the batch: another network, further samples,
or soft labels.
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
    """The training step of an objective. Objectives that need more than the batch register their
    own class of step here.
    """
    return Update(objective, task)


@update_for.register
def _private(objective: DPSGD, task: Task) -> Update:
    # The import of Opacus takes seconds, and some machines lack Opacus.
    from leak_atlas.training.private import Private

    return Private(objective, task)


def turns(n: int, count: int, draws: torch.Generator) -> Tensor:
    """`count` places among n samples: random permutations one after another, cut off."""
    rounds = max(1, -(-count // max(1, n)))
    permutations = [torch.randperm(n, generator=draws) for _ in range(rounds)]
    return torch.cat(permutations)[:count]


def joined(first: augmentation.Tables, second: augmentation.Tables) -> augmentation.Tables:
    """Two tables one after the other: those of further samples follow those of the members."""
    columns = zip(first, second, strict=True)
    return augmentation.Tables(*(torch.cat(pair) for pair in columns))


@update_for.register(AdversarialRegularization)
class Adversarial(Update):
    """Adversarial regularization (Nasr et al. 2018): before each step of the classifier the
    inference net h takes `steps` steps.

    h sees the classifier's posteriors, in evaluation mode, of members without augmentation and of
    the same number of outsiders. Its loss is the squared error, as in SELENA's code. Over an epoch,
    h sees every member `steps` times: permutations of the members one after another. The outsiders
    follow permutations, too.
    """

    objective: AdversarialRegularization

    def __init__(self, objective: AdversarialRegularization, task: Task) -> None:
        super().__init__(objective, task, task.role(objective.outsiders))
        h = InferenceNet(task.data.classes, task.seed, objective.width)
        self.h = h.to(task.data.device)
        h_schedule = Schedule(
            optimizer="adam",
            lr=objective.attack_lr,
            decay="constant",
            weight_decay=0.0,
        )
        self.h_optimizer = optimizer(h_schedule, list(self.h.parameters()))

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        visits = self.visits(epoch)
        draws = augmentation.generator(seed, epoch, ADVERSARY)
        count = self.objective.steps * len(visits)
        members = visits[turns(len(visits), count, draws)]
        outsiders = self.n + turns(len(self.samples) - self.n, count, draws)
        no_shift = torch.zeros(2 * count, dtype=torch.int64)
        further = augmentation.Tables(
            perm=torch.cat([members, outsiders]),
            dy=no_shift,
            dx=no_shift,
            flip=no_shift.bool(),
        )
        return joined(super().tables(seed, epoch), further)

    def prepare(self, size: int) -> None:
        steps = self.objective.steps
        drawn = self.further(size).flatten(1)
        self.net.eval()
        with torch.no_grad():
            posterior = self.logits(self.images(drawn, plain=True)).float().softmax(dim=1)
        self.frozen.train()
        label = self._one_hot(self.labels(drawn[0]))
        member = torch.arange(2 * size, device=drawn.device) < size
        # Members and outsiders, each for all steps of h.
        posteriors = posterior.view(2, steps, size, -1)
        labels = label.view(2, steps, size, -1)
        for step in range(steps):
            membership = self.h(posteriors[:, step].flatten(0, 1), labels[:, step].flatten(0, 1))
            error = functional.mse_loss(membership, member.float())
            self.h_optimizer.zero_grad(set_to_none=True)
            error.backward()  # type: ignore[no-untyped-call]
            self.h_optimizer.step()

    def value(self, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        weights = {name: parameter.detach() for name, parameter in self.h.named_parameters()}
        posterior = logits.float().softmax(dim=1)
        membership = functional_call(self.h, weights, (posterior, self._one_hot(labels)))
        return objectives.adversarial(self.objective, logits, labels, membership)

    def learners(self) -> list[tuple[nn.Module, torch.optim.Optimizer]]:
        return [*super().learners(), (self.h, self.h_optimizer)]

    def _one_hot(self, labels: Tensor) -> Tensor:
        # functional.one_hot would wait for the device, which has to find the largest label.
        classes = torch.arange(self.data.classes, device=labels.device)
        return (labels[:, None] == classes).float()


@update_for.register(PAST)
class SparsityTuning(Update):
    """PAST: after each step of the optimizer every weight moves towards zero, by rate * lambda *
    its sensitivity gamma.

    The paper gives the penalty: L1, weighted by the gradient of the gap between the mean losses of
    members and non-members. The rest is inferred:

    - The gap is that of each step's batch and the same number of reference samples, with the same
      kind of augmentation. gamma is the absolute difference of the two gradients, a constant of the
      step.
    - The penalty covers tensors of two or more dimensions: weights of layers and embeddings, not
      biases or norms.
    - gamma has mean one over each tensor's free weights, so that lambda has the same meaning in all
      layers.
    - The shrinkage is proximal, because Adam would rescale the gradient of a penalty. It stops at
      zero.

    BatchNorm normalises reference samples by their own batch and does not count them in its
    statistics. Reference samples follow permutations one after another. The loss in the history is
    cross-entropy alone.
    """

    objective: PAST

    def __init__(self, objective: PAST, task: Task) -> None:
        super().__init__(objective, task, task.role("reference"))
        if task.schedule.sharpness:
            raise BadInput("PAST compares two gradients at the same weights: take sharpness 0")
        self.penalised = [weight for weight in self.weights if weight.dim() > 1]
        if not self.penalised:
            raise BadInput("PAST needs a free weight of a layer: all of them are frozen")
        self.free = [self.frozen.free(weight) for weight in self.penalised]
        self.outside: tuple[Tensor, ...] = ()  # gradients of the reference samples' loss

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        members = super().tables(seed, epoch)
        count = len(members.perm)
        draws = augmentation.generator(seed, epoch, OUTSIDERS)
        outsiders = self.n + turns(len(self.samples) - self.n, count, draws)
        views = augmentation.tables(
            seed,
            epoch,
            count,
            self.augment,
            OUTSIDER_VIEWS,
        )
        return joined(members, views._replace(perm=outsiders))

    def prepare(self, size: int) -> None:
        drawn = self.further(size)[:, 0]
        with untracked(self.net):
            logits = self.logits(self.images(drawn))
            value = self.value(drawn[0], logits, self.labels(drawn[0]))
            # A user's module may have weights that it does not use.
            self.outside = torch.autograd.grad(
                value, self.penalised, allow_unused=True, materialize_grads=True
            )

    def value(self, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(logits.float(), labels)

    def update(self) -> None:
        gammas = []
        with torch.no_grad():
            for weight, free, outside in zip(self.penalised, self.free, self.outside, strict=True):
                inside = torch.zeros_like(weight) if weight.grad is None else weight.grad
                gammas.append(privacy_sensitivity(inside - outside, free))
        super().update()
        rate = self.optimizer.param_groups[0]["lr"]
        with torch.no_grad():
            for weight, gamma in zip(self.penalised, gammas, strict=True):
                shrunk = weight.abs() - rate * self.objective.weight * gamma
                weight.copy_(weight.sign() * shrunk.clamp(min=0))


def privacy_sensitivity(gap: Tensor, free: Tensor) -> Tensor:
    """PAST's gamma of a tensor: the absolute gradient of the gap, divided by its mean over the free
    weights. Zeros where all gradients are zero.
    """
    size = gap.abs() * free
    mean = size.sum() / free.sum()
    return size / mean.clamp(min=torch.finfo(size.dtype).tiny)


@update_for.register(RMR)
class RiskyDecay(Update):
    """RMR: weight decay whose strength depends on the members of the batch.

    The gradient of the decay goes through the optimizer, as that of the schedule's own decay does.
    All parameters decay, as in torch. The loss in the history is cross-entropy alone. The form
    "code" makes separate batches of risky and of other members, each with an optimizer.
    """

    objective: RMR

    def __init__(self, objective: RMR, task: Task) -> None:
        apart = objective.form == "code"
        general = dataclasses.replace(
            task.schedule, weight_decay=objective.general if apart else 0.0
        )
        super().__init__(objective, task._replace(schedule=general))
        highest = torch.as_tensor(self.ranking).argsort(descending=True, stable=True)
        self.risky = torch.zeros(self.n, dtype=torch.bool)
        self.risky[highest[: round(objective.share * self.n)]] = True
        decay = torch.where(self.risky, objective.risky, objective.general)
        self.decay = decay.to(self.data.device, torch.float32)  # of each member
        self.strength = torch.zeros((), device=self.data.device)  # mean decay of the batch
        self.risky_optimizer: torch.optim.Optimizer | None = None
        if apart:
            risky = dataclasses.replace(task.schedule, weight_decay=objective.risky)
            self.risky_optimizer = optimizer(risky, self.weights)
            for group in self.risky_optimizer.param_groups:
                group["lr"] = self.optimizer.param_groups[0]["lr"]

    def _counts(self, epoch: int) -> tuple[int, int]:
        """Numbers of visits to risky and to other members in an epoch."""
        visits = self.visits(epoch)
        risky = int(self.risky[visits].sum())
        return risky, len(visits) - risky

    def apart(self, epoch: int) -> bool:
        """Whether an epoch visits the risky members before the others, in batches of their own."""
        return self.risky_optimizer is not None and min(self._counts(epoch)) > 1

    def batches(self, epoch: int) -> Sequence[Batch]:
        risky, others = self._counts(epoch)
        if self.apart(epoch):
            of_risky = [Batch(size, "risky") for size in sizes(risky, self.batch)]
            of_others = [Batch(size, "general") for size in sizes(others, self.batch)]
            return of_risky + of_others
        # At most one visit is on the other side: all batches take the phase of the majority.
        phase = "risky" if self.risky_optimizer and risky > others else ""
        return [batch._replace(phase=phase) for batch in super().batches(epoch)]

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        drawn = super().tables(seed, epoch)
        if not self.apart(epoch):
            return drawn
        others = ~self.risky[drawn.perm]
        risky_first = others.int().argsort(stable=True)
        return drawn._replace(perm=drawn.perm[risky_first])

    def value(self, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        self.strength = self.decay.index_select(0, places).mean()
        return functional.cross_entropy(logits.float(), labels)

    def update(self) -> None:
        if self.risky_optimizer is None:
            with torch.no_grad():
                for weight in self.weights:
                    if weight.grad is not None:  # a user's module may not use it
                        weight.grad.add_(weight * self.strength)
        if self.risky_optimizer and self.phase == "risky":
            self.risky_optimizer.step()
        else:
            self.optimizer.step()

    def learners(self) -> list[tuple[nn.Module, torch.optim.Optimizer]]:
        learners = super().learners()
        return [*learners, (self.net, self.risky_optimizer)] if self.risky_optimizer else learners


@update_for.register(CSKD)
class ClassWise(Update):
    """CS-KD: the teacher's logits are those of the same network on another member of the class,
    drawn in each epoch.

    As in the official code, both forward passes are in training mode on separate batches, the
    student's first, so that BatchNorm's statistics change twice in a step. In the official code a
    sample may be its own partner, and the batch size counts both sides: 128 there is a `batch` of
    64 here. Here a sample is its own partner only where the epoch has no other of its class.
    """

    objective: CSKD

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        members = super().tables(seed, epoch)
        draws = augmentation.generator(seed, epoch, PARTNERS)
        visited = members.perm.unique()
        visited = visited[self.member_labels[visited].argsort(stable=True)]  # class by class
        label = self.member_labels[visited]
        count = label.bincount()[label]  # of visited members of the same class
        first = torch.searchsorted(label, label)  # place of the first of them
        uniform = torch.rand(len(visited), generator=draws, dtype=torch.float64)
        distance = 1 + (uniform * (count - 1)).long()
        rank = torch.arange(len(visited)) - first  # within the class
        partner = torch.empty(self.n, dtype=torch.int64)
        partner[visited] = visited[first + (rank + distance) % count]
        views = augmentation.tables(
            seed,
            epoch,
            len(members.perm),
            self.augment,
            PARTNER_VIEWS,
        )
        return joined(members, views._replace(perm=partner[members.perm]))

    def value(self, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        with torch.no_grad():
            partners = self.further(len(labels))[:, 0]
            teacher = self.logits(self.images(partners))
        return objectives.class_wise(self.objective, logits, teacher, labels)


@update_for.register(Distillation)
class Distilling(Update):
    """Distillation on soft labels `soft (n, C)` of the members, fixed before the training."""

    def __init__(self, objective: Distillation, task: Task) -> None:
        assert task.soft is not None
        super().__init__(objective, task)
        self.soft = task.soft.to(self.data.device, torch.float32)

    def value(self, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        return objectives.distillation(logits, self.soft.index_select(0, places))


def soft_labels(posteriors: Tensor, seen: Tensor) -> Tensor:
    """Mean posterior of the teachers that did not train on a sample, `(n, C)` float32.

    `posteriors (K, n, C)` of K teachers; Boolean `seen (K, n)` is True where a teacher trained on
    the sample, whose posterior is then ignored. Raises BadInput if all teachers trained on a
    sample.
    """
    teachers = (~seen).sum(dim=0)
    if not teachers.all():
        number = int((teachers == 0).sum())
        raise BadInput(f"{number} members were seen by every teacher: let each be left out by some")
    unseen = posteriors.double().masked_fill(seen[:, :, None], 0.0)
    mean = unseen.sum(dim=0) / teachers[:, None]
    return mean.float()
