"""Which strength of a defence to take, from what its trainer may look at."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lib.audit.rates import auc

__all__ = ["choose"]


def choose(accuracy: ArrayLike, confidence: ArrayLike, member: ArrayLike, slack: float = 0.02) -> dict[str, np.ndarray]:
    """Of the candidates whose accuracy is within ``slack`` of the best one's, the one that leaks least.

    ``accuracy (k,)`` on the dev samples; ``confidence (k, n)`` in the true class, on members (``member (n,)`` Boolean)
    and dev samples: the leak is |AUC - 1/2| of the former against the latter. Two-sided, because a defence may make
    members the *less* confident ones. Of equal leaks the first is taken, so list the weakest defence first. No
    non-member and no test sample is looked at. Returns which one is taken, `chosen ()`, and of each its
    `accuracy (k,)` on dev and its `leak (k,)`. ValueError where shapes do not match or slack is negative.
    """
    right, surety = np.asarray(accuracy, np.float64), np.asarray(confidence, np.float64)
    if right.ndim != 1 or not right.size or surety.shape[:-1] != right.shape or np.isnan(right).any():
        raise ValueError(f"need accuracy (k,) and confidence (k, n), got {right.shape} and {surety.shape}")
    if not slack >= 0:
        raise ValueError(f"slack is an accuracy, at least 0, not {slack}")
    leak = np.abs(auc(surety, member) - 0.5)
    # 0.62 - 0.02 is above 0.6 in floats; accuracies are whole numbers of samples, far more than this apart.
    near = right >= right.max() - slack - 1e-9
    return {"chosen": np.asarray(np.where(near, leak, np.inf).argmin()), "accuracy": right, "leak": leak}
