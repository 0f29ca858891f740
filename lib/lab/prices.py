"""What a step costs: operations by what its kind says of itself, and seconds by how fast such work went here before."""

from __future__ import annotations

from functools import cache

from lib.lab.pace import rates
from lib.recipe import Data, Model, Step

# What a counted operation takes, of a small ResNet's, on one core: an Active Token Mixer's interpolation between tokens
# is not counted, nor are norms and softmax, and at a few channels they are most of the time.
PACES = {"atm": 6.0, "vit": 2.0, "transformer": 2.0}

# Operations per second before the store knows better: of one core on small nets, and a guess for a stream of a GPU;
# seconds that any job costs.
CPU_OPERATIONS_PER_S, GPU_OPERATIONS_PER_S, JOB_OVERHEAD_S = 3.5e10, 1e13, 0.1


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
