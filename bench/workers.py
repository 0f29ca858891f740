"""Two workers against one over trainings of the `quick` profile, in turn; models asked for against models trained.

Throughput is counted from when as many trainings are done as there are workers: that a worker starts, loads torch and
trains its first model slowly is the price of a whole batch, not of a few trainings. Other work on the machine spoils
this ratio as no other here; the load is printed beside it.
"""

from __future__ import annotations

import os
from statistics import median

import lib.lab.run
from bench.ratios import Ratio
from bench.scale import allowed, fresh_store, milliseconds
from lib import store
from lib.lab import plans
from lib.lab.declare import declare, notebooks, parameters
from lib.recipe import Step, Train

ROUNDS, SECONDS = 3, 22.0  # repeats; core-seconds of training in one run, as the plan expects them


def quick() -> list[list[Step]]:
    """What each notebook of `quick` asks for."""
    return [plans.steps_of(declare(one, parameters(one, "quick"))) for one in notebooks(["*"])]


def trainings(asked: list[list[Step]], seconds: float) -> list[Step]:
    """Trainings from scratch that cost as much as the middle one, about so many core-seconds in all, an even number."""
    jobs = [job for job in plans.plan(asked).jobs.values() if isinstance(job.step, Train) and not job.needs]
    middle = median(job.seconds for job in jobs)
    jobs.sort(key=lambda job: abs(job.seconds - middle))
    return [job.step for job in jobs[: 2 * max(1, round(seconds / middle / 2))]]


def throughput(steps: list[Step], workers: int) -> float:
    """Trainings a second."""
    with fresh_store():
        assert not lib.lab.run.run(plans.plan([steps]), workers), "a training failed"
        ends = sorted((store.folder(step.key) / store.ENTRY).stat().st_mtime for step in steps)
        return (len(steps) - workers) / (ends[-1] - ends[workers - 1])


def main() -> dict[str, Ratio]:
    """Prints a line for each quantity and returns `{name: {ratio, low, high, required}}`."""
    with fresh_store():
        asked = quick()
        found_plan = plans.plan(asked)
        steps = trainings(asked, SECONDS)
        count = len(plans.steps_of(asked))

        def plan() -> int:
            plans.plan(quick())
            return count

        found = allowed("planning a recipe of quick", 10.0, milliseconds(plan), "ms")
    shared = found_plan.models_asked / found_plan.models_distinct
    print(f"models of quick: {found_plan.models_asked} asked for, {found_plan.models_distinct} trained: {shared:.2f} x")
    found["models asked for against trained"] = {"ratio": shared, "low": shared, "high": shared, "required": 1.0}

    enough, lib.lab.run.ENOUGH = lib.lab.run.ENOUGH, 0.0  # these few would not be worth a cluster
    ratios = []
    try:
        for _ in range(ROUNDS):
            alone, both = throughput(steps, 1), throughput(steps, 2)
            ratios.append(both / alone)
            print(f"  {len(steps)} trainings: {alone:.2f} a second by one worker, {both:.2f} by two", flush=True)
    finally:
        lib.lab.run.ENOUGH = enough
    row = {"ratio": median(ratios), "low": min(ratios), "high": max(ratios), "required": 1.7}
    print(
        f"two workers against one: {row['ratio']:.2f} x ({row['low']:.2f} to {row['high']:.2f}), required 1.7 x; "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    return found | {"two workers against one": row}


if __name__ == "__main__":
    main()
