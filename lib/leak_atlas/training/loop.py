"""The one training loop."""

import itertools
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leak_atlas.data.resident import Resident
from leak_atlas.models import Net
from leak_atlas.models.net import Tensors
from leak_atlas.recipe import CrossEntropy, Objective, Schedule
from leak_atlas.recipe.sampling import Sampling
from leak_atlas.training import answers
from leak_atlas.training.defences import update_for
from leak_atlas.training.frozen import freezing
from leak_atlas.training.graph import recorded
from leak_atlas.training.schedule import rate
from leak_atlas.training.update import Batch, Task, Update

Mode = Literal["eager", "graph"]
Lane = torch.cuda.Stream | None
T = TypeVar("T")


class Diverged(RuntimeError):
    """The loss or a weight is no longer a finite number. Another run would give the same."""

    def __init__(self, epoch: int) -> None:
        super().__init__(
            f"training diverged in epoch {epoch}: its loss or a weight is not a finite number"
        )
        self.epoch = epoch


class Trajectory(NamedTuple):
    """The result of a training.

    `states`: by "init", epoch number (from 1) or "last", the wanted states and always "last";
    contiguous CPU tensors by state-dict name. With a patience "last" is the best epoch on dev, and
    epochs after the stop are missing. `history`: `(epochs,)` arrays `loss` (the objective's mean
    over the samples), `accuracy` (on the training batches, before each step), `rate` (learning
    rate), `dev_accuracy` with a patience, and `epsilon` with DPSGD: the privacy budget spent so
    far, a guarantee only if the initial weights and the masks do not depend on the members.
    """

    states: dict[int | str, Tensors]
    history: dict[str, NDArray]


# A running training: each `next` takes a step, and the last one returns the trajectory.
Training = Generator[None, None, Trajectory]


def training(
    net: Net,
    data: Resident,
    members: Tensor,
    schedule: Schedule,
    objective: Objective | None = None,
    *,
    seed: int,
    frozen: Tensors | None = None,
    samples: Tensors | None = None,
    soft: Tensor | None = None,
    sampling: Sampling | None = None,
    ranking: Tensor | None = None,
    precision: str = "fp32",
    wanted: Collection[int | str] = (),
    on_epoch: Callable[[int], None] | None = None,
    plan: Mode | None = None,
) -> Training:
    """Trains `net` on samples `members (n,)` of `data`, which lies on the net's device; for `fit`
    or `fit_many`.

    `frozen` maps state-dict names to Boolean masks of the tensor's shape; values under True keep
    their bits in every step. `samples` are further samples by role: "dev" for a schedule with a
    patience, "reference" as non-members of adversarial regularization and PAST. `soft (n, C)` are
    the members' soft labels for distillation. A `sampling` selects the members of each epoch by
    `ranking (n,)`, a score of each member; without one each epoch visits every member once.
    `precision="bf16"` computes the network under autocast; weights and losses stay float32. Order
    and augmentation depend on `seed` and on the members that the epoch visits. `plan` "eager" runs
    each step (the reference), "graph" replays recorded steps (CUDA only, the default there).

    `on_epoch` is called with the number of each finished epoch, from 1. At that time all steps of
    the epoch are done, on CUDA too, and the training's stream is the current one. `net` has the
    weights and statistics of the epoch's end. The callback may read them, by `net.state_dict()` or
    `leak_atlas.training.answers`, but must not change them.

    The last batch of an epoch may be smaller; a single left-over sample joins the batch before it,
    because BatchNorm needs two samples. The net ends in its last state, in evaluation mode and
    without gradients.

    Pauses after each step. Raises Diverged.
    """
    objective = objective or CrossEntropy()
    samples = samples or {}
    states: dict[int | str, Tensors] = {"init": _copy(net)} if "init" in wanted else {}
    rows: list[dict[str, float]] = []
    best: Tensors | None = None

    with freezing(net, frozen or {}) as kept:
        task = Task(
            net=net,
            frozen=kept,
            data=data,
            members=members.to(data.device),
            schedule=schedule,
            precision=precision,
            seed=seed,
            samples=samples,
            soft=soft,
            sampling=sampling,
            ranking=ranking,
        )
        step = update_for(objective, task)
        tables = step.tables(seed, 0)
        # A step is recorded with the tables and the learning rate of the first epoch.
        step.begin(0, rate(schedule, 0), tables)
        take = _taker(step, plan, schedule.epochs)
        for epoch in range(schedule.epochs):
            step.begin(epoch, rate(schedule, epoch), tables)
            for batch in step.batches(epoch):
                take(*batch)
                yield
            if epoch + 1 < schedule.epochs:
                tables = step.tables(seed, epoch + 1)  # while the device works
            while data.device.type == "cuda" and not torch.cuda.current_stream(data.device).query():
                yield
            rows.append(_row(step, epoch, rate(schedule, epoch)))
            if epoch + 1 in wanted:
                states[epoch + 1] = _copy(net)
            if on_epoch:
                on_epoch(epoch + 1)
            if schedule.patience is not None:
                rows[-1]["dev_accuracy"] = answers.accuracy(net, data, samples["dev"])
                accuracies = [row["dev_accuracy"] for row in rows]
                best_epoch = int(np.argmax(accuracies))  # the first of equally good epochs
                if best_epoch == epoch:
                    best = _copy(net)
                if epoch - best_epoch > schedule.patience:
                    break
        net.zero_grad(set_to_none=True)

    if best is not None:
        net.load_state_dict(best)
    states["last"] = _copy(net)
    if not all(torch.isfinite(value).all() for value in states["last"].values()):
        raise Diverged(len(rows))
    net.eval()
    history = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Trajectory(states, history)


