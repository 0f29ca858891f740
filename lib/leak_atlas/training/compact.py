"""A network without the filters that are gone, taken out by torch-pruning; and what is gained by
it.
"""

import copy
import time

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.designs import Role
from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.models import Net
from leak_atlas.recipe import Compacted
from leak_atlas.training.answers import BATCH, accuracy, logits, scoring


def compacted(net: Net, x: Tensor) -> Net:
    """A smaller copy of the network with the same outputs; `x` is a batch of inputs, one is enough.

    A channel is taken out if weights, bias, scale and shift of all convolutions and norms that make
    it are zero: those of its own, of its partners in a sum, and of norms behind joined maps. A
    layer keeps one channel. Raises BadInput for a network that torch-pruning cannot follow, and for
    one with GroupNorm, whose groups zeros belong to.
    """
    import torch_pruning as tp  # is not on every machine

    if any(isinstance(module, nn.GroupNorm) for module in net.modules()):
        raise BadInput(
            "a network with GroupNorm cannot be compacted: channels that are zero count in their groups"
        )
    small = copy.deepcopy(net).eval()
    try:
        graph = tp.DependencyGraph().build_dependency(small, x)
    except Exception as error:
        raise BadInput(
            f"torch-pruning cannot follow this network: {type(error).__name__}: {error}"
        ) from error
    for module in [each for each in small.modules() if isinstance(each, nn.Conv2d)]:
        every = graph.get_pruning_group(
            module, tp.prune_conv_out_channels, list(range(module.out_channels))
        )
        zero = torch.ones(module.out_channels, dtype=torch.bool)
        for item in every:
            made = item.dep.target.module
            if isinstance(made, nn.BatchNorm2d) or item.dep.handler == tp.prune_conv_out_channels:
                zero[item.root_idxs] &= _silent(made)[item.idxs]
        zero[0] &= not zero.all()
        if zero.any():
            graph.get_pruning_group(
                module, tp.prune_conv_out_channels, zero.nonzero()[:, 0].tolist()
            ).prune()
    return small.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it


def _silent(module: nn.Module) -> Tensor:
    """Which channels have neither weights nor a bias."""
    tensors = [
        each.detach().flatten(1) if each.dim() > 1 else each.detach()[:, None]
        for each in module.parameters()
    ]
    return ~torch.cat(tensors, dim=1).any(dim=1).cpu()


@compute.register(Compacted)
def _(step: Compacted, of: Of) -> Arrays:
    own = of(step.of)
    first = torch.from_numpy(np.resize(own.index[own.pool], BATCH))
    x = augmentation.plain(own.data, first.to(own.data.device))
    nets = own.net, compacted(own.net, x[:1])
    seconds = np.array([[_seconds(net, x) for net in nets] for _ in range(1 + step.runs)])
    before, after = (logits(net, own.data, first)[0] for net in nets)
    judged = own.samples(Role.TEST if (own.role == Role.TEST).any() else Role.NONMEMBER)
    return {
        "parameters": np.array([sum(p.numel() for p in net.parameters()) for net in nets]),
        "flops": np.array([_flops(net, x[:1]) for net in nets]),
        "seconds": np.median(seconds[1:], axis=0),  # the first run warms up
        "difference": np.asarray(float((before - after).abs().max())),
        "accuracy": np.array([accuracy(net, own.data, judged) for net in nets]),
    }


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
