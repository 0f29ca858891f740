"""Which samples a network remembers: memorization scores of a population (numpy)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lib import store
from lib.audit import FloatArray
from lib.compute import Arrays, Of, compute
from lib.data.designs import Role
from lib.recipe import Memorization, ShuffledRanking


def memorization(right: FloatArray, member: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Score and standard error of each sample, `(n,)`: mean of `right (M, n)` over IN models minus that over OUT ones.

    `member (M, n)` says which models trained on it. A side without models makes the score NaN; a side with one model
    has no variance, and makes the error infinite.
    """

    @np.errstate(invalid="ignore", divide="ignore")
    def moments(side: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        number = side.sum(axis=0)
        mean = np.where(side, right, 0.0).sum(axis=0) / number
        squares = np.where(side, np.square(right - mean), 0.0).sum(axis=0)
        return mean, np.where(number > 1, squares / (number - 1) / number, np.inf)

    (mean_in, error_in), (mean_out, error_out) = moments(member), moments(~member)
    return mean_in - mean_out, np.sqrt(error_in + error_out)


@compute.register(Memorization)
def _(step: Memorization, of: Of) -> Arrays:
    read = [store.read(signals.key).arrays for signals in step.parents()]
    roles = np.stack([arrays["role"] for arrays in read])
    pool = np.isin(roles, (Role.MEMBER, Role.NONMEMBER)).all(axis=0)
    if step.measure == "accuracy":
        right = np.stack([arrays["logits"].argmax(axis=1) == arrays["labels"] for arrays in read]).astype(float)
    else:
        right = np.stack([np.exp(-np.logaddexp(0, -arrays["views"][:, 0])) for arrays in read])
    score, error = memorization(right[:, pool], (roles == Role.MEMBER)[:, pool])
    return {"score": score, "error": error, "index": read[0]["index"][pool]}


@compute.register(ShuffledRanking)
def _(step: ShuffledRanking, of: Of) -> Arrays:
    arrays = store.read(step.of.key).arrays
    order = np.random.default_rng(step.seed).permutation(len(arrays["score"]))
    return arrays | {name: arrays[name][order] for name in ("score", "error")}
