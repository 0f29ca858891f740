"""Trainings: from a recipe to what the loop needs, and back to arrays."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leak_atlas import BadInput
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.engine.compute import Arrays, compute
from leak_atlas.models import Net
from leak_atlas.models.subject import Subject, packed
from leak_atlas.recipe import At, Signals, State, Train
from leak_atlas.training.answers import logits
from leak_atlas.training.defences import soft_labels
from leak_atlas.training.loop import training

UNREACHED = "an epoch that is asked for was never reached: the training stopped early, ask for an earlier one"


def train(
    step: Train, asked: Sequence[At] = (), read: Sequence[Signals] = ()
) -> Generator[None, None, dict[str, Arrays]]:
    """Arrays of the training's end (weights, `gone/...`, `history/...`), of each epoch asked of it,
    and of what is read off the network at some epochs, whose weights are not kept; by key.

    Pauses after each step, as `leak_atlas.training.loop.fit_many` has it.
    """
    net, given = prepared(step)
    found: dict[str, Arrays] = {}
    twin: Net | None = None

    def look(when: int | str) -> None:
        nonlocal twin
        due = [one for one in read if isinstance(one.of, At) and one.of.when == when]
        if due:
            # A twin with the same memory layout as any loaded network, so that its answers are the
            # same to the bit.
            twin = twin or Subject(step).initial().eval()
            twin.load_state_dict(net.state_dict())
            found.update({one.key: compute(one, lambda state: Subject(state, twin)) for one in due})

    look("init")
    trajectory = yield from training(net, **given, wanted=[at.when for at in asked], on_epoch=look)
    if len(found) < len(read):
        raise ValueError(UNREACHED)
    gone = packed(Subject(step.parent).weights.gone) if step.parent else {}

    def arrays(when: int | str) -> Arrays:
        if when not in trajectory.states:
            raise ValueError(UNREACHED)
        states = trajectory.states[when].items()
        return {name: value.detach().cpu().contiguous().numpy() for name, value in states} | gone

    if step.parent and "epsilon" in trajectory.history:
        # where it goes on from, and what is frozen, may tell of the members
        trajectory.history["epsilon"][:] = np.nan
    history = {f"history/{name}": np.asarray(values) for name, values in trajectory.history.items()}
    return {step.key: arrays("last") | history} | {at.key: arrays(at.when) for at in asked} | found


def prepared(step: Train) -> tuple[Net, dict[str, Any]]:
    """The network as the training finds it, and the arguments of
    `leak_atlas.training.loop.training` that the recipe gives.
    """
    own, before = Subject(step), Subject(step.parent) if step.parent else None
    net = own.initial()
    if before:
        net.load_state_dict(dict(before.weights.values))
    members = own.samples(Role.MEMBER)
    others = {role.name.lower(): own.samples(role) for role in (Role.DEV, Role.REFERENCE)}
    return net, {
        "data": own.data,
        "members": members,
        "schedule": step.schedule,
        "objective": step.objective,
        "seed": step.seed,
        "frozen": before.frozen if before else {},
        "samples": {name: index for name, index in others.items() if len(index)},
        "soft": _soft_labels(step, members) if step.teachers else None,
        "sampling": step.sampling,
        "ranking": _ranking(step, members),
        "precision": step.precision,
    }


def _ranking(step: Train, members: Tensor) -> Tensor | None:
    """The score of each member, `(n,)`, by the step's ranking."""
    if step.ranking is None:
        return None
    arrays = store.read(step.ranking.key).arrays
    place = np.searchsorted(arrays["index"], members.numpy())
    known = arrays["index"][np.minimum(place, len(arrays["index"]) - 1)] == members.numpy()
    if not known.all():
        raise BadInput(
            f"the ranking says nothing of {int((~known).sum())} members: rank the pool that is trained on"
        )
    return torch.from_numpy(arrays["score"][place])


def _soft_labels(step: Train, members: Tensor) -> Tensor:
    """What those teachers that never trained on a member say of it, plain and in float32: mean
    softmax `(n, C)`.
    """
    seen = torch.from_numpy(
        np.stack([_seen(teacher, members.numpy()) for teacher in step.teachers])
    )
    posteriors = torch.full((*seen.shape, step.data.classes), torch.nan)
    for teacher, own, known in zip(step.teachers, posteriors, ~seen, strict=True):
        if known.any():
            subject = Subject(teacher)
            own[known] = logits(subject.net, subject.data, members[known])[0].softmax(dim=1)
    return soft_labels(posteriors, seen)


def _seen(teacher: State, members: NDArray) -> NDArray:
    """Which of `members (n,)` the teacher, or a training before it in its chain, was trained on."""
    seen = np.zeros(len(members), bool)
    state: State | None = teacher
    while state is not None:
        own = Subject(state.training)
        seen |= np.isin(members, own.samples(Role.MEMBER).numpy())
        state = state.training.parent
    return seen
