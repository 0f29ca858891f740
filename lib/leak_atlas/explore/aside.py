"""What takes long is done in processes of their own, so that a kernel answers meanwhile: counting
costs, training.

Both need torch, whose import alone would hold a kernel for seconds. The processes end with the
kernel.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache
from multiprocessing import connection, get_context, parent_process
from threading import Thread
from typing import Any, NamedTuple

from leak_atlas import BadInput, lab
from leak_atlas.engine.processes import unheard
from leak_atlas.lab.plans import absent, plan

CONTEXT = get_context("spawn")
TICK = 0.25  # seconds between looks at what a process says
GRACE = 10.0  # seconds that a process has to end its workers


def cost(asked: list[Any]) -> str:
    """What a click would do and how long it takes; "" where there is nothing to do.

    Raises BadInput where the steps cannot be computed here.
    """
    from leak_atlas.lab.cluster import Where
    from leak_atlas.lab.run import width

    if not (todo := plan(asked)).jobs:
        return ""
    for why in absent(todo.jobs.values()):
        raise BadInput(why)
    return todo.offer(width(todo, Where()))


async def count(asked: list[Any]) -> str:
    """The `cost`, counted aside."""
    with unheard():
        counted = asyncio.get_running_loop().run_in_executor(_counter(), cost, asked)
    return await counted


@cache
def _counter() -> ProcessPoolExecutor:
    """It stays: once torch is there, it counts in no time."""
    return ProcessPoolExecutor(1, CONTEXT, _follow)


def _follow() -> None:
    """Ends this process with the one that started it, however that ends."""
    own = parent_process()

    def wait() -> None:
        connection.wait([own.sentinel] if own else [])
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=wait, daemon=True).start()


# ---------------------------------------------------------------- training


class Progress(NamedTuple):
    share: float  # of the work
    done: int  # steps
    steps: int


class Training:
    """Steps that are being computed in a process of their own; iterating gives its `Progress`."""

    def __init__(self, asked: list[Any]) -> None:
        self.cancelled = False
        self._inbox, outbox = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_train, args=(asked, outbox))
        with unheard():
            self._process.start()
        outbox.close()
        atexit.register(self._process.terminate)  # before multiprocessing waits for it

    def cancel(self) -> None:
        """What is finished is kept."""
        self.cancelled = True
        self._process.terminate()

    async def __aiter__(self) -> AsyncIterator[Progress]:
        """Ends with the process. Raises lab.Failed where something could not be computed."""
        said: Progress | str | None = None
        with suppress(EOFError, OSError):  # it ended before it was done
            while not isinstance(said, str):
                while not isinstance(said, str) and self._inbox.poll():
                    said = self._inbox.recv()
                    if isinstance(said, Progress):
                        yield said
                await asyncio.sleep(TICK)
        # torch and Dask take seconds to end, for which nobody has to wait
        if isinstance(said, str):
            Thread(target=self._end, daemon=True).start()
        else:
            await asyncio.to_thread(self._end)
        if not self.cancelled and said != "":
            ended = f"the process that trained ended with code {self._process.exitcode}; what is finished is kept"
            raise lab.Failed(said if isinstance(said, str) else ended)

    def _end(self) -> None:
        self._process.join(GRACE)
        if self._process.is_alive():
            self._process.kill()
        atexit.unregister(self._process.terminate)


def _train(asked: list[Any], outbox: Any) -> None:
    """In the process: sends a `Progress` for each job that is done, and in the end "" or what went
    wrong.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # workers are closed on the way out
    _follow()
    from leak_atlas.lab.run import reasons, run

    todo = plan(asked)
    share, done, total = 0.0, 0, todo.seconds or 1.0

    def took(outcome: Any) -> None:
        nonlocal share, done
        share += todo.jobs[outcome.key].seconds / total
        done += 1
        outbox.send(Progress(min(share, 1.0), done, len(todo.jobs)))

    try:
        outbox.send(Progress(0.0, 0, len(todo.jobs)))
        outbox.send("; ".join(reasons(run(todo, None, took).values())))
    except BadInput as error:
        outbox.send(str(error))
