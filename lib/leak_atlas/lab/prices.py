"""What a step costs, in core-seconds: its counted operations at the pace of such steps here."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from statistics import median

from leak_atlas import BadInput
from leak_atlas.engine import files, paths
from leak_atlas.recipe import Architecture, Data, State, Step, Train

# Seconds an operation before any step was seen. The core's is that of small networks, within
# a factor of two for most of them; the GPU's is that of thin ResNets on an H100, which several
# processes share.
FIRST = {"cpu": 3.5e-11, "cuda": 3e-12}
JOB = 0.02  # seconds that any job costs
FILE = "paces.json"  # in the store; older versions kept other numbers in seconds.json
ENOUGH = 3  # jobs from which their median counts; fewer may be those that load torch and data
# Seconds from which the pace of jobs is that of their operations. Shorter ones mostly wait for
# Python: their pace would make every other sort of step look ten times as expensive.
LONG = 1.0
LONG_JOBS = ", jobs of a second or more"  # after a device's name: these alone

Paces = dict[str, dict[str, float]]


@cache
def counted(what: str, data: Data, model: Architecture, start: str | None = None) -> float:
    """`parameters`, or of one sample `activations` or forward `flops`, from part `start` on."""
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


def training(step: Step) -> Train | None:
    """The training of the network that a step looks at first."""
    behind: Step | None = step
    while behind and not isinstance(behind, State):
        behind = next(Step.parents(behind), None)
    return behind.training if isinstance(behind, State) else None


def _sort(step: Step) -> str:
    """The kind of a step and its network: such steps have a pace in common."""
    of = training(step)
    return f"{step.recorded} {of.model}" if of else step.recorded


def _device(step: Step) -> str:
    if step.place == "host":
        return "cpu"
    # asks torch, which is here if such a step can be done
    from leak_atlas.models.subject import device_name

    return device_name()


def pricing() -> Callable[[Step], float]:
    """A function that gives the core-seconds of a step on this machine, at the pace of such steps;
    where none was seen, at that of all long jobs, and before any at the first guess."""
    seen = paces()

    def price(step: Step) -> float:
        device = _device(step)
        known = seen.get(device, {})
        long = seen.get(device + LONG_JOBS, {})
        guess = FIRST["cpu" if device == "cpu" else "cuda"]
        usual = median(long.values()) if long else guess
        return JOB + work(step) * known.get(_sort(step), usual)

    return price


def paces() -> Paces:
    """Seconds an operation, by device and sort of step, in the last run that had some of it.

    A damaged file counts as none.
    """
    path = paths.store() / FILE
    try:
        return files.read_json(path, Paces) if path.exists() else {}
    except BadInput:
        return {}


def remember(done: Iterable[tuple[list[Step], str, float]]) -> None:
    """Keeps for the next preview how long jobs took: their steps, their device, their seconds."""
    measured = defaultdict[tuple[str, str], list[float]](list)
    for steps, device, seconds in done:
        if operations := sum(map(work, steps)):
            pace = seconds / operations
            measured[device, _sort(steps[0])].append(pace)
            if seconds >= LONG:
                measured[device + LONG_JOBS, _sort(steps[0])].append(pace)
    known = {sort: median(each) for sort, each in measured.items() if len(each) >= ENOUGH}
    if not known:
        return
    seen = paces()
    for (device, sort), pace in known.items():
        seen.setdefault(device, {})[sort] = pace
    with suppress(OSError):  # those who could not store their results have said so
        files.write_text(paths.store() / FILE, json.dumps(seen))
