"""A step recorded once for each kind of batch, and replayed: on CUDA the host then launches one thing a step."""

from collections.abc import Callable, Collection

import torch

from lib import BadInput
from lib.training.update import Batch, Update

# Steps before the recording: libraries choose kernels and get their workspaces, the optimizer makes its state.
WARM = 3


def recorded(step: Update, batches: Collection[Batch]) -> Callable[[int, str], None]:
    """Runs `step` for any of `batches`, from recordings made here, which leave no trace in what is trained.

    Call and replay on the same stream, one of the training's own (not the default one). Raises BadInput without CUDA.
    """
    device = step.data.device
    if device.type != "cuda":
        raise BadInput(f"graphs are recorded on CUDA devices, not on '{device}'")
    graphs = {batch: torch.cuda.CUDAGraph() for batch in batches}
    with step.undone():
        for batch in batches:
            for _ in range(WARM):
                step.position.zero_()
                step(*batch)
        # Graphs of one size and phase each never run at the same time, hence share their memory.
        pool, stream = torch.cuda.graph_pool_handle(), torch.cuda.current_stream(device)
        for batch, graph in graphs.items():
            with torch.cuda.graph(graph, pool=pool, stream=stream):
                step(*batch)
    return lambda size, phase: graphs[Batch(size, phase)].replay()
