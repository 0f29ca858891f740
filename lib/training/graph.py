"""A step recorded once for each kind of batch, and replayed: on CUDA the host then launches one thing a step."""

from collections.abc import Callable, Collection

import torch

from lib import BadInput
from lib.training.update import Batch, Update

# Steps before the recording: libraries choose kernels and get their workspaces, the optimizer makes its state.
WARM = 3

Replay = Callable[[], None]


def recorded(step: Update, batches: Collection[Batch]) -> Callable[[int, str], None]:
    """Runs `step` for any of `batches`, from recordings made here, which leave no trace in what is trained.

    Call and replay on the same stream, one of the training's own (not the default one). Raises BadInput without CUDA.
    """
    with step.undone():
        for batch in batches:
            for _ in range(WARM):
                step.position.zero_()
                step(*batch)
        replays = record(step, batches)
    return lambda size, phase: replays[Batch(size, phase)]()


def record(step: Update, batches: Collection[Batch]) -> dict[Batch, Replay]:
    """One CUDA graph for each size and phase. They never run at the same time, hence share their memory."""
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
