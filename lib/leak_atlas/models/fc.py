"""A fully connected network for bits and numbers: two hidden layers, as PPB and WeMem have it."""

from collections import OrderedDict

from torch import nn

from leak_atlas.models.net import Layer, Net, assembled
from leak_atlas.recipe import Model


def fc(model: Model, features: int, classes: int) -> Net:
    """Two stages of a hidden layer each, with ReLU and dropout .1 (the model's width in units, then
    half of it), head.

    The papers' is 256 wide. Initialised as torch does from its global generator.
    """
    stages = [Layer(features, model.width, 0.1), Layer(model.width, model.width // 2, 0.1)]
    return assembled(
        None, stages, nn.Sequential(OrderedDict(fc=nn.Linear(model.width // 2, classes)))
    )
