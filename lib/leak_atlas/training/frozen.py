"""Weights and statistics that a training must not change."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from leak_atlas.models import Net
from leak_atlas.models.net import Tensors


class Frozen:
    """Keeps frozen weights and statistics as they are: restores them after every step, and keeps
    BatchNorms with frozen statistics in evaluation mode.
    """

    def __init__(self, net: Net, frozen: Tensors) -> None:
        tensors = dict(net.named_parameters()) | dict(net.named_buffers())
        self.net = net
        # Names of tensors that are frozen wholly, and the parameters among them.
        self.fully_frozen = {name for name, mask in frozen.items() if bool(mask.all())}
        self.frozen_parameters = [
            parameter
            for name, parameter in net.named_parameters()
            if name in self.fully_frozen and parameter.requires_grad
        ]
        # BatchNorms whose statistics are frozen wholly: they stay in evaluation mode.
        self.frozen_norms = [
            module
            for name, module in net.named_modules()
            if isinstance(module, _BatchNorm)
            and {f"{name}.running_mean", f"{name}.running_var"} <= self.fully_frozen
        ]
        # All other frozen values: tensor, mask, and a copy of the tensor to restore them from.
        constant = {id(parameter) for parameter in self.frozen_parameters}
        constant |= {id(buffer) for module in self.frozen_norms for buffer in module.buffers()}
        self.restored = [
            (tensors[name], mask.to(tensors[name].device), tensors[name].detach().clone())
            for name, mask in frozen.items()
            if id(tensors[name]) not in constant and bool(mask.any())
        ]

    def free(self, tensor: Tensor) -> Tensor:
        """Mask of the tensor's values that are not frozen."""
        for pinned, mask, _ in self.restored:
            if pinned is tensor:
                return ~mask
        return torch.ones_like(tensor, dtype=torch.bool)

    def leading(self) -> list[nn.Module]:
        """The blocks before the first one that has a free weight, a free statistic or dropout."""
        blocks: list[nn.Module] = []
        for name, block in self.net.blocks():
            tensors = {f"{name}.{tensor}" for tensor in block.state_dict()}
            free = tensors - self.fully_frozen
            drops = any(isinstance(module, nn.Dropout) for module in block.modules())
            if drops or not all(tensor.endswith("num_batches_tracked") for tensor in free):
                break
            blocks.append(block)
        return blocks

    def train(self) -> None:
        """Training mode, except for BatchNorms whose statistics are frozen."""
        self.net.train()
        for module in self.frozen_norms:
            module.eval()

    def impose(self) -> None:
        """Restores frozen values after a step."""
        with torch.no_grad():
            for tensor, mask, value in self.restored:
                torch.where(mask, value, tensor, out=tensor)


@contextlib.contextmanager
def freezing(net: Net, frozen: Tensors) -> Iterator[Frozen]:
    """Within this context, tensors that are frozen wholly need no gradient, which saves their part
    of the backward pass.
    """
    kept = Frozen(net, frozen)
    try:
        for parameter in kept.frozen_parameters:
            parameter.requires_grad_(False)
        yield kept
    finally:
        for parameter in kept.frozen_parameters:
            parameter.requires_grad_(True)
