"""Doing the jobs of a plan: one loop, in this process or over workers of one thread each."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from graphlib import TopologicalSorter
from heapq import heapify, heappop, heappush
from unittest.mock import patch

from leak_atlas import ARITHMETIC, KEPT, BadInput, duration, one_line, use_arithmetic
from leak_atlas.engine import store
from leak_atlas.engine.digests import kind_in_cell
from leak_atlas.lab.cluster import Where, connected, gpus
from leak_atlas.lab.jobs import Outcome, do, name_of, reasons
from leak_atlas.lab.plans import Job, Plan, absent, kinds
from leak_atlas.lab.prices import remember
from leak_atlas.recipe import Step

# trainings at a time in a process with a GPU: one small training leaves most of the GPU idle
STREAMS = 4
ENOUGH = 30.0  # core-seconds of work above which starting workers pays
QUIET = 300.0  # seconds after which a step that is done is reported

Report = Callable[[Outcome], None]

__all__ = ["Lines", "Outcome", "progress", "reasons", "run", "width"]


class Ready:
    """The jobs whose parents are done, in the plan's order; a job that ends makes others ready."""

    def __init__(self, plan: Plan) -> None:
        self.jobs = list(plan.jobs.values())
        self.place = {key: place for place, key in enumerate(plan.jobs)}
        self.failed: dict[str, Outcome] = {}
        self.order = TopologicalSorter[str]()
        for job in self.jobs:
            self.order.add(job.key, *job.needs)
        self.order.prepare()
        self.heap = [self.place[key] for key in self.order.get_ready()]
        heapify(self.heap)

    def __iter__(self) -> Iterator[Job]:
        while self.heap:
            yield self.jobs[heappop(self.heap)]

    def end(self, outcome: Outcome) -> Iterator[Outcome]:
        """Takes note that a job has ended. Yields its outcome, and those of the jobs that cannot be
        done because it failed."""
        if outcome.error:
            self.failed[outcome.key] = outcome
        yield outcome
        self.order.done(outcome.key)
        for key in self.order.get_ready():
            job = self.jobs[self.place[key]]
            broken = [self.failed[parent] for parent in job.needs if parent in self.failed]
            if broken:
                yield from self.end(_orphan(job, broken[0]))
            else:
                heappush(self.heap, self.place[key])


def _orphan(job: Job, parent: Outcome) -> Outcome:
    """The outcome of a job whose parent failed."""
    why = one_line(f"its parent {parent.name} failed: {parent.error}")
    return Outcome(job.key, name_of(job), why, orphan=True)


def run(
    plan: Plan, where: Where | int | None = None, report: Report | None = None
) -> dict[str, Outcome]:
    """Does what a plan holds and returns the outcomes that failed, by key.

    `where`: a number asks for that many processes on this machine. `report` receives each outcome as
    it comes; without one, progress is printed. Raises BadInput if data are missing, if a
    scheduler cannot be used or is lost, and where the disk takes no more results; what is finished
    is kept.
    """
    where = where if isinstance(where, Where) else Where(where)
    missing = [] if where.elsewhere else absent(plan.jobs.values())
    if missing:
        raise BadInput(missing[0])
    if not plan.jobs:
        return {}
    report = report or Lines(plan)
    ready = Ready(plan)
    spent: list[tuple[list[Step], str, float]] = []
    store.sweep()
    try:
        with arithmetic_for(plan), _working(plan, where) as work:
            while ready.heap:
                for ended in work(ready):
                    for outcome in ready.end(ended):
                        if outcome.refused:
                            raise BadInput(f"{outcome.error}; {KEPT}")
                        if outcome.device:
                            steps = plan.jobs[outcome.key].computed
                            spent.append((steps, outcome.device, outcome.seconds))
                        report(outcome)
    finally:
        remember(spent)
    return ready.failed


