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


def cost(steps: list[Any]) -> str:
    """What a click would do and how long it takes; "" where there is nothing to do.

    Raises BadInput where the steps cannot be computed here.
    """
    from leak_atlas.lab.cluster import Where
    from leak_atlas.lab.run import width

    if not (todo := plan(steps)).jobs:
        return ""
    for why in absent(todo.jobs.values()):
        raise BadInput(why)
    return todo.offer(width(todo, Where()))


async def count(steps: list[Any]) -> str:
    """The `cost`, counted aside."""
    with unheard():
        counted = asyncio.get_running_loop().run_in_executor(_counter(), cost, steps)
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

    def __init__(self, steps: list[Any]) -> None:
        self.cancelled = False
        self._inbox, outbox = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_train, args=(steps, outbox))
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
        message: Progress | str | None = None
        with suppress(EOFError, OSError):  # it ended before it was done
            while not isinstance(message, str):
                if not self._inbox.poll():
                    await asyncio.sleep(TICK)
                    continue
                message = self._inbox.recv()
                if isinstance(message, Progress):
                    yield message
        if isinstance(message, str):
            # torch and Dask take seconds to end, for which nobody has to wait
            Thread(target=self._end, daemon=True).start()
        else:
            await asyncio.to_thread(self._end)
            code = self._process.exitcode
            message = f"the process that trained ended with code {code}; what is finished is kept"
        if message and not self.cancelled:
            raise lab.Failed(message)

    def _end(self) -> None:
        self._process.join(GRACE)
        if self._process.is_alive():
            self._process.kill()
        atexit.unregister(self._process.terminate)


def _leave(*_: Any) -> None:
    """Workers are closed on the way out."""
    sys.exit(1)


def _train(steps: list[Any], outbox: Any) -> None:
    """In the process: sends a `Progress` for each job that is done, and in the end "" or what went
    wrong.
    """
    signal.signal(signal.SIGTERM, _leave)
    _follow()
    from leak_atlas.lab.run import reasons, run

    todo = plan(steps)
    share = 0.0
    done = 0

    def report(outcome: Any) -> None:
        nonlocal share, done
        share += todo.jobs[outcome.key].seconds / (todo.seconds or 1.0)
        done += 1
        outbox.send(Progress(min(share, 1.0), done, len(todo.jobs)))

    try:
        outbox.send(Progress(0.0, 0, len(todo.jobs)))
        failed = run(todo, None, report)
        outbox.send("; ".join(reasons(failed.values())))
    except BadInput as error:
        outbox.send(str(error))
