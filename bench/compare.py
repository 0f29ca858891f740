"""Does another run give the same numbers and verdicts? Prints docs/processors.md:

    git show COMMIT:outputs/reports/quick/results.json > earlier.json
    python -m bench.compare earlier.json outputs/reports/quick/results.json

Both files are lists of notebooks with their claims, as `leak-atlas report` writes them.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

NUMBERS = ("value", "low", "high")


class Pair(NamedTuple):
    """A claim of a notebook in two runs."""

    notebook: str
    first: dict[str, Any]
    second: dict[str, Any]

    @property
    def equal(self) -> bool:
        """Whether all numbers are equal, to the last digit."""
        return all(self.first[name] == self.second[name] for name in NUMBERS)

    @property
    def inside(self) -> bool:
        """Whether the second value lies in the interval of the first."""
        return bool(self.first["low"] <= self.second["value"] <= self.first["high"])

    @property
    def shift(self) -> float:
        """Difference of the values, as a share of half the first interval; 0 where both are equal."""
        difference = abs(self.second["value"] - self.first["value"])
        half = (self.first["high"] - self.first["low"]) / 2
        return difference / half if difference and half else 0.0


def pairs(first: Path, second: Path) -> list[Pair]:
    """The claims that are in both runs and have a number in both."""
    earlier = _claims(first)
    both = []
    for place, claim in _claims(second).items():
        if place in earlier and None not in (claim["value"], earlier[place]["value"]):
            both.append(Pair(place[0], earlier[place], claim))
    return both


def _claims(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    claims = {}
    for entry in json.loads(path.read_text()):
        for claim in entry["claims"]:
            claims[entry["notebook"], claim["name"]] = claim
    return claims


def page(both: list[Pair]) -> str:
    """The comparison as Markdown; claims in the words of the second run."""
    shifts = sorted(pair.shift for pair in both)
    changed = [pair for pair in both if pair.first["verdict"] != pair.second["verdict"]]
    verdicts = [{pair.first["verdict"], pair.second["verdict"]} for pair in changed]
    lines = [
        f"- {sum(pair.equal for pair in both)} of {len(both)} claims have the same numbers, to the"
        " last digit.",
        f"- For {sum(pair.inside for pair in both)} the second value lies in the first 95 %"
        " interval. The shift is"
        f" {shifts[len(shifts) // 2]:.2f} of half the interval in the median, and at most"
        f" {shifts[int(0.9 * len(shifts))]:.2f} for 90 % of the claims.",
        f"- {len(changed)} verdicts change; {verdicts.count({'holds', 'fails'})} of them from"
        " *holds* to *fails* or back.",
        "",
        "| Claim | First run | Second run |",
        "| --- | --- | --- |",
    ]
    for pair in changed:
        text = f"{pair.notebook}: {pair.second['text']}"
        if pair.second["headline"]:
            text = f"**{text}**"
        lines.append(f"| {text} | {_words(pair.first)} | {_words(pair.second)} |")
    return "\n".join(lines)


def _words(claim: dict[str, Any]) -> str:
    value, low, high = (claim[name] for name in NUMBERS)
    numbers = f"{value:.3f} [{low:.3f}, {high:.3f}]"
    return f"{claim['verdict']}: {numbers.replace('-', '−')}"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("leak atlas: name two files: python -m bench.compare FIRST SECOND", file=sys.stderr)
        sys.exit(2)
    print(page(pairs(*map(Path, sys.argv[1:]))))
