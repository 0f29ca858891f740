"""The attacks that a user's arrays allow, and their scores."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import numpy as np

from leak_atlas.attacks import lira, rmia, threshold  # noqa: F401 (they register what they do)
from leak_atlas.attacks.case import infer, learn
from leak_atlas.attacks.signals import score
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.engine.compute import Arrays
from leak_atlas.own.logits import Logits
from leak_atlas.recipe import BASE, RMIA, Attacker, LiRA, Network, Threshold

# Shadow models a side, in the mean, below which a sample's own variance is mostly noise (`lira`).
OWN_VARIANCE = 30
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
        attacker, trained, can = self.attacker, arrays.trained, self.scorable(arrays)
        needed = zip(arrays.counts, (self.inside, self.outside), strict=True)
        counts = [count for count, number in needed if number]
        of_lira = isinstance(attacker, LiRA)
        own_variance = isinstance(attacker, LiRA) and attacker.variance == "per_sample"
        few_in_mean = min((count.mean() for count in counts), default=0) < OWN_VARIANCE
        single = min((count[can].max(initial=0) for count in counts), default=0) < 2
        one_sided = not (can & arrays.member).any() or not (can & ~arrays.member).any()
        conditions = [
            (
                not attacker.by_sample and (trained.all() or not trained.any()),
                "shadow models with members and non-members among these samples",
            ),
            (
                attacker.compares and arrays.population is None,
                "a population, Z samples that no model trained on",
            ),
            (
                own_variance and few_in_mean,
                f"{OWN_VARIANCE} shadow models of a sample, in the mean, on each side",
            ),
            (of_lira and single, "two shadow models of a sample on each side"),
            (one_sided, "more shadow models of each sample"),
        ]
        return next((lack for missing, lack in conditions if missing), "")


def attackers(views: int) -> dict[str, Shadowed]:
    """All attacks by shadow models, on logits of so many queries a sample."""
    online, offline = LiRA(views=views), LiRA("offline_cdf", views=views)
    own = LiRA(variance="per_sample", views=views)
    own_offline = LiRA("offline_cdf", "per_sample", views=views)
    share, share_offline = (RMIA(mode, views=views, ties="share") for mode in ("online", "offline"))
    return {
        "loss by class": Shadowed(Threshold("loss")),
        "modified entropy by class": Shadowed(Threshold("modified_entropy")),
        "attack network": Shadowed(Network(inputs="posterior_label")),
        "LiRA online": Shadowed(online, 1, 1),
        "LiRA online (own variance)": Shadowed(own, 2, 2),
        "LiRA offline": Shadowed(offline, 0, 1),
        "LiRA offline (own variance)": Shadowed(own_offline, 0, 2),
        "BASE": Shadowed(BASE(), 0, 1),
        "RMIA online": Shadowed(share, 1, 1),
        "RMIA offline": Shadowed(share_offline, 0, 1),
    }


def run(arrays: Logits) -> tuple[dict[str, FloatArray], list[str]]:
    """The scores `(N,)` of every attack that the arrays allow, by its name, and notes: which
    attacks lack something, and which could not score all samples.
    """
    logits, labels = arrays.by_query(arrays.target), arrays.labels[:, None]
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
    notes = [f"Not run: {', '.join(names)}. Needed: {lack}." for lack, names in lacking.items()]
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
    learnt: Arrays = {}
    if attacker.learns:
        number = max(1, LEARNT // arrays.models)
        some = np.zeros(len(can), bool)
        some[np.random.default_rng(0).permutation(len(can))[:number]] = True
        learnt = learn(attacker, arrays.of(some))
    scores[can] = infer(attacker, arrays.of(can)._replace(learnt=learnt)).scores
    return scores
