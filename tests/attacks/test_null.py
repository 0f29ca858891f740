"""Every attack by shadow models finds nothing where there is nothing, and calibrated attacks beat a
threshold where there is something.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from leak_atlas import audit
from leak_atlas.attacks.lira import lira
from leak_atlas.attacks.rmia import base, rmia
from leak_atlas.recipe import RMIA, LiRA
from tests.attacks.simulated import (
    complement_pairs,
    finds_nothing,
    other_pairs,
    threshold_attack,
)

Attack = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Z = 200  # samples of the population


def by_ratio(t: np.ndarray, s: np.ndarray, m: np.ndarray, attacker: RMIA) -> np.ndarray:
    """RMIA whose population are the last samples."""
    return rmia(t[:-Z], s[:, :-Z], m[:, :-Z], t[-Z:], s[:, -Z:], attacker, member_z=m[:, -Z:])


def two_queries(t: np.ndarray, s: np.ndarray, m: np.ndarray) -> np.ndarray:
    """RMIA with a second query, the signal of another sample."""
    t2, s2 = (np.stack([v, v[..., ::-1]], axis=-1) for v in (t, s))
    return rmia(t2, s2, m, t2[:Z], s2[:, :Z], RMIA(views=2))


def global_threshold(t: np.ndarray, s: np.ndarray, m: np.ndarray) -> np.ndarray:
    return threshold_attack(t, s, m, sign="shadows").scores


def class_thresholds(t: np.ndarray, s: np.ndarray, m: np.ndarray) -> np.ndarray:
    return threshold_attack(t, s, m, labels=np.arange(len(t)) % 10).scores


ATTACKS: dict[str, Attack] = {
    "lira pooled": partial(lira, attacker=LiRA()),
    "lira per_sample": partial(lira, attacker=LiRA(variance="per_sample")),
    "lira median": partial(lira, attacker=LiRA(variance="per_sample", centre="median")),
    "lira code": partial(lira, attacker=LiRA(variance="code", centre="median")),
    "lira offline_cdf": partial(lira, attacker=LiRA("offline_cdf")),
    "lira offline_pdf": partial(lira, attacker=LiRA("offline_pdf", variance="per_sample")),
    "base": base,
    "rmia": partial(by_ratio, attacker=RMIA()),
    "rmia offline": partial(by_ratio, attacker=RMIA("offline")),
    "rmia two queries": two_queries,
    "threshold": global_threshold,
    "class thresholds": class_thresholds,
}

# Targets that are each other's shadows depend on each other, so the unit of these tests is a whole
# population, drawn afresh. All their intervals hold together at 95 %: one in twenty would otherwise
# fail by chance, whatever the seed.
NULL_LEVEL = 1 - 0.05 / (len(ATTACKS) + 4)


def null_auc(attack: Attack, pairs: int, pair_leaves: bool = True) -> audit.Estimate:
    """AUC of signals that do not depend on membership, each model attacked with the others of its
    population.
    """
    rng = np.random.default_rng(0)
    units = []
    for _ in range(12):
        member = complement_pairs(rng, pairs, 2000)
        values = -rng.exponential(size=member.shape)  # below 0, so that ratio attacks take them too
        areas = []
        for target in range(len(member)):
            others = np.arange(len(member)) != target
            if pair_leaves:
                others = other_pairs(len(member), target)
            scores = attack(values[target], values[others], member[others])
            areas.append(float(audit.auc(scores, member[target, : len(scores)])))
        units.append(np.mean(areas))
    return audit.mean_ci(units, level=NULL_LEVEL)


@pytest.mark.parametrize("name", ATTACKS)
def test_null(name: str) -> None:
    """Ten models in complement pairs; eight are left when a target's pair leaves."""
    auc = null_auc(ATTACKS[name], pairs=5)
    assert finds_nothing(auc), auc


@pytest.mark.parametrize("name", ["lira per_sample", "lira median"])
def test_counts_leak_when_only_the_target_leaves(name: str) -> None:
    """Eight models: without the target a sample has 3 IN models if it is a member, else 4. Noise
    then gives .43.
    """
    assert 0.40 < null_auc(ATTACKS[name], pairs=4, pair_leaves=False).high < 0.45
    assert finds_nothing(null_auc(ATTACKS[name], pairs=4))


@pytest.mark.parametrize("name", ["lira pooled", "lira offline_cdf", "base", "rmia"])
def test_calibrated_attacks_beat_the_threshold(name: str) -> None:
    """Samples differ in difficulty far more than by membership: shadow models calibrate that, a
    global threshold cannot.
    """
    rng = np.random.default_rng(0)
    member = complement_pairs(rng, 5, 6000)
    margin = rng.normal(1, 3, 6000) + 1.5 * member + rng.normal(size=member.shape)
    values = margin if "lira" in name else -np.logaddexp(0, -margin)
    others = other_pairs(10, 0)
    scores = ATTACKS[name](values[0], values[others], member[others])
    inside = member[0, : len(scores)]
    assert audit.auc(scores, inside) > audit.auc(values[0, : len(scores)], inside) + 0.05
