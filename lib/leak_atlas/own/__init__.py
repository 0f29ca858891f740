"""What users bring of their own, put through the library's attacks. From Python:

    from leak_atlas import own

    result = own.audit(own.read("mine.npz"))  # or own.audit({"target": ..., "labels": ...})
    print(result.verdict(), result.auc["loss"], result.tpr(0.01)["loss"])
    result.scores["loss"]  # (N,), larger = more likely member

`lira`, `rmia` and `base` are single attacks on plain arrays. N samples, C classes, M shadow models,
Z samples of a population. Logits are floating point, and (N, A, C) of A queries a sample, the plain
one first, may stand for (N, C).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.audit import FloatArray
from leak_atlas.own import findings, logits
from leak_atlas.own.attacks import Shadowed, scored
from leak_atlas.own.findings import Result
from leak_atlas.own.logits import Logits
from leak_atlas.recipe import BASE, RMIA, LiRA

__all__ = ["Logits", "Result", "audit", "base", "lira", "read", "rmia"]


def read(path: str | Path) -> Logits:
    """The arrays of an .npz, checked. BadInput, one line that names the file, where they are not
    right.
    """
    return logits.read(Path(path))


def audit(arrays: Logits | Mapping[str, ArrayLike]) -> Result:
    """Every attack that the arrays allow, as `leak-atlas audit` runs them on an .npz.

    `arrays` by the names of `Logits`: `target` (N, C), `labels` (N,), `member` (N,); with shadow
    models `shadows` (M, N, C), `in_shadow` (M, N); for RMIA `population` (Z, C),
    `population_labels` (Z,), `population_shadows` (M, Z, C). The result has `verdict()`, `warnings`
    (while there is one there is no verdict), `auc` and `tpr(fpr)` with intervals, and `scores
    (N,)`, each by the attack's name. Raises BadInput, which names the array, if one is wrong.
    """
    if isinstance(arrays, Logits):
        return findings.attack(arrays)
    return findings.attack(logits.checked(arrays))


def lira(
    target: ArrayLike,
    labels: ArrayLike,
    shadows: ArrayLike,
    in_shadow: ArrayLike,
    *,
    mode: Literal["online", "offline"] = "online",
    variance: Literal["pooled", "per_sample"] = "pooled",
) -> FloatArray:
    """Scores `(N,)` of LiRA (Carlini et al. 2022), larger = more likely member, NaN: too few shadow
    models to score.

    Logits `target (N, C)` and `shadows (M, N, C)`, `labels (N,)`, Boolean `in_shadow (M, N)`.
    Online compares the models that trained on a sample with those that did not, offline reads the
    latter alone. `variance` is that of all samples together, or (from 30 shadow models a side on)
    of each sample. Raises BadInput, which names the array, if one is wrong; raises ValueError if no
    sample has two shadow models on a side.
    """
    arrays = _arrays(target=target, labels=labels, shadows=shadows, in_shadow=in_shadow)
    attacker = LiRA("online" if mode == "online" else "offline_cdf", variance, views=arrays.queries)
    outside = 2 if variance == "per_sample" else 1
    inside = outside if mode == "online" else 0
    return _scores(Shadowed(attacker, inside, outside), arrays)


def rmia(
    target: ArrayLike,
    labels: ArrayLike,
    shadows: ArrayLike,
    in_shadow: ArrayLike,
    population: ArrayLike,
    population_labels: ArrayLike,
    population_shadows: ArrayLike,
    *,
    mode: Literal["online", "offline"] = "online",
    gamma: float = 2.0,
    a: float = 0.3,
    ties: Literal["share", "ratio"] = "share",
) -> FloatArray:
    """Scores `(N,)` of RMIA (Zarifzadeh et al. 2024), larger = more likely member, NaN: too few
    shadow models.

    The first four arrays as `lira`; `population (Z, C)`, `population_labels (Z,)` and
    `population_shadows (M, Z, C)` are of samples that no model trained on. A score is the share of
    these whose ratio is less than 1 / `gamma` of the sample's; `ties` "ratio" orders equal shares
    by the ratio: online, for one query, that is the order of `base`. `a` is of the offline mode.
    Errors as `lira`.
    """
    arrays = _arrays(
        target=target,
        labels=labels,
        shadows=shadows,
        in_shadow=in_shadow,
        population=population,
        population_labels=population_labels,
        population_shadows=population_shadows,
    )
    attacker = RMIA(mode, gamma, a, views=arrays.queries, ties=ties)
    return _scores(Shadowed(attacker, int(mode == "online"), 1), arrays)


def base(
    target: ArrayLike, labels: ArrayLike, shadows: ArrayLike, in_shadow: ArrayLike
) -> FloatArray:
    """Scores `(N,)` of BASE (Lassila et al. 2025), larger = more likely member, NaN: all shadow
    models trained on it.

    The log of the target's confidence over the shadow models' mean. Arrays and errors as `lira`.
    """
    arrays = _arrays(target=target, labels=labels, shadows=shadows, in_shadow=in_shadow)
    return _scores(Shadowed(BASE(), 0, 1), arrays)


def _arrays(**given: ArrayLike) -> Logits:
    """Arrays by their names; without `member`, which no attack reads, nobody is one."""
    arrays = {name: np.asarray(array) for name, array in given.items()}
    arrays.setdefault("member", np.zeros(arrays["target"].shape[:1], bool))
    return Logits(**arrays)


def _scores(attack: Shadowed, arrays: Logits) -> FloatArray:
    return scored(attack.attacker, arrays, attack.scorable(arrays))
