"""Feature distances between two networks, part by part, and linear probes of each stage.

Feature maps are never stored. Two networks compute their parts side by side; each part's maps are
reduced to a few numbers a sample and are freed before the next ones exist. (2,000 images through a
ResNet-18 of width 16 have 0.8 GB of maps; a full-width one on TinyImageNet has terabytes.)
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from leak_atlas import BadInput
from leak_atlas.audit import FloatArray, IntArray
from leak_atlas.data import augmentation
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident
from leak_atlas.engine.compute import Arrays, Of, compute, text
from leak_atlas.models import Net
from leak_atlas.recipe import Distance, StageProbe
from leak_atlas.recipe.readings import Parts
from leak_atlas.training.answers import scoring

Features = dict[str, NDArray[np.float32]]  # rows of features `(n, k)` of each part
# from a part's name and its maps `(b, ...)` to rows `(b, k)`
Read = Callable[[str, Tensor], Tensor]

BATCH = 100  # images that are in the networks at once
# Feature values that are reduced at once: on a CPU, what stays in a core's cache takes half the
# time; elsewhere each call costs more than the memory does.
CHUNK = {"cpu": 2**16}
LARGE_CHUNK = 2**26


# --- walking through networks -------------------------------------------------------------------


def walk(
    nets: tuple[Net, ...],
    images: Tensor,
    parts: Parts,
) -> Iterator[tuple[str, list[Tensor]]]:
    """Yield the name of each part and its output in every network, one part after another.

    Raises BadInput if the networks have different parts, or maps of different shapes.
    """
    if len({net.names(parts) for net in nets}) > 1:
        raise BadInput("features are compared of two networks with the same parts")
    walks = [net.features(images, parts) for net in nets]
    for steps in zip(*walks, strict=True):
        names, maps = zip(*steps, strict=True)
        shapes = {tuple(each.shape[1:]) for each in maps}
        if len(shapes) > 1:
            listed = " and ".join(map(str, shapes))
            raise BadInput(f"features are compared of maps of one shape, not {listed}")
        yield names[0], list(maps)


def pixels(maps: Tensor) -> Tensor:
    """Maps of images `(n, c, h, w)`, tokens `(n, t, c)` or rows `(n, c)` as `(n, pixels, c)`."""
    if maps.ndim == 4:
        return maps.flatten(2).transpose(1, 2)
    return maps if maps.ndim == 3 else maps[:, None]


def features(
    net: Net,
    data: Resident,
    index: Tensor,
    read: Read,
) -> Features:
    """What `read` makes of each stage's maps of plain images `index (n,)`: rows `(n, k)`."""
    rows: dict[str, list[NDArray]] = {name: [] for name in net.names()}
    with scoring(net):
        for chosen in index.to(data.device).split(BATCH):
            images = augmentation.plain(data, chosen)
            for name, (maps,) in walk((net,), images, "stages"):
                of_batch = read(name, maps)
                rows[name].append(of_batch.cpu().numpy())
    return {name: np.concatenate(batches) for name, batches in rows.items()}


# --- feature distances --------------------------------------------------------------------------


def distances(
    a: Net,
    b: Net,
    data: Resident,
    index: Tensor,
    parts: Parts = "stages",
) -> Features:
    """Distances between two networks' features of the same plain images (PPTP, section 3.2).

    For samples `index (n,)` of `data`, on the networks' device. Returns four arrays `(P, n)` over
    the P parts `a.names(parts)`. With p and q a part's flattened outputs in the two networks (a
    stage's map before pooling; of the head, the logits), d numbers long:

    - `euclidean`: |p - q| / sqrt(d), the paper's distance;
    - `direction`: 1 - cosine(p, q), between 0 and 2; 1 where just one of them is zero, 0 where
      both are;
    - `length_a`, `length_b`: |p| / sqrt(d) and |q| / sqrt(d).

    Features and their products are float32, sums float64. Raises BadInput if the networks have
    different parts.
    """
    batches = []
    with scoring(a), scoring(b):
        for rows in index.to(data.device).split(BATCH):
            walked = walk((a, b), augmentation.plain(data, rows), parts)
            compared = [compare_maps(p, q) for _, (p, q) in walked]
            batches.append(torch.stack(compared))
    table = torch.cat(batches, dim=2).float().cpu().numpy()  # (P, 4, n)
    names = "euclidean", "direction", "length_a", "length_b"
    return {name: table[:, number] for number, name in enumerate(names)}


