"""Attack networks: a net learns to identify members from the shadow models' outputs (Shokri et al.
2017; Nasr et al. 2018, black box; Yuan & Zhang 2022 in `samia`). One net serves all classes, as in
later evaluations; Shokri's original trains one for each class.

Nets of linear maps train on the CPU in a second: their kernels are too small for a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from leak_atlas.attacks.case import Case, Scored, infer, learn
from leak_atlas.audit import BoolArray, FloatArray
from leak_atlas.engine.compute import Arrays
from leak_atlas.engine.digests import generic
from leak_atlas.models.subject import device
from leak_atlas.recipe import Learner, Network

CPU = torch.device("cpu")


@generic
def build(attacker: Learner, classes: int) -> nn.Module:
    """The net of an attacker: it maps `features` to one logit of "member", `(N, 1)`."""
    raise TypeError(f"no function is registered with build for {type(attacker).__name__}")


def reads(attacker: Learner) -> tuple[str, ...]:
    """Names of the arrays that `features` takes, in its order."""
    if "sensitivity" in attacker.input_names:
        return "logits", "labels", "sensitivity"
    return "logits", "labels"


def features(
    attacker: Learner,
    logits: NDArray,
    labels: NDArray,
    sensitivity: NDArray | None = None,
) -> Tensor:
    """The net's inputs ``(N, d)``, float32: what the attacker's `inputs` name, side by side.

    ``logits (N, C)``, integer ``labels (N,)`` in 0..C-1, ``sensitivity (N, C)``. The posterior
    (softmax in float64), the sensitivity and the label's one-hot have C columns each; `top3` has
    three, the largest posteriors, falling.
    """
    posterior = torch.as_tensor(logits, dtype=torch.float64).softmax(dim=1)
    classes = logits.shape[1]
    columns = {"posterior": posterior}
    if "top3" in attacker.input_names:
        padded = F.pad(posterior, (0, max(0, 3 - classes)))
        columns["top3"] = padded.topk(3, dim=1).values
    if sensitivity is not None:
        columns["sensitivity"] = torch.as_tensor(sensitivity)
    columns["label"] = F.one_hot(torch.as_tensor(labels, dtype=torch.int64), classes)
    return torch.cat([columns[name].float() for name in attacker.input_names], dim=1)


def trained(attacker: Learner, member: BoolArray, *arrays: NDArray) -> Arrays:
    """Trains the net on samples of all shadow models together; returns its tensors.

    Membership ``member (K,)``, and the arrays of `reads`, ``(K, ...)`` each. The loss is cross
    entropy; members and non-members have the same total weight (`balanced`), or all samples the
    same weight. The last epoch's net counts, as published. The same seed gives the same bits on one
    machine with one thread. Raises ValueError if one side has no sample.
    """
    place = torch.device(device()) if attacker.place == "device" else CPU
    y = torch.as_tensor(member)
    weight = _weights(y, attacker.balanced).to(place)
    x = features(attacker, *arrays).to(place)
    with torch.random.fork_rng(devices=[] if place == CPU else [place]):
        torch.manual_seed(attacker.seed)
        net = build(attacker, arrays[0].shape[1])
        if attacker.init == "xavier":
            net.apply(_xavier)
        net.to(place)
        _fit(attacker, net, x, y.float().to(place), weight)
    return {name: value.cpu().numpy() for name, value in net.state_dict().items()}


def _weights(y: Tensor, balanced: bool) -> Tensor:
    """Weights of samples with membership `y (K,)`, float32 with mean 1. Raises ValueError if all
    are members or none is.
    """
    counts = torch.stack([~y, y]).sum(dim=1)
    if not counts.all():
        raise ValueError("the shadow models need at least one member and one non-member")
    of_side = len(y) / (2 * counts.double()) if balanced else torch.ones(2)
    return of_side[y.long()].float()


def _fit(
    attacker: Learner,
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    weight: Tensor,
) -> None:
    """Trains the net on inputs `x (K, d)`, membership `y` and weights `(K,)`."""
    optimizer = _optimizer(attacker, net)
    milestones = [round(share * attacker.epochs) for share in attacker.milestones]
    rate = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones, gamma=0.1)
    for _ in range(attacker.epochs):
        for batch in torch.randperm(len(x)).split(attacker.batch):
            if len(batch) == 1:  # what remains of an epoch; BatchNorm needs two samples
                continue
            rows = batch.to(x.device)
            optimizer.zero_grad()
            logit = net(x[rows])[:, 0]
            loss = F.binary_cross_entropy_with_logits(logit, y[rows], weight[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        rate.step()


def _optimizer(attacker: Learner, net: nn.Module) -> torch.optim.Optimizer:
    options = {"lr": attacker.lr, "weight_decay": attacker.weight_decay, "fused": True}
    if attacker.optimizer == "adam":
        return torch.optim.Adam(net.parameters(), **options)  # type: ignore[arg-type]
    return torch.optim.SGD(net.parameters(), momentum=0.9, **options)  # type: ignore[arg-type]


def _xavier(module: nn.Module) -> None:
    """Xavier weights for linear maps except those of torch's attention, whose class has another
    name: the published code selects by name.
    """
    if type(module) is nn.Linear:
        nn.init.xavier_normal_(module.weight)
        nn.init.zeros_(module.bias)


def scores(
    attacker: Learner,
    net: Mapping[str, NDArray],
    *arrays: NDArray,
) -> FloatArray:
    """The net's logit of "member" ``(N,)`` for samples with the arrays of `reads`, ``(N, ...)``
    each. A logit of at least 0 means member.
    """
    with torch.device("meta"):  # draws no weights, which would advance the global generator
        module = build(attacker, arrays[0].shape[1]).eval()
    tensors = {name: torch.tensor(array) for name, array in net.items()}
    module.load_state_dict(tensors, assign=True)
    with torch.inference_mode():
        logits = module(features(attacker, *arrays))
        return np.asarray(logits[:, 0].double().numpy())


@build.register(Network)
def _(attacker: Network, classes: int) -> nn.Module:
    size = 3 if attacker.inputs == "top3" else classes * len(attacker.input_names)
    dropout = attacker.dropout
    if not isinstance(dropout, tuple):
        dropout = (dropout,) * len(attacker.hidden)
    layers: list[nn.Module] = []
    if "sensitivity" in attacker.input_names:
        layers.append(nn.BatchNorm1d(size))
    for width, share in zip(attacker.hidden, dropout, strict=True):
        layers += [nn.Linear(size, width), nn.ReLU(), nn.Dropout(share)]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, 1))


@learn.register(Learner)
def _(attacker: Learner, case: Case) -> Arrays:
    arrays, member = case.training_set(*reads(attacker))
    return trained(attacker, member, *arrays)


@infer.register(Learner)
def _(attacker: Learner, case: Case) -> Scored:
    arrays = case.target_arrays(*reads(attacker))
    return Scored(scores(attacker, case.learnt, *arrays), threshold=0.0)
