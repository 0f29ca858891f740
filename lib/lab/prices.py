"""What a step costs: operations as its kind counts them, and seconds by how fast trainings were here before."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from lib import BadInput, files, paths
from lib.recipe import Data, Model, Step

# What a counted operation takes, of a small ResNet's, on one core: an Active Token Mixer's interpolation between tokens
# is not counted, nor are norms and softmax, and at a few channels they are most of the time.
PACES = {"atm": 6.0, "vit": 2.0, "transformer": 2.0}

# Operations per second before the store knows better: of one core on small nets, and a guess for a stream of a GPU;
# seconds that any job costs.
CPU_OPERATIONS_PER_S, GPU_OPERATIONS_PER_S, JOB_OVERHEAD_S = 3.5e10, 1e13, 0.1

# Operations below which a training tells what a job costs anyway, not how fast a device is.
TELLING = 1e10


@cache
def counted(what: str, data: Data, model: Model, start: str | None = None) -> float:
    """`parameters`, `activations` or forward `flops` of one sample, from part `start` on.

    Operations are those of a small ResNet's pace (`PACES`).
    """
    from lib.training.cost import anatomy

    counts = anatomy(model, data.channels, data.classes, data.size)
    parts = [str(part).split(".")[0] for part in counts["parts"]]
    found = float(sum(counts[what][parts.index(start.split(".")[0]) if start else 0 :]))
    return found * (PACES.get(model.name.partition("-")[0], 1.0) if what == "flops" else 1.0)


def work(step: Step) -> float:
    """Floating point operations of a step, forward and backward; what is cheap counts as nothing."""
    return step.operations(counted)


def rate(device: str | None = None) -> float:
    """Operations per second of one training on a device of this name (the one here), as the last runs measured it."""
    if device is None:
        from lib.subject import device_name  # asks torch, which is here if operations can be counted

        device = device_name()
    return rates().get(device, CPU_OPERATIONS_PER_S if device == "cpu" else GPU_OPERATIONS_PER_S)


@dataclass
class Kept:
    """What stands in the file."""

    rates: dict[str, float]  # operations per second by name of the device


def rates() -> dict[str, float]:
    """Operations per second of one training, by name of the device; a damaged file is removed, with a warning."""
    path = paths.store() / "rate.json"
    if not path.exists():
        return {}
    try:
        found: dict[str, float] = files.from_json(files.text(path), path, Kept).rates
        if odd := [name for name, rate in found.items() if rate <= 0]:
            raise BadInput(f"{path}: a rate is more than 0, unlike that of '{odd[0]}'")
        return found
    except BadInput as error:
        print(f"{error}: forgotten", file=sys.stderr)
        with suppress(OSError):
            path.unlink()
        return {}


def remember(done: Mapping[str, list[tuple[float, float]]]) -> None:
    """Keeps for the next preview how fast trainings were, from operations and seconds of each, by device.

    Two trainings of a device say little.
    """
    telling = {device: [each for each in every if each[0] >= TELLING] for device, every in done.items()}
    sums = {device: map(sum, zip(*every, strict=True)) for device, every in telling.items() if len(every) >= 3}
    if sums:
        new = {device: operations / seconds for device, (operations, seconds) in sums.items()}
        with suppress(OSError):  # a full disk has been told of by those who could not store their results
            files.write(paths.store() / "rate.json", json.dumps({"rates": rates() | new}))