@contextmanager
def arithmetic_for(plan: Plan) -> Iterator[None]:
    """Lets workers use their processor's own instructions where a plan trains in bfloat16 without a
    GPU: with those of portable arithmetic, it takes more than ten times as long.
    """
    precisions = {getattr(job.step, "precision", "") for job in plan.jobs.values()}
    with patch.dict(os.environ):
        if "bf16" in precisions and not gpus():
            os.environ[ARITHMETIC] = "native"
            use_arithmetic()
        yield


@contextmanager
def _working(plan: Plan, where: Where) -> Iterator[Callable[[Iterable[Job]], Iterator[Outcome]]]:
    """The function that does jobs and gives their outcomes: here, or on workers."""
    if _here(plan, where):
        yield lambda jobs: do(jobs, STREAMS)
    else:
        with connected(where, len(plan.jobs)) as workers:
            yield workers.do


def _here(plan: Plan, where: Where) -> bool:
    """Whether this process does all jobs: there is little to do, or only it has the code.

    Raises BadInput if workers elsewhere cannot have the code.
    """
    in_cell = kind_in_cell(kinds(job.step for job in plan.jobs.values()))
    if where.elsewhere:
        if in_cell:
            raise BadInput(
                f"{in_cell} stands in a notebook's cell, which no worker can import: put it into a "
                "file"
            )
        return False
    return bool(in_cell) or where.local == 1 or plan.seconds < ENOUGH


def width(plan: Plan, where: Where) -> int:
    """How many jobs of a plan run at a time. Raises BadInput if a scheduler cannot be used."""
    if not plan.jobs or _here(plan, where):
        return STREAMS if gpus() else 1
    return where.width()


# ---------------------------------------------------------------- progress


@contextmanager
def progress(plan: Plan) -> Iterator[Report]:
    """Shows how a run gets on: a live bar in a kernel that somebody watches, elsewhere `Lines`."""
    if "ipykernel" not in sys.modules or os.environ.get("LEAK_ATLAS_PROGRESS") == "log":
        yield Lines(plan)
        return
    from tqdm.auto import tqdm

    words = "{l_bar}{bar}| {n:.0f} of {total:.0f} s of work [{elapsed}<{remaining}]"
    with tqdm(total=plan.seconds, leave=False, bar_format=words) as bar:
        yield lambda outcome: bar.update(plan.jobs[outcome.key].seconds)


class Lines:
    """Prints a line at each tenth of the work, when a job ends more than `QUIET` seconds after the
    last line, and at each new error.

    A line has the time of day, the share of the work, the number of steps, the time so far and the
    expected time left.
    """

    def __init__(self, plan: Plan) -> None:
        self.jobs = plan.jobs
        self.seconds = plan.seconds  # of all jobs, expected
        self.done = 0  # number of jobs
        self.share = 0.0  # of the work
        self.errors: set[str] = set()
        self.start = self.printed = time.monotonic()

    def __call__(self, outcome: Outcome) -> None:
        if outcome.error and not outcome.orphan and outcome.error not in self.errors:
            self.errors.add(outcome.error)
            print(f"failed: {outcome.name}: {outcome.error}", file=sys.stderr, flush=True)
        tenths = int(10 * self.share)
        self.done += 1
        # rounding may lack a little of the whole
        self.share += self.jobs[outcome.key].seconds / self.seconds + 1e-12
        now = time.monotonic()
        if int(10 * self.share) > tenths or now - self.printed > QUIET:
            self.printed = now
            self._print(now - self.start)

    def _print(self, seconds: float) -> None:
        now = time.strftime("%H:%M")
        share = f"{100 * self.share:.0f} % of the work"
        steps = f"{self.done} of {len(self.jobs)} steps"
        line = f"  {now}  {share}, {steps}, {duration(seconds)} so far"
        if self.done < len(self.jobs):
            left = seconds * (1 / self.share - 1)
            line += f", about {duration(left)} left"
        print(line, flush=True)
