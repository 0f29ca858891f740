"""The one training loop."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from lib import BadInput
from lib.data import augmentation
from lib.data.resident import Resident
from lib.models import Net
from lib.recipe import CrossEntropy, Objective, Schedule
from lib.training import signals
from lib.training.objectives import loss as objective_loss
from lib.training.schedule import optimizer, rate

State = dict[str, Tensor]

# Samples cut and normalised at once, in whole batches: enough to make the cost of the calls vanish.
CHUNK = 512

# What the held first parts of a network make of the training samples is kept where it takes no more bytes than this.
CACHE = 2**28


class Diverged(RuntimeError):
    """The loss or a weight is no longer a finite number. To train again would give the same."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"training diverged in epoch {epoch}: its loss or a weight is not a finite number")
        self.epoch = epoch


@dataclass
class Trajectory:
    """What a training left behind.

    `states`: by "init", epoch number (from 1) or "last", whatever was wanted and "last" always; contiguous CPU tensors
    by state-dict name. With a patience "last" is the best epoch on dev, and epochs that were not reached are missing.
    `history`: `(epochs,)` arrays `loss` (the objective's mean over the samples), `accuracy` (on the training batches as
    they came), `rate` (learning rate) and, where there is a dev set, `dev_accuracy`.
    """

    states: dict[int | str, State]
    history: dict[str, np.ndarray] = field(default_factory=dict)


def fit(
    net: Net,
    data: Resident,
    members: Tensor,
    schedule: Schedule,
    objective: Objective | None = None,
    *,
    seed: int,
    held: Mapping[str, Tensor] | None = None,
    dev: Tensor | None = None,
    precision: str = "fp32",
    wanted: Collection[int | str] = (),
    on_epoch: Callable[[int], None] | None = None,
) -> Trajectory:
    """Train `net` on samples `members (n,)` of `data`, which lies on the net's device.

    `held` maps state-dict names to Boolean masks of the tensor's shape; what is True there has the same bits after
    every step. `dev (m,)` are the samples that a schedule with a patience looks at. `precision="bf16"` computes
    the network under autocast; weights and losses stay float32. Order and augmentation depend on `seed`
    alone. `on_epoch` is called with the number of each finished epoch, from 1.

    The last, smaller batch of an epoch is kept; a single left-over sample joins the batch before it, because
    BatchNorm has no variance of one. The net ends in its last state and in evaluation mode.

    Raises Diverged, and BadInput where the arguments contradict each other.
    """
    objective = objective or CrossEntropy()
    held = held or {}
    if len(members) < 2 or schedule.batch < 2:
        raise BadInput(f"a training needs two samples and a batch of two, not {len(members)} and {schedule.batch}")
    if schedule.patience is not None and dev is None:
        raise BadInput("a schedule with a patience needs a design with a dev set")

    members = members.to(data.device)
    dev = None if dev is None else dev.to(data.device)
    states: dict[int | str, State] = {}
    if "init" in wanted:
        states["init"] = _copy(net)
    rows: list[tuple[float, ...]] = []
    best, best_epoch, best_state = -1.0, 0, None

    with _holding(net, held) as hold:
        learning = [parameter for parameter in net.parameters() if parameter.requires_grad]
        if not learning:
            raise BadInput("everything is held: nothing is left to train")
        steps = optimizer(schedule, learning)
        hold.train()
        source = _Source(net, hold, data, members, schedule, precision)
        for epoch in range(schedule.epochs):
            learning_rate = rate(schedule, epoch)
            for group in steps.param_groups:
                group["lr"] = learning_rate
            hold.train()
            row: tuple[float, ...] = (*_epoch(source, hold, steps, objective, epoch, seed), learning_rate)
            if not np.isfinite(row[0]):
                raise Diverged(epoch + 1)
            if dev is not None:
                row = (*row, signals.accuracy(net, data, dev))
                if row[-1] > best:
                    best, best_epoch = row[-1], epoch
                    best_state = _copy(net) if schedule.patience is not None else None
            rows.append(row)
            if epoch + 1 in wanted:
                states[epoch + 1] = _copy(net)
            if on_epoch:
                on_epoch(epoch + 1)
            if schedule.patience is not None and epoch - best_epoch > schedule.patience:
                break

    if best_state is not None:
        net.load_state_dict(best_state)
    states["last"] = _copy(net)
    if not all(torch.isfinite(value).all() for value in states["last"].values()):
        raise Diverged(len(rows))
    net.eval()
    names = ("loss", "accuracy", "rate", "dev_accuracy")
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 4 if dev is not None else 3)
    return Trajectory(states, dict(zip(names, table.T, strict=False)))


def batches(n: int, batch: int) -> list[slice]:
    """Slices of at most `batch` samples that cover n; a single left-over sample joins the batch before it."""
    stops = [*range(batch, n, batch), n]
    if len(stops) > 1 and n - stops[-2] == 1:
        del stops[-2]
    return [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]


