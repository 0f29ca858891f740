"""Where jobs run: on processes of this machine, on a Dask scheduler or on a queue.

Every worker has one thread. Workers of a machine with GPUs take one each.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any
from unittest.mock import patch

from leak_atlas import KEPT, BadInput, one_line, typed
from leak_atlas.engine import paths, store
from leak_atlas.engine.digests import in_library
from leak_atlas.engine.processes import kill, serve, unheard, uninterrupted
from leak_atlas.lab.jobs import Outcome, do, keep, name_of
from leak_atlas.lab.plans import Job
from leak_atlas.recipe.core import KINDS

QUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "sge": "SGECluster", "lsf": "LSFCluster"}
PATIENCE = 30.0  # seconds to wait for a running scheduler's answer, and for its first worker
SETTLE = 60.0  # seconds that a shared disk may take to show what a worker elsewhere has written
UNGUARDED = (
    "no worker process came up; a script calls lab.realize below `if __name__ == '__main__':`, "
    "because each worker process reads it again"
)

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
ONE_THREAD["OMP_WAIT_POLICY"] = "PASSIVE"

# What workers have in memory when they start: they are forked from a process that has imported it.
PRELOAD = ["torch", "leak_atlas.lab.warm"]

LOGS = ("distributed", "distributed.client", "tornado", "tornado.application")

# Settings of Dask in this process, and in a scheduler that it starts for a queue.
SETTINGS: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": 0,  # a job whose worker died comes back to us
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.http.routes": [],  # nobody asked for a dashboard
    "logging": dict.fromkeys(LOGS, "critical"),  # we say ourselves what is wrong
}


@dataclass(frozen=True)
class Where:
    """Where the jobs of a plan run. A queue goes before a scheduler, a scheduler before this
    machine."""

    workers: int | None = None  # processes on this machine; None: one a core, or one a GPU
    scheduler: str = field(default_factory=lambda: os.environ.get("DASK_SCHEDULER_ADDRESS", ""))
    queue: str = ""  # one of QUEUES
    jobs: int = 1  # of the queue

    @property
    def elsewhere(self) -> bool:
        return bool(self.queue or self.scheduler)

    @property
    def local(self) -> int:
        """Processes on this machine."""
        return self.workers or len(gpus()) or os.cpu_count() or 1

    def width(self) -> int:
        """How many jobs run at a time. Raises BadInput if a scheduler cannot be used."""
        if self.queue:
            return self.jobs * (_site(self.queue).get("cores") or 1)
        if self.scheduler:
            with connected(self) as workers:
                return workers.slots()
        return self.local


@dataclass(frozen=True)
class Workers:
    """What takes jobs: an executor, and the number of jobs that it can do at a time now."""

    submit: Callable[..., Future[Outcome]]
    slots: Callable[[], int]
    name: str  # where they are, for messages
    # what a call of the executor runs in: for a scheduler elsewhere, `lost`
    guard: Callable[[], AbstractContextManager[None]] = nullcontext

    def do(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Keeps all workers busy. A job whose worker dies is done once more, by another one.

        `jobs` are asked again each time: a job that ends may make others ready.
        """
        running: dict[Future[Outcome], Job] = {}
        again: list[Job] = []
        died: set[str] = set()
        while True:
            while len(running) < max(self.slots(), 1):
                job = again.pop() if again else next(iter(jobs), None)
                if not job:
                    break
                running[self._sent(job)] = job
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                if killed(future) and job.key not in died:
                    died.add(job.key)
                    again.append(job)
                else:
                    yield self._outcome(job, future)

    def _sent(self, job: Job) -> Future[Outcome]:
        """A job travels as bytes: a worker reads it only where its library is ours."""
        with self.guard():
            return self.submit(do_sent, pickle.dumps(job), str(paths.store()), revisions())

    def _outcome(self, job: Job, future: Future[Outcome]) -> Outcome:
        """How a job ended, also where its worker could not say so."""
        if killed(future):
            return _failure(job, "two workers that ran it died; out of memory, perhaps")
        try:
            with self.guard():
                outcome = future.result()
        except BadInput:
            raise
        except Exception as error:  # no job raises: the worker could not read it
            return _failure(job, f"{type(error).__name__}: {error}")
        if outcome.error or _arrived(job):
            return outcome
        why = f"a worker of {self.name} says it is done, but it is not in {paths.store()}"
        return _failure(job, f"{why}: not the same disk")


