"""The inference network of adversarial regularization: is a sample with this posterior and this label a member?"""

from itertools import pairwise

import torch
from torch import Tensor, nn

from lib.recipe import AdversarialRegularization


class InferenceNet(nn.Module):
    """Black-box membership inference net of Nasr et al. (2018), as the published codes build it.

    Posterior (C - 1024 - 512 - 64) and one-hot label (C - 128 - 64) are read apart and judged together (512 - 256 -
    128 - 64 - 1), ReLU between; `width` stands for the 1024, and all others keep their share of it.

    The codes draw weights from N(0, 0.01), under which the signal shrinks in every layer: on posteriors that are easy
    to tell apart, h then guesses for its first 20 to 300 steps, and for ever at a quarter of the width. Here weights
    are He normal over the fan-in, under which it is right after 20 steps at any width (Adam at 1e-3); biases are zero.
    They depend on the arguments alone.
    """

    def __init__(self, classes: int, seed: int, width: int = 1024) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        units = AdversarialRegularization(width=width).units(classes)
        self.posterior, self.label, self.judge = (_layers(generator, *own) for own in units)
        self.out = _linear(generator, width // 16, 1)

    def forward(self, posterior: Tensor, label: Tensor) -> Tensor:
        """Probability of membership `(B,)` of samples with `posterior (B, C)` and one-hot `label (B, C)`."""
        both = torch.cat([self.posterior(posterior), self.label(label)], dim=1)
        found: Tensor = self.out(self.judge(both))
        return found[:, 0].sigmoid()


def _linear(generator: torch.Generator, size: int, units: int) -> nn.Linear:
    layer = nn.utils.skip_init(nn.Linear, size, units)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def _layers(generator: torch.Generator, *widths: int) -> nn.Sequential:
    return nn.Sequential(*(part for a, b in pairwise(widths) for part in (_linear(generator, a, b), nn.ReLU())))
