"""How hard a sample is to one network: the norm of its gradient, and its prediction depth."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from leak_atlas.audit import FloatArray, IntArray
from leak_atlas.data import augmentation
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident
from leak_atlas.engine.compute import Arrays, Of, compute, text
from leak_atlas.localization.difficulty import settled
from leak_atlas.localization.layers import features
from leak_atlas.models import Net, Own
from leak_atlas.recipe import GradientNorm, PredictionDepth
from leak_atlas.training.update import float32

SAMPLES = 32  # most samples whose gradients are in memory at once
NUMBERS = 2**26  # most numbers that these gradients have
PLACES = 4  # most places in height and in width to which a map is averaged


def gradient_norms(
    net: Net,
    data: Resident,
    index: Tensor,
) -> FloatArray:
    """Norm of the gradient of each sample's cross-entropy with respect to all parameters, `(n,)`.

    The samples `index (n,)` are not augmented; the network is in evaluation mode (see
    `GradientNorm`). Gradients are float32, the sum of their squares is float64.
    """
    parameters = {name: value.detach() for name, value in net.named_parameters()}
    buffers = dict(net.named_buffers())
    # functional_call finds modules as attributes, which the methods of an `Own` may hide.
    called = net.module if isinstance(net, Own) else net

    def loss(parameters: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        batch = image[None]
        if isinstance(net, Own):  # as in `Own.forward`
            batch = batch.clone(memory_format=torch.contiguous_format)
        logits = functional_call(called, (parameters, buffers), (batch,))
        return functional.cross_entropy(logits, label[None])

    def squared_norm(image: Tensor, label: Tensor) -> Tensor:
        gradients = grad(loss)(parameters, image, label).values()
        squares = [gradient.square().sum(dtype=torch.float64) for gradient in gradients]
        return torch.stack(squares).sum()

    size = sum(value.numel() for value in parameters.values())
    chunk = max(1, min(SAMPLES, NUMBERS // size))
    squares = []
    with float32():
        for rows in index.to(data.device).split(chunk):
            images = augmentation.plain(data, rows)
            squares.append(vmap(squared_norm)(images, data.labels[rows]))
    return np.sqrt(torch.cat(squares).cpu().numpy())


@compute.register(GradientNorm)
def _(step: GradientNorm, of: Of) -> Arrays:
    subject = of(step.of)
    index = subject.index[subject.pool]
    norms = gradient_norms(subject.net, subject.data, torch.as_tensor(index))
    return {"norm": norms, "index": index}


def pooled_maps(name: str, maps: Tensor) -> Tensor:
    """Maps `(b, ...)` as rows: maps of images averaged to at most 4 x 4 places, tokens to one."""
    if maps.ndim == 4:
        height, width = (min(PLACES, side) for side in maps.shape[2:])
        return functional.adaptive_avg_pool2d(maps, (height, width)).flatten(1)
    return maps.mean(dim=1) if maps.ndim == 3 else maps


def neighbour_votes(
    rows: NDArray,
    voters: IntArray,
    labels: IntArray,
    neighbours: int,
) -> IntArray:
    """The class with most votes of the nearest voters of each of `rows (n, d)`, `(n,)`.

    `voters (m,)` are the rows that vote, `labels (n,)` the classes of all rows. No row votes for
    itself. Of classes with the same number of votes, the one with the smaller sum of distances
    wins, and then the smaller class. Distances are Euclidean, in float64.
    """
    from sklearn.neighbors import KNeighborsClassifier

    centred = rows.astype(np.float64)
    centred -= centred.mean(axis=0)  # distances lose less to rounding
    classifier = KNeighborsClassifier(neighbours, weights=_nearer_first, algorithm="brute")
    classifier.fit(centred[voters], labels[voters])
    votes = classifier.predict(centred)
    votes[voters] = classifier.predict(None)  # the fitted rows, each without its own vote
    return votes


def _nearer_first(distances: FloatArray) -> FloatArray:
    """Weights of votes `(n, neighbours)`: 1 minus half of the vote's share of all distances.

    So distances decide only between classes with the same number of votes.
    """
    total = distances.sum(axis=1, keepdims=True)
    divisor = 2 * np.maximum(total, np.finfo(np.float64).tiny)  # all may be 0
    return 1 - distances / divisor


@compute.register(PredictionDepth)
def _(step: PredictionDepth, of: Of) -> Arrays:
    subject = of(step.of)
    index = subject.index[subject.pool]
    labels = subject.labels[subject.pool]
    members = np.flatnonzero(subject.role[subject.pool] == Role.MEMBER)
    rows = features(subject.net, subject.data, torch.as_tensor(index), pooled_maps)
    parts = subject.net.names()
    votes = np.stack(
        [neighbour_votes(rows[name], members, labels, step.neighbours) for name in parts]
    )
    prediction = rows[parts[-1]].argmax(axis=1)
    depth = settled(votes == prediction)
    return {"depth": depth, "votes": votes, "parts": text(parts), "index": index}
