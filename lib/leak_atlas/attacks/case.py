"""What an attacker knows: signals of a target and its shadows, aligned by sample, and the shadows'
membership.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from leak_atlas import BadInput
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.engine.digests import generic
from leak_atlas.recipe import Attack, Attacker, Learnt, State

# Computes a signal `(k, ...)` from the arrays of one state, on a Boolean choice `(n,)` of k samples.
Signal = Callable[[Arrays, np.ndarray], np.ndarray]

IN_POOL = (Role.MEMBER, Role.NONMEMBER)
EMPTY = {"role": int(Role.UNUSED), "labels": -1}  # the value of a sample that a state does not know


class Case(NamedTuple):
    """One target and its shadows, on samples `(n,)` in the same order for all.

    `target` and each of `shadows` hold the arrays that the attacker asks of that state. `roles (M,
    n)` are the shadows'. Where a state does not know a sample, its floats are NaN and its role is
    `UNUSED`. The target is judged on its `pool`; RMIA compares ratios with those of the
    `population`; both are Boolean `(n,)`. `learnt` is what a learning attacker has learnt.
    """

    target: Arrays
    shadows: Sequence[Arrays]
    roles: np.ndarray
    learnt: Arrays

    @property
    def pool(self) -> BoolArray:
        return np.isin(self.target["role"], IN_POOL)

    @property
    def population(self) -> BoolArray:
        """Test samples. A design without test samples gives its dev samples, on which the target
        did not train either.
        """
        is_test = np.asarray(self.target["role"] == Role.TEST)
        return is_test if is_test.any() else np.asarray(self.target["role"] == Role.DEV)

    @property
    def member(self) -> BoolArray:
        """Whether a shadow trained on a sample of the target's pool, `(M, pool)`. A sample that the
        shadow does not know counts as a non-member.
        """
        return np.asarray(self.roles[:, self.pool] == Role.MEMBER)

    def read(
        self,
        signal: Signal,
        which: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """A signal on the samples `which (n,)`: the target's, and the shadows' stacked."""
        of_target = signal(self.target, which)
        of_shadows = [signal(shadow, which) for shadow in self.shadows]
        return of_target, np.stack(of_shadows)

    def known(self, signal: Signal) -> tuple[FloatArray, BoolArray, np.ndarray]:
        """What an attacker learns from: the shadows' signals `(M, k, ...)`, their membership `(M,
        k)`, labels `(k,)`.

        The k samples are members or non-members of at least one shadow; the target's pool need not
        hold them. A signal is NaN where the sample is neither a member nor a non-member of that
        shadow.
        """
        in_pool = np.isin(self.roles, IN_POOL)
        which = np.asarray(in_pool.any(axis=0))
        of_shadows = [signal(shadow, which) for shadow in self.shadows]
        signals = np.stack(of_shadows).astype(float)
        signals[~in_pool[:, which]] = np.nan
        member = self.roles[:, which] == Role.MEMBER
        # An unknown label is -1, so the maximum is the known one.
        labels = [shadow["labels"][which] for shadow in self.shadows]
        return signals, member, np.max(labels, axis=0)


class Scored(NamedTuple):
    """Scores `(pool,)`, and the threshold that the shadows chose (NaN: none)."""

    scores: FloatArray
    threshold: float = np.nan


@generic
def infer(attacker: Attacker, case: Case) -> Scored:
    """Scores of the target's pool."""
    raise TypeError(f"nothing says how {type(attacker).__name__} infers membership")


@generic
def learn(attacker: Attacker, case: Case) -> Arrays:
    """What an attacker learns from the shadows of a case. It must not read the case's target."""
    raise TypeError(f"nothing says what {type(attacker).__name__} learns")


def answers(
    attacker: Attacker,
    states: Sequence[State],
    permuted: int | None = None,
) -> dict[str, Arrays]:
    """The arrays of all steps that the attacker asks of the states, aligned by sample, by the
    states' keys.

    Where two steps of a state share an array's name, the first step counts. A step without an
    `index` has no arrays by sample; its arrays stay as they are. The number `permuted` seeds a
    permutation of the membership labels (`Attack`).
    """
    keys: list[str] = []
    results: list[Arrays] = []
    for state in dict.fromkeys(states):
        for step in attacker.asks(state):
            keys.append(state.key)
            results.append(store.read(step.key).arrays)
    by_sample = iter(aligned([arrays for arrays in results if "index" in arrays]))
    merged: dict[str, Arrays] = {}
    for key, arrays in zip(keys, results, strict=True):
        placed = next(by_sample) if "index" in arrays else arrays
        merged[key] = placed | merged.get(key, {})
    if permuted is not None:
        for key, arrays in merged.items():
            merged[key] = arrays | {"role": _permuted(arrays["role"], permuted)}
    return merged


def _permuted(role: np.ndarray, draw: int) -> np.ndarray:
    """Roles `(n,)` with those of the pool permuted. Networks of one pool get the same permutation."""
    pool = np.flatnonzero(np.isin(role, IN_POOL))
    order = np.random.default_rng(draw).permutation(pool)
    permuted = role.copy()
    permuted[pool] = role[order]
    return permuted


def aligned(results: list[Arrays]) -> list[Arrays]:
    """The same arrays on the union of all samples, in the order of `index`."""
    indices = [arrays["index"] for arrays in results]
    if all(np.array_equal(index, indices[0]) for index in indices):
        return results
    union = reduce(np.union1d, indices)
    return [_spread(arrays, union) for arrays in results]


def _spread(arrays: Arrays, union: np.ndarray) -> Arrays:
    """Arrays by sample on the samples of `union`, a sorted superset of their own."""
    own_index = arrays["index"]
    places = np.searchsorted(union, own_index)
    spread = {"index": union}
    for name, array in arrays.items():
        if name == "index" or not array.ndim or len(array) != len(own_index):
            continue
        shape = (len(union), *array.shape[1:])
        spread[name] = np.full(shape, EMPTY.get(name, np.nan), array.dtype)
        spread[name][places] = array
    return spread


def _case(
    read: dict[str, Arrays],
    target: Arrays,
    shadows: Sequence[State],
    learnt: Arrays,
) -> Case:
    of_shadows = [read[shadow.key] for shadow in shadows]
    roles = np.empty(0)
    if of_shadows:
        roles = np.stack([arrays["role"] for arrays in of_shadows])
    return Case(target, of_shadows, roles, learnt)


@compute.register(Learnt)
def _(step: Learnt, of: Of) -> Arrays:
    read = answers(step.attacker, step.shadows, step.permuted)
    return learn(step.attacker, _case(read, {}, step.shadows, {}))


@compute.register(Attack)
def _(step: Attack, of: Of) -> Arrays:
    read = answers(step.attacker, step.asked, step.permuted)
    cases = [_target_case(step, target, read) for target in step.targets]
    indices = [case.target["index"][case.pool] for case in cases]
    members = [case.target["role"][case.pool] == Role.MEMBER for case in cases]
    if len({len(index) for index in indices}) > 1:
        raise BadInput("targets of one attack need pools of one size: attack them one by one")
    same_pool = all(np.array_equal(index, indices[0]) for index in indices)
    results = [infer(step.attacker, case) for case in cases]
    return {
        "scores": np.stack([result.scores for result in results]),
        "member": np.stack(members),
        "thresholds": np.asarray([result.threshold for result in results]),
        "index": indices[0] if same_pool else np.stack(indices),
    }


def _target_case(step: Attack, target: State, read: dict[str, Arrays]) -> Case:
    """One target's case: with what its attacker has learnt, or with its shadows, if it uses any."""
    if step.attacker.learns:
        learnt = store.read(step.learnt(target).key).arrays
        return _case(read, read[target.key], (), learnt)
    shadows = step.helpers(target) if step.attacker.shadowed else ()
    return _case(read, read[target.key], shadows, {})
