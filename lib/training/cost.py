"""What an architecture costs: counted on tensors without memory, in milliseconds."""

from functools import cache

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from lib.models import skeleton
from lib.recipe import Model


@cache
def anatomy(model: Model, channels: int, classes: int, pixels: int) -> dict[str, np.ndarray]:
    """Block by block in order, for one image of `pixels` x `pixels`.

    `parts` (names: stem, stage1.0, ..., head), `parameters` (trainable numbers), `activations` (numbers that the
    block hands on) and `flops` (of the forward pass, two for a multiply-add; convolutions and linear layers, as torch
    counts them).
    """
    net = skeleton(model, channels, classes).eval()
    x = torch.empty(1, channels, pixels, pixels, device="meta")
    rows = []
    with torch.no_grad():
        for name, block in net.blocks():
            with FlopCounterMode(display=False) as counter:
                x = block(x)
            rows.append((name, sum(p.numel() for p in block.parameters()), x.numel(), counter.get_total_flops()))
    names, parameters, activations, operations = zip(*rows, strict=True)
    return {
        "parts": np.array(names),
        "parameters": np.array(parameters, dtype=np.int64),
        "activations": np.array(activations, dtype=np.int64),
        "flops": np.array(operations, dtype=np.int64),
    }


def flops(model: Model, channels: int, classes: int, pixels: int) -> tuple[int, int]:
    """FLOPs of the forward pass of one image, and the network's parameters."""
    counts = anatomy(model, channels, classes, pixels)
    return int(counts["flops"].sum()), int(counts["parameters"].sum())
