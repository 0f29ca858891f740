"""Two ways to train the same models: paired differences, and what few counts can tell."""

import numpy as np
import pytest

from lib import audit

WAYS = ("plain", "defended")


def made(shift: float, targets: int = 8, samples: int = 400, seed: int = 0) -> dict[str, np.ndarray]:
    """Scores whose members lie `shift` deviations above the others; membership differs from target to target."""
    draws = np.random.default_rng(seed)
    member = np.stack([draws.permutation(np.arange(samples) < samples // 2) for _ in range(targets)])
    return {"scores": draws.normal(size=(targets, samples)) + shift * member, "member": member}


def compared(one: dict, other: dict) -> audit.Comparison:
    accuracies = dict(zip(WAYS, ([0.7, 0.8, 0.6], [0.6, 0.7, 0.4]), strict=True))
    return audit.Comparison(accuracies, {(way, "LiRA"): found for way, found in zip(WAYS, (one, other), strict=True)})


def test_accuracy_is_paired() -> None:
    both = compared(made(1.0), made(0.0))
    assert both.accuracy("plain").value == pytest.approx(0.7)
    found = both.more_accurate(*WAYS)
    assert found.value == pytest.approx(0.4 / 3)
    assert found.low == pytest.approx(audit.paired_difference([0.7, 0.8, 0.6], [0.6, 0.7, 0.4]).low)


def test_leak_and_its_difference() -> None:
    both = compared(made(1.0), made(0.0, seed=1))
    leak = both.leak("plain", "LiRA")["auc"]
    assert leak.low < 0.760 < leak.high  # Phi(1 / sqrt 2), the AUC of two unit normals that far apart
    found = both.more_leaky(*WAYS, "LiRA")
    assert found.low < 0.260 < found.high and found.low > 0
    assert both.more_leaky("plain", "plain", "LiRA").value == 0


def test_equal_ways_differ_by_nothing() -> None:
    """Null: the interval of no difference covers zero about as often as it says, TPRs included."""
    covered = []
    for seed in range(60):
        both = compared(made(0.5, seed=2 * seed), made(0.5, seed=2 * seed + 1))
        covered.append(
            [found.low <= 0 <= found.high for found in (both.more_leaky(*WAYS, "LiRA", fpr) for fpr in (None, 0.05))]
        )
    assert np.mean(covered, axis=0).min() >= 0.9


def test_zeros_are_not_certain() -> None:
    """No member above the one false positive allowed, twice: the difference is 0, and nobody knows it exactly."""
    rows = np.tile(np.arange(400.0), (6, 1))
    member = np.tile(np.arange(400) < 200, (6, 1))
    both = compared({"scores": rows, "member": member}, {"scores": rows, "member": member})
    found = both.more_leaky(*WAYS, "LiRA", 0.01)
    edge = audit.clopper_pearson(0, 1200)[1]
    assert found.value == 0 and found.high == pytest.approx(edge) and found.low == pytest.approx(-edge)


def test_too_few_non_members_say_so() -> None:
    both = compared(made(1.0), made(0.0))
    assert not both.more_leaky(*WAYS, "LiRA", 0.001).resolved
    assert both.more_leaky(*WAYS, "LiRA", 0.01).resolved and both.more_leaky(*WAYS, "LiRA").resolved
