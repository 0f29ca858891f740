"""Claims: a rule written before the results are known, and one function that judges it afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from lib import BadInput, nearest
from lib.report.markup import html_table, text_table

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from lib.audit import Estimate

Verdict = Literal["holds", "fails", "undecided", "below resolution"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
ICONS: dict[Verdict, str] = {"holds": "✓", "fails": "✗", "undecided": "◐", "below resolution": "○"}
MEANING: dict[Verdict, str] = {
    "holds": "the whole 95 % interval is on the claimed side of the border",
    "fails": "the whole 95 % interval is on the other side",
    "undecided": "the 95 % interval spans the border",
    "below resolution": "too few points to measure this quantity",
}
MIME = "application/vnd.leakatlas.claims+json"


@dataclass(frozen=True)
class Claim:
    """What the paper says, what is measured, and on which side of which border the measurement must lie."""

    name: str  # an identifier: `judge` takes its estimate by this name
    text: str  # what the paper says, as one sentence that could be wrong
    quantity: str  # what is measured
    above: float | None = None  # holds where the quantity is larger than this ...
    below: float | None = None  # ... or smaller than this; exactly one of the two
    paper: str = ""  # locator: figure, table, section
    control: str = ""  # what could explain the finding away, and is measured beside it

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name in ("claims", "notes"):
            raise BadInput(f"a claim is named by an identifier other than 'claims' and 'notes', not '{self.name}'")
        if (self.above is None) == (self.below is None):
            raise BadInput(f"claim '{self.name}' needs exactly one border: above= or below=")
        if not math.isfinite(self.border):
            raise BadInput(f"claim '{self.name}' needs a finite border, not {self.border}")

    @property
    def border(self) -> float:
        return float(self.above if self.above is not None else self.below)  # type: ignore[arg-type]

    @property
    def rule(self) -> str:
        """The rule as one line: `AUC of stage 4 > 0.5`."""
        border = f"{self.border:g}".replace("-", "−")
        return f"{self.quantity} {'>' if self.above is not None else '<'}\u00a0{border}"


@dataclass(frozen=True)
class Claims:
    """The claims of one notebook, in order."""

    items: tuple[Claim, ...]

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, name: str) -> Claim:
        for item in self.items:
            if item.name == name:
                return item
        raise BadInput(f"there is no claim '{name}'{nearest(name, self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        head = ("Claim", "Counts as holding if", "Paper", "Control")
        rows = [(item.text, item.rule, item.paper, item.control) for item in self.items]
        return {"text/html": str(html_table(head, rows)), "text/plain": text_table(head, rows)}


def claims(*items: Claim) -> Claims:
    """The claims of a notebook; stands with the parameters, before anything is computed."""
    names = [item.name for item in items]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"two claims are named '{name}'")
    return Claims(tuple(items))


def verdict(claim: Claim, estimate: Estimate) -> Verdict:
    """Where the 95 % interval of the measured quantity lies. Touching the border is not enough."""
    numbers = (estimate.value, estimate.low, estimate.high)
    if not estimate.resolved or any(math.isnan(number) for number in numbers):
        return "below resolution"
    if estimate.low > estimate.high:
        raise ValueError(f"claim '{claim.name}': the interval [{estimate.low}, {estimate.high}] is upside down")
    over, under = estimate.low > claim.border, estimate.high < claim.border
    if claim.above is not None:
        return "holds" if over else "fails" if under else "undecided"
    return "holds" if under else "fails" if over else "undecided"


def verdicts_possible(claim: Claim) -> set[Verdict]:
    """The verdicts that synthetic estimates around the border get; a claim that can be judged reaches all four."""
    from lib.audit import Estimate

    step = max(abs(claim.border), 1.0) / 10
    synthetic = [
        Estimate(claim.border + 2 * step, claim.border + step, claim.border + 3 * step, 1000),
        Estimate(claim.border - 2 * step, claim.border - 3 * step, claim.border - step, 1000),
        Estimate(claim.border, claim.border - step, claim.border + step, 1000),
        Estimate(claim.border + 2 * step, claim.border + step, claim.border + 3 * step, 3, resolved=False),
    ]
    return {verdict(claim, estimate) for estimate in synthetic}


@dataclass(frozen=True)
class Judgement:
    """Claims with their verdicts; `rows` is what `claims.json` holds."""

    rows: tuple[dict[str, Any], ...]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Verdict:
        return next(row["verdict"] for row in self.rows if row["name"] == name)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/html": self._repr_html_(), "text/plain": str(self), MIME: [dict(row) for row in self.rows]}

    def _repr_html_(self) -> str:
        return str(html_table(HEAD, [columns(row) for row in self.rows]))

    def __str__(self) -> str:
        lines = []
        for row in self.rows:
            lines.append(f"{ICONS[row['verdict']]} {row['verdict'].upper()}: {row['text']}")
            lines.append(f"    measured {measured(row)}; rule: {row['rule']}")
            lines += [f"    {key}: {row[key]}" for key in ("paper", "control", "note") if row[key]]
        return "\n".join(lines)

    __repr__ = __str__


HEAD = ("Verdict", "Claim", "Measured", "Counts as holding if", "Control")


def badge(row: Mapping[str, Any]) -> Any:
    """Icon and word; the word carries the meaning, the icon and (where styles are kept) the colour repeat it."""
    from markupsafe import Markup

    name: Verdict = row["verdict"]
    kind = name.replace(" ", "-")
    return Markup('<span class="verdict {}" title="{}">{}&nbsp;<b>{}</b></span>').format(
        kind, MEANING[name], ICONS[name], Markup(name.replace(" ", "&nbsp;"))
    )


def measured(row: Mapping[str, Any]) -> str:
    """`0.703 [0.690, 0.716]`, and from how many points."""
    numbers = [row[key] for key in ("value", "low", "high")]
    value, low, high = ("–" if number is None else f"{number:.3f}".replace("-", "−") for number in numbers)
    return f"{value} [{low}, {high}]"


def columns(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """One row of the table of claims, as HTML cells."""
    from markupsafe import Markup

    text = Markup("{}").format(row["text"])
    if row["paper"]:
        text += Markup("<br><small>{}</small>").format(row["paper"])
    if row["note"]:
        text += Markup("<br><small><i>Note:</i> {}</small>").format(row["note"])
    value, interval = measured(row).split(" ", 1)
    number = Markup("{} <small>{}</small>").format(value, interval.replace(" ", "\u00a0"))
    if row["n"]:
        number += Markup("<br><small>n&nbsp;=&nbsp;{}</small>").format(f"{row['n']:,}".replace(",", " "))
    return badge(row), text, number, row["rule"], row["control"]


def judge(claims: Claims, /, notes: Mapping[str, str] | None = None, **estimates: Estimate) -> Judgement:
    """Every claim with its verdict. Each claim needs its estimate.

    `notes` say why we think a claim does not hold, and are left out where it does, as it may in another profile.
    """
    notes = notes or {}
    for given, what in ((estimates, "claim"), (notes, "claim to note on")):
        for name in given:
            if name not in claims.names:
                raise BadInput(f"there is no {what} '{name}'{nearest(name, claims.names)}")
    missing = [name for name in claims.names if name not in estimates]
    if missing:
        raise BadInput(f"not judged: {', '.join(missing)}; every claim needs its estimate")
    rows = []
    for claim in claims:
        estimate = estimates[claim.name]
        found = verdict(claim, estimate)
        rows.append(
            {
                "name": claim.name,
                "text": claim.text,
                "quantity": claim.quantity,
                "rule": claim.rule,
                "verdict": found,
                "value": _finite(estimate.value),
                "low": _finite(estimate.low),
                "high": _finite(estimate.high),
                "n": int(estimate.n),
                "paper": claim.paper,
                "control": claim.control,
                "note": notes.get(claim.name, "") if found != "holds" else "",
            }
        )
    return Judgement(tuple(rows))


def _finite(number: float) -> float | None:
    """JSON knows no NaN."""
    return float(number) if math.isfinite(number) else None


def claims_of(notebook: NotebookNode) -> list[dict[str, Any]]:
    """The judged claims that an executed notebook shows, in order."""
    found: list[dict[str, Any]] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            found += [dict(row) for row in output.get("data", {}).get(MIME, ())]
    return found
