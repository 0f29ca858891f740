"""Two ways to the same numbers, timed in turn in one process: only ratios are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

Ratio = dict[str, float]


def compare(
    name: str,
    slow: Callable[[], object],
    fast: Callable[[], object],
    required: float,
    repeats: int = 7,
    loops: int = 1,
) -> dict[str, Ratio]:
    """Processor time of `slow` over that of `fast`, in turn, `repeats` times.

    `fast` runs `loops` times a round, so that the clock resolves it.
    """
    found = []
    for _ in range(repeats):
        start = time.process_time()
        slow()
        middle = time.process_time()
        for _ in range(loops):
            fast()
        found.append((middle - start) * loops / (time.process_time() - middle))
    return row(name, found, required)


def row(name: str, ratios: list[float], required: float) -> dict[str, Ratio]:
    """What is kept of some rounds: median, smallest and largest ratio. Prints one line."""
    found = {"ratio": median(ratios), "low": min(ratios), "high": max(ratios), "required": required}
    print(
        f"{name}: {found['ratio']:.2f} x ({found['low']:.2f} to {found['high']:.2f}), required {required:.3g} x"
    )
    return {name: found}
