"""Doing the jobs of a plan: in this process, or on Dask workers of one thread each."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import Any

from lib import BadInput, paths, store
from lib.lab.cluster import Engine, Where, connect, gpus
from lib.lab.pace import Pace, remember
from lib.lab.plans import Job, Plan
from lib.lab.plans import plan as make_plan

STREAMS = 4  # trainings under way at a time in one process that has a GPU; a small one leaves most of it idle
ENOUGH = 30.0  # core-seconds of work above which starting workers pays
SETTLE = 60.0  # seconds that a shared disk may take to show here what a worker has written there
SILENCE = 30.0  # seconds without an outcome before we look whether there is anybody left to bring one


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: `error` is empty, or one line that says why it failed."""

    key: str
    name: str
    error: str = ""
    seconds: float = 0.0
    operations: float = 0.0
    device: str = ""  # its name
    corrupt: bool = False  # an input did not match its digest; it is forgotten, so a second try makes it again
    refused: bool = False  # the disk does not take what is to be stored: no other job has better luck
    there: tuple[str, ...] = ()  # keys of all entries that the job was asked for and that are stored now
    orphan: bool = False  # nothing is wrong with it but that a parent failed


def do(job: Job) -> Outcome:
    """One job from its start to its end."""
    from lib.training.loop import fit_many

    with one_thread():
        ((_, outcome),) = fit_many([_doing(job)])
    return _told(outcome)


def _doing(job: Job, broken: Outcome | None = None) -> Generator[None, None, Outcome]:
    """One job, which pauses where others may go on beside it. `broken` is a parent that failed.

    A failure is an outcome too: siblings go on, children say which parent failed.
    """
    if broken:
        return _orphan(job, broken)
    from lib.lab.work import run

    name, there = _name(job), tuple(step.key for step in job.yields)
    try:
        if all(store.has(key) for key in there):
            return Outcome(job.key, name, there=there)
        try:
            meta = yield from run(job)
        except store.Corrupt as error:
            store.discard(error.key)
            return Outcome(job.key, name, f"{error}; computing it again", corrupt=True)
        operations, device = meta.get("operations", 0.0), meta["device"]
        return Outcome(job.key, name, seconds=meta["seconds"], operations=operations, device=device, there=there)
    except store.Refused as error:
        return Outcome(job.key, name, str(error), refused=True)
    except Exception as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        if not isinstance(error, BadInput):
            why += f" (trace and recipe in {_keep(job, traceback.format_exc())})"
        return Outcome(job.key, name, why)


def reasons(failed: Iterable[Outcome]) -> list[str]:
    """One line for each thing that went wrong, however many jobs it hit; those that only lack a parent are not told."""
    every = list(failed)
    found: dict[str, list[Outcome]] = {}
    for outcome in [each for each in every if not each.orphan] or every:
        found.setdefault(outcome.error, []).append(outcome)
    more = {error: f" (and {len(each) - 1} more)" * (len(each) > 1) for error, each in found.items()}
    return [f"{each[0].name}: {error}{more[error]}" for error, each in found.items()]


def _told(outcome: Outcome | Exception) -> Outcome:
    assert isinstance(outcome, Outcome), outcome  # no job raises
    return outcome


def _orphan(job: Job, broken: Outcome) -> Outcome:
    return Outcome(
        job.key, _name(job), f"its parent {broken.name} failed: {broken.error}", corrupt=broken.corrupt, orphan=True
    )


def _name(job: Job) -> str:
    return f"{type(job.step).__name__} {job.key[:12]}"


