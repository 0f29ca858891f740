"""The pages of the user's own: what they train and read, and the rows of their tables and figures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from leak_atlas import audit
from leak_atlas.audit import (
    Estimate,
    Row,
    Rows,
)
from leak_atlas.engine.selection import highest
from leak_atlas.lab import Result
from leak_atlas.localization import disparity
from leak_atlas.localization.score_maps import maps, shares
from leak_atlas.own import checks, findings, logits
from leak_atlas.own.sizes import Sizes
from leak_atlas.own.weights import audited_model
from leak_atlas.recipe import (
    Architecture,
    Data,
    GivenSplit,
    Halves,
    ImportedModel,
    Learnability,
    Magnitude,
    Pair,
    Population,
    Schedule,
    Setup,
    StageMembership,
    State,
    self_audit,
)

SESSION = "JPY_SESSION_NAME"  # Jupyter's variable: the path of the notebook that a kernel runs
MEASURES = ("euclidean", "direction")  # of the distance between features


def source(target: State) -> str:
    """Where the weights of a target are from."""
    if isinstance(target, ImportedModel):
        return f"{target.file}, SHA-256 {target.sha256[:16]}"
    return "the example"


def full_name(file: str) -> str:
    """A file with its folders, as a report states it ("": the example)."""
    return str(Path(file).expanduser().resolve()) if file else "example"


def audit_file(file: str, name: str, fpr: float, rates: Sequence[float]) -> findings.Result:
    """The audit of an .npz ("": of an example, trained here), and its files in outputs/runs/own."""
    arrays = logits.read(Path(file)) if file else logits.example()
    place = logits.place(name or Path(file).stem or "example", file)
    result = findings.attack(arrays)
    result.save(place, fpr, rates, file=full_name(file))
    return result


def scores_of_model(name: str, weights: str) -> Path:
    """Where the CSV of a model's scores is written: under `name` in outputs/runs/own, or, where
    that is "", beside the page of this run.

    In JupyterLab there is no page. There the CSV has the notebook's name; in other kernels it has
    that of the file of weights. So copies of a notebook do not overwrite each other's. Raises
    BadInput if the report of this name is of another file.
    """
    page = os.environ.get("LEAK_ATLAS_FIGURES", "")
    if page and not name:
        return Path(f"{page}.csv")
    notebook = Path(os.environ.get(SESSION, "")).stem
    return logits.place(name or notebook or Path(weights).stem or "example", weights)


@dataclass(frozen=True)
class ModelStudy:
    """What the page of a user's model trains and reads: the model as row 0 of a given split, shadow
    models as its later rows, and pairs of networks of which one knows half of the members.
    """

    model: Architecture
    training: Schedule
    sizes: Sizes
    shadows: int
    pairs: int
    seed: int

    @cached_property
    def setup(self) -> Setup:
        sizes = self.sizes
        data = Data(sizes.data, sizes.pixels)
        split = GivenSplit(sizes.pool, sizes.test, self.seed, population=sizes.population)
        return Setup(data, split, self.model, self.training, 1 + self.shadows, self.seed)

    def target(self, weights: str, data: str, known_accuracy: float | None) -> State:
        """The weights of a file, or without one an example.

        BadInput, before anything is trained, where the weights, the model and the data do not fit
        each other, or where the test accuracy is not the known one.
        """
        target = audited_model(weights, data, self.setup)
        if isinstance(target, ImportedModel):
            checks.refuse_another_accuracy(target, known_accuracy)
        return target

    def steps(self, target: State) -> dict[str, Any]:
        """What is trained and read, by name: what `lab.realize` takes."""
        models = Population((target, *self.setup.trained().states[1:]))
        pairs: Sequence[Pair] = ()
        if self.pairs:
            halves = Halves(self.sizes.pool, self.sizes.test, self.seed)
            pairs = replace(self.setup, design=halves, models=self.pairs).pairs()
        criteria = {"learnability": Learnability(), "|weight|": Magnitude()}
        return {
            "signals": models.signals(),
            "distances": [pair.distance() for pair in pairs],
            "membership": StageMembership(target),
            "scores": {name: target.score(criterion) for name, criterion in criteria.items()},
            "self-audit": self_audit(models),
        }

    def audit(
        self, steps: Mapping[str, Any], results: Any, known_accuracy: float | None
    ) -> ModelAudit:
        """What the page shows, of what `lab.realize` returned of the steps."""
        own, *shadows = [results[step] for step in steps["signals"]]
        accuracy = checks.known_or_asked(own, known_accuracy)
        return ModelAudit(
            found=findings.attack(logits.brought(own, shadows)),
            notes=(accuracy, self.sizes.sentence, *self.sizes.notes),
            membership=results[steps["membership"]],
            distances=[results[step] for step in steps["distances"]],
            scores={name: results[step] for name, step in steps["scores"].items()},
        )


@dataclass(frozen=True)
class ModelAudit:
    """What the page of a user's model shows."""

    found: findings.Result
    notes: tuple[str, ...]
    membership: Result  # of a `StageMembership`
    distances: Sequence[Result]
    scores: Mapping[str, Result]  # of a `Score`, by the name of its criterion

    def said(self, fpr: float) -> findings.Said:
        """The answer, and what is known of the model and its data."""
        return findings.Said("\n\n".join([self.found.said(fpr), *self.notes]))

    @cached_property
    def module_areas(self) -> dict[str, Estimate]:
        """The AUC of a classifier on each part's features."""
        areas = {}
        for part, scores in zip(self.membership.parts, self.membership["scores"], strict=True):
            areas[part] = audit.auc_interval(scores, self.membership["member"])
        return areas

    def module_rows(self) -> Rows:
        """Rows of a figure: each part's AUC in the model, and its disparity between two networks."""
        rows = []
        for part, area in self.module_areas.items():
            row: Row = {"part": part, "value": area}
            rows.append(row | {"series": "classifier", "reading": "my model: membership"})
        for measure in MEASURES if self.distances else ():
            profile = disparity.profile(*disparity.read(self.distances, measure))
            for part, value in zip(self.module_areas, profile, strict=True):
                row = {"part": part, "value": value}
                rows.append(row | {"series": measure, "reading": "trained here: disparity"})
        return rows

    def module_title(self) -> str:
        """The finding of that figure in a sentence."""
        areas = self.module_areas
        best = max(areas, key=lambda part: areas[part].value)
        value = areas[best].value
        if audit.largest(areas.values()).low > 0.5:
            return f"The features of '{best}' identify members best: AUC {value:.3f}"
        return f"No module's features identify members significantly: AUC {value:.3f} at most"

    def weight_rows(self, share: float) -> Rows:
        """Rows of a table: how many weights of each tensor are among the `share` of all weights
        with the largest scores.
        """
        rows: dict[str, Row] = {}
        for name, result in self.scores.items():
            column = f"largest {share:.0%} by {name}"
            chosen = highest(maps(result), share)
            for area in shares(chosen):
                start = {"weights of": area.of, "number": area.weights}
                row = rows.setdefault(area.of, start)
                row[column] = area.selected
        return list(rows.values())
