"""Where jobs run: in this process, on processes of this machine, on Dask's scheduler or queue.

Every worker has one thread. Workers of a machine with GPUs take one each.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import pickle
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from leak_atlas import BadInput, typed
from leak_atlas.engine import paths
from leak_atlas.engine.digests import in_library
from leak_atlas.engine.processes import ending, serve, unheard
from leak_atlas.lab.jobs import Outcome, do_one
from leak_atlas.lab.plans import Job
from leak_atlas.recipe.core import KINDS

if TYPE_CHECKING:
    from distributed import Client

QUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "sge": "SGECluster", "lsf": "LSFCluster"}
PATIENCE = 30.0  # seconds to wait for a running scheduler's answer, and for its first worker
UNGUARDED = (
    "no worker process came up; a script calls lab.realize below `if __name__ == '__main__':`, "
    "because each worker process reads it again"
)

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
ONE_THREAD["OMP_WAIT_POLICY"] = "PASSIVE"

# What workers have in memory when they start: they are forked from a process that has imported it.
PRELOAD = ["torch", "leak_atlas.lab.warm"]

# Settings of Dask in this process, and in a scheduler that it starts for a queue.
SETTINGS: dict[str, Any] = {
    "distributed.scheduler.allowed-failures": 1,  # a job that met a dead worker is run alone
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.http.routes": [],  # nobody asked for a dashboard
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
        """How many jobs run at a time. Raises BadInput where a scheduler cannot be used."""
        if self.queue:
            return self.jobs * (_site(self.queue).get("cores") or 1)
        if self.scheduler:
            with connected(self) as workers:
                return workers.slots()
        return self.local


class Workers(NamedTuple):
    """What takes jobs. `slots` is the number of workers that are there now."""

    submit: Callable[[Job], Future[Outcome]]
    slots: Callable[[], int]
    name: str  # where they are, for messages


def connected(where: Where, jobs: int = 1) -> Any:
    """A context with `Workers` for so many jobs; those that it starts are gone afterwards.

    Raises BadInput where a scheduler does not answer, has no workers, or has workers that cannot do
    these jobs.
    """
    if where.elsewhere:
        return _dask(where)
    return _processes_here(min(where.local, jobs))


# ---------------------------------------------------------------- this machine


@contextmanager
def _processes_here(count: int) -> Iterator[Workers]:
    """Worker processes of this machine. They are forked from a process that has torch in memory,
    where that is safe: not on macOS once numpy is imported, and not on Windows."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(2)  # a worker that reads an unguarded script again
    forked = sys.platform == "linux"
    context = multiprocessing.get_context("forkserver" if forked else "spawn")
    if forked:
        context.set_forkserver_preload(PRELOAD)
    devices = context.SimpleQueue()
    for number in range(count):
        devices.put(gpus()[number % len(gpus())] if gpus() else None)
    own = dict(os.environ) | ONE_THREAD
    pool = ProcessPoolExecutor(count, context, _begin, (own, devices))

    def submit(job: Job) -> Future[Outcome]:
        return pool.submit(_unpacked, pickle.dumps(job))

    with ending(pool):
        _begun(pool)
        yield Workers(submit, lambda: count, "this machine")


def _begun(pool: ProcessPoolExecutor) -> None:
    """Waits for the first worker."""
    try:
        # What the process that forks inherits; Ctrl-C is for this process alone.
        with unheard(), patch.dict(os.environ, environment()):
            first = pool.submit(os.getpid)
        first.result()
    except BrokenExecutor:
        print(f"leak atlas: {UNGUARDED}", file=sys.stderr, flush=True)
        raise SystemExit(2) from None


def _begin(environment: dict[str, str], devices: Any) -> None:
    """In a new worker: its environment, its GPU, and an end with the process that started it."""
    serve()
    os.environ.clear()
    os.environ.update(environment)
    device = devices.get()
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device


def _unpacked(packed: bytes) -> Outcome:
    """Does a job. It travels as bytes, because a worker that cannot read its task dies."""
    return do_one(pickle.loads(packed))


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
    if not find_spec("distributed"):
        raise BadInput(f"a cluster needs Dask: {typed('pip install distributed')}")
    import dask
    from distributed import Client

    name = where.queue or where.scheduler
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(SETTINGS))
        _hush(stack)
        target = stack.enter_context(queued(where)) if where.queue else _answers(where.scheduler)
        client = stack.enter_context(Client(target, timeout=PATIENCE, set_as_default=False))
        if where.queue:
            print(
                f"waiting for the first of {where.jobs} jobs of {name}", file=sys.stderr, flush=True
            )
            client.wait_for_workers(1)
        check(client, name)
        executor = client.get_executor(pure=False)

        def submit(job: Job) -> Future[Outcome]:
            with lost(name):
                return executor.submit(do_one, job)

        def slots() -> int:
            with lost(name):
                return sum(client.nthreads().values())

        yield Workers(submit, slots, name)


