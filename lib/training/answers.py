"""What is read off a trained network: logits, and scaled confidences under fixed views."""

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from lib.compute import Arrays, Of, compute
from lib.data import augmentation
from lib.data.designs import Role
from lib.data.resident import Resident
from lib.models import Net
from lib.recipe import Signals

# Every score of every model is computed in batches of just this size (the last one is filled up), because the size
# may choose another kernel and move a logit by one part in a million.
BATCH = 250


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
    """Logits `(n, C)` float32 of the plain samples `index (n,)`, and scaled confidences `(n, views)` float64.

    The scaled confidence log p_y - log(1 - p_y) is z_y - logsumexp of the other logits (Carlini et al. 2022), which
    cannot saturate. Views are those of `lib.data.augmentation.views`; column 0 is the plain image. Both on the CPU.
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


def _views(data: Resident, index: Tensor, dy: int, dx: int, flip: bool, crop: int) -> Iterator[Tensor]:
    filled = torch.cat([index, index[:1].expand(-len(index) % BATCH)])
    for rows in filled.split(BATCH):
        if not (dy or dx or flip):
            yield augmentation.plain(data, rows)
        else:
            down, right = torch.full_like(rows, crop + dy), torch.full_like(rows, crop + dx)
            yield augmentation.gather(data, rows, down, right, torch.full_like(rows, flip, dtype=torch.bool), crop)


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
    """Accuracies by role too; of a design without test samples the test accuracy is that on non-members."""
    own = of(step.of)
    plain, views = (part.numpy() for part in logits(own.net, own.data, torch.as_tensor(own.index), step.views))
    right = plain.argmax(axis=1) == own.labels
    parts = {role: right[own.role == role] for role in (Role.MEMBER, Role.NONMEMBER, Role.TEST, Role.DEV)}
    if not len(parts[Role.TEST]):
        parts[Role.TEST] = parts[Role.NONMEMBER]
    accuracies = {f"accuracy_{role.name.lower()}": np.asarray(part.mean()) for role, part in parts.items() if len(part)}
    own_arrays = {"logits": plain, "views": views, "labels": own.labels, "index": own.index, "role": own.role}
    return own_arrays | accuracies
