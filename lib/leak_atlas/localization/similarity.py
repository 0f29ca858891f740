"""Are two networks' features equal up to a rotation of their channels? The control of distances.

Two trainings may number their units differently, and a Euclidean distance then finds a difference
where there is none. Procrustes removes the best rotation of channels from the distance and leaves a
residual for each sample. Feature maps are never stored: see `leak_atlas.localization.layers`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leak_atlas.data import augmentation
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident
from leak_atlas.engine.compute import Arrays, Of, compute, text
from leak_atlas.localization.layers import Parts, pixels, random_halves, root, walk
from leak_atlas.models import Net
from leak_atlas.recipe import Similarity
from leak_atlas.training.answers import scoring

BLOCK = 50  # samples whose feature maps are in memory at once


def aligned_distances(
    a: Net,
    b: Net,
    data: Resident,
    fitted: Tensor,
    judged: Tensor,
    parts: Parts = "stages",
) -> NDArray[np.float32]:
    """The distance that the best rotation of channels leaves, on plain images, `(P, j)`.

    Of the P parts `a.names(parts)` and the samples `judged (j,)`: |(p - mean) - (q - mean) R| /
    sqrt(d), with p and q of shape (pixels, channels), d numbers, and their means over samples and
    pixels. R is the orthogonal matrix that minimises the sum of its squares on the samples `fitted
    (f,)` (Schoenemann 1966): fitted to the judged ones it would be too small. R may reflect, hence
    permute; it does not scale. The head's logits are one pixel. Reduced in float64. Raises BadInput
    if the networks differ in parts or shapes.
    """
    moments: list[list] = [[0, 0, 0, 0] for _ in a.names(parts)]
    distances = []
    with scoring(a), scoring(b):
        for rows in fitted.split(BLOCK):
            for part, (p, q) in enumerate(_maps(a, b, data, rows, parts)):
                more = _moments(p, q)
                moments[part] = [sum(each) for each in zip(moments[part], more, strict=True)]
        rotations = [_rotation(*totals) for totals in moments]
        for rows in judged.split(BLOCK):
            maps = _maps(
                a,
                b,
                data,
                rows,
                parts,
            )
            pairs = zip(maps, rotations, strict=True)
            distances.append(torch.stack([_residual(*both, *fit) for both, fit in pairs]))
    return torch.cat(distances, dim=1).float().cpu().numpy()


def _maps(
    a: Net,
    b: Net,
    data: Resident,
    index: Tensor,
    parts: Parts,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each part's maps `(b, pixels, c)` of samples in both networks, in float64."""
    images = augmentation.plain(data, index.to(data.device))
    for _, (p, q) in walk((a, b), images, parts):
        yield pixels(p.double()), pixels(q.double())


def _moments(p: Tensor, q: Tensor) -> tuple[int, Tensor, Tensor, Tensor]:
    """What a rotation is fitted to: the number of rows, the sums of p and of q `(c,)`, and the sum
    of products q^T p `(c, c)`.
    """
    p = p.flatten(0, 1)
    q = q.flatten(0, 1)
    return len(p), p.sum(0), q.sum(0), q.T @ p


def _rotation(
    n: int,
    p: Tensor,
    q: Tensor,
    cross: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Means `(c,)` of p and q, and the orthogonal `(c, c)` that turns q best into p."""
    mean_p = p / n
    mean_q = q / n
    cross = cross - n * torch.outer(mean_q, mean_p)
    # Directions that no fitted sample used (dead units) have no best rotation: they are kept.
    size = torch.linalg.matrix_norm(cross)
    ridge = 1e-9 * size * torch.eye(len(p)).to(cross)
    u, _, v = torch.linalg.svd(cross + ridge)
    return mean_p, mean_q, u @ v


def _residual(
    p: Tensor,
    q: Tensor,
    mean_p: Tensor,
    mean_q: Tensor,
    rotation: Tensor,
) -> Tensor:
    """The distance of each sample after the rotation, `(b,)`."""
    gap = (p - mean_p) - (q - mean_q) @ rotation
    return root(gap.square().mean(dim=(1, 2)))


@compute.register(Similarity)
def _(step: Similarity, of: Of) -> Arrays:
    a = of(step.a)
    b = of(step.b)
    members = np.flatnonzero(a.role == Role.MEMBER)
    fitted, judged = (a.index[half] for half in random_halves(members, a.training.design.seed))
    aligned = aligned_distances(
        a.net,
        b.net,
        a.data,
        torch.as_tensor(fitted),
        torch.as_tensor(judged),
        step.parts,
    )
    return {
        "aligned": aligned,
        "parts": text(a.net.names(step.parts)),
        "index": judged,
        "seen_a": np.ones(len(judged), bool),
        # The design of b may use other samples, so membership is looked up by sample.
        "seen_b": np.isin(judged, b.samples(Role.MEMBER).numpy()),
    }
