"""Readings of a trained network: logits, and scaled confidences under fixed views."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident
from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.models import Net
from leak_atlas.recipe import Generated, Sensitivity, Signals
from leak_atlas.training.update import float32

# All batches of logits have this size (the last is filled up): libraries choose kernels by the batch
# size, which may change a logit by one part in a million.
BATCH = 250
NOISE = 31  # stream of the draws (`augmentation.generator`)


@contextlib.contextmanager
def scoring(net: Net) -> Iterator[None]:
    """In this context the network is in evaluation mode, without gradients and without TF32."""
    before = net.training
    net.eval()
    try:
        with torch.inference_mode(), float32():
            yield
    finally:
        net.train(before)


def logits(
    net: Net,
    data: Resident,
    index: Tensor,
    views: int = 1,
) -> tuple[Tensor, Tensor]:
    """Logits `(n, C)` float32 of the plain samples `index (n,)`, and scaled confidences `(n,
    views)` float64.

    The scaled confidence log p_y - log(1 - p_y) is z_y - logsumexp of the other logits (Carlini et
    al. 2022), which cannot saturate. Views are those of `leak_atlas.data.augmentation.views`;
    column 0 is the plain image. Both on the CPU.
    """
    crop = max(1, data.shape[0] // 8) if data.pictures else 0  # the papers' 4 pixels at 32
    index = index.to(data.device)
    labels = data.labels[index]
    plain: Tensor | None = None
    columns: list[Tensor] = []
    with scoring(net):
        for dy, dx, flip in augmentation.views(views, crop):
            batches = [net(x) for x in _view(data, index, dy, dx, flip, crop)]
            z = torch.cat(batches)[: len(index)].float()
            plain = z if plain is None else plain
            columns.append(scaled_confidence(z, labels))
    assert plain is not None
    return plain.cpu().clone(), torch.stack(columns, dim=1).cpu().clone()


def _view(
    data: Resident,
    index: Tensor,
    dy: int,
    dx: int,
    flip: bool,
    crop: int,
) -> Iterator[Tensor]:
    """Batches of the samples `index (n,)`, shifted by (dy, dx) and mirrored if `flip`."""
    for rows in _filled(index):
        if not (dy or dx or flip):
            yield augmentation.plain(data, rows)
            continue
        down = torch.full_like(rows, crop + dy)
        right = torch.full_like(rows, crop + dx)
        mirrored = torch.full_like(rows, flip, dtype=torch.bool)
        yield augmentation.gather(data, rows, down, right, mirrored, crop)


def sensitivity(
    net: Net,
    data: Resident,
    index: Tensor,
    queries: int = 10,
    eps: float = 1e-3,
    seed: int = 0,
) -> Tensor:
    """Sensitivity of each posterior to noise on the plain samples `index (n,)`: mean |f(x + eps d)
    - f(x)| / eps (SAMIA, Yuan & Zhang 2022).

    `(n, C)` float64 on the CPU, the mean over `queries` draws d ~ N(0, I) on the network's inputs
    (normalised pixels, bits, numbers). The draws follow `seed` and the sample's number, so they are
    the same in every model and batch. The network runs in float32, softmax and difference in
    float64. At eps = 1e-3 the error on a small trained net, compared with float64 throughout, is
    6e-5 of the value in the median and .1 % at most; float64 takes five times as long.
    """
    index = index.to(data.device)
    batches: list[Tensor] = []
    with scoring(net):
        for rows in _filled(index):
            x = augmentation.plain(data, rows)
            noise = _noise(rows, (queries, *x.shape[1:]), seed).to(x.device)
            posterior = net(x).double().softmax(dim=1)
            changes = []
            for d in noise:
                noisy = net(x + eps * d).double().softmax(dim=1)
                changes.append((noisy - posterior).abs())
            batches.append(torch.stack(changes).mean(dim=0) / eps)
    return torch.cat(batches)[: len(index)].cpu().clone()


def _noise(rows: Tensor, shape: tuple[int, ...], seed: int) -> Tensor:
    """Normal draws `(queries, n, ...)` for the samples `rows (n,)`. Each sample has a generator of
    its own, which draws `shape` (queries, ...).
    """
    draws = []
    for sample in rows.tolist():
        generator = augmentation.generator(seed, sample, NOISE)
        draws.append(torch.randn(shape, generator=generator))
    return torch.stack(draws, dim=1)


def _filled(index: Tensor) -> tuple[Tensor, ...]:
    """Batches of one size; the last is filled up with the first sample."""
    filling = index[:1].expand(-len(index) % BATCH)
    return torch.cat([index, filling]).split(BATCH)


def scaled_confidence(logits: Tensor, labels: Tensor) -> Tensor:
    """z_y - logsumexp of the other logits, `(n,)` float64 from logits `(n, C)`."""
    z = logits.double()
    columns = labels[:, None]
    others = z.scatter(1, columns, -torch.inf)
    return z.gather(1, columns)[:, 0] - others.logsumexp(dim=1)


def accuracy(net: Net, data: Resident, index: Tensor) -> float:
    """The share of samples `index (n,)` that the network classifies correctly."""
    hits = []
    with scoring(net):
        for rows in index.to(data.device).split(BATCH):
            predicted = net(augmentation.plain(data, rows)).argmax(dim=1)
            hits.append((predicted == data.labels[rows]).sum())
    return float(torch.stack(hits).sum()) / len(index)


@compute.register(Signals)
def _(step: Signals, of: Of) -> Arrays:
    """Logits and scaled confidences of all samples, and the accuracy on members, non-members, test
    and dev samples. Without test samples the test accuracy is that on non-members.
    """
    subject = of(step.of)
    index = torch.as_tensor(subject.index)
    plain, views = logits(subject.net, subject.data, index, step.views)
    arrays = {
        "logits": plain.numpy(),
        "views": views.numpy(),
        "labels": subject.labels,
        "index": subject.index,
        "role": subject.role,
    }
    correct = arrays["logits"].argmax(axis=1) == subject.labels
    for role in (Role.MEMBER, Role.NONMEMBER, Role.TEST, Role.DEV):
        of_role = correct[subject.role == role]
        if role == Role.TEST and not len(of_role):
            of_role = correct[subject.role == Role.NONMEMBER]
        if len(of_role):
            arrays[f"accuracy_{role.name.lower()}"] = np.asarray(of_role.mean())
    return arrays


@compute.register(Sensitivity)
def _(step: Sensitivity, of: Of) -> Arrays:
    subject = of(step.of)
    index = subject.index[subject.pool]
    values = sensitivity(
        subject.net,
        subject.data,
        torch.as_tensor(index),
        step.queries,
        step.eps,
        step.seed,
    )
    return {
        "sensitivity": values.float().numpy(),  # float32: seven digits, more than the precision
        "index": index,
        "labels": subject.labels[subject.pool],
        "role": subject.role[subject.pool],
    }


def generated(data: Resident, index: NDArray, seed: int) -> Resident:
    """One generated non-member, on which no network trained, for each sample of `index`, with the
    sample's label (`recipe.Generated`): Sobel edges of images, random bits or random numbers.
    """
    rng = np.random.default_rng(seed)
    rows = torch.as_tensor(index, device=data.device)
    originals = data.samples[rows]
    if data.pictures:
        inputs = _edges(originals.cpu())
    elif originals.dtype == torch.uint8:
        inputs = torch.from_numpy(rng.integers(2, size=originals.shape))
    else:
        inputs = torch.from_numpy(rng.normal(size=originals.shape))
    samples = inputs.to(data.device, originals.dtype).contiguous()
    return replace(data, samples=samples, labels=data.labels[rows], _made={})


def _edges(images: Tensor) -> Tensor:
    """BlindMI's filter of images `(n, H, W, channels)`: the mean of the absolute horizontal and
    vertical Sobel gradients, each at most 255, rounded.
    """
    if min(images.shape[1:3]) < 2:
        raise BadInput("an edge filter needs images of 2 pixels or more")
    smooth = torch.tensor([1.0, 2.0, 1.0])
    rise = torch.tensor([-1.0, 0.0, 1.0])
    across = torch.outer(smooth, rise)
    filters = torch.stack([across, across.T])
    maps = images.float().permute(0, 3, 1, 2)
    padded = functional.pad(maps, (1, 1, 1, 1), "reflect")
    channels = padded.flatten(0, 1)
    gradients = functional.conv2d(channels[:, None], filters[:, None])
    sizes = gradients.abs().clamp(max=255)
    edges = sizes.mean(dim=1).round()
    return edges.unflatten(0, maps.shape[:2]).permute(0, 2, 3, 1)


@compute.register(Generated)
def _(step: Generated, of: Of) -> Arrays:
    subject = of(step.of)
    rng = np.random.default_rng(step.seed)
    index = rng.choice(subject.index[subject.pool], step.count)
    nonmembers = generated(subject.data, index, step.seed)
    z, _ = logits(subject.net, nonmembers, torch.arange(step.count))
    return {
        "generated": z.numpy(),
        "generated_labels": nonmembers.labels.cpu().numpy(),
    }
