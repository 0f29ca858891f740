"""Where membership leakage sits: in which layers, weights and samples, and when during training.

Modules without torch read stored results: `disparity`, `probes`, `score_maps`, `samples`,
`difficulty`, `divergence`, `over_time`, `trajectories`, `prediction`. `samples` also computes
rankings from them. The other modules compute results from networks.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray]  # what a step has stored, by name


def places_of(samples: NDArray, known: NDArray) -> NDArray:
    """The position of each of `samples` in the ascending `known`. ValueError if one is missing."""
    place = np.minimum(np.searchsorted(known, samples), len(known) - 1)
    if not np.array_equal(known[place], samples):
        raise ValueError("some samples are not among the known ones")
    return place
