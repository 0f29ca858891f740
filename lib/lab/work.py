"""Doing a job: what its step computes is registered beside the science; here it is timed and stored."""

from __future__ import annotations

import platform
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from lib import store
from lib.compute import compute
from lib.lab.plans import Job
from lib.lab.prices import work
from lib.recipe import Step, Train

REGISTERING = (  # where they register what they do; a package with all of its modules
    "lib.training",
    "lib.localization",
    "lib.attacks",
    "lib.lab.cost",
    "lib.lab.readings",
)


@cache
def learn_kinds() -> None:
    """Imports what registers; what needs a library that is not on this machine stays unknown."""
    for name in REGISTERING:
        module = import_module(name)
        for inside in iter_modules(getattr(module, "__path__", ())):
            if (
                inside.name != "private"
            ):  # Opacus takes seconds to import: `lib.training.defences` does when it is asked
                with _known_here():
                    import_module(f"{name}.{inside.name}")


@contextmanager
def _known_here() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "lib":
            raise


def run(job: Job) -> Generator[None, None, dict[str, Any]]:
    """Computes and stores what a job yields; returns when, where and how long. Pauses as `training.train` does.

    What is stored already is not written again.
    """
    from lib.lab.training import train
    from lib.subject import Subject

    learn_kinds()
    start = time.perf_counter()
    if isinstance(job.step, Train):
        made = yield from train(job.step, job.asked, job.read)
    else:
        made = {job.key: compute(job.step, Subject)}
    meta = _meta(job.step, time.perf_counter() - start)
    for step in reversed(job.yields):  # the training itself last: if it is there, so is what was asked of it
        store.write(step.key, step.record(), made[step.key], meta)
    return meta


def _meta(step: Step, seconds: float) -> dict[str, Any]:
    import numpy
    import torch

    from lib.subject import device_name

    return {
        "seconds": round(seconds, 3),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), "numpy": numpy.__version__, "torch": torch.__version__},
        "threads": torch.get_num_threads(),
        "device": device_name() if step.place == "device" else "cpu",
        "operations": work(step),
    }
