"""What an architecture costs, counted on tensors without memory; and what a training costs, measured as it runs."""

import contextlib
import ctypes
import gc
import resource
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from lib.compute import Arrays, Of, compute, text
from lib.models import Net, blank, skeleton
from lib.recipe import Anatomy, Architecture
from lib.training.loop import training

ANATOMY = "parts", "parameters", "activations", "flops"


class Kernels(TorchDispatchMode):
    """Counts the kernels that are called inside, and the numbers that they hand on; views cost nothing."""

    kernels = numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **kwargs or {})
        if not func.is_view:
            self.kernels += 1
            self.numbers += sum(each.numel() for each in tree_leaves(out) if isinstance(each, Tensor))
        return out


@cache
def anatomy(model: Architecture, channels: int, classes: int, size: int) -> dict[str, np.ndarray]:
    """Block by block in order, for one image of `size` x `size`, or one text of `size` words (see `lib.models.build`).

    `parts` (names: stem, stage1.0, ..., head), `parameters` (trainable numbers), `activations` (numbers that the
    block hands on) and `flops` (of the forward pass, two for a multiply-add; convolutions, linear layers and
    attention, as torch counts them).
    """
    net = skeleton(model, channels, classes, size).eval()
    x = blank(model, channels, size)
    rows = []
    with torch.no_grad():
        for name, block in net.blocks():
            with FlopCounterMode(display=False) as counter, Kernels() as called:
                x = block(x)
            own = sum(p.numel() for p in block.parameters())
            rows.append((name, own, x.numel(), counter.get_total_flops(), called.kernels, called.numbers))
    columns = zip((*ANATOMY, "kernels", "numbers"), zip(*rows, strict=True), strict=True)
    return {name: np.array(column) for name, column in columns}


@compute.register(Anatomy)
def _(step: Anatomy, of: Of) -> Arrays:
    counts = anatomy(step.model, step.data.channels, step.data.classes, step.data.size)
    parts = text([str(name) for name in counts["parts"]])
    return {name: counts[name] for name in ANATOMY} | {"parts": parts}


# --- a training, as it runs -----------------------------------------------------------------------------------------


def timed(net: Net, epochs: int, **given: Any) -> dict[str, float]:
    """Time and memory of the first `epochs` epochs (two or more) of `training(net, **given)`.

    Measured in a process that does nothing else, once a step has warmed it up: `first_seconds` of the first epoch with
    all that goes before it; `seconds` of an epoch after it, the fastest, as what else runs on a machine only ever adds
    to it; `peak_bytes`, the most that the training takes
    beyond what is there when it starts (weights and data): on CUDA as torch's allocator counts, elsewhere resident
    memory of this process, which is good to a few MB.
    """
    device = given["data"].device
    stamps: list[float] = []
    with _lane(device):
        _warm(net, given)
        before = _level(device)
        start = time.perf_counter()
        run = training(net, **given, on_epoch=lambda _: stamps.append(time.perf_counter()))
        for _ in run:
            if len(stamps) >= epochs:
                break
        run.close()
        peak = _peak(device)
    first, *rest = np.diff([start, *stamps])
    return {"first_seconds": float(first), "seconds": float(min(rest)), "peak_bytes": max(0, peak - before)}


def _warm(net: Net, given: dict[str, Any]) -> None:
    """A step, so that libraries are loaded and have their workspaces; what it leaves free goes back to the system."""
    run = training(net, **given)
    next(run)
    run.close()
    del run
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # other C libraries than glibc keep what they keep
        ctypes.CDLL(None).malloc_trim(0)


def counted(net: Net, **given: Any) -> dict[str, float]:
    """Operations and memory of `training(net, **given)`, from a run of two epochs, step by step; the same in every run.

    `flops` of an epoch, forward and backward, and `flops_once` of what only the first one does; `saved_bytes`, what
    autograd keeps of a step's forward pass for its backward pass (storages that weights and statistics do not own, each
    once; the largest step's).
    """
    ended: list[int] = []
    operations = [0, 0]
    saved = 0
    with _lane(given["data"].device):
        run = training(net, **given, on_epoch=ended.append, plan="eager")
        while True:
            with FlopCounterMode(display=False) as counter, _saving(net) as kept:
                next(run, None)  # ends an epoch, dev set included, where one is through, and takes a step
            if len(ended) == 2:
                break
            saved = max(saved, sum(kept.values()))
            operations[len(ended)] += counter.get_total_flops()
        run.close()
    return {"flops": operations[1], "flops_once": operations[0] - operations[1], "saved_bytes": saved}


@contextlib.contextmanager
def _saving(net: nn.Module) -> Iterator[dict[int, int]]:
    """Bytes of each storage, by its address, that autograd keeps inside; those of the net's own tensors left out."""
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
