"""A disk that takes few entries and no more, and a log of the jobs that were begun."""

import errno
import os
from collections.abc import Callable
from typing import Any

from leak_atlas.engine import paths, store
from leak_atlas.lab import jobs

ROOM = 4
move = os.rename
run = jobs.run


def rename(*given: Any, **more: Any) -> None:
    if len(list(store.listing())) >= ROOM:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
    move(*given, **more)


def noted(job):
    paths.store().mkdir(parents=True, exist_ok=True)
    with open(paths.store() / "begun", "a") as log:
        log.write(f"{job.key}\n")
    return run(job)


def narrowed(setting: Callable[[object, str, object], None] = setattr) -> None:
    """Here, or in the process from which workers are forked."""
    setting(os, "rename", rename)
    setting(jobs, "run", noted)
