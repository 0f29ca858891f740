"""Doing the jobs of a plan: in this process, or on workers of one thread each."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager, suppress
from graphlib import TopologicalSorter
from heapq import heappop, heappush

from leak_atlas import BadInput, duration, one_line
from leak_atlas.engine import paths, store
from leak_atlas.engine.digests import kind_in_cell
from leak_atlas.lab.cluster import Where, Workers, connected, gpus, lost
from leak_atlas.lab.jobs import Outcome, do, keep, name_of, one_thread, orphan, reasons
from leak_atlas.lab.plans import Job, Plan, absent, kinds
from leak_atlas.lab.plans import plan as make_plan
from leak_atlas.lab.prices import remember
from leak_atlas.recipe import Step

STREAMS = 4  # trainings under way in one process that has a GPU; a small one leaves most of it idle
ENOUGH = 30.0  # core-seconds of work above which starting workers pays
SETTLE = 60.0  # seconds that a shared disk may take to show what a worker elsewhere has written
SILENCE = 30.0  # seconds without an outcome before we look whether there is a worker left
QUIET = 300.0  # seconds after which a step that is done is reported

__all__ = ["Lines", "Outcome", "counting", "present", "progress", "reasons", "run", "width"]


class Frontier:
    """The jobs of a plan as their parents are done, in the plan's order; failures are kept.

    `took` receives each outcome. A job whose parent failed ends with it.
    """

    def __init__(self, plan: Plan, took: Callable[[Outcome], None]) -> None:
        self.jobs, self.took = list(plan.jobs.values()), took
        self.failed: dict[str, Outcome] = {}
        self.place = {key: place for place, key in enumerate(plan.jobs)}
        self.order = TopologicalSorter({key: job.needs for key, job in plan.jobs.items()})
        self.order.prepare()
        self.ready = sorted(self.place[key] for key in self.order.get_ready())  # hence a heap

    def __iter__(self) -> Iterator[Job]:
        while self.ready:
            yield self.jobs[heappop(self.ready)]

    def settle(self, outcome: Outcome) -> None:
        """Takes note that a job is done."""
        self.took(outcome)
        if outcome.error:
            self.failed[outcome.key] = outcome
        self.order.done(outcome.key)
        for key in self.order.get_ready():
            job = self.jobs[self.place[key]]
            broken = [self.failed[parent] for parent in job.needs if parent in self.failed]
            if broken:
                self.settle(orphan(job, broken[0]))
            else:
                heappush(self.ready, self.place[key])


def run(
    plan: Plan,
    where: Where | int | None = None,
    on_done: Callable[[Outcome], None] | None = None,
) -> dict[str, Outcome]:
    """Does what a plan holds and returns the outcomes that failed, by key.

    `where`: a number asks for that many processes on this machine. `on_done` receives each outcome
    as it comes; without one, progress is shown. Where a stored input turns out to be corrupt, it
    and what hangs on it are planned and done once more, until no other turns out so: a job meets
    one at a time. Raises BadInput where data are missing, where a scheduler cannot be used or is
    lost, and where the disk takes no more results; what is finished is kept.
    """
    if not plan.jobs:
        return {}
    where = where if isinstance(where, Where) else Where(where)
    present(plan, where)
    here = _alone(plan, where)
    notify = on_done or Lines(plan)
    spent: list[tuple[list[Step], str, float]] = []

    def took(outcome: Outcome) -> None:
        if outcome.refused:
            kept = "what is finished is kept, and the same command goes on from there"
            raise BadInput(f"{outcome.error}; {kept}")
        if outcome.device:
            spent.append((plan.jobs[outcome.key].computed, outcome.device, outcome.seconds))
        notify(outcome)

    store.sweep()
    failed: dict[str, Outcome] = {}
    met: set[str] = set()  # what was corrupt; a disk that tears it again gets no third try
    try:
        while True:
            frontier = Frontier(plan, took)
            if here:
                _here(frontier)
            else:
                _on_workers(frontier, where)
            failed = {key: each for key, each in failed.items() if not each.corrupt}
            failed |= frontier.failed
            torn = {each.corrupt for each in frontier.failed.values() if each.corrupt}
            if torn <= met:
                return failed
            met |= torn
            again = [plan.jobs[key].yields for key, each in failed.items() if each.corrupt]
            plan = make_plan(again)
    finally:
        remember(spent)


def present(plan: Plan, where: Where) -> None:
    """BadInput, which says how to get it, where a data set is not on the machine that trains."""
    missing = {} if where.elsewhere else absent(plan.jobs.values())
    if missing:
        raise BadInput(next(iter(missing.values())))


def width(plan: Plan, where: Where) -> int:
    """How many jobs of a plan run at a time. BadInput where a scheduler cannot be used."""
    if not plan.jobs or _alone(plan, where, silent=True):
        return STREAMS if gpus() else 1
    return where.width()


def _alone(plan: Plan, where: Where, silent: bool = False) -> bool:
    """Whether this process does it all: there is little to do, or only it has the code.

    Raises BadInput where workers elsewhere cannot have the code.
    """
    little = where.local == 1 or plan.seconds < ENOUGH
    own = kind_in_cell(kinds(job.step for job in plan.jobs.values()))
    if not own:
        return little and not where.elsewhere
    why = f"{own} stands in a notebook's cell, which no worker can import"
    if where.elsewhere and not silent:
        raise BadInput(f"{why}: put it into a file")
    if not little and not silent:
        why = f"{why}: this process computes alone; in a file all cores would"
        print(why, file=sys.stderr, flush=True)
    return not where.elsewhere


def _here(frontier: Frontier) -> None:
    """In this process: one after the other, on a GPU a few at a time."""
    with one_thread():
        while frontier.ready:
            for outcome in do(frontier, STREAMS):
                frontier.settle(outcome)


def _on_workers(frontier: Frontier, where: Where) -> None:
    """On workers, which are started again where one of them dies.

    Nobody knows which job killed a worker: all that were under way run once more, each alone.
    """
    suspects: list[Job] = []
    while frontier.ready or suspects:
        with connected(where, len(frontier.jobs)) as workers:
            if suspects:
                _one_by_one(frontier, workers, suspects)
            else:
                suspects = _together(frontier, workers)


def _together(frontier: Frontier, workers: Workers) -> list[Job]:
    """Keeps all workers busy, until all is done or one dies; the jobs under which that happened."""
    running: dict[Future[Outcome], Job] = {}
    suspects: list[Job] = []
    ready = iter(frontier)
    while running or (frontier.ready and not suspects):
        while frontier.ready and not suspects and len(running) <= workers.slots():
            job = next(ready)
            try:
                running[workers.submit(job)] = job
            except BrokenExecutor:
                suspects.append(job)
        done, _ = wait(running, SILENCE, FIRST_COMPLETED)
        if running and not done and not workers.slots():
            print(f"waiting: {workers.name} has no workers", file=sys.stderr, flush=True)
        for future in done:
            job = running.pop(future)
            if _died(future):
                suspects.append(job)
            else:
                frontier.settle(_ended(job, future, workers.name))
    return suspects


def _one_by_one(frontier: Frontier, workers: Workers, suspects: list[Job]) -> None:
    """Takes jobs from `suspects`, until one kills its worker a second time: that one has failed."""
    died = False
    while suspects and not died:
        job = suspects.pop(0)
        future = workers.submit(job)
        wait([future])
        died = _died(future)
        if died:
            why = "the workers that ran it died, alone too; out of memory, perhaps"
            frontier.settle(_failure(job, why))
        else:
            frontier.settle(_ended(job, future, workers.name))


def _died(future: Future[Outcome]) -> bool:
    """Whether a worker died under a job that has ended."""
    error = None if future.cancelled() else future.exception()
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"


def _ended(job: Job, future: Future[Outcome], name: str) -> Outcome:
    """The outcome of a job whose worker lives. BadInput where its scheduler was lost."""
    error = None if future.cancelled() else future.exception()
    if error:  # no job raises: the worker could not read it
        return _failure(job, f"{type(error).__name__}: {error}")
    with lost(name):
        outcome = future.result()
    if not outcome.error and not _arrived(job):
        why = f"a worker of {name} says it is done, but it is not in {paths.store()}"
        why = f"{why}: not the same disk"
        return Outcome(job.key, outcome.name, why)
    return outcome


def _failure(job: Job, why: str) -> Outcome:
    """The outcome of a job that could not say itself how it ended."""
    place = keep(job, f"{why}\n")
    return Outcome(job.key, name_of(job), f"{one_line(why)} (recipe in {place})")


def _arrived(job: Job) -> bool:
    """Whether the results of a worker are seen from here; a shared disk may take a while."""
    deadline = time.monotonic() + SETTLE
    while missing := [step.key for step in job.yields if not store.has(step.key)]:
        if time.monotonic() > deadline:
            return False
        for key in missing:
            with suppress(OSError):
                os.listdir(store.folder(key).parent)  # has NFS look again
        time.sleep(0.2)
    return True


# ---------------------------------------------------------------- progress


def watched() -> bool:
    """Whether this is a kernel that somebody watches."""
    return "ipykernel" in sys.modules and os.environ.get("LEAK_ATLAS_PROGRESS") != "log"


@contextmanager
def counting() -> Iterator[None]:
    """Says in a kernel that costs are counted inside."""
    if not watched():
        yield
        return
    from tqdm.auto import tqdm

    with tqdm(desc="counting what it costs ...", bar_format="{desc}", leave=False):
        yield


@contextmanager
def progress(plan: Plan, workers: int) -> Iterator[Callable[[Outcome], None]]:
    """Shows how a run gets on: a live bar in a kernel that somebody watches, elsewhere `Lines`.

    The bar says from the beginning how long the run has to: by its price, and when jobs were done
    by their pace.
    """
    if not watched():
        yield Lines(plan)
        return
    from tqdm.auto import tqdm

    total = plan.seconds or 1.0
    open_ = {key: job.seconds for key, job in plan.jobs.items()}
    first = 0.0, 0.0
    words = "{l_bar}{bar}| {n:.0f} of {total:.0f} s of work [{elapsed}{postfix}]"

    def left(share: float, pace: float) -> str:
        return f"about {duration((1 - share) / pace)} left"

    def advance(outcome: Outcome) -> None:
        nonlocal first
        seconds = open_.pop(outcome.key, 0.0)  # what met a corrupt input comes again
        now, share = time.monotonic(), min((bar.n + seconds) / total, 1.0)
        first = first if first[0] else (now, share)
        enough = share - first[1] > 0.1
        pace = _pace(first, now, share) if enough else workers / total
        bar.set_postfix_str(left(share, pace), refresh=False)
        bar.update(seconds)

    priced = left(0.0, workers / total)
    with tqdm(total=total, leave=False, bar_format=words, postfix=priced) as bar:
        yield advance
        bar.n = total  # of which rounding may lack a little, and the bar would stay


def _pace(first: tuple[float, float], now: float, share: float) -> float:
    """Share of the work that is done in a second, since the first job was done: starting workers is
    none of it.

    `first`: when that was, and how much of all work it was.
    """
    return (share - first[1]) / (now - first[0]) if now > first[0] else 0.0


class Lines:
    """A line for each tenth of the work, or after `QUIET`, and for each new reason to fail.

    A line has the clock, what is done, for how long this runs, and how long it has to at this pace.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.missing, self.reasons = plan, set(plan.jobs), set[str]()
        self.start = self.printed = time.monotonic()
        self.share = 0.0  # of the work that is done
        self.first = (0.0, 0.0)  # when the first job was done, and the share of it

    def __call__(self, outcome: Outcome) -> None:
        self._fail(outcome)
        now, before = time.monotonic(), int(10 * self.share + 1e-9)
        if outcome.key in self.missing and not outcome.corrupt:  # what was corrupt comes again
            self.missing.discard(outcome.key)
            seconds = self.plan.jobs[outcome.key].seconds
            self.share = min(self.share + seconds / (self.plan.seconds or 1.0), 1.0)
        if not self.first[0]:
            self.first = now, self.share
        if int(10 * self.share + 1e-9) > before or now - self.printed > QUIET:
            self.printed = now
            self._print(now)

    def _fail(self, outcome: Outcome) -> None:
        if outcome.error and not outcome.orphan and outcome.error not in self.reasons:
            self.reasons.add(outcome.error)
            print(f"failed: {outcome.name}: {outcome.error}", file=sys.stderr, flush=True)

    def _print(self, now: float) -> None:
        steps = len(self.plan.jobs)
        done = f"{100 * self.share:.0f} % of the work, {steps - len(self.missing)} of {steps} steps"
        line = f"  {time.strftime('%H:%M')}  {done}, {duration(now - self.start)} so far"
        when, share = self.first  # starting workers is no part of the pace
        if now > when and share < self.share < 0.995:
            left = (1 - self.share) * (now - when) / (self.share - share)
            line += f", about {duration(left)} left"
        print(line, flush=True)
