"""Where membership leakage sits: in which layers, weights and samples, and when during training.

Modules without torch read stored results: `disparity`, `score_maps`, `samples`, `difficulty`,
`divergence`, `over_time`, `trajectories`, `prediction`. The others compute results from networks.
"""

from collections.abc import Mapping

from numpy.typing import NDArray

Arrays = Mapping[str, NDArray]  # what a step has stored, by name
