"""Whole training steps: the usual loop against `leak_atlas.training.loop.fit`, on ResNet-8 and
ResNet-20 of width 16.

These are CIFAR's thin networks: three stages of one or three blocks, on 32 x 32 images. The usual
loop feeds torchvision's transforms through a DataLoader, computes in float32 with channels first
and asks for loss and accuracy with `.item()` after every step. Both train the same network on the
same number of augmented random images in batches of 128, one thread. Ratio: its processor time over
ours for an epoch. bfloat16 is measured where the processor has the instructions that make it worth
while.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path

import torch
from torch.nn import functional
from torch.utils.data import DataLoader

from bench.data import BATCH, CROP, Usual, images
from bench.ratios import Ratio, compare
from leak_atlas import ARITHMETIC
from leak_atlas.models import Net, Stage
from leak_atlas.models.net import Head
from leak_atlas.models.resnet import Basic, stem
from leak_atlas.recipe import Augment, Schedule
from leak_atlas.training.loop import fit

IMAGES, REPEATS = 384, 5


def fast_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 faster than float32, and may do so here."""
    facts = Path("/proc/cpuinfo")
    if os.environ.get(ARITHMETIC) != "native" or not facts.is_file():
        return False
    return any(name in facts.read_text() for name in ("amx_bf16", "avx512_bf16"))


def thin(depth: int) -> Net:
    """ResNet-(6 depth + 2) of width 16 for CIFAR."""
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm2d
    parts: OrderedDict[str, torch.nn.Module] = OrderedDict(stem=stem(norm, 3, 16, pool=False))
    for stage, (before, after) in enumerate(((16, 16), (16, 32), (32, 64)), 1):
        first = Basic(norm, before, after, 1 if stage == 1 else 2)
        parts[f"stage{stage}"] = Stage(
            first, *(Basic(norm, after, after, 1) for _ in range(depth - 1))
        )
    parts["head"] = Head(64, 10)
    return Net(parts)


def main() -> dict[str, Ratio]:
    """Print and return the ratios."""
    torch.set_num_threads(1)
    data = images(IMAGES)
    loader = DataLoader(Usual(data), batch_size=BATCH, shuffle=True)
    everyone = torch.arange(IMAGES)
    schedule = Schedule(1, batch=BATCH, augment=Augment(CROP))
    results: dict[str, Ratio] = {}
    for depth in (1, 3):
        name = f"ResNet-{6 * depth + 2}"
        plain = thin(depth)
        steps = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)

        def usual(
            net: torch.nn.Module = plain, steps: torch.optim.Optimizer = steps
        ) -> tuple[float, float]:
            net.train()
            total = right = 0.0
            for x, y in loader:
                steps.zero_grad()
                logits = net(x)
                loss = functional.cross_entropy(logits, y)
                loss.backward()
                steps.step()
                total += loss.item()
                right += (logits.argmax(1) == y).sum().item()
            return total, right

        for precision, required in (("fp32", 1.25), ("bf16", 2.2)):
            if precision == "bf16" and not fast_bfloat16():
                print(
                    f"training step, {name} bf16: not measured: needs AMX or AVX512_BF16, and {ARITHMETIC}=native"
                )
                continue
            net = thin(depth).to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it

            def ours(net: Net = net, precision: str = precision) -> None:
                fit(net, data, everyone, schedule, seed=0, precision=precision)

            usual()
            ours()
            results |= compare(
                f"training step, {name} {precision}", usual, ours, required, repeats=REPEATS
            )
    return results


if __name__ == "__main__":
    main()
