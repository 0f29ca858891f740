"""Claims: a rule written before the results are known, and one function that judges it afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from leak_atlas import BadInput, nearest
from leak_atlas.report.markup import drawn, proper, table
from leak_atlas.report.tables import UNRESOLVED

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from leak_atlas.audit import Estimate, Row, Rows

__all__ = ["Claim", "Claims", "Judgement", "claims", "claims_of", "judge", "verdict"]

Verdict = Literal["holds", "fails", "undecided", "underpowered", "inert"]
ICONS: dict[Verdict, str] = {
    "holds": "✓",
    "fails": "✗",
    "undecided": "◐",
    "underpowered": "○",
    "inert": "∅",
}
MEANING: dict[Verdict, str] = {
    "holds": "the whole 95 % interval is on the claimed side of the border",
    "fails": "the whole 95 % interval is on the other side",
    "undecided": "the 95 % interval contains the border: the data allow both answers",
    "underpowered": "the 95 % interval contains the border, and its half-width is larger than the "
    "smallest effect of interest, so more networks are needed; or the quantity could not be measured",
    "inert": "a manipulation check failed, so the claim was not tested",
}
MIME = "application/vnd.leakatlas.claims+json"
RESERVED = ("claims", "notes", "checks", "regime")  # arguments of `judge`


@dataclass(frozen=True)
class Claim:
    """A sentence that can be false, the quantity that decides it, and the border for that quantity.

    It names exactly one border (`above`, `below` or `within`) and exactly one origin (`paper` or
    `ours`); BadInput otherwise.
    """

    name: str  # an identifier: `judge` takes its estimate by this name
    text: str  # one sentence that can be true or false, read alone
    quantity: str  # what is measured
    above: float | None = None  # holds where the quantity is larger than this ...
    below: float | None = None  # ... or smaller than this ...
    within: float | None = None  # ... or, for "no difference", nearer to zero than this
    paper: str = ""  # where the paper says it: figure, table, section
    ours: bool | str = False  # the paper does not say it; a text says where the question comes from
    control: str = ""  # what could explain the finding away, and is measured beside it
    margin: float | None = None  # the smallest effect worth having; `within` is its own margin
    needs: tuple[str, ...] = ()  # names of the regime that the claim depends on; empty: all
    headline: bool = False  # it answers the title of its page
    fails: str = ""  # the sentence that is true where the claim fails; a headline should have it
    quote: str = ""  # the paper's own sentence
    section: str = ""  # the section of the paper in which the quote stands

    def __post_init__(self) -> None:
        about = f"claim '{self.name}' needs"
        if not self.name.isidentifier() or self.name in RESERVED:
            raise BadInput(f"{about} an identifier as its name, other than {', '.join(RESERVED)}")
        if len(self._borders) != 1:
            raise BadInput(f"{about} exactly one border: above=, below= or within=")
        if not math.isfinite(self.border):
            raise BadInput(f"{about} a finite border, not {self.border}")
        for size in (self.within, self.margin):
            if size is not None and not 0 < size < math.inf:
                raise BadInput(f"{about} a margin above 0, not {size}")
        if bool(self.paper) == bool(self.ours):
            raise BadInput(f"{about} exactly one origin: paper= (where the paper says it) or ours=")

    @property
    def _borders(self) -> list[float]:
        return [side for side in (self.above, self.below, self.within) if side is not None]

    @property
    def origin(self) -> str:
        """Who makes the claim, as pages print it: a place in the paper, or "ours"."""
        return self.paper or ("ours" if self.ours is True else str(self.ours))

    @property
    def border(self) -> float:
        return float(self._borders[0])

    @property
    def rule(self) -> str:
        """The rule as one line: `AUC of stage 4 > 0.5`."""
        border = f"{self.border:g}".replace("-", "−")
        quantity = self.quantity if self.within is None else f"|{self.quantity}|"
        return f"{quantity} {'>' if self.above is not None else '<'}\u00a0{border}"

    def power(self, estimate: Estimate) -> float:
        """Half the width of the interval over the margin: the larger, the less power. Above 1 an
        interval that contains the border is underpowered. NaN: no margin.
        """
        margin = self.margin if self.within is None else self.within
        return math.nan if margin is None else (estimate.high - estimate.low) / 2 / margin


@dataclass(frozen=True)
class Claims:
    """The claims of one notebook, in order; `regime` has the least value of what the networks must
    have learnt.
    """

    items: tuple[Claim, ...]
    regime: Mapping[str, float] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.items)

    def _repr_mimebundle_(self, **_: Any) -> Row:
        head = ("Claim", RULE, "Origin", "Control")
        rows = [(item.text, item.rule, item.origin, item.control) for item in self.items]
        least = [f"{name} at least {value:g}" for name, value in self.regime.items()]
        caption = f"Regime in which they are meant: {' and '.join(least)}" if least else ""
        return {
            "text/html": table("html", head, rows, caption),
            "text/plain": table("txt", head, rows, caption),
        }


def claims(*items: Claim, regime: Mapping[str, float] | None = None) -> Claims:
    """The claims of a notebook; stands with the parameters, before anything is computed.

    `regime`: what the networks must have learnt for the claims to be about what they say, as least
    values by name (`{"member accuracy": 0.95}`); `judge` takes what was measured.
    """
    regime = dict(regime or {})
    names: set[str] = set()
    for item in items:
        if item.name in names:
            raise BadInput(f"two claims are named '{item.name}'")
        names.add(item.name)
        _known("declared regime", item.needs, list(regime))
    return Claims(tuple(items), regime)


def verdict(claim: Claim, estimate: Estimate, checks: Iterable[Estimate | bool] = ()) -> Verdict:
    """Where the 95 % interval of the measured quantity lies. Touching the border is not enough.

    `checks` that the treatment did something: True, or an estimate whose whole interval lies above
    0.
    """
    if not _is_measured(estimate):
        return "underpowered"
    if not all(_passes(check) for check in checks):
        return "inert"
    border = claim.border
    over, under = estimate.low > border, estimate.high < border
    if claim.above is not None:
        holds, fails = over, under
    elif claim.below is not None:
        holds, fails = under, over
    else:
        holds, fails = under and estimate.low > -border, over or estimate.high < -border
    if holds or fails:
        return "holds" if holds else "fails"
    return "underpowered" if claim.power(estimate) > 1 else "undecided"


def _is_measured(estimate: Estimate) -> bool:
    """Whether an estimate is resolved, and has numbers."""
    has_numbers = not math.isnan(estimate.value + estimate.low + estimate.high)
    return estimate.resolved and has_numbers


def _passes(check: Estimate | bool) -> bool:
    return check if isinstance(check, bool) else check.resolved and check.low > 0


@dataclass(frozen=True)
class Judgement:
    """Claims with their verdicts; `rows` is what `claims.json` holds."""

    rows: tuple[Row, ...]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Verdict:
        return next(row["verdict"] for row in self.rows if row["name"] == name)

    def _repr_mimebundle_(self, **_: Any) -> Row:
        return {
            "text/html": page_of_claims(self.rows),
            "text/plain": str(self),
            MIME: [dict(row) for row in self.rows],
        }

    def __str__(self) -> str:
        return drawn_claims("txt", self.rows)

    __repr__ = __str__


RULE = "Counts as holding if"
HEADS = {
    "html": ("Verdict", "Claim", "Measured"),  # rules and controls are folded below the table
    "md": ("Verdict", "Claim", "Measured", RULE, "Control"),
}


def failed(row: Mapping[str, Any]) -> list[str]:
    return [f"manipulation check failed: “{check}”" for check in row.get("inert", ())]


def outside(row: Mapping[str, Any]) -> list[str]:
    """What qualifies a verdict: checks of the treatment that fail, a regime that is not met."""
    return failed(row) + [f"not trained as required: {what}" for what in row.get("outside", ())]


def size_and_precision(row: Mapping[str, Any]) -> str:
    """Number of units, half-width of the interval, and the smallest effect of interest: `n = 10, ±
    0.012, smallest effect of interest 0.02`.
    """
    parts = []
    if row["n"]:
        number = f"{row['n']:,}".replace(",", " ")
        parts.append(f"n = {number}")
    power = row.get("power")
    if power is None:
        return ", ".join(parts)
    half = (row["high"] - row["low"]) / 2
    parts.append(f"± {digits(half)}")
    if least := smallest_effect(row):
        note = " (the measured effect is smaller)" if is_small(row) else ""
        parts.append(f"smallest effect of interest {least:.2g}{note}")
    return ", ".join(parts)


def smallest_effect(row: Mapping[str, Any]) -> float | None:
    """The smallest effect of interest of a judged claim; None where it names none."""
    power = row.get("power")
    return (row["high"] - row["low"]) / 2 / power if power else None


def is_small(row: Mapping[str, Any]) -> bool:
    """Whether a claim about a sign holds, or fails, by an effect below the smallest effect of
    interest.
    """
    least = smallest_effect(row)
    is_sign = row["verdict"] in ("holds", "fails") and border(row) == 0
    return is_sign and least is not None and abs(row["value"]) < least


def measured(row: Mapping[str, Any]) -> str:
    """The value and its interval: `0.703 [0.690, 0.716]`; a value that is not resolved says so, as in
    a table.
    """
    value, low, high = shown(row)
    text = f"{value} [{low}, {high}]"
    return text if is_resolved(row) else f"{text} ({UNRESOLVED})"


def is_resolved(row: Mapping[str, Any]) -> bool:
    """Whether the quantity of a judged claim could be measured.

    Reports of an earlier version do not store it. There, a claim whose quantity was measured is
    underpowered only by a wide interval that contains the border.
    """
    if "resolved" in row or row["verdict"] != "underpowered":
        return bool(row.get("resolved", True))
    if (row.get("power") or 0.0) <= 1:  # None where the estimate had no numbers
        return False
    rule = border(row)
    return any(row["low"] <= end <= row["high"] for end in (rule, -rule))


def shown(row: Mapping[str, Any]) -> list[str]:
    """The value and the ends of its interval, with enough decimals to see on which side of the
    border an end lies.
    """
    return with_ends(row["value"], row["low"], row["high"], border(row))


def with_ends(
    value: float | None, low: float | None, high: float | None, border: float = 0.0
) -> list[str]:
    """A value and the ends of its interval, with three decimals, or so many (up to six) that no end
    looks equal to the border.
    """
    rule = abs(border)
    ends = {abs(end) for end in (low, high) if end is not None} - {rule}
    places = 3
    while places < 6 and rule in [round(end, places) for end in ends]:
        places += 1
    return [digits(number, places) for number in (value, low, high)]


def border(row: Mapping[str, Any]) -> float:
    """The number at the end of a claim's rule; NaN where another version wrote a rule without one."""
    number = row["rule"].rpartition("\u00a0")[2].replace("−", "-")
    try:
        return float(number)
    except ValueError:
        return math.nan


