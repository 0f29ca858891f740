"""What an attacker knows: signals of a target and of its shadow models, aligned by sample, and the
membership of the shadow models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.data.designs import Role, in_pool
from leak_atlas.engine import store
from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.engine.digests import generic
from leak_atlas.recipe import Attack, Attacker, Learnt, State

# Computes a signal `(k, ...)` from the arrays of one model, on a Boolean choice `(n,)` of k samples.
Signal = Callable[[Arrays, NDArray], NDArray]

EMPTY = {"role": int(Role.UNUSED), "labels": -1}  # values of a sample that a model does not know


class Case(NamedTuple):
    """One target and its shadow models, on samples `(n,)` in the same order for all.

    `target` and each of `shadows` are the arrays that the attacker reads of that model. Where a
    model does not know a sample, its floats are NaN and its role is `UNUSED`. `learnt` is what a
    learning attacker has learnt.
    """

    target: Arrays
    shadows: Sequence[Arrays]
    learnt: Arrays

    @property
    def pool(self) -> BoolArray:
        """The samples `(n,)` on which the target is judged: its members and non-members."""
        return in_pool(self.target["role"])

    @property
    def population(self) -> BoolArray:
        """Test samples `(n,)`, with whose ratios RMIA compares. A design without test samples gives
        its dev samples, on which the target did not train either.
        """
        role = self.target["role"]
        wanted = Role.TEST if (role == Role.TEST).any() else Role.DEV
        return np.asarray(role == wanted)

    @property
    def member(self) -> BoolArray:
        """Whether a shadow model trained on a sample of the target's pool, `(M, pool)`."""
        return self.trained_on(self.pool)

    def trained_on(self, samples: BoolArray) -> BoolArray:
        """Whether a shadow model trained on each of k samples, chosen by `(n,)`: `(M, k)`."""
        roles = np.stack([shadow["role"][samples] for shadow in self.shadows])
        return np.asarray(roles == Role.MEMBER)

    def read(self, signal: Signal, samples: BoolArray) -> tuple[NDArray, NDArray]:
        """A signal on k samples, chosen by `(n,)`: the target's `(k, ...)` and the shadow models'
        `(M, k, ...)`.
        """
        of_shadows = [signal(shadow, samples) for shadow in self.shadows]
        return signal(self.target, samples), np.stack(of_shadows)

    def judged(self, *names: str) -> list[NDArray]:
        """The target's named arrays on its pool, `(pool, ...)` each."""
        return [self.target[name][self.pool] for name in names]

    def evidence(self, *names: str) -> tuple[list[NDArray], BoolArray]:
        """What an attacker learns from: the named arrays `(K, ...)` and the membership `(K,)`.

        The K rows are the members and non-members of all shadow models, one model after the other.
        """
        columns = []
        for name in ("role", *names):
            rows = [shadow[name][in_pool(shadow["role"])] for shadow in self.shadows]
            columns.append(np.concatenate(rows))
        role, *arrays = columns
        return arrays, np.asarray(role == Role.MEMBER)


class Scored(NamedTuple):
    """Scores `(pool,)`, and the threshold that the shadow models chose (NaN: none)."""

    scores: FloatArray
    threshold: float = np.nan


@generic
def infer(attacker: Attacker, case: Case) -> Scored:
    """Scores of the target's pool."""
    raise TypeError(f"no function is registered with infer for {type(attacker).__name__}")


@generic
def learn(attacker: Attacker, case: Case) -> Arrays:
    """What an attacker learns from the shadow models of a case. The case's target is empty."""
    raise TypeError(f"no function is registered with learn for {type(attacker).__name__}")


def answers(
    attacker: Attacker,
    states: Sequence[State],
    permuted: int | None = None,
) -> dict[str, Arrays]:
    """The arrays of all steps that the attacker asks of the states, on the union of all samples, by
    the states' keys.

    Where two steps of a state share an array's name, the first step counts. The number `permuted`
    seeds a permutation of the membership labels (`Attack`).
    """
    stored = [
        (state.key, store.read(step.key).arrays)
        for state in dict.fromkeys(states)
        for step in attacker.asks(state)
    ]
    indices = [arrays["index"] for _, arrays in stored if "index" in arrays]
    union = np.unique(np.concatenate(indices))
    merged: dict[str, Arrays] = {}
    for key, arrays in stored:
        merged[key] = _aligned(arrays, union) | merged.get(key, {})
    if permuted is not None:
        for arrays in merged.values():
            arrays["role"] = _permuted(arrays["role"], permuted)
    return merged


def _aligned(arrays: Arrays, union: NDArray) -> Arrays:
    """Arrays by sample on the samples of `union`, which include all of their own; both ascend.

    Arrays of a step without an `index` are not by sample, and stay as they are.
    """
    index = arrays.get("index", union)
    if len(index) == len(union):
        return arrays
    places = np.searchsorted(union, index)
    aligned = {"index": union}
    for name, array in arrays.items():
        if name != "index" and array.ndim and len(array) == len(index):
            shape = (len(union), *array.shape[1:])
            aligned[name] = np.full(shape, EMPTY.get(name, np.nan), array.dtype)
            aligned[name][places] = array
    return aligned


def _permuted(role: NDArray, seed: int) -> NDArray:
    """Roles `(n,)` with those of the pool permuted. Networks of one pool get the same permutation."""
    pool = np.flatnonzero(in_pool(role))
    order = np.random.default_rng(seed).permutation(pool)
    permuted = role.copy()
    permuted[pool] = role[order]
    return permuted


@compute.register(Learnt)
def _(step: Learnt, of: Of) -> Arrays:
    read = answers(step.attacker, step.shadows, step.permuted)
    shadows = [read[shadow.key] for shadow in step.shadows]
    return learn(step.attacker, Case({}, shadows, {}))


@compute.register(Attack)
def _(step: Attack, of: Of) -> Arrays:
    read = answers(step.attacker, step.asked, step.permuted)
    cases = [_case(step, target, read) for target in step.targets]
    results = [infer(step.attacker, case) for case in cases]
    judged = [case.judged("index", "role") for case in cases]
    index, role = (np.stack(arrays) for arrays in zip(*judged, strict=True))
    same_pool = (index == index[0]).all()
    return {
        "scores": np.stack([result.scores for result in results]),
        "member": role == Role.MEMBER,
        "thresholds": np.asarray([result.threshold for result in results]),
        "index": index[0] if same_pool else index,
    }


def _case(
    step: Attack,
    target: State,
    read: dict[str, Arrays],
) -> Case:
    """One target's case: with what its attacker has learnt, or with its shadow models, if the
    attacker uses any.
    """
    signals = read[target.key]
    if step.attacker.learns:
        learnt = store.read(step.learnt(target).key)
        return Case(signals, (), learnt.arrays)
    shadows = step.helpers(target) if step.attacker.shadowed else ()
    return Case(signals, [read[shadow.key] for shadow in shadows], {})
