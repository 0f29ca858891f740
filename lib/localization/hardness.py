"""How hard a sample is to one network: how far it would move the weights, and how deep its class is decided."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from lib.compute import Arrays, Of, compute, text
from lib.data import augmentation
from lib.data.designs import Role
from lib.data.resident import Resident
from lib.localization.layers import features, part_names
from lib.models import Net
from lib.recipe import GradientNorm, PredictionDepth
from lib.training.update import float32

CHUNK, ROOM = 32, 2**26  # samples whose gradients are there at once, and the most numbers of these
PLACES = 4  # of a map, in height and in width, that features keep
NEAR = 2**22  # distances that are there at once


def gradient_norms(net: Net, data: Resident, index: Tensor) -> NDArray[np.float64]:
    """Norm `(n,)` of the gradient of each plain sample's cross-entropy by all parameters: see `GradientNorm`.

    The network is in evaluation mode. Gradients are float32, the sum of their squares float64.
    """
    parameters = {name: value.detach() for name, value in net.named_parameters()}
    buffers = dict(net.named_buffers())

    def loss(parameters: dict[str, Tensor], x: Tensor, label: Tensor) -> Tensor:
        return functional.cross_entropy(functional_call(net, (parameters, buffers), (x[None],)), label[None])

    def norm(x: Tensor, label: Tensor) -> Tensor:
        found = grad(loss)(parameters, x, label).values()
        return torch.stack([each.square().sum(dtype=torch.float64) for each in found]).sum().sqrt()

    chunk = max(1, min(CHUNK, ROOM // sum(value.numel() for value in parameters.values())))
    with float32():
        parts = index.to(data.device).split(chunk)
        norms = [vmap(norm)(augmentation.plain(data, rows), data.labels[rows]) for rows in parts]
    return torch.cat(norms).cpu().numpy()


def pooled(name: str, maps: Tensor) -> Tensor:
    """Maps `(b, ...)` as rows: of images the means over at most 4 x 4 places, of tokens over all of them."""
    if maps.ndim == 4:
        height, width = (min(PLACES, side) for side in maps.shape[2:])
        return functional.adaptive_avg_pool2d(maps, (height, width)).flatten(1)
    return maps.mean(dim=1) if maps.ndim == 3 else maps


def votes(
    rows: NDArray[np.floating], voters: NDArray[np.integer], labels: NDArray[np.integer], classes: int, neighbours: int
) -> NDArray[np.int64]:
    """What the nearest of rows `voters (m,)` say of each of `rows (n, d)`: `(n,)`, the class that most of them have.

    `labels (n,)` are those of all rows. No row votes for itself. Of classes with equally many votes it is the one whose
    voters are nearer, by the sum of their distances, and then the first. Distances are Euclidean, in float64.
    """
    x = torch.as_tensor(rows, dtype=torch.float64)
    x = x - x.mean(dim=0)  # so that the product below cancels less
    y, square, own = x[voters], x.square().sum(dim=1), torch.as_tensor(labels[voters])
    found = []
    for part in torch.arange(len(x)).split(max(1, NEAR // len(y))):
        far = (square[part, None] + square[voters] - 2 * x[part] @ y.T).clamp_min_(0)
        far[part[:, None] == torch.as_tensor(voters)] = torch.inf
        near, place = far.topk(neighbours, dim=1, largest=False)
        given = functional.one_hot(own[place], classes).double()
        sums = (given * near.sqrt()[:, :, None]).sum(dim=1)
        # What is taken off is at most one half of a vote, so that it only decides between equal numbers.
        total = sums.sum(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
        found.append((given.sum(dim=1) - sums / (2 * total)).argmax(dim=1))
    return torch.cat(found).numpy()


def depths(said: NDArray[np.integer], final: NDArray[np.integer]) -> NDArray[np.int64]:
    """The first of the parts from which on all say what is `final (n,)`, `(n,)`, of what each says, `(P, n)`.

    P where not even the last one does.
    """
    agree = np.asarray(said) == final
    return len(agree) - agree[::-1].cumprod(axis=0).sum(axis=0)


@compute.register(GradientNorm)
def _(step: GradientNorm, of: Of) -> Arrays:
    own = of(step.of)
    index = own.index[own.pool]
    return {"norm": gradient_norms(own.net, own.data, torch.as_tensor(index)), "index": index}


@compute.register(PredictionDepth)
def _(step: PredictionDepth, of: Of) -> Arrays:
    own = of(step.of)
    index, labels = own.index[own.pool], own.labels[own.pool]
    members = np.flatnonzero(own.role[own.pool] == Role.MEMBER)
    rows, parts = features(own.net, own.data, torch.as_tensor(index), pooled), part_names(own.net)
    said = np.stack([votes(rows[name], members, labels, own.training.data.classes, step.neighbours) for name in parts])
    depth = depths(said, rows[parts[-1]].argmax(axis=1))
    return {"depth": depth, "votes": said, "parts": text(parts), "index": index}
