"""Streamed feature distances against closed forms and against an implementation that stores every
map.
"""

import copy
from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn

from leak_atlas import BadInput
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.localization import layers
from leak_atlas.localization.layers import distances, probe, random_projection
from leak_atlas.models import Net, build
from leak_atlas.recipe import Model
from leak_atlas.training.answers import scoring
from tests.localization.small import images

SMALL = Model("resnet18", width=4)


def used(seed: int) -> Net:
    """A network whose BatchNorm statistics are not the initial ones."""
    net = build(SMALL, 3, 3, seed)
    with torch.no_grad():
        for _ in range(3):
            net(augmentation.plain(images(30, 3, seed=seed + 1), torch.arange(30)))
    return net


def stored(
    net: Net, data: Resident, index: torch.Tensor, names: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """All maps at once, by hooks, in float64: what the streaming code must agree with."""
    found: dict[str, np.ndarray] = {}
    modules = dict(net.named_modules())

    def keep(name: str):
        return lambda _, __, out: found.__setitem__(name, out.flatten(1).double().numpy())

    hooks = [modules[name].register_forward_hook(keep(name)) for name in names]
    with scoring(net):
        net(augmentation.plain(data, index))
    for hook in hooks:
        hook.remove()
    return found


@pytest.mark.parametrize("parts", ["stages", "blocks"])
@pytest.mark.parametrize("chunk", [2**16, 100])
def test_streaming_equals_storing(
    parts: layers.Parts, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(layers.CHUNK, "cpu", chunk)
    a = used(0)
    b = used(1)
    data = images(30, 3)
    index = torch.arange(29, 2, -1)
    names = a.names(parts)
    monkeypatch.setattr(layers, "BATCH", 10)
    found = distances(a, b, data, index, parts)
    maps_a = stored(a, data, index, names)
    maps_b = stored(b, data, index, names)
    for i, name in enumerate(names):
        p = maps_a[name]
        q = maps_b[name]
        root = np.sqrt(p.shape[1])
        norms = (np.linalg.norm(p, axis=1), np.linalg.norm(q, axis=1))
        expected = {
            "euclidean": np.linalg.norm(p - q, axis=1) / root,
            "direction": 1 - np.sum(p * q, axis=1) / norms[0] / norms[1],
            "length_a": norms[0] / root,
            "length_b": norms[1] / root,
        }
        for measure, values in expected.items():
            assert found[measure].shape == (len(names), 27)
            np.testing.assert_allclose(
                found[measure][i], values, rtol=1e-6, atol=1e-6, err_msg=f"{name} {measure}"
            )


def test_dead_features_have_a_direction_only_against_live_ones() -> None:
    zero = torch.zeros(2, 4)
    one = torch.ones(2, 4)
    assert layers.compare_maps(zero, zero)[1].tolist() == [0, 0]
    assert layers.compare_maps(zero, one).tolist() == [[1, 1], [1, 1], [0, 0], [1, 1]]
    assert layers.compare_maps(-one, one)[1].tolist() == [2, 2]


def test_looking_leaves_the_networks_as_they_were() -> None:
    a = used(0).train()
    b = used(1).eval()
    before = [copy.deepcopy(net.state_dict()) for net in (a, b)]
    distances(a, b, images(30, 3), torch.arange(30))
    assert (a.training, b.training) == (True, False)
    for net, state in zip((a, b), before, strict=True):
        torch.testing.assert_close(net.state_dict(), state, rtol=0, atol=0)


def test_different_networks_cannot_be_compared() -> None:
    with pytest.raises(BadInput, match="same parts"):
        distances(
            used(0),
            build(Model("resnet10", width=4), 3, 3, 0),
            images(30, 3),
            torch.arange(4),
            "blocks",
        )
    with pytest.raises(BadInput, match="one shape"):
        distances(
            used(0), build(Model("resnet18", width=8), 3, 3, 0), images(30, 3), torch.arange(4)
        )


# --- probe


class Reader(nn.Module):
    """Turns the label that is written into the first pixel into features."""

    def __init__(self, sharp: bool) -> None:
        super().__init__()
        self.sharp = sharp

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shade = x[:, 0, 0, 0]
        hot = torch.stack(
            [(shade - value).abs() < 0.3 for value in (-2.0, 0.0, 2.0)], dim=1
        ).float()
        return torch.cat([hot, x[:, 0, 1]], dim=1) if self.sharp else torch.zeros_like(hot)


def written(n: int = 240) -> Resident:
    data = images(n, 3)
    data.samples[:, 0, 0, 0] = torch.tensor([0, 128, 255], dtype=torch.uint8)[data.labels]
    return data


def test_a_probe_reads_what_is_there() -> None:
    net = Net()
    for name, part in (
        ("stem", nn.Identity()),
        ("stage1", Reader(True)),
        ("head", nn.Linear(11, 3)),
    ):
        net.add_module(name, part)
    nn.init.zeros_(net.head.weight)
    found = probe(net, written(), torch.arange(0, 180), torch.arange(180, 240))
    assert found.shape == (3,)
    assert found[1] == 1.0
    assert found[2] == pytest.approx(1 / 3)  # features that are constant


def test_a_probe_of_noise_is_at_chance() -> None:
    noise = Net(OrderedDict(stem=nn.Identity()))
    (accuracy,) = probe(noise, images(240, 3), torch.arange(180), torch.arange(180, 240))
    assert abs(accuracy - 1 / 3) < 0.2


def test_mixing_keeps_inner_products_in_the_mean() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 1000, generator=generator).relu()
    mixed = [random_projection(64, seed)("stem", torch.stack([x, y])) for seed in range(400)]
    assert mixed[0].shape == (2, 64)
    products = torch.stack([m[0] @ m[1] for m in mixed]).double()
    error = float(products.std() / 20)
    assert abs(float(products.mean() - x @ y)) < 4 * error
    # The spread of a Gaussian projection: sqrt((|x|^2 |y|^2 + (x y)^2) / kept).
    gaussian = float(torch.sqrt((x @ x * (y @ y) + (x @ y) ** 2) / 64))
    assert float(products.std()) < 1.15 * gaussian


def test_narrow_features_are_not_mixed() -> None:
    x = torch.randn(3, 2, 2, 2)
    assert torch.equal(random_projection(8, 0)("stem", x), x.flatten(1))
