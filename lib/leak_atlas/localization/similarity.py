"""Are two networks' features equal up to a rotation of their channels? The control of distances.

Two trainings may number their units differently, and a Euclidean distance then finds a difference
where there is none. Linear CKA does not change when features are rotated; Procrustes removes the
best rotation of channels from the distance and leaves a residual for each sample. Feature maps are
never stored: see `leak_atlas.localization.layers`.
"""

from __future__ import annotations

from collections.abc import Callable

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
      the
      blocks' group; both halves are included, since nothing is fitted here.
    - `aligned (P, j)`: |(p - mean) - (q - mean) R| / sqrt(d) of judged samples, p and q of shape
      (pixels, channels), d numbers, and their means over samples and pixels. R is the orthogonal
      matrix that minimises the sum of its squares on the *fitted* samples (Schoenemann 1966):
      fitted to the judged ones it would be too small. R may reflect, hence permute; it does not
      scale. The head's logits are one pixel.

    Reduced in float64. Raises BadInput where the networks differ in parts or shapes, and on groups
    of fewer than 8 samples.
    """
    names = a.names(parts)
    hsic: list[list[Tensor]] = [[] for _ in names]
    block_seen: list[bool] = []
    moments: list[list] = [[0, 0, 0, 0] for _ in names]
    aligned = np.empty((len(names), len(judged)), np.float32)

    def sweep(
        index: Tensor,
        group: BoolArray,
        use: Callable[..., None],
    ) -> None:
        """Add terms of HSIC, and give each part's maps `(b, pixels, c)` of each block to `use`."""
        for in_group, places in _blocks(group):
            block_seen.append(in_group)
            chosen = index[torch.as_tensor(places)]
            images = augmentation.plain(data, chosen.to(data.device))
            for part, (_, maps) in enumerate(walk((a, b), images, parts)):
                p, q = (each.double() for each in maps)
                hsic[part].append(_hsic(p.flatten(1), q.flatten(1)))
                use(part, places, pixels(p), pixels(q))

    def fit(
        part: int,
        places: IntArray,
        p: Tensor,
        q: Tensor,
    ) -> None:
        more = _moments(p.flatten(0, 1), q.flatten(0, 1))
        both = zip(moments[part], more, strict=True)
        moments[part] = [total + own for total, own in both]

    def judge(
        part: int,
        places: IntArray,
        p: Tensor,
        q: Tensor,
    ) -> None:
        mean_p, mean_q, rotation = rotations[part]
        gap = (p - mean_p) - (q - mean_q) @ rotation  # (b, pixels, c)
        residual = gap.square().mean(dim=(1, 2)).sqrt()
        aligned[part, places] = residual.cpu().numpy()

    with scoring(a), scoring(b):
        sweep(fitted, seen[: len(fitted)], fit)
        rotations = [_rotation(*totals) for totals in moments]
        sweep(judged, seen[len(fitted) :], judge)
    terms = torch.stack([torch.stack(blocks) for blocks in hsic])
    return {
        "hsic": terms.cpu().numpy(),
        "block_seen": np.array(block_seen),
        "aligned": aligned,
    }


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
    """Unbiased HSIC (p, q), (p, p), (q, q) of features `(n, d)` with the linear kernel: `(3,)`."""
    k, m = _centred_gram(p), _centred_gram(q)
    n = len(p)
    sums = [
        (k * m).sum(),
        (k * k).sum(),
        (m * m).sum(),
    ]
    return torch.stack(sums) / (n * (n - 3))


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
    """What a rotation is fitted to: number of rows `(n, c)`, their sums, and sum of products."""
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