def _taker(
    step: Update,
    plan: Mode | None,
    epochs: int,
) -> Callable[[int, str], None]:
    """The function that takes a step under the plan: the step itself, or recordings of all kinds of
    batches of all epochs.
    """
    if plan is None:
        plan = "graph" if step.recordable and step.data.device.type == "cuda" else "eager"
    if plan == "eager":
        return step
    kinds: dict[Batch, None] = {}  # in the order of their first use
    for epoch in range(epochs):
        kinds |= dict.fromkeys(step.batches(epoch))
    return recorded(step, kinds)


def _row(step: Update, epoch: int, learning_rate: float) -> dict[str, float]:
    """The history of the epoch that has just ended. Diverged where its loss is not finite."""
    seen = max(1, int(step.position))  # a Poisson sample may be empty
    row = {
        "loss": float(step.loss) / seen,
        "accuracy": int(step.right) / seen,
        "rate": learning_rate,
    }
    if not np.isfinite(row["loss"]):
        raise Diverged(epoch + 1)
    return row | step.measures()


def fit(*args: Any, **options: Any) -> Trajectory:
    """Trains from the start to the end; arguments and errors are those of `training`."""
    ((_, outcome),) = fit_many([training(*args, **options)])
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def fit_many(
    trainings: Iterable[Generator[None, None, T]], streams: int = 1
) -> Iterator[tuple[int, T | Exception]]:
    """Number (in the given order) and outcome of each training, as the trainings end. An error ends
    only its own training.

    On CUDA `streams` trainings run at a time, each on its own stream; on the CPU they run one after
    the other. A training is taken from `trainings` when a stream is free; its network may be built
    then. The result of a training does not depend on the others. `trainings` may hold any
    generators that pause as a `Training` does.
    """
    lanes: list[Lane] = [None]
    if torch.cuda.is_available():
        lanes = [torch.cuda.Stream() for _ in range(streams)]
    return _in_turn(enumerate(trainings), lanes)


def _in_turn(
    waiting: Iterator[tuple[int, Generator[None, None, T]]], lanes: list[Lane]
) -> Iterator[tuple[int, T | Exception]]:
    """Takes a step of each running training in turn, so that every stream always has work."""
    free = list(lanes)
    running: list[tuple[int, Generator[None, None, T], Lane]] = []
    while True:
        for number, run in itertools.islice(waiting, len(free)):
            lane = free.pop()
            if lane is not None:
                lane.wait_stream(torch.cuda.current_stream())  # on which the network was built
            running.append((number, run, lane))
        if not running:
            return
        for entry in list(running):
            number, run, lane = entry
            outcome: T | Exception
            try:
                with torch.cuda.stream(lane):
                    next(run)
                continue
            except StopIteration as end:
                outcome = end.value
            except Exception as error:
                outcome = error
            running.remove(entry)
            free.append(lane)
            yield number, outcome


def _copy(net: nn.Module) -> Tensors:
    """The network's state as contiguous tensors on the CPU."""
    return {
        name: value.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, value in net.state_dict().items()
    }
