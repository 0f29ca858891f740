"""What the page of a user's model shows: its answer, the rows of its tables and figures."""

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
from leak_atlas.own.findings import Said

MEASURES = ("euclidean", "direction")  # of the distance between features


def answer(said: Said, notes: Sequence[str]) -> Said:
    """The answer of a page: what the attacks find, and what one has to know of it."""
    return Said("\n\n".join([said, *notes]))


def module_areas(membership: Result) -> dict[str, Estimate]:
    """The AUC of a classifier on each part's features, from what `StageMembership` gives."""
    member = membership["member"]
    return {
        part: audit.auc_interval(scores, member)
        for part, scores in zip(membership.parts, membership["scores"], strict=True)
    }


def module_rows(areas: Mapping[str, Estimate], distances: Sequence[Arrays]) -> list[dict[str, Any]]:
    """Rows of a figure: each part's AUC in the model, and its disparity between two networks."""
    rows = [
        {"part": part, "value": area, "series": "classifier", "reading": "my model: membership"}
        for part, area in areas.items()
    ]
    for measure in MEASURES if distances else ():
        profile = disparity.profile(*disparity.read(distances, measure))
        rows += [
            {"part": part, "value": value, "series": measure, "reading": "trained here: disparity"}
            for part, value in zip(areas, profile, strict=True)
        ]
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
    chosen = {name: shares(highest(maps(result), share)) for name, result in scores.items()}
    first = next(iter(chosen.values()))
    rows = [{"weights of": area.of, "number": area.weights} for area in first]
    for name, tensors in chosen.items():
        for row, tensor in zip(rows, tensors, strict=True):
            row[f"largest {share:.0%} by {name}"] = tensor.selected
    return rows
