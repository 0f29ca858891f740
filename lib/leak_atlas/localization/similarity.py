"""Are two networks' features equal up to a rotation of their channels? The control of distances.

Two trainings may number their units differently, and a Euclidean distance then finds a difference
where there is none. Linear CKA does not change when features are rotated; Procrustes removes the
best rotation of channels from the distance and leaves a residual for each sample. Feature maps are
never stored: see `leak_atlas.localization.layers`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from leak_atlas import BadInput
from leak_atlas.audit import BoolArray, IntArray
from leak_atlas.data import augmentation
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident
from leak_atlas.engine.compute import Arrays, Of, compute, text
from leak_atlas.localization.layers import Parts, pixels, random_halves, walk
from leak_atlas.models import Net
from leak_atlas.recipe import Similarity
from leak_atlas.training.answers import scoring

BLOCK = 50  # samples among which features are compared for CKA
LEAST = 4  # samples of a block


def similarity(
    a: Net,
    b: Net,
    data: Resident,
    fitted: Tensor,
    judged: Tensor,
    seen: BoolArray,
    parts: Parts = "stages",
) -> Arrays:
    """CKA's terms, and the distance that the best rotation of channels leaves, on plain images.

    `fitted (f,)` and `judged (j,)` are disjoint samples of `data`, on the networks' device; `seen
    (f + j,)` divides them, in this order, into two groups. Returns arrays over the P parts
    `a.names(parts)`:

    - `hsic (P, blocks, 3)`: the unbiased estimate of HSIC (Song et al. 2012, eq. 5) between a and
      b, of a with itself and of b with itself, linear kernel, in blocks of about 50 samples of one
      group. Each block's is unbiased, so sums over blocks are (Nguyen et al. 2021, eq. 3):
      `leak_atlas.localization.disparity.cka` makes debiased CKA of them. `block_seen (blocks,)` is
      the blocks' group; both halves are included, since nothing is fitted here.
    - `aligned (P, j)`: |(p - mean) - (q - mean) R| / sqrt(d) of judged samples, p and q of shape
      (pixels, channels), d numbers, and their means over samples and pixels. R is the orthogonal
      matrix that minimises the sum of its squares on the *fitted* samples (Schoenemann 1966):
      fitted to the judged ones it would be too small. R may reflect, hence permute; it does not
      scale. The head's logits are one pixel.

    Reduced in float64. Raises BadInput where the networks differ in parts or shapes, and on groups
    of fewer than 8 samples.
    """
    number = len(a.names(parts))
    hsic: list[list[Tensor]] = [[] for _ in range(number)]
    moments: list[list] = [[0, 0, 0, 0] for _ in range(number)]
    aligned = np.empty((number, len(judged)), np.float32)
    to_fit, to_judge = _blocks(seen[: len(fitted)]), _blocks(seen[len(fitted) :])

    with scoring(a), scoring(b):
        for _, places in to_fit:
            for part, (p, q) in enumerate(_maps(a, b, data, fitted[places], parts)):
                hsic[part].append(_hsic(p, q))
                more = _moments(pixels(p), pixels(q))
                moments[part] = [sum(each) for each in zip(moments[part], more, strict=True)]
        rotations = [_rotation(*totals) for totals in moments]
        for _, places in to_judge:
            for part, (p, q) in enumerate(_maps(a, b, data, judged[places], parts)):
                hsic[part].append(_hsic(p, q))
                mean_p, mean_q, rotation = rotations[part]
                gap = (pixels(p) - mean_p) - (pixels(q) - mean_q) @ rotation  # (b, pixels, c)
                aligned[part, places] = gap.square().mean(dim=(1, 2)).sqrt().cpu().numpy()
    terms = torch.stack([torch.stack(blocks) for blocks in hsic])
    return {
        "hsic": terms.cpu().numpy(),
        "block_seen": np.array([in_group for in_group, _ in (*to_fit, *to_judge)]),
        "aligned": aligned,
    }


def _maps(a: Net, b: Net, data: Resident, index: Tensor, parts: Parts) -> Iterator[list[Tensor]]:
    """Yield each part's maps of samples `index (b,)` in both networks, in float64."""
    images = augmentation.plain(data, index.to(data.device))
    for _, maps in walk((a, b), images, parts):
        yield [each.double() for each in maps]


def _blocks(group: BoolArray) -> list[tuple[bool, IntArray]]:
    """Places of the samples of each group, in blocks of nearly equal size."""
    blocks = []
    for in_group in (True, False):
        places = np.flatnonzero(group == in_group)
        if 0 < len(places) < LEAST:
            raise BadInput(
                "feature similarity needs at least 8 samples of a group, half of them to fit: "
                "take a larger pool"
            )
        if len(places):
            number = max(1, round(len(places) / BLOCK))
            blocks += [(in_group, block) for block in np.array_split(places, number)]
    return blocks


def _hsic(p: Tensor, q: Tensor) -> Tensor:
    """Unbiased HSIC (p, q), (p, p), (q, q) of maps `(n, ...)` with the linear kernel: `(3,)`."""
    k, m = _centred_gram(p.flatten(1)), _centred_gram(q.flatten(1))
    n = len(p)
    sums = torch.stack([(k * m).sum(), (k * k).sum(), (m * m).sum()])
    return sums / (n * (n - 3))


def _centred_gram(features: Tensor) -> Tensor:
    """The Gram matrix without its diagonal, centred so that products of two are unbiased.

    Szekely & Rizzo 2014.
    """
    features = features - features.mean(dim=0)  # changes nothing but the rounding
    gram = (features @ features.T).fill_diagonal_(0)
    n = len(gram)
    rows = gram.sum(dim=1) / (n - 2)
    gram = gram - rows[:, None] - rows + rows.sum() / (n - 1)
    return gram.fill_diagonal_(0)


def _moments(p: Tensor, q: Tensor) -> tuple[int, Tensor, Tensor, Tensor]:
    """What a rotation is fitted to: number of rows `(c,)`, their sums, and sum of products."""
    p, q = p.flatten(0, 1), q.flatten(0, 1)
    return len(p), p.sum(0), q.sum(0), q.T @ p


def _rotation(
    n: int,
    p: Tensor,
    q: Tensor,
    cross: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Means `(c,)` of p and q, and the orthogonal `(c, c)` that turns q best into p."""
    mean_p, mean_q = p / n, q / n
    cross = cross - n * torch.outer(mean_q, mean_p)
    # Directions that no fitted sample used (dead units) have no best rotation: they are kept.
    size = torch.linalg.matrix_norm(cross)
    ridge = 1e-9 * size * torch.eye(len(p)).to(cross)
    u, _, v = torch.linalg.svd(cross + ridge)
    return mean_p, mean_q, u @ v


@compute.register(Similarity)
def _(step: Similarity, of: Of) -> Arrays:
    a, b = of(step.a), of(step.b)
    members = np.flatnonzero(a.role == Role.MEMBER)
    fitted, judged = random_halves(members, a.training.design.seed)
    # b may use further samples, and have others in between.
    seen_b = np.isin(a.index, b.samples(Role.MEMBER).numpy())
    arrays = similarity(
        a.net,
        b.net,
        a.data,
        torch.as_tensor(a.index[fitted]),
        torch.as_tensor(a.index[judged]),
        seen_b[np.concatenate([fitted, judged])],
        step.parts,
    )
    return {
        **arrays,
        "parts": text(a.net.names(step.parts)),
        "index": a.index[judged],
        "seen_a": np.ones(len(judged), bool),
        "seen_b": seen_b[judged],
    }
