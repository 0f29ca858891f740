"""Where does a training step spend its time? Operator by operator, next to what the core can do.

    python -m bench.operators           # ResNet18 of width 16, 32 x 32 pixels, batches of 128
    python -m bench.operators 16 64     # width 64 as well: a minute more

A step runs in portable float32, in float32 with the processor's own instructions, and in bfloat16
with these; with the memory format of the library (channels last) and of most code; with one thread
and with two. For each of the five operators that take longest, the table has its share of the step,
and how long it would take at the core's peak: of products, the measured rate of a large matrix
product; of everything else, the measured rate of a large copy, each tensor read or written once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from math import prod
from statistics import median
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from leak_atlas import ARITHMETIC
from leak_atlas.models import build
from leak_atlas.recipe import Model
from leak_atlas.training.cost import anatomy

BATCH, SIDE, CHANNELS, CLASSES = 128, 32, 3, 10
WARM, STEPS = 3, 8
SHOWN = 5
# Operators that are products, with their operations in units of a forward pass.
CONVOLUTIONS = {"aten::mkldnn_convolution": 1, "aten::convolution_backward": 2}


def seconds(act: Callable[[], object], repeats: int = 7) -> float:
    """The median time of `act`, after a first call that does not count."""
    act()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        act()
        found.append(time.perf_counter() - start)
    return median(found)


def product_rate(kind: torch.dtype) -> float:
    """Operations a second of a large matrix product or a wide convolution, whichever is faster:
    on some processors the library for matrices is slower than the one for convolutions.
    """
    side = 1536
    a, b = torch.randn(side, side).to(kind), torch.randn(side, side).to(kind)
    matrix = 2 * side**3 / seconds(lambda: a @ b)

    channels = 256
    layer = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False).to(kind)
    layer = layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it
    x = torch.randn(16, channels, SIDE, SIDE).to(kind).contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        operations = 2 * 9 * channels**2 * 16 * SIDE**2
        return max(matrix, operations / seconds(lambda: layer(x)))


def copy_rate() -> float:
    """Bytes a second of a large copy, read and written."""
    source = torch.randn(2**25)
    target = torch.empty_like(source)
    return 2 * source.nbytes / seconds(lambda: target.copy_(source))


def stepper(width: int, low: bool, layout: torch.memory_format) -> Callable[[], None]:
    """A plain training step on random images."""
    net = build(Model("resnet18", width), CHANNELS, CLASSES, 0, SIDE)
    net = net.to(memory_format=layout).train()  # type: ignore[call-overload]  # torch's stubs lack it
    x = torch.randn(BATCH, CHANNELS, SIDE, SIDE).contiguous(memory_format=layout)
    y = torch.randint(CLASSES, (BATCH,))
    optimizer = torch.optim.SGD(net.parameters(), 0.05, 0.9)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=low, cache_enabled=False):
            logits = net(x)
        value = torch.nn.functional.cross_entropy(logits.float(), y)
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        optimizer.step()

    return step


def operators(step: Callable[[], None], steps: int, shapes: bool = False) -> Any:
    """What the profiler says of some steps, by operator, and by shapes where they are recorded."""
    for _ in range(WARM):
        step()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=shapes) as profiled:
        for _ in range(steps):
            step()
    return profiled.key_averages(group_by_input_shape=shapes)


def floor(name: str, forward: float, shaped: Any, rates: tuple[float, float]) -> float:
    """Seconds that the calls of an operator in one step would take at the core's peak; `forward`
    are the operations of a forward pass.
    """
    if name in CONVOLUTIONS:
        return CONVOLUTIONS[name] * forward / rates[0]
    elements = 0
    for event in shaped:
        if event.key == name:
            sizes = [prod(shape) for shape in event.input_shapes if shape]
            elements += event.count * (sum(sizes) + max(sizes, default=0))  # read, and written
    return 4 * elements / rates[1]


def measured(width: int, low: bool) -> None:
    """Prints a step's time in each memory format and number of threads, and its operators."""
    torch.set_num_threads(1)
    rates = product_rate(torch.bfloat16 if low else torch.float32), copy_rate()
    formats = {"channels last": torch.channels_last, "channels first": torch.contiguous_format}
    times = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for name, layout in formats.items():
            step = stepper(width, low, layout)
            times.append(f"{name}, {threads} threads {1000 * seconds(step, STEPS):.0f} ms")
    print(f"  step: {'; '.join(times)}")
    print(f"  peaks: products {rates[0] / 1e9:.0f} GFLOP/s, copies {rates[1] / 1e9:.1f} GB/s")

    torch.set_num_threads(1)
    step = stepper(width, low, torch.channels_last)
    took = operators(step, STEPS)
    whole = sum(event.self_cpu_time_total for event in took)
    forward = BATCH * sum(anatomy(Model("resnet18", width), CHANNELS, CLASSES, SIDE)["flops"])
    # Recording shapes makes a step take three times as long, so it is done apart.
    shaped = operators(step, 1, shapes=True)
    for event in sorted(took, key=lambda event: -event.self_cpu_time_total)[:SHOWN]:
        spent = event.self_cpu_time_total / STEPS / 1000
        least = 1000 * floor(event.key, forward, shaped, rates)
        share = 100 * event.self_cpu_time_total / whole
        print(f"  {event.key}: {share:.0f} %, {spent:.1f} ms; at the peak {least:.1f} ms")


def show(widths: list[int]) -> None:
    """Each arithmetic in a process of its own: libraries read it when they start."""
    for width in widths:
        for arithmetic, low in (("", False), ("native", False), ("native", True)):
            kind = f"{'bf16' if low else 'fp32'}, {arithmetic or 'portable'} arithmetic"
            print(f"ResNet18 of width {width}, {kind}:", flush=True)
            own = {name: value for name, value in os.environ.items() if name != ARITHMETIC}
            if arithmetic:
                own[ARITHMETIC] = arithmetic
            command = [sys.executable, "-m", "bench.operators", "--one", str(width), str(int(low))]
            subprocess.run(command, env=own, check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measured(int(sys.argv[2]), bool(int(sys.argv[3])))
    else:
        show(list(map(int, sys.argv[1:])) or [16])
