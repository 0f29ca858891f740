"""How differently a network behaves on members and on non-members (SAMIA, section 4.1).

Reads stored results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leak_atlas.attacks.signals import confidence, correctness, entropy
from leak_atlas.audit import FloatArray, IntArray
from leak_atlas.data.designs import Role, in_pool
from leak_atlas.localization import Arrays, places_of

GAPS = ("confidence", "sensitivity", "generalization")


def behaviour(signals: Arrays, sensitivity: Arrays) -> dict[str, FloatArray]:
    """Read off how a state behaves on its n members and non-members.

    `signals` and `sensitivity` are what `Signals` and `Sensitivity` of the state have stored; the
    two steps need not know the same other samples.

    Returns arrays `(n,)`: `confidence` and `sensitivity` of the true class, `generalization` (1
    where the network is right), `member` and `label`.
    """
    pool = in_pool(signals["role"])
    logits = signals["logits"][pool]
    label = signals["labels"][pool]
    place = places_of(signals["index"][pool], sensitivity["index"])
    return {
        "confidence": confidence(logits, label),
        "sensitivity": sensitivity["sensitivity"][place, label].astype(np.float64),
        "generalization": correctness(logits, label),
        "member": signals["role"][pool] == Role.MEMBER,
        "label": label,
    }


def behaviours(
    results: Mapping[Any, Arrays],
    variants: Mapping[Any, Any],
    sensitivity: Mapping[Any, Sequence[Any]],
) -> dict[Any, list[dict[str, FloatArray]]]:
    """`behaviour` of the first networks of each variant's population: of as many as have a
    `Sensitivity` step.
    """
    found: dict[Any, list[dict[str, FloatArray]]] = {}
    for variant, population in variants.items():
        found[variant] = []
        for signals, noise in zip(population.signals(), sensitivity[variant], strict=False):
            found[variant].append(behaviour(results[signals], results[noise]))
    return found


def gaps(networks: Sequence[Mapping[str, FloatArray]]) -> dict[str, FloatArray]:
    """The three gaps of n networks, `(n,)` each; a larger one leaks more.

    That of sensitivity is non-members minus members, as members are the less sensitive ones.
    """
    by_kind = {}
    for kind in GAPS:
        values = [gap(one[kind], one["member"]) for one in networks]
        sign = -1 if kind == "sensitivity" else 1
        by_kind[kind] = sign * np.array(values)
    return by_kind


def losses(
    results: Mapping[Any, Arrays],
    signals: Iterable[Any],
    role: Role,
) -> FloatArray:
    """Mean cross-entropy of each of n networks on its samples of a role, nats, `(n,)`.

    `signals` are the networks' `Signals` steps.
    """
    means = []
    for step in signals:
        stored = results[step]
        scaled = stored["views"][stored["role"] == role, 0]  # log(p / (1 - p))
        means.append(np.logaddexp(0, -scaled.astype(np.float64)).mean())
    return np.array(means)


def output_entropies(results: Mapping[Any, Arrays], signals: Iterable[Any]) -> FloatArray:
    """Mean entropy of each of n networks' outputs on its members, as a share of ln C, `(n,)`.

    What HAMP sets: 0 where a network is certain, 1 where all C classes are equally probable.
    """
    means = []
    for step in signals:
        stored = results[step]
        inside = stored["role"] == Role.MEMBER
        logits = stored["logits"][inside]
        values = entropy(logits, stored["labels"][inside])
        means.append(values.mean() / np.log(logits.shape[1]))
    return np.array(means)


def same_predictions(one: Arrays, other: Arrays) -> float:
    """Share of the non-members for which two states predict the same class.

    `one` and `other` are what `Signals` of states of one training's split have stored.
    """
    outside = one["role"] == Role.NONMEMBER
    both = [signals["logits"][outside].argmax(axis=1) for signals in (one, other)]
    return float(np.mean(both[0] == both[1]))


def gap(values: ArrayLike, member: ArrayLike) -> float:
    """Mean of `values (n,)` over members minus mean over non-members (eq. 3, 4).

    NaN where there are no members or no non-members.
    """
    numbers = np.asarray(values, np.float64)
    inside = np.asarray(member, bool)
    if inside.all() or not inside.any():
        return float("nan")
    return float(numbers[inside].mean() - numbers[~inside].mean())


def gap_by_class(
    values: ArrayLike,
    member: ArrayLike,
    label: ArrayLike,
    classes: int,
) -> FloatArray:
    """The `gap` within each class, `(classes,)`."""
    numbers = np.asarray(values)
    inside = np.asarray(member)
    labels = np.asarray(label)
    gaps = np.empty(classes)
    for number in range(classes):
        own = labels == number
        gaps[number] = gap(numbers[own], inside[own])
    return gaps


def permuted_labels(
    label: ArrayLike,
    member: ArrayLike,
    rng: np.random.Generator,
) -> IntArray:
    """Class labels `(n,)`, permuted among members and among non-members.

    The chance level of `gap_by_class`: each side keeps its numbers of samples of each class.
    """
    permuted = np.array(label)
    inside = np.asarray(member, bool)
    for side in (inside, ~inside):
        permuted[side] = rng.permutation(permuted[side])
    return permuted
