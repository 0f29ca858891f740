"""Two ways to the same numbers, timed in turn in one process: only ratios are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

Ratio = dict[str, float]


def compare(
    name: str, slow: Callable[[], object], fast: Callable[[], object], required: float, repeats: int = 7, loops: int = 1
) -> dict[str, Ratio]:
    """Processor time of ``slow`` over ``fast``, interleaved: median, smallest and largest ratio of ``repeats`` rounds.

    ``fast`` runs ``loops`` times a round, so that the clock resolves it. Prints one line.
    """
    found = []
    for _ in range(repeats):
        start = time.process_time()
        slow()
        middle = time.process_time()
        for _ in range(loops):
            fast()
        found.append((middle - start) * loops / (time.process_time() - middle))
    result = {"ratio": median(found), "low": min(found), "high": max(found), "required": required}
    print(f"{name}: {result['ratio']:.1f} x ({result['low']:.1f} to {result['high']:.1f}), required {required:g} x")
    return {name: result}
