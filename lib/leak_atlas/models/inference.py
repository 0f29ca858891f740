"""The inference network of adversarial regularization: it predicts membership from a sample's
posterior and label.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from leak_atlas.recipe import AdversarialRegularization


class InferenceNet(nn.Module):
    """Black-box membership inference net of Nasr et al. (2018), as the published codes build it.

    One branch for the posterior (C - 1024 - 512 - 64), one for the one-hot label (C - 128 - 64),
    and one for both outputs together (128 - 512 - 256 - 128 - 64 - 1), with ReLU between layers.
    `width` replaces the 1024; the others scale.

    The codes draw weights from N(0, 0.01), so that the signal shrinks in every layer: even on
    posteriors that are easy to separate, the network learns nothing in its first 20 to 300 steps,
    and never at a quarter of the width. Here weights are He normal over the fan-in: the network
    separates these posteriors after 20 steps at any width (Adam at 1e-3). Biases are zero. The
    weights depend on the arguments alone.
    """

    def __init__(
        self,
        classes: int,
        seed: int,
        width: int = 1024,
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        units = AdversarialRegularization(width=width).units(classes)
        of_posterior, of_label, of_both = units
        self.posterior = _layers(generator, of_posterior)
        self.label = _layers(generator, of_label)
        self.judge = _layers(generator, of_both)
        self.out = _linear(generator, width // 16, 1)

    def forward(self, posterior: Tensor, label: Tensor) -> Tensor:
        """Probability of membership `(B,)` of samples with `posterior (B, C)` and one-hot `label
        (B, C)`.
        """
        both = torch.cat([self.posterior(posterior), self.label(label)], dim=1)
        return self.out(self.judge(both))[:, 0].sigmoid()


def _linear(
    generator: torch.Generator,
    size: int,
    units: int,
) -> nn.Linear:
    layer = nn.utils.skip_init(nn.Linear, size, units)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def _layers(generator: torch.Generator, widths: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size, units in pairwise(widths):
        layers += [_linear(generator, size, units), nn.ReLU()]
    return nn.Sequential(*layers)
