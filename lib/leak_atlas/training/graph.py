"""CUDA graphs: a training step is recorded once for each kind of batch and then replayed, so that
the host launches one operation a step.

Each process checks the first recording of a kind of step: objective, optimizer and network.
Recorded and eager steps start with the same weights and must end with the same weights. If they
differ, or if the recording fails, the process takes such steps eagerly.
"""

import math
import sys
from collections.abc import Callable, Collection
from typing import NamedTuple

import torch
from torch import Tensor

from leak_atlas import BadInput, reason
from leak_atlas.recipe import Objective
from leak_atlas.training.update import Batch, Update

# Eager steps before the recording, in which libraries choose kernels and the optimizer makes its
# state. The check compares the same number of steps.
TURNS = 3

# Allowed distance between the ends of recorded and of eager steps, as a share of the distance from
# the start. Twice the distance of two eager runs is added: some kernels sum in no fixed order.
SHARE = 0.01

Replay = Callable[[], None]
Take = Callable[[int, str], None]

# What a check of a recording holds for: step, objective, optimizer, SAM, bf16 and network.
Kind = tuple[type[Update], type[Objective], type[torch.optim.Optimizer], bool, bool, str]

# Kinds whose recording was checked in this process, and whether it is trusted.
_trusted: dict[Kind, bool] = {}


class End(NamedTuple):
    """Copies of the tensors that steps have changed."""

    weights: list[Tensor]
    statistics: list[Tensor]  # floating point: those of the norms, and the loss
    counts: list[Tensor]  # whole numbers


def recorded(step: Update, batches: Collection[Batch]) -> Take:
    """A function that replays `step` for any of `batches` from recordings made here; or `step`
    itself, where a recording fails or differs from the step.

    Recording changes nothing in the trained networks. Call and replay on the same stream, one of
    the training's own (not the default one). Raises BadInput without CUDA.
    """
    kind = _kind(step)
    if not _trusted.get(kind, True):
        return step
    eager = _end(step, batches, step)
    try:
        with step.undone():
            replays = record(step, batches)
    except BadInput:
        raise
    except Exception as error:
        return _eagerly(step, f"cannot be recorded ({type(error).__name__}: {reason(error)})")

    def replay(size: int, phase: str) -> None:
        replays[Batch(size, phase)]()

    if kind not in _trusted:
        begin = _end(step, (), step)
        again = _end(step, batches, step)
        replayed = _end(step, batches, replay)
        if not _alike(begin, eager, again, replayed):
            return _eagerly(step, "do something else when they are replayed from a recording")
        _trusted[kind] = True
    return replay


def record(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
    """One CUDA graph for each size and phase. They share memory: only one runs at a time."""
    device = step.data.device
    if device.type != "cuda":
        raise BadInput(f"graphs are recorded on CUDA devices, not on '{device}'")
    pool = torch.cuda.graph_pool_handle()
    stream = torch.cuda.current_stream(device)
    replays: dict[Batch, Replay] = {}
    for batch in batches:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=stream):
            step(*batch)
        replays[batch] = graph.replay
    return replays


def _kind(step: Update) -> Kind:
    return (
        type(step),
        type(step.objective),
        type(step.optimizer),
        step.rho > 0,
        step.bf16,
        str(step.net),
    )


def _eagerly(step: Update, why: str) -> Take:
    """The step itself, for all of its kind in this process; one line says why."""
    _trusted[_kind(step)] = False
    name = type(step.objective).__name__
    line = f"leak atlas: training steps of {name} {why}; training goes on step by step"
    print(line, file=sys.stderr, flush=True)
    return step


def _end(step: Update, batches: Collection[Batch], take: Take) -> End:
    """The tensors after a few steps of each kind of batch from the training's start. The steps are
    undone.
    """
    with step.undone():
        for batch in batches:
            last = max(len(step.offsets) - batch.size, 0)
            for turn in range(TURNS):
                step.position.fill_(min(turn * batch.size, last))
                take(*batch)
        end = End(weights=[], statistics=[_copy(step.loss)], counts=[_copy(step.position)])
        for network, _ in step.learners():
            end.weights.extend(map(_copy, network.parameters()))
            for buffer in network.buffers():
                kind = end.statistics if buffer.is_floating_point() else end.counts
                kind.append(_copy(buffer))
        return end


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()


def _alike(
    begin: End,
    eager: End,
    again: End,
    replayed: End,
) -> bool:
    """Whether recorded steps end where eager steps end, up to the difference of two eager runs."""
    if not all(map(torch.equal, eager.counts, replayed.counts)):
        return False
    for part in (0, 1):  # weights, statistics
        moved = _distance(begin[part], eager[part])
        noise = _distance(eager[part], again[part])
        error = _distance(eager[part], replayed[part])
        if not error <= SHARE * moved + 2 * noise:  # NaN fails too
            return False
    return True


def _distance(first: list[Tensor], second: list[Tensor]) -> float:
    """The Euclidean distance of two lists of tensors."""
    squares = [(a.double() - b.double()).square().sum() for a, b in zip(first, second, strict=True)]
    return math.sqrt(float(torch.stack(squares).sum()))
