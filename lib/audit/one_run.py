"""What a single training can refute."""

from __future__ import annotations

import numpy as np


def one_run_epsilon(canaries: int, guesses: int, correct: int, delta: float = 0.0, error: float = 0.05) -> float:
    """The largest epsilon that one training refutes, at error rate ``error`` (Steinke, Nasr & Jagielski 2023, Thm 5.2).

    ``canaries`` samples were each included by a fair coin of their own; of ``guesses`` guesses made, with their number
    fixed beforehand, ``correct`` were right. 0 where nothing is refuted. Raises ValueError on impossible counts.
    """
    if not 0 <= correct <= guesses <= canaries or not guesses:
        raise ValueError(f"impossible counts: {correct} right of {guesses} guesses about {canaries} canaries")

    from scipy import special

    def surplus(epsilon: float) -> float:
        """How far the chance of so many right guesses, under (epsilon, delta), lies above the error rate."""
        q = special.expit(epsilon)
        # Chance of at least k right of `guesses`, for k = 0 .. correct.
        tail = special.betainc(np.arange(1, correct + 1), guesses - np.arange(correct), q)
        at_least = np.concatenate([[1.0], tail])
        steps = np.arange(1, correct + 1)
        slack = float(np.max((at_least[correct - steps] - at_least[correct]) / steps, initial=0.0))
        return float(at_least[correct]) + 2 * canaries * delta * slack - error

    if surplus(0.0) >= 0:
        return 0.0
    from scipy.optimize import brentq

    return float(brentq(surplus, 0.0, 50.0, xtol=1e-9))
