"""A step recorded once for each kind of batch, and replayed: on CUDA the host then launches one
thing a step.

Each process checks the first recording of a kind of step on a kind of network: recorded and eager
steps begin with the same weights and have to end with the same. Where they do not, or where
recording fails, the process trains such networks eagerly.
"""

import math
import sys
from collections.abc import Callable, Collection
from typing import NamedTuple

import torch
from torch import Tensor

from leak_atlas import BadInput, reason
from leak_atlas.training.update import Batch, Update

# Steps before the recording (libraries choose kernels and get their workspaces, the optimizer makes
# its state), and steps that are compared.
TURNS = 3

# How far recorded steps may end from eager ones, as a share of the way that the eager ones go.
# Twice
# the distance of two eager runs comes on top, because some kernels add in no fixed order.
SHARE = 0.01

Replay = Callable[[], None]
Take = Callable[[int, str], None]

# Kinds of step and network whose recording was checked in this process, and whether it is trusted.
_trusted: dict[tuple[type[Update], str], bool] = {}


class End(NamedTuple):
    """Copies of what steps have changed."""

    weights: list[Tensor]
    statistics: list[Tensor]  # floating point: those of the norms, and the loss
    counts: list[Tensor]  # whole numbers


def recorded(step: Update, batches: Collection[Batch]) -> Take:
    """Runs `step` for any of `batches`, from recordings made here, which leave no trace in what is
    trained; or `step` itself, where a recording fails or does something else than the step.

    Call and replay on the same stream, one of the training's own (not the default one). Raises
    BadInput without CUDA.
    """
    kind = type(step), str(step.net)
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
        begin, again = _end(step, (), step), _end(step, batches, step)
        if not _alike(begin, eager, again, _end(step, batches, replay)):
            return _eagerly(step, "do something else when they are replayed from a recording")
        _trusted[kind] = True
    return replay


def record(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
    """One CUDA graph for each size and phase. They never run at the same time, hence share their
    memory."""
    device = step.data.device
    if device.type != "cuda":
        raise BadInput(f"graphs are recorded on CUDA devices, not on '{device}'")
    pool, stream = torch.cuda.graph_pool_handle(), torch.cuda.current_stream(device)
    replays: dict[Batch, Replay] = {}
    for batch in batches:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=stream):
            step(*batch)
        replays[batch] = graph.replay
    return replays


def _eagerly(step: Update, why: str) -> Take:
    """The step itself, for all of its kind in this process; one line says why."""
    _trusted[type(step), str(step.net)] = False
    name = type(step.objective).__name__
    line = f"leak atlas: training steps of {name} {why}; training goes on step by step"
    print(line, file=sys.stderr, flush=True)
    return step


def _end(step: Update, batches: Collection[Batch], take: Take) -> End:
    """What a few steps of each kind of batch make of the training's start; they are undone."""
    with step.undone():
        for batch in batches:
            last = max(len(step.ahead) - batch.size, 0)
            for turn in range(TURNS):
                step.position.fill_(min(turn * batch.size, last))
                take(*batch)
        weights: list[Tensor] = []
        statistics, counts = [step.loss], [step.position]
        for network, _ in step.learners():
            weights += network.parameters()
            for buffer in network.buffers():
                (statistics if buffer.is_floating_point() else counts).append(buffer)
        return End(
            *([each.detach().clone() for each in own] for own in (weights, statistics, counts))
        )


def _alike(begin: End, eager: End, again: End, replayed: End) -> bool:
    """Whether recorded steps end where eager ones end, as near as two eager runs do."""
    if not all(map(torch.equal, eager.counts, replayed.counts)):
        return False
    for name in ("weights", "statistics"):
        start, end, other, found = (getattr(each, name) for each in (begin, eager, again, replayed))
        allowed = SHARE * _distance(start, end) + 2 * _distance(end, other)
        if not _distance(end, found) <= allowed:
            return False
    return True


def _distance(one: list[Tensor], other: list[Tensor]) -> float:
    """The Euclidean distance of two lists of tensors."""
    squares = [(a.double() - b.double()).square().sum() for a, b in zip(one, other, strict=True)]
    return math.sqrt(float(torch.stack(squares).sum()))
