"""Recipes of models as networks: weights of a state, masks of what is held, roles of the samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lib import store
from lib.lab.plans import taken
from lib.recipe import At, Choose, Data, Edit, Hold, HoldWeights, Prune, Rewind, RewindWeights, State, Train

if TYPE_CHECKING:
    import torch

Arrays = dict[str, np.ndarray]


def device() -> str:
    """Where models are trained."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def device_name() -> str:
    import torch

    return torch.cuda.get_device_name() if device() == "cuda" else "cpu"


FRESH = 10**9  # added to a training's seed: an initialisation that no training has


def net(step: Train, added: int = 0) -> Any:
    """The network as it is initialised, by the training's seed."""
    from lib.models import build

    data = step.data
    return build(step.model, data.channels, data.classes, step.seed + added, data.size).to(device())


def weights(state: State) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """The values of a state, and the masks of what is held in all that follows."""
    import torch

    from lib import pruning, rewinding

    if isinstance(state, Choose):
        return weights(taken(state))
    if isinstance(state, Edit):
        values, held = weights(state.parent)
        if isinstance(state, Rewind):
            if state.fresh:
                start = {name: value.cpu() for name, value in net(state.training, FRESH).state_dict().items()}
            else:
                start = weights(At(state.origin(), "init"))[0]
            return rewinding.rewind(values, start, state.start), held
        if isinstance(state, RewindWeights):
            init = weights(At(state.origin(), "init"))[0]
            return rewinding.rewind_weights(values, init, _chosen(state)), held
        if isinstance(state, Prune):
            scores = weights_of(store.read(state.by.key).arrays) if state.by else None
            values, more = pruning.prune(values, state.sparsity, scores, state.scope, state.largest)
        elif isinstance(state, HoldWeights):
            more = rewinding.hold_weights(values, _chosen(state), state.rest)
        else:
            assert isinstance(state, Hold)
            more = rewinding.hold(values, state.until)
        return values, rewinding.both(held, more)
    return {name: torch.tensor(array) for name, array in weights_of(store.read(state.key).arrays).items()}, {}


def weights_of(arrays: Arrays) -> Arrays:
    """Of an entry's arrays those that belong to weights; the others' names have a slash."""
    return {name: array for name, array in arrays.items() if "/" not in name}


def _chosen(state: RewindWeights | HoldWeights) -> dict[str, torch.Tensor]:
    from lib import selection

    chosen = selection.highest(weights_of(store.read(state.by.key).arrays), state.share)
    return {name: tensor(mask) for name, mask in chosen.items()}


def load(state: State) -> Any:
    """The network in a state, ready to be asked."""
    made = net(state.training)
    made.load_state_dict(weights(state)[0])
    return made.eval()


def table(step: Train, rows: tuple[int, ...] | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Roles `(rows, n)` over the samples that the design uses, their indices `(n,)` and labels `(n,)`."""
    return roles(step.data, step.design, rows if rows is not None else (step.row,))


def roles(data: Data, design: Any, rows: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from lib.data import designs, readers

    samples = readers.load(data.name, data.pixels)
    index = designs.used(design, samples.labels, samples.train)
    return designs.roles(design, samples.labels, samples.train, rows)[:, index], index, samples.labels[index]


def tensor(index: np.ndarray) -> torch.Tensor:
    import torch

    return torch.as_tensor(index)
