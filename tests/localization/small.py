"""What tests of localization share: random images, halves of a pool, and coverage."""

import numpy as np
import torch

from leak_atlas.audit import Estimate
from leak_atlas.data.resident import Resident
from tests.attacks.simulated import complement_pairs


def images(
    n: int = 24, channels: int = 1, classes: int = 3, seed: int = 0, side: int = 8
) -> Resident:
    """Random images of `side` x `side` pixels, with classes in turn."""
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(256, (n, side, side, channels), generator=generator, dtype=torch.uint8)
    mean = torch.full((channels,), 0.5)
    labels = torch.arange(n) % classes
    return Resident(pixels, labels, mean, mean / 2, n, classes)


def halves(networks: int, n: int, seed: int | np.random.Generator = 0) -> np.ndarray:
    """Random halves of n samples in complement pairs, `(networks, n)`."""
    return complement_pairs(np.random.default_rng(seed), networks // 2, n)


def covers(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high
