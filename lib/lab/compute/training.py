"""Trainings."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

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
    import torch

    from lib.data.designs import Role
    from lib.data.resident import resident
    from lib.training.loop import training

    role, index, _ = states.table(step)
    net = states.net(step)
    held: dict[str, torch.Tensor] = {}
    if step.parent:
        values, held = states.weights(step.parent)
        net.load_state_dict(values)
    dev = index[role[0] == Role.DEV]
    wanted = [at.when for at in asked]
    trajectory = yield from training(
        net,
        resident(step.data, states.device()),
        torch.as_tensor(index[role[0] == Role.MEMBER]),
        step.schedule,
        step.objective,
        seed=step.seed,
        held=held,
        dev=torch.as_tensor(dev) if len(dev) else None,
        precision=step.precision,
        wanted=wanted,
    )

    def arrays(when: int | str) -> Arrays:
        if when not in trajectory.states:
            raise ValueError(f"epoch {when} was never reached: the training stopped early, ask for an earlier one")
        return {name: value.detach().cpu().contiguous().numpy() for name, value in trajectory.states[when].items()}

    history = {f"history/{name}": np.asarray(values) for name, values in trajectory.history.items()}
    return {step.key: arrays("last") | history} | {at.key: arrays(at.when) for at in asked}
