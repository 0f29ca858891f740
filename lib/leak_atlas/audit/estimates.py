"""A number with its interval, and what one says of several."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

__all__ = ["Estimate", "Row", "Rows", "largest", "least"]

Row = dict[str, Any]  # of a table or of a figure: values by the names of columns
Rows = list[Row]


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval: what tables and claims are made of.

    ``n`` counts the independent units behind the interval (models, samples); ``resolved`` is False
    where there are too few of them for the question (one model, or an FPR below one non-member).
    ``error`` is the standard error (NaN where the interval has none, as that of a binomial rate),
    ``df`` its degrees of freedom (infinite: a normal law). ``bounds`` is where the quantity lies by
    its nature; ``reason`` says why nothing is resolved, where that needs words.
    """

    value: float
    low: float
    high: float
    n: int = 0
    resolved: bool = True
    error: float = math.nan
    df: float = math.inf
    bounds: tuple[float, float] = field(default=(-math.inf, math.inf), repr=False, compare=False)
    reason: str = field(default="", repr=False, compare=False)

    def __format__(self, spec: str) -> str:
        spec = spec or ".3f"
        value, low, high = (format(one, spec) for one in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"

    def __str__(self) -> str:
        return format(self)

    def __neg__(self) -> Estimate:
        least, most = self.bounds
        return replace(
            self,
            value=-self.value,
            low=-self.high,
            high=-self.low,
            bounds=(-most, -least),
        )

    def widened(self, low: float, high: float) -> Estimate:
        """With an interval that reaches as far as a second one: of the normal law from then on, and
        without error.
        """
        if self.low <= low and high <= self.high:
            return self
        return replace(
            self, low=min(self.low, low), high=max(self.high, high), error=math.nan, df=math.inf
        )

    def at(self, level: float) -> Estimate:
        """The interval at another level: each end moves as Student's would with these degrees of
        freedom.

        Exact where the interval is Student's or normal. Clopper-Pearson's, DeLong's on the logit
        scale and joined ends move by the same factor, of the normal law: for a level above 95 % it
        is a little too far for a skewed end that meets the range of the quantity, and right to
        first order elsewhere.
        """
        from scipy import special

        reach = special.stdtrit(self.df, (1 + level) / 2)
        stretch = float(reach / special.stdtrit(self.df, 0.975))
        low = self.value - (self.value - self.low) * stretch
        high = self.value + (self.high - self.value) * stretch
        least, most = self.bounds
        return replace(self, low=max(low, least), high=min(high, most))


def least(estimates: Iterable[Estimate]) -> Estimate:
    """The smallest of several quantities, for claims that have to hold of all: "each is above the
    border".

    The lower end is the smallest of the lower ends, so "low > border" has at most the error of one
    comparison (intersection-union). The upper end is the smallest upper end of intervals at 1 - .05
    / k: "high < border", that at least one of the k lies below, would else have the error of k
    comparisons. Raises ValueError on none.
    """
    every = list(estimates)
    if not every:
        raise ValueError("need at least one estimate")
    if len(every) == 1:
        return every[0]
    strict = [e.at(1 - 0.05 / len(every)) for e in every]
    reasons = dict.fromkeys(e.reason for e in every if e.reason)
    return replace(
        min(every, key=attrgetter("low")),
        value=min(e.value for e in every),
        high=min(e.high for e in strict),
        n=min(e.n for e in every),
        resolved=all(e.resolved for e in every),
        error=math.nan,
        reason="; ".join(reasons),
    )


def largest(estimates: Iterable[Estimate]) -> Estimate:
    """The mirror image of `least`, for "each is below the border", and for "some is above it" by
    its lower end.
    """
    return -least(-e for e in estimates)
