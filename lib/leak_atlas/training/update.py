"""One step of a training, a function of tensors whose addresses do not change.

No step waits for the device or branches on a value of a tensor. So the host may run the steps one
by one, or record a step once and replay it (`leak_atlas.training.graph`).
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net
from leak_atlas.models.net import Tensors
from leak_atlas.recipe import Objective, Schedule
from leak_atlas.recipe.sampling import Sampling
from leak_atlas.training.frozen import Frozen
from leak_atlas.training.objectives import loss
from leak_atlas.training.sampling import places
from leak_atlas.training.schedule import optimizer

# Batch size of the forward passes through the frozen first blocks of a network.
CHUNK = 512

# Most bytes that the outputs of these blocks for all training samples may take in memory.
CACHE = 2**28

# Streams of random numbers in addition to that of the members' tables. The numbers never change.
ADVERSARY = 1
PARTNERS = 2
PARTNER_VIEWS = 3
OUTSIDERS = 4
OUTSIDER_VIEWS = 5
POISSON = 6
NOISE = 7


class Task(NamedTuple):
    """The arguments of a training that its steps need.

    `members (n,)` are samples of `data`, `samples` further ones by their role ("dev", "reference").
    `soft (n, C)` are the members' soft labels, `ranking (n,)` is a score of each member, both in
    the members' order. `seed` is the training's.
    """

    net: Net
    frozen: Frozen
    data: Resident
    members: Tensor
    schedule: Schedule
    precision: str
    seed: int
    samples: Tensors = MappingProxyType({})
    soft: Tensor | None = None
    sampling: Sampling | None = None
    ranking: Tensor | None = None

    def role(self, name: str) -> Tensor:
        """The samples of a role, on the data's device."""
        return self.samples[name].to(self.data.device)


class Batch(NamedTuple):
    """The next `size` samples of an epoch. `phase` names the kind of step, where an objective has
    several.
    """

    size: int
    phase: str = ""


