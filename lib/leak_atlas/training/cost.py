"""What an architecture costs, counted on tensors without memory; and what a training costs,
measured as it runs.
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
    """Counts the kernels that are called inside, and the numbers that they hand on; views cost
    nothing.
    """

    kernels = numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **kwargs or {})
        if not func.is_view:
            self.kernels += 1
            self.numbers += sum(
                each.numel() for each in tree_leaves(out) if isinstance(each, Tensor)
            )
        return out


@cache
def anatomy(model: Architecture, channels: int, classes: int, size: int) -> dict[str, np.ndarray]:
    """Block by block in order, for one image of `size` x `size`, or one text of `size` words (see
    `leak_atlas.models.build`).

    `parts` (names: stem, stage1.0, ..., head), `parameters` (trainable numbers), `activations`
    (numbers that the block hands on) and `flops` (of the forward pass, two for a multiply-add;
    convolutions, linear layers and attention, as torch counts them).
    """
    if isinstance(model, Model):
        net, x = skeleton(model, channels, classes, size), blank(model, channels, size)
    else:  # a user's module may ask a number for its value, which nothing without memory has
        net = build(model, channels, classes, 0, size)
        x = torch.zeros_like(blank(model, channels, size), device="cpu")
    net.eval()
    rows = []
    with torch.no_grad():
        for name, block in net.blocks():
            with FlopCounterMode(display=False) as counter, Kernels() as called:
                x = block(x)
            own = sum(p.numel() for p in block.parameters())
            rows.append(
                (name, own, x.numel(), counter.get_total_flops(), called.kernels, called.numbers)
            )
    columns = zip((*ANATOMY, "kernels", "numbers"), zip(*rows, strict=True), strict=True)
    return {name: np.array(column) for name, column in columns}


@compute.register(Anatomy)
def _(step: Anatomy, of: Of) -> Arrays:
    counts = anatomy(step.model, step.data.channels, step.data.classes, step.data.size)
    parts = text([str(name) for name in counts["parts"]])
    return {name: counts[name] for name in ANATOMY} | {"parts": parts}


# --- a training, as it runs -----------------------------------------------------------------------------------------


def timed(trainings: Sequence[tuple[Net, dict[str, Any]]], epochs: int) -> dict[str, list[float]]:
    """Time of the first `epochs` epochs (two or more) of each `training(net, **given)`, which take
    turns by the epoch.

    In seconds, of one process that does nothing else, once a step of each has warmed it up:
    `first_seconds` of the first epoch with all that goes before it, and `seconds` of an epoch after
    it, the mean. On the CPU processor time is counted, in which waiting for others is not; on CUDA
    time passes, as the device's work has no clock in this process. What disturbs a machine for
    longer than an epoch disturbs all trainings alike, as they take turns.
    """
    device = trainings[0][1]["data"].device
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    with _lane(device):
        for net, given in trainings:
            _warm(net, given)
        laps = [_laps(net, given, clock) for net, given in trainings]
        rounds = [[next(own) for own in laps] for _ in range(epochs)]
        for own in laps:
            own.close()
    first, *rest = np.array(rounds)
    return {"first_seconds": first.tolist(), "seconds": np.mean(rest, axis=0).tolist()}


def _laps(net: Net, given: dict[str, Any], clock: Callable[[], float]) -> Generator[float]:
    """Seconds of each epoch of a training that stands still in between."""
    worked, since = 0.0, clock()  # seconds in earlier turns; when this one began
    ends = [0.0]  # of epochs, in seconds of its own
    told = 0
    run = training(net, **given, on_epoch=lambda _: ends.append(worked + clock() - since))
    for _ in run:
        if len(ends) > told + 1:  # the next epoch's first step is taken as well
            worked += clock() - since
            yield ends[told + 1] - ends[told]
            told += 1
            since = clock()
    yield from np.diff(ends[told:]).tolist()


def peak(net: Net, **given: Any) -> dict[str, float]:
    """Memory of the first two epochs of `training(net, **given)`: `peak_bytes`, the most beyond
    weights and data.

    On CUDA as torch's allocator counts, elsewhere resident memory of this process, which is good to
    a few MB. The process has to do nothing else.
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
    """A step, so that libraries are loaded and have their workspaces; what it leaves free goes back
    to the system.
    """
    run = training(net, **given)
    next(run)
    run.close()
    del run
    gc.collect()
    # other C libraries than glibc keep what they keep
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def counted(net: Net, **given: Any) -> dict[str, float]:
    """Operations and memory of `training(net, **given)`, from a run of two epochs, step by step;
    the same in every run.

    `flops` of an epoch, forward and backward, and `flops_once` of what only the first one does;
    `saved_bytes`, what autograd keeps of a step's forward pass for its backward pass (storages that
    weights and statistics do not own, each once; the largest step's).
    """
    ended: list[int] = []
    operations = [0, 0]
    saved = 0
    with _lane(given["data"].device):
        run = training(net, **given, on_epoch=ended.append, plan="eager")
        while True:
            with FlopCounterMode(display=False) as counter, _saving(net) as kept:
                # ends an epoch, dev set included, where one is through, and takes a step
                next(run, None)
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
    """Bytes of each storage, by its address, that autograd keeps inside; those of the net's own
    tensors left out.
    """
    own = {tensor.untyped_storage().data_ptr() for tensor in (*net.parameters(), *net.buffers())}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield kept


def _lane(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Recordings are made on a stream of the training's own, which begins when all is there."""
    if device.type != "cuda":
        return contextlib.nullcontext()
    torch.cuda.synchronize(device)
    return torch.cuda.stream(torch.cuda.Stream(device))


def _level(device: torch.device) -> int:
    """Bytes in use now; the peak is counted from here."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak falls to what is there now
    return _peak(device)


def _peak(device: torch.device) -> int:
    """The most bytes that were in use, for the CPU by this process and in main memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS counts bytes
