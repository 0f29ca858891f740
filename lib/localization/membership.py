"""Is a stage's feature enough to tell members? A membership classifier on what each part sees; beyond PPTP.

PPTP infers from feature distances between two models where membership leaks. This asks one model directly.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lib import BadInput
from lib.audit import BoolArray, FloatArray
from lib.compute import Arrays, Of, compute, text
from lib.data.designs import Role
from lib.data.resident import Resident
from lib.localization.layers import features, halved, mixing, part_names, pixels
from lib.models import Net
from lib.recipe import StageMembership


def membership(
    net: Net, data: Resident, index: Tensor, member: BoolArray, known: BoolArray, dimensions: int = 4096, seed: int = 0
) -> FloatArray:
    """Membership scores `(P, j)` of the j samples that the attacker does not know, over `net.parts()`.

    `index (n,)` are samples of `data`, `member (n,)` tells who is in the training set, and `known (n,)` of whom the
    attacker knows that: members and non-members both. Labels are known of all. It is an attack from within one model,
    because two trainings share no coordinates in which shadows' features could be compared with the target's.

    A sample is described by what does not depend on how units are numbered (`geometry`), in the whole map (wider ones
    mixed down to `dimensions`) and in its mean over pixels, and by its share of active units. A logistic regression
    with squares and products of these (L2, C = 0.1) is fitted to the known samples. Logistic regression on the features
    themselves is no better than chance on a few hundred known samples, even where these few numbers tell members well.
    """
    mix, channels = mixing(dimensions, seed), dict[str, int]()

    def read(name: str, maps: Tensor) -> Tensor:
        pooled = pixels(maps).mean(dim=1)
        channels[name] = pooled.shape[1]
        active = (maps > 0).flatten(1).float().mean(dim=1, keepdim=True)
        return torch.cat([active, pooled, mix(name, maps)], dim=1)

    found = features(net, data, index, read)
    labels = data.labels[index.to(data.device)].cpu().numpy()
    scores = []
    for name in net.parts():
        active, pooled, whole = np.split(found.pop(name), [1, 1 + channels[name]], axis=1)
        described = np.column_stack([active, geometry(pooled, labels, known), geometry(whole, labels, known)])
        scores.append(classified(described, member, known))
    return np.stack(scores)


def geometry(x: NDArray[np.floating], labels: NDArray[np.integer], known: BoolArray) -> FloatArray:
    """Five numbers a sample, `(n, 5)`, that do not change when features `x (n, d)` are rotated.

    Logarithms of its length, of its distance to the centroid of its own class and to the nearest other one, and its
    cosines to its own centroid and to the most similar other one. Centroids are means over known samples, of a known
    sample's own class without itself; a class of which nobody else is known has the mean of all for a centroid.
    """
    x = np.asarray(x, np.float64)
    classes, own = np.unique(labels, return_inverse=True)
    inside = np.eye(len(classes))[own] * known[:, None]
    sums, counts = inside.T @ x, inside.sum(axis=0)
    middle = x[known].mean(axis=0)

    def mean(total: FloatArray, count: FloatArray) -> FloatArray:
        return np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], middle)

    centres, mine = mean(sums, counts), mean(sums[own] - known[:, None] * x, counts[own] - known)
    length, lengths = np.linalg.norm(x, axis=1), np.linalg.norm(centres, axis=1)
    dot = x @ centres.T
    far = np.sqrt(np.maximum(length[:, None] ** 2 + lengths**2 - 2 * dot, 0))
    cosine = dot / np.maximum(length[:, None] * lengths, 1e-12)
    place = (np.arange(len(x)), own)
    far[place], cosine[place] = np.inf, -np.inf
    near = np.linalg.norm(x - mine, axis=1)
    alike = (x * mine).sum(axis=1) / np.maximum(length * np.linalg.norm(mine, axis=1), 1e-12)
    logs = np.log(np.stack([length, near, far.min(axis=1)], axis=1) + 1e-12)
    return np.column_stack([logs, alike, cosine.max(axis=1)])


def classified(described: FloatArray, member: BoolArray, known: BoolArray) -> FloatArray:
    """Log-odds of membership `(j,)` of the samples that are not known, from descriptions `(n, k)`; see `membership`.

    Raises BadInput where members or non-members are missing among the known or among the others.
    """
    if min(len(set(member[which])) for which in (known, ~known)) < 2:
        raise BadInput(
            "telling members needs members and non-members, known ones and others: look at a row that has both"
        )
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    products = PolynomialFeatures(2, include_bias=False)
    machine = make_pipeline(StandardScaler(), products, StandardScaler(), LogisticRegression(C=0.1, max_iter=2000))
    machine.fit(described[known], member[known])
    return np.asarray(machine.decision_function(described[~known]), np.float64)


@compute.register(StageMembership)
def _(step: StageMembership, of: Of) -> Arrays:
    own = of(step.of)
    sides = [np.flatnonzero(own.role == role) for role in (Role.MEMBER, Role.NONMEMBER)]
    if min(map(len, sides)) < 4:
        raise BadInput(
            f"row {own.training.row} has too few non-members to be told from members: take a row that trains on a half"
        )
    halves = zip(*(halved(side, own.training.design.seed) for side in sides), strict=True)
    known, judged = (np.sort(np.concatenate(half)) for half in halves)
    chosen = np.concatenate([known, judged])
    member, told = own.role[chosen] == Role.MEMBER, np.arange(len(chosen)) < len(known)
    index = torch.as_tensor(own.index[chosen])
    return {
        "scores": membership(own.net, own.data, index, member, told, step.dimensions, own.training.seed),
        "member": member[~told],
        "index": own.index[judged],
        "parts": text(part_names(own.net)),
    }
