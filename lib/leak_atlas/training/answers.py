"""What is read off a trained network: logits, and scaled confidences under fixed views."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from leak_atlas.data import augmentation
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident
from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.models import Net
from leak_atlas.recipe import Generated, Sensitivity, Signals

# Every score of every model is computed in batches of just this size (the last one is filled up),
# because the size may choose another kernel and move a logit by one part in a million.
BATCH = 250
NOISE = 31  # stream of the draws (`augmentation.generator`)


@contextlib.contextmanager
def scoring(net: Net) -> Iterator[None]:
    """Evaluation mode, no gradients, and float32 that is not silently TF32."""
    before = net.training
    net.eval()
    try:
        with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            yield
    finally:
        net.train(before)


def logits(net: Net, data: Resident, index: Tensor, views: int = 1) -> tuple[Tensor, Tensor]:
    """Logits `(n, C)` float32 of the plain samples `index (n,)`, and scaled confidences `(n,
    views)` float64.

    The scaled confidence log p_y - log(1 - p_y) is z_y - logsumexp of the other logits (Carlini et
    al. 2022), which cannot saturate. Views are those of `leak_atlas.data.augmentation.views`;
    column 0 is the plain image. Both on the CPU.
    """
    crop = max(1, data.shape[0] // 8) if data.pictures else 0  # the papers' 4 pixels at 32
    index = index.to(data.device)
    n = len(index)
    first = torch.empty(0)
    columns: list[Tensor] = []
    with scoring(net):
        for dy, dx, flip in augmentation.views(views, crop):
            z = torch.cat([net(x) for x in _views(data, index, dy, dx, flip, crop)])[:n].float()
            first = z if not columns else first
            columns.append(scaled_confidence(z, data.labels[index]))
    return first.cpu().clone(), torch.stack(columns, dim=1).cpu().clone()


def _views(
    data: Resident, index: Tensor, dy: int, dx: int, flip: bool, crop: int
) -> Iterator[Tensor]:
    for rows in _filled(index):
        if not (dy or dx or flip):
            yield augmentation.plain(data, rows)
        else:
            down, right = torch.full_like(rows, crop + dy), torch.full_like(rows, crop + dx)
            yield augmentation.gather(
                data, rows, down, right, torch.full_like(rows, flip, dtype=torch.bool), crop
            )


def sensitivity(
    net: Net, data: Resident, index: Tensor, queries: int = 10, eps: float = 1e-3, seed: int = 0
) -> Tensor:
    """How far noise on the plain samples `index (n,)` moves each posterior: mean |f(x + eps d) -
    f(x)| / eps (SAMIA).

    `(n, C)` float64 on the CPU, over `queries` draws d ~ N(0, I) on what the network reads
    (normalised pixels, bits, numbers). A sample has the same draws in every model and batch: they
    follow `seed` and its number. The network runs in float32, softmax and difference in float64. At
    eps = 1e-3 a small trained net is then 6e-5 of a value off in the median, .1 % at most, against
    float64 throughout, which takes five times as long.
    """
    n, index = len(index), index.to(data.device)
    found: list[Tensor] = []
    with scoring(net):
        for rows in _filled(index):
            x = augmentation.plain(data, rows)
            draws = [augmentation.generator(seed, sample, NOISE) for sample in rows.tolist()]
            noise = torch.stack(
                [torch.randn((queries, *x.shape[1:]), generator=draw) for draw in draws], dim=1
            )
            still = net(x).double().softmax(dim=1)
            moved = [
                (net(x + eps * d).double().softmax(dim=1) - still).abs() for d in noise.to(x.device)
            ]
            found.append(torch.stack(moved).mean(dim=0) / eps)
    return torch.cat(found)[:n].cpu().clone()


def _filled(index: Tensor) -> tuple[Tensor, ...]:
    """Samples in batches of one size; the first fills up the last batch."""
    return torch.cat([index, index[:1].expand(-len(index) % BATCH)]).split(BATCH)


def scaled_confidence(logits: Tensor, labels: Tensor) -> Tensor:
    """z_y - logsumexp of the other logits, `(n,)` float64 from logits `(n, C)`."""
    z = logits.double()
    own = labels[:, None]
    others = z.scatter(1, own, -torch.inf)
    return z.gather(1, own)[:, 0] - others.logsumexp(dim=1)


def accuracy(net: Net, data: Resident, index: Tensor) -> float:
    """The share of samples `index (n,)` that the network classifies rightly."""
    with scoring(net):
        right = [
            (net(augmentation.plain(data, rows)).argmax(dim=1) == data.labels[rows]).sum()
            for rows in index.to(data.device).split(BATCH)
        ]
        return float(torch.stack(right).sum()) / len(index)


@compute.register(Signals)
def _(step: Signals, of: Of) -> Arrays:
    """Accuracies by role too; of a design without test samples the test accuracy is that on
    non-members.
    """
    own = of(step.of)
    plain, views = (
        part.numpy() for part in logits(own.net, own.data, torch.as_tensor(own.index), step.views)
    )
    right = plain.argmax(axis=1) == own.labels
    parts = {
        role: right[own.role == role] for role in (Role.MEMBER, Role.NONMEMBER, Role.TEST, Role.DEV)
    }
    if not len(parts[Role.TEST]):
        parts[Role.TEST] = parts[Role.NONMEMBER]
    accuracies = {
        f"accuracy_{role.name.lower()}": np.asarray(part.mean())
        for role, part in parts.items()
        if len(part)
    }
    own_arrays = {
        "logits": plain,
        "views": views,
        "labels": own.labels,
        "index": own.index,
        "role": own.role,
    }
    return own_arrays | accuracies


@compute.register(Sensitivity)
def _(step: Sensitivity, of: Of) -> Arrays:
    own = of(step.of)
    index = own.index[own.pool]
    found = sensitivity(
        own.net, own.data, torch.as_tensor(index), step.queries, step.eps, step.seed
    )
    # Float32 keeps the digits that count: seven of each value, from 1e-38 on.
    arrays = {"sensitivity": found.float().numpy(), "index": index}
    return arrays | {"labels": own.labels[own.pool], "role": own.role[own.pool]}


def generated(data: Resident, index: np.ndarray, seed: int) -> Resident:
    """As many inputs that no one trained on as `index` has samples, with their labels: see
    `recipe.Generated`.

    BlindMI's filter: the mean of the absolute horizontal and vertical Sobel gradients, each cut off
    at 255.
    """
    rng, rows = np.random.default_rng(seed), torch.as_tensor(index, device=data.device)
    old = data.samples[rows]
    if data.pictures:
        across = torch.tensor([1.0, 2.0, 1.0])[:, None] * torch.tensor([-1.0, 0.0, 1.0])
        pixels = functional.pad(old.cpu().float().permute(0, 3, 1, 2), (1, 1, 1, 1), "reflect")
        sides = functional.conv2d(
            pixels.flatten(0, 1)[:, None], torch.stack([across, across.T])[:, None]
        )
        made = (
            sides.abs()
            .clamp(max=255)
            .mean(dim=1)
            .round()
            .unflatten(0, pixels.shape[:2])
            .permute(0, 2, 3, 1)
        )
    elif old.dtype == torch.uint8:
        made = torch.from_numpy(rng.integers(2, size=old.shape))
    else:
        made = torch.from_numpy(rng.normal(size=old.shape))
    samples = made.to(data.device, old.dtype).contiguous()
    return replace(data, samples=samples, labels=data.labels[rows], _made={})


@compute.register(Generated)
def _(step: Generated, of: Of) -> Arrays:
    own, rng = of(step.of), np.random.default_rng(step.seed)
    made = generated(own.data, rng.choice(own.index[own.pool], step.count), step.seed)
    z = logits(own.net, made, torch.arange(step.count))[0]
    return {"generated": z.numpy(), "generated_labels": made.labels.cpu().numpy()}
