"""Runs a training: from its recipe to the arguments of the loop, and from its end to arrays."""

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
from leak_atlas.localization import places_of
from leak_atlas.models import Net
from leak_atlas.models.subject import Subject, packed
from leak_atlas.recipe import At, Signals, State, Train
from leak_atlas.training.answers import logits
from leak_atlas.training.defences import soft_labels
from leak_atlas.training.loop import training

UNREACHED = "the training stopped before an epoch that is asked for: ask for an earlier one"


def train(
    step: Train, states: Sequence[At] = (), signals: Sequence[Signals] = ()
) -> Generator[None, None, dict[str, Arrays]]:
    """The arrays of a training, of its states at some epochs and of its signals at some epochs, by
    key.

    The training's arrays are the last weights, `gone/...` (masks of pruned weights) and
    `history/...`. Signals are computed while the network trains; its weights at their epochs are
    not stored. Pauses after each step, as `leak_atlas.training.loop.fit_many` needs it.
    """
    net, arguments = prepared(step)
    computed: dict[str, Arrays] = {}
    twin: Net | None = None

    def compute_signals(when: int | str) -> None:
        nonlocal twin
        due = [one for one in signals if isinstance(one.of, At) and one.of.when == when]
        if due:
            # Its memory layout is that of a loaded network, so its logits are the same to the bit.
            twin = twin or Subject(step).initial().eval()
            twin.load_state_dict(net.state_dict())
            for one in due:
                computed[one.key] = compute(one, lambda state: Subject(state, twin))

    compute_signals("init")
    wanted = [at.when for at in states]
    trajectory = yield from training(net, **arguments, wanted=wanted, on_epoch=compute_signals)
    if len(computed) < len(signals):
        raise BadInput(UNREACHED)
    gone = packed(Subject(step.parent).weights.gone) if step.parent else {}

    def arrays(when: int | str) -> Arrays:
        if when not in trajectory.states:
            raise BadInput(UNREACHED)
        return {name: value.numpy() for name, value in trajectory.states[when].items()} | gone

    if step.parent and "epsilon" in trajectory.history:
        # The guarantee does not hold: the initial weights and the masks may depend on the members.
        trajectory.history["epsilon"][:] = np.nan
    history = {f"history/{name}": np.asarray(values) for name, values in trajectory.history.items()}
    stored = {at.key: arrays(at.when) for at in states}
    return {step.key: arrays("last") | history} | stored | computed


def prepared(step: Train) -> tuple[Net, dict[str, Any]]:
    """The network with the weights that the training starts from, and the recipe's arguments for
    `leak_atlas.training.loop.training`.
    """
    own = Subject(step)
    before = Subject(step.parent) if step.parent else None
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
    ranking = store.read(step.ranking.key).arrays
    asked_for = members.numpy()
    missing = int(np.isin(asked_for, ranking["index"], invert=True).sum())
    if missing:
        raise BadInput(
            f"the ranking says nothing of {missing} members: rank the pool that is trained on"
        )
    return torch.from_numpy(ranking["score"][places_of(asked_for, ranking["index"])])


def _soft_labels(step: Train, members: Tensor) -> Tensor:
    """Mean softmax of the teachers that never trained on a member, `(n, C)`.

    Members are not augmented; the networks compute in float32.
    """
    seen = torch.from_numpy(
        np.stack([_seen(teacher, members.numpy()) for teacher in step.teachers])
    )
    posteriors = torch.full((*seen.shape, step.data.classes), torch.nan)
    for teacher, posterior, unseen in zip(step.teachers, posteriors, ~seen, strict=True):
        if unseen.any():
            subject = Subject(teacher)
            answers = logits(subject.net, subject.data, members[unseen])[0]
            posterior[unseen] = answers.softmax(dim=1)
    return soft_labels(posteriors, seen)


def _seen(teacher: State, members: NDArray) -> NDArray:
    """Whether the teacher, or an earlier training of its chain, trained on `members (n,)`."""
    seen = np.zeros(len(members), bool)
    state: State | None = teacher
    while state is not None:
        own = Subject(state.training)
        seen |= np.isin(members, own.samples(Role.MEMBER).numpy())
        state = state.training.parent
    return seen
