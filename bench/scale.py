"""python -m bench.scale [STEPS]: planning, workers and store at 10,000 steps (100,000 where asked
for).

Planning is measured on real recipes, 256 shadows in as many configurations as it takes. Running is
measured on fake steps: real keys, the library's own `run` on a pool of processes, real files; only
the computing is nothing. Memory is that of the process that plans and reports.

Where smaller is better, the ratio is the allowed value over the measured one, so that larger is
better here too.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.ratios import Ratio
from leak_atlas.engine import store
from leak_atlas.lab import plans
from leak_atlas.lab.run import Outcome, run
from leak_atlas.recipe import Data, LiRA, Model, RandomHalves, RelaxLoss, Schedule, Setup, Threshold

SHADOWS = 256
MILLISECOND = 1.0  # allowed for planning a step, and for looking one up
# bytes of memory allowed for a step, its recipe, plan and outcome: 100,000 in 2 GiB
WHOLE = 2 * 2**30 / 100_000
SCHEDULING = (
    # ms of processor time allowed to the process that plans, for sending a step to a worker and
    # hearing of it
    1.5
)
# bytes of memory allowed for a step that is done, its outcome included, once the first two fifths
# are
GROWTH = 4096.0


def recipes(steps: int) -> list[Any]:
    """About so many real steps: each configuration is a defence on edits of one population, with
    two attacks.
    """
    pool = Setup(Data(), RandomHalves(1000), Model("resnet18"), Schedule(100), SHADOWS).trained()
    asked = []
    for configuration in range(max(1, round(steps / (2 * SHADOWS + 2)))):
        schedule = Schedule(20, lr=0.001 * (configuration + 1))
        private = pool.rewind("stage4").freeze("stage4").train(schedule, RelaxLoss(0.5))
        asked.append([private.signals(), private.attack(LiRA()), private.attack(Threshold())])
    return asked


@contextmanager
def fresh_store() -> Iterator[Path]:
    """A store of its own, gone afterwards."""
    before = os.environ.get("LEAK_ATLAS_STORE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEAK_ATLAS_STORE"] = folder
        try:
            yield Path(folder)
        finally:
            os.environ.pop("LEAK_ATLAS_STORE")
            if before is not None:
                os.environ["LEAK_ATLAS_STORE"] = before


def memory() -> float:
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * float(os.sysconf("SC_PAGE_SIZE"))


def milliseconds(act: Callable[[], int], repeats: int = 3) -> list[float]:
    """Processor time of `act` for each item that it counts, in ascending order."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        count = act()
        found.append((time.process_time() - start) * 1000 / count)
    return sorted(found)


def allowed(name: str, may: float, measured: list[float], unit: str) -> dict[str, Ratio]:
    """`may` over what was measured; prints a line."""
    middle = statistics.median(measured)
    row = {
        "ratio": may / middle,
        "low": may / max(measured),
        "high": may / min(measured),
        "required": 1.0,
    }
    print(
        f"{name}: {middle:.3g} {unit}, allowed {may:g} ({row['low']:.1f} to {row['high']:.1f} times less)",
        flush=True,
    )
    return {name: row}


def planning(steps: int) -> dict[str, Ratio]:
    """Declaring and planning real recipes on an empty store, each time from scratch."""
    plans.plan(recipes(1))  # counts the operations of the architecture once

    def plan() -> int:
        return len(plans.plan(recipes(steps)).jobs)

    with fresh_store():
        return allowed("planning a step", MILLISECOND, milliseconds(plan), "ms")


def running(steps: int, workers: int) -> dict[str, Ratio]:
    """Fake steps through workers and store, then everything looked up."""
    from bench.fake import experiment

    with fresh_store():
        # everything is imported, the allocator has what it keeps
        run(plans.plan([experiment(600)]), workers)
    with fresh_store():
        at_first = memory()
        plan = plans.plan([experiment(steps)])
        count, finished, fifths = len(plan.jobs), 0, [memory()]

        def done(outcome: Outcome) -> None:
            nonlocal finished
            assert not outcome.error, outcome.error
            finished += 1
            if finished == count * len(fifths) // 5:
                fifths.append(memory())

        start, own = time.perf_counter(), time.process_time()
        run(plan, workers, done)
        seconds, own = time.perf_counter() - start, time.process_time() - own
        assert finished == count
        curve = " ".join(f"{size / 2**20:.0f}" for size in (at_first, *fifths))
        print(
            f"{count} steps by {workers} workers: {1000 * seconds / count:.2f} ms a step, {seconds:.0f} s; "
            f"MiB before the plan and at every fifth: {curve}"
        )
        whole, late = (fifths[5] - at_first) / count, (fifths[5] - fifths[2]) / (0.6 * count)
        found = allowed("memory for a step, planned to done", WHOLE, [max(whole, 1.0)], "bytes")
        found |= allowed("memory for a step while they run", GROWTH, [max(late, 1.0)], "bytes")
        found |= allowed("scheduling a step", SCHEDULING, [1000 * own / count], "ms")
        keys = list(store.listing())
        assert len(keys) == count

        def look() -> int:
            attacks = experiment(steps)
            every = [(signals, signals.of) for attack in attacks for signals in attack.signals]
            assert not plans.plan([[attacks, every]]).jobs
            return count

        def has() -> int:
            return sum(store.has(key) for key in keys)

        def read() -> int:
            return len([store.read(key) for key in keys[:2000]])

        def listing() -> int:
            return sum(1 for _ in store.listing())

        found |= allowed("planning a step that is there", MILLISECOND, milliseconds(look), "ms")
        found |= allowed("asking whether a step is there", MILLISECOND, milliseconds(has), "ms")
        found |= allowed("reading a small result", MILLISECOND, milliseconds(read), "ms")
        found |= allowed("listing an entry", MILLISECOND, milliseconds(listing), "ms")
    return found


def main(steps: int = 10_000, workers: int = 2) -> dict[str, Ratio]:
    """Prints a line for each quantity and returns `{name: {ratio, low, high, required}}`."""
    return planning(steps) | running(steps, workers)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
