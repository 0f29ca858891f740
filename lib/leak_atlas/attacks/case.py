"""What an attacker has: what states answered, aligned by sample, and who was a member to whom."""

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


class Case(NamedTuple):
    """One target and its shadows, on samples `(n,)` in the same order for all.

    `target` and each of `shadows` hold what the attacker asked of that state, `roles (M, n)` are
    the shadows'. Where a state does not know a sample its floats are NaN and its role there is
    `UNUSED`. The target is judged on its `pool`, RMIA's ratios are compared with those of the
    `population`: both Boolean `(n,)`. Of an attacker that learns, `learnt` is what it has learnt.
    """

    target: Arrays
    shadows: Sequence[Arrays]
    roles: np.ndarray
    learnt: Arrays

    @property
    def pool(self) -> BoolArray:
        return np.isin(self.target["role"], (Role.MEMBER, Role.NONMEMBER))

    @property
    def population(self) -> BoolArray:
        """Test samples; of a design without any the dev samples, which the target did not train on
        either.
        """
        tests = np.asarray(self.target["role"] == Role.TEST)
        return tests if tests.any() else np.asarray(self.target["role"] == Role.DEV)

    @property
    def member(self) -> BoolArray:
        """Whether a shadow trained on a sample of the target's pool, `(M, pool)`; a sample it never
        met is out too.
        """
        return np.asarray(self.roles[:, self.pool] == Role.MEMBER)

    def read(
        self, signal: Callable[[Arrays, np.ndarray], np.ndarray], which: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A signal on some samples: of the target, and of the shadows stacked."""
        return signal(self.target, which), np.stack(
            [signal(shadow, which) for shadow in self.shadows]
        )

    def known(
        self, signal: Callable[[Arrays, np.ndarray], np.ndarray]
    ) -> tuple[FloatArray, BoolArray, np.ndarray]:
        """What an attacker learns from: the shadows' signals `(M, k, ...)`, their membership `(M,
        k)`, labels `(k,)`.

        Of the samples that are some shadow's members or non-members, which need not be the
        target's; NaN: not its own.
        """
        met = np.isin(self.roles, (Role.MEMBER, Role.NONMEMBER))
        some = np.asarray(met.any(axis=0))
        others = np.stack([signal(shadow, some) for shadow in self.shadows]).astype(float)
        others[~met[:, some]] = np.nan
        # -1 where it is unknown
        labels = np.max([shadow["labels"][some] for shadow in self.shadows], axis=0)
        return others, self.roles[:, some] == Role.MEMBER, labels


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
    """What an attacker learns from the shadows of a case, whose target it may not look at."""
    raise TypeError(f"nothing says what {type(attacker).__name__} learns")


def answers(
    attacker: Attacker, states: Sequence[State], dealt: int | None = None
) -> dict[str, Arrays]:
    """What the states answered to all that the attacker asks, aligned by sample, by the states'
    keys.

    Of two steps that say the same of a state, its roles perhaps, the first one counts. Arrays of a
    step without an `index` speak of no sample, and come as they are. A number `dealt` deals out
    membership anew (`Attack`).
    """
    read = [
        (state.key, store.read(step.key).arrays)
        for state in dict.fromkeys(states)
        for step in attacker.asks(state)
    ]
    by_sample = iter(aligned([arrays for _, arrays in read if "index" in arrays]))
    found: dict[str, Arrays] = {}
    for key, arrays in read:
        found[key] = (next(by_sample) if "index" in arrays else arrays) | found.get(key, {})
    if dealt is not None:
        found = {
            key: arrays | {"role": _dealt(arrays["role"], dealt)} for key, arrays in found.items()
        }
    return found


def _dealt(role: np.ndarray, draw: int) -> np.ndarray:
    """The roles of a pool's samples, of others each; the same others for every network of one pool."""
    pool = np.flatnonzero(np.isin(role, (Role.MEMBER, Role.NONMEMBER)))
    made = role.copy()
    made[pool] = role[np.random.default_rng(draw).permutation(pool)]
    return made


def aligned(read: list[Arrays]) -> list[Arrays]:
    """The same arrays on the union of all samples, in the order of `index`."""
    first = read[0]["index"]
    if all(np.array_equal(arrays["index"], first) for arrays in read):
        return read
    union = reduce(np.union1d, [arrays["index"] for arrays in read])

    def spread(arrays: Arrays) -> Arrays:
        n, place = len(arrays["index"]), np.searchsorted(union, arrays["index"])
        found = {"index": union}
        for name, array in arrays.items():
            if name != "index" and array.ndim and len(array) == n:
                empty = {"role": int(Role.UNUSED), "labels": -1}.get(name, np.nan)
                found[name] = np.full((len(union), *array.shape[1:]), empty, array.dtype)
                found[name][place] = array
        return found

    return [spread(arrays) for arrays in read]


def _case(
    read: dict[str, Arrays], target: Arrays, shadows: Sequence[State], learnt: Arrays
) -> Case:
    others = [read[shadow.key] for shadow in shadows]
    return Case(
        target,
        others,
        np.stack([other["role"] for other in others]) if others else np.empty(0),
        learnt,
    )


@compute.register(Learnt)
def _(step: Learnt, of: Of) -> Arrays:
    read = answers(step.attacker, step.shadows, step.dealt)
    return learn(step.attacker, _case(read, {}, step.shadows, {}))


@compute.register(Attack)
def _(step: Attack, of: Of) -> Arrays:
    learns = step.attacker.learns
    read = answers(step.attacker, step.asked, step.dealt)
    cases = []
    for target in step.targets:
        shadows = () if learns or not step.attacker.shadowed else step.helpers(target)
        learnt = store.read(step.learnt(target).key).arrays if learns else {}
        cases.append(_case(read, read[target.key], shadows, learnt))
    index = [case.target["index"][case.pool] for case in cases]
    if len({len(own) for own in index}) > 1:
        raise BadInput("targets of one attack need pools of one size: attack them one by one")
    found = [infer(step.attacker, case) for case in cases]
    return {
        "scores": np.stack([one.scores for one in found]),
        "member": np.stack([case.target["role"][case.pool] == Role.MEMBER for case in cases]),
        "thresholds": np.asarray([one.threshold for one in found]),
        "index": index[0]
        if all(np.array_equal(own, index[0]) for own in index)
        else np.stack(index),
    }
