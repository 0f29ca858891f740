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

# Seconds per operation before any step was timed. "cpu": small networks, within a factor of two for
# most of them. "cuda": thin ResNets on an H100, which several processes share.
FIRST = {"cpu": 3.5e-11, "cuda": 3e-12}
JOB = 0.02  # seconds that any job costs
FILE = "paces.json"  # in the store; older versions kept other numbers in seconds.json
ENOUGH = 3  # jobs from which their median counts; fewer may be those that load torch and data
# Jobs of fewer seconds mostly wait for Python. Their seconds per operation would make steps of other
# kinds look ten times as expensive.
LONG = 1.0
LONG_JOBS = ", jobs of a second or more"  # suffix of a device's name: paces of long jobs alone

Paces = dict[str, dict[str, float]]


@cache
def count(what: str, data: Data, model: Architecture, start: str | None = None) -> float:
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
    return step.operations(count)


def training(step: Step) -> Train | None:
    """The training behind the first network in a step's fields; None if there is no network."""
    found: Step | None = step
    while found and not isinstance(found, State):
        # Not found.parents(): of an attack these are the signals of its networks.
        found = next(Step.parents(found), None)
    return found.training if isinstance(found, State) else None


def _kind_and_network(step: Step) -> str:
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
    """A function that estimates the core-seconds of a step on this machine: its operations times a
    pace, in seconds per operation. The pace is that of earlier steps of the same kind and network;
    without one, the median of the long jobs; without these, `FIRST`.
    """
    seen = paces()

    def price(step: Step) -> float:
        device = _device(step)
        known = seen.get(device, {})
        long = seen.get(device + LONG_JOBS, {})
        guess = FIRST["cpu" if device == "cpu" else "cuda"]
        usual = median(long.values()) if long else guess
        return JOB + work(step) * known.get(_kind_and_network(step), usual)

    return price


def paces() -> Paces:
    """Seconds per operation, by device and by kind of step and network, in the last run that had
    such steps.

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
            measured[device, _kind_and_network(steps[0])].append(pace)
            if seconds >= LONG:
                measured[device + LONG_JOBS, _kind_and_network(steps[0])].append(pace)
    known = {kind: median(each) for kind, each in measured.items() if len(each) >= ENOUGH}
    if not known:
        return
    seen = paces()
    for (device, kind), pace in known.items():
        seen.setdefault(device, {})[kind] = pace
    with suppress(OSError):  # those who could not store their results have said so
        files.write_text(paths.store() / FILE, json.dumps(seen))
