"""Trainings."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from lib.lab.compute import states
from lib.lab.compute.states import Arrays
from lib.recipe import At, Train

if TYPE_CHECKING:
    import torch


def train(step: Train, asked: list[At]) -> Generator[None, None, dict[str, Arrays]]:
    """Arrays of the training's end (weights, `history/...`) and of each epoch asked of it, by key.

    Pauses after each step, as `lib.training.loop.fit_many` has it.
    """
    from lib.training.loop import training

    net, given = prepared(step)
    trajectory = yield from training(net, **given, wanted=[at.when for at in asked])

    def arrays(when: int | str) -> Arrays:
        if when not in trajectory.states:
            raise ValueError(f"epoch {when} was never reached: the training stopped early, ask for an earlier one")
        return {name: value.detach().cpu().contiguous().numpy() for name, value in trajectory.states[when].items()}

    history = {f"history/{name}": np.asarray(values) for name, values in trajectory.history.items()}
    return {step.key: arrays("last") | history} | {at.key: arrays(at.when) for at in asked}


def prepared(step: Train) -> tuple[Any, dict[str, Any]]:
    """The network as the training finds it, and the arguments of `lib.training.loop.training` that the recipe gives."""
    import torch

    from lib.data.designs import Role
    from lib.data.resident import resident

    role, index, _ = states.table(step)
    net = states.net(step)
    held: dict[str, torch.Tensor] = {}
    if step.parent:
        values, held = states.weights(step.parent)
        net.load_state_dict(values)
    members, dev = (index[role[0] == one] for one in (Role.MEMBER, Role.DEV))
    return net, {
        "data": resident(step.data, states.device()),
        "members": torch.as_tensor(members),
        "schedule": step.schedule,
        "objective": step.objective,
        "seed": step.seed,
        "held": held,
        "dev": torch.as_tensor(dev) if len(dev) else None,
        "precision": step.precision,
    }
