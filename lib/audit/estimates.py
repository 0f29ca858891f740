"""A number with its interval, and what one says of several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A number with its interval: the common currency of tables and claims.

    ``n`` counts the independent units behind the interval (models, samples); ``resolved`` is False where there were
    too few of them for the question (one model, or an FPR below one non-member).
    """

    value: float
    low: float
    high: float
    n: int = 0
    resolved: bool = True

    def __format__(self, spec: str) -> str:
        spec = spec or ".3f"
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __str__(self) -> str:
        return format(self)


def least(estimates: Iterable[Estimate]) -> Estimate:
    """The smallest of several quantities, for claims that have to hold of all: "each is above the border".

    The lower end is the smallest of the lower ends, so "low > border" has at most the error of one comparison
    (intersection-union). The upper end is the smallest too: "high < border", that at least one lies below, may have the
    error of as many comparisons as there are. Raises ValueError on none.
    """
    every = list(estimates)
    if not every:
        raise ValueError("need at least one estimate")
    return Estimate(
        min(e.value for e in every),
        min(e.low for e in every),
        min(e.high for e in every),
        min(e.n for e in every),
        all(e.resolved for e in every),
    )


def largest(estimates: Iterable[Estimate]) -> Estimate:
    """The mirror image of `least`, for "each is below the border"."""
    found = least(Estimate(-e.value, -e.high, -e.low, e.n, e.resolved) for e in estimates)
    return Estimate(-found.value, -found.high, -found.low, found.n, found.resolved)
