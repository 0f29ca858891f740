"""Learning rates and optimizers of a schedule."""

import math
from collections.abc import Collection

import torch
from torch.nn import Parameter

from leak_atlas.recipe import Schedule


def rate(schedule: Schedule, epoch: int) -> float:
    """The learning rate of an epoch, counted from 0; it is the same for all steps of the epoch."""
    if epoch < schedule.warmup:
        return schedule.lr * schedule.factor
    if schedule.decay == "cosine":
        return schedule.lr * 0.5 * (1 + math.cos(math.pi * epoch / schedule.epochs))
    if schedule.decay == "steps":
        return schedule.lr * schedule.factor ** sum(
            epoch >= milestone for milestone in schedule.milestones
        )
    return schedule.lr


def optimizer(schedule: Schedule, parameters: Collection[Parameter]) -> torch.optim.Optimizer:
    """A fresh optimizer for parameters on one device; its learning rate is a tensor there, to be
    filled.

    The weight decay is L2: added to the gradient, under Adam too (not AdamW's).
    """
    device, lr, decay = next(iter(parameters)).device, rate(schedule, 0), schedule.weight_decay
    cuda = device.type == "cuda"
    made: torch.optim.Optimizer
    if schedule.optimizer == "adam":
        made = torch.optim.Adam(parameters, lr, weight_decay=decay, fused=True, capturable=cuda)
    else:
        momentum, nesterov = schedule.momentum, schedule.nesterov and schedule.momentum > 0
        made = torch.optim.SGD(
            parameters, lr, momentum, weight_decay=decay, nesterov=nesterov, fused=True
        )
    # CUDA's fused kernels read a float32; the CPU's take a number of any width, and a float64 is
    # what Python has.
    dtype = torch.float32 if cuda else torch.float64
    for group in made.param_groups:
        group["lr"] = torch.full((), lr, dtype=dtype, device=device)
    return made
