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

# By the first letters of the model's name.
FAMILIES = {"resnet": resnet, "vgg": vgg, "densenet": densenet, "atm": atm, "fc": fc, "wrn": wrn}
# These have weights for each place of a sample, so they need its size.
SIZED = {"vit": vit, "transformer": transformer, "cnn": cnn}


@generic
def network(
    model: Architecture,
    channels: int,
    classes: int,
    size: int | None,
) -> nn.Module:
    """The module of a user's architecture, which maps samples to logits `(n, classes)`. The user
    registers the function that makes it.

    `channels` and `size` as for `build`. The function draws weights from torch's global generator,
    which has the model's seed.
    """
    raise BadInput(
        f"nothing says what a {model.description} is built of: register a function with"
        " leak_atlas.models.network"
    )


def _made(
    model: Architecture,
    channels: int,
    classes: int,
    size: int | None,
) -> Net:
    if not isinstance(model, Model):
        module = network(model, channels, classes, size)
        return Own(module, classes, model.stages, model.description)
    family = next(name for name in (*FAMILIES, *SIZED) if model.name.startswith(name))
    if family in FAMILIES:
        net = FAMILIES[family](model, channels, classes)
    elif size is not None:
        net = SIZED[family](model, channels, classes, size)
    else:
        raise BadInput(f"a {model.name} has weights for each place of a sample: say its size")
    return xavier_normal(net) if model.init == "xavier" else net


def build(
    model: Architecture,
    channels: int,
    classes: int,
    seed: int,
    size: int | None = None,
) -> Net:
    """The network of `model`, in training mode, on the CPU.

    For images `channels` is their number of channels and `size` their side in pixels; for texts
    `channels` is the number of words in the vocabulary and `size` that of words in a text; for rows
    `channels` is the number of bits or numbers (see `Data`). Only `vit`,
    `transformer` and plain CNNs need a size.

    Weights depend on the arguments alone; torch's global generator does not change. By default
    convolutions are He normal over the fan-out, norms 1 and 0, linear layers torch's default. An
    ATM's linear layers are normal with 0.02. In `vit` and `transformer`, embeddings, positions and
    the class token are normal with 0.02, all else is torch's default. `init="xavier"` draws
    convolutions and linear layers Xavier normal. Convolution weights are in channels_last; a user's
    module keeps its layout. Raises BadInput if the recipe's numbers do not make a network.
    """
    with torch.random.fork_rng(devices=()):
        # torch.manual_seed would seed the accelerators too.
        torch.default_generator.manual_seed(seed)
        net = _made(model, channels, classes, size)
    if isinstance(net, Own):
        return net
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it


def skeleton(
    model: Architecture,
    channels: int,
    classes: int,
    size: int | None = None,
) -> Net:
    """The same network without memory for its weights (torch's meta device): names, shapes and
    counts.

    Raises BadInput if torch cannot make it: some sizes give more weights than a number can count.
    """
    try:
        with torch.device("meta"):
            return _made(model, channels, classes, size)
    except RuntimeError as error:
        raise BadInput(
            f"{model.description} cannot be built with these sizes: {reason(error)}"
        ) from error


def blank(
    model: Architecture,
    channels: int,
    size: int,
) -> Tensor:
    """A sample `(1, ...)` in the network's input shape, without memory."""
    if "text" in model.reads:
        return torch.empty(1, size, dtype=torch.int64, device="meta")
    # Rows have size 1, which matters for an architecture that reads both images and rows.
    if "images" in model.reads and (size > 1 or len(model.reads) == 1):
        return torch.empty(1, channels, size, size, device="meta")
    return torch.empty(1, channels, device="meta")
