"""What the parts of a network see: feature distances between two networks, and what an SVM reads off each stage.

Feature maps are never stored. Two networks walk through their parts side by side; each part's maps are reduced to a few
numbers a sample and are gone before the next ones exist. (2,000 images through a ResNet-18 of width 16 leave 0.8 GB of
maps; a full-width one on TinyImageNet would leave terabytes.)
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lib import BadInput
from lib.compute import Arrays, Of, compute, text
from lib.data import augmentation
from lib.data.designs import Role
from lib.data.resident import Resident
from lib.models import Net
from lib.recipe import Distance, StageProbe
from lib.training.answers import scoring

Parts = Literal["stages", "blocks"]

BATCH = 100  # images that are in the networks at once
CHUNK = {"cpu": 2**16}  # feature values reduced at once: what stays in a core's cache takes half the time
WHOLE = 2**26  # the same elsewhere, where each call costs more than the memory does


def part_names(net: Net, parts: Parts = "stages") -> tuple[str, ...]:
    """The parts that are looked at, in order of depth: (stem, stage1, ..., head), or (stem, stage1.0, ..., head)."""
    return net.names(parts)


def walk(nets: tuple[Net, ...], images: Tensor, parts: Parts) -> Iterator[tuple[str, list[Tensor]]]:
    """Name and output of each part, in every network at once: only one part's maps exist at a time.

    BadInput where the networks have different parts, or maps of different shapes.
    """
    if len({part_names(net, parts) for net in nets}) > 1:
        raise BadInput("features are compared of two networks with the same parts")
    for steps in zip(*(net.features(images, parts) for net in nets), strict=True):
        maps = [own for _, own in steps]
        if len(shapes := {tuple(each.shape[1:]) for each in maps}) > 1:
            raise BadInput(f"features are compared of maps of one shape, not {' and '.join(map(str, shapes))}")
        yield steps[0][0], maps


def pixels(maps: Tensor) -> Tensor:
    """Images' maps `(n, c, h, w)` as `(n, pixels, c)`; a transformer's are like that, its tokens are the pixels."""
    if maps.ndim == 4:
        return maps.flatten(2).transpose(1, 2)
    return maps if maps.ndim == 3 else maps[:, None]


def distances(
    a: Net, b: Net, data: Resident, index: Tensor, parts: Parts = "stages", batch: int = BATCH
) -> dict[str, NDArray[np.float32]]:
    """How far apart two networks' features of the same plain images lie, part by part (PPTP, section 3.2).

    For samples `index (n,)` of `data`, on the networks' device. Returns four arrays `(P, n)` over `part_names(a,
    parts)`, with p and q the flattened outputs of a part (a stage's map before pooling; of the head, the logits), d
    numbers long:

    - `euclidean`: |p - q| / sqrt(d), the paper's distance;
    - `direction`: 1 - cosine(p, q), between 0 and 2; 1 where just one of them is zero, 0 where both are;
    - `length_a`, `length_b`: |p| / sqrt(d) and |q| / sqrt(d).

    Features and their products are float32, sums float64. Raises BadInput where the networks have different parts.
    """
    columns = []
    with scoring(a), scoring(b):
        for rows in index.to(data.device).split(batch):
            maps_of = walk((a, b), augmentation.plain(data, rows), parts)
            columns.append(torch.stack([_compare(*maps) for _, maps in maps_of]))
        table = torch.cat(columns, dim=2).float().cpu().numpy()
    return dict(zip(("euclidean", "direction", "length_a", "length_b"), table.swapaxes(0, 1), strict=True))


def _compare(p: Tensor, q: Tensor) -> Tensor:
    """Distance, 1 - cosine and both lengths `(4, B)` in float64, of feature maps `(B, ...)`."""
    d = p[0].numel()
    axes = tuple(range(1, p.ndim))
    step = max(1, CHUNK.get(p.device.type, WHOLE) // d)
    # Memory order does not matter to a sum, so the maps are reduced as they lie, without a copy that flattens them.
    sums = []
    for u, v in zip(p.split(step), q.split(step), strict=True):
        gap = u - v
        products = ((gap, gap), (u, v), (u, u), (v, v))
        sums.append(torch.stack([(x * y).sum(axes, dtype=torch.float64) for x, y in products]))
    gap, dot, p2, q2 = torch.cat(sums, dim=1)
    both = (p2 * q2).sqrt()  # of equal maps it is p2 to the bit, so that their direction is 0 and not 1e-16
    turn = torch.where(both > 0, 1 - dot / both.clamp_min(torch.finfo(both.dtype).tiny), (p2 != q2).double())
    return torch.stack([(gap / d).sqrt(), turn.clamp(0, 2), (p2 / d).sqrt(), (q2 / d).sqrt()])


def probe(
    net: Net, data: Resident, fitted: Tensor, held_out: Tensor, dimensions: int = 4096, seed: int = 0
) -> NDArray[np.float64]:
    """Accuracy on samples `held_out` of a linear SVM fitted to each part's features of samples `fitted` (PPTP, Fig. 8).

    Returns `(P,)` over `part_names(net)`. The paper names no settings; ours, the same for every part: features wider
    than `dimensions` are mixed down to that many (`mixing`), standardised by the fitted samples, and scaled so that the
    mean squared norm is 1 whatever the width; squared hinge loss, one class against the rest, C = 1. So C means the
    same strength of regularisation in narrow and in wide parts, and no part has a C of its own to shine by.
    """
    index = torch.cat([fitted.cpu(), held_out.cpu()])
    rows = features(net, data, index, mixing(dimensions, seed))
    y, n = data.labels.cpu().numpy()[index.numpy()], len(fitted)
    return np.array([_svm(rows.pop(name), y, n, seed, name) for name in part_names(net)])


def features(
    net: Net, data: Resident, index: Tensor, read: Callable[[str, Tensor], Tensor]
) -> dict[str, NDArray[np.float32]]:
    """What `read` makes of each part's maps `(b, ...)`, as rows `(b, k)`: `(n, k)` by part for plain images `index`."""
    rows: dict[str, list[NDArray[np.float32]]] = {name: [] for name in part_names(net)}
    with scoring(net):
        for chosen in index.to(data.device).split(BATCH):
            for name, (maps,) in walk((net,), augmentation.plain(data, chosen), "stages"):
                rows[name].append(read(name, maps).cpu().numpy())
    return {name: np.concatenate(each) for name, each in rows.items()}


def mixing(dimensions: int, seed: int) -> Callable[[str, Tensor], Tensor]:
    """Reads maps as rows of features; more than `dimensions` are mixed: sums of features with random signs.

    Each feature enters one of the sums, and each sum has equally many. Inner products are kept in the mean, with the
    same variance of about 2 / dimensions as under a Gaussian projection where no single feature dominates. But a
    Gaussian matrix from a stage's 65,536 features to 4,096 takes 1 GB and 0.5 GFLOP a sample, more than the forward
    pass; this takes a permutation.
    """

    @cache
    def drawn(width: int, device: torch.device) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        order, sign = torch.randperm(width, generator=generator), torch.randint(2, (width,), generator=generator)
        return order.to(device), (1 - 2 * sign).to(device, torch.float32)

    def read(name: str, maps: Tensor) -> Tensor:
        flat = maps.flatten(1)
        width = flat.shape[1]
        if width <= dimensions:
            return flat
        order, sign = drawn(width, maps.device)
        mixed = torch.nn.functional.pad(flat.mul(sign)[:, order], (0, -width % dimensions))
        return mixed.view(len(flat), -1, dimensions).sum(dim=1)

    return read


def _svm(features: NDArray[np.float32], labels: NDArray[np.int64], n: int, seed: int, name: str) -> float:
    """Test accuracy of an SVM fitted to the first n rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    spread = features[:n].std(axis=0, dtype=np.float64)
    alive = spread > 1e-12  # a dead unit says nothing
    if not alive.any():
        values, counts = np.unique(labels[:n], return_counts=True)
        return float(np.mean(labels[n:] == values[counts.argmax()]))
    features = features[:, alive]
    scale = spread[alive] * np.sqrt(alive.sum())
    x = ((features - features[:n].mean(axis=0, dtype=np.float64)) / scale).astype(np.float64)
    machine = LinearSVC(C=1.0, dual="auto", max_iter=5000, tol=1e-3, random_state=seed)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        machine.fit(x[:n], labels[:n])
    if machine.n_iter_ >= machine.max_iter:
        logging.getLogger(__name__).warning("the SVM on %s had not converged after 5,000 passes", name)
    return float(machine.score(x[n:], labels[n:]))


@compute.register(Distance)
def _(step: Distance, of: Of) -> Arrays:
    a, b = of(step.a), of(step.b)
    index = a.index[a.pool]
    return distances(a.net, b.net, a.data, torch.as_tensor(index), step.parts) | {
        "parts": text(part_names(a.net, step.parts)),
        "index": index,
        "seen_a": a.role[a.pool] == Role.MEMBER,
        "seen_b": np.isin(index, b.samples(Role.MEMBER).numpy()),
    }


@compute.register(StageProbe)
def _(step: StageProbe, of: Of) -> Arrays:
    own = of(step.of)
    halves = own.samples(Role.MEMBER), own.samples(Role.TEST)
    accuracy = probe(own.net, own.data, *halves, step.dimensions, own.training.seed)
    return {"accuracy": accuracy, "parts": text(part_names(own.net))}


def halved(samples: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two random halves, each ascending: the same whenever the samples and the seed are."""
    order = np.random.default_rng(seed).permutation(len(samples))
    first, second = np.split(samples[order], [len(samples) // 2])
    return np.sort(first), np.sort(second)
