"""A Dask preload for tests: trainings of a worker are logged, held, killed or starved as the environment says."""

import os
import resource
import signal
import time
from pathlib import Path

from lib.lab import jobs, training
from lib.recipe import Train

train, run = training.train, jobs.run


def watched(step, asked, read):
    with open(os.environ["WATCHED_LOG"], "a") as log:
        log.write(f"{step.key} {os.getpid()} {os.environ.get('CUDA_VISIBLE_DEVICES', '')}\n")
    while (hold := os.environ.get("WATCHED_HOLD")) and Path(hold).exists():
        time.sleep(0.01)
    if step.key == os.environ.get("WATCHED_KILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    if step.key != os.environ.get("WATCHED_STARVE"):
        return train(step, asked, read)
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1, before[1]))
    try:
        return bytes(2**30)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def killed(job):
    """Kills its worker under what is no training."""
    if job.key == os.environ.get("WATCHED_KILL") and not isinstance(job.step, Train):
        os.kill(os.getpid(), signal.SIGKILL)
    return run(job)


def dask_setup(worker) -> None:
    jobs.run = killed
    training.train = watched
