"""Where jobs run: in this process, on workers of this machine, on a running Dask scheduler, or on a site's queue.

Every worker has one thread. As a Dask preload (`dask worker ... --name gpu --preload lib.lab.cluster`) this module
gives each worker of a machine a GPU of its own.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import inspect
import logging
import os
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import current_process
from pathlib import Path
from shutil import which
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from lib import BadInput, paths, typed
from lib.code import ours
from lib.recipe.core import KINDS

if TYPE_CHECKING:
    from distributed import Client

QUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "sge": "SGECluster", "lsf": "LSFCluster"}
UNGUARDED = "a script calls lab.realize below `if __name__ == '__main__':`, because each worker process reads it again"
PATIENCE = 30.0  # seconds to wait for a running scheduler's answer, and for its first worker

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
ONE_THREAD["OMP_WAIT_POLICY"] = "PASSIVE"
SETTINGS: dict[str, Any] = {
    "distributed.worker.daemon": False,  # a step may need child processes
    "distributed.admin.tick.limit": "1h",  # a training holds its worker's loop now and then
    "distributed.scheduler.allowed-failures": 1,  # deaths of workers under a job before it is tried alone (lib.lab.run)
    "distributed.scheduler.work-stealing-interval": "100ms",  # the one job that waits goes to who is free first
    # Dask's looks at itself take 3 % of two cores that train, all its processes together; so they take less than 1 %.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.http.routes": [],  # nobody asked for a dashboard
    "distributed.worker.http.routes": [],
    "distributed.nanny.pre-spawn-environ": ONE_THREAD,
}


@dataclass(frozen=True)
class Where:
    """Where the jobs of a plan run. A queue goes before a scheduler, a scheduler before this machine."""

    workers: int | None = None  # processes on this machine; None: one a core, or one a GPU
    scheduler: str = field(default_factory=lambda: os.environ.get("DASK_SCHEDULER_ADDRESS", ""))
    queue: str = ""  # one of QUEUES
    jobs: int = 1  # of the queue
    gpus: int = 0  # of each job of the queue

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
            return self.jobs * _processes(self)
        if self.scheduler:
            with connect(self, 1) as engine:
                return engine.slots()
        return self.local


class Engine(NamedTuple):
    """Workers that wait for jobs."""

    client: Client
    gpu: bool  # whether they declare GPUs
    name: str  # where they are, for messages
    local: bool = True  # whether they are this machine's

    def slots(self) -> int:
        """Threads of all workers that are there now; BadInput where the scheduler is lost."""
        with self.asked():
            return sum(self.client.nthreads().values())

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Inside stands only what Dask does; what it raises when the scheduler is lost becomes BadInput."""
        try:
            yield
        except (CancelledError, asyncio.CancelledError, OSError, RuntimeError) as error:
            raise BadInput(
                f"lost the scheduler ({self.name}); what is finished is kept in {paths.store()}, "
                "and the same command goes on from there"
            ) from error


def options(parser: argparse.ArgumentParser) -> None:
    """The options of a command that runs jobs; `chosen` reads them."""
    group = parser.add_argument_group("where models are trained")
    group.add_argument("--workers", type=int, metavar="N", help="processes of one thread on this machine (all cores)")
    place = group.add_mutually_exclusive_group()
    place.add_argument("--scheduler", metavar="ADDRESS", help="a running Dask scheduler (DASK_SCHEDULER_ADDRESS)")
    for queue in QUEUES:
        what = f"jobs of the queue, as dask's configuration 'jobqueue.{queue}' describes them"
        place.add_argument(f"--{queue}", action="store_const", const=queue, dest="queue", help=what)
    group.add_argument("--jobs", type=int, default=1, metavar="N", help="how many jobs of the queue (1)")
    group.add_argument("--gpus-per-job", type=int, default=0, metavar="N", help="one worker a GPU (no GPU)")


