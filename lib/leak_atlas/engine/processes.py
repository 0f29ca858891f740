"""Exit codes, Ctrl-C, and processes that end with the one that started them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import parent_process, resource_tracker
from threading import Thread, current_thread, main_thread
from typing import Any

FAILED = 1  # a notebook failed, or an attack exceeds a limit
BAD = 2  # what a user asks for cannot be done
INTERRUPTED = 130  # what a shell reports of SIGINT


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds Ctrl-C back until what stands inside is done: an import of torch that is cut can
    neither be used nor repeated."""
    if current_thread() is not main_thread():  # where no signal arrives
        yield
        return
    came: list[int] = []

    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        for number in came[:1]:
            signal.raise_signal(number)


@contextmanager
def unheard() -> Iterator[None]:
    """Processes that are started inside, and by threads that are, take no notice of Ctrl-C.

    A terminal and Jupyter send it to all processes of a group; the one that has started the others
    ends them.
    """
    resource_tracker.ensure_running()  # when it starts it lets the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def ending(pool: ProcessPoolExecutor) -> Iterator[None]:
    """Waits at its end for the work of a pool; where it ends early, kills the pool's processes."""
    try:
        yield
        pool.shutdown()
    finally:
        kill(pool)


def kill(pool: ProcessPoolExecutor) -> None:
    """Ends the processes of a pool, whatever they do."""
    threading.excepthook = _without_ended_pools
    for process in list((pool._processes or {}).values()):
        process.kill()
    pool.shutdown(cancel_futures=True)


def _without_ended_pools(args: threading.ExceptHookArgs) -> None:
    """Reports errors of threads, but not that the thread of an ended pool found its pipe closed."""
    of_pool = type(args.thread).__name__ == "_ExecutorManagerThread"
    if not (of_pool and isinstance(args.exc_value, OSError)):
        threading.__excepthook__(args)


def serve() -> None:
    """In a new worker: Ctrl-C is for the process that started it, and it ends with that process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def end_with_parent() -> None:
    """Has this process end with the one that started it, even where that one is killed."""

    def watch(parent: Any) -> None:
        parent.join()
        os._exit(1)

    if parent := parent_process():
        Thread(target=watch, args=(parent,), daemon=True).start()
