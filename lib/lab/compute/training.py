"""Trainings."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from lib.lab.compute import states
from lib.lab.compute.states import Arrays
from lib.recipe import At, State, Train

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

    if step.parent and "epsilon" in trajectory.history:
        trajectory.history["epsilon"][:] = np.nan  # where it goes on from, and what is held, may tell of the members
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
    members, dev, reference = (index[role[0] == one] for one in (Role.MEMBER, Role.DEV, Role.REFERENCE))
    return net, {
        "data": resident(step.data, states.device()),
        "members": torch.as_tensor(members),
        "schedule": step.schedule,
        "objective": step.objective,
        "seed": step.seed,
        "held": held,
        "samples": {name: torch.as_tensor(own) for name, own in (("dev", dev), ("reference", reference)) if len(own)},
        "soft": _soft_labels(step, members) if step.teachers else None,
        "precision": step.precision,
    }


def _soft_labels(step: Train, members: np.ndarray) -> torch.Tensor:
    """What those teachers that never trained on a member say of it, plain and in float32: mean softmax `(n, C)`."""
    import torch

    from lib.data.registry import find
    from lib.data.resident import resident
    from lib.training.defences import soft_labels
    from lib.training.signals import logits

    data = resident(step.data, states.device())
    seen = torch.from_numpy(np.stack([_seen(teacher, members) for teacher in step.teachers]))
    posteriors = torch.full((*seen.shape, len(find(step.data.name).classes)), torch.nan)
    for teacher, own, known in zip(step.teachers, posteriors, ~seen, strict=True):
        if known.any():
            own[known] = logits(states.load(teacher), data, torch.as_tensor(members)[known])[0].softmax(dim=1)
    return soft_labels(posteriors, seen)


def _seen(teacher: State, members: np.ndarray) -> np.ndarray:
    """Which of `members (n,)` the teacher, or a training before it in its chain, was trained on."""
    from lib.data.designs import Role

    seen = np.zeros(len(members), bool)
    state: State | None = teacher
    while state is not None:
        role, index, _ = states.table(state.training)
        seen |= np.isin(members, index[role[0] == Role.MEMBER])
        state = state.training.parent
    return seen
