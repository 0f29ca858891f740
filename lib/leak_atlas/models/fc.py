"""A fully connected network for bits and numbers: two hidden layers, as PPB and WeMem have it."""

from torch import nn

from leak_atlas.models.net import Net, assembled, chain, hidden_layer
from leak_atlas.recipe import Model


def fc(
    model: Model,
    features: int,
    classes: int,
) -> Net:
    """Two stages of one hidden layer each, with ReLU and dropout .1, and a head. The hidden layers
    have the model's width and half of it in units.

    The papers' width is 256. Initialised by torch's defaults from its global generator.
    """
    half = model.width // 2
    stages = [hidden_layer(features, model.width, 0.1), hidden_layer(model.width, half, 0.1)]
    return assembled(None, stages, chain(fc=nn.Linear(half, classes)))
