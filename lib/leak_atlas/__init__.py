"""Leak Atlas: where does membership leak?

Importing it sets the processor instructions that all libraries use. Here are also `BadInput` and
the functions that write messages. ARCHITECTURE.md lists the packages.
"""

import os
import platform
import sys
from pathlib import Path

# torch's bundled OpenMP spins at its barriers by default: next to any other busy process a training
# with two threads then runs up to twenty times slower. torch reads this when it is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Each library picks the widest instructions that it finds, and each width rounds in another order.
# With these every x86-64 processor that has AVX2 computes the same digits (docs/processors.md). The
# libraries read the variables when they are first used.
PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",  # torch
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # torch's convolutions
    "MKL_CBWR": "COMPATIBLE",  # torch's matrix products; no other value is for Intel and AMD
    "OPENBLAS_CORETYPE": "Haswell",  # matrix products of NumPy and SciPy
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",  # NumPy
}
ARITHMETIC = "LEAK_ATLAS_ARITHMETIC"  # "native": the processor's own instructions


def use_arithmetic() -> None:
    """Sets the variables of `PORTABLE` for this process and those that it starts, except those that
    the user has set; or removes them, where `ARITHMETIC` is "native".
    """
    native = os.environ.get(ARITHMETIC) == "native"
    for name, value in PORTABLE.items():
        if not native:
            os.environ.setdefault(name, value)
        elif os.environ.get(name) == value:
            del os.environ[name]


def _has_avx2() -> bool:
    processor = Path("/proc/cpuinfo")
    x86 = platform.machine() in ("x86_64", "AMD64")
    return x86 and (not processor.exists() or " avx2 " in processor.read_text())


if _has_avx2():
    use_arithmetic()

LINE = 300  # characters of the longest message
KEPT = "what is finished is kept, and the same command goes on from there"


class BadInput(ValueError):
    """What a user asked for cannot be done. The message is one line that says what is wrong and
    what to do.

    Every command of Leak Atlas answers it with that line and exit code 2.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(message))

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback, which would hide the line below pages of our
        own code.
        """
        return [line_of_cell(self)]


class NothingKept(KeyboardInterrupt):
    """An interrupt of work that cannot be continued. The message says what to do."""


def line_of_cell(error: Exception) -> str:
    """An error as one line, with the line of the notebook's cell that asked for it."""
    from traceback import extract_tb

    place = ""
    for frame in reversed(extract_tb(error.__traceback__)):
        if "ipykernel" in frame.filename and frame.name == "<module>":
            place = f" (line {frame.lineno} of this cell)"
    return f"leak atlas: {one_line(error)}{place}"


def one_line(message: object) -> str:
    """A message as one line of at most `LINE` characters: what cannot be printed is a space, a long
    middle is "...".
    """
    text = str(message)
    if len(text) > 8 * LINE:  # it may be as large as a file
        text = f"{text[: 4 * LINE]} {text[-4 * LINE :]}"
    letters = [letter if letter.isprintable() else " " for letter in text]
    words = "".join(letters).split()
    line = " ".join(words)
    if len(line) <= LINE:
        return line
    half = LINE // 2
    return f"{line[:half]} ... {line[5 - half :]}"


def nearest(word: str, known: "list[str] | tuple[str, ...] | set[str]") -> str:
    """`"; did you mean 'x'?"`, or the list of what there is, to end the sentence of a BadInput."""
    from difflib import get_close_matches

    close = get_close_matches(word[:LINE], sorted(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; there is: {', '.join(sorted(known))}"


def typed(line: str) -> str:
    """`leak-atlas data get cifar10` as it is typed at a shell.

    A program of this environment has its path before it where the environment is not active.
    """
    from shlex import quote
    from shutil import which

    name, _, arguments = line.partition(" ")
    program = Path(sys.executable).with_name(name)
    if which(name) == str(program):
        return line
    if program.exists():
        return f"{quote(str(program))} {arguments}"
    return f"{quote(sys.executable)} -m {name.replace('-', '_')} {arguments}"


def duration(seconds: float) -> str:
    """A time in the unit that people use, `12 s`, `3.5 minutes`, `2.1 days`: whole seconds below 90
    s, else one digit after the point below ten.
    """
    units = (
        (1.0, "s"),
        (60.0, "minutes"),
        (3600.0, "hours"),
        (86400.0, "days"),
        (365 * 86400.0, "years"),
    )
    size, unit = next((each for each in reversed(units) if seconds >= 1.5 * each[0]), units[0])
    number = float(f"{seconds / size:.2g}")
    return f"{number:,.0f} {unit}" if number >= 10 or unit == "s" else f"{number:.1f} {unit}"


def reason(error: BaseException) -> str:
    """What an error says, on one line of at most 200 characters, or its kind where it says nothing."""
    return " ".join(str(error).split())[:200] or type(error).__name__
