"""What an attack reads: outputs of a target and of its shadow models, aligned by sample.

Each attack registers a function with `infer`, which scores samples, and an attack network also one
with `learn`, which trains it. The steps `Attack` and `Learnt` are computed here.
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

# signal(arrays, mask): a value `(k, ...)` of one model for each of the k samples of a mask `(n,)`.
Signal = Callable[[Arrays, BoolArray], NDArray]

# Values for samples of which a model has no results; those of other arrays are NaN.
MISSING = {"role": int(Role.UNUSED), "labels": -1}


class Case(NamedTuple):
    """One target and its M shadow models, on the same n samples in the same order.

    `target`: the arrays that the attack reads of the target, by name, `(n, ...)` each. `shadows`:
    the same of each shadow model. `learnt`: the tensors of a trained attack network. For a sample
    of which a model has no results, floats are NaN and the role is `UNUSED`.
    """

    target: Arrays
    shadows: Sequence[Arrays]
    learnt: Arrays

    @property
    def pool(self) -> BoolArray:
        """Mask `(n,)` of the samples to score: members and non-members of the target."""
        return in_pool(self.target["role"])

    @property
    def population(self) -> BoolArray:
        """Mask `(n,)` of RMIA's population: the test samples, or the dev samples if a design has no
        test samples. The target trained on neither.
        """
        role = self.target["role"]
        wanted = Role.TEST if (role == Role.TEST).any() else Role.DEV
        return np.asarray(role == wanted)

    @property
    def shadow_membership(self) -> BoolArray:
        """Whether each shadow model trained on each sample to score, `(M, pool)`."""
        return self.trained_on(self.pool)

    def trained_on(self, mask: BoolArray) -> BoolArray:
        """Whether each shadow model trained on each of the k samples of a mask `(n,)`: `(M, k)`."""
        roles = np.stack([shadow["role"][mask] for shadow in self.shadows])
        return np.asarray(roles == Role.MEMBER)

    def signals_on(self, signal: Signal, mask: BoolArray) -> tuple[NDArray, NDArray]:
        """A signal on the k samples of a mask `(n,)`: of the target `(k, ...)`, and of the shadow
        models `(M, k, ...)`.
        """
        of_shadows = [signal(shadow, mask) for shadow in self.shadows]
        return signal(self.target, mask), np.stack(of_shadows)

    def target_arrays(self, *names: str) -> list[NDArray]:
        """Arrays of the target for the samples to score, `(pool, ...)` each."""
        return [self.target[name][self.pool] for name in names]

    def training_set(self, *names: str) -> tuple[list[NDArray], BoolArray]:
        """What an attack network is trained on: arrays `(K, ...)` and the membership `(K,)`.

        The K rows are the members and non-members of all shadow models, one model after the other.
        """
        columns = []
        for name in ("role", *names):
            rows = [shadow[name][in_pool(shadow["role"])] for shadow in self.shadows]
            columns.append(np.concatenate(rows))
        role, *arrays = columns
        return arrays, np.asarray(role == Role.MEMBER)


class Scored(NamedTuple):
    """Scores `(pool,)`. A sample whose score reaches the threshold is called a member; NaN: the
    attack sets no threshold.
    """

    scores: FloatArray
    threshold: float = np.nan


@generic
def infer(attacker: Attacker, case: Case) -> Scored:
    """Scores of the target's members and non-members. Each attack registers its function."""
    raise TypeError(f"no function is registered with infer for {type(attacker).__name__}")


@generic
def learn(attacker: Attacker, case: Case) -> Arrays:
    """The tensors of an attack network that is trained on `case.shadows`; `case.target` is empty.
    Each trained attack registers its function.
    """
    raise TypeError(f"no function is registered with learn for {type(attacker).__name__}")


def load_results(
    attacker: Attacker,
    states: Sequence[State],
    permuted: int | None = None,
) -> dict[str, Arrays]:
    """Reads the stored results that an attack needs of some networks, aligned by sample on the
    union of all samples. Returns the arrays of each network by its key.

    If two steps of a network have an array of the same name, the first step counts. `permuted`: the
    seed of the permutation null (see `Attack`).
    """
    stored = []
    for state in dict.fromkeys(states):
        for step in attacker.required_steps(state):
            stored.append((state.key, store.read(step.key).arrays))
    indices = [arrays["index"] for _, arrays in stored if "index" in arrays]
    union = np.unique(np.concatenate(indices))
    results: dict[str, Arrays] = {}
    for key, arrays in stored:
        earlier = results.get(key, {})
        results[key] = _aligned(arrays, union) | earlier
    if permuted is not None:
        for arrays in results.values():
            arrays["role"] = _permuted(arrays["role"], permuted)
    return results


def _aligned(arrays: Arrays, union: NDArray) -> Arrays:
    """The arrays of a step, with a row for each sample of `union`. Its own samples are among them;
    both are sorted. A step that has all samples is returned as it is; of another one, arrays that
    have no row for each of its samples are left out.
    """
    if "index" not in arrays:  # a step about the network as a whole
        return arrays
    index = arrays["index"]
    if len(index) == len(union):
        return arrays
    rows = np.searchsorted(union, index)
    aligned = {"index": union}
    for name, array in arrays.items():
        if name != "index" and array.ndim and len(array) == len(index):
            shape = (len(union), *array.shape[1:])
            aligned[name] = np.full(shape, MISSING.get(name, np.nan), array.dtype)
            aligned[name][rows] = array
    return aligned


def _permuted(role: NDArray, seed: int) -> NDArray:
    """Roles `(n,)` with members and non-members permuted. The same seed and pool give the same
    permutation.
    """
    pool = np.flatnonzero(in_pool(role))
    order = np.random.default_rng(seed).permutation(pool)
    permuted = role.copy()
    permuted[pool] = role[order]
    return permuted


@compute.register(Learnt)
def _(step: Learnt, of: Of) -> Arrays:
    results = load_results(step.attacker, step.shadows, step.permuted)
    shadows = [results[shadow.key] for shadow in step.shadows]
    return learn(step.attacker, Case(target={}, shadows=shadows, learnt={}))


@compute.register(Attack)
def _(step: Attack, of: Of) -> Arrays:
    results = load_results(step.attacker, step.states_read, step.permuted)
    cases = [_case(step, target, results) for target in step.targets]
    scored = [infer(step.attacker, case) for case in cases]
    index = np.stack([case.target["index"][case.pool] for case in cases])
    role = np.stack([case.target["role"][case.pool] for case in cases])
    same_pool = (index == index[0]).all()
    return {
        "scores": np.stack([one.scores for one in scored]),
        "member": role == Role.MEMBER,
        "thresholds": np.asarray([one.threshold for one in scored]),
        "index": index[0] if same_pool else index,
    }


def _case(step: Attack, target: State, results: dict[str, Arrays]) -> Case:
    """The case of one target. A trained attack gets its network, other attacks their shadow models."""
    own = results[target.key]
    if step.attacker.is_trained:
        learnt = store.read(step.learnt(target).key)
        return Case(own, shadows=(), learnt=learnt.arrays)
    states = step.shadows_of(target) if step.attacker.uses_shadows else ()
    return Case(own, shadows=[results[state.key] for state in states], learnt={})
