"""Adding to the library, as README says: each new kind in so many files. Here all of them stand in
this one.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from leak_atlas import BadInput, lab
from leak_atlas.attacks.case import Case, Scored, infer
from leak_atlas.data.designs import Role, Sets, assign
from leak_atlas.engine import store
from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.lab.prices import work
from leak_atlas.localization.scores import Maps, weigh
from leak_atlas.models.subject import Subject, weights
from leak_atlas.recipe import (
    Attacker,
    Count,
    Criterion,
    Data,
    Design,
    Model,
    Objective,
    RandomHalves,
    Schedule,
    Setup,
    Signals,
    State,
    Step,
    Threshold,
)
from leak_atlas.training.objectives import loss

DATA = Data(pixels=8)
MODEL = Model("resnet10", width=2)
SHORT = Schedule(2, 32)


def pool(objective: Objective | None = None, models: int = 6):
    return Setup(DATA, RandomHalves(80, test=40, reference=20), MODEL, SHORT, models).trained(
        objective
    )


# A defence that looks at the batch alone: a class and a loss.


class LogitPenalty(Objective):
    weight: float = 0.1


@loss.register(LogitPenalty)
def _(objective: LogitPenalty, logits: Tensor, labels: Tensor, epoch: Tensor) -> Tensor:
    return functional.cross_entropy(logits, labels) + objective.weight * logits.square().mean()


def test_a_defence_is_a_class_and_a_loss() -> None:
    plain = pool()
    defended = pool(LogitPenalty(5.0))
    inside = plain.rewind("stage4").freeze("stage4").train(SHORT, LogitPenalty(5.0))
    results = lab.realize(
        [one.signals() for one in (plain, defended, inside)], defended.attack(Threshold("loss"))
    )
    sizes = [
        np.abs(results[one.signals()[0]]["logits"]).mean() for one in (plain, defended, inside)
    ]
    assert sizes[1] < sizes[0]
    assert sizes[2] < sizes[0]
    assert work(defended[0]) == work(plain[0])


# An attack with a signal of its own: what it asks of a state is a step; three registered functions.


class Sharpness(Step):
    """How much a state's logits move when a pixel more of brightness is added."""

    of: State

    def operations(self, count: Count) -> float:
        return (
            2
            * count("flops", self.of.training.data, self.of.training.model)
            * self.of.training.design.pool
        )


@compute.register(Sharpness)
def _(step: Sharpness, of: Of) -> Arrays:
    own = of(step.of)
    with torch.inference_mode():
        x = own.data.samples[torch.as_tensor(own.index)].permute(0, 3, 1, 2).float() / 255
        moved = (own.net(x + 1 / 255) - own.net(x)).norm(dim=1)
    return {
        "moved": moved.numpy().astype(np.float64),
        "index": own.index,
        "role": own.role,
        "labels": own.labels,
    }


class Still(Attacker):
    by_sample: ClassVar = True

    def required_steps(self, state: State) -> tuple[Step, ...]:
        return (Sharpness(state),)


@infer.register(Still)
def _(attacker: Still, case: Case) -> Scored:
    mine, others = case.signals_on(lambda arrays, which: arrays["moved"][which], case.pool)
    return Scored(others.mean(axis=0) - mine)


def test_an_attack_with_a_signal_of_its_own() -> None:
    attack = pool().attack(Still())
    results = lab.realize(attack)
    assert results[attack]["scores"].shape == (6, 80)
    assert np.isfinite(results[attack]["scores"]).all()
    assert not any(isinstance(step, Signals) for step in attack.parents())
    assert store.read(Sharpness(pool()[0]).key).meta["operations"] > 0


# A pruner is a criterion: a class and what it makes of weights.


class RowNorm(Criterion):
    """Each weight is worth as much as its whole filter."""


@weigh.register(RowNorm)
def _(criterion: RowNorm, own: Subject, init: Subject | None) -> tuple[Maps, dict[str, Tensor]]:
    tensors = {name: value for name, value in own.weights.values.items() if value.dim() == 4}
    norms = {
        name: value.flatten(1).norm(dim=1)[:, None, None, None] for name, value in tensors.items()
    }
    return {
        name: norms[name].expand_as(value).numpy().copy() for name, value in tensors.items()
    }, {}


def test_a_pruner_is_a_criterion() -> None:
    (dense,) = pool(models=1)
    pruned = dense.prune(0.5, dense.score(RowNorm()), scope="layer").train(SHORT)
    lab.realize(pruned)
    gone = weights(pruned).gone["stage4.0.conv1.weight"]
    whole = gone.flatten(1).float().mean(dim=1)
    assert gone.float().mean() == pytest.approx(0.5, abs=0.05)
    assert ((whole == 0) | (whole == 1)).float().mean() > 0.9


# A design: a class and who plays which role.


class Thirds(Design):
    def members(self, row: int) -> int:
        return self.pool // 3


@assign.register(Thirds)
def _(design: Thirds, row: int, sets: Sets, out: np.ndarray) -> None:
    out[sets.pool] = Role.NONMEMBER
    out[sets.pool[row % 3 :: 3][: design.members(row)]] = Role.MEMBER


def test_a_design_is_a_class_and_a_table() -> None:
    models = Setup(DATA, Thirds(90, test=40), MODEL, SHORT, 2).trained()
    read = lab.realize(models.signals())[models.signals()[0]]
    assert (read["role"] == Role.MEMBER).sum() == 30
    assert (read["role"] == Role.NONMEMBER).sum() == 60


def test_what_nobody_registered_is_told(tmp_path: Path) -> None:
    class Unknown(Step):
        of: State

    with pytest.raises(lab.Failed, match="nothing says what a Unknown computes"):
        lab.realize(Unknown(pool(models=1)[0]))
    with pytest.raises(BadInput, match="data set"):
        Data("no such data set")
