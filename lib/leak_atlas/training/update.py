"""One step of a training, as a function of tensors that stay where they are.

Nothing here asks the device for a value and no branch depends on one: the host may run the steps
one by one, or record a step once and replay it (`leak_atlas.training.graph`).
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor, nn

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.models import Net
from leak_atlas.recipe import Objective, Schedule
from leak_atlas.recipe.diets import Diet
from leak_atlas.training.diets import places
from leak_atlas.training.held import Held
from leak_atlas.training.objectives import loss
from leak_atlas.training.schedule import optimizer

# Samples that the held first parts of a network see at once.
CHUNK = 512

# The output of these parts for the training samples is kept where it takes no more bytes than this.
CACHE = 2**28

# Streams of random numbers beside that of the members' tables. A stream keeps its number for ever.
ADVERSARY, PARTNERS, PARTNER_VIEWS, OUTSIDERS, OUTSIDER_VIEWS, POISSON, NOISE = 1, 2, 3, 4, 5, 6, 7


class Task(NamedTuple):
    """What every kind of step is made of.

    `members (n,)` are samples of `data`, `samples` further ones by their role ("dev", "reference").
    In the members' order are `soft (n, C)`, their soft labels, and `ranking (n,)`, a score of each.
    `seed` is the training's.
    """

    net: Net
    hold: Held
    data: Resident
    members: Tensor
    schedule: Schedule
    precision: str
    seed: int
    samples: Mapping[str, Tensor] = MappingProxyType({})
    soft: Tensor | None = None
    diet: Diet | None = None
    ranking: Tensor | None = None

    def role(self, name: str, objective: Objective) -> Tensor:
        """The samples of a role that the objective needs; BadInput where there are none."""
        if name not in self.samples or not len(self.samples[name]):
            raise BadInput(f"{type(objective).__name__} needs {name} samples: give the design some")
        return self.samples[name].to(self.data.device)


class Batch(NamedTuple):
    """The next `size` samples; `phase` names what is done with them, where a step can do several
    things.
    """

    size: int
    phase: str = ""


class Update:
    """The next samples of an epoch: gather, augment, forward, backward, update, impose what is
    held, count.

    Static tensors, on the data's device: `order (4, 1 + looks, k)` int64 holds the epoch's tables
    (place among the samples, dy, dx, flip), in row 0 of those that it learns from, where k is the
    longest epoch's number of samples; `position`, `epoch`, and `right` int64 and `loss` float64 are
    scalars, as is the learning rate, which the optimizer holds. `loss` sums the objective over the
    samples of the epoch so far, `right` counts the hits.

    Without augmentation, leading blocks that are held wholly see the same images in every epoch.
    Their output is computed once and kept, if it is small enough.

    Objectives that need more than the batch have kinds of their own
    (`leak_atlas.training.defences`): they draw further `tables`, have other `batches`, `prepare`
    the batch, have another `value` or `update` (by `phase`, that of the batch under way), or train
    another network or with another optimizer (`learners`). `others` are samples that are looked at
    beside the members; their places follow the members'.
    """

    # whether all steps of one size and phase do the same, so that one may be recorded
    recordable = True

    def __init__(self, objective: Objective, task: Task, others: Tensor | None = None) -> None:
        net, hold, data, members, schedule = (
            task.net,
            task.hold,
            task.data,
            task.members,
            task.schedule,
        )
        learning = [parameter for parameter in net.parameters() if parameter.requires_grad]
        if not learning:
            raise BadInput("everything is held: nothing is left to train")
        self.net, self.hold, self.data, self.objective = net, hold, data, objective
        self.n = len(members)
        self.samples = members if others is None else torch.cat([members, others])
        self.label = data.labels[members].cpu()
        self.batch, self.augment, self.phase, self.rho = (
            schedule.batch,
            schedule.augment,
            "",
            schedule.sharpness,
        )
        self.low = task.precision == "bf16"
        self.pool = task.samples.get("pool")
        self.diet, self.ranking = task.diet, None if task.ranking is None else task.ranking.cpu()
        ranked = self.diet is not None or objective.ranked
        if ranked and (
            self.ranking is None or self.ranking.shape != (self.n,) or self.ranking.isnan().any()
        ):
            raise BadInput("diets and RMR go by a ranking: give a number for each member")
        lengths = [len(self.visits(epoch)) for epoch in range(schedule.epochs)] or [self.n]
        if self.diet and (least := min(lengths)) < 2:
            raise BadInput(
                f"a diet of {least} members in epoch {1 + lengths.index(least)}: every epoch needs two"
            )
        self.optimizer = optimizer(schedule, learning)
        self.order = torch.zeros(
            4, 1 + objective.looks, max(lengths), dtype=torch.int64, device=data.device
        )
        self.ahead = torch.arange(max(lengths), device=data.device)
        self.position, self.epoch, self.right = torch.zeros(
            3, dtype=torch.int64, device=data.device
        ).unbind()
        self.loss = torch.zeros((), dtype=torch.float64, device=data.device)

        self.learned: Callable[[Tensor], Tensor] = net
        self.kept: Tensor | None = None
        frozen = nn.Sequential(*([] if self.augment else hold.leading()))
        if len(frozen):
            hold.train()
            with torch.no_grad(), float32(), self._autocast():
                if (
                    frozen(augmentation.plain(data, members[:1])).nbytes * len(self.samples)
                    <= CACHE
                ):
                    parts = [
                        frozen(augmentation.plain(data, rows)) for rows in self.samples.split(CHUNK)
                    ]
                    self.kept = torch.cat([_channels_last(part) for part in parts])
                    self.learned = nn.Sequential(
                        *[block for _, block in net.blocks()][len(frozen) :]
                    )

    def visits(self, epoch: int) -> Tensor:
        """The places among the members that an epoch visits, sorted, each as often as it is
        visited; on the CPU.
        """
        if self.diet is None or self.ranking is None:
            return torch.arange(self.n)
        return places(self.diet, self.ranking, self.label, epoch).sort().values

    def batches(self, epoch: int) -> Sequence[Batch]:
        """The batches of an epoch, in their order; asked once it has begun, of a recordable step at
        any time.
        """
        return [
            Batch(size)
            for size in sizes(len(self.visits(epoch)), self.batch)[: self.objective.batches]
        ]

    def tables(self, seed: int, epoch: int) -> augmentation.Tables:
        """The randomness of an epoch, on the CPU: the members' own tables, followed by those of
        each further look.
        """
        if self.pool is not None:  # in the order of the whole pool, the others skipped
            drawn = augmentation.tables(seed, epoch, len(self.pool), self.augment)
            index, members = self.pool[drawn.perm], self.samples[: self.n].cpu()
            own = torch.isin(index, members)
            kept = augmentation.Tables(*(column[own] for column in drawn))
            return kept._replace(perm=torch.searchsorted(members, index[own]))
        visits = self.visits(epoch)
        drawn = augmentation.tables(seed, epoch, len(visits), self.augment)
        return drawn._replace(perm=visits[drawn.perm])

    def begin(self, epoch: int, rate: float, tables: augmentation.Tables) -> None:
        """Lay out an epoch, counted from 0. The host does not wait."""
        order = torch.stack([column.to(torch.int64) for column in tables]).view(
            4, self.order.shape[1], -1
        )
        self.order[:, :, : order.shape[2]].copy_(order, non_blocking=True)
        self.epoch.fill_(epoch)
        for group in self.optimizer.param_groups:
            group["lr"].fill_(rate)
        for count in (self.position, self.loss, self.right):
            count.zero_()
        self.hold.train()

    def __call__(self, size: int, phase: str = "") -> None:
        """Learn from the next `size` samples."""
        self.phase = phase
        drawn = self.order[:, 0].index_select(1, self.ahead[:size] + self.position)
        labels = self.labels(drawn[0])
        with float32():
            self.prepare(size)
            logits = self.logits(self.images(drawn))
            value = self.value(size, drawn[0], logits, labels)
            self.optimizer.zero_grad(set_to_none=True)
            value.backward()  # type: ignore[no-untyped-call]
        if self.rho:
            self.sharpen(size, drawn, labels)
        self.update()
        self.hold.impose()
        self.position.add_(size)
        self.loss.add_(value.detach(), alpha=size)
        self.right.add_((logits.detach().argmax(dim=1) == labels).sum())

    def prepare(self, size: int) -> None:
        """What comes before the network learns from the next `size` samples."""

    def value(self, size: int, places: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        """The objective on these `size` samples at `places (size,)`, a float32 scalar."""
        return loss(self.objective, logits.float(), labels, self.epoch)

    def sharpen(self, size: int, drawn: Tensor, labels: Tensor) -> None:
        """SAM (Foret et al. 2021): replaces the gradients by those at the weights + rho * gradient
        / its norm.

        The norm is over all weights that are free, and what is held stays where it is. The second
        pass sees the same batch and leaves BatchNorm's statistics alone. Weight decay is the
        optimizer's, at the weights themselves.
        """
        learning = [parameter for parameter in self.net.parameters() if parameter.grad is not None]
        with torch.no_grad():
            for tensor, mask, _ in self.hold.pinned:
                if tensor.grad is not None:
                    tensor.grad.masked_fill_(mask, 0)
            up: list[Tensor] = [parameter.grad for parameter in learning]  # type: ignore[misc]
            scale = self.rho / (torch.stack([part.norm() for part in up]).norm() + 1e-12)
            before = [parameter.clone() for parameter in learning]
            for parameter, part in zip(learning, up, strict=True):
                parameter.addcmul_(part, scale)
        self.optimizer.zero_grad(set_to_none=True)
        with float32(), untracked(self.net):
            self.value(size, drawn[0], self.logits(self.images(drawn)), labels).backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for parameter, value in zip(learning, before, strict=True):
                parameter.copy_(value)

    def update(self) -> None:
        """Changes the weights by the gradients, which are there."""
        self.optimizer.step()

    def beside(self, size: int) -> Tensor:
        """The tables `(4, looks, size)` of what is only looked at, beside the next `size` samples."""
        return self.order[:, 1:].index_select(2, self.ahead[:size] + self.position)

    def labels(self, places: Tensor) -> Tensor:
        return self.data.labels.index_select(0, self.samples.index_select(0, places))

    def images(self, drawn: Tensor, plain: bool = False) -> Tensor:
        """What the learning blocks see of `drawn (4, B)`; `plain` leaves the augmentation out."""
        places, dy, dx, flip = drawn
        if self.kept is not None:
            return _channels_first(self.kept.index_select(0, places))
        index = self.samples.index_select(0, places)
        if self.augment is None or plain:
            return augmentation.plain(self.data, index)
        return augmentation.gather(self.data, index, dy, dx, flip, self.augment.crop)

    def logits(self, x: Tensor) -> Tensor:
        with self._autocast():
            return self.learned(x)

    def measures(self) -> dict[str, float]:
        """Further values of the epoch's history, by name, beside loss, accuracy and rate; asked at
        the epoch's end.
        """
        return {}

    def learners(self) -> list[tuple[nn.Module, torch.optim.Optimizer]]:
        """Each network that a step changes, and an optimizer of it."""
        return [(self.net, self.optimizer)]

    def _autocast(self) -> torch.autocast:
        # Every weight is cast once a step: a cache of casts would save nothing, and must not
        # outlive a recording.
        return torch.autocast(
            self.data.device.type, torch.bfloat16, enabled=self.low, cache_enabled=False
        )

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """What steps inside do to weights, statistics, optimizer and counts is undone: in place, to
        the last bit.

        For use before the first step of a training only: the optimizers' states are set to zeros,
        as they are at first.
        """
        own = [self.position, self.loss, self.right]
        for network, _ in self.learners():
            own += [*network.parameters(), *network.buffers()]
        before = [tensor.detach().clone() for tensor in own]
        try:
            yield
        finally:
            with torch.no_grad():
                for tensor, value in zip(own, before, strict=True):
                    tensor.copy_(value)
                for _, optimizer in self.learners():
                    optimizer.zero_grad(set_to_none=True)
                    for state in optimizer.state.values():
                        for value in state.values():
                            value.zero_()


@contextlib.contextmanager
def untracked(net: nn.Module) -> Iterator[None]:
    """BatchNorm normalises as it does in training, while its statistics stay as they are."""
    tracking = [
        module for module in net.modules() if isinstance(module, nn.BatchNorm2d) and module.training
    ]
    try:
        for module in tracking:
            module.track_running_stats = False
        yield
    finally:
        for module in tracking:
            module.track_running_stats = True


def sizes(n: int, batch: int) -> list[int]:
    """Sizes of the batches that cover n samples: the last may be smaller; a single sample joins the
    one before it.
    """
    found = [min(batch, n - start) for start in range(0, n, batch)]
    return [*found[:-2], batch + 1] if len(found) > 1 and found[-1] == 1 else found


def float32() -> contextlib.AbstractContextManager[None]:
    """float32 that is not silently TF32; cuDNN's other switches stay as they are."""
    now = torch.backends.cudnn
    return now.flags(True, now.benchmark, now.benchmark_limit, now.deterministic, allow_tf32=False)


def _channels_last(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).contiguous() if x.dim() == 4 else x


def _channels_first(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2) if x.dim() == 4 else x