def digits(number: float | None, places: int = 3) -> str:
    if number is None:
        return "–"
    return f"{round(number, places) + 0.0:.{places}f}".replace("-", "−")


def requirement(name: str, value: float | None, least: float) -> str:
    """What networks learnt and had to learn: `dense test accuracy 0.739 (required: 0.6)`."""
    return f"{name} {digits(value)} (required: {least:g})"


def page_of_claims(rows: Sequence[Mapping[str, Any]]) -> str:
    """A notebook's judged claims as HTML, to which its page has a link."""
    learnt: dict[str, str] = {}
    for row in rows:
        for name, (value, least) in row.get("learnt", {}).items():
            learnt[name] = requirement(name, value, least)
    caption = f"Networks: {', '.join(learnt.values())}." if learnt else ""
    table_of_claims = drawn_claims("html", rows, caption)
    return f'<div id="verdicts">{table_of_claims}</div>'


def drawn_claims(kind: str, rows: Sequence[Mapping[str, Any]], caption: str = "") -> str:
    """Judged claims as "html", as "md" or as "txt"."""
    words = {
        "icons": ICONS,
        "meaning": MEANING,
        "outside": outside,
        "size_and_precision": size_and_precision,
        "measured": measured,
    }
    return drawn(
        f"claims.{kind}",
        claims=rows,
        head=HEADS.get(kind, ()),
        numeric=(),
        caption=caption,
        **words,
    )


