"""A state at hand: its weights, its network, its data, and who plays which role to it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from leak_atlas import pruning as pruning  # how states are edited is registered there
from leak_atlas import rewinding
from leak_atlas.data import designs, readers
from leak_atlas.data.designs import Role
from leak_atlas.data.resident import Resident, resident
from leak_atlas.engine import store
from leak_atlas.engine.compute import Arrays, Weights, edit, weights_of
from leak_atlas.models import Net, build
from leak_atlas.recipe import Data, Design, Edit, State


def device() -> str:
    """Where models are trained."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def device_name() -> str:
    return torch.cuda.get_device_name() if device() == "cuda" else "cpu"


@lru_cache(maxsize=64)
def roles(
    data: Data, design: Design, rows: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Roles `(rows, n)` over the samples that the design uses, their indices `(n,)` and labels
    `(n,)`.
    """
    samples, train = readers.load(data.name, data.pixels), data.parts[0]
    index = designs.used(design, samples.labels, train)
    return (
        designs.roles(design, samples.labels, train, rows)[:, index],
        index,
        readers.labels(data, samples)[index],
    )


def weights(state: State) -> Weights:
    """What is pruned is zero, whatever an edit has put there."""
    if not isinstance(state, Edit):
        arrays = store.read(state.key).arrays
        values = {name: torch.tensor(array) for name, array in weights_of(arrays).items()}
        return Weights(values, {}, _unpacked(arrays, values))
    found = edit(state, weights(state.parent), Subject)
    values = {
        name: value.masked_fill(found.gone[name], 0.0) if name in found.gone else value
        for name, value in found.values.items()
    }
    return found._replace(values=values)


def packed(gone: Mapping[str, Tensor]) -> Arrays:
    """Masks of what is pruned as arrays of an entry, eight weights a byte."""
    return {f"gone/{name}": np.packbits(mask.numpy()) for name, mask in gone.items()}


def _unpacked(arrays: Arrays, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    masked = {name: value for name, value in values.items() if f"gone/{name}" in arrays}
    bits = {
        name: np.unpackbits(arrays[f"gone/{name}"], count=value.numel())
        for name, value in masked.items()
    }
    return {
        name: torch.from_numpy(bits[name].astype(bool)).view(value.shape)
        for name, value in masked.items()
    }


class Subject:
    """A state at hand. `net` is one that has the state's weights already, as while it is trained."""

    def __init__(self, state: State, net: Net | None = None) -> None:
        self.state, self.training = state, state.training
        if net is not None:
            self.net = net

    @cached_property
    def weights(self) -> Weights:
        return weights(self.state)

    def initial(self, added: int = 0) -> Net:
        """The network as it is initialised, by the training's seed; `added` makes it another one."""
        own = self.training
        return build(
            own.model, own.data.channels, own.data.classes, own.seed + added, own.data.size
        ).to(device())

    @cached_property
    def net(self) -> Net:
        """The network, ready to be asked."""
        made = self.initial()
        made.load_state_dict(dict(self.weights.values))
        return made.eval()

    @property
    def held(self) -> dict[str, Tensor]:
        """Masks of all that the training that follows leaves as it is: what is held, and what is
        gone.
        """
        return rewinding.either(self.weights.held, self.weights.gone)

    @property
    def data(self) -> Resident:
        return resident(self.training.data, device())

    @property
    def _table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return roles(self.training.data, self.training.design, (self.training.row,))

    @property
    def role(self) -> np.ndarray:
        """The role of each sample that the design uses, `(n,)`."""
        return self._table[0][0]

    @property
    def index(self) -> np.ndarray:
        """Which samples of the data set these are, `(n,)`, ascending."""
        return self._table[1]

    @property
    def labels(self) -> np.ndarray:
        return self._table[2]

    @property
    def pool(self) -> np.ndarray:
        """Whether each is a member or a non-member, `(n,)`."""
        return np.isin(self.role, (Role.MEMBER, Role.NONMEMBER))

    def samples(self, role: Role) -> Tensor:
        """Which samples of the data set have a role."""
        return torch.as_tensor(self.index[self.role == role])
