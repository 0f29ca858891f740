"""A loaded state: its weights, network and data, and the roles of samples."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leak_atlas import pruning as pruning  # how states are edited is registered there
from leak_atlas import rewinding
from leak_atlas.data import designs, readers
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident, resident
from leak_atlas.engine import store
from leak_atlas.engine.compute import Arrays, Weights, edit, weights_of
from leak_atlas.models import Net, build
from leak_atlas.models.net import Tensors
from leak_atlas.recipe import Data, Design, Edit, State


def device() -> str:
    """Where models are trained."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def device_name() -> str:
    return torch.cuda.get_device_name() if device() == "cuda" else "cpu"


@lru_cache(maxsize=64)
def roles(
    data: Data,
    design: Design,
    rows: tuple[int, ...],
) -> tuple[NDArray, NDArray, NDArray]:
    """Roles `(rows, n)` over the samples that the design uses, their indices `(n,)` and labels
    `(n,)`.
    """
    samples = readers.load(data.name, data.pixels)
    train = data.parts[0]
    index = designs.used(design, samples.labels, train)
    table = designs.roles(design, samples.labels, train, rows)
    labels = readers.labels(data, samples)
    return table[:, index], index, labels[index]


def weights(state: State) -> Weights:
    """The weights of a state; those of an edit are its parent's, edited. Pruned weights are zero,
    also after an edit that sets them.
    """
    if not isinstance(state, Edit):
        arrays = store.read(state.key).arrays
        values = {name: torch.tensor(array) for name, array in weights_of(arrays).items()}
        return Weights(values, {}, _unpacked(arrays, values))
    edited = edit(state, weights(state.parent), Subject)
    values = dict(edited.values)
    for name in edited.gone.keys() & values.keys():
        values[name] = values[name].masked_fill(edited.gone[name], 0.0)
    return edited._replace(values=values)


def packed(gone: Tensors) -> Arrays:
    """Masks of pruned weights as arrays of an entry, eight weights a byte."""
    return {f"gone/{name}": np.packbits(mask.numpy()) for name, mask in gone.items()}


def _unpacked(arrays: Arrays, values: Tensors) -> Tensors:
    masks = {}
    for name, value in values.items():
        bits = arrays.get(f"gone/{name}")
        if bits is not None:
            mask = np.unpackbits(bits, count=value.numel()).astype(bool)
            masks[name] = torch.from_numpy(mask).view(value.shape)
    return masks


class Subject:
    """A loaded state. `net` is a network that already has the state's weights, as during a
    training.
    """

    def __init__(self, state: State, net: Net | None = None) -> None:
        self.state = state
        self.training = state.training
        if net is not None:
            self.net = net

    @cached_property
    def weights(self) -> Weights:
        return weights(self.state)

    def initial(self, added: int = 0) -> Net:
        """The network with its initial weights, which follow the training's seed plus `added`."""
        data = self.training.data
        seed = self.training.seed + added
        net = build(self.training.model, data.channels, data.classes, seed, data.size)
        return net.to(device())

    @cached_property
    def net(self) -> Net:
        """The network with the state's weights, in evaluation mode."""
        net = self.initial()
        net.load_state_dict(dict(self.weights.values))
        return net.eval()

    @property
    def frozen(self) -> Tensors:
        """Masks of the weights that the next training does not change: frozen and pruned ones."""
        return rewinding.either(self.weights.frozen, self.weights.gone)

    @property
    def data(self) -> Resident:
        return resident(self.training.data, device())

    @property
    def _table(self) -> tuple[NDArray, NDArray, NDArray]:
        return roles(self.training.data, self.training.design, (self.training.row,))

    @property
    def role(self) -> NDArray:
        """The role of each sample that the design uses, `(n,)`."""
        return self._table[0][0]

    @property
    def index(self) -> NDArray:
        """Places in the data set of the samples that the design uses, `(n,)`, ascending."""
        return self._table[1]

    @property
    def labels(self) -> NDArray:
        return self._table[2]

    @property
    def pool(self) -> NDArray:
        """Whether each sample is a member or a non-member, `(n,)`."""
        return designs.in_pool(self.role)

    def samples(self, role: Role) -> Tensor:
        """Places in the data set of the samples with a role."""
        return torch.as_tensor(self.index[self.role == role])