def _hush(stack: ExitStack) -> None:
    """Silences Dask's account of a lost scheduler, which runs over many lines."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(("distributed", "tornado")):
            log = logging.getLogger(name)
            stack.callback(log.setLevel, log.level)
            log.setLevel(logging.CRITICAL)


@contextmanager
def lost(name: str) -> Iterator[None]:
    """Inside stands only what Dask does; what it raises where the scheduler is lost is BadInput."""
    try:
        yield
    except (CancelledError, asyncio.CancelledError, OSError, RuntimeError) as error:
        raise BadInput(
            f"lost the scheduler ({name}); what is finished is kept in {paths.store()}, "
            "and the same command goes on from there"
        ) from error


def _answers(address: str) -> str:
    """The address; BadInput where no Dask scheduler answers in time. A client would ask for
    ever."""
    from distributed.core import rpc

    async def identity() -> str:
        async with rpc(address) as scheduler:
            return str((await scheduler.identity())["type"])

    def asked() -> str:
        return asyncio.run(asyncio.wait_for(identity(), PATIENCE))

    try:
        with ThreadPoolExecutor(1) as thread:  # a notebook's own thread has a loop that runs
            kind = thread.submit(asked).result()
    except Exception as error:  # whatever answers there may not speak Dask's language
        why = str(error) or f"silence for {PATIENCE:g} s"
        raise BadInput(f"no Dask scheduler answers at {address} ({why})") from error
    if kind != "Scheduler":
        raise BadInput(f"a {kind} answers at {address}, no Dask scheduler")
    return address


def environment() -> dict[str, str]:
    """What workers find in their environment: one thread, and this process' folders."""
    own = {name: value for name, value in os.environ.items() if name.startswith("LEAK_ATLAS_")}
    known = os.environ.get("PYTHONPATH", "")
    own["PYTHONPATH"] = os.pathsep.join(filter(None, [str(paths.PACKAGE.parent), known]))
    own["LEAK_ATLAS_STORE"] = str(paths.store())
    own["LEAK_ATLAS_DATA"] = str(paths.data())
    return ONE_THREAD | own


def _jobqueue() -> Any:
    """The module `dask_jobqueue`, which replaces the handler of Ctrl-C as it is imported."""
    handler = signal.getsignal(signal.SIGINT)
    import dask_jobqueue

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)
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
    our environment. Raises BadInput where `dask_jobqueue` is missing or finds no queue.
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


def revisions() -> dict[str, int]:
    """The revision of each of the library's kinds: where these differ, so does what a key means."""
    return {name: kind.revision for name, kind in KINDS.items() if in_library(kind.__module__)}


def unfit(token: Path, known: dict[str, int], dask_worker: Any) -> str:
    """Runs on a worker: why it cannot do our jobs, or "".

    `token` is a file in our store, `known` are our `revisions`.
    """
    import leak_atlas.recipe  # noqa: F401 (fills KINDS)

    if not (paths.store() / token.name).exists():
        here = paths.store()
        return f"keeps its results in {here}, not in {token.parent}; start it with LEAK_ATLAS_STORE"
    if known != revisions():
        return "has another version of leak_atlas; start it again from this one"
    if dask_worker.state.nthreads != 1:
        return "has several threads; start it with --nthreads 1 (and --nworkers)"
    return ""


def check(client: Client, name: str) -> None:
    """Asks the workers of a scheduler; BadInput where there is none, or one cannot do our jobs."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        start = typed(f"dask worker {name} --nthreads 1")
        raise BadInput(
            f"{name} has no workers: {start}, in an environment with leak_atlas"
        ) from None
    paths.store().mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=paths.store(), prefix=".seen-") as file:
        found = client.run(unfit, Path(file.name), revisions(), on_error="return")
    for worker, why in found.items():
        if isinstance(why, BaseException):
            why = f"cannot run leak_atlas ({why!r}); start it where it and torch are found"
        if why:
            raise BadInput(f"worker {worker} of {name} {why}")
