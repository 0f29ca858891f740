"""What trainings cost: their operations and memory, counted as they run."""

from __future__ import annotations

import numpy as np

from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.lab.training import prepared
from leak_atlas.recipe import Cost
from leak_atlas.training.cost import counted


@compute.register(Cost)
def _(step: Cost, of: Of) -> Arrays:
    """As `leak_atlas.training.cost.counted` gives them, and `epochs` that each training has at
    most."""
    counts = []
    for one in step.of:
        net, given = prepared(one)
        counts.append(counted(net, **given) | {"epochs": one.schedule.epochs})
    return {name: np.array([each[name] for each in counts]) for name in counts[0]}
