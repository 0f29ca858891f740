"""Attack networks: a net learns from the shadows' outputs what members look like (Shokri et al.
2017; Nasr et al. 2018, black box; Yuan & Zhang 2022 in `samia`). One net for all classes, as later
evaluations have it; Shokri's original has one for each.

Nets of linear maps train on the CPU, in a second: their kernels are too small for a GPU to gain by.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional as F

from leak_atlas.attacks.case import Case, Scored, infer, learn
from leak_atlas.attacks.shadows import paired
from leak_atlas.audit import FloatArray
from leak_atlas.engine.compute import Arrays
from leak_atlas.engine.digests import generic
from leak_atlas.models.subject import device
from leak_atlas.recipe import Learner, Network


@generic
def build(attacker: Learner, classes: int) -> nn.Module:
    """The net of an attacker: `features` in, one logit of "member" out, `(N, 1)`."""
    raise TypeError(f"nothing says what the net of a {type(attacker).__name__} is")


def features(
    logits: ArrayLike, labels: ArrayLike, attacker: Learner, sensitivity: ArrayLike | None = None
) -> Tensor:
    """What the net sees, float32: the attacker's blocks side by side, ``(N, C)`` each, or the three
    of `top3`.

    ``logits (N, C)``, integer ``labels (N,)`` in 0..C-1, ``sensitivity (N, C)`` where a block is
    made of it; softmax in float64. torch refuses other labels: RuntimeError.
    """
    z = torch.as_tensor(np.asarray(logits, np.float64))
    posterior = z.softmax(dim=1)

    def block(name: str) -> Tensor:
        if name == "top3":
            return F.pad(posterior, (0, max(0, 3 - z.shape[1]))).topk(3, dim=1).values
        if name == "sensitivity":
            return torch.as_tensor(np.asarray(sensitivity, np.float64))
        if name == "label":
            return F.one_hot(torch.as_tensor(np.asarray(labels), dtype=torch.int64), z.shape[1])
        return posterior

    return torch.cat([block(name).float() for name in attacker.blocks], dim=1)


def trained(
    shadows: ArrayLike,
    member: ArrayLike,
    labels: ArrayLike,
    attacker: Learner,
    sensitivity: ArrayLike | None = None,
) -> dict[str, np.ndarray]:
    """The net, tensor by tensor, trained on all that the shadows know, members and non-members of
    all together.

    Logits ``shadows (M, N, C)`` with ``member (M, N)`` and ``labels (N,)``, and ``sensitivity (M,
    N, C)`` where it is asked; NaN = neither a member of that shadow nor a non-member. Cross entropy
    in which both sides weigh the same, or all samples do (`balanced`); the last epoch's net, as
    published. The same seed gives the same bits on one machine with one thread. ValueError where
    shapes do not match or a side is missing.
    """
    (others, inside), theirs = paired(shadows, member), np.asarray(labels)
    if others.ndim != 3 or theirs.shape != others.shape[1:2]:
        raise ValueError(
            f"need shadows (M, N, C) and labels (N,), got {others.shape} and {theirs.shape}"
        )
    known = ~np.isnan(others).any(axis=2)
    moved = None if sensitivity is None else np.asarray(sensitivity)[known]
    where = torch.device(device() if attacker.place == "device" else "cpu")
    x = features(others[known], np.broadcast_to(theirs, inside.shape)[known], attacker, moved).to(
        where
    )
    y = torch.as_tensor(inside[known])
    sides = torch.stack([~y, y]).sum(dim=1)
    if not sides.all():
        raise ValueError("the shadows need at least one member and one non-member")
    each = len(y) / (2 * sides.double()) if attacker.balanced else torch.ones(2)
    weight = each[y.long()].float().to(where)
    truth = y.float().to(where)

    with torch.random.fork_rng(devices=[where] if where.type == "cuda" else []):
        torch.manual_seed(attacker.seed)
        net = build(attacker, others.shape[2])
        if attacker.init == "xavier":
            net.apply(_xavier)
        net.to(where)
        optimizer = _optimizer(attacker, net)
        milestones = [round(share * attacker.epochs) for share in attacker.milestones]
        rate = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones, gamma=0.1)
        for _ in range(attacker.epochs):
            for rows in torch.randperm(len(x)).split(attacker.batch):
                if len(rows) > 1:  # one sample alone has no variance for a BatchNorm
                    optimizer.zero_grad()
                    rows = rows.to(where)
                    logit = net(x[rows])[:, 0]
                    F.binary_cross_entropy_with_logits(logit, truth[rows], weight[rows]).backward()  # type: ignore[no-untyped-call]
                    optimizer.step()
            rate.step()
    return {name: value.cpu().numpy() for name, value in net.state_dict().items()}


def scores(
    net: Mapping[str, np.ndarray],
    logits: ArrayLike,
    labels: ArrayLike,
    attacker: Learner,
    sensitivity: ArrayLike | None = None,
) -> FloatArray:
    """The logit of "member" (a member iff >= 0) ``(N,)`` for samples with ``logits (N, C)`` and
    ``labels (N,)``.
    """
    x = features(logits, labels, attacker, sensitivity)
    with torch.device("meta"):  # no weights are drawn, which would move the global generator
        made = build(attacker, np.shape(logits)[1]).eval()
    made.load_state_dict({name: torch.tensor(array) for name, array in net.items()}, assign=True)
    with torch.inference_mode():
        return np.asarray(made(x)[:, 0].double().numpy())


def _xavier(module: nn.Module) -> None:
    """Xavier's weights for linear maps, not for those of torch's attention: the published code goes
    by the name.
    """
    if type(module) is nn.Linear:
        nn.init.xavier_normal_(module.weight)
        nn.init.zeros_(module.bias)


def _optimizer(attacker: Learner, net: nn.Module) -> torch.optim.Optimizer:
    own = {"lr": attacker.lr, "weight_decay": attacker.weight_decay, "fused": True}
    if attacker.optimizer == "adam":
        return torch.optim.Adam(net.parameters(), **own)  # type: ignore[arg-type]
    return torch.optim.SGD(net.parameters(), momentum=0.9, **own)  # type: ignore[arg-type]


@build.register(Network)
def _(attacker: Network, classes: int) -> nn.Module:
    size = 3 if attacker.inputs == "top3" else classes * len(attacker.blocks)
    dropout = (
        attacker.dropout
        if isinstance(attacker.dropout, tuple)
        else (attacker.dropout,) * len(attacker.hidden)
    )
    layers: list[nn.Module] = [nn.BatchNorm1d(size)] if "sensitivity" in attacker.blocks else []
    for (a, b), share in zip(pairwise((size, *attacker.hidden)), dropout, strict=True):
        layers += [nn.Linear(a, b), nn.ReLU(), nn.Dropout(share)]
    return nn.Sequential(*layers, nn.Linear((size, *attacker.hidden)[-1], 1))


@learn.register(Learner)
def _(attacker: Learner, case: Case) -> Arrays:
    shadows, member, labels = case.known(lambda arrays, which: arrays["logits"][which])
    moved = None
    if "sensitivity" in attacker.blocks:
        moved = case.known(lambda arrays, which: arrays["sensitivity"][which])[0]
    return trained(shadows, member, labels, attacker, moved)


@infer.register(Learner)
def _(attacker: Learner, case: Case) -> Scored:
    pool, moved = case.pool, case.target.get("sensitivity")
    found = (
        case.target["logits"][pool],
        case.target["labels"][pool],
        attacker,
        None if moved is None else moved[pool],
    )
    return Scored(scores(case.learnt, *found), 0.0)
