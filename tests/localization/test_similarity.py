"""Procrustes against a dense oracle, and against networks whose channels are renumbered."""

from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn

from leak_atlas.data import augmentation
from leak_atlas.localization import disparity, layers
from leak_atlas.localization.similarity import aligned_distances
from leak_atlas.models import Net, build
from leak_atlas.recipe import Model
from leak_atlas.training.answers import scoring
from tests.localization.small import images

N = 240


class Turn(nn.Module):
    """Multiplies the channels by a matrix."""

    def __init__(self, matrix: torch.Tensor) -> None:
        super().__init__()
        self.matrix = matrix

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.einsum("ncij,cd->ndij", x, self.matrix)


def net(*turns: torch.Tensor, seed: int = 0) -> Net:
    """A stem, and stages that each turn its channels by one more matrix."""
    stem = build(Model("resnet10", width=8), 3, 3, seed).stem
    parts = OrderedDict(stem=stem) | {f"stage{i + 1}": Turn(turn) for i, turn in enumerate(turns)}
    made = Net()
    for name, part in parts.items():
        made.add_module(name, part)
    return made


def rotation(seed: int, c: int = 8) -> torch.Tensor:
    return torch.linalg.qr(torch.randn(c, c, generator=torch.Generator().manual_seed(seed)))[0]


FITTED, JUDGED = torch.randperm(N, generator=torch.Generator().manual_seed(5)).split(N // 2)


@pytest.mark.parametrize("kind", ["permuted", "rotated"])
def test_renumbered_or_rotated_channels_are_no_difference(kind: str) -> None:
    turn = (
        torch.eye(8)[torch.tensor([3, 1, 4, 0, 5, 7, 2, 6])] if kind == "permuted" else rotation(1)
    )
    a = net(torch.eye(8))
    b = net(turn)
    aligned = aligned_distances(a, b, images(N, 3), FITTED, JUDGED)
    apart = layers.distances(a, b, images(N, 3), torch.arange(N))
    assert apart["euclidean"][1].min() > 0.1 * apart["length_a"][1].max()
    assert aligned[1].max() < 1e-5 * apart["length_a"][1].max()


def test_a_scale_is_a_difference() -> None:
    a = net(torch.eye(8))
    b = net(3 * rotation(2))
    aligned = aligned_distances(a, b, images(N, 3), FITTED, JUDGED)
    length = layers.distances(net(), net(), images(N, 3), torch.arange(N))["length_a"].mean()
    assert 0.5 * length < aligned[1].mean() < 2 * length


def test_streaming_equals_a_dense_computation() -> None:
    a, b = (build(Model("resnet18", width=4), 3, 3, seed) for seed in (0, 1))
    data = images(N, 3)
    aligned = aligned_distances(a, b, data, FITTED, JUDGED)
    batch = augmentation.plain(data, torch.cat([FITTED, JUDGED]))
    with scoring(a), scoring(b):
        for row, (_, maps) in zip(aligned, layers.walk((a, b), batch, "stages"), strict=True):
            np.testing.assert_allclose(row, dense(*maps), rtol=1e-5)


def dense(p: torch.Tensor, q: torch.Tensor) -> np.ndarray:
    """The residuals of the judged samples, the second half, from all maps `(n, c, h, w)` at once."""
    n, c = p.shape[:2]
    half = n // 2
    x, y = (maps.double().numpy().reshape(n, c, -1).transpose(0, 2, 1) for maps in (p, q))
    x = x - x[:half].reshape(-1, c).mean(axis=0)
    y = y - y[:half].reshape(-1, c).mean(axis=0)
    u, _, v = np.linalg.svd(y[:half].reshape(-1, c).T @ x[:half].reshape(-1, c))
    gap = (x - y @ (u @ v))[half:].reshape(n - half, -1)
    return np.sqrt(np.mean(gap**2, axis=1))


def test_the_residual_tells_a_half_apart_that_euclid_cannot_see_for_renumbering() -> None:
    """`aligned` goes through the disparity statistics: one group's features are moved by more than
    a rotation.
    """

    class Moved(Turn):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            far = (x.mean(dim=(1, 2, 3), keepdim=True) > self.border).float()
            return super().forward(x) + 0.05 * far * torch.randn(
                x.shape, generator=torch.Generator().manual_seed(0)
            )

    a = net(torch.eye(8))
    b = net(rotation(3))
    with scoring(a):
        bright = a.stem(augmentation.plain(images(N, 3), torch.arange(N))).mean(dim=(1, 2, 3))
    b.stage1 = Moved(rotation(3))
    b.stage1.border = bright.median()
    seen = (bright <= bright.median())[JUDGED].numpy()
    aligned = aligned_distances(a, b, images(N, 3), FITTED, JUDGED)
    found = {"aligned": aligned, "seen_a": np.ones(len(JUDGED), bool), "seen_b": seen}
    auc = disparity.areas(*disparity.read([found], "aligned"))[0, 1]
    assert auc > 0.99