def judge(
    claims: Claims,
    /,
    notes: Mapping[str, str] | None = None,
    checks: Mapping[str, Mapping[str, Estimate | bool]] | None = None,
    regime: Mapping[str, Estimate | float] | None = None,
    **estimates: Estimate,
) -> Judgement:
    """Every claim with its verdict. Each claim needs its estimate, and what its regime names.

    `notes` explain the result of a claim and appear whatever the verdict; an estimate's own
    `reason` is its note where none is given. `checks` name by claim, in words, what
    its treatment must have done (see `verdict`): where one fails the claim is inert. `regime` has
    what the networks learnt; below what the claims declare, verdicts are outside the regime. Raises
    BadInput on a missing or unknown name.
    """
    notes, checks, regime = notes or {}, checks or {}, regime or {}
    names = [claim.name for claim in claims]
    _known("claim", estimates, names)
    _known("claim to note on", notes, names)
    _known("claim to check", checks, names)
    _known("declared regime", regime, list(claims.regime))
    missing = [name for name in names if name not in estimates]
    missing += [name for name in claims.regime if name not in regime]
    if missing:
        raise BadInput(f"not judged: {', '.join(missing)}")
    learnt = {name: _value(regime[name]) for name in claims.regime}
    rows = []
    for claim in claims:
        estimate = estimates[claim.name]
        row = _row(claim, estimate, checks.get(claim.name, {}))
        for name in claim.needs or claims.regime:
            value, least = learnt[name], claims.regime[name]
            row["learnt"][name] = [_finite(value), least]
            if not value >= least:
                row["outside"].append(f"{name} {value:.3f}, not {least:g}")
        note = "; ".join(filter(None, [estimate.reason, notes.get(claim.name, "")]))
        rows.append(row | {"note": proper(note)})
    return Judgement(tuple(rows))


