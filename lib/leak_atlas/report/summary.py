"""What a report says in words: the answer to its title, its limits, and the sign of an effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leak_atlas.report.ledger import ICONS, digits, failed, measured

if TYPE_CHECKING:
    from leak_atlas.audit import Estimate

__all__ = ["effect"]

Row = Mapping[str, Any]
ANSWERS = {
    "holds": "This holds",
    "fails": "This does not hold",
    "undecided": "This is undecided",
    "below resolution": "This cannot be decided at this size",
    "inert": "This was not tested",
}
NAMED = 3  # accuracies that are listed by name
UNMARKED = 2  # claims that answer the title of a page that marks no headline


def effect(estimate: Estimate, positive: str, negative: str, undecided: str = "") -> str:
    """The word for the sign of an estimate, decided by its 95 % interval.

    `effect(change, "raises", "lowers")` is "raises" where the whole interval lies above 0, "lowers"
    where it lies below 0, else `undecided`; by default "neither significantly raises nor lowers".
    An estimate that its sample cannot resolve is undecided.
    """
    if estimate.resolved and estimate.low > 0:
        return positive
    if estimate.resolved and estimate.high < 0:
        return negative
    return undecided or f"neither significantly {positive} nor {negative}"


def headlines(rows: Sequence[Row]) -> list[Row]:
    """The judged claims that answer the title: those marked, else the first two."""
    return [row for row in rows if row.get("headline")] or list(rows[:UNMARKED])


def evidence(row: Row) -> str:
    """What was measured, the rule, and checks that failed."""
    units = f", n = {row['n']}" if row["n"] else ""
    return "; ".join([f"{measured(row)}{units}", f"rule: {row['rule']}", *failed(row)])


def networks(rows: Iterable[Row]) -> str:
    """What the networks behind the claims learnt, and whether that is enough for the claims.

    "" where the claims were judged before this was kept.
    """
    rows = [row for row in rows if "learnt" in row]
    learnt = {name: value for row in rows for name, value in row["learnt"].items()}
    if not learnt:
        return "no regime is declared" if rows else ""
    nearest = sorted(learnt, key=lambda name: (learnt[name][0] or 0.0) - learnt[name][1])[:NAMED]
    named = {name: value for name, (value, _) in learnt.items() if name in nearest}
    shown = [f"{name} {digits(value)}" for name, value in named.items()]
    text = ", ".join(shown)
    if len(learnt) > NAMED:
        text += f" and {len(learnt) - NAMED} more accuracies, farther from their least"
    beyond = dict.fromkeys(reason for row in rows for reason in row.get("outside", ()))
    if beyond:
        return f"{text}: outside the regime ({'; '.join(beyond)})"
    return f"{text}: within the regime"


def short(rows: Sequence[Row]) -> str:
    """The answer to a page's title, as markdown: its headline claims, then limits; "" of none."""
    if not rows:
        return ""
    lines = [
        f"{ICONS[row['verdict']]} {_plain(row['text'].rstrip('.'))}."
        f" **{ANSWERS[row['verdict']]}:** {_plain(evidence(row))}."
        for row in headlines(rows)
    ]
    lines[0] = f"**In short.** {lines[0]}"
    if learnt := networks(rows):
        lines.append(f"**Limits.** Networks: {_plain(learnt)}.")
    return "\n>\n".join(f"> {line}" for line in lines)


def _plain(text: str) -> str:
    """A text in which markdown finds no marks."""
    return "".join(f"\\{letter}" if letter in "\\`*_<>|" else letter for letter in text)
