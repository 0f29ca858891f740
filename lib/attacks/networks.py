"""Attack networks: a small net learns from the shadows' outputs what members look like (Shokri et al. 2017; Nasr et al.
2018, black box). One net for all classes, as later evaluations have it; Shokri's original has one for each.

These nets train on the CPU, in a second: their kernels are too small for a GPU to gain by.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional as F

from lib.attacks.case import Case, Scored, infer, learn
from lib.attacks.shadows import paired
from lib.audit import FloatArray
from lib.compute import Arrays
from lib.recipe import Network

Inputs = Literal["posterior", "posterior_label"]


def features(logits: ArrayLike, labels: ArrayLike, inputs: Inputs) -> Tensor:
    """What the net sees, float32: posteriors ``(N, C)``, then the label's one-hot ``(N, 2C)`` where it is asked.

    ``logits (N, C)``, integer ``labels (N,)`` in 0..C-1; softmax in float64. torch refuses other labels: RuntimeError.
    """
    z = torch.as_tensor(np.asarray(logits, np.float64))
    posterior = z.softmax(dim=1).float()
    if inputs == "posterior":
        return posterior
    label = torch.as_tensor(np.asarray(labels), dtype=torch.int64)
    return torch.cat([posterior, F.one_hot(label, z.shape[1]).float()], dim=1)


def trained(shadows: ArrayLike, member: ArrayLike, labels: ArrayLike, attacker: Network) -> dict[str, np.ndarray]:
    """The net, tensor by tensor, trained on all that the shadows know, members and non-members of all together.

    Logits ``shadows (M, N, C)`` with ``member (M, N)`` and ``labels (N,)``; NaN = neither a member of that shadow nor a
    non-member. ReLU and dropout after each hidden layer, one logit, cross entropy in which both sides weigh the same,
    Adam. The same seed gives the same bits on one machine with one thread. ValueError where shapes do not match or a
    side is missing.
    """
    (others, inside), theirs = paired(shadows, member), np.asarray(labels)
    if others.ndim != 3 or theirs.shape != others.shape[1:2]:
        raise ValueError(f"need shadows (M, N, C) and labels (N,), got {others.shape} and {theirs.shape}")
    known = ~np.isnan(others).any(axis=2)
    x = features(others[known], np.broadcast_to(theirs, inside.shape)[known], attacker.inputs)
    y = torch.as_tensor(inside[known])
    sides = torch.stack([~y, y]).sum(dim=1)
    if not sides.all():
        raise ValueError("the shadows need at least one member and one non-member")
    weight = (len(y) / (2 * sides.double()))[y.long()].float()
    truth = y.float()

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(attacker.seed)
        net = _mlp((x.shape[1], *attacker.hidden), attacker.dropout)
        optimizer = torch.optim.Adam(net.parameters(), attacker.lr, fused=True)
        for _ in range(attacker.epochs):
            for rows in torch.randperm(len(x)).split(attacker.batch):
                optimizer.zero_grad()
                logit = net(x[rows])[:, 0]
                F.binary_cross_entropy_with_logits(logit, truth[rows], weight[rows]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
    return {name: value.numpy() for name, value in net.state_dict().items()}


def scores(net: Mapping[str, np.ndarray], logits: ArrayLike, labels: ArrayLike, attacker: Network) -> FloatArray:
    """The logit of "member" (a member iff >= 0) ``(N,)`` for samples with ``logits (N, C)`` and ``labels (N,)``."""
    x = features(logits, labels, attacker.inputs)
    with torch.device("meta"):  # no weights are drawn, which would move the global generator
        made = _mlp((x.shape[1], *attacker.hidden), attacker.dropout).eval()
    made.load_state_dict({name: torch.tensor(array) for name, array in net.items()}, assign=True)
    with torch.inference_mode():
        return np.asarray(made(x)[:, 0].double().numpy())


def _mlp(widths: tuple[int, ...], dropout: float) -> nn.Sequential:
    hidden = [[nn.Linear(a, b), nn.ReLU(), nn.Dropout(dropout)] for a, b in pairwise(widths)]
    return nn.Sequential(*(layer for block in hidden for layer in block), nn.Linear(widths[-1], 1))


@learn.register(Network)
def _(attacker: Network, case: Case) -> Arrays:
    return trained(*case.known(lambda arrays, which: arrays["logits"][which]), attacker)


@infer.register(Network)
def _(attacker: Network, case: Case) -> Scored:
    pool = case.pool
    return Scored(scores(case.learnt, case.target["logits"][pool], case.target["labels"][pool], attacker), 0.0)
