"""What a step costs, in core-seconds: as such steps took here, counted where none was seen."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from statistics import median
from typing import NamedTuple

from leak_atlas import BadInput
from leak_atlas.engine import files, paths
from leak_atlas.recipe import Architecture, Data, State, Step, Train


class Pace(NamedTuple):
    """Seconds that a device takes. The core's are measured on eight small networks, the GPU's are
    a guess."""

    operation: float  # one that is not a network's: of small arrays
    flop: float
    kernel: float  # a call of one
    number: float  # that a kernel hands on


CORE = Pace(1 / 3.5e10, 1 / 1.5e11, 1.9e-5, 1.4e-9)
GPU = Pace(1e-13, 1e-13, 4e-6, 2e-12)
BESIDE = 40  # kernels of a batch that are not its network's: gathering, the loss, the optimizer
ANSWERED = 250  # samples of a batch that is not learnt from
JOB = 0.02  # seconds that any job costs
FILE = "seconds.json"  # in the store
TELLING = 3  # jobs from which their median counts; fewer may be those that load torch and data

Seen = dict[str, dict[str, float]]


@cache
def counted(what: str, data: Data, model: Architecture, start: str | None = None) -> float:
    """`parameters`, or of one sample `activations` or forward `flops`, `kernels`, `numbers`, from
    part `start` on."""
    from leak_atlas.training.cost import anatomy

    counts = anatomy(model, data.channels, data.classes, data.size)
    parts = [str(part).split(".")[0] for part in counts["parts"]]
    part = start.split(".")[0] if start else ""
    first = parts.index(part) if part in parts else 0  # a user's module is one part
    return float(sum(counts[what][first:]))


def work(step: Step) -> float:
    """Floating point operations of a step, forward and backward; what is cheap counts as
    nothing."""
    return step.operations(counted)


@cache
def _sample(
    pace: Pace, batch: int, what: str, data: Data, model: Architecture, start: str | None = None
) -> float:
    """As `counted`, but for a sample's flops the operations that take as long as its share of a
    batch."""
    if what != "flops":
        return counted(what, data, model, start)
    count = partial(counted, data=data, model=model, start=start)
    kernels = (count("kernels") + BESIDE) / batch
    seconds = count("flops") * pace.flop + kernels * pace.kernel + count("numbers") * pace.number
    return seconds / pace.operation


def _guess(step: Step, device: str) -> float:
    """Seconds of a step on a device of which nothing is known."""
    pace = CORE if device == "cpu" else GPU
    batch = step.schedule.batch if isinstance(step, Train) else ANSWERED
    return step.operations(partial(_sample, pace, batch)) * pace.operation + JOB


def training(step: Step) -> Train | None:
    """The training of the network that a step looks at first."""
    behind: Step | None = step
    while behind and not isinstance(behind, State):
        behind = next(Step.parents(behind), None)
    return behind.training if isinstance(behind, State) else None


def _sort(step: Step) -> str:
    """The kind of a step and its network: such steps take as many times their guess."""
    of = training(step)
    return f"{step.recorded} {of.model}" if of else step.recorded


def _device(step: Step) -> str:
    if step.place == "host":
        return "cpu"
    # asks torch, which is here if such a step can be done
    from leak_atlas.models.subject import device_name

    return device_name()


def pricing() -> Callable[[Step], float]:
    """A function that gives the core-seconds of a step on this machine: its guess, times how wrong
    the guess was of such steps, else of all steps."""
    seen = factors()
    usual = {device: median(known.values()) for device, known in seen.items() if known}

    def price(step: Step) -> float:
        device = _device(step)
        factor = seen.get(device, {}).get(_sort(step), usual.get(device, 1.0))
        return _guess(step, device) * factor

    return price


def factors() -> Seen:
    """Seconds over the guess, by device and sort of step, in the last run that had some of it.

    A damaged file counts as none.
    """
    path = paths.store() / FILE
    try:
        return files.from_json(files.text(path), path, Seen) if path.exists() else {}
    except BadInput:
        return {}


def remember(done: Iterable[tuple[list[Step], str, float]]) -> None:
    """Keeps for the next preview how long jobs took: their steps, their device, their seconds.

    The median of a run's jobs: one that loads torch does not spoil it.
    """
    found = defaultdict[tuple[str, str], list[float]](list)
    for steps, device, seconds in done:
        guess = sum(_guess(step, device) for step in steps)
        found[device, _sort(steps[0])].append(max(seconds, 1e-3) / guess)
    medians = {sort: median(each) for sort, each in found.items() if len(each) >= TELLING}
    if not medians:
        return
    seen = factors()
    for (device, sort), factor in medians.items():
        seen.setdefault(device, {})[sort] = factor
    with suppress(OSError):  # those who could not store their results have said so
        files.write(paths.store() / FILE, json.dumps(seen))
