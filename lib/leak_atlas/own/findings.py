"""Every attack that the logits of a user allow, and what they find.

    result = findings.attack(logits.read(Path("mine.npz")))

Intervals are over samples, as the target is one: what other members and non-members would have
given of it.
"""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from leak_atlas import audit, duration
from leak_atlas.attacks import lira, rmia, threshold  # noqa: F401 (they register what they do)
from leak_atlas.attacks.case import infer, learn
from leak_atlas.attacks.signals import score
from leak_atlas.audit import BoolArray, Estimate, FloatArray
from leak_atlas.audit.rates import false_positives
from leak_atlas.engine import files
from leak_atlas.engine.compute import Arrays
from leak_atlas.own import accuracy, checks
from leak_atlas.own.logits import Logits
from leak_atlas.recipe import BASE, RMIA, Attacker, LiRA, Network, Schedule, Threshold

# shadows a side, in the mean, below which a sample's own variance is mostly noise (`lira`)
OWN_VARIANCE = 30
# At 1 % FPR 16 shadow models find .9 of what 64 find with BASE, .67 with LiRA online (20 targets of
# `logits.example`).
ENOUGH = 16
# answers of shadow models from which the attack network learns, at most: more add nothing
LEARNT = 100_000
FPR, RATES = 0.01, (0.01, 0.001)  # at which members count as found, and at which TPRs are shown
CURVES, MOST = 5, 20  # attacks whose curve is drawn, found members that are listed one by one
TIED = 0.1  # share of samples with one score, above which an attack has no curve
WIDTH = 110  # characters of a line of indices
SOON, QUIET = 5.0, 2.0  # seconds: what takes less is not announced; between two lines of progress
THRESHOLDS = {
    "loss": "loss",
    "modified entropy": "modified_entropy",
    "entropy": "entropy",
    "largest posterior": "top1",
    "gap (correctness)": "correctness",
}
ALONE = (
    "No shadow models: thresholds on the target's own signals alone. Shadow models would add LiRA, "
    "RMIA and BASE, which compare each sample with itself and find far more at a low FPR: a few do, "
    f"{ENOUGH} do well."
)
UNAWARE = (*THRESHOLDS, "BASE", "RMIA online")  # they do not read `in_shadow`


class Needs(NamedTuple):
    """Shadows of a sample that an attack needs to score it: that trained on it, and that did not."""

    inside: int = 0
    outside: int = 0

    def met(self, arrays: Logits) -> BoolArray:
        """Of which samples `(N,)` there are as many."""
        inside, outside = arrays.counts
        return np.asarray((inside >= self.inside) & (outside >= self.outside))

    def __str__(self) -> str:
        sides = zip(self, ("trained", "did not train"), strict=True)
        return " and ".join(f"{number} that {how} on it" for number, how in sides if number)


def attackers(views: int) -> dict[str, tuple[Attacker, Needs]]:
    """All attacks by shadows on logits of so many queries a sample; RMIA with the paper's plain
    share.
    """
    return {
        "loss by class": (Threshold("loss"), Needs()),
        "modified entropy by class": (Threshold("modified_entropy"), Needs()),
        "attack network": (Network(inputs="posterior_label"), Needs()),
        "LiRA online": (LiRA(views=views), Needs(1, 1)),
        "LiRA online (own variance)": (LiRA(variance="per_sample", views=views), Needs(2, 2)),
        "LiRA offline": (LiRA("offline_cdf", views=views), Needs(0, 1)),
        "LiRA offline (own variance)": (
            LiRA("offline_cdf", "per_sample", views=views),
            Needs(0, 2),
        ),
        "BASE": (BASE(), Needs(0, 1)),
        "RMIA online": (RMIA(views=views, ties="share"), Needs(1, 1)),
        "RMIA offline": (RMIA("offline", views=views, ties="share"), Needs(0, 1)),
    }


# ---------------------------------------------------------------- what they find


class Said(str):
    """Lines of text that a notebook shows as text, and a terminal as they are."""

    def _repr_markdown_(self) -> str:
        lead, *notes = self.split("\n")
        return "\n".join([f"**In short.** {lead}", "", *notes])

    __repr__ = str.__str__


