"""Leak Atlas: where does membership leak?

Rooms, in the order in which they may know each other, are listed in ARCHITECTURE.md.
"""

import os

# torch's bundled OpenMP spins at its barriers unless told otherwise: beside any other busy process a training with two
# threads then runs up to twenty times slower. It has to be said before torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

LINE = 300  # characters of the longest message


class BadInput(ValueError):
    """What a user asked for cannot be done. The message is one line that says what is wrong and what to do.

    Every command of Leak Atlas answers it with that line and exit code 2.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(message))


def one_line(message: object) -> str:
    """A message as one line of at most `LINE` characters: what cannot be printed is a space, a long middle is "..."."""
    text = str(message)
    if len(text) > 8 * LINE:  # it may be as large as a file
        text = f"{text[: 4 * LINE]} {text[-4 * LINE :]}"
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= LINE else f"{line[: LINE // 2]} ... {line[5 - LINE // 2 :]}"


def nearest(word: str, known: "list[str] | tuple[str, ...] | set[str]") -> str:
    """`"; did you mean 'x'?"`, or the list of what there is, to end the sentence of a BadInput."""
    from difflib import get_close_matches

    close = get_close_matches(word[:LINE], sorted(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; there is: {', '.join(sorted(known))}"


def reason(error: BaseException) -> str:
    """What an error says, on one line of at most 200 characters, or its kind where it says nothing."""
    return " ".join(str(error).split())[:200] or type(error).__name__
