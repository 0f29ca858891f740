"""Every attack that the logits of a user allow, and what they find.

    found = findings.attack(logits.read(Path("mine.npz")))

Intervals are over samples, as the target is one: what other members and non-members would have given of it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lib import audit, files
from lib.attacks.case import infer, learn
from lib.attacks.signals import score
from lib.audit import BoolArray, Estimate, FloatArray
from lib.audit.rates import false_positives
from lib.own.logits import Logits
from lib.recipe import BASE, RMIA, Attacker, LiRA, Network, Threshold

OWN_VARIANCE = 30  # shadows a side, in the mean, below which a sample's own variance is mostly noise (`lira`)
CURVES, SUREST = 5, 20  # attacks whose curve is drawn, members that are told of one by one
WIDTH = 110  # characters of a line of indices
THRESHOLDS = {
    "loss": "loss", "modified entropy": "modified_entropy", "entropy": "entropy", "largest posterior": "top1",
    "gap (correctness)": "correctness",
}  # fmt: skip


class Needs(NamedTuple):
    """Shadows of a sample that an attack needs to score it: that trained on it, and that did not."""

    inside: int = 0
    outside: int = 0

    def __str__(self) -> str:
        each = zip(self, ("trained", "did not train"), strict=True)
        return " and ".join(f"{number} that {how} on it" for number, how in each if number)


def attackers(views: int) -> dict[str, tuple[Attacker, Needs]]:
    """All attacks by shadows on logits of so many queries a sample."""
    return {
        "loss by class": (Threshold("loss"), Needs()),
        "modified entropy by class": (Threshold("modified_entropy"), Needs()),
        "attack network": (Network(inputs="posterior_label"), Needs()),
        "LiRA online": (LiRA(views=views), Needs(1, 1)),
        "LiRA online (own variance)": (LiRA(variance="per_sample", views=views), Needs(2, 2)),
        "LiRA offline": (LiRA("offline_cdf", views=views), Needs(0, 1)),
        "LiRA offline (own variance)": (LiRA("offline_cdf", "per_sample", views=views), Needs(0, 2)),
        "BASE": (BASE(), Needs(0, 1)),
        "RMIA online": (RMIA(views=views), Needs(1, 1)),
        "RMIA offline": (RMIA("offline", views=views), Needs(0, 1)),
    }


def _lack(attacker: Attacker, needs: Needs, can: BoolArray, arrays: Logits) -> str:
    """What is missing for an attack that `can` score some samples; "": nothing."""
    seen = arrays.in_shadow
    assert seen is not None
    if not attacker.by_sample and (seen.all() or not seen.any()):
        return "shadows with members and non-members among these samples"
    if attacker.compares and arrays.population is None:
        return "a population, Z samples that no model trained on"
    if isinstance(attacker, LiRA):  # a variance
        many = attacker.variance == "per_sample"
        there = [count.mean() if many else count[can].max(initial=0) for count in arrays.counts]
        needs = Needs(*((OWN_VARIANCE if many else 2) * (number > 0) for number in needs))
        if any(number > own for number, own in zip(needs, there, strict=True)):
            more = f"{OWN_VARIANCE} shadows of a sample, in the mean, on each side that they look at"
            return more if many else f"more shadows of a sample: {needs}"
    if not (can & arrays.member).any() or not (can & ~arrays.member).any():
        return f"shadows of a sample: {needs}"
    return ""


class Said(str):
    """Words that a notebook shows as text, and a terminal as they are."""

    def _repr_markdown_(self) -> str:
        lead, *notes = self.split("\n")
        return "\n".join([f"**In short.** {lead}", "", *notes])

    __repr__ = str.__str__


@dataclass(frozen=True, eq=False)
class Found:
    """Scores `(N,)` of each attack, larger = more likely member, NaN: not scored; and what there is to tell."""

    arrays: Logits
    scores: dict[str, FloatArray]
    notes: tuple[str, ...]

    def _judged(self, name: str) -> tuple[FloatArray, BoolArray]:
        known = ~np.isnan(self.scores[name])
        return self.scores[name][known], self.arrays.member[known]

    @cached_property
    def auc(self) -> dict[str, Estimate]:
        """The AUC of each attack, its interval over samples."""
        return {name: audit.auc_interval(*self._judged(name)) for name in self.scores}

    @property
    def best(self) -> str:
        """The attack with the largest AUC."""
        return max(self.auc, key=lambda name: self.auc[name].value)

    def tpr(self, fpr: float) -> dict[str, Estimate]:
        return {name: audit.tpr_at_fpr(*self._judged(name), fpr) for name in self.scores}

    def roc(self) -> dict[str, audit.Roc]:
        """Curves of the loss and of the strongest attacks by AUC, `CURVES` at most."""
        alike = self.arrays.queries == 1 and {"BASE", "RMIA online"} <= self.scores.keys()
        if alike:  # one order, where both score
            alike = np.array_equal(np.isnan(self.scores["BASE"]), np.isnan(self.scores["RMIA online"]))
        steps = {name for name, scores in self.scores.items() if len(np.unique(scores)) < 10}  # right or wrong alone
        rest = self.scores.keys() - {"loss", *steps, *(["RMIA online"] if alike else [])}
        shown = {"loss", *sorted(rest, key=lambda name: -self.auc[name].value)[: CURVES - 1]}
        told = {"BASE": "BASE, RMIA online"} if alike else {}
        return {told.get(name, name): audit.roc_band(*self._judged(name)) for name in self.scores if name in shown}

    def rows(self, rates: Sequence[float]) -> list[dict[str, Any]]:
        """The table: each attack, the samples that it scored if not all, its AUC, its TPR at each of the rates."""
        scored = {name: int((~np.isnan(scores)).sum()) for name, scores in self.scores.items()}
        told = min(scored.values()) < len(self.arrays.member)
        outside = int((~self.arrays.member).sum())
        each = {audit.tpr_label(rate, outside): self.tpr(rate) for rate in rates}
        return [
            {"attack": name}
            | ({"samples": scored[name]} if told else {})
            | {"AUC": self.auc[name]}
            | {label: found[name] for label, found in each.items()}
            for name in self.scores
        ]

    def exposed(self, name: str, fpr: float) -> BoolArray:
        """The members `(N,)` that an attack finds with so many false positives among all non-members that it scored."""
        scores, member = self._judged(name)
        outside = np.sort(scores[~member])
        allowed = int(false_positives(fpr, np.asarray(outside.size)))
        above = self.scores[name] > (outside[-1 - allowed] if allowed < outside.size else -np.inf)
        return np.asarray(above & self.arrays.member)

    def strongest(self, fpr: float) -> str:
        """The attack that finds most members at an FPR."""
        found = self.tpr(fpr)
        return max(found, key=lambda name: found[name].value)

    def found_by(self, fpr: float) -> np.ndarray:
        """How many attacks find each sample at an FPR, `(N,)`: 0 for non-members."""
        return np.sum([self.exposed(name, fpr) for name in self.scores], axis=0)

    def most(self, fpr: float) -> list[dict[str, Any]]:
        """The members found by the strongest attack, the surest first: `SUREST` at most."""
        name, times = self.strongest(fpr), self.found_by(fpr)
        found = np.flatnonzero(self.exposed(name, fpr))
        order = found[np.argsort(-self.scores[name][found], kind="stable")][:SUREST]
        return [
            {"index": str(self.arrays.places[i]), "class": int(self.arrays.labels[i])}
            | {f"score, {name}": float(self.scores[name][i])}
            | {"loss, nats": -float(self.scores["loss"][i]), "attacks that find it": int(times[i])}
            for i in order
        ]

    def listed(self, fpr: float) -> str:
        """The indices of all members that the strongest attack finds, in rising order, as lines of text."""
        found = self.arrays.places[self.exposed(self.strongest(fpr), fpr)]
        return textwrap.fill(" ".join(map(str, found)), WIDTH) or "none"

    def luck(self, fpr: float) -> float:
        """Probability, at most, that some attack finds as many members at an FPR where no score says anything.

        Exact for each attack (all orders of the samples are alike likely), times the number of attacks.
        """
        from scipy import stats

        chances = []
        for name in self.scores:
            member = self._judged(name)[1]
            outside = int((~member).sum())
            allowed = int(false_positives(fpr, np.asarray(outside)))
            hit = int(self.exposed(name, fpr).sum())
            # As many members come before the first non-member that may not pass.
            chances.append(float(stats.hypergeom.cdf(allowed, member.size, outside, min(hit + allowed, member.size))))
        return min(1.0, len(chances) * min(chances))

    def verdict(self, fpr: float) -> str:
        """In one or two sentences: does the target leak, and whom does an attack find?"""
        some = audit.largest(self.auc.values())
        number, members, outside = len(self.scores), int(self.arrays.member.sum()), int((~self.arrays.member).sum())
        if some.low <= 0.5 or not some.resolved:
            most = f"the largest AUC is {some.value:.3f} ({self.best}), and chance alone may give it"
            return f"None of {number} attacks is seen to tell members from non-members: {most}."
        name, at = self.strongest(fpr), f"{100 * fpr:g} % FPR"
        found, hit = self.tpr(fpr), int(self.exposed(name, fpr).sum())
        lead = f"The target leaks: {self.best} tells members from non-members with AUC {self.auc[self.best]}"
        if not audit.is_resolved(fpr, outside):
            return f"{lead}. {outside:,} non-members are too few to see whom it finds at {at}."
        if self.luck(fpr) > 0.05:
            return f"{lead}. At {at} no attack is seen to find more members than guessing does."
        times = f"{found[name].value / fpr:.2g} times what guessing finds"
        named = f"{name[:1].upper()}{name[1:]}"
        return f"{lead}. {named} finds {hit:,} of {members:,} members at {at} ({found[name]:.1%}), {times}."

    def said(self, fpr: float) -> Said:
        """`verdict`, and below it the notes."""
        return Said("\n".join([self.verdict(fpr), *(f"- {note}" for note in self.notes)]))

    def save(self, path: Path, fpr: float) -> Path:
        """Writes the scores as CSV: index, label, member, attacks that find it at the FPR, and a column an attack."""
        import pandas as pd

        given = {"label": self.arrays.labels, "member": self.arrays.member, "found_by": self.found_by(fpr)}
        text = pd.DataFrame(given | self.scores, self.arrays.places).rename_axis("index").to_csv()
        files.folder(path.parent, "LEAK_ATLAS_OUTPUTS moves it")
        files.write(path, text)
        return path


def attack(arrays: Logits) -> Found:
    """Every attack that the arrays allow, by name, and notes on those that they do not."""
    z, y = arrays.by_query(arrays.target), arrays.labels[:, None]
    scores = {told: score(name, z, y).mean(axis=1) for told, name in THRESHOLDS.items()}
    if not arrays.models:
        told = "No shadows: thresholds on the target's own signals alone."
        more = "Shadow models would add LiRA, RMIA and BASE, which compare each sample with itself and find"
        return Found(arrays, scores, (f"{told} {more} far more at a low FPR: a few do, 16 do well.",))
    for room in ("lira", "networks", "rmia", "threshold"):  # they register what they do; torch comes with one
        import_module(f"lib.attacks.{room}")
    undone: dict[str, list[str]] = {}
    left: dict[int, list[str]] = {}
    for name, (attacker, needs) in attackers(arrays.queries).items():
        can = np.logical_and(*(count >= number for count, number in zip(arrays.counts, needs, strict=True)))
        if lack := _lack(attacker, needs, can, arrays):
            undone.setdefault(lack, []).append(name)
            continue
        if out := int((~can).sum()):
            left.setdefault(out, []).append(name)
        case = arrays.of(can)
        if attacker.learns:
            case = case._replace(learnt=learn(attacker, case))
        scores[name] = np.full(len(can), np.nan)
        scores[name][can] = infer(attacker, case).scores
    notes = [f"Not done: {', '.join(names)}. Needed: {lack}." for lack, names in undone.items()]
    few = "whose shadows are too few on one side"
    notes += [f"Samples left out, {few}: {out:,}, by {', '.join(names)}." for out, names in left.items()]
    return Found(arrays, scores, (*_odd(arrays), *notes))


def _odd(arrays: Logits) -> list[str]:
    """What is odd about the shadows."""
    assert arrays.in_shadow is not None
    notes = []
    every, none = arrays.in_shadow.all(axis=1), ~arrays.in_shadow.any(axis=1)
    for what, rows in (("all", every), ("none", none)):
        if 0 < rows.sum() < arrays.models:
            notes.append(f"Shadows {np.flatnonzero(rows).tolist()} trained on {what} of the samples.")
    inside = arrays.counts[0]
    if np.ptp(inside):
        count = audit.auc_interval(inside, arrays.member, 0.99)
        if not count.low <= 0.5 <= count.high:
            notes.append(
                f"The number of shadows that trained on a sample tells who is a member, whatever they learnt (AUC "
                f"{count}, 99 %): attacks may find that. Draw the shadows' parts without regard to the target's."
            )
    return notes
