"""What a step costs: core-seconds as they are counted, corrected by how long steps of its sort took here before."""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from itertools import accumulate
from statistics import median, median_low
from typing import NamedTuple

from lib import BadInput, files, paths
from lib.recipe import Architecture, Data, Model, State, Step, Train


class Pace(NamedTuple):
    """Seconds that a device takes. The core's are measured on eight small networks, the GPU's are a guess."""

    operation: float  # one that is not a network's: of small arrays
    flop: float
    kernel: float  # a call of one
    number: float  # that a kernel hands on


CORE, GPU = Pace(1 / 3.5e10, 1 / 1.5e11, 1.9e-5, 1.4e-9), Pace(1e-13, 1e-13, 4e-6, 2e-12)
BESIDE = 40  # kernels of a batch that are not its network's: gathering it, the loss, the optimizer
ANSWERED = 250  # samples of a batch that is not learnt from
JOB = 0.02  # seconds that any job costs
FILE = "rates.json"  # in the store
TELLING = 3  # jobs of a sort that tell how long it takes; fewer may be those that load torch and data
RUNS = 5  # of which rates are kept, the last ones


@cache
def counted(what: str, data: Data, model: Architecture, start: str | None = None) -> float:
    """`parameters`, or of one sample `activations` or forward `flops`, `kernels`, `numbers`, from part `start` on."""
    from lib.training.cost import anatomy

    counts = anatomy(model, data.channels, data.classes, data.size)
    parts = [str(part).split(".")[0] for part in counts["parts"]]
    first = parts.index(part) if start and (part := start.split(".")[0]) in parts else 0  # a user's module is one part
    return float(sum(counts[what][first:]))


def work(step: Step) -> float:
    """Floating point operations of a step, forward and backward; what is cheap counts as nothing."""
    return step.operations(counted)


@cache
def _sample(pace: Pace, batch: int, what: str, data: Data, model: Architecture, start: str | None = None) -> float:
    """As `counted`, but instead of a sample's flops the operations that take as long as its share of a batch."""
    if what != "flops":
        return counted(what, data, model, start)
    flops, kernels, numbers = (counted(each, data, model, start) for each in ("flops", "kernels", "numbers"))
    seconds = flops * pace.flop + (kernels + BESIDE) / batch * pace.kernel + numbers * pace.number
    return seconds / pace.operation


def _device(step: Step) -> str:
    if step.place == "host":
        return "cpu"
    from lib.subject import device_name  # asks torch, which is here if such a step can be done

    return device_name()


def _expected(step: Step, device: str) -> float:
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
    """Steps of one sort err alike: of one kind, on one network, in one precision, trainings with one size of batch."""
    of = training(step)
    width = f"-{of.model.width}" if of and isinstance(of.model, Model) else ""
    net = f" {of.model.told}{width} {of.precision}" if of else ""
    return f"{type(step).__name__}{net}" + (f" {step.schedule.batch}" if isinstance(step, Train) else "")


def pricing() -> Callable[[Step], float]:
    """A function that says how many core-seconds a step takes on this machine.

    Of a sort that was never seen they err as those of its kind do, or as all do.
    """
    known = {device: {sort: median_low(each) for sort, each in rates.items()} for device, rates in factors().items()}
    usual = defaultdict[tuple[str, str], list[float]](list)
    for device, rates in known.items():
        for sort, rate in rates.items():
            usual[device, sort.split()[0]].append(rate)
            usual[device, ""].append(rate)

    def price(step: Step) -> float:
        device = _device(step)
        alike = usual.get((device, type(step).__name__)) or usual.get((device, "")) or [1.0]
        return _expected(step, device) * known.get(device, {}).get(_sort(step), median(alike))

    return price


def on_a_gpu(steps: Iterable[Step]) -> float:
    """Seconds on one GPU: a guess, as its pace is."""
    return sum(_expected(step, "cpu" if step.place == "host" else "gpu") for step in steps)


def factors() -> dict[str, dict[str, list[float]]]:
    """Seconds over what was expected, by device and sort of step, of each of the last runs.

    A damaged file is removed, with a warning.
    """
    path = paths.store() / FILE
    if not path.exists():
        return {}
    try:
        found: dict[str, dict[str, list[float]]]
        found = files.from_json(files.text(path), path, dict[str, dict[str, list[float]]])
        if odd := [sort for each in found.values() for sort, known in each.items() if min(known, default=0) <= 0]:
            raise BadInput(f"{path}: a factor is more than 0, unlike that of '{odd[0]}'")
        return found
    except BadInput as error:
        print(f"{error}: forgotten", file=sys.stderr)
        with suppress(OSError):
            path.unlink()
        return {}


def _middle(rates: list[tuple[float, float]]) -> float:
    """The median of (rate, weight): jobs that cost more say more."""
    rates = sorted(rates)
    heaped = list(accumulate(weight for _, weight in rates))
    return rates[bisect_left(heaped, heaped[-1] / 2)][0]


def remember(done: Iterable[tuple[list[Step], str, float]]) -> None:
    """Keeps for the next preview how long jobs took: their steps, their device and their seconds.

    Medians, over a run's jobs and (the lower one) over runs: neither a job that loads torch nor a run on a busy machine
    spoils a rate.
    """
    found = defaultdict[tuple[str, str], list[tuple[float, float]]](list)
    for steps, device, seconds in done:
        expected = sum(_expected(step, device) for step in steps)
        found[device, _sort(steps[0])].append((max(seconds, 1e-3) / expected, expected))
    known = factors()
    for (device, sort), each in found.items():
        if len(each) >= TELLING:
            rates = known.setdefault(device, {}).setdefault(sort, [])
            rates[:] = [*rates, _middle(each)][-RUNS:]
    if known:
        with suppress(OSError):  # a full disk has been told of by those who could not store their results
            files.write(paths.store() / FILE, json.dumps(known))
