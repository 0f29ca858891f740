"""Costs: those of an architecture, counted on tensors without memory, and those of a training,
measured in a run.
"""

import contextlib
import ctypes
import gc
import resource
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from leak_atlas.engine.compute import Arrays, Of, compute, text
from leak_atlas.models import Net, blank, build, skeleton
from leak_atlas.recipe import Anatomy, Architecture, Model
from leak_atlas.training.loop import training

ANATOMY = "parts", "parameters", "activations", "flops"


class Kernels(TorchDispatchMode):
    """Counts the kernels that are called in this context and the elements of their outputs. Views
    count nothing.
    """

    kernels = numbers = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        out = func(*args, **kwargs or {})
        if not func.is_view:
            self.kernels += 1
            outputs = [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]
            self.numbers += sum(output.numel() for output in outputs)
        return out


@cache
def anatomy(
    model: Architecture,
    channels: int,
    classes: int,
    size: int,
) -> dict[str, np.ndarray]:
    """Costs of each block, in order, for one image of `size` x `size` or one text of `size` words
    (see `leak_atlas.models.build`); `(blocks,)` each.

    `parts` (names: stem, stage1.0, ..., head), `parameters` (trainable weights), `activations`
    (elements of the block's output), `flops` (of the forward pass, two for a multiply-add;
    convolutions, linear layers and attention, as torch counts them), `kernels` and `numbers` (see
    `Kernels`).
    """
    x = blank(model, channels, size)
    if isinstance(model, Model):
        net = skeleton(model, channels, classes, size)
    else:  # a user's module may read a tensor's value: its tensors need memory
        net = build(model, channels, classes, 0, size)
        x = torch.zeros_like(x, device="cpu")
    net.eval()
    costs: dict[str, list[Any]] = {name: [] for name in (*ANATOMY, "kernels", "numbers")}
    with torch.no_grad():
        for name, block in net.blocks():
            with FlopCounterMode(display=False) as counter, Kernels() as called:
                x = block(x)
            costs["parts"].append(name)
            costs["parameters"].append(sum(p.numel() for p in block.parameters()))
            costs["activations"].append(x.numel())
            costs["flops"].append(counter.get_total_flops())
            costs["kernels"].append(called.kernels)
            costs["numbers"].append(called.numbers)
    return {name: np.array(column) for name, column in costs.items()}


@compute.register(Anatomy)
def _(step: Anatomy, of: Of) -> Arrays:
    data = step.data
    costs = anatomy(step.model, data.channels, data.classes, data.size)
    arrays = {name: costs[name] for name in ANATOMY}
    arrays["parts"] = text([str(name) for name in costs["parts"]])
    return arrays


# --- a training, as it runs -----------------------------------------------------------------------------------------


def timed(trainings: Sequence[tuple[Net, dict[str, Any]]], epochs: int) -> dict[str, list[float]]:
    """Seconds of the first `epochs` epochs (two or more) of each `training(net, **given)`, in a
    process that does nothing else.

    `first_seconds` of the first epoch with all preparations, and `seconds` of a later epoch, the
    mean. Before the measurement each training takes a step. On the CPU the clock counts processor
    time; on CUDA it counts elapsed time, because this process cannot count the device's time. The
    trainings take turns by the epoch, so that a longer disturbance affects all of them.
    """
    device = trainings[0][1]["data"].device
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    with _lane(device):
        for net, given in trainings:
            _warm(net, given)
        laps = [_laps(net, given, clock) for net, given in trainings]
        rounds = []
        for _ in range(epochs):
            rounds.append([next(lap) for lap in laps])
        for lap in laps:
            lap.close()
    seconds = np.array(rounds)
    return {
        "first_seconds": seconds[0].tolist(),
        "seconds": np.mean(seconds[1:], axis=0).tolist(),
    }


def _laps(
    net: Net,
    given: dict[str, Any],
    clock: Callable[[], float],
) -> Generator[float]:
    """Seconds of each epoch of a training that pauses after each epoch."""
    worked = 0.0  # seconds of earlier turns
    since = clock()  # start of this turn
    ends = [0.0]  # of epochs, in seconds without the pauses
    yielded = 0

    def on_epoch(_: int) -> None:
        ends.append(worked + clock() - since)

    for _ in training(net, **given, on_epoch=on_epoch):
        if len(ends) > yielded + 1:  # the training pauses after the next epoch's first step
            worked += clock() - since
            yield ends[yielded + 1] - ends[yielded]
            yielded += 1
            since = clock()
    yield from np.diff(ends[yielded:]).tolist()


def peak(net: Net, **given: Any) -> dict[str, float]:
    """Memory of the first two epochs of `training(net, **given)`: `peak_bytes`, the maximum in
    addition to weights and data.

    On CUDA as torch's allocator counts; on the CPU resident memory of this process, precise to a
    few MB. The process must do nothing else.
    """
    device = given["data"].device
    ended: list[int] = []
    with _lane(device):
        _warm(net, given)
        before = _level(device)
        run = training(net, **given, on_epoch=ended.append)
        for _ in run:
            if len(ended) >= 2:
                break
        run.close()
        most = _peak(device)
    return {"peak_bytes": max(0, most - before)}


def _warm(net: Net, given: dict[str, Any]) -> None:
    """Takes a step, so that libraries are loaded and have workspaces, then returns free memory to
    the system.
    """
    run = training(net, **given)
    next(run)
    run.close()
    del run
    gc.collect()
    # glibc only
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def counted(net: Net, **given: Any) -> dict[str, float]:
    """Operations and memory of `training(net, **given)`, from an eager run of two epochs; the same in
    every run.

    `flops` of an epoch, forward and backward; `flops_once`, the additional ones of the first epoch;
    `saved_bytes`, the memory that autograd keeps from a step's forward pass for its backward pass
    (each storage once, without those of weights and statistics; the maximum over steps).
    """
    ended: list[int] = []
    operations = [0, 0]
    saved = 0
    with _lane(given["data"].device):
        run = training(net, **given, on_epoch=ended.append, plan="eager")
        while True:
            with FlopCounterMode(display=False) as counter, _saving(net) as kept:
                next(run, None)  # where an epoch is over, ends it, dev set included; then a step
            if len(ended) == 2:
                break
            saved = max(saved, sum(kept.values()))
            operations[len(ended)] += counter.get_total_flops()
        run.close()
    return {
        "flops": operations[1],
        "flops_once": operations[0] - operations[1],
        "saved_bytes": saved,
    }


@contextlib.contextmanager
def _saving(net: nn.Module) -> Iterator[dict[int, int]]:
    """Bytes of each storage, by its address, that autograd keeps in this context, without those of
    the net's parameters and buffers.
    """
    state = (*net.parameters(), *net.buffers())
    of_net = {tensor.untyped_storage().data_ptr() for tensor in state}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in of_net:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    def unpack(tensor: Tensor) -> Tensor:
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield kept


def _lane(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """A new stream, on which steps can be recorded, after all work so far; nothing on the CPU."""
    if device.type != "cuda":
        return contextlib.nullcontext()
    torch.cuda.synchronize(device)
    return torch.cuda.stream(torch.cuda.Stream(device))


def _level(device: torch.device) -> int:
    """Bytes in use now. Resets the peak that `_peak` reads."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # Linux: resets the peak to the present use
    return _peak(device)


def _peak(device: torch.device) -> int:
    """The maximum of bytes in use; on the CPU those of this process in main memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS counts bytes
