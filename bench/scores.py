"""Scores of weights: a watched update against plain training, and the explorer's slider against
selecting anew.

An update of a vulnerability score looks at 64 members and 64 reference samples; a plain training
step at 128 samples costs the same two passes and the same optimizer. What the watching adds (a
product and a sum for each weight, the initial net's outputs, the history) is what the ratio shows:
plain time over ours, ResNet-18 of width 16, 32 x 32, one thread, float32. The slider: at a new
share, `selection.highest` partitions all scores; stored ranks are compared.
"""

from __future__ import annotations

import copy

import numpy as np
import torch

from bench.ratios import Ratio, compare
from leak_atlas.data.resident import Resident
from leak_atlas.engine import selection
from leak_atlas.localization.scores import taylor
from leak_atlas.models import build
from leak_atlas.recipe import Model, Schedule, Vulnerability
from leak_atlas.training.loop import fit

UPDATES, BATCH, REPEATS = 6, 64, 5
WEIGHTS = 11_000_000  # as many as a ResNet-18 of the usual width has


def main() -> dict[str, Ratio]:
    """Print and return the ratios."""
    torch.set_num_threads(1)
    samples = 2 * UPDATES * BATCH
    images = torch.randint(
        256, (samples, 32, 32, 3), generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )
    half = torch.full((3,), 0.5)
    data = Resident(images, torch.arange(samples) % 10, half, half / 2, samples, 10)
    net = build(Model("resnet18", width=16), 3, 10, 0)
    everyone, schedule = (
        torch.arange(samples),
        Schedule(1, 2 * BATCH, "adam", lr=1e-3, weight_decay=0.0),
    )
    criterion = Vulnerability(steps=UPDATES, batch=BATCH)
    members, reference = everyone.chunk(2)

    def watched() -> object:
        return taylor(
            copy.deepcopy(net), data, members, criterion, seed=0, reference=reference, init=net
        )

    def plain() -> object:
        return fit(copy.deepcopy(net), data, everyone, schedule, seed=0)

    found = compare(
        "watched updates: plain training of as many samples", plain, watched, 0.7, REPEATS
    )

    draws = np.random.default_rng(0).random(WEIGHTS, dtype=np.float32)
    scores = {str(place): part for place, part in enumerate(np.array_split(draws, 20))}
    ranks, count = selection.ranks(scores), round(0.05 * WEIGHTS)
    return found | compare(
        "where a share sits, from ranks: selecting anew",
        lambda: selection.highest(scores, 0.05),
        lambda: {name: rank < count for name, rank in ranks.items()},
        5,
        REPEATS,
        loops=5,
    )


if __name__ == "__main__":
    main()
