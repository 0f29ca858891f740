"""How the command lines end: what a user got wrong is one line and exit code 2, never a traceback."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from io import TextIOWrapper
from multiprocessing import parent_process, resource_tracker
from threading import Thread, current_thread, main_thread
from typing import Any, NoReturn

from leak_atlas import BadInput, one_line

# exit codes; the last two are what a shell reports of SIGINT and SIGPIPE
BAD, INTERRUPTED, UNREAD = 2, 130, 141


class Parser(argparse.ArgumentParser):
    """Its errors are BadInput."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message}; {self.prog} --help lists what there is")


def command(main: Callable[[list[str] | None], int]) -> Callable[..., int]:
    """Makes of a function of the arguments (None: the shell's) a command, which returns its exit
    code.

    What the machine refuses (a full disk, no memory) is one line too; an error of ours keeps its
    traceback.
    """

    @wraps(main)
    def answered(arguments: list[str] | None = None) -> int:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # an ASCII locale has no letter for a ü
                stream.reconfigure(errors="backslashreplace")
        try:
            code = main(arguments)
            print(end="", flush=True)
            return code
        except BadInput as error:
            why, code = str(error), BAD
        except KeyboardInterrupt:
            why, code = (
                "interrupted; what is finished is kept, the next run goes on from there",
                INTERRUPTED,
            )
        except BrokenPipeError:
            why, code = "nobody reads what this command prints; what is finished is kept", UNREAD
            with suppress(OSError):  # what is left to print is lost in silence
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            why, code = f"{error.filename or 'output'}: {error.strerror or error}", BAD
        except MemoryError:
            why, code = (
                "out of memory; what is finished is kept, the next run goes on from there",
                BAD,
            )
        with suppress(OSError):
            print(f"leak atlas: {one_line(why)}", file=sys.stderr, flush=True)
        return code

    return answered


@contextmanager
def uninterrupted(tell: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Holds Ctrl-C back until what stands inside is done, and calls `tell` when it comes.

    An import of torch that is cut can neither be used nor repeated; a call of Dask's that is cut
    logs a traceback.
    """
    if current_thread() is not main_thread():  # where no signal arrives
        yield
        return
    came: list[int] = []

    def note(number: int, _: Any) -> None:
        came.append(number)
        tell()

    before = signal.signal(signal.SIGINT, note)
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


def end_with_parent() -> None:
    """Has this process end with the one that started it, even where that one is killed."""

    def watch(parent: Any) -> None:
        parent.join()
        os._exit(1)

    if parent := parent_process():
        Thread(target=watch, args=(parent,), daemon=True).start()