@dataclass(frozen=True, eq=False)
class Result:
    """Scores `(N,)` of each attack, larger = more likely member, NaN: not scored; and what follows
    from them.

    `notes` say which attacks the arrays do not allow, and what is odd about the shadow models;
    `warnings` what looks swapped in the arrays (`checks`): while there is one there is no verdict.
    """

    arrays: Logits
    scores: dict[str, FloatArray]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

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

    def tpr(self, fpr: float = FPR) -> dict[str, Estimate]:
        """The TPR of each attack at an FPR, over the samples that it scored (`audit.tpr_at_fpr`)."""
        return {name: audit.tpr_at_fpr(*self._judged(name), fpr) for name in self.scores}

    def roc(self) -> dict[str, audit.Roc]:
        """Curves of the loss and of the strongest attacks by AUC, `CURVES` at most.

        An attack has none where it gives one score to more than a share `TIED` of the samples: it
        would be a step.
        """
        strongest = sorted(self.scores, key=lambda name: -self.auc[name].value)
        smooth = [name for name in strongest if name != "loss" and self._tied(name) <= TIED]
        shown = {"loss", *smooth[: CURVES - 1]}
        return {name: audit.roc_band(*self._judged(name)) for name in self.scores if name in shown}

    def _tied(self, name: str) -> float:
        """The largest share of samples to which an attack gives one score."""
        scores = self._judged(name)[0]
        return float(np.unique(scores, return_counts=True)[1].max() / scores.size)

    def rows(self, rates: Sequence[float] = RATES) -> list[dict[str, Any]]:
        """The table: each attack, its AUC, its TPR at each of the rates, the samples that it scored
        if not all.
        """
        scored = {name: len(self._judged(name)[0]) for name in self.scores}
        tprs = {audit.tpr_label(rate, self._outside): self.tpr(rate) for rate in rates}
        rows = []
        for name in self.scores:
            row = {"attack": name, "AUC": self.auc[name]}
            row |= {label: tpr[name] for label, tpr in tprs.items()}
            if min(scored.values()) < len(self.arrays.member):
                row["samples scored"] = scored[name]
            rows.append(row)
        return rows

    def caption(self, rates: Sequence[float] = RATES) -> str:
        """What stands below `rows`: which FPRs the non-members resolve, and what "expected" means."""
        smallest = f"{audit.resolution(self._outside):.2%}"
        lines = [f"{self._outside:,} non-members resolve an FPR of {smallest} or more"]
        for rate in rates:
            label = audit.tpr_label(rate, self._outside)
            if expected := re.search(r"\((.+ % expected)\)", label):
                lines.append(
                    f"{expected[1]}: the threshold for {percent(rate)} FPR is set on these "
                    "non-members, so few that its FPR on new ones is larger in the mean"
                )
        return ". ".join(lines)

    @property
    def _outside(self) -> int:
        return int((~self.arrays.member).sum())

    def exposed(self, name: str, fpr: float = FPR) -> BoolArray:
        """The members `(N,)` that an attack finds with so many false positives among all
        non-members that it scored.
        """
        scores, member = self._judged(name)
        above = self.scores[name] > audit.cutoff_at_fpr(scores[~member], fpr)
        return np.asarray(above & self.arrays.member)

    def strongest(self, fpr: float = FPR) -> str:
        """The attack with the largest TPR at an FPR."""
        rates = self.tpr(fpr)
        return max(rates, key=lambda name: rates[name].value)

    def found_by(self, fpr: float = FPR) -> np.ndarray:
        """How many attacks find each sample at an FPR, `(N,)`: 0 for non-members."""
        return np.sum([self.exposed(name, fpr) for name in self.scores], axis=0)

    def most(self, fpr: float = FPR) -> list[dict[str, Any]]:
        """The members found by the strongest attack, the largest score first: `MOST` at most."""
        name, times = self.strongest(fpr), self.found_by(fpr)
        scores, loss = self.scores[name], self.scores["loss"]
        hits = np.flatnonzero(self.exposed(name, fpr))
        return [
            {
                "index": str(self.arrays.places[i]),
                "class": int(self.arrays.labels[i]),
                f"score, {name}": float(scores[i]),
                "loss, nats": -float(loss[i]),
                "attacks that find it": int(times[i]),
            }
            for i in hits[np.argsort(-scores[hits], kind="stable")][:MOST]
        ]

    def listed(self, fpr: float = FPR) -> str:
        """The indices of all members that the strongest attack finds, in rising order, as lines of
        text.
        """
        places = self.arrays.places[self.exposed(self.strongest(fpr), fpr)]
        return textwrap.fill(" ".join(map(str, places)), WIDTH) or "none"

    def luck(self, fpr: float = FPR) -> float:
        """Probability, at most, that some attack finds as many members at an FPR where no score
        says anything.

        Exact for each attack (all orders of the samples are alike likely), times the number of
        attacks.
        """
        from scipy import stats

        chances = []
        for name in self.scores:
            member = self._judged(name)[1]
            outside = int((~member).sum())
            allowed = false_positives(fpr, outside)
            # As many members come before the first non-member that may not pass.
            first = min(int(self.exposed(name, fpr).sum()) + allowed, member.size)
            chances.append(stats.hypergeom.cdf(allowed, member.size, outside, first))
        return min(1.0, len(chances) * float(min(chances)))

    # ------------------------------------------------------------ in words

    def verdict(self, fpr: float = FPR) -> str:
        """In a few sentences: does the target leak, whom does an attack find, and what can be
        resolved?

        None is given where the arrays look swapped: then the sentences are the `warnings`.
        """
        if self.warnings:
            return " ".join(["No verdict.", *self.warnings])
        largest, number = audit.largest(self.auc.values()), len(self.scores)
        if largest.low > 0.5 and largest.resolved:
            auc = f"{self.best} identifies members with AUC {self.auc[self.best]}"
            return f"The target leaks: {auc}. {self._identified(fpr)} {self.resolution(fpr)}"
        auc = f"The largest AUC is {largest.value:.3f} ({self.best})"
        return (
            f"None of {number} attacks identifies members significantly. {auc}; corrected for "
            f"{number} attacks its 95 % CI includes 0.5. {self.resolution(fpr)}"
        )

    def _identified(self, fpr: float) -> str:
        """How many members the strongest attack finds, of those that it scores."""
        name, at = self.strongest(fpr), f"{percent(fpr)} FPR"
        member = self._judged(name)[1]
        scored, outside = int(member.sum()), int((~member).sum())
        if not audit.is_resolved(fpr, outside):
            return f"{outside:,} non-members are too few to measure TPR at {at}."
        if self.luck(fpr) > 0.05:
            return f"At {at} no attack finds significantly more members than guessing does."
        rate, hits = self.tpr(fpr)[name], int(self.exposed(name, fpr).sum())
        interval = f"{100 * rate.low:.1f} %, {100 * rate.high:.1f} %"
        factor = f"{times(rate.value / fpr)} what guessing finds"
        share = f"{100 * rate.value:.1f} % [{interval}], {factor}"
        if left := int(self.arrays.member.sum()) - scored:
            whom = f"the {scored:,} members that it can score ({share})"
            return f"At {at} {name} finds {hits:,} of {whom}; for {left:,} more the shadow models are too few."
        return f"At {at} {name} finds {hits:,} of {scored:,} members ({share})."

    def resolution(self, fpr: float = FPR) -> str:
        """From how many non-members and shadow models on an FPR can be resolved, and how many there
        are.
        """
        needed = math.ceil(1 / fpr - 1e-9) if fpr else math.inf
        return (
            f"To resolve {percent(fpr)} FPR takes {needed:,} non-members or more (here "
            f"{self._outside:,}), and for LiRA, RMIA and BASE about {ENOUGH} shadow models (here "
            f"{self.arrays.models})."
        )

    def accuracy(self) -> str:
        """Accuracy of the target and of the shadow models on members and non-members, as a line."""
        sides = accuracy.accuracies(self.arrays)
        parts = [f"target {sides['target']}"]
        if "shadow models" in sides:
            parts.append(f"{self.arrays.models} shadow models {sides['shadow models']}")
        return f"Accuracy: {'; '.join(parts)}."

    def said(self, fpr: float = FPR) -> Said:
        """What a page begins with: the warnings or `verdict`, then accuracies and notes, a line
        each.
        """
        lead = "No verdict: the arrays look swapped." if self.warnings else self.verdict(fpr)
        lines = [*self.warnings, self.accuracy(), *self.notes]
        return Said("\n".join([lead, *(f"- {line}" for line in lines)]))

    # ------------------------------------------------------------ as files

    def summary(
        self, fpr: float = FPR, rates: Sequence[float] = RATES, **settings: Any
    ) -> dict[str, Any]:
        """All that is measured, as plain values for JSON: what cannot be is None. `settings` are
        told with it.
        """
        rates = sorted({fpr, *rates})
        tprs = {f"{rate:g}": self.tpr(rate) for rate in rates}
        attacks = {}
        for name in self.scores:
            member = self._judged(name)[1]
            attacks[name] = {
                "scored": {"members": int(member.sum()), "non_members": int((~member).sum())},
                "auc": _plain(self.auc[name]),
                "tpr": {rate: _plain(tpr[name]) for rate, tpr in tprs.items()},
            }
        accuracies = {}
        for who, sides in accuracy.accuracies(self.arrays).items():
            accuracies[who] = {side: _number(share) for side, share in sides._asdict().items()}
        return {
            "verdict": None if self.warnings else self.verdict(fpr),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "accuracy": accuracies,
            "attacks": attacks,
            "samples": {
                "members": int(self.arrays.member.sum()),
                "non_members": self._outside,
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

        known = {
            "label": self.arrays.labels,
            "member": self.arrays.member,
            "found_by": self.found_by(fpr),
        }
        text = pd.DataFrame(known | self.scores, self.arrays.places).rename_axis("index").to_csv()
        summary = json.dumps(self.summary(fpr, rates, **settings), indent=1, allow_nan=False)
        files.folder(path.parent, "LEAK_ATLAS_OUTPUTS moves it")
        files.write(path, text)
        files.write(path.with_suffix(".json"), f"{summary}\n")
        return path


def percent(share: float) -> str:
    """A share in percent, with as many digits as it has: `0.1 %`, `11 %`, `6.1 %`."""
    return f"{100 * share:.3g} %"


def times(factor: float) -> str:
    """`about 1.5 times`, `about 100 times`: two digits."""
    return f"about {float(f'{factor:.2g}'):,g} times"


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _plain(estimate: Estimate) -> dict[str, float | bool | None]:
    ends = {name: _number(getattr(estimate, name)) for name in ("value", "low", "high")}
    return ends | {"resolved": estimate.resolved}


# ---------------------------------------------------------------- the attacks


def to_stderr(line: str) -> None:
    print(f"  {time.strftime('%H:%M')}  {line}", file=sys.stderr, flush=True)


def attack(
    arrays: Logits,
    tell: Callable[[str], None] = to_stderr,
    training: Schedule | None = None,
) -> Result:
    """Every attack that the arrays allow, by name, and notes on those that they do not.

    Where this takes more than some seconds, `tell` gets lines with what is done and the time left.
    `training` is that of shadow models trained here (`accuracy.unlike_shadows`).
    """
    z, y = arrays.judged().by_query(arrays.target), arrays.labels[:, None]
    scores = {name: score(signal, z, y).mean(axis=1) for name, signal in THRESHOLDS.items()}
    if not arrays.models:
        return Result(arrays, scores, (ALONE,), checks.warnings(arrays, scores, UNAWARE))
    import_module("leak_atlas.attacks.networks")  # with torch
    lacking, can = _allowed(arrays)
    notes = [f"Not run: {', '.join(names)}. Needed: {lack}." for lack, names in lacking.items()]
    notes += _run(arrays, can, scores, tell)
    warnings = checks.warnings(arrays, scores, UNAWARE)
    unlike = (
        "" if warnings else accuracy.unlike_shadows(arrays, training)
    )  # a swap would explain it
    first = [f"Warning: {unlike}"] if unlike else []
    return Result(arrays, scores, (*first, *_odd(arrays), *notes), warnings)


def _run(
    arrays: Logits,
    can: Mapping[str, BoolArray],
    scores: dict[str, FloatArray],
    tell: Callable[[str], None],
) -> list[str]:
    """Adds the scores of the attacks that `can` score some samples `(N,)`; returns notes on them."""
    known = attackers(arrays.queries)
    notes: list[str] = []
    left: dict[int, list[str]] = {}
    for name in _told({name: _seconds(known[name][0], arrays) for name in can}, tell):
        attacker = known[name][0]
        learnt: Arrays = {}
        if attacker.learns:
            some = _learns_from(arrays)
            learnt = learn(attacker, arrays.of(some))
            if not some.all():
                part = f"{some.sum():,} of the {some.size:,} samples"
                notes.append(f"The {name} learnt from {part}: more add nothing.")
        scores[name] = scored(attacker, arrays, can[name], learnt)
        if out := int((~can[name]).sum()):
            left.setdefault(out, []).append(name)
    for out, names in left.items():
        lack = f"Too few shadow models on one side to score {out:,} of the samples"
        notes.append(f"{lack}: {', '.join(names)}.")
    return notes


def scored(
    attacker: Attacker, arrays: Logits, can: BoolArray, learnt: Arrays | None = None
) -> FloatArray:
    """Scores `(N,)` of an attacker, NaN where it cannot score a sample; `member` plays no part in
    them.
    """
    scores = np.full(len(can), np.nan)
    if can.any():
        scores[can] = infer(attacker, arrays.of(can)._replace(learnt=learnt or {})).scores
    return scores


def _allowed(arrays: Logits) -> tuple[dict[str, list[str]], dict[str, BoolArray]]:
    """The attacks that cannot be run, by what they need; and which samples `(N,)` each of the
    others can score.
    """
    lacking: dict[str, list[str]] = {}
    can = {}
    for name, (attacker, needs) in attackers(arrays.queries).items():
        enough = needs.met(arrays)
        if lack := _lack(attacker, needs, enough, arrays):
            lacking.setdefault(lack, []).append(name)
        else:
            can[name] = enough
    return lacking, can


def _lack(attacker: Attacker, needs: Needs, can: BoolArray, arrays: Logits) -> str:
    """What is missing for an attack that `can` score some samples; "": nothing."""
    seen = arrays.in_shadow
    assert seen is not None
    if not attacker.by_sample and (seen.all() or not seen.any()):
        return "shadow models with members and non-members among these samples"
    if attacker.compares and arrays.population is None:
        return "a population, Z samples that no model trained on (BASE orders samples as RMIA's ratio online does)"
    if isinstance(attacker, LiRA):  # a variance
        many = attacker.variance == "per_sample"
        there = [count.mean() if many else count[can].max(initial=0) for count in arrays.counts]
        needs = Needs(*((OWN_VARIANCE if many else 2) * (number > 0) for number in needs))
        if any(number > own for number, own in zip(needs, there, strict=True)):
            more = f"{OWN_VARIANCE} shadow models of a sample, in the mean, on each side that they look at"
            return more if many else f"more shadow models of a sample: {needs}"
    if not (can & arrays.member).any() or not (can & ~arrays.member).any():
        return f"shadow models of a sample: {needs}"
    return ""


def _learns_from(arrays: Logits) -> BoolArray:
    """The samples `(N,)` whose answers an attacker learns from: all, or a random part with `LEARNT`
    answers.
    """
    some = np.zeros(len(arrays.labels), bool)
    some[np.random.default_rng(0).permutation(some.size)[: max(1, LEARNT // arrays.models)]] = True
    return some


def _seconds(attacker: Attacker, arrays: Logits) -> float:
    """What an attack takes on one core, roughly."""
    answers = arrays.models * len(arrays.labels)
    if isinstance(attacker, Network):  # 2 ms a batch
        return 2e-3 * attacker.epochs * min(answers, LEARNT) / attacker.batch
    # to sort all answers takes longer
    return (3e-7 if attacker.by_sample else 1.6e-6) * answers * arrays.queries


def _told(parts: Mapping[str, float], tell: Callable[[str], None]) -> Iterator[str]:
    """The names of parts of work in turn, each with the seconds that it should take, and lines on
    how far it is.

    None is told where all is done at once.
    """
    total, done, start = sum(parts.values()), 0.0, time.monotonic()
    last = start
    if total > SOON:
        tell(f"{len(parts)} attacks by shadow models take about {duration(total)}")
    for number, (name, seconds) in enumerate(parts.items()):
        now = time.monotonic()
        left = (total - done) * (now - start) / done if done else 0.0
        if left > QUIET and now - last > QUIET:
            so_far = f"{number} of {len(parts)} attacks, {duration(now - start)} so far"
            tell(f"{so_far}, about {duration(left)} left")
            last = now
        yield name
        done += seconds


def _odd(arrays: Logits) -> list[str]:
    """What is odd about the shadows."""
    assert arrays.in_shadow is not None
    notes = []
    every, none = arrays.in_shadow.all(axis=1), ~arrays.in_shadow.any(axis=1)
    for what, rows in (("all", every), ("none", none)):
        if 0 < rows.sum() < arrays.models:
            notes.append(
                f"Shadow models {np.flatnonzero(rows).tolist()} trained on {what} of the samples."
            )
    inside = arrays.counts[0]
    if np.ptp(inside):
        count = audit.auc_interval(inside, arrays.member, 0.99)
        if not count.low <= 0.5 <= count.high:
            notes.append(
                "The number of shadow models that trained on a sample identifies members "
                f"(AUC {count}, 99 %), whatever they learnt: attacks may find that. Draw their "
                "training sets without regard to `member`."
            )
    return notes
