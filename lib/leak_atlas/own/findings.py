"""What every attack that a user's logits allow finds.

    result = findings.attack(logits.read(Path("mine.npz")))

Intervals are over samples, as the target is one: what other members and non-members would have
given of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput, audit
from leak_atlas.audit import (
    BoolArray,
    Estimate,
    FloatArray,
    Row,
    Rows,
)
from leak_atlas.audit.rates import false_positives
from leak_atlas.engine import files
from leak_atlas.own import attacks, checks
from leak_atlas.own.logits import Logits

FPR, RATES = 0.01, (0.01, 0.001)  # at which members count as found, and at which TPRs are shown
CURVES, MOST = 5, 20  # attacks whose curve is drawn, found members that are listed one by one


class Said(str):
    """Lines of text that a notebook shows as text, and a terminal as they are."""

    def _repr_markdown_(self) -> str:
        lead, *notes = self.split("\n")
        return "\n".join([f"**In short.** {lead}", "", *notes])

    __repr__ = str.__str__


V = TypeVar("V")


class ByAttack(dict[str, V]):
    """What belongs to each attack, by its name."""

    def __missing__(self, name: str) -> V:
        raise BadInput(f"no attack '{name}' was run; these were: {', '.join(self)}")


@dataclass(frozen=True, eq=False)
class Result:
    """Scores `(N,)` of each attack, larger = more likely member, NaN: not scored; and what follows
    from them.

    `notes` say which attacks the arrays do not allow, and what is odd about the models;
    `warnings` what looks swapped in the arrays (`checks`): while there is one there is no verdict.
    """

    arrays: Logits
    scores: Mapping[str, FloatArray]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def _judged(self, name: str) -> tuple[FloatArray, BoolArray]:
        """The scores of the samples that an attack scored, and their membership."""
        known = ~np.isnan(self.scores[name])
        return self.scores[name][known], self.arrays.member[known]

    def _scored(self, name: str) -> tuple[int, int]:
        """How many members and how many non-members an attack scored."""
        _, member = self._judged(name)
        members = int(member.sum())
        return members, member.size - members

    @property
    def non_members(self) -> int:
        return int((~self.arrays.member).sum())

    # ------------------------------------------------------------ rates

    @cached_property
    def auc(self) -> ByAttack[Estimate]:
        """The AUC of each attack, its interval over samples."""
        areas = {name: audit.auc_interval(*self._judged(name)) for name in self.scores}
        return ByAttack(areas)

    @property
    def best(self) -> str:
        """The attack with the largest AUC."""
        return _ranked(self.auc)[0]

    def tpr(self, fpr: float = FPR) -> ByAttack[Estimate]:
        """The TPR of each attack at an FPR, over the samples that it scored (`audit.tpr_at_fpr`)."""
        rates = {name: audit.tpr_at_fpr(*self._judged(name), fpr) for name in self.scores}
        return ByAttack(rates)

    def strongest(self, fpr: float = FPR) -> str:
        """The attack with the largest TPR at an FPR."""
        return _ranked(self.tpr(fpr))[0]

    def roc(self) -> dict[str, audit.Roc]:
        """Curves of the loss and of the attacks with the largest AUCs, `CURVES` in all."""
        others = [name for name in _ranked(self.auc) if name != "loss"]
        shown = ["loss", *others[: CURVES - 1]]
        return {name: audit.roc_band(*self._judged(name)) for name in self.scores if name in shown}

    def roc_title(self) -> str:
        """The finding of these curves."""
        best = self.best
        name = best[:1].upper() + best[1:]
        return f"{name} has the largest AUC: {self.auc[best].value:.3f}"

    def rows(self, rates: Sequence[float] = RATES) -> Rows:
        """The table: each attack, its AUC, its TPR at each of the rates, the samples that it
        scored.
        """
        tprs = {audit.tpr_label(rate, self.non_members): self.tpr(rate) for rate in rates}
        rows = []
        for name in self.scores:
            row: Row = {"attack": name, "AUC": self.auc[name]}
            for label, tpr in tprs.items():
                row[label] = tpr[name]
            row["samples scored"] = sum(self._scored(name))
            rows.append(row)
        return rows

    def caption(self) -> str:
        """What stands below `rows`: which FPRs the non-members resolve, and what "expected" means."""
        smallest = f"{audit.resolution(self.non_members):.2%}"
        return (
            f"{self.non_members:,} non-members measure an FPR of {smallest} or more. (expected): "
            "on new non-members the mean FPR is this large, because few non-members set the threshold"
        )

    # ------------------------------------------------------------ members that are found

    def exposed(self, name: str, fpr: float = FPR) -> BoolArray:
        """The members `(N,)` that an attack finds with so many false positives among all
        non-members that it scored.
        """
        scores, member = self._judged(name)
        cutoff = audit.cutoff_at_fpr(scores[~member], fpr)
        return np.asarray((self.scores[name] > cutoff) & self.arrays.member)

    def found_by(self, fpr: float = FPR) -> NDArray:
        """How many attacks find each sample at an FPR, `(N,)`: 0 for non-members."""
        return np.sum([self.exposed(name, fpr) for name in self.scores], axis=0)

    def most(self, fpr: float = FPR) -> Rows:
        """The members found by the strongest attack, the largest score first: `MOST` at most."""
        name = self.strongest(fpr)
        scores = self.scores[name]
        found_by = self.found_by(fpr)
        exposed = np.flatnonzero(self.exposed(name, fpr))
        order = np.argsort(-scores[exposed], kind="stable")
        rows = []
        for sample in exposed[order][:MOST]:
            row: Row = {"index": str(self.arrays.places[sample])}
            row["class"] = int(self.arrays.labels[sample])
            row[f"score, {name}"] = float(scores[sample])
            row["loss, nats"] = -float(self.scores["loss"][sample])
            row["attacks that identify it"] = int(found_by[sample])
            rows.append(row)
        return rows

    def most_caption(self, fpr: float = FPR) -> str:
        """What stands below `most`."""
        name = self.strongest(fpr)
        found = f"{name} identifies {self.exposed(name, fpr).sum():,} members at {percent(fpr)} FPR"
        return f"{found}. Listed: the largest scores, at most {MOST}"

    def luck(self, fpr: float = FPR) -> float:
        """Probability, at most, that some attack finds as many members at an FPR where no score
        says anything.

        Exact for each attack (all orders of the samples are alike likely), times the number of
        attacks.
        """
        from scipy import stats

        chances = []
        for name in self.scores:
            members, outside = self._scored(name)
            samples = members + outside
            allowed = false_positives(fpr, outside)
            # As many members come before the first non-member that may not pass.
            first = min(int(self.exposed(name, fpr).sum()) + allowed, samples)
            chances.append(stats.hypergeom.cdf(allowed, samples, outside, first))
        return min(1.0, len(chances) * float(min(chances)))

    # ------------------------------------------------------------ in words

    def verdict(self, fpr: float = FPR) -> str:
        """In a few sentences: does the target leak, whom does an attack find, and what can be
        resolved?

        None is given where an input looks wrong: then the sentences are the `warnings`.
        """
        if self.warnings:
            return " ".join(["No verdict.", *self.warnings])
        largest = audit.largest(self.auc.values())
        if largest.low > 0.5 and largest.resolved:
            auc = f"{self.best} identifies members with AUC {self.auc[self.best]}"
            leaks = f"The target leaks: {auc} (95 % CI). {self._identified(fpr)}"
            return f"{leaks} {self._resolution(fpr)}".rstrip()
        number = len(self.scores)
        return (
            f"None of {number} attacks identifies members significantly. The largest AUC is "
            f"{largest.value:.3f} ({self.best}); corrected for {number} attacks its 95 % CI "
            f"includes 0.5. {self._resolution(fpr)}".rstrip()
        )

    def _identified(self, fpr: float) -> str:
        """How many members the strongest attack finds, of those that it scores."""
        name = self.strongest(fpr)
        at = f"At {percent(fpr)} FPR,"
        scored, outside = self._scored(name)
        if not audit.is_resolved(fpr, outside):
            return f"{at} nothing can be measured: {outside:,} non-members are too few."
        if self.luck(fpr) > 0.05:
            return f"{at} no attack identifies significantly more members than guessing does."
        found = int(self.exposed(name, fpr).sum())
        whom = f"{found:,} of the {scored:,} members that it can score"
        return f"{at} {name} identifies {whom}: TPR {self.tpr(fpr)[name]}."

    def _resolution(self, fpr: float) -> str:
        """What is lacking: non-members from which on an FPR can be resolved, and shadow models. ""
        where nothing is.
        """
        needed = math.ceil(1 / fpr - 1e-9) if fpr else math.inf
        lacking = []
        if self.non_members < needed:
            lacking.append(
                f"{percent(fpr)} FPR needs {needed:,} non-members or more (here "
                f"{self.non_members:,})."
            )
        if self.arrays.models < attacks.ENOUGH:
            lacking.append(
                f"LiRA, RMIA and BASE need about {attacks.ENOUGH} shadow models (here "
                f"{self.arrays.models})."
            )
        return " ".join(lacking)

    def said(self, fpr: float = FPR) -> Said:
        """What a page begins with: the warnings or `verdict`, then accuracies and notes, a line
        each.
        """
        lead = self.verdict(fpr)
        if self.warnings:
            lead = "No verdict: an input looks wrong."
        known = []
        for who, shares in checks.accuracies(self.arrays).items():
            known.append(f"{who} {checks.in_words(shares)}")
        accuracy = f"Accuracy: {'; '.join(known)}."
        lines = [lead, *self.warnings, accuracy, *self.notes]
        return Said("\n- ".join(lines))

    # ------------------------------------------------------------ as files

    def summary(
        self, fpr: float = FPR, rates: Sequence[float] = RATES, **settings: Any
    ) -> dict[str, Any]:
        """All that is measured, as plain values for JSON, and the `settings`."""
        rates = sorted({fpr, *rates})
        tprs = {f"{rate:g}": self.tpr(rate) for rate in rates}
        by_attack = {}
        for name in self.scores:
            members, outside = self._scored(name)
            by_attack[name] = {
                "scored": {"members": members, "non_members": outside},
                "auc": _plain(self.auc[name]),
                "tpr": {rate: _plain(tpr[name]) for rate, tpr in tprs.items()},
            }
        return {
            "verdict": None if self.warnings else self.verdict(fpr),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "accuracy": checks.accuracies(self.arrays),
            "attacks": by_attack,
            "samples": {
                "members": int(self.arrays.member.sum()),
                "non_members": self.non_members,
                "shadow_models": self.arrays.models,
                "queries": self.arrays.queries,
            },
            "settings": {"found_at": fpr, "rates": rates, "interval": 0.95} | settings,
        }

    def save(
        self, path: Path, fpr: float = FPR, rates: Sequence[float] = RATES, **settings: Any
    ) -> Path:
        """Writes the scores as CSV: index, label, member, attacks that find it at the FPR, and a
        column an attack.

        Beside it, as .json, stands the `summary`.
        """
        import pandas as pd

        columns = {
            "label": self.arrays.labels,
            "member": self.arrays.member,
            "found_by": self.found_by(fpr),
        }
        frame = pd.DataFrame(columns | dict(self.scores), self.arrays.places)
        summary = json.dumps(self.summary(fpr, rates, **settings), indent=1, allow_nan=False)
        files.make_folder(path.parent, "LEAK_ATLAS_OUTPUTS moves it")
        files.write_text(path, frame.rename_axis("index").to_csv())
        files.write_text(path.with_suffix(".json"), f"{summary}\n")
        return path


def percent(share: float) -> str:
    """A share in percent, with as many digits as it has: `0.1 %`, `11 %`, `6.1 %`."""
    return f"{100 * share:.3g} %"


def _ranked(estimates: Mapping[str, Estimate]) -> list[str]:
    """Names of attacks, the largest estimate first."""
    return sorted(estimates, key=lambda name: -estimates[name].value)


def _plain(estimate: Estimate) -> dict[str, Any]:
    return {name: getattr(estimate, name) for name in ("value", "low", "high", "resolved")}


def attack(arrays: Logits) -> Result:
    """The result of every attack that the arrays allow, with notes and warnings."""
    scores, notes = attacks.run(arrays.judged())
    warnings = checks.warnings(arrays, scores)
    if not warnings:  # a swap would explain what is odd about the models
        notes = checks.odd_models(arrays) + notes
    return Result(arrays, ByAttack(scores), tuple(notes), warnings)
