"""What a report says in words: the answer to its title, its limits, and the sign of an effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leak_atlas.report import ledger
from leak_atlas.report.ledger import ICONS, digits, failed, requirement, shown

if TYPE_CHECKING:
    from leak_atlas.audit import Estimate

__all__ = ["effect", "listed"]

Row = Mapping[str, Any]
ANSWERS = {  # of each verdict: a word, and a sentence that is true
    "holds": ("Yes.", "{text}: {number}."),
    "fails": ("No.", "{fails}: {number}."),
    "undecided": (
        "Undecided:",
        "“{text}”. The interval contains the border {border}: {number}.",
    ),
    "underpowered": (
        "Underpowered:",
        "“{text}”. A wide interval contains the border {border}: {number}.",
    ),
    "inert": ("Not tested:", "“{text}”. A manipulation check failed; measured: {number}."),
}
UNMEASURED = "Not measured:", "“{text}”."
DENIED = "“{text}” does not hold"  # where a claim names no sentence that is true if it fails
UNTRAINED = ": not trained as required"
NAMED = 3  # accuracies that are listed by name
UNMARKED = 2  # claims that answer the title of a page that marks no headline


def effect(
    estimate: Estimate, positive: str, negative: str, undecided: str = "", border: float = 0.0
) -> str:
    """The word for the side of a border (0: the sign) on which a 95 % interval lies.

    `effect(change, "raises", "lowers")` is "raises" where the whole interval lies above the border,
    "lowers" where it lies below, else `undecided`; by default "neither significantly raises nor
    lowers". An estimate that its sample cannot resolve is undecided.
    """
    if estimate.resolved and estimate.low > border:
        return positive
    if estimate.resolved and estimate.high < border:
        return negative
    return undecided or f"neither significantly {positive} nor {negative}"


def listed(estimates: Mapping[str, Estimate]) -> str:
    """Estimates by their words, for the note of a claim: `1×1 to 2×2: 0.073 [0.054, 0.090]; …`."""
    parts = []
    for words, one in estimates.items():
        parts.append(f"{words}: {digits(one.value)} [{digits(one.low)}, {digits(one.high)}]")
    return "; ".join(parts)


def headlines(rows: Sequence[Row]) -> list[Row]:
    """The judged claims that answer the title: those marked, else the first two."""
    return [row for row in rows if row.get("headline")] or list(rows[:UNMARKED])


def answer(row: Row) -> tuple[str, str]:
    """What was found: a word ("Yes.", "No."), and a sentence that is true, with its number."""
    text = row["text"].rstrip(".")
    fails = row.get("fails", "").rstrip(".") or DENIED.format(text=text)
    word, sentence = ANSWERS[row["verdict"]]
    if row["verdict"] == "underpowered" and (row["power"] or 0.0) <= 1:
        word, sentence = UNMEASURED
    words = {"text": text, "fails": fails, "border": threshold(row), "number": interval(row)}
    return word, sentence.format(**words)


def threshold(row: Row) -> str:
    """The number with which an interval is compared: `0.02`, or `±0.02` of an absolute value."""
    sign = "±" if row["rule"].startswith("|") else ""
    return f"{sign}{ledger.border(row):g}".replace("-", "−")


def evidence(row: Row) -> str:
    """What the number of a verdict is: the quantity, its border, the units, and what went wrong."""
    parts = [f"Measured: {row['quantity']}", f"holds if {border(row)}"]
    if row["n"]:
        parts.append(f"n\u00a0=\u00a0{row['n']}")
    if ledger.is_small(row):
        parts.append(f"below the smallest effect of interest, {ledger.smallest_effect(row):.2g}")
    if _differs_little(row):
        parts.append("the interval excludes 0, so there is a difference")
    if row["note"]:
        parts.append(row["note"])
    return "; ".join([*parts, *failed(row)])


def _differs_little(row: Row) -> bool:
    """Whether a claim holds that a difference is small, but the difference is significant."""
    is_within = row["rule"].startswith("|")
    return is_within and row["verdict"] == "holds" and row["low"] * row["high"] > 0


def interval(row: Row) -> str:
    """`−0.022 (95 % CI −0.033 to −0.013)`; the value alone where it is computed, without an error."""
    value, low, high = shown(row)
    return value if low == high else f"{value} (95\u00a0%\u00a0CI {low} to {high})"


def border(row: Row) -> str:
    """The rule without the quantity: `> 0`, or `absolute value < 0.02`."""
    rest = row["rule"].replace(row["quantity"], "", 1)
    return str(rest.replace("||", "absolute value").strip())


def networks(rows: Iterable[Row]) -> str:
    """What the networks behind the claims learnt, and whether that is enough for the claims.

    "" where the claims were judged before this was kept.
    """
    rows = [row for row in rows if "learnt" in row]
    learnt: dict[str, Any] = {}
    margins = {}
    for row in rows:
        learnt |= row["learnt"]
    if not learnt:
        return "this page sets no least accuracy" if rows else ""
    for name, (value, least) in learnt.items():
        margins[name] = (value or 0.0) - least
    nearest = sorted(margins, key=margins.__getitem__)[:NAMED]
    named = [requirement(name, *pair) for name, pair in learnt.items() if name in nearest]
    text = ", ".join(named)
    if len(learnt) > NAMED:
        text += f", and {len(learnt) - NAMED} more"
    if any(row.get("outside") for row in rows):
        text += UNTRAINED
    return text


def short(rows: Sequence[Row]) -> str:
    """The answer to a page's title, as markdown: its headline claims; "" of none."""
    if not rows:
        return ""
    lines = []
    learnt = networks(rows)
    if learnt.endswith(UNTRAINED):
        which = _plain(learnt.removesuffix(UNTRAINED))
        lines.append(f"**Warning: the networks did not train as required:** {which}.")
    for row in headlines(rows):
        word, sentence = answer(row)
        lines.append(f"{ICONS[row['verdict']]} **{word}** {_plain(sentence)}")
        lines.append(f"<small>{_plain(evidence(row))}.</small>")
    lines[0] = f"**In short.** {lines[0]}"
    return "\n>\n".join(f"> {line}" for line in lines)


def _plain(text: str) -> str:
    """A text in which markdown finds no marks."""
    return "".join(f"\\{letter}" if letter in "\\`*_<>|" else letter for letter in text)
