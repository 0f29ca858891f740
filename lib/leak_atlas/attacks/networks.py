"""Attack networks: a net learns to identify members from the shadows' outputs (Shokri et al. 2017;
Nasr et al. 2018, black box; Yuan & Zhang 2022 in `samia`). One net serves all classes, as in later
evaluations; Shokri's original trains one for each class.

Nets of linear maps train on the CPU in a second: their kernels are too small for a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    """The net of an attacker: it maps `features` to one logit of "member", `(N, 1)`."""
    raise TypeError(f"nothing says what the net of a {type(attacker).__name__} is")


def features(
    logits: ArrayLike,
    labels: ArrayLike,
    attacker: Learner,
    sensitivity: ArrayLike | None = None,
) -> Tensor:
    """The net's inputs, float32: the attacker's blocks side by side, ``(N, C)`` each, or ``(N, 3)``
    for `top3`.

    ``logits (N, C)``, integer ``labels (N,)`` in 0..C-1, ``sensitivity (N, C)`` where a block needs
    it; softmax in float64. RuntimeError by torch on other labels.
    """
    z = torch.as_tensor(np.asarray(logits, np.float64))
    posterior = z.softmax(dim=1)
    classes = z.shape[1]
    blocks = []
    for name in attacker.blocks:
        block = posterior
        if name == "top3":
            padded = F.pad(posterior, (0, max(0, 3 - classes)))
            block = padded.topk(3, dim=1).values
        elif name == "sensitivity":
            block = torch.as_tensor(np.asarray(sensitivity, np.float64))
        elif name == "label":
            numbers = torch.as_tensor(np.asarray(labels), dtype=torch.int64)
            block = F.one_hot(numbers, classes)
        blocks.append(block.float())
    return torch.cat(blocks, dim=1)


def trained(
    shadows: ArrayLike,
    member: ArrayLike,
    labels: ArrayLike,
    attacker: Learner,
    sensitivity: ArrayLike | None = None,
) -> dict[str, np.ndarray]:
    """Trains the net on the members and non-members of all shadows together; returns its tensors.

    Logits ``shadows (M, N, C)`` with ``member (M, N)`` and ``labels (N,)``, and ``sensitivity (M,
    N, C)`` where a block needs it; NaN = neither a member of that shadow nor a non-member. The loss
    is cross entropy; members and non-members have the same total weight (`balanced`), or all
    samples the same weight. The last epoch's net counts, as published. The same seed gives the same
    bits on one machine with one thread. ValueError where shapes do not match or one side has no
    sample.
    """
    logits, inside = paired(shadows, member)
    sample_labels = np.asarray(labels)
    if logits.ndim != 3 or sample_labels.shape != logits.shape[1:2]:
        raise ValueError(
            f"need shadows (M, N, C) and labels (N,), got {logits.shape} and {sample_labels.shape}"
        )
    known = ~np.isnan(logits).any(axis=2)
    known_labels = np.broadcast_to(sample_labels, inside.shape)[known]
    known_sensitivity = None if sensitivity is None else np.asarray(sensitivity)[known]
    place = torch.device(device() if attacker.place == "device" else "cpu")
    x = features(logits[known], known_labels, attacker, known_sensitivity).to(place)
    y = torch.as_tensor(inside[known])
    weight = _weights(y, attacker.balanced).to(place)
    net = _fit(attacker, logits.shape[2], x, y.float().to(place), weight)
    return {name: value.cpu().numpy() for name, value in net.state_dict().items()}


def _weights(y: Tensor, balanced: bool) -> Tensor:
    """Weights of samples with membership `y`, float32 with mean 1. ValueError where all are members
    or none is.
    """
    counts = torch.stack([~y, y]).sum(dim=1)
    if not counts.all():
        raise ValueError("the shadows need at least one member and one non-member")
    of_side = len(y) / (2 * counts.double()) if balanced else torch.ones(2)
    return of_side[y.long()].float()


def _fit(
    attacker: Learner,
    classes: int,
    x: Tensor,
    y: Tensor,
    weight: Tensor,
) -> nn.Module:
    """The attacker's net after training on inputs x (N, d), targets and weights (N,)."""
    place = x.device
    with torch.random.fork_rng(devices=[place] if place.type == "cuda" else []):
        torch.manual_seed(attacker.seed)
        net = build(attacker, classes)
        if attacker.init == "xavier":
            net.apply(_xavier)
        net.to(place)
        optimizer = _optimizer(attacker, net)
        milestones = [round(share * attacker.epochs) for share in attacker.milestones]
        rate = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones, gamma=0.1)
        for _ in range(attacker.epochs):
            for drawn in torch.randperm(len(x)).split(attacker.batch):
                if len(drawn) == 1:  # what remains of an epoch; BatchNorm needs two samples
                    continue
                rows = drawn.to(place)
                optimizer.zero_grad()
                logit = net(x[rows])[:, 0]
                loss = F.binary_cross_entropy_with_logits(logit, y[rows], weight[rows])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            rate.step()
    return net


