"""The one training loop."""

import itertools
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from lib import BadInput
from lib.data.resident import Resident
from lib.models import Net
from lib.recipe import CrossEntropy, Objective, Schedule
from lib.training import signals
from lib.training.defences import step_for
from lib.training.graph import recorded
from lib.training.held import holding
from lib.training.schedule import rate
from lib.training.step import Task

State = dict[str, Tensor]
Plan = Literal["eager", "graph"]
Lane = torch.cuda.Stream | None
P = ParamSpec("P")
T = TypeVar("T")


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
    they came), `rate` (learning rate), where there is a dev set `dev_accuracy`, and of a DPSGD `epsilon`: what its
    steps have spent, a guarantee only if the weights that they began with and the masks owe nothing to the members.
    """

    states: dict[int | str, State]
    history: dict[str, np.ndarray] = field(default_factory=dict)


# A training that is under way: each `next` is a step, and it returns what it leaves behind.
Training = Generator[None, None, Trajectory]


def training(
    net: Net,
    data: Resident,
    members: Tensor,
    schedule: Schedule,
    objective: Objective | None = None,
    *,
    seed: int,
    held: Mapping[str, Tensor] | None = None,
    dev: Tensor | None = None,
    reference: Tensor | None = None,
    soft: Tensor | None = None,
    precision: str = "fp32",
    wanted: Collection[int | str] = (),
    on_epoch: Callable[[int], None] | None = None,
    plan: Plan | None = None,
) -> Training:
    """Trains `net` on samples `members (n,)` of `data`, which lies on the net's device; for `fit` or `fit_many`.

    `held` maps state-dict names to Boolean masks of the tensor's shape; what is True there has the same bits after
    every step. `dev (m,)` are the samples that a schedule with a patience looks at, `reference (r,)` the non-members of
    adversarial regularization and PAST, `soft (n, C)` the members' labels of a distillation. `precision="bf16"`
    computes the network under autocast; weights and losses stay float32. Order and augmentation depend on `seed`
    alone. `on_epoch` is called with the number of each finished epoch, from 1. `plan` is how steps are run: one by
    one ("eager", the reference) or from a recording ("graph", for CUDA, where it is the default).

    The last, smaller batch of an epoch is kept; a single left-over sample joins the batch before it, because
    BatchNorm has no variance of one. The net ends in its last state, in evaluation mode and without gradients.

    Pauses after each step. Raises Diverged, and BadInput where the arguments contradict each other.
    """
    if len(members) < 2 or schedule.batch < 2:
        raise BadInput(f"a training needs two samples and a batch of two, not {len(members)} and {schedule.batch}")
    if schedule.patience is not None and dev is None:
        raise BadInput("a schedule with a patience needs a design with a dev set")

    cuda = data.device.type == "cuda"
    members = members.to(data.device)
    dev = None if dev is None else dev.to(data.device)
    objective = objective or CrossEntropy()
    sizes = [part.stop - part.start for part in batches(len(members), schedule.batch)][: objective.batches]
    states: dict[int | str, State] = {}
    if "init" in wanted:
        states["init"] = _copy(net)
    rows: list[dict[str, float]] = []
    best, best_epoch, best_state = -1.0, 0, None

    with holding(net, held or {}) as hold:
        step = step_for(Task(net, hold, data, members, schedule, objective, precision, seed), reference, soft)
        tables = step.tables(seed, 0)
        step.begin(0, rate(schedule, 0), tables)
        if plan == "graph" and not step.recordable:
            raise BadInput(f"the steps of {type(objective).__name__} differ in size: run them one by one (eager)")
        take = recorded(step, set(sizes)) if step.recordable and (plan == "graph" or (plan is None and cuda)) else step
        for epoch in range(schedule.epochs):
            learning_rate = rate(schedule, epoch)
            step.begin(epoch, learning_rate, tables)
            for size in sizes:
                take(size)
                yield
            tables = step.tables(seed, epoch + 1)  # while the device works
            while cuda and not torch.cuda.current_stream(data.device).query():
                yield
            seen = max(1, int(step.position))  # a Poisson sample may be empty
            row = {"loss": float(step.loss) / seen, "accuracy": int(step.right) / seen, "rate": learning_rate}
            if not np.isfinite(row["loss"]):
                raise Diverged(epoch + 1)
            row |= step.told()
            if dev is not None:
                row["dev_accuracy"] = signals.accuracy(net, data, dev)
                if row["dev_accuracy"] > best:
                    best, best_epoch = row["dev_accuracy"], epoch
                    best_state = _copy(net) if schedule.patience is not None else None
            rows.append(row)
            if epoch + 1 in wanted:
                states[epoch + 1] = _copy(net)
            if on_epoch:
                on_epoch(epoch + 1)
            if schedule.patience is not None and epoch - best_epoch > schedule.patience:
                break
        net.zero_grad(set_to_none=True)

    if best_state is not None:
        net.load_state_dict(best_state)
    states["last"] = _copy(net)
    if not all(torch.isfinite(value).all() for value in states["last"].values()):
        raise Diverged(len(rows))
    net.eval()
    return Trajectory(states, {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())})


def _finished(start: Callable[P, Training]) -> Callable[P, Trajectory]:
    def fit(*args: P.args, **options: P.kwargs) -> Trajectory:
        ((_, outcome),) = fit_many([start(*args, **options)])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return fit


# Trains from the start to the end; arguments and errors are those of `training`.
fit = _finished(training)


def fit_many(trainings: Iterable[Generator[None, None, T]], streams: int = 1) -> Iterator[tuple[int, T | Exception]]:
    """Number in the given order and outcome of each training, as they end; an error ends none but its own.

    On CUDA `streams` of them are under way at a time, each on a stream of its own; elsewhere one after the other. A
    training is taken from `trainings` when its turn comes, so that its network may be made as late as that. What a
    training yields does not depend on which others run beside it. Whatever pauses as a `Training` does may be given.
    """
    lanes: list[Lane] = [None]
    if torch.cuda.is_available():
        lanes = [torch.cuda.Stream() for _ in range(streams)]
    return _in_turn(enumerate(trainings), lanes)


def _in_turn(
    waiting: Iterator[tuple[int, Generator[None, None, T]]], lanes: list[Lane]
) -> Iterator[tuple[int, T | Exception]]:
    """A step of each training under way, again and again: the queue of no stream runs dry while another's is full."""
    free, under_way = list(lanes), list[tuple[int, Generator[None, None, T], Lane]]()
    while True:
        for number, one in itertools.islice(waiting, len(free)):
            lane = free.pop()
            if lane is not None:
                lane.wait_stream(torch.cuda.current_stream())  # which made the network
            under_way.append((number, one, lane))
        if not under_way:
            return
        for entry in list(under_way):
            number, one, lane = entry
            outcome: T | Exception
            try:
                with torch.cuda.stream(lane):
                    next(one)
                continue
            except StopIteration as end:
                outcome = end.value
            except Exception as error:
                outcome = error
            under_way.remove(entry)
            free.append(lane)
            yield number, outcome


def batches(n: int, batch: int) -> list[slice]:
    """Slices of at most `batch` samples that cover n; a single left-over sample joins the batch before it."""
    stops = [*range(batch, n, batch), n]
    if len(stops) > 1 and n - stops[-2] == 1:
        del stops[-2]
    return [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]


def _copy(net: nn.Module) -> State:
    return {
        name: value.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, value in net.state_dict().items()
    }
