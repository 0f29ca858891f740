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

# Samples cut and normalised at once: enough to make the cost of the calls vanish, few enough to stay in a cache.
CHUNK = 1024


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

    device = data.device
    members = members.to(device)
    dev = None if dev is None else dev.to(device)
    states: dict[int | str, State] = {}
    if "init" in wanted:
        states["init"] = _copy(net)
    rows: list[tuple[float, ...]] = []
    best, best_epoch, best_state = -1.0, 0, None

    with _holding(net, held) as hold:
        steps = optimizer(schedule, [p for p in net.parameters() if p.requires_grad])
        for epoch in range(schedule.epochs):
            learning_rate = rate(schedule, epoch)
            for group in steps.param_groups:
                group["lr"] = learning_rate
            hold.train()
            losses, correct = _epoch(net, data, members, schedule, objective, epoch, seed, steps, hold, precision)
            row = [losses, correct / len(members), learning_rate]
            if not np.isfinite(losses):
                raise Diverged(epoch + 1)
            if dev is not None:
                row.append(signals.accuracy(net, data, dev))
                if row[-1] > best:
                    best, best_epoch = row[-1], epoch
                    best_state = _copy(net) if schedule.patience is not None else None
            rows.append(tuple(row))
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


def _epoch(
    net: Net,
    data: Resident,
    members: Tensor,
    schedule: Schedule,
    objective: Objective,
    epoch: int,
    seed: int,
    steps: torch.optim.Optimizer,
    hold: "_Hold",
    precision: str,
) -> tuple[float, float]:
    """One epoch; the mean loss and the number of samples that were right as they came."""
    table = augmentation.tables(seed, epoch, len(members), schedule.augment)
    perm, dy, dx, flip = (column.to(data.device, non_blocking=True) for column in table)
    index = members[perm]
    labels = data.labels[index]
    losses: list[Tensor] = []
    right: list[Tensor] = []
    sizes: list[int] = []
    low = precision == "bf16"
    for part in batches(len(members), schedule.batch):
        if schedule.augment is None:
            x = augmentation.plain(data, index[part])
        else:
            x = augmentation.gather(data, index[part], dy[part], dx[part], flip[part], schedule.augment.crop)
        y = labels[part]
        with torch.autocast(data.device.type, torch.bfloat16, enabled=low):
            logits = net(x)
        value = objective_loss(objective, logits, y, epoch)
        steps.zero_grad(set_to_none=True)
        value.backward()
        steps.step()
        hold.impose()
        losses.append(value.detach())
        right.append(logits.detach().argmax(dim=1))
        sizes.append(len(y))
    weights = torch.tensor(sizes, dtype=torch.float64)
    mean = float((torch.stack(losses).double().cpu() * weights).sum() / weights.sum())
    return mean, float((torch.cat(right) == labels).sum())


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