def chosen(arguments: argparse.Namespace) -> Where:
    """What `options` were given; BadInput where a number is too small."""
    for name, least in (("workers", 1), ("jobs", 1), ("gpus_per_job", 0)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            raise BadInput(f"--{name.replace('_', '-')} takes at least {least}, not {value}")
    scheduler, queue = arguments.scheduler or Where().scheduler, arguments.queue or ""
    return Where(arguments.workers, scheduler, queue, arguments.jobs, arguments.gpus_per_job)


@contextmanager
def connect(where: Where, jobs: int) -> Iterator[Engine]:
    """Workers for `jobs` jobs; those that were started here are gone afterwards.

    Raises BadInput where a scheduler does not answer, has no workers, or has workers that cannot do these jobs.
    """
    if not find_spec("distributed"):
        raise BadInput(f"a cluster needs Dask: {typed('pip install distributed')}")
    import dask
    from distributed import Client

    name = where.queue or where.scheduler or "this machine"
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(SETTINGS))
        stack.enter_context(patch.dict(os.environ))  # where Dask sets what its workers inherit
        for each in [each for each in logging.root.manager.loggerDict if each.startswith("distributed")]:
            log = logging.getLogger(each)  # its account of a lost scheduler runs over many lines
            stack.callback(log.setLevel, log.level)
            log.setLevel(logging.CRITICAL)
        target: Any
        if where.queue:
            target = stack.enter_context(queued(where))
        else:
            target = _answers(where.scheduler) if where.scheduler else stack.enter_context(_here(where, jobs))
        client = stack.enter_context(Client(target, timeout=PATIENCE, set_as_default=False))
        if where.queue:
            print(f"waiting for the first of {where.jobs} jobs of {name}", file=sys.stderr, flush=True)
            client.wait_for_workers(1)
        gpu = check(client, name) if target == where.scheduler else bool(gpus() or where.gpus)
        yield Engine(client, gpu, name, not where.elsewhere)


def _answers(address: str) -> str:
    """The address; BadInput where no Dask scheduler answers at it in time. A client would ask again and again."""
    from distributed.core import rpc

    async def identity() -> str:
        async with rpc(address) as scheduler:
            return str((await scheduler.identity())["type"])

    try:
        with ThreadPoolExecutor(1) as thread:  # a notebook's own thread has a loop that runs
            kind = thread.submit(lambda: asyncio.run(asyncio.wait_for(identity(), PATIENCE))).result()
    except Exception as error:  # whatever answers there may not speak Dask's language
        why = str(error) or f"silence for {PATIENCE:g} s"
        raise BadInput(f"no Dask scheduler answers at {address} ({why})") from error
    if kind != "Scheduler":
        raise BadInput(f"a {kind} answers at {address}, no Dask scheduler")
    return address


def _guarded() -> bool:
    """Whether a worker may read the main script again, and will not ask for workers of its own."""
    frame = inspect.currentframe()
    while frame and not (frame.f_globals.get("__name__") == "__main__" and frame.f_code.co_name == "<module>"):
        frame = frame.f_back
    if not frame:
        return True
    try:
        lines = ast.parse(Path(frame.f_code.co_filename).read_text("utf-8")).body
    except (OSError, SyntaxError, ValueError):  # a cell of a notebook, a shell: no file that could be read again
        return True
    own = [line for line in lines if line.lineno <= frame.f_lineno <= (line.end_lineno or 0)]
    guards = (node for line in own if isinstance(line, ast.If) for node in ast.walk(line.test))
    return not own or any(isinstance(node, ast.Name) and node.id == "__name__" for node in guards)


def _here(where: Where, jobs: int) -> Any:
    """Workers on this machine. BadInput where none comes up."""
    import dask
    from distributed import LocalCluster

    again = getattr(current_process(), "_inheriting", False)  # a worker that starts reads the main script, comes here
    if again or not _guarded():
        print(f"leak atlas: {UNGUARDED}", file=sys.stderr, flush=True)
        raise SystemExit(2)
    try:
        return LocalCluster(
            n_workers=min(where.local, jobs),
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # the scheduler opens this port in any case; it answers nothing
            scheduler_kwargs={"dashboard": False},
            memory_limit=0,  # results go through the store: there is nothing to spill, and a pause would not end
            silence_logs=logging.ERROR,
            resources={"GPU": 1} if gpus() else {},
            preload=[*dask.config.get("distributed.worker.preload"), __name__],
        )
    except RuntimeError as error:
        raise BadInput(f"no worker process came up ({error}); if this is a script: {UNGUARDED}") from error


# ---------------------------------------------------------------- a site's queue


def environment() -> dict[str, str]:
    """What workers of a queue find in their environment: our settings, and this process' store."""
    there = {
        "LEAK_ATLAS_STORE": str(paths.store()),
        "LEAK_ATLAS_DATA": str(paths.data()),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(paths.ROOT), os.environ.get("PYTHONPATH", "")])),
        "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
        "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "1h",
    }
    return ONE_THREAD | {name: value for name, value in os.environ.items() if name.startswith("LEAK_ATLAS_")} | there


def _processes(where: Where) -> int:
    """Workers in one job of the queue: one a GPU, or one a core."""
    import dask

    with suppress(ImportError):
        import dask_jobqueue  # noqa: F401 (reads the site's configuration)
    return where.gpus or dask.config.get(f"jobqueue.{where.queue}.cores", None) or 1


