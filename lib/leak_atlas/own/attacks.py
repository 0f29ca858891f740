"""The attacks that a user's arrays allow, and their scores."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import numpy as np

from leak_atlas.attacks import lira, rmia, threshold  # noqa: F401 (they register what they do)
from leak_atlas.attacks.case import infer, learn
from leak_atlas.attacks.signals import score
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.own.logits import Logits
from leak_atlas.recipe import BASE, RMIA, Attacker, LiRA, Network, Threshold

# At 1 % FPR 16 shadow models find .9 of what 64 find with BASE, .67 with LiRA online (20 targets of
# `logits.example`).
ENOUGH = 16
# Answers of shadow models from which the attack network learns, at most: more add nothing.
LEARNT = 100_000
THRESHOLDS = {  # the signals of attacks that need no shadow models
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


class Shadowed(NamedTuple):
    """An attack by shadow models. To score a sample it needs so many shadow models that trained on
    it (`inside`), and that did not (`outside`).
    """

    attacker: Attacker
    inside: int = 0
    outside: int = 0

    def scorable(self, arrays: Logits) -> BoolArray:
        """The samples `(N,)` that have enough shadow models."""
        inside, outside = arrays.counts
        return np.asarray((inside >= self.inside) & (outside >= self.outside))

    def lacking(self, arrays: Logits) -> str:
        """What is missing to run the attack; "": nothing."""
        trained = arrays.trained
        if not self.attacker.by_sample and (trained.all() or not trained.any()):
            return "shadow models with members and non-members among these samples"
        if self.attacker.needs_population and arrays.population is None:
            return "a population, Z samples that no model trained on"
        can = self.scorable(arrays)
        if isinstance(self.attacker, LiRA) and not self._varies(arrays, can):
            return "two shadow models of a sample on each side"
        scored_members = can & arrays.member
        scored_others = can & ~arrays.member
        if not scored_members.any() or not scored_others.any():
            return "more shadow models of each sample"
        return ""

    def _varies(self, arrays: Logits, can: BoolArray) -> bool:
        """Whether some sample has two shadow models on each side that the attack reads."""
        counts = zip(arrays.counts, (self.inside, self.outside), strict=True)
        return all(count[can].max(initial=0) >= 2 for count, number in counts if number)


def attackers(views: int) -> dict[str, Shadowed]:
    """All attacks by shadow models, on logits of so many queries a sample."""
    rmia_offline = RMIA("offline", views=views, ties="share")
    return {
        "loss by class": Shadowed(Threshold("loss")),
        "modified entropy by class": Shadowed(Threshold("modified_entropy")),
        "attack network": Shadowed(Network(inputs="posterior_label")),
        "LiRA online": Shadowed(LiRA(views=views), inside=1, outside=1),
        "LiRA offline": Shadowed(LiRA("offline_cdf", views=views), outside=1),
        "BASE": Shadowed(BASE(), outside=1),
        "RMIA online": Shadowed(RMIA(views=views, ties="share"), inside=1, outside=1),
        "RMIA offline": Shadowed(rmia_offline, outside=1),
    }


def run(arrays: Logits) -> tuple[dict[str, FloatArray], list[str]]:
    """The scores `(N,)` of every attack that the arrays allow, by its name, and notes: which
    attacks lack something, and which could not score all samples.
    """
    logits = arrays.by_query(arrays.target)
    labels = arrays.labels[:, None]
    scores = {}
    for name, signal in THRESHOLDS.items():
        scores[name] = score(signal, logits, labels).mean(axis=1)
    if not arrays.models:
        return scores, [ALONE]
    import_module("leak_atlas.attacks.networks")  # with torch
    lacking: dict[str, list[str]] = {}
    partial: dict[int, list[str]] = {}
    for name, attack in attackers(arrays.queries).items():
        if lack := attack.lacking(arrays):
            lacking.setdefault(lack, []).append(name)
            continue
        can = attack.scorable(arrays)
        scores[name] = scored(attack.attacker, arrays, can)
        if not can.all():
            partial.setdefault(int((~can).sum()), []).append(name)
    notes = []
    for lack, names in lacking.items():
        notes.append(f"Not run: {', '.join(names)}. Needed: {lack}.")
    for number, names in partial.items():
        few = f"Too few shadow models on one side to score {number:,} of the samples"
        notes.append(f"{few}: {', '.join(names)}.")
    return scores, notes


def scored(attacker: Attacker, arrays: Logits, can: BoolArray) -> FloatArray:
    """Scores `(N,)` of an attacker, NaN where it cannot score a sample; `member` plays no part in
    them.
    """
    scores = np.full(len(can), np.nan)
    if not can.any():
        return scores
    case = arrays.of(can)
    if attacker.is_trained:
        number = max(1, LEARNT // arrays.models)
        some = np.zeros(len(can), bool)
        some[np.random.default_rng(0).permutation(len(can))[:number]] = True
        case = case._replace(learnt=learn(attacker, arrays.of(some)))
    scores[can] = infer(attacker, case).scores
    return scores