def _keep(job: Job, trace: str) -> str:
    """Keeps what is known of a failure beside the results; its place."""
    log = paths.store() / "failures" / f"{job.key[:12]}.txt"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(trace + json.dumps(job.step.record(), indent=1))
    except OSError as error:  # a full disk should not hide what went wrong
        return f"no file: {error.strerror}"
    return str(log)


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread: two that spin beside another busy process are many times slower, and results would differ."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Frontier:
    """The jobs of a plan as their parents are done, in the plan's order. Of what is done only failures are kept."""

    def __init__(self, plan: Plan) -> None:
        self._jobs = list(plan.jobs.values())
        self._place = {job.key: place for place, job in enumerate(self._jobs)}
        self._open = [len(job.needs) for job in self._jobs]
        self._children: dict[str, list[int]] = defaultdict(list)
        for place, job in enumerate(self._jobs):
            for key in job.needs:
                self._children[key].append(place)
        self._failed: dict[str, Outcome] = {}
        self._ready = [place for place, count in enumerate(self._open) if not count]  # sorted, hence a heap

    def __bool__(self) -> bool:
        """Whether a job is ready."""
        return bool(self._ready)

    def pop(self) -> tuple[Job, Outcome | None]:
        """The next job, and one of its parents that failed."""
        job = self._jobs[heappop(self._ready)]
        return job, next((self._failed[key] for key in job.needs if key in self._failed), None)

    def place(self, job: Job) -> int:
        return self._place[job.key]

    def settle(self, outcome: Outcome) -> None:
        """Takes note that a job is done."""
        if outcome.error:
            self._failed[outcome.key] = outcome
        for child in self._children.pop(outcome.key, ()):
            self._open[child] -= 1
            if not self._open[child]:
                heappush(self._ready, child)


def run(
    plan: Plan,
    where: Where | int | None = None,
    on_done: Callable[[Outcome], None] | None = None,
) -> dict[str, Outcome]:
    """Does what a plan holds, tells `on_done` of each outcome as it comes, and returns those that failed, by key.

    `where`: a number asks for that many processes on this machine. Where a stored input turns out to be corrupt, it and
    what hangs on it are planned and done once more. Raises BadInput where a scheduler cannot be used or is lost, and
    where the disk takes no more results; what is finished is kept.
    """
    store.sweep()
    where = where if isinstance(where, Where) else Where(where)
    failed: dict[str, Outcome] = {}
    paces: dict[str, Pace] = defaultdict(Pace)

    def took(outcome: Outcome) -> None:
        if outcome.refused:
            raise BadInput(f"{outcome.error}; what is finished is kept, and the same command goes on from there")
        failed.pop(outcome.key, None)  # of before its input was made again
        if outcome.error:
            failed[outcome.key] = outcome
        if outcome.name.startswith("Train "):
            paces[outcome.device].count(outcome.operations, outcome.seconds)
        if on_done:
            on_done(outcome)

    def twice(go: Callable[[Plan, str], None]) -> None:
        try:
            go(plan, "")
            spoilt = [plan.jobs[key].yields for key, outcome in failed.items() if outcome.corrupt]
            if spoilt:
                go(make_plan(spoilt), "-again")
        finally:
            remember(paces)

    if not plan.jobs or _alone(plan, where):
        twice(lambda todo, _: _here(todo, took))
    else:
        with connect(where, len(plan.jobs)) as engine:
            twice(lambda todo, mark: _there(todo, engine, mark, took))
    return failed


def _alone(plan: Plan, where: Where) -> bool:
    """Whether this process does it all; a machine may have torch and no Dask."""
    little = where.local == 1 or plan.seconds < ENOUGH or not find_spec("distributed")
    return little and not where.elsewhere


def width(plan: Plan, where: Where) -> int:
    """How many jobs of a plan run at a time, for its preview. Raises BadInput where a scheduler cannot be used."""
    if _alone(plan, where):
        return STREAMS if gpus() else 1
    return where.width()


def _here(plan: Plan, took: Callable[[Outcome], None]) -> None:
    """In this process: one after the other, on a GPU a few at a time."""
    from lib.training.loop import fit_many

    frontier = Frontier(plan)

    def ready() -> Iterator[Generator[None, None, Outcome]]:
        while frontier:
            yield _doing(*frontier.pop())

    with one_thread():
        while frontier:
            for _, outcome in fit_many(ready(), STREAMS):
                took(_told(outcome))
                frontier.settle(_told(outcome))