class _Source:
    """Makes logits of the training samples, batch after batch, in a given order.

    Without augmentation, leading blocks that are held wholly see the same images in every epoch; what they make of
    them is computed once and kept, if it is small enough.
    """

    def __init__(
        self, net: Net, hold: "_Hold", data: Resident, members: Tensor, schedule: Schedule, precision: str
    ) -> None:
        self.data, self.members, self.schedule = data, members, schedule
        self.low = precision == "bf16"
        self.learned: list[nn.Module] = [net]
        self.kept: Tensor | None = None
        frozen = [] if schedule.augment else hold.leading()
        if frozen:
            with torch.no_grad(), self._autocast():
                if _apply(frozen, augmentation.plain(data, members[:1])).nbytes * len(members) <= CACHE:
                    parts = [_apply(frozen, augmentation.plain(data, rows)) for rows in members.split(CHUNK)]
                    self.kept = torch.cat([_channels_last(part) for part in parts])
                    self.learned = [block for _, block in net.blocks()][len(frozen) :]

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.data.device.type, torch.bfloat16, enabled=self.low)

    def epoch(self, seed: int, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits and labels of each batch."""
        table = augmentation.tables(seed, epoch, len(self.members), self.schedule.augment)
        perm, dy, dx, flip = (column.to(self.data.device, non_blocking=True) for column in table)
        index = self.members[perm]
        labels = self.data.labels[index]
        slices = batches(len(index), self.schedule.batch)
        together = max(1, CHUNK // self.schedule.batch)
        for first in range(0, len(slices), together):
            group = slices[first : first + together]
            part = slice(group[0].start, group[-1].stop)
            if self.kept is not None:
                x = _channels_first(self.kept.index_select(0, perm[part]))
            elif self.schedule.augment is None:
                x = augmentation.plain(self.data, index[part])
            else:
                x = augmentation.gather(
                    self.data, index[part], dy[part], dx[part], flip[part], self.schedule.augment.crop
                )
            sizes = [own.stop - own.start for own in group]
            for batch, own in zip(x.split(sizes), labels[part].split(sizes), strict=True):
                with self._autocast():
                    logits = _apply(self.learned, batch)
                yield logits, own


def _apply(modules: list[nn.Module], x: Tensor) -> Tensor:
    for module in modules:
        x = module(x)
    return x


def _channels_last(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).contiguous() if x.dim() == 4 else x


def _channels_first(x: Tensor) -> Tensor:
    return x.permute(0, 3, 1, 2) if x.dim() == 4 else x


def _epoch(
    source: _Source, hold: "_Hold", steps: torch.optim.Optimizer, objective: Objective, epoch: int, seed: int
) -> tuple[float, float]:
    """One epoch: its mean loss, and the accuracy on its batches as they came. The host waits for the device once."""
    losses: list[Tensor] = []
    right: list[Tensor] = []
    sizes: list[int] = []
    for logits, labels in source.epoch(seed, epoch):
        value = objective_loss(objective, logits, labels, epoch)
        steps.zero_grad(set_to_none=True)
        value.backward()
        steps.step()
        hold.impose()
        losses.append(value.detach())
        right.append(logits.detach().argmax(dim=1) == labels)
        sizes.append(len(labels))
    weights = torch.tensor(sizes, dtype=torch.float64) / sum(sizes)
    means = torch.stack([torch.stack(losses).double().cpu() @ weights, torch.cat(right).double().mean().cpu()])
    return float(means[0]), float(means[1])


def _copy(net: nn.Module) -> State:
    return {
        name: value.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, value in net.state_dict().items()
    }


class _Hold:
    """Keeps held weights and statistics still: re-imposes them after every step, and tells BatchNorm not to learn."""

    def __init__(self, net: Net, held: Mapping[str, Tensor]) -> None:
        own = dict(net.named_parameters()) | dict(net.named_buffers())
        for name, mask in held.items():
            if name not in own:
                raise BadInput(f"the network has no tensor '{name}' to hold")
            if mask.dtype != torch.bool or mask.shape != own[name].shape:
                raise BadInput(f"the mask of '{name}' must be Boolean of shape {tuple(own[name].shape)}")
        whole = {name for name, mask in held.items() if bool(mask.all())}
        self.net = net
        self.whole = whole
        self.still = [own[name] for name in whole if isinstance(own[name], nn.Parameter) and own[name].requires_grad]
        self.fixed = [
            module
            for name, module in net.named_modules()
            if isinstance(module, nn.BatchNorm2d) and {f"{name}.running_mean", f"{name}.running_var"} <= whole
        ]
        untouched = {id(tensor) for tensor in self.still}
        for module in self.fixed:
            untouched |= {id(buffer) for buffer in module.buffers()}
        self.pinned = [
            (own[name], mask.to(own[name].device), own[name].detach().clone())
            for name, mask in held.items()
            if id(own[name]) not in untouched and bool(mask.any())
        ]

    def leading(self) -> list[nn.Module]:
        """The blocks at the network's beginning that are held wholly, statistics included, and draw nothing."""
        found: list[nn.Module] = []
        for name, block in self.net.blocks():
            tensors = [f"{name}.{own}" for own in block.state_dict()]
            still = all(tensor in self.whole or tensor.endswith("num_batches_tracked") for tensor in tensors)
            if not still or any(isinstance(module, nn.Dropout) for module in block.modules()):
                break
            found.append(block)
        return found

    def train(self) -> None:
        self.net.train()
        for module in self.fixed:
            module.eval()

    def impose(self) -> None:
        with torch.no_grad():
            for tensor, mask, value in self.pinned:
                torch.where(mask, value, tensor, out=tensor)


@contextlib.contextmanager
def _holding(net: Net, held: Mapping[str, Tensor]) -> Iterator[_Hold]:
    """Tensors that are held wholly need no gradient (their backward pass is saved) while this lasts."""
    hold = _Hold(net, held)
    try:
        for tensor in hold.still:
            tensor.requires_grad_(False)
        yield hold
    finally:
        for tensor in hold.still:
            tensor.requires_grad_(True)
