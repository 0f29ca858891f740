"""What the page of a user's model shows: the rows of its tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leak_atlas import audit
from leak_atlas.audit import Estimate
from leak_atlas.engine.compute import Arrays
from leak_atlas.engine.selection import highest
from leak_atlas.lab import Result
from leak_atlas.localization import disparity
from leak_atlas.localization.score_maps import maps, shares

MEASURES = ("euclidean", "direction")  # of the distance between features


def module_areas(membership: Result) -> dict[str, Estimate]:
    """The AUC of a classifier on each part's features, from what `StageMembership` gives."""
    areas = {}
    for part, scores in zip(membership.parts, membership["scores"], strict=True):
        areas[part] = audit.auc_interval(scores, membership["member"])
    return areas


def module_rows(areas: Mapping[str, Estimate], distances: Sequence[Arrays]) -> list[dict[str, Any]]:
    """Rows of a figure: each part's AUC in the model, and its disparity between two networks."""
    rows = []
    for part, area in areas.items():
        reading = {"series": "classifier", "reading": "my model: membership"}
        rows.append({"part": part, "value": area, **reading})
    for measure in MEASURES if distances else ():
        profile = disparity.profile(*disparity.read(distances, measure))
        for part, value in zip(areas, profile, strict=True):
            reading = {"series": measure, "reading": "trained here: disparity"}
            rows.append({"part": part, "value": value, **reading})
    return rows


def module_title(areas: Mapping[str, Estimate]) -> str:
    """The finding of that figure in a sentence."""
    best = max(areas, key=lambda part: areas[part].value)
    value = areas[best].value
    if audit.largest(areas.values()).low > 0.5:
        return f"The features of '{best}' identify members best: AUC {value:.3f}"
    return f"No module's features identify members significantly: AUC {value:.3f} at most"


def weight_rows(scores: Mapping[str, Arrays], share: float) -> list[dict[str, Any]]:
    """Rows of a table: how many weights of each tensor are among the largest scores of all weights.

    `share` of all weights have the largest scores. `scores` has the result of a `Score` by the name
    of its criterion.
    """
    rows: dict[str, dict[str, Any]] = {}
    for name, result in scores.items():
        for area in shares(highest(maps(result), share)):
            row = rows.setdefault(area.of, {"weights of": area.of, "number": area.weights})
            row[f"largest {share:.0%} by {name}"] = area.selected
    return list(rows.values())