def _there(plan: Plan, engine: Engine, mark: str, took: Callable[[Outcome], None]) -> None:
    """Sends jobs to workers as their parents are done, not many more than there are workers.

    A task has no parents for Dask: two plans on one scheduler may see a different part of the same chain as missing,
    and a Dask key must mean the same task to both. A worker that dies takes few jobs with it that only waited there.
    """
    frontier = Frontier(plan)
    running: dict[str, tuple[Job, Any]] = {}  # futures are kept: Dask forgets what nobody wants
    suspects: list[Job] = []
    landed: SimpleQueue[Any] = SimpleQueue()
    slots, looked = 1, -1.0

    def start(job: Job, *marks: str) -> None:
        key = "-".join([type(job.step).__name__, job.key]) + "".join(marks)
        # What follows the device waits for one where workers declare them.
        needs = {"GPU": 1} if engine.gpu and job.step.place == "device" else None
        with engine.asked():
            future = engine.client.submit(do, job, key=key, priority=-frontier.place(job), resources=needs)
            future.add_done_callback(landed.put)
        running[key] = job, future

    def settle(outcome: Outcome) -> None:
        took(outcome)
        frontier.settle(outcome)

    def land(future: Any) -> None:
        job, _ = running.pop(future.key)
        with engine.asked():
            if future.cancelled():
                raise CancelledError
            # No job raises: a worker died under it, or could not read it.
            error = future.exception() if future.status == "error" else None
            outcome = None if error else future.result()
        if error:
            if type(error).__name__ == "KilledWorker" and not future.key.endswith("-alone"):
                suspects.append(job)  # or it only stood beside the one that kills
                return
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            if type(error).__name__ == "KilledWorker":
                why = "the workers that ran it died, alone too; out of memory, perhaps"
            settle(Outcome(job.key, _name(job), f"{why} (recipe in {_keep(job, why + chr(10))})"))
            return
        assert outcome is not None
        asked = "".join(f"-{at.when}" for at in job.asked)
        if not outcome.error and not {step.key for step in job.yields} <= set(outcome.there):
            start(job, asked, mark)  # somebody else's job of this key, who asked for other epochs of this training
        elif not outcome.error and not _arrived(outcome.there):
            why = f"a worker of {engine.name} says it is done, but it is not in {paths.store()}: not the same disk"
            settle(Outcome(job.key, outcome.name, why))
        else:
            settle(outcome)

    while frontier or running or suspects:
        if time.monotonic() - looked > 1:
            slots, looked = engine.slots(), time.monotonic()
        while frontier and len(running) <= slots:
            job, broken = frontier.pop()
            if broken:
                settle(_orphan(job, broken))
            else:
                start(job, mark)
        if not running and suspects:
            start(suspects.pop(0), mark, "-alone")
        if running:
            try:
                land(landed.get(timeout=SILENCE))
            except Empty:
                if not engine.slots():
                    print(f"waiting: {engine.name} has no workers left", file=sys.stderr, flush=True)


def _arrived(keys: tuple[str, ...]) -> bool:
    """Whether entries that a worker has stored are seen from here; a shared disk may take a while to tell."""
    deadline = time.monotonic() + SETTLE
    while not all(store.has(key) for key in keys):
        if time.monotonic() > deadline:
            return False
        for key in keys:
            with suppress(OSError):
                os.listdir(store.folder(key).parent)  # has NFS look again
        time.sleep(0.2)
    return True


# ---------------------------------------------------------------- progress


def reporter(plan: Plan) -> Callable[[Outcome], None]:
    """A live bar in a kernel that somebody watches, a line per tenth of the work elsewhere."""
    total = plan.seconds or 1.0
    if sys.modules.get("ipykernel") and os.environ.get("LEAK_ATLAS_PROGRESS") != "log":
        from tqdm.auto import tqdm

        bar = tqdm(total=len(plan.jobs), unit="step", leave=False)
        bar.set_description(f"about {total / 60:.1f} core-minutes")

        def advance(outcome: Outcome) -> None:
            bar.update()
            if bar.n >= len(plan.jobs):
                bar.close()

        return advance

    done = {"seconds": 0.0, "tenth": 0, "jobs": 0}
    known: set[str] = set()

    def line(outcome: Outcome) -> None:
        done["seconds"] += plan.jobs[outcome.key].seconds if outcome.key in plan.jobs else 0
        done["jobs"] += 1
        tenth = int(10 * done["seconds"] / total + 1e-9)
        if outcome.error and not outcome.orphan and outcome.error not in known:
            known.add(outcome.error)
            print(f"failed: {outcome.name}: {outcome.error}", file=sys.stderr, flush=True)
        if tenth > done["tenth"]:
            done["tenth"] = tenth
            print(f"  {done['jobs']} of {len(plan.jobs)} steps, {10 * tenth} % of the work", flush=True)

    return line
