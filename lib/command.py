"""How the command lines end: what a user got wrong is one line and exit code 2, never a traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from io import TextIOWrapper
from multiprocessing import parent_process
from threading import Thread
from typing import Any, NoReturn

from lib import BadInput, one_line

BAD, INTERRUPTED, UNREAD = 2, 130, 141  # exit codes; the last two are what a shell reports of SIGINT and SIGPIPE


class Parser(argparse.ArgumentParser):
    """Its errors are BadInput."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message}; {self.prog} --help lists what there is")


def command(main: Callable[[list[str] | None], int]) -> Callable[..., int]:
    """Makes of a function of the arguments (None: the shell's) a command, which returns its exit code.

    What the machine refuses (a full disk, no memory) is one line too; an error of ours keeps its traceback.
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
            why, code = "interrupted; what is finished is kept, the next run goes on from there", INTERRUPTED
        except BrokenPipeError:
            why, code = "nobody reads what this command prints; what is finished is kept", UNREAD
            with suppress(OSError):  # what is left to print is lost in silence
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            why, code = f"{error.filename or 'output'}: {error.strerror or error}", BAD
        except MemoryError:
            why, code = "out of memory; what is finished is kept, the next run goes on from there", BAD
        with suppress(OSError):
            print(f"leak atlas: {one_line(why)}", file=sys.stderr, flush=True)
        return code

    return answered


def end_with_parent() -> None:
    """Has this process end with the one that started it, even where that one is killed."""

    def watch(parent: Any) -> None:
        parent.join()
        os._exit(1)

    if parent := parent_process():
        Thread(target=watch, args=(parent,), daemon=True).start()