def _value(measured: Estimate | float) -> float:
    return float(measured if isinstance(measured, int | float) else measured.value)


def _known(what: str, given: Iterable[str], known: list[str]) -> None:
    for name in given:
        if name not in known:
            raise BadInput(f"there is no {what} '{name}'{nearest(name, known)}")


COPIED = ("name", "text", "fails", "quantity", "rule", "control", "headline", "quote", "section")


def _row(claim: Claim, estimate: Estimate, checks: Mapping[str, Estimate | bool]) -> Row:
    """A judged claim; its regime and its note are filled in later."""
    return {name: getattr(claim, name) for name in COPIED} | {
        "paper": claim.origin,
        "verdict": verdict(claim, estimate, checks.values()),
        "n": int(estimate.n),
        "value": _finite(estimate.value),
        "low": _finite(estimate.low),
        "high": _finite(estimate.high),
        "resolved": _is_measured(estimate),
        "power": _finite(claim.power(estimate)),
        "inert": [words for words, check in checks.items() if not _passes(check)],
        "outside": [],
        "learnt": {},
    }


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def claims_of(notebook: NotebookNode) -> Rows:
    """The judged claims that an executed notebook shows, in order."""
    rows = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            rows += output.get("data", {}).get(MIME, ())
    return [dict(row) for row in rows]
