"""Architectures, each an ordered list of named parts, built from a recipe and a seed."""

import torch
from torch import Tensor, nn

from leak_atlas import BadInput, reason
from leak_atlas.engine.digests import generic
from leak_atlas.models.atm import atm
from leak_atlas.models.cnn import cnn
from leak_atlas.models.densenet import densenet
from leak_atlas.models.fc import fc
from leak_atlas.models.net import Net, Stage, xavier_normal
from leak_atlas.models.own import Own
from leak_atlas.models.resnet import resnet
from leak_atlas.models.transformer import transformer
from leak_atlas.models.vgg import vgg
from leak_atlas.models.vit import vit
from leak_atlas.models.wrn import wrn
from leak_atlas.recipe import Architecture, Model

__all__ = ["Net", "Own", "Stage", "blank", "build", "network", "skeleton"]

FAMILIES = {"resnet": resnet, "vgg": vgg, "densenet": densenet, "atm": atm, "fc": fc, "wrn": wrn}
# With a weight for each place, so these need to know how many.
PLACED = {"vit": vit, "transformer": transformer, "cnn2": cnn, "cnn4": cnn, "cnn6": cnn}


@generic
def network(model: Architecture, channels: int, classes: int, size: int | None) -> nn.Module:
    """The module of a user's architecture, from samples to logits `(n, classes)`: its kind
    registers what makes it.

    `channels` and `size` as for `build`. Weights are drawn from torch's global generator, which has
    the model's seed.
    """
    raise BadInput(
        f"nothing says what a {model.told} is built of: register a function with leak_atlas.models.network"
    )


def _made(model: Architecture, channels: int, classes: int, size: int | None) -> Net:
    if not isinstance(model, Model):
        return Own(network(model, channels, classes, size), model.stages, model.told)
    if model.name in PLACED and size is None:
        raise BadInput(f"a {model.name} has weights for each place of a sample: say its size")
    if model.name in PLACED and size is not None:
        net = PLACED[model.name](model, channels, classes, size)
    else:
        make = next(make for family, make in FAMILIES.items() if model.name.startswith(family))
        net = make(model, channels, classes)
    return xavier_normal(net) if model.init == "xavier" else net


def build(
    model: Architecture, channels: int, classes: int, seed: int, size: int | None = None
) -> Net:
    """The network of `model`, in training mode, on the CPU.

    `channels` of its images and their side `size` in pixels, words of its vocabulary and `size`
    words of a text, or bits or numbers of a sample (see `Data`); only transformers and plain CNNs
    need a size. Weights depend on the arguments alone (convolutions He normal over the fan-out,
    norms 1 and 0, linear layers torch's default, in an ATM normal with 0.02, in transformers all
    torch's default; Xavier normal where the model says so) and torch's global generator is left as
    it was. Convolution weights lie in channels_last. Raises BadInput where the recipe's numbers do
    not make a network. A user's module keeps its layout.
    """
    with torch.random.fork_rng(devices=()):
        # not torch.manual_seed: that one would reseed the accelerators too
        torch.default_generator.manual_seed(seed)
        net = _made(model, channels, classes, size)
    if isinstance(net, Own):
        return net
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it


def skeleton(model: Architecture, channels: int, classes: int, size: int | None = None) -> Net:
    """The same network without memory for its weights (torch's meta device): names, shapes and
    counts.

    Raises BadInput where torch cannot make it: some sizes give more weights than a number can
    count.
    """
    try:
        with torch.device("meta"):
            return _made(model, channels, classes, size)
    except RuntimeError as error:
        raise BadInput(f"{model.told} cannot be built with these sizes: {reason(error)}") from error


def blank(model: Architecture, channels: int, size: int) -> Tensor:
    """A sample `(1, ...)` as the network takes it, without memory."""
    if "text" in model.reads:
        return torch.empty(1, size, dtype=torch.int64, device="meta")
    # Of an architecture that reads images and rows too, the size tells which: rows have size 1.
    images = "images" in model.reads and (size > 1 or len(model.reads) == 1)
    return torch.empty(1, channels, *(size, size) if images else (), device="meta")