def compare_maps(p: Tensor, q: Tensor) -> Tensor:
    """Distance, 1 - cosine and both lengths `(4, b)`, in float64, of feature maps `(b, ...)`."""
    d = p[0].numel()
    samples = max(1, CHUNK.get(p.device.type, LARGE_CHUNK) // d)
    chunks = zip(p.split(samples), q.split(samples), strict=True)
    products = [_products(*pair) for pair in chunks]
    gap2, dot, p2, q2 = torch.cat(products, dim=1)
    # Of equal maps this is p2 to the bit, so that their direction is 0 and not 1e-16.
    product = root(p2 * q2)
    cosine = dot / product.clamp_min(torch.finfo(product.dtype).tiny)
    one_is_zero = (p2 != q2).double()
    direction = torch.where(product > 0, 1 - cosine, one_is_zero)
    distance = root(gap2 / d)
    length_p = root(p2 / d)
    length_q = root(q2 / d)
    return torch.stack([distance, direction.clamp(0, 2), length_p, length_q])


def root(x: Tensor) -> Tensor:
    """The square root, rounded correctly: on a CPU, the last bit of torch's depends on the
    processor.
    """
    return x.sqrt() if x.is_cuda else torch.from_numpy(np.sqrt(x.numpy()))


def _products(p: Tensor, q: Tensor) -> Tensor:
    """|p - q|^2, p q, |p|^2 and |q|^2 of each sample, `(4, b)`."""
    # Memory order does not matter to a sum: maps are reduced as they lie, without a flattened copy.
    axes = tuple(range(1, p.ndim))
    gap = p - q
    factors = (gap, gap), (p, q), (p, p), (q, q)
    sums = [(x * y).sum(axes, dtype=torch.float64) for x, y in factors]
    return torch.stack(sums)


@compute.register(Distance)
def _(step: Distance, of: Of) -> Arrays:
    a = of(step.a)
    b = of(step.b)
    index = a.index[a.pool]
    return {
        **distances(a.net, b.net, a.data, torch.as_tensor(index), step.parts),
        "parts": text(a.net.names(step.parts)),
        "index": index,
        "seen_a": a.role[a.pool] == Role.MEMBER,
        "seen_b": np.isin(index, b.samples(Role.MEMBER).numpy()),
    }


# --- linear probes ------------------------------------------------------------------------------


def probe(
    net: Net,
    data: Resident,
    fitted: Tensor,
    held_out: Tensor,
    dimensions: int = 4096,
    seed: int = 0,
) -> FloatArray:
    """Accuracy of a linear SVM on each stage's features of samples `held_out` (PPTP, Fig. 8).

    The SVM is fitted to samples `fitted`. Returns `(P,)` over `net.names()`. The paper names no
    settings; ours, the same for every part: features wider than `dimensions` are projected to that
    many (`random_projection`), standardised by the fitted samples, and scaled so that the mean
    squared norm is 1 whatever the width; squared hinge loss, one class against the rest, C = 1. So
    C means the same strength of regularisation in narrow and in wide parts.
    """
    index = torch.cat([fitted.cpu(), held_out.cpu()])
    rows = features(net, data, index, random_projection(dimensions, seed))
    labels = data.labels.cpu().numpy()[index.numpy()]
    accuracy = []
    for name in net.names():
        accuracy.append(_svm(rows.pop(name), labels, len(fitted), seed, name))
    return np.array(accuracy)


def random_projection(dimensions: int, seed: int) -> Read:
    """Reads maps as rows of features; more than `dimensions` become sums with random signs.

    Each feature enters one of the sums, and each sum has equally many. Inner products are kept in
    the mean, with the same variance of about 2 / dimensions as under a Gaussian projection where no
    single feature dominates. But a Gaussian matrix from a stage's 65,536 features to 4,096 takes
    1 GB and 0.5 GFLOP a sample, more than the forward pass; this takes a permutation.
    """

    @cache
    def draw(width: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Order and signs of the features, `(width,)` each."""
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(width, generator=generator)
        sign = 1 - 2 * torch.randint(2, (width,), generator=generator)
        return order.to(device), sign.to(device, torch.float32)

    def read(name: str, maps: Tensor) -> Tensor:
        flat = maps.flatten(1)
        width = flat.shape[1]
        if width <= dimensions:
            return flat
        order, sign = draw(width, maps.device)
        shuffled = flat.mul(sign)[:, order]
        rows = pad(shuffled, (0, -width % dimensions))
        return rows.view(len(flat), -1, dimensions).sum(dim=1)

    return read


def _svm(
    features: NDArray[np.float32],
    labels: IntArray,
    fitted: int,
    seed: int,
    name: str,
) -> float:
    """Accuracy on the other rows of an SVM that is fitted to the first ones."""
    from sklearn.dummy import DummyClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    spread = features[:fitted].std(axis=0, dtype=np.float64)
    alive = spread > 1e-12  # a constant feature has no information
    if not alive.any():
        majority = DummyClassifier().fit(features[:fitted], labels[:fitted])
        return float(majority.score(features[fitted:], labels[fitted:]))
    features = features[:, alive]
    scale = spread[alive] * np.sqrt(alive.sum())
    rows = (features - features[:fitted].mean(axis=0, dtype=np.float64)) / scale
    machine = LinearSVC(
        C=1.0,
        dual="auto",
        max_iter=5000,
        tol=1e-3,
        random_state=seed,
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        machine.fit(rows[:fitted], labels[:fitted])
    if machine.n_iter_ >= machine.max_iter:
        logger = logging.getLogger(__name__)
        logger.warning("the SVM on %s had not converged after 5,000 passes", name)
    return float(machine.score(rows[fitted:], labels[fitted:]))


@compute.register(StageProbe)
def _(step: StageProbe, of: Of) -> Arrays:
    subject = of(step.of)
    members = subject.samples(Role.MEMBER)
    tests = subject.samples(Role.TEST)
    seed = subject.training.seed
    accuracy = probe(
        subject.net,
        subject.data,
        members,
        tests,
        step.dimensions,
        seed,
    )
    return {"accuracy": accuracy, "parts": text(subject.net.names())}


def random_halves(samples: IntArray, seed: int) -> tuple[IntArray, IntArray]:
    """Two random halves of the samples, each ascending; the same for equal samples and seeds."""
    order = np.random.default_rng(seed).permutation(samples)
    middle = len(samples) // 2
    first = order[:middle]
    second = order[middle:]
    return np.sort(first), np.sort(second)
