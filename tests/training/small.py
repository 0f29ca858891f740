"""What tests of trainings share: samples by role, masks, steps and comparisons."""

import contextlib
import copy
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leak_atlas.data.resident import Resident
from leak_atlas.models import Net
from leak_atlas.recipe import Objective, Schedule
from leak_atlas.training import loop
from leak_atlas.training.defences import update_for
from leak_atlas.training.frozen import Frozen, freezing
from leak_atlas.training.graph import Replay
from leak_atlas.training.loop import Trajectory
from leak_atlas.training.update import Batch, Task, Update

# With batches of 16 a last one of 8: in one of 2, BatchNorm makes signs of rounding errors.
MEMBERS = torch.arange(56)
REFERENCE = torch.arange(56, 72)
OTHERS = {"reference": REFERENCE}
SOFT = torch.rand(56, 3, generator=torch.Generator().manual_seed(0)).softmax(1)
RANKING = torch.rand(56, generator=torch.Generator().manual_seed(5))
SHORT = Schedule(3, batch=16, lr=0.05)
STILL = {"momentum": 0.0, "weight_decay": 0.0}  # plain gradient descent

_fit = partial(loop.fit, samples=OTHERS, soft=SOFT, ranking=RANKING)


def trained(
    net: Net,
    data: Resident,
    objective: Objective | None = None,
    schedule: Schedule = SHORT,
    **options: Any,
) -> Trajectory:
    """The training of a copy of the network on the members."""
    return _fit(copy.deepcopy(net), data, MEMBERS, schedule, objective, **{"seed": 1} | options)


def begun(
    net: Net,
    data: Resident,
    objective: Objective,
    schedule: Schedule = SHORT,
    frozen: str | Frozen = "nothing",
    **fields: Any,
) -> Any:
    """The step of a training of the network itself, before its first epoch."""
    roles = {"samples": OTHERS, "soft": SOFT, "ranking": RANKING}
    with contextlib.ExitStack() as stack:
        if isinstance(frozen, str):
            frozen = stack.enter_context(freezing(net, masks(net, frozen)))
        task = Task(net, frozen, data, MEMBERS, schedule, "fp32", 0, **roles)
        return update_for(objective, task._replace(**fields))


def masks(net: Net, frozen: str) -> dict[str, Tensor]:
    """Of nothing, of the first parts with their statistics, or of half of each tensor."""
    generator = torch.Generator().manual_seed(0)
    state = net.state_dict()
    if frozen == "half":
        tensors = {name: value for name, value in state.items() if value.dim()}
        return {n: torch.rand(v.shape, generator=generator) < 0.5 for n, v in tensors.items()}
    first = ("stem", "stage1") if frozen == "parts" else ()
    return whole(state, first)


def whole(state: Mapping[str, Tensor], parts: tuple[str, ...]) -> dict[str, Tensor]:
    """Masks of all tensors of these parts."""
    chosen = {name: value for name, value in state.items() if name.startswith(parts)}
    return {name: torch.ones_like(value, dtype=torch.bool) for name, value in chosen.items()}


def values(net: Net) -> dict[str, Tensor]:
    """A copy of the network's state."""
    return {name: value.clone() for name, value in net.state_dict().items()}


def equal(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def difference(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> float:
    """The largest difference of two states in a value."""
    return max(float((a[name].double() - b[name].double()).abs().max()) for name in a)


def same(a: Trajectory, b: Trajectory) -> bool:
    """Whether two trainings have the same bits."""
    states = a.states.keys() == b.states.keys() and all(
        equal(state, b.states[when]) for when, state in a.states.items()
    )
    return states and all(map(np.array_equal, a.history.values(), b.history.values()))


def rehearsing(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
    """In place of a recording: takes steps, as a recording's end might, and replays by taking them."""
    for batch in batches:
        for _ in range(5):
            step.position.zero_()
            step(*batch)
    return {batch: partial(step, *batch) for batch in batches}
