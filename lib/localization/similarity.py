"""Are two networks' features the same up to a rotation of their channels? The control of every feature distance.

Two trainings may number their units differently, and a Euclidean distance then sees a difference where there is none.
Linear CKA does not change when features are rotated; Procrustes takes the best rotation of channels out of the distance
and leaves a residual for each sample. Feature maps are never stored: see `lib.localization.layers`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lib import BadInput
from lib.compute import Arrays, Of, compute, text
from lib.data import augmentation
from lib.data.designs import Role
from lib.data.resident import Resident
from lib.localization.layers import Parts, halved, part_names, pixels, walk
from lib.models import Net
from lib.recipe import Similarity
from lib.training.answers import scoring

BLOCK = 50  # samples among which features are compared for CKA


def similarity(
    a: Net, b: Net, data: Resident, fitted: Tensor, judged: Tensor, seen: NDArray[np.bool_], parts: Parts = "stages"
) -> dict[str, NDArray]:
    """CKA's terms and what the best rotation of channels leaves of the distance, part by part, on plain images.

    `fitted (f,)` and `judged (j,)` are disjoint samples of `data`, on the networks' device; `seen (f + j,)` cuts them,
    in this order, into two groups. Arrays over `part_names(a, parts)`:

    - `hsic (P, blocks, 3)`: the unbiased estimate of HSIC (Song et al. 2012, eq. 5) between a and b, of a with itself
      and of b with itself, linear kernel, in blocks of about 50 samples of one group. Each block's is unbiased, so sums
      over blocks are (Nguyen et al. 2021, eq. 3): `lib.localization.disparity.cka` makes them into debiased CKA.
      `block_seen (blocks,)` is the blocks' group; both halves are in, for nothing is fitted here.
    - `aligned (P, j)`: |(p - mean) - (q - mean) R| / sqrt(d) of judged samples, p and q of shape (pixels, channels), d
      numbers, and their means over samples and pixels. R is the orthogonal matrix that makes the sum of its squares
      least on the *fitted* samples (Schoenemann 1966): fitted to the judged ones it would flatter them. R may reflect,
      hence permute; it does not scale. The head's logits are one pixel.

    Reduced in float64. Raises BadInput where the networks differ in parts or shapes, and on groups below 8 samples.
    """
    names = part_names(a, parts)
    sums: dict[str, list[Any]] = {name: [0, 0, 0, 0] for name in names}
    rotations: dict[str, tuple[Tensor, Tensor, Tensor]] = {}
    terms: list[Tensor] = []
    groups: list[bool] = []
    residuals = np.empty((len(names), len(judged)), np.float32)
    halves = np.split(np.asarray(seen, bool), [len(fitted)])
    with scoring(a), scoring(b):
        for index, group in zip((fitted, judged), halves, strict=True):
            for which, place in _blocks(group):
                column = []
                chosen = index[torch.as_tensor(place)].to(data.device)
                for i, (name, maps) in enumerate(walk((a, b), augmentation.plain(data, chosen), parts)):
                    p, q = (each.double() for each in maps)
                    column.append(_hsic(p.flatten(1), q.flatten(1)))
                    p, q = pixels(p), pixels(q)
                    if index is fitted:
                        more = _moments(p.flatten(0, 1), q.flatten(0, 1))
                        sums[name] = [total + own for total, own in zip(sums[name], more, strict=True)]
                    else:
                        residuals[i, place] = _residual(p, q, *rotations[name]).cpu().numpy()
                terms.append(torch.stack(column))
                groups.append(which)
            if index is fitted:
                rotations = {name: _rotation(*each) for name, each in sums.items()}
    hsic = torch.stack(terms, dim=1).cpu().numpy()
    return {"hsic": hsic, "block_seen": np.array(groups), "aligned": residuals}


def _blocks(group: NDArray[np.bool_]) -> list[tuple[bool, NDArray[np.int64]]]:
    """Places of the samples of each group, in blocks of nearly equal size; an empty group has none."""
    found = []
    for which in (True, False):
        place = np.flatnonzero(group == which)
        if 0 < len(place) < 4:
            raise BadInput(
                "feature similarity needs at least 8 samples of a group, half of them to fit: take a larger pool"
            )
        if len(place):
            found += [(which, block) for block in np.array_split(place, max(1, round(len(place) / BLOCK)))]
    return found


def _hsic(p: Tensor, q: Tensor) -> Tensor:
    """Unbiased HSIC (p, q), (p, p), (q, q) of features `(n, d)` under the linear kernel: `(3,)`."""
    k, m = _centred(p), _centred(q)
    n = len(p)
    return torch.stack([(x * y).sum() for x, y in ((k, m), (k, k), (m, m))]) / (n * (n - 3))


def _centred(features: Tensor) -> Tensor:
    """The Gram matrix without its diagonal, centred so that products of two are unbiased (Szekely & Rizzo 2014)."""
    features = features - features.mean(dim=0)  # changes nothing but the rounding
    gram = features @ features.T
    gram.fill_diagonal_(0)
    n = len(gram)
    rows = gram.sum(dim=1) / (n - 2)
    gram = gram - rows[:, None] - rows + rows.sum() / (n - 1)
    return gram.fill_diagonal_(0)


def _moments(p: Tensor, q: Tensor) -> tuple[int, Tensor, Tensor, Tensor]:
    """What a rotation is fitted to: number of rows `(n, c)`, their sums, and the sum of their products."""
    return len(p), p.sum(0), q.sum(0), q.T @ p


def _rotation(n: int, p: Tensor, q: Tensor, cross: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Means `(c,)` of p and q, and the orthogonal `(c, c)` that turns q best into p."""
    p, q = p / n, q / n
    cross = cross - n * torch.outer(q, p)
    # Directions that no fitted sample used (dead units) have no best rotation: they stay as they are.
    u, _, v = torch.linalg.svd(cross + 1e-9 * torch.linalg.matrix_norm(cross) * torch.eye(len(p)).to(cross))
    return p, q, u @ v


def _residual(p: Tensor, q: Tensor, mean_p: Tensor, mean_q: Tensor, rotation: Tensor) -> Tensor:
    gap = (p - mean_p) - (q - mean_q) @ rotation
    return gap.square().mean(dim=(1, 2)).sqrt()


@compute.register(Similarity)
def _(step: Similarity, of: Of) -> Arrays:
    a, b = of(step.a), of(step.b)
    fitted, judged = halved(np.flatnonzero(a.role == Role.MEMBER), a.training.design.seed)
    both = np.isin(a.index, b.samples(Role.MEMBER).numpy())  # b may use further samples, and have others in between
    halves = torch.as_tensor(a.index[fitted]), torch.as_tensor(a.index[judged])
    seen = both[np.concatenate([fitted, judged])]
    return similarity(a.net, b.net, a.data, *halves, seen, step.parts) | {
        "parts": text(part_names(a.net, step.parts)),
        "index": a.index[judged],
        "seen_a": np.ones(len(judged), bool),
        "seen_b": both[judged],
    }
