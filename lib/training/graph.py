"""A step recorded once for each size of batch, and replayed: on CUDA the host then launches one thing a step."""

from collections.abc import Callable, Collection

import torch

from lib import BadInput
from lib.training.step import Step

# Steps before the recording: libraries choose kernels and get their workspaces, the optimizer makes its state.
WARM = 3

Replay = Callable[[], None]


def recorded(step: Step, sizes: Collection[int]) -> Callable[[int], None]:
    """Runs `step` for any of `sizes`, from recordings made here, which leave no trace in what is trained.

    Call and replay on the same stream, one of the training's own (not the default one). Raises BadInput without CUDA.
    """
    with step.undone():
        for size in sizes:
            for _ in range(WARM):
                step.position.zero_()
                step(size)
        replays = record(step, sizes)
    return lambda size: replays[size]()


def record(step: Step, sizes: Collection[int]) -> dict[int, Replay]:
    """One CUDA graph for each size. They never run at the same time, hence share their memory."""
    device = step.data.device
    if device.type != "cuda":
        raise BadInput(f"graphs are recorded on CUDA devices, not on '{device}'")
    pool, stream = torch.cuda.graph_pool_handle(), torch.cuda.current_stream(device)
    replays: dict[int, Replay] = {}
    for size in sizes:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=stream):
            step(size)
        replays[size] = graph.replay
    return replays
