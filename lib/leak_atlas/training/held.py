"""Weights and statistics that a training must not change."""

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from leak_atlas import BadInput
from leak_atlas.models import Net


class Held:
    """Keeps held weights and statistics as they are: restores them after every step, and freezes
    BatchNorm.
    """

    def __init__(self, net: Net, held: Mapping[str, Tensor]) -> None:
        own = dict(net.named_parameters()) | dict(net.named_buffers())
        for name, mask in held.items():
            if name not in own:
                raise BadInput(f"the network has no tensor '{name}' to hold")
            if mask.dtype != torch.bool or mask.shape != own[name].shape:
                raise BadInput(
                    f"the mask of '{name}' must be Boolean of shape {tuple(own[name].shape)}"
                )
        self.net = net
        self.whole = {name for name, mask in held.items() if bool(mask.all())}
        self.still = [
            own[name]
            for name in self.whole
            if isinstance(own[name], nn.Parameter) and own[name].requires_grad
        ]
        self.fixed = [
            module
            for name, module in net.named_modules()
            if isinstance(module, nn.BatchNorm2d)
            and {f"{name}.running_mean", f"{name}.running_var"} <= self.whole
        ]
        buffers = [buffer for module in self.fixed for buffer in module.buffers()]
        untouched = {id(tensor) for tensor in (*self.still, *buffers)}
        self.pinned = [
            (own[name], mask.to(own[name].device), own[name].detach().clone())
            for name, mask in held.items()
            if id(own[name]) not in untouched and bool(mask.any())
        ]

    def leading(self) -> list[nn.Module]:
        """The blocks at the network's beginning that are held wholly, statistics included, and draw
        nothing.
        """
        found: list[nn.Module] = []
        for name, block in self.net.blocks():
            tensors = [f"{name}.{own}" for own in block.state_dict()]
            still = all(
                tensor in self.whole or tensor.endswith("num_batches_tracked") for tensor in tensors
            )
            if not still or any(isinstance(module, nn.Dropout) for module in block.modules()):
                break
            found.append(block)
        return found

    def train(self) -> None:
        self.net.train()
        for module in self.fixed:
            module.eval()

    def impose(self) -> None:
        with torch.no_grad():
            for tensor, mask, value in self.pinned:
                torch.where(mask, value, tensor, out=tensor)


@contextlib.contextmanager
def holding(net: Net, held: Mapping[str, Tensor]) -> Iterator[Held]:
    """Tensors that are held wholly need no gradient (their backward pass is saved) while this
    lasts.
    """
    hold = Held(net, held)
    try:
        for tensor in hold.still:
            tensor.requires_grad_(False)
        yield hold
    finally:
        for tensor in hold.still:
            tensor.requires_grad_(True)
