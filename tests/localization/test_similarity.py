"""CKA and Procrustes against dense oracles, and against networks whose channels are renumbered."""

from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.localization import disparity, layers
from leak_atlas.localization.similarity import _hsic, similarity
from leak_atlas.models import Net, build
from leak_atlas.recipe import Model
from leak_atlas.training.answers import scoring

N = 240


def images(n: int = N, pixels: int = 8, seed: int = 0) -> Resident:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(256, (n, pixels, pixels, 3), generator=generator, dtype=torch.uint8)
    return Resident(x, torch.arange(n) % 3, torch.full((3,), 0.5), torch.full((3,), 0.25), n, 3)


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


def split(n: int = N) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    order = torch.randperm(n, generator=torch.Generator().manual_seed(5))
    return order[: n // 2], order[n // 2 :], np.random.default_rng(0).random(n) < 0.5


def test_a_network_is_like_itself() -> None:
    one = build(Model("resnet10", width=4), 3, 3, 0)
    terms = similarity(one, one, images(), *split())
    assert terms["aligned"].shape == (6, N // 2)
    assert [disparity.cka(terms, seen).tolist() for seen in (True, False)] == [[1.0] * 6] * 2
    scale = layers.distances(one, one, images(), torch.arange(N))["length_a"].max(axis=1)
    assert (terms["aligned"].max(axis=1) < 1e-5 * scale).all()


@pytest.mark.parametrize("kind", ["permuted", "rotated"])
def test_renumbered_or_rotated_channels_are_no_difference(kind: str) -> None:
    turn = (
        torch.eye(8)[torch.tensor([3, 1, 4, 0, 5, 7, 2, 6])] if kind == "permuted" else rotation(1)
    )
    a, b = net(torch.eye(8)), net(turn)
    found = similarity(a, b, images(), *split())
    apart = layers.distances(a, b, images(), torch.arange(N))
    assert apart["euclidean"][1].min() > 0.1 * apart["length_a"][1].max()
    assert found["aligned"][1].max() < 1e-5 * apart["length_a"][1].max()
    assert disparity.cka(found)[1] == pytest.approx(1, abs=1e-9)


def test_cka_ignores_scale_and_the_residual_does_not() -> None:
    found = similarity(net(torch.eye(8)), net(3 * rotation(2)), images(), *split())
    assert disparity.cka(found)[1] == pytest.approx(1, abs=1e-9)
    length = layers.distances(net(), net(), images(), torch.arange(N))["length_a"].mean()
    assert 0.5 * length < found["aligned"][1].mean() < 2 * length


def test_streaming_equals_a_dense_computation() -> None:
    (a, b), data = (build(Model("resnet18", width=4), 3, 3, s) for s in (0, 1)), images()
    fitted, judged, seen = split()
    found = similarity(a, b, data, fitted, judged, seen)
    with scoring(a), scoring(b):
        walk = layers.walk((a, b), augmentation.plain(data, torch.cat([fitted, judged])), "stages")
        for i, (_, (p, q)) in enumerate(walk):
            n, c = p.shape[:2]
            x, y = (m.double().numpy().reshape(n, c, -1).transpose(0, 2, 1) for m in (p, q))
            x, y = (z - z[: len(fitted)].reshape(-1, c).mean(axis=0) for z in (x, y))
            u, _, v = np.linalg.svd(
                y[: len(fitted)].reshape(-1, c).T @ x[: len(fitted)].reshape(-1, c)
            )
            gap = (x - y @ (u @ v))[len(fitted) :].reshape(len(judged), -1)
            np.testing.assert_allclose(
                found["aligned"][i], np.sqrt(np.mean(gap**2, axis=1)), rtol=1e-5
            )


def hsic_of_song(k: np.ndarray, m: np.ndarray) -> float:
    """Song et al. 2012, eq. 5, as it is printed."""
    n, one = len(k), np.ones(len(k))
    k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
    cross = one @ k @ m @ one
    return (
        (
            np.trace(k @ m)
            + one @ k @ one * (one @ m @ one) / (n - 1) / (n - 2)
            - 2 * cross / (n - 2)
        )
        / n
        / (n - 3)
    )


@given(st.integers(4, 12), st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_hsic_is_that_of_the_literature(n: int, c: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.normal(3, 1, (n, c)), rng.normal(-2, 2, (n, d))
    found = _hsic(torch.tensor(p), torch.tensor(q)).numpy()
    expected = [hsic_of_song(x @ x.T, y @ y.T) for x, y in ((p, q), (p, p), (q, q))]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def cka_of(p: np.ndarray, q: np.ndarray) -> float:
    """CKA of features `(blocks, n, d)`."""
    blocks = zip(torch.tensor(p), torch.tensor(q), strict=True)
    hsic = torch.stack([_hsic(x, y) for x, y in blocks])[None].numpy()
    return disparity.cka({"hsic": hsic, "block_seen": np.ones(len(p), bool)}).item()


def test_cka_of_unrelated_features_is_0_in_the_mean() -> None:
    rng = np.random.default_rng(1)
    values = [cka_of(*rng.normal(size=(2, 10, 50, 30))) for _ in range(200)]
    assert np.std(values) < 0.03
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(200)


def test_cka_in_closed_form_of_shared_and_own_features() -> None:
    """p = (s, u), q = (s, v): HSIC is the covariance's squared norm, so CKA = shared / (shared +
    own).
    """
    rng = np.random.default_rng(2)
    shared, own = rng.normal(size=(20, 60, 6)), rng.normal(size=(2, 20, 60, 2))
    p, q = (np.concatenate([shared, each], axis=2) for each in own)
    assert cka_of(p, q) == pytest.approx(6 / 8, abs=0.04)


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

    a, b = net(torch.eye(8)), net(rotation(3))
    with scoring(a):
        bright = a.stem(augmentation.plain(images(), torch.arange(N))).mean(dim=(1, 2, 3))
    b.stage1 = Moved(rotation(3))
    b.stage1.border = bright.median()
    fitted, judged, _ = split()
    seen = (bright <= bright.median())[torch.cat([fitted, judged])].numpy()
    found = similarity(a, b, images(), fitted, judged, seen)
    found |= {"seen_a": np.ones(len(judged), bool), "seen_b": seen[len(fitted) :]}
    auc = disparity.areas(*disparity.read([found], "aligned"))[0, 1]
    assert auc > 0.99


def test_what_cannot_be_compared_is_told() -> None:
    fitted, judged, seen = split()
    with pytest.raises(BadInput, match="same parts"):
        similarity(net(), net(torch.eye(8)), images(), fitted, judged, seen)
    with pytest.raises(BadInput, match="one shape"):
        similarity(
            *(build(Model("resnet10", width=w), 3, 3, 0) for w in (4, 8)),
            images(),
            fitted,
            judged,
            seen,
        )
    with pytest.raises(BadInput, match="larger pool"):
        similarity(net(), net(), images(), fitted, judged, np.arange(N) > 1)
    found = similarity(net(), net(), images(), fitted, judged, np.ones(N, bool))
    assert disparity.cka(found).shape == (1,)
    with pytest.raises(BadInput, match="first model only"):
        disparity.cka(found, seen=False)
