"""Architectures, each an ordered list of named parts, built from a recipe and a seed."""

import torch

from lib.models.atm import atm
from lib.models.net import Net, Stage
from lib.models.resnet import resnet
from lib.models.vgg import vgg
from lib.recipe import Model

__all__ = ["Net", "Stage", "build", "skeleton"]

FAMILIES = {"resnet": resnet, "vgg": vgg, "atm": atm}


def _made(model: Model, channels: int, classes: int) -> Net:
    return next(make for family, make in FAMILIES.items() if model.name.startswith(family))(model, channels, classes)


def build(model: Model, channels: int, classes: int, seed: int) -> Net:
    """The network of `model` for images of `channels` channels, in training mode, on the CPU.

    Weights depend on the arguments alone (convolutions He normal over the fan-out, norms 1 and 0, linear layers torch's
    default, in an ATM normal with 0.02) and torch's global generator is left as it was. Convolution weights lie in
    channels_last.
    Raises BadInput where the recipe's numbers do not make a network.
    """
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)  # not torch.manual_seed: that one would reseed the accelerators too
        net = _made(model, channels, classes)
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it


def skeleton(model: Model, channels: int, classes: int) -> Net:
    """The same network without memory for its weights (torch's meta device): names, shapes and counts."""
    with torch.device("meta"):
        return _made(model, channels, classes)
