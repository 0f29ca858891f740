"""Two workers against one over trainings of the `quick` profile, in turn; models asked for against
models trained.

Throughput is counted from when as many trainings are done as there are workers: that a worker
starts, loads torch and trains its first model slowly is the price of a whole batch, not of a few
trainings. Other work on the machine spoils this ratio as no other here, and two cores share caches
and memory. So each round also takes what the machine itself gives: plain loops of torch over the
same network in two processes against one, without this library. The share of it that two workers
reach is ours; the rest is the machine's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from statistics import median

import leak_atlas.lab.run
from bench.ratios import Ratio, row
from bench.scale import allowed, fresh_store, milliseconds
from leak_atlas.engine import store
from leak_atlas.lab import plans
from leak_atlas.lab.declare import declare, notebooks, parameters
from leak_atlas.recipe import Step, Train, registry

ROUNDS, SECONDS = 3, 22.0  # repeats; core-seconds of training in one run, as the plan expects them
SPAN = 4.0  # seconds of a plain loop


def quick() -> list[list[Step]]:
    """What each notebook of `quick` asks for."""
    return [plans.steps_of(declare(one, parameters(one, "quick"))) for one in notebooks(["*"])]


def trainings(asked: list[list[Step]], seconds: float) -> list[Train]:
    """Trainings from scratch on images that cost as much as the middle one, about so many
    core-seconds in all.

    Their number is even.
    """
    jobs = plans.plan(asked).jobs.values()
    alone = {job.step: job.seconds for job in jobs if isinstance(job.step, Train) and not job.needs}
    cost = {
        step: seconds
        for step, seconds in alone.items()
        if registry.find(step.data.name).kind == "images"
    }
    middle = median(cost.values())
    found = sorted(cost, key=lambda step: abs(cost[step] - middle))
    return found[: 2 * max(1, round(seconds / middle / 2))]


def throughput(steps: list[Train], workers: int) -> float:
    """Trainings a second."""
    with fresh_store():
        assert not leak_atlas.lab.run.run(plans.plan([steps]), workers), "a training failed"
        ends = sorted((store.folder(step.key) / store.ENTRY).stat().st_mtime for step in steps)
        return (len(steps) - workers) / (ends[-1] - ends[workers - 1])


def plainly(step: Train, line: Connection) -> None:
    """Trains the network of `step` on nothing in particular for as many seconds as `line` says;
    answers steps a second.

    Runs in a process of its own until it is told 0 seconds.
    """
    import torch
    from torch.nn.functional import cross_entropy

    from leak_atlas.models.subject import Subject

    torch.set_num_threads(1)
    made = Subject(step).initial().train()
    entry = registry.find(step.data.name)
    side = step.data.pixels or entry.shape[0]
    x, y = (
        torch.zeros(step.schedule.batch, entry.shape[-1], side, side),
        torch.zeros(step.schedule.batch).long(),
    )
    x = x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(made.parameters(), lr=0.0, momentum=0.9)
    while seconds := line.recv():
        start, count = time.perf_counter(), 0
        while time.perf_counter() < start + seconds:
            optimizer.zero_grad()
            cross_entropy(made(x), y).backward()
            optimizer.step()
            count += 1
        line.send(count / (time.perf_counter() - start))


@contextmanager
def machine(step: Train) -> Iterator[list[Connection]]:
    """Two processes that wait to be told how long to train plainly."""
    context = get_context("spawn")
    pipes = [context.Pipe() for _ in range(2)]
    both = [
        context.Process(target=plainly, args=(step, theirs), daemon=True) for _, theirs in pipes
    ]
    for one, (_, theirs) in zip(both, pipes, strict=True):
        one.start()
        theirs.close()  # so that a process that dies ends the wait for it
    lines = [ours for ours, _ in pipes]
    try:
        together(lines, 1.0)  # torch is loaded, the processor warm
        yield lines
    finally:
        for line, one in zip(lines, both, strict=True):
            line.send(0.0)
            one.join()


def together(lines: list[Connection], seconds: float) -> float:
    """Steps a second of some processes at the same time."""
    for line in lines:
        line.send(seconds)
    return sum(float(line.recv()) for line in lines)


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
    print(
        f"models of quick: {found_plan.models_asked} asked for, {found_plan.models_distinct} trained"
    )
    found |= row("models asked for against trained", [shared], 1.0)

    # these few would not be worth a cluster
    enough, leak_atlas.lab.run.ENOUGH = leak_atlas.lab.run.ENOUGH, 0.0
    ratios, ceilings = [], []
    try:
        with machine(steps[0]) as lines:
            for _ in range(ROUNDS):
                first, bound = together(lines[:1], SPAN), together(lines, SPAN)
                alone, both = throughput(steps, 1), throughput(steps, 2)
                first, bound = first + together(lines[:1], SPAN), bound + together(lines, SPAN)
                ratios.append(both / alone)
                ceilings.append(bound / first)
                print(
                    f"  {len(steps)} trainings: {alone:.2f} a second by one worker, {both:.2f} by two: "
                    f"{ratios[-1]:.2f} x; the machine itself {ceilings[-1]:.2f} x",
                    flush=True,
                )
    finally:
        leak_atlas.lab.run.ENOUGH = enough
    shares = [ratio / ceiling for ratio, ceiling in zip(ratios, ceilings, strict=True)]
    print(f"on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}:")
    return (
        found
        | row("two workers against one", ratios, 1.7)
        | row("two processes of plain torch against one, the machine's own", ceilings, 1.0)
        | row("two workers' share of the machine's own", shares, 0.85)
    )


if __name__ == "__main__":
    main()
