"""Does a stage's feature reveal members? A membership classifier on each stage; beyond PPTP.

PPTP infers from feature distances between two models where membership leaks. This asks one model
directly.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leak_atlas import BadInput
from leak_atlas.audit import BoolArray, FloatArray, IntArray
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident
from leak_atlas.engine.compute import Arrays, Of, compute, text
from leak_atlas.localization.layers import features, pixels, random_halves, random_projection
from leak_atlas.models import Net
from leak_atlas.recipe import StageMembership


def membership_scores(
    net: Net,
    data: Resident,
    index: Tensor,
    member: BoolArray,
    known: BoolArray,
    dimensions: int = 4096,
    seed: int = 0,
) -> FloatArray:
    """Membership scores of the j samples that the attacker does not know, `(P, j)`.

    Of the P stages `net.names()`. `index (n,)` are samples of `data`, `member (n,)` says on which
    of them the network trained, and `known (n,)` for which of them the attacker knows this, members
    and non-members. All labels are known. It is an attack from within one model, because two
    trainings share no coordinates in which shadow models' features could be compared with the
    target's.

    A sample is described by what does not depend on how units are numbered (`geometry`), in the
    whole map (wider ones projected to `dimensions`) and in its mean over pixels, and by its share
    of active units. A logistic regression with squares and products of these (L2, C = 0.1) is
    fitted to the known samples. Logistic regression on the features themselves is no better than
    chance on a few hundred known samples, even where these few numbers reveal members.
    """
    project = random_projection(dimensions, seed)
    channels: dict[str, int] = {}

    def read(name: str, maps: Tensor) -> Tensor:
        """The share of active units, means over pixels, and the (projected) map: `(b, k)`."""
        means = pixels(maps).mean(dim=1)
        channels[name] = means.shape[1]
        active = (maps > 0).flatten(1).float().mean(dim=1, keepdim=True)
        return torch.cat([active, means, project(name, maps)], dim=1)

    rows = features(net, data, index, read)
    labels = data.labels[index.to(data.device)].cpu().numpy()
    scores = []
    for name in net.names():
        ends = [1, 1 + channels[name]]
        active, means, whole = np.split(rows.pop(name), ends, axis=1)
        described = np.column_stack(
            [active, geometry(means, labels, known), geometry(whole, labels, known)]
        )
        scores.append(log_odds(described, member, known))
    return np.stack(scores)


def geometry(
    x: NDArray,
    labels: IntArray,
    known: BoolArray,
) -> FloatArray:
    """Five numbers of each sample, `(n, 5)`, that do not change when features `x (n, d)` are
    rotated.

    Logarithms of its length, of its distance to the centroid of its own class and to the nearest
    other one, and its cosines with its own centroid and with the most similar other one. Centroids
    are means over known samples, of a known sample's own class without itself; a class of which no
    other sample is known has the mean of all known samples for a centroid.
    """
    x = x.astype(np.float64)
    classes, own = np.unique(labels, return_inverse=True)
    in_class = np.eye(len(classes))[own] * known[:, None]  # (n, C)
    sums = in_class.T @ x
    counts = in_class.sum(axis=0)
    mean_of_all = x[known].mean(axis=0)

    def centroids(total: FloatArray, count: FloatArray) -> FloatArray:
        means = total / np.maximum(count, 1)[:, None]
        return np.where(count[:, None] > 0, means, mean_of_all)

    others = centroids(sums, counts)  # of each class, (C, d)
    sums_of_rest = sums[own] - known[:, None] * x
    mine = centroids(sums_of_rest, counts[own] - known)  # of each sample, (n, d)
    length = np.linalg.norm(x, axis=1)
    distance = np.linalg.norm(x - mine, axis=1)
    dot = (x * mine).sum(axis=1)
    cosine = dot / _positive(length * np.linalg.norm(mine, axis=1))

    lengths = np.linalg.norm(others, axis=1)
    dots = x @ others.T  # (n, C), as the next two
    squares = length[:, None] ** 2 + lengths**2 - 2 * dots
    distances = np.sqrt(np.maximum(squares, 0))
    cosines = dots / _positive(length[:, None] * lengths)
    own_class = np.arange(len(x)), own
    distances[own_class] = np.inf
    cosines[own_class] = -np.inf
    nearest = distances.min(axis=1)
    logs = np.log(np.column_stack([length, distance, nearest]) + 1e-12)
    return np.column_stack([logs, cosine, cosines.max(axis=1)])


def _positive(values: FloatArray) -> FloatArray:
    """A divisor that is not 0."""
    return np.maximum(values, 1e-12)


def log_odds(
    described: FloatArray,
    member: BoolArray,
    known: BoolArray,
) -> FloatArray:
    """Log-odds of membership `(j,)` of the samples that are not known, from descriptions `(n, k)`.

    See `membership_scores`.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    machine = make_pipeline(
        StandardScaler(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        LogisticRegression(C=0.1, max_iter=2000),
    )
    machine.fit(described[known], member[known])
    return machine.decision_function(described[~known])


@compute.register(StageMembership)
def _(step: StageMembership, of: Of) -> Arrays:
    subject = of(step.of)
    training = subject.training
    sides = [np.flatnonzero(subject.role == role) for role in (Role.MEMBER, Role.NONMEMBER)]
    if min(map(len, sides)) < 4:
        raise BadInput(
            f"row {training.row} has too few non-members to be told from members: "
            "take a row that trains on a half"
        )
    halves = [random_halves(side, training.design.seed) for side in sides]
    first, second = zip(*halves, strict=True)
    known = np.sort(np.concatenate(first))
    judged = np.sort(np.concatenate(second))
    chosen = np.concatenate([known, judged])
    scores = membership_scores(
        subject.net,
        subject.data,
        torch.as_tensor(subject.index[chosen]),
        subject.role[chosen] == Role.MEMBER,
        np.arange(len(chosen)) < len(known),
        step.dimensions,
        training.seed,
    )
    return {
        "scores": scores,
        "member": subject.role[judged] == Role.MEMBER,
        "index": subject.index[judged],
        "parts": text(subject.net.names()),
    }
