"""What a report says in short: how many claims hold, on what networks, and which; made of its
judged claims alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from leak_atlas.report.ledger import ICONS, measured

Row = Mapping[str, Any]
VERBS = {
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "undecided": ("is undecided", "are undecided"),
    "below resolution": ("is below resolution", "are below resolution"),
    "inert": ("is inert", "are inert"),
}
OPEN = ("undecided", "below resolution", "inert")
NAMED = 3  # accuracies that are told by name
OURS = re.compile(r"(?i)\bours?\b")  # in a claim's locator, where the paper does not make it
TOLD = 2  # claims of a verdict that are told; the rest is counted


def tally(rows: Sequence[Row]) -> str:
    """`Of 6 claims 4 hold, 1 fails and 1 is undecided`; "" where there is none."""
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERBS}
    told = [f"{count} {VERBS[verdict][count > 1]}" for verdict, count in counts.items() if count]
    if len(rows) < 2:
        return "".join(f"Its one claim {VERBS[row['verdict']][0]}" for row in rows)
    return f"Of {len(rows)} claims {_and(told)}"


def networks(rows: Iterable[Row]) -> str:
    """What the networks behind the claims learnt, and whether that is enough for what the claims
    are meant of.

    "" where the claims were judged before this was kept.
    """
    rows = list(rows)
    pairs = dict(chain.from_iterable(row.get("learnt", {}).items() for row in rows))
    near = sorted(
        pairs,
        key=lambda name: math.inf if pairs[name][0] is None else pairs[name][0] - pairs[name][1],
    )
    shown = list(pairs) if len(pairs) <= NAMED else near[:1]
    told = ", ".join(
        f"{name} {'–' if pairs[name][0] is None else f'{pairs[name][0]:.3f}'}" for name in shown
    )
    if len(shown) < len(pairs):
        told += f" (at least {pairs[near[0]][1]:g}), and {len(pairs) - 1} more accuracies, farther from their least"
    beyond = list(dict.fromkeys(chain.from_iterable(row.get("outside", ()) for row in rows)))
    if beyond:
        return f"{told}: outside the regime ({'; '.join(beyond)})".removeprefix(": ")
    if pairs:
        return f"{told}: within the regime"
    return "no regime is declared" if any("learnt" in row for row in rows) else ""


def short(rows: Sequence[Row]) -> str:
    """The tally, the networks, and the first claims of each verdict with what was measured, as
    markdown; "" of none.
    """
    if not rows:
        return ""
    found = networks(rows)
    lines = [f"**In short.** {tally(rows)}." + (f" Networks: {found}." if found else "")]
    for name, verdicts in {"Holds": ("holds",), "Fails": ("fails",), "Not decided": OPEN}.items():
        if of_it := [row for row in rows if row["verdict"] in verdicts]:
            told = [
                f"{_plain(row['text'])} ({measured(row)}, rule {border(row)})"
                for row in of_it[:TOLD]
            ]
            more = [f"and {len(of_it) - TOLD} more"] if len(of_it) > TOLD else []
            lines.append(f"{ICONS[of_it[0]['verdict']]} **{name}:** {'; '.join(told + more)}.")
    return "\n>\n".join(f"> {line}" for line in lines)


def surest(rows: Sequence[Row]) -> list[Row]:
    """Two claims of the paper's own that hold most surely and one that fails so, by p; ours where
    it has none.
    """
    decided = {
        verdict: [row for row in rows if row["verdict"] == verdict]
        for verdict in ("holds", "fails")
    }
    found = []
    for verdict, most in (("holds", 2), ("fails", 1)):
        own = [row for row in decided[verdict] if not OURS.search(row.get("paper", ""))] or decided[
            verdict
        ]
        found += sorted(own, key=lambda row: math.inf if row.get("p") is None else row["p"])[:most]
    return [row for row in rows if any(row is one for one in found)]


def border(row: Row) -> str:
    """The end of a claim's rule: `> 0.05`."""
    return str(row["rule"]).rsplit(" ", 1)[-1]


def _plain(text: str) -> str:
    """A claim's words, in which markdown finds no marks."""
    return "".join(
        f"\\{letter}" if letter in "\\`*_[]<>|" else letter for letter in text.rstrip(".")
    )


def _and(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
