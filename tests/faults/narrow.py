"""A Dask preload for tests: a disk that takes few entries and no more, and a log of the jobs that were begun."""

import errno
import os

from lib import paths, store
from lib.lab import jobs

ROOM = 4
sync, run = os.fsync, jobs.run


def fsync(number: int) -> None:
    if len(list(store.listing())) >= ROOM:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
    sync(number)


def noted(job):
    paths.store().mkdir(parents=True, exist_ok=True)
    with open(paths.store() / "begun", "a") as log:
        log.write(f"{job.key}\n")
    return run(job)


def dask_setup(worker) -> None:
    os.fsync, jobs.run, store.LONG = fsync, noted, 0.0  # each entry is waited for