class Update:
    """A training step on the next samples of an epoch: gather, augment, forward, backward, update,
    restore frozen values, count.

    All tensors are on the data's device and keep their addresses. `order (4, 1 + further, k)` int64
    holds the epoch's tables: place among the samples, dy, dx, flip. `order[:, 0]` is for the
    samples to learn from, `order[:, 1:]` for further samples that the objective looks at. k is the
    number of samples of the longest epoch. `position`, `epoch` and `right` are int64 scalars,
    `loss` a float64 scalar. `loss` sums the objective over the samples of the epoch so far, `right`
    counts the correct predictions. The optimizer has the learning rate.

    Without augmentation, first blocks that are frozen wholly see the same images in every epoch. If
    their output is small enough, it is computed once and kept.

    Objectives that need more than the batch have subclasses (`leak_atlas.training.defences`). They
    override `tables`, `batches`, `prepare`, `value`, `update` or `learners`. `others` are samples
    that a subclass looks at in addition to the members; their places follow the members'.
    """

    # Whether all steps of one size and phase run the same operations, so that one may be recorded.
    recordable = True

    def __init__(self, objective: Objective, task: Task, others: Tensor | None = None) -> None:
        self.weights = [weight for weight in task.net.parameters() if weight.requires_grad]
        if not self.weights:
            raise BadInput("everything is frozen: nothing remains to train")
        members = task.members
        schedule = task.schedule
        self.net = task.net
        self.frozen = task.frozen
        self.data = task.data
        self.objective = objective
        self.n = len(members)
        self.samples = members if others is None else torch.cat([members, others])
        self.member_labels = self.data.labels[members].cpu()
        self.batch = schedule.batch
        self.augment = schedule.augment
        self.rho = schedule.sharpness
        self.phase = ""  # of the current batch
        self.bf16 = task.precision == "bf16"
        self.sampling = task.sampling
        self.ranking = None if task.ranking is None else task.ranking.cpu()
        most = max(self._lengths(schedule.epochs))
        self.optimizer = optimizer(schedule, self.weights)

        device = self.data.device
        rows = 1 + objective.further_samples
        self.order = torch.zeros(
            4,
            rows,
            most,
            dtype=torch.int64,
            device=device,
        )
        self.offsets = torch.arange(most, device=device)
        counts = torch.zeros(3, dtype=torch.int64, device=device)
        self.position, self.epoch, self.right = counts.unbind()
        self.loss = torch.zeros((), dtype=torch.float64, device=device)

        self.trained_blocks: Callable[[Tensor], Tensor] = self.net
        self.frozen_outputs: Tensor | None = None
        if not self.augment:
            self._keep(self.frozen.leading())

    def _lengths(self, epochs: int) -> list[int]:
        """Visits in each epoch. Raises BadInput if a sampling schedule gives fewer than two."""
        lengths = [len(self.visits(epoch)) for epoch in range(epochs)]
        least = min(lengths)
        if self.sampling and least < 2:
            epoch = 1 + lengths.index(least)
            raise BadInput(
                f"a sampling schedule of {least} members in epoch {epoch}: every epoch needs two"
            )
        return lengths

    def _keep(self, blocks: list[nn.Module]) -> None:
        """Keeps the outputs of these first blocks for all samples, if they are small enough; the
        step then runs the other blocks only.
        """
        if not blocks:
            return
        first = nn.Sequential(*blocks)
        self.frozen.train()
        with torch.no_grad(), float32(), self._autocast():
            output = first(augmentation.plain(self.data, self.samples[:1]))
            if output.nbytes * len(self.samples) > CACHE:
                return
            chunks = self.samples.split(CHUNK)
            outputs = [first(augmentation.plain(self.data, rows)) for rows in chunks]
        self.frozen_outputs = torch.cat([_channels_last(output) for output in outputs])
        rest = [block for _, block in self.net.blocks()][len(blocks) :]
        self.trained_blocks = nn.Sequential(*rest)

    def visits(self, epoch: int) -> Tensor:
        """Places of the members that an epoch visits, sorted, with repetitions; on the CPU."""
        if self.sampling is None or self.ranking is None:
            return torch.arange(self.n)
        return places(self.sampling, self.ranking, self.member_labels, epoch).sort().values

    def batches(self, epoch: int) -> Sequence[Batch]:
        """The batches of an epoch, in their order. If the step is not recordable, call `begin` for
        this epoch first.
        """
        all_sizes = sizes(len(self.visits(epoch)), self.batch)
        return [Batch(size) for size in all_sizes[: self.objective.batches]]

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        """The random numbers of the k visits of an epoch, on the CPU: `(k,)` each.

        Subclasses whose objective has `further_samples` append theirs: k for the first further
        sample, k for the second, and so on.
        """
        visits = self.visits(epoch)
        drawn = augmentation.tables(seed, epoch, len(visits), self.augment)
        return drawn._replace(perm=visits[drawn.perm])

    def begin(self, epoch: int, rate: float, tables: augmentation.Tables) -> None:
        """Copies an epoch's tables and learning rate to the device; epochs count from 0. The host
        does not wait.
        """
        columns = torch.stack([column.to(torch.int64) for column in tables])
        order = columns.view(4, self.order.shape[1], -1)
        self.order[:, :, : order.shape[2]].copy_(order, non_blocking=True)
        self.epoch.fill_(epoch)
        for group in self.optimizer.param_groups:
            group["lr"].fill_(rate)
        for count in (self.position, self.loss, self.right):
            count.zero_()
        self.frozen.train()

    def __call__(self, size: int, phase: str = "") -> None:
        """One training step on the next `size` samples."""
        self.phase = phase
        drawn = self.order[:, 0].index_select(1, self.offsets[:size] + self.position)
        labels = self.labels(drawn[0])
        with float32():
            self.prepare(size)
            logits = self.logits(self.images(drawn))
            value = self.value(drawn[0], logits, labels)
            self.optimizer.zero_grad(set_to_none=True)
            value.backward()  # type: ignore[no-untyped-call]
        if self.rho:
            self.sharpen(drawn, labels)
        self.update()
        self.frozen.impose()
        self.position.add_(size)
        self.loss.add_(value.detach(), alpha=size)
        self.right.add_((logits.detach().argmax(dim=1) == labels).sum())

    def prepare(self, size: int) -> None:
        """Runs before the network learns from the next `size` samples."""

    def value(self, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        """The objective on the samples at `places (B,)`, a float32 scalar. Raises BadInput if a
        user's loss is something else.
        """
        value = loss(self.objective, logits.float(), labels, self.epoch)
        if not isinstance(value, Tensor) or value.ndim:
            kind = type(value).__name__
            form = f"of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {kind}"
            raise BadInput(
                f"the loss of {type(self.objective).__name__} is {form}: return a tensor of shape "
                "(), such as losses.mean()"
            )
        return value

    def sharpen(self, drawn: Tensor, labels: Tensor) -> None:
        """SAM (Foret et al. 2021): replaces the gradient g at the weights w by the gradient at
        w + rho g / |g|.

        The norm is over all free weights; frozen weights do not move. The second pass sees the same
        batch and does not change BatchNorm's statistics. The optimizer's weight decay uses the
        weights before the move.
        """
        weights = [weight for weight in self.weights if weight.grad is not None]
        with torch.no_grad():
            for tensor, mask, _ in self.frozen.restored:
                if tensor.grad is not None:
                    tensor.grad.masked_fill_(mask, 0)
            gradients: list[Tensor] = [weight.grad for weight in weights]  # type: ignore[misc]
            norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
            scale = self.rho / (norm + 1e-12)
            before = [weight.clone() for weight in weights]
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.addcmul_(gradient, scale)
        self.optimizer.zero_grad(set_to_none=True)
        with float32(), untracked(self.net):
            logits = self.logits(self.images(drawn))
            self.value(drawn[0], logits, labels).backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for weight, value in zip(weights, before, strict=True):
                weight.copy_(value)

    def update(self) -> None:
        """Changes the weights by their gradients."""
        self.optimizer.step()

    def further(self, size: int) -> Tensor:
        """The tables `(4, further, size)` of the further samples that the objective looks at
        together with the next `size` samples.
        """
        return self.order[:, 1:].index_select(2, self.offsets[:size] + self.position)

    def labels(self, places: Tensor) -> Tensor:
        return self.data.labels.index_select(0, self.samples.index_select(0, places))

    def images(self, drawn: Tensor, plain: bool = False) -> Tensor:
        """The inputs of the learning blocks for `drawn (4, B)`, without augmentation if `plain`."""
        places, dy, dx, flip = drawn
        if self.frozen_outputs is not None:
            return _channels_first(self.frozen_outputs.index_select(0, places))
        index = self.samples.index_select(0, places)
        if self.augment is None or plain:
            return augmentation.plain(self.data, index)
        return augmentation.gather(
            self.data,
            index,
            dy,
            dx,
            flip,
            self.augment.crop,
        )

    def logits(self, x: Tensor) -> Tensor:
        with self._autocast():
            return self.trained_blocks(x)

    def measures(self) -> dict[str, float]:
        """Values for the epoch's history, by name, in addition to loss, accuracy and rate."""
        return {}

    def learners(self) -> list[tuple[nn.Module, torch.optim.Optimizer]]:
        """Pairs of a network that a step changes and an optimizer of it."""
        return [(self.net, self.optimizer)]

    def _autocast(self) -> torch.autocast:
        # Each weight is cast once a step, so a cache of casts would save nothing; and it must not
        # outlive a recording.
        return torch.autocast(
            self.data.device.type,
            torch.bfloat16,
            enabled=self.bf16,
            cache_enabled=False,
        )

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """At its end this context restores weights, statistics and counts in place, to the last
        bit, and sets the optimizers' states to zero.

        For use before the first step of a training only, when the optimizers' states are zero.
        """
        tensors = [self.position, self.loss, self.right]
        for network, _ in self.learners():
            tensors += [*network.parameters(), *network.buffers()]
        before = [tensor.detach().clone() for tensor in tensors]
        try:
            yield
        finally:
            with torch.no_grad():
                for tensor, value in zip(tensors, before, strict=True):
                    tensor.copy_(value)
                for _, optimizer in self.learners():
                    optimizer.zero_grad(set_to_none=True)
                    for state in optimizer.state.values():
                        for value in state.values():
                            value.zero_()


@contextlib.contextmanager
def untracked(net: nn.Module) -> Iterator[None]:
    """In this context BatchNorm normalises as in training and keeps its statistics."""
    tracking = [
        module for module in net.modules() if isinstance(module, _BatchNorm) and module.training
    ]
    try:
        for module in tracking:
            module.track_running_stats = False
        yield
    finally:
        for module in tracking:
            module.track_running_stats = True


def sizes(n: int, batch: int) -> list[int]:
    """Sizes of the batches that cover n samples. The last batch may be smaller; a single left-over
    sample joins the batch before it.
    """
    covering = [min(batch, n - start) for start in range(0, n, batch)]
    if len(covering) > 1 and covering[-1] == 1:
        return [*covering[:-2], batch + 1]
    return covering


def float32() -> contextlib.AbstractContextManager[None]:
    """Within this context cuDNN computes float32 without TF32. Its other switches do not change."""
    cudnn = torch.backends.cudnn
    return cudnn.flags(
        enabled=True,
        benchmark=cudnn.benchmark,
        benchmark_limit=cudnn.benchmark_limit,
        deterministic=cudnn.deterministic,
        allow_tf32=False,
    )


def _channels_last(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).contiguous() if x.dim() == 4 else x


def _channels_first(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2) if x.dim() == 4 else x