def scores(
    net: Mapping[str, np.ndarray],
    logits: ArrayLike,
    labels: ArrayLike,
    attacker: Learner,
    sensitivity: ArrayLike | None = None,
) -> FloatArray:
    """The net's logit of "member" ``(N,)`` for samples with ``logits (N, C)`` and ``labels (N,)``.
    A logit of at least 0 means member.
    """
    x = features(logits, labels, attacker, sensitivity)
    with torch.device("meta"):  # draws no weights, which would advance the global generator
        module = build(attacker, np.shape(logits)[1]).eval()
    tensors = {name: torch.tensor(array) for name, array in net.items()}
    module.load_state_dict(tensors, assign=True)
    with torch.inference_mode():
        return np.asarray(module(x)[:, 0].double().numpy())


def _xavier(module: nn.Module) -> None:
    """Xavier weights for linear maps except those of torch's attention, whose class has another
    name: the published code selects by name.
    """
    if type(module) is nn.Linear:
        nn.init.xavier_normal_(module.weight)
        nn.init.zeros_(module.bias)


def _optimizer(attacker: Learner, net: nn.Module) -> torch.optim.Optimizer:
    options = {"lr": attacker.lr, "weight_decay": attacker.weight_decay, "fused": True}
    if attacker.optimizer == "adam":
        return torch.optim.Adam(net.parameters(), **options)  # type: ignore[arg-type]
    return torch.optim.SGD(net.parameters(), momentum=0.9, **options)  # type: ignore[arg-type]


@build.register(Network)
def _(attacker: Network, classes: int) -> nn.Module:
    size = 3 if attacker.inputs == "top3" else classes * len(attacker.blocks)
    dropout = attacker.dropout
    if not isinstance(dropout, tuple):
        dropout = (dropout,) * len(attacker.hidden)
    layers: list[nn.Module] = []
    if "sensitivity" in attacker.blocks:
        layers.append(nn.BatchNorm1d(size))
    for width, share in zip(attacker.hidden, dropout, strict=True):
        layers += [nn.Linear(size, width), nn.ReLU(), nn.Dropout(share)]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, 1))


def _logits(arrays: Arrays, which: np.ndarray) -> np.ndarray:
    return arrays["logits"][which]


def _sensitivity(arrays: Arrays, which: np.ndarray) -> np.ndarray:
    return arrays["sensitivity"][which]


@learn.register(Learner)
def _(attacker: Learner, case: Case) -> Arrays:
    shadows, member, labels = case.known(_logits)
    sensitivity = None
    if "sensitivity" in attacker.blocks:
        sensitivity, _, _ = case.known(_sensitivity)
    return trained(shadows, member, labels, attacker, sensitivity)


@infer.register(Learner)
def _(attacker: Learner, case: Case) -> Scored:
    sensitivity = case.target.get("sensitivity")
    pool_scores = scores(
        case.learnt,
        case.target["logits"][case.pool],
        case.target["labels"][case.pool],
        attacker,
        None if sensitivity is None else sensitivity[case.pool],
    )
    return Scored(pool_scores, threshold=0.0)
