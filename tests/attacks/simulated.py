"""Simulated models for tests of attacks, and what a null test asks."""

import numpy as np

from leak_atlas import audit
from leak_atlas.attacks.case import Scored
from leak_atlas.attacks.threshold import threshold
from leak_atlas.recipe import Threshold


def complement_pairs(rng: np.random.Generator, pairs: int, samples: int) -> np.ndarray:
    """Membership (2 * pairs, samples): rows 2i and 2i + 1 are a random half and its complement."""
    first_half = np.tile(np.arange(samples) < samples // 2, (pairs, 1))
    halves = rng.permuted(first_half, axis=1)
    return np.stack([halves, ~halves], axis=1).reshape(2 * pairs, samples)


def other_pairs(models: int, target: int) -> np.ndarray:
    """The models outside the target's complement pair, `(models,)`."""
    return np.arange(models) // 2 != target // 2


def finds_nothing(auc: audit.Estimate) -> bool:
    """Whether 0.5 is inside an interval that would have noticed an AUC off by 0.02."""
    return auc.low <= 0.5 <= auc.high and auc.high - auc.low < 0.04


def same_order(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two score vectors order the samples alike."""
    return np.array_equal(np.argsort(a, kind="stable"), np.argsort(b, kind="stable"))


def threshold_attack(
    target: np.ndarray,
    shadows: np.ndarray,
    member: np.ndarray,
    labels: np.ndarray | None = None,
    **options: str,
) -> Scored:
    """By class where `labels (N,)` are given; `shadows` and `member` are `(M, N)`."""
    by_class = labels is not None
    classes = np.zeros(len(target), int) if labels is None else labels
    shadow_classes = np.broadcast_to(classes, member.shape).ravel()
    attacker = Threshold(by_class=by_class, **options)  # type: ignore[arg-type]
    return threshold(target, classes, shadows.ravel(), shadow_classes, member.ravel(), attacker)
