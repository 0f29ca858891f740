"""Where membership leakage sits: in which layers, weights and samples, and when during training.

Modules without torch read stored results: `disparity`, `score_maps`, `samples`, `difficulty`,
`divergence`, `checkpoints`, `trajectories`. The others compute results from networks.
"""

from collections.abc import Mapping

from numpy.typing import NDArray

Arrays = Mapping[str, NDArray]  # what a step has stored, by name
