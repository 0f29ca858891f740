"""Rows for `report.profile`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from leak_atlas.audit import Estimate


def rows(
    names: Sequence[str], estimates: Iterable[Estimate], **labels: Any
) -> list[dict[str, Any]]:
    """One row for each named part; `labels` are further columns."""
    found = []
    for name, one in zip(names, estimates, strict=True):
        ends = {"value": one.value, "low": one.low, "high": one.high}
        found.append({"part": name, **ends, **labels})
    return found
