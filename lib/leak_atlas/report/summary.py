"""The sentences of a report: the answer to its title, its evidence, and the sign of an effect."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leak_atlas.report import ledger
from leak_atlas.report.ledger import ICONS, failed, requirement, shown
from leak_atlas.report.tables import UNRESOLVED

if TYPE_CHECKING:
    from leak_atlas.audit import Estimate

__all__ = ["compared_accuracy", "effect", "listed"]

Row = Mapping[str, Any]
ANSWERS = {  # for each verdict: a word, and a template of a true sentence
    "holds": ("Yes.", "{text}: {number}."),
    "fails": ("No.", "{fails}: {number}."),
    "undecided": (
        "Undecided:",
        "“{text}”. The interval contains the border {border}: {number}.{excluded}",
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
NAMED = 3  # most accuracies that are listed by name
CI = "95\u00a0%\u00a0CI"
UNMARKED = 2  # claims that answer the title of a page that marks no headline


def effect(
    estimate: Estimate,
    positive: str,
    negative: str,
    undecided: str = "",
    border: float = 0.0,
    unresolved: str = "",
) -> str:
    """The word for the side of a border on which a 95 % interval lies.

    `effect(change, "raises", "lowers")` is "raises" if the whole interval lies above the border
    and "lowers" if it lies below. Otherwise it is `undecided`, by default "neither significantly
    raises nor lowers". For an estimate that is not resolved it is `unresolved`, by default "raises
    or lowers (not resolved)".
    """
    if not estimate.resolved:
        either = f"{positive} or {negative}".replace("significantly ", "")
        return unresolved or f"{either} ({UNRESOLVED})"
    if estimate.low > border:
        return positive
    if estimate.high < border:
        return negative
    return undecided or f"neither significantly {positive} nor {negative}"


def compared_accuracy(difference: Estimate, other: str = "early stopping", verb: str = "is") -> str:
    """What a title says of an accuracy minus that of an `other` network at matched AUC: `is
    significantly more accurate than early stopping`. If the difference is not resolved: `cannot be
    compared with early stopping`.
    """
    than = f"accurate than {other}"
    return effect(
        difference,
        f"{verb} significantly more {than}",
        f"{verb} significantly less {than}",
        f"{verb} not significantly more {than}",
        unresolved=f"cannot be compared with {other}",
    )


def listed(estimates: Mapping[str, Estimate]) -> str:
    """Estimates by their words, for the note of a claim: `1×1 to 2×2: 0.073 [0.054, 0.090]; …`.

    An estimate that its sample cannot resolve says so, as in a table.
    """
    parts = []
    for words, one in estimates.items():
        value, low, high = ledger.with_ends(one.value, one.low, one.high)
        part = f"{words}: {value} [{low}, {high}]"
        parts.append(part if one.resolved else f"{part} ({UNRESOLVED})")
    return "; ".join(parts)


def headlines(rows: Sequence[Row]) -> list[Row]:
    """The judged claims that answer the title: those marked, else the first two."""
    return [row for row in rows if row.get("headline")] or list(rows[:UNMARKED])


def answer(row: Row) -> tuple[str, str]:
    """What was found: a word ("Yes.", "No."), and a sentence that is true, with its number."""
    text = row["text"].rstrip(".")
    fails = row.get("fails", "").rstrip(".") or DENIED.format(text=text)
    word, sentence = ANSWERS[row["verdict"]]
    if not ledger.is_resolved(row):
        word, sentence = UNMEASURED
    words = {
        "text": text,
        "fails": fails,
        "border": _border(row),
        "number": _number(row),
        "excluded": _excluded(row),
    }
    return word, sentence.format(**words)


def finding(row: Row) -> str:
    """An answer for a document that says once that its intervals are 95 % intervals: with the
    border, if that is not 0 and the answer's words do not name it.
    """
    word, sentence = answer(row)
    text = f"{word} {sentence}".replace(f"{CI} ", "")
    border = ledger.border(row)
    if not ledger.is_resolved(row) or not border or math.isnan(border):
        return text
    number = re.escape(f"{abs(border):g}".removeprefix("0"))
    in_percent = rf"{abs(100 * border):g}[ \u00a0]?(%|points)"
    words = sentence.replace(_number(row), "")
    if re.search(rf"(?<![.\d])0?({number}(?!\d)|{in_percent})", words):
        return text
    return f"{text} Border: {_border(row)}."


def _excluded(row: Row) -> str:
    """Where the interval of an undecided claim excludes the smallest effect of interest: a sentence
    that says so, else "".
    """
    least = ledger.smallest_effect(row)
    rule = row["rule"]
    if least is None or rule.startswith("|"):
        return ""
    border = ledger.border(row)
    is_lower = ">\u00a0" in rule
    edge = border + least if is_lower else border - least
    end = row["high"] if is_lower else row["low"]
    is_inside = end >= edge if is_lower else end <= edge
    if is_inside or round(end, 3) == round(edge, 3):  # a printed end that equals the edge puzzles
        return ""
    effect = f"{edge:.3g}".replace("-", "−")
    if border == 0:
        return f" It excludes {effect}, the smallest effect of interest."
    side = "plus" if is_lower else "minus"
    return f" It excludes {effect}, the border {side} the smallest effect of interest."


def _border(row: Row) -> str:
    """The number that an interval contains: `0.02`; of an absolute value `−0.02`, or `±0.02` if it
    contains both.
    """
    border = ledger.border(row)
    sign = ""
    if row["rule"].startswith("|"):
        inside = [number for number in (-border, border) if row["low"] <= number <= row["high"]]
        sign = "±"
        if len(inside) == 1:
            sign, border = "", inside[0]
    return f"{sign}{border:g}".replace("-", "−")


def _evidence(row: Row) -> str:
    """What stands behind a verdict: quantity, rule, n, size of the effect, note, failed checks."""
    parts = [f"Measured: {row['quantity']}", f"holds if {_rule(row)}"]
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


def _number(row: Row) -> str:
    """`−0.022 (95 % CI −0.033 to −0.013)`; the value alone if the interval has no width."""
    value, low, high = shown(row)
    return value if low == high else f"{value} ({CI} {low} to {high})"


def _rule(row: Row) -> str:
    """The rule without the quantity: `> 0`, or `absolute value < 0.02`."""
    rest = row["rule"].replace(row["quantity"], "", 1)
    return str(rest.replace("||", "absolute value").strip())


def networks(rows: Iterable[Row]) -> str:
    """What the networks behind the claims learnt, and whether that is enough for the claims.

    Named are the accuracies that are closest to what is required; where one is not met, only such.
    "" for claims that an earlier version judged, which did not store this.
    """
    rows = [row for row in rows if "learnt" in row]
    learnt: dict[str, Any] = {}
    for row in rows:
        learnt |= row["learnt"]
    if not learnt:
        return "this page sets no least accuracy" if rows else ""

    def margin(name: str) -> float:
        value, least = learnt[name]
        return (value or 0.0) - least

    is_untrained = any(row.get("outside") for row in rows)
    if is_untrained:
        learnt = {name: pair for name, pair in learnt.items() if margin(name) < 0} or learnt
    nearest = sorted(learnt, key=margin)[:NAMED]
    named = [requirement(name, *pair) for name, pair in learnt.items() if name in nearest]
    text = ", ".join(named)
    if len(learnt) > NAMED:
        text += f", and {len(learnt) - NAMED} more"
    return text + UNTRAINED if is_untrained else text


def short(rows: Sequence[Row]) -> str:
    """The answer to a page's title, as markdown: its headline claims. "" without claims."""
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
        lines.append(f"<small>{_plain(_evidence(row))}.</small>")
    lines[0] = f"**In short.** {lines[0]}"
    return "\n>\n".join(f"> {line}" for line in lines)


def _plain(text: str) -> str:
    """The text with the marks of markdown escaped."""
    return re.sub(r"[\\`*_<>|]", r"\\\g<0>", text)
