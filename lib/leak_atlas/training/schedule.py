"""Learning rates and optimizers of a schedule."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch.nn import Parameter

from leak_atlas.recipe import Schedule


def rate(schedule: Schedule, epoch: int) -> float:
    """The learning rate of all steps of an epoch, counted from 0."""
    if schedule.decay == "cosine":
        return schedule.lr * 0.5 * (1 + math.cos(math.pi * epoch / schedule.epochs))
    return schedule.lr


def optimizer(schedule: Schedule, parameters: Iterable[Parameter]) -> torch.optim.Optimizer:
    """A new optimizer for parameters on one device. Its learning rate is a tensor on that device,
    which each epoch overwrites.

    The weight decay is L2: it is added to the gradient, under Adam too (unlike AdamW's).
    """
    weights = list(parameters)
    device = weights[0].device
    lr = rate(schedule, 0)
    options: dict[str, Any] = {"lr": lr, "weight_decay": schedule.weight_decay, "fused": True}
    fresh: torch.optim.Optimizer
    if schedule.optimizer == "adam":
        fresh = torch.optim.Adam(weights, capturable=device.type == "cuda", **options)
    else:
        nesterov = schedule.nesterov and schedule.momentum > 0
        fresh = torch.optim.SGD(weights, momentum=schedule.momentum, nesterov=nesterov, **options)
    # CUDA's fused kernels read a float32. The CPU's accept any width; Python's numbers are float64.
    dtype = torch.float32 if device.type == "cuda" else torch.float64
    for group in fresh.param_groups:
        group["lr"] = torch.full((), lr, dtype=dtype, device=device)
    return fresh
