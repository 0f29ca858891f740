"""Counted costs: of an architecture on tensors without memory, and of a training from a run of two
epochs.
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from leak_atlas.engine.compute import Arrays, Of, compute, text
from leak_atlas.models import Net, blank, build, skeleton
from leak_atlas.recipe import Anatomy, Architecture, Model
from leak_atlas.training.loop import training


@cache
def anatomy(
    model: Architecture,
    channels: int,
    classes: int,
    size: int,
) -> dict[str, NDArray]:
    """Costs of each block, in order, for one image of `size` x `size` or one text of `size` words
    (see `leak_atlas.models.build`); `(blocks,)` each.

    `parts` (names: stem, stage1.0, ..., head), `parameters` (trainable weights), `activations`
    (elements of the block's output), `flops` (of the forward pass, two for a multiply-add;
    convolutions, linear layers and attention, as torch counts them).
    """
    x = blank(model, channels, size)
    if isinstance(model, Model):
        net = skeleton(model, channels, classes, size)
    else:  # a user's module may read a tensor's value: its tensors need memory
        net = build(model, channels, classes, 0, size)
        x = torch.zeros_like(x, device="cpu")
    net.eval()
    costs: dict[str, list[Any]] = {"parts": [], "parameters": [], "activations": [], "flops": []}
    with torch.no_grad():
        for name, block in net.blocks():
            with FlopCounterMode(display=False) as counter:
                x = block(x)
            costs["parts"].append(name)
            costs["parameters"].append(sum(p.numel() for p in block.parameters()))
            costs["activations"].append(x.numel())
            costs["flops"].append(counter.get_total_flops())
    return {name: np.array(column) for name, column in costs.items()}


@compute.register(Anatomy)
def _(step: Anatomy, of: Of) -> Arrays:
    data = step.data
    costs = anatomy(step.model, data.channels, data.classes, data.size)
    return costs | {"parts": text([str(name) for name in costs["parts"]])}


def counted(net: Net, **given: Any) -> dict[str, float]:
    """Operations and memory of `training(net, **given)`, from an eager run of two epochs; the same
    in every run.

    `flops` of an epoch, forward and backward; `flops_once`, the additional ones of the first epoch;
    `saved_bytes`, the most memory that autograd keeps at a time for backward passes (each storage
    once, without those of weights and statistics).
    """
    ended: list[int] = []
    operations = [0, 0]
    saved = 0
    run = training(net, **given, on_epoch=ended.append, plan="eager")
    while True:
        with FlopCounterMode(display=False) as counter, _saving(net) as most:
            next(run, None)  # where an epoch is over, ends it, dev set included; then a step
        if len(ended) == 2:
            break
        saved = max(saved, *most)
        operations[len(ended)] += counter.get_total_flops()
    run.close()
    return {
        "flops": operations[1],
        "flops_once": operations[0] - operations[1],
        "saved_bytes": saved,
    }


class Saved:
    """A tensor that autograd keeps. It is freed with the graph of its step."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


@contextmanager
def _saving(net: nn.Module) -> Iterator[list[int]]:
    """One number, complete when the context ends: the most bytes that autograd keeps at a time."""
    state = (*net.parameters(), *net.buffers())
    of_net = {tensor.untyped_storage().data_ptr() for tensor in state}
    alive: weakref.WeakSet[Saved] = weakref.WeakSet()
    most = [0]

    def pack(tensor: Tensor) -> Saved:
        saved = Saved(tensor)
        alive.add(saved)
        sizes = {}  # of each storage, by its address
        for other in alive:
            storage = other.tensor.untyped_storage()
            if storage.data_ptr() not in of_net:
                sizes[storage.data_ptr()] = storage.nbytes()
        most[0] = max(most[0], sum(sizes.values()))
        return saved

    def unpack(saved: Saved) -> Tensor:
        return saved.tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield most