def killed(future: Future[Outcome]) -> bool:
    """Whether a worker died while it did a job."""
    error = None if future.cancelled() else future.exception()
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"


def _failure(job: Job, why: str) -> Outcome:
    """The outcome of a job whose worker could not say how it ended."""
    place = keep(job, f"{why}\n")
    return Outcome(job.key, name_of(job), f"{one_line(why)} (recipe in {place})")


def _arrived(job: Job) -> bool:
    """Whether the results of a worker are seen from here; a shared disk may take a while."""
    deadline = time.monotonic() + SETTLE
    while not all(store.has(step.key) for step in job.yields):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def connected(where: Where, jobs: int = 1) -> AbstractContextManager[Workers]:
    """A context with `Workers` for so many jobs; those that it starts end with it.

    Raises BadInput if a scheduler does not answer or has no workers.
    """
    if where.elsewhere:
        return _dask(where)
    return _processes_here(min(where.local, jobs))


# ---------------------------------------------------------------- on a worker


def do_sent(job: bytes, place: str, known: dict[str, int]) -> Outcome:
    """Runs on a worker: does a pickled job, unless its results would not be the sender's.

    `place` is the sender's store, `known` are its `revisions`.
    """
    unfit = ""
    if place != str(paths.store()):
        start = f"start it with LEAK_ATLAS_STORE={place}"
        unfit = f"a worker keeps its results in {paths.store()}; {start}"
    if known != revisions():
        unfit = "a worker has another version of leak_atlas; start it again from this one"
    if unfit:
        return Outcome("", "worker", unfit, refused=True)
    (outcome,) = do([pickle.loads(job)])
    return outcome


def revisions() -> dict[str, int]:
    """The revision of each of the library's kinds: where these differ, so does what a key means."""
    import leak_atlas.recipe  # noqa: F401 (fills KINDS)

    return {name: kind.revision for name, kind in KINDS.items() if in_library(kind.__module__)}


# ---------------------------------------------------------------- this machine


