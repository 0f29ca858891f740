"""One job from its start to its end, which is an `Outcome` whatever happens."""

from __future__ import annotations

import json
import platform
import time
import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from leak_atlas import BadInput, one_line
from leak_atlas.engine import paths, store
from leak_atlas.engine.compute import compute
from leak_atlas.engine.processes import uninterrupted
from leak_atlas.lab.plans import Job
from leak_atlas.lab.prices import work
from leak_atlas.recipe import Train

# Where kinds register what they compute; a package with all of its modules.
REGISTERING = (
    "leak_atlas.training",
    "leak_atlas.localization",
    "leak_atlas.attacks",
    "leak_atlas.lab.cost",
    "leak_atlas.lab.readings",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: `error` is empty, or one line that says why it failed."""

    key: str
    name: str
    error: str = ""
    seconds: float = 0.0  # of a core, or on a GPU of the clock
    device: str = ""  # its name; empty where nothing was computed
    corrupt: str = ""  # key of an input that did not match its digest; it is forgotten
    refused: bool = (
        False  # the disk does not take what is to be stored: no other job has better luck
    )
    orphan: bool = False  # nothing is wrong with it but that a parent failed


def do(jobs: Iterable[Job], streams: int = 1) -> Iterator[Outcome]:
    """Jobs from their start to their end, on a GPU `streams` at a time; what comes after a refusal
    is not begun."""
    from leak_atlas.training.loop import fit_many

    for _, outcome in fit_many(map(doing, jobs), streams):
        assert isinstance(outcome, Outcome), outcome  # no job raises
        yield outcome
        if outcome.refused:
            return


def do_one(job: Job) -> Outcome:
    """One job from its start to its end, on a worker."""
    with one_thread():
        (outcome,) = do([job])
    return outcome


def doing(job: Job) -> Generator[None, None, Outcome]:
    """One job, which pauses where others may go on beside it. A failure is an outcome too: siblings
    go on."""
    ended = partial(Outcome, job.key, name_of(job))
    try:
        if all(store.has(step.key) for step in job.yields):
            return ended()
        job.step.check_code()
        try:
            meta = yield from run(job)
        except (store.Corrupt, store.Gone) as error:  # what is gone a sibling has met first
            store.discard(error.key)
            return ended(f"{error}; to be computed again", corrupt=error.key)
        return ended(seconds=meta["seconds"], device=meta["device"])
    except store.Refused as error:
        return ended(str(error), refused=True)
    except Exception as error:
        place = (
            ""
            if isinstance(error, BadInput)
            else f" (trace and recipe in {keep(job, traceback.format_exc())})"
        )
        return ended(one_line(f"{type(error).__name__}: {error}") + place)


@cache
def learn_kinds() -> None:
    """Imports what registers; what needs a library that is not on this machine stays unknown."""
    for name in REGISTERING:
        for inside in (
            "",
            *(
                f".{each.name}"
                for each in iter_modules(getattr(import_module(name), "__path__", ()))
            ),
        ):
            if (
                inside == ".private"
                # Opacus takes seconds to import: `leak_atlas.training.defences` does when it is
                # asked
            ):
                continue
            try:
                import_module(name + inside)
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] == "leak_atlas":
                    raise


def run(job: Job) -> Generator[None, None, dict[str, Any]]:
    """Computes and stores what a job yields; returns when, where and how long. Pauses as
    `training.train` does.

    What is stored already is not written again.
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
        made = yield from train(job.step, job.asked, job.read)
    else:
        made = {job.key: compute(job.step, Subject)}
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
        "operations": work(job.step),
    }
    # the training itself last: if it is there, so is what was asked of it
    for step in reversed(job.yields):
        store.write(step.key, step.record(), made[step.key], meta)
    return meta


def _core_seconds() -> float:
    """Processor time of this process and of its children that have ended: other work on a core does
    not count."""
    children = getrusage(RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def reasons(failed: Iterable[Outcome]) -> list[str]:
    """One line for each thing that went wrong, however many jobs it hit; those that only lack a
    parent are not told."""
    every = list(failed)
    found: dict[str, list[str]] = {}
    for outcome in [each for each in every if not each.orphan] or every:
        found.setdefault(outcome.error, []).append(outcome.name)
    return [
        f"{names[0]}: {error}" + f" (and {len(names) - 1} more)" * (len(names) > 1)
        for error, names in found.items()
    ]


def orphan(job: Job, broken: Outcome) -> Outcome:
    """The end of a job whose parent failed."""
    why = one_line(f"its parent {broken.name} failed: {broken.error}")
    return Outcome(job.key, name_of(job), why, corrupt=broken.corrupt, orphan=True)


def name_of(job: Job) -> str:
    """A job in messages."""
    return f"{type(job.step).__name__} {job.key[:12]}"


def keep(job: Job, trace: str) -> str:
    """Keeps what is known of a failure beside the results; its place."""
    log = paths.store() / "failures" / f"{job.key[:12]}.txt"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(trace + json.dumps(job.step.record(), indent=1), "utf-8")
    except OSError as error:  # a full disk should not hide what went wrong
        return f"no file: {error.strerror}"
    return str(log)


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread: two that spin beside another busy process are many times slower, and
    results would differ."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
