"""Compaction: torch-pruning removes the channels that are zero, and the step measures the savings."""

import copy
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from leak_atlas import BadInput, reason
from leak_atlas.data import augmentation
from leak_atlas.data.designs import Role
from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.models import Net
from leak_atlas.recipe import Compacted
from leak_atlas.training.answers import BATCH, accuracy, logits, scoring


def compacted(net: Net, x: Tensor) -> Net:
    """A smaller copy of the network with the same outputs; `x` is a batch of one or more inputs.

    A channel is removed if all convolutions and norms that make it have zero weights, bias, scale
    and shift: its own, those of channels that are added to it, and norms after a concatenation. A
    layer keeps at least one channel. Raises BadInput for a network that torch-pruning cannot trace,
    and for a network with GroupNorm, whose statistics include zero channels.
    """
    import torch_pruning as tp  # some machines lack it

    if any(isinstance(module, nn.GroupNorm) for module in net.modules()):
        raise BadInput(
            "a network with GroupNorm cannot be compacted: channels that are zero count in their groups"
        )
    small = copy.deepcopy(net).eval()
    try:
        graph = tp.DependencyGraph().build_dependency(small, x)
    except Exception as error:
        raise BadInput(f"torch-pruning cannot follow this network: {reason(error)}") from error
    for convolution in [module for module in small.modules() if isinstance(module, nn.Conv2d)]:
        zero = _zero_channels(graph, convolution, tp.prune_conv_out_channels)
        zero[0] &= not zero.all()
        if zero.any():
            removed = zero.nonzero()[:, 0].tolist()
            graph.get_pruning_group(convolution, tp.prune_conv_out_channels, removed).prune()
    return small.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it


def _zero_channels(graph: Any, convolution: nn.Conv2d, remove: Any) -> Tensor:
    """Which output channels of a convolution are zero wherever they are made, `(channels,)`."""
    channels = range(convolution.out_channels)
    zero = torch.ones(len(channels), dtype=torch.bool)
    for item in graph.get_pruning_group(convolution, remove, list(channels)):
        source = item.dep.target.module
        if isinstance(source, nn.BatchNorm2d) or item.dep.handler == remove:
            zero[item.root_idxs] &= _silent(source)[item.idxs]
    return zero


def _silent(module: nn.Module) -> Tensor:
    """Whether a channel's parameters are all zero, `(channels,)`."""
    by_channel = [
        parameter.detach().reshape(len(parameter), -1) for parameter in module.parameters()
    ]
    return ~torch.cat(by_channel, dim=1).any(dim=1).cpu()


@compute.register(Compacted)
def _(step: Compacted, of: Of) -> Arrays:
    """Costs of the network and of its compacted copy, `(2,)` each, and their greatest difference in
    a logit.
    """
    subject = of(step.of)
    batch = torch.from_numpy(np.resize(subject.index[subject.pool], BATCH))
    x = augmentation.plain(subject.data, batch.to(subject.data.device))
    nets = [subject.net, compacted(subject.net, x[:1])]
    for net in nets:
        _seconds(net, x)  # the first run is slower
    seconds = [[_seconds(net, x) for net in nets] for _ in range(step.runs)]
    before, after = [logits(net, subject.data, batch)[0] for net in nets]
    has_test = (subject.role == Role.TEST).any()
    unseen = subject.samples(Role.TEST if has_test else Role.NONMEMBER)
    return {
        "parameters": np.array([_parameters(net) for net in nets]),
        "flops": np.array([_flops(net, x[:1]) for net in nets]),
        "seconds": np.median(seconds, axis=0),
        "difference": np.asarray(float((before - after).abs().max())),
        "accuracy": np.array([accuracy(net, subject.data, unseen) for net in nets]),
    }


def _parameters(net: Net) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


def _flops(net: Net, x: Tensor) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        net(x)
    return counter.get_total_flops()


def _seconds(net: Net, x: Tensor) -> float:
    with scoring(net):
        start = time.perf_counter()
        net(x)
        if x.device.type == "cuda":
            torch.cuda.synchronize(x.device)
        return time.perf_counter() - start
