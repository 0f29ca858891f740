"""Computes and stores one job. Its end is an `Outcome`, also where it fails."""

from __future__ import annotations

import json
import platform
import sys
import time
import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from leak_atlas import BadInput, one_line
from leak_atlas.engine import paths, store
from leak_atlas.engine.compute import compute
from leak_atlas.engine.processes import uninterrupted
from leak_atlas.lab.plans import Job, plan
from leak_atlas.lab.prices import work
from leak_atlas.recipe import Train

# Packages and modules in which kinds register what they compute.
REGISTERING = (
    "leak_atlas.training",
    "leak_atlas.localization",
    "leak_atlas.attacks",
    "leak_atlas.lab.cost",
    "leak_atlas.lab.readings",
)
# The module `leak_atlas.training.private` imports Opacus, which takes seconds. It registers no kind:
# `leak_atlas.training.defences` imports it when a training with DPSGD starts.
NO_KINDS = "private"

Meta = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: `error` is empty, or one line that says why it failed."""

    key: str
    name: str
    error: str = ""
    seconds: float = 0.0  # core-seconds; on a GPU, seconds of the clock
    device: str = ""  # its name; empty where nothing was computed
    refused: bool = False  # no other job can succeed either: the disk is full, a worker is unfit
    orphan: bool = False  # it failed only because a parent failed


def do(jobs: Iterable[Job], streams: int = 1) -> Iterator[Outcome]:
    """Does jobs in this process, on a GPU `streams` at a time."""
    from leak_atlas.training.loop import fit_many

    with one_thread():
        for _, outcome in fit_many(map(doing, jobs), streams):
            assert isinstance(outcome, Outcome), outcome  # no job raises
            yield outcome


def doing(job: Job) -> Generator[None, None, Outcome]:
    """Does one job; pauses where other jobs may go on. A failure is an outcome, too."""
    ended = partial(Outcome, job.key, name_of(job))
    try:
        if all(store.has(step.key) for step in job.yields):
            return ended()
        job.step.check_code()
        meta = yield from _mending(job)
        return ended(seconds=meta["seconds"], device=meta["device"])
    except store.Refused as error:
        return ended(str(error), refused=True)
    except (store.Corrupt, store.Gone) as error:  # an input is corrupt for the second time
        return ended(str(error))
    except Exception as error:
        if isinstance(error, BadInput):
            return ended(one_line(str(error)))
        line = one_line(f"{type(error).__name__}: {error}")
        return ended(f"{line} (trace and recipe in {keep(job, traceback.format_exc())})")


def _mending(job: Job, torn: frozenset[str] = frozenset()) -> Generator[None, None, Meta]:
    """Runs a job; a stored input that is corrupt is computed again first.

    `torn`: keys of inputs that were computed again already. If such an input is corrupt again, the
    error is raised.
    """
    try:
        return (yield from run(job))
    except (store.Corrupt, store.Gone) as error:  # gone: another job found it corrupt
        if error.key in torn:
            raise
        print(f"{error}: computed again", file=sys.stderr, flush=True)
        store.discard(error.key)
        torn |= {error.key}
    meta: Meta = {"seconds": 0.0, "device": ""}  # if another process has done the job by now
    for missing in plan([job.yields]).jobs.values():  # the last one is the job itself
        meta = yield from _mending(missing, torn)
    return meta


@cache
def learn_kinds() -> None:
    """Imports all modules in which kinds register what they compute."""
    for name in REGISTERING:
        package = import_module(name)
        for module in iter_modules(getattr(package, "__path__", ())):
            if module.name != NO_KINDS:
                import_module(f"{name}.{module.name}")


def run(job: Job) -> Generator[None, None, Meta]:
    """Computes and stores what a job yields; returns the description that is stored with it.

    Pauses as `leak_atlas.lab.training.train` does.
    """
    import numpy
    import torch

    from leak_atlas.lab.training import train
    from leak_atlas.models.subject import Subject, device_name

    with uninterrupted():
        learn_kinds()
    device = device_name() if job.step.place == "device" else "cpu"
    clock = _core_seconds if device == "cpu" else time.perf_counter
    start = clock()
    if isinstance(job.step, Train):
        results = yield from train(job.step, job.states, job.signals)
    else:
        results = {job.key: compute(job.step, Subject)}
    meta = {
        "seconds": round(clock() - start, 3),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "torch": torch.__version__,
        },
        "threads": torch.get_num_threads(),
        "device": device,
        "processor": processor(),
        "operations": work(job.step),
    }
    # The training itself comes last: if it is stored, so is all that was asked of it.
    for step in reversed(job.yields):
        store.write(step.key, step.record(), results[step.key], meta)
    return meta


@cache
def processor() -> str:
    """This processor's name and widest vector instructions, on which the last digits depend."""
    import torch

    described = Path("/proc/cpuinfo").read_text() if sys.platform == "linux" else ""
    fields = dict(line.split(":", 1) for line in described.splitlines() if ":" in line)
    by_name = {name.strip(): value.strip() for name, value in fields.items()}
    name = by_name.get("model name") or platform.processor() or platform.machine()
    matrices = " and AMX" if "amx_tile" in by_name.get("flags", "").split() else ""
    return f"{name} ({torch.backends.cpu.get_cpu_capability()}{matrices})"


def _core_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    children = getrusage(RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def reasons(failed: Iterable[Outcome]) -> list[str]:
    """One line for each thing that went wrong, however many jobs it stopped."""
    every = list(failed)
    causes = [outcome for outcome in every if not outcome.orphan] or every
    names: dict[str, list[str]] = {}
    for outcome in causes:
        names.setdefault(outcome.error, []).append(outcome.name)
    lines = []
    for error, jobs in names.items():
        more = f" (and {len(jobs) - 1} more)" if len(jobs) > 1 else ""
        lines.append(f"{jobs[0]}: {error}{more}")
    return lines


def name_of(job: Job) -> str:
    """The name of a job in messages."""
    return f"{type(job.step).__name__} {job.key[:12]}"


def keep(job: Job, trace: str) -> str:
    """Writes a trace and the job's recipe to a file in the store; its path, or why not."""
    log = paths.store() / "failures" / f"{job.key[:12]}.txt"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(trace + json.dumps(job.step.record(), indent=1), "utf-8")
    except OSError as error:  # a full disk should not hide what went wrong
        return f"no file: {error.strerror}"
    return str(log)


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread in this context: results depend on the number of threads, and threads that
    wait for one another are many times slower next to a busy process."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
