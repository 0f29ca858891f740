"""Doing the jobs of a plan: in this process, or on Dask workers of one thread each."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import nullcontext, suppress
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from importlib.util import find_spec
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from lib import BadInput, duration, one_line, paths, store
from lib.code import in_cell
from lib.lab.cluster import Engine, Where, connect, gpus
from lib.lab.jobs import Outcome, do, keep, name_of, one_thread, orphan, reasons
from lib.lab.plans import Job, Plan, absent, kinds
from lib.lab.plans import plan as make_plan
from lib.lab.prices import remember
from lib.recipe import Step, Train

STREAMS = 4  # trainings under way at a time in one process that has a GPU; a small one leaves most of it idle
BUNDLE = 0.3  # seconds of short jobs that go to a worker as one task: what Dask takes for a task is little of it
ENOUGH = 30.0  # core-seconds of work above which starting workers pays
SETTLE = 60.0  # seconds that a shared disk may take to show here what a worker has written there
SILENCE = 30.0  # seconds without an outcome before we look whether there is anybody left to bring one
QUIET = 300.0  # seconds after which a step that is done is told of
DESERTED = 120.0  # seconds without a worker on this machine after which a run gives up; a queue may take days

__all__ = ["Outcome", "reasons", "reporter", "run", "width"]


class Frontier:
    """The jobs of a plan as their parents are done, in the plan's order. Of what is done only failures are kept.

    `took` is told of each job that is done; one whose parent failed is done with that.
    """

    def __init__(self, plan: Plan, took: Callable[[Outcome], None]) -> None:
        self.jobs, self.took, self.failed = list(plan.jobs.values()), took, dict[str, Outcome]()
        self.place = {key: place for place, key in enumerate(plan.jobs)}
        self.order = TopologicalSorter({key: job.needs for key, job in plan.jobs.items()})
        self.order.prepare()
        self.ready = sorted(map(self.place.__getitem__, self.order.get_ready()))  # hence a heap

    def __iter__(self) -> Iterator[Job]:
        while self.ready:
            yield self.jobs[heappop(self.ready)]

    def bundle(self, workers: int) -> list[Job]:
        """What one of so many workers does next: a job, or some short ones of which the last may be a training."""
        share, seconds, found = len(self.ready) / workers, 0.0, list[Job]()
        for job in self:
            found.append(job)
            seconds += job.seconds
            if len(found) >= share or seconds >= BUNDLE or isinstance(job.step, Train):
                break  # a training ends a bundle, so that all plans name its task alike
        return found

    def again(self, job: Job) -> None:
        """A job that was taken has not been done."""
        heappush(self.ready, self.place[job.key])

    def settle(self, outcome: Outcome) -> None:
        """Takes note that a job is done."""
        self.took(outcome)
        if outcome.error:
            self.failed[outcome.key] = outcome
        self.order.done(outcome.key)
        for key in self.order.get_ready():
            job = self.jobs[self.place[key]]
            if broken := next((self.failed[parent] for parent in job.needs if parent in self.failed), None):
                self.settle(orphan(job, broken))
            else:
                self.again(job)


def run(
    plan: Plan, where: Where | int | None = None, on_done: Callable[[Outcome], None] = lambda _: None
) -> dict[str, Outcome]:
    """Does what a plan holds, tells `on_done` of each outcome as it comes, and returns those that failed, by key.

    `where`: a number asks for that many processes on this machine. Where a stored input turns out to be corrupt, it and
    what hangs on it are planned and done once more, until no other turns out so: a job meets one at a time. Raises
    BadInput where a scheduler cannot be used or is lost, and where the disk takes no more results; what is finished is
    kept.
    """
    store.sweep()
    where = where if isinstance(where, Where) else Where(where)
    if own := _homebound(plan):
        says = f"{own} stands in a notebook's cell, which no worker can import"
        if where.elsewhere:
            raise BadInput(f"{says}: put it into a file")
        if plan.seconds >= ENOUGH:
            print(f"{says}: this process computes alone; in a file all cores would", file=sys.stderr, flush=True)
    present(plan, where)
    failed: dict[str, Outcome] = {}
    met: set[str] = set()  # what was corrupt; a disk that tears it again gets no third try
    spent: list[tuple[list[Step], str, float]] = []

    def took(outcome: Outcome) -> None:
        if outcome.refused:
            raise BadInput(f"{outcome.error}; what is finished is kept, and the same command goes on from there")
        if outcome.device:
            spent.append((plan.jobs[outcome.key].computed, outcome.device, outcome.seconds))
        on_done(outcome)

    try:
        with nullcontext() if not plan.jobs or _alone(plan, where) else connect(where, len(plan.jobs)) as engine:
            for turn in count():
                frontier = Frontier(plan, took)
                if engine:
                    Dispatch(frontier, engine, f"-{turn}" * (turn > 0)).run()
                else:
                    _here(frontier)
                failed = {key: outcome for key, outcome in failed.items() if not outcome.corrupt} | frontier.failed
                torn = {outcome.corrupt for outcome in frontier.failed.values() if outcome.corrupt}
                if torn <= met:
                    break
                met |= torn
                plan = make_plan(plan.jobs[key].yields for key, outcome in failed.items() if outcome.corrupt)
    finally:
        remember(spent)
    return failed


def present(plan: Plan, where: Where) -> None:
    """BadInput, which says how to get it, where a data set is not on the machine that trains."""
    if gone := not where.elsewhere and absent(plan.jobs.values()):
        raise BadInput(next(iter(gone.values())))


def _alone(plan: Plan, where: Where) -> bool:
    """Whether this process does it all; a machine may have torch and no Dask."""
    little = where.local == 1 or plan.seconds < ENOUGH or not find_spec("distributed")
    return not where.elsewhere and (little or bool(_homebound(plan)))


def _homebound(plan: Plan) -> str:
    """A kind of a plan that no other process can import, or ""."""
    return in_cell(kinds(job.step for job in plan.jobs.values()))


def width(plan: Plan, where: Where) -> int:
    """How many jobs of a plan run at a time, for its preview. Raises BadInput where a scheduler cannot be used."""
    if _alone(plan, where):
        return STREAMS if gpus() else 1
    return where.width()


def _here(frontier: Frontier) -> None:
    """In this process: one after the other, on a GPU a few at a time."""
    with one_thread():
        while frontier.ready:
            for outcome in do(frontier, STREAMS):
                frontier.settle(outcome)


def bundle(jobs: list[Job]) -> list[Outcome]:
    """On a worker: jobs one after the other, until the disk refuses one."""
    with one_thread():
        return list(do(jobs))


class Dispatch:
    """Sends jobs to workers as their parents are done, not many more than there are workers.

    A task holds a job, or a bundle of short ones. It has no parents for Dask: two plans on one scheduler may see a
    different part of the same chain as missing, and a Dask key must mean the same task to both. The key is that of the
    last job: another plan's task of this key has done that one, and what else was in ours is sent again. A worker that
    dies takes few jobs with it that only waited there.
    """

    def __init__(self, frontier: Frontier, engine: Engine, mark: str = "") -> None:
        self.frontier, self.engine, self.mark = frontier, engine, mark
        self.running: dict[str, tuple[list[Job], Any]] = {}  # futures are kept: Dask forgets what nobody wants
        self.suspects: list[Job] = []  # a worker died under them, or under another job beside them
        self.landed: SimpleQueue[Any] = SimpleQueue()

    def run(self) -> None:
        slots, looked = 1, -1.0
        seen = time.monotonic()  # when there was a worker or an outcome
        while self.frontier.ready or self.running or self.suspects:
            if time.monotonic() - looked > 1:
                slots, looked = self.engine.slots(), time.monotonic()
                if slots:
                    seen = looked
            while self.frontier.ready and len(self.running) <= slots:
                self.start(self.frontier.bundle(slots + 1), self.mark)
            if not self.running and self.suspects:
                self.start([self.suspects.pop(0)], self.mark, "-alone")
            if self.running:
                try:
                    self.land(self.landed.get(timeout=SILENCE))
                except Empty:
                    self.waited(time.monotonic() - seen)

    def waited(self, bare: float) -> None:
        """Says that there are no workers. BadInput where those of this machine do not come back."""
        if self.engine.slots():
            return
        if self.engine.local and bare > DESERTED:
            raise BadInput(
                f"all workers of {self.engine.name} died and none came back within {DESERTED:.0f} s (out of memory, "
                "perhaps: ask for fewer --workers); what is finished is kept, and the same command goes on from there"
            )
        print(f"waiting: {self.engine.name} has no workers left", file=sys.stderr, flush=True)

    def start(self, jobs: list[Job], *marks: str) -> None:
        key = "-".join([type(jobs[-1].step).__name__, jobs[-1].key]) + "".join(marks)
        # What follows the device waits for one where workers declare them.
        needs = {"GPU": 1} if self.engine.gpu and any(job.step.place == "device" for job in jobs) else None
        with self.engine.asked():
            future = self.engine.client.submit(
                bundle, jobs, key=key, priority=-self.frontier.place[jobs[0].key], resources=needs
            )
            future.add_done_callback(self.landed.put)
        self.running[key] = jobs, future

    def land(self, future: Any) -> None:
        jobs, _ = self.running.pop(future.key)
        with self.engine.asked():
            if future.cancelled():
                raise CancelledError
            error = future.exception() if future.status == "error" else None
            outcomes = [] if error else future.result()
        if error:  # no job raises: a worker died under it, or could not read it
            killed = type(error).__name__ == "KilledWorker"
            if len(jobs) > 1 or (killed and not future.key.endswith("-alone")):
                self.suspects += jobs  # or they only stood beside the one that kills
                return
            why = one_line(f"{type(error).__name__}: {error}")
            if killed:
                why = "the workers that ran it died, alone too; out of memory, perhaps"
            name, place = name_of(jobs[0]), keep(jobs[0], f"{why}\n")
            outcomes = [Outcome(jobs[0].key, name, f"{why} (recipe in {place})")]
        for job in jobs:
            self.judge(job, next((outcome for outcome in outcomes if outcome.key == job.key), None))

    def judge(self, job: Job, outcome: Outcome | None) -> None:
        """Settles a job by what its task says of it."""
        if outcome is None:
            self.frontier.again(job)
        elif not outcome.error and not {step.key for step in job.yields} <= set(outcome.there):
            asked = "".join(f"-{step.key[:8]}" for step in job.yields[1:])
            self.start([job], asked, self.mark)  # another plan's job of this key, which asked for other epochs
        elif not outcome.error and not _arrived(outcome.there):
            why = f"a worker of {self.engine.name} says it is done, but it is not in {paths.store()}: not the same disk"
            self.frontier.settle(Outcome(job.key, outcome.name, why))
        else:
            self.frontier.settle(outcome)


def _arrived(keys: tuple[str, ...]) -> bool:
    """Whether entries that a worker has stored are seen from here; a shared disk may take a while to tell."""
    deadline = time.monotonic() + SETTLE
    while missing := [key for key in keys if not store.has(key)]:
        if time.monotonic() > deadline:
            return False
        for key in missing:
            with suppress(OSError):
                os.listdir(store.folder(key).parent)  # has NFS look again
        time.sleep(0.2)
    return True


# ---------------------------------------------------------------- progress


def reporter(plan: Plan) -> Callable[[Outcome], None]:
    """A live bar in a kernel that somebody watches; elsewhere a line a tenth of the work, or after `QUIET`.

    A line has the clock, what is done, for how long this runs and, at the pace so far, how long it has to.
    """
    total, open_ = plan.seconds or 1.0, set(plan.jobs)
    if sys.modules.get("ipykernel") and os.environ.get("LEAK_ATLAS_PROGRESS") != "log":
        from tqdm.auto import tqdm

        words = "{l_bar}{bar}| {n:.0f} of {total:.0f} s of work [{elapsed}, {remaining} left]"
        bar = tqdm(total=total, leave=False, bar_format=words)

        def advance(outcome: Outcome) -> None:
            if outcome.key in open_:  # what met a corrupt input comes again
                bar.update(plan.jobs[outcome.key].seconds)
            open_.discard(outcome.key)
            if not open_:
                bar.close()

        return advance

    start = told = time.monotonic()
    done, seconds, known, first = 0, 0.0, set[str](), (0.0, 0.0)  # when the first was done, and how much of it all

    def line(outcome: Outcome) -> None:
        nonlocal done, seconds, told, first
        before = int(10 * seconds / total + 1e-9)
        if outcome.key in open_ and not outcome.corrupt:  # what met a corrupt input comes again
            open_.discard(outcome.key)
            done, seconds = done + 1, seconds + plan.jobs[outcome.key].seconds
        tenth = int(10 * seconds / total + 1e-9)
        if outcome.error and not outcome.orphan and outcome.error not in known:
            known.add(outcome.error)
            print(f"failed: {outcome.name}: {outcome.error}", file=sys.stderr, flush=True)
        now = time.monotonic()
        if not first[0]:
            first = now, min(seconds / total, 1.0)
        if tenth > before or now - told > QUIET:
            told, share = now, min(seconds / total, 1.0)
            pace = (share - first[1]) / (now - first[0]) if now > first[0] else 0.0  # starting workers is none of it
            left = f", about {duration((1 - share) / pace)} left" if pace and share < 0.995 else ""
            print(
                f"  {time.strftime('%H:%M')}  {100 * share:.0f} % of the work, {done} of {len(plan.jobs)} steps, "
                f"{duration(now - start)} so far{left}",
                flush=True,
            )

    return line