@contextmanager
def _processes_here(count: int) -> Iterator[Workers]:
    """Worker processes of this machine, each a pool of its own: one that dies takes no job of
    another with it.

    They are forked from a process that has torch in memory, where that is safe: not on macOS once
    numpy is imported, and not on Windows.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(2)  # a worker that reads an unguarded script again
    forked = sys.platform == "linux"
    context = multiprocessing.get_context("forkserver" if forked else "spawn")
    if forked:
        context.set_forkserver_preload(PRELOAD)
    pools = [_pool(context, number) for number in range(count)]
    _begin_first(pools[0])
    newest: dict[int, Future[Outcome]] = {}  # the newest job of each pool that had one

    def submit(*work: Any) -> Future[Outcome]:
        idle = (number for number in range(count) if number not in newest or newest[number].done())
        number = next(idle)
        with unheard():
            try:
                newest[number] = pools[number].submit(*work)
            except BrokenExecutor:  # its worker died
                pools[number] = _pool(context, number)
                newest[number] = pools[number].submit(*work)
        return newest[number]

    try:
        yield Workers(submit, lambda: count, "this machine")
    finally:
        for pool in pools:
            kill(pool)


def _pool(context: Any, number: int) -> ProcessPoolExecutor:
    """One worker process, which starts with its first job."""
    own = dict(os.environ) | ONE_THREAD
    if gpus():
        own["CUDA_VISIBLE_DEVICES"] = gpus()[number % len(gpus())]
    return ProcessPoolExecutor(1, context, _begin, (own,))


def _begin_first(pool: ProcessPoolExecutor) -> None:
    """Starts the first worker, and the process from which the others are forked."""
    # Ctrl-C is for this process alone.
    with unheard(), patch.dict(os.environ, environment()):
        first = pool.submit(os.getpid)
    try:
        first.result()
    except BrokenExecutor:
        raise BadInput(UNGUARDED) from None


def _begin(environment: dict[str, str]) -> None:
    """In a new worker: its environment, and an end with the process that started it."""
    serve()
    os.environ.clear()
    os.environ.update(environment)


def gpus() -> list[str]:
    """The CUDA devices of this machine that this process may use, without importing torch.

    torch's CPU build has none.
    """
    if version("torch").endswith("+cpu"):
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [one for one in visible.split(",") if one.strip() not in ("", "-1")]
    return [str(number) for number in range(len(list(Path("/dev").glob("nvidia[0-9]*"))))]


# ---------------------------------------------------------------- a scheduler, a queue


@contextmanager
def _dask(where: Where) -> Iterator[Workers]:
    """Workers of a running scheduler, or of one that is started here for a queue."""
    import dask

    name = where.queue or where.scheduler
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(SETTINGS))
        from distributed import Client

        target = stack.enter_context(queued(where)) if where.queue else where.scheduler
        try:
            client = stack.enter_context(Client(target, timeout=PATIENCE, set_as_default=False))
        except (OSError, ValueError) as error:  # nobody there, or no address
            raise BadInput(f"no Dask scheduler answers at {name} ({error})") from error
        if where.queue:
            waiting = f"waiting for the first of {where.jobs} jobs of {name}"
            print(waiting, file=sys.stderr, flush=True)
        _first_worker(client, name, None if where.queue else PATIENCE)

        def slots() -> int:
            with lost(name):
                threads = client.nthreads().values()
            if any(count != 1 for count in threads):
                raise BadInput(
                    f"a worker of {name} has several threads; start it with --nthreads 1 (and "
                    "--nworkers)"
                )
            return len(threads)

        submit = client.get_executor(pure=False).submit
        yield Workers(submit, slots, name, partial(lost, name))


def _first_worker(client: Any, name: str, patience: float | None) -> None:
    """Waits for the first worker. Raises BadInput if none comes in time."""
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError:
        start = typed(f"dask worker {name} --nthreads 1")
        why = f"{name} has no workers: {start}, in an environment with leak_atlas"
        raise BadInput(why) from None


@contextmanager
def lost(name: str) -> Iterator[None]:
    """Raises BadInput where Dask reports a lost scheduler. Only calls of Dask belong inside."""
    try:
        yield
    except (CancelledError, asyncio.CancelledError, OSError, RuntimeError) as error:
        raise BadInput(f"lost the scheduler ({name}); {KEPT} (store: {paths.store()})") from error


def environment() -> dict[str, str]:
    """What workers find in their environment: one thread, and this process' folders."""
    own = dict(ONE_THREAD)
    for name, value in os.environ.items():
        if name.startswith("LEAK_ATLAS_"):
            own[name] = value
    places = [str(paths.PACKAGE.parent)]
    if os.environ.get("PYTHONPATH"):
        places.append(os.environ["PYTHONPATH"])
    own["PYTHONPATH"] = os.pathsep.join(places)
    own["LEAK_ATLAS_STORE"] = str(paths.store())
    own["LEAK_ATLAS_DATA"] = str(paths.data())
    return own


def _jobqueue() -> Any:
    """The module `dask_jobqueue`, which replaces the handler of Ctrl-C as it is imported."""
    with uninterrupted():
        import dask_jobqueue

    return dask_jobqueue


def _site(queue: str) -> dict[str, Any]:
    """What Dask's configuration says of the jobs of a queue."""
    import dask

    if find_spec("dask_jobqueue"):
        _jobqueue()  # reads it
    return dask.config.get(f"jobqueue.{queue}", {})


def queued(where: Where) -> Any:
    """A scheduler here, and its workers as jobs of the queue; they are replaced until it closes.

    What a job asks for stands in Dask's configuration, `jobqueue.<queue>`; to its prologue comes
    our environment. Raises BadInput if `dask_jobqueue` is missing or finds no queue.
    """
    if not find_spec("dask_jobqueue"):
        install = typed("pip install dask-jobqueue")
        raise BadInput(f"--queue {where.queue} needs dask-jobqueue: {install}")
    kind = getattr(_jobqueue(), QUEUES[where.queue])
    command = kind.job_cls.submit_command.split()[0]
    if not which(command):
        raise BadInput(f"--queue {where.queue}: there is no command '{command}' here")
    site = _site(where.queue)
    if not (site.get("cores") and site.get("memory")):
        name = f"jobqueue.{where.queue}"
        raise BadInput(f"Dask's configuration lacks cores or memory of {name}: see docs/cluster.md")
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environment().items()]
    cluster = kind(
        processes=site["cores"],  # of one thread each
        job_script_prologue=[*(site["job-script-prologue"] or []), *exports],
    )
    cluster.adapt(minimum_jobs=where.jobs, maximum_jobs=where.jobs)
    return cluster