def queued(where: Where) -> Any:
    """A scheduler here, and its workers as jobs of the queue; they end when it closes, and are replaced until then.

    Raises BadInput where `dask_jobqueue` is missing or has no queue to speak to.
    """
    if not find_spec("dask_jobqueue"):
        raise BadInput(f"--{where.queue} needs dask-jobqueue: {typed('pip install dask-jobqueue')}")
    import dask_jobqueue

    kind = getattr(dask_jobqueue, QUEUES[where.queue])
    command = kind.job_cls.submit_command.split()[0]
    if not which(command):
        raise BadInput(f"--{where.queue}: there is no command '{command}' here")
    cluster = kind(**request(where))
    cluster.adapt(minimum_jobs=where.jobs, maximum_jobs=where.jobs)
    return cluster


def request(where: Where) -> dict[str, Any]:
    """What a job asks for: what the site's `jobqueue.<queue>` says, one thread a worker, and our environment."""
    import dask

    processes = _processes(where)
    site = dask.config.get(f"jobqueue.{where.queue}")
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environment().items()]
    found = {
        "cores": processes,
        "processes": processes,
        "memory": site["memory"] or f"{4 * processes}GB",
        "job_script_prologue": [*(site["job-script-prologue"] or []), *exports],
        "scheduler_options": {"dashboard": False, "dashboard_address": "127.0.0.1:0"} | site["scheduler-options"],
    }
    if where.gpus:
        found["worker_extra_args"] = [*site["worker-extra-args"], "--resources", "GPU=1", "--preload", __name__]
        directives = site.get("job-extra-directives") or []
        if where.queue == "slurm" and not any("gpu" in line for line in directives):
            found["job_extra_directives"] = [*directives, f"--gres=gpu:{where.gpus}"]
    return found


# ---------------------------------------------------------------- workers that somebody else started


def revisions() -> dict[str, int]:
    """The revision of each kind of recipe that is the library's: where these differ, a key means different things."""
    return {name: kind.revision for name, kind in KINDS.items() if ours(kind.__module__)}


def unfit(token: Path, known: dict[str, int], dask_worker: Any) -> tuple[str, bool, bool]:
    """Runs on a worker: why it cannot do our jobs, if it cannot; whether it sees a GPU, and whether it declares one.

    `token` is a file in our store, `known` are our `revisions`.
    """
    import torch

    import lib.recipe  # noqa: F401 (fills KINDS)

    cuda, declared = torch.cuda.is_available(), bool(dask_worker.state.total_resources.get("GPU"))
    why = ""
    if not (paths.store() / token.name).exists():
        why = f"keeps its results in {paths.store()}, not in {token.parent}; start it with LEAK_ATLAS_STORE"
    elif known != revisions():
        why = "has another version of lib; start it again from this one"
    elif dask_worker.state.nthreads != 1:
        why = "has several threads; start it with --nthreads 1 (and --nworkers)"
    elif declared and not cuda:
        why = "declares a GPU that torch does not see"
    return why, cuda, declared


def check(client: Client, name: str) -> bool:
    """Whether the workers of a running scheduler declare GPUs. BadInput where one of them cannot do our jobs."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        start = typed(f"dask worker {name} --nthreads 1")
        raise BadInput(f"{name} has no workers: {start}, in an environment with lib") from None
    paths.store().mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=paths.store(), prefix=".seen-") as file:
        found = client.run(unfit, Path(file.name), revisions(), on_error="return")
    for worker, said in found.items():
        if isinstance(said, BaseException):
            said = f"cannot run lib ({said!r}); start it where it and torch are found", False, False
        if said[0]:
            raise BadInput(f"worker {worker} of {name} {said[0]}")
    seeing, declaring = ([worker for worker, said in found.items() if said[which]] for which in (1, 2))
    if seeing and not declaring and len(seeing) < len(found):
        why = "has a GPU, others have none, and none declares it; start it with --resources GPU=1"
        raise BadInput(f"worker {seeing[0]} of {name} {why}")
    return bool(declaring)


# ---------------------------------------------------------------- a GPU for each worker


def gpus() -> list[str]:
    """The CUDA devices of this machine that this process may use, without importing torch. Its CPU build has none."""
    if version("torch").endswith("+cpu"):
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [one for one in visible.split(",") if one.strip() not in ("", "-1")]
    return [str(number) for number in range(len(list(Path("/dev").glob("nvidia[0-9]*"))))]


def dask_setup(worker: Any) -> None:
    """Called by Dask in a worker before its first job: its number, the end of its name, chooses its GPU."""
    devices, number = gpus(), str(worker.name).rsplit("-", 1)[-1]
    if devices and number.isdigit():
        os.environ["CUDA_VISIBLE_DEVICES"] = devices[int(number) % len(devices)]
    elif len(devices) > 1:
        why = f"worker {worker.name} has no number, and takes the first of {len(devices)} GPUs, as all others like it"
        print(f"leak atlas: {why}: start workers with --name gpu", file=sys.stderr, flush=True)
