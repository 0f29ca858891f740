"""The ViT whose shares of weights CWRF's Table 1 prints."""

import math

import pytest
import torch
from torch import nn

from leak_atlas.data.resident import Resident
from leak_atlas.models import Net, build, skeleton
from leak_atlas.models.transformer import Attention
from leak_atlas.recipe import Model, Schedule
from leak_atlas.rewinding import freeze, places
from leak_atlas.training.cost import anatomy
from leak_atlas.training.loop import fit

SMALL = Model("vit", width=2)


def small(seed: int = 0) -> Net:
    return build(SMALL, 1, 3, seed, size=8)


def shares(net: Net) -> dict[str, float]:
    """Percent of the weights that Table 1 seems to count: matrices of the blocks, the last linear
    layer, all norms.
    """
    counts = {"main": 0, "linear": 0, "norm": 0}
    for name, module in net.named_modules():
        if isinstance(module, nn.LayerNorm):
            counts["norm"] += module.weight.numel()
        elif isinstance(module, nn.Linear):
            counts["linear" if name.startswith("head") else "main"] += module.weight.numel()
    return {kind: 100 * count / sum(counts.values()) for kind, count in counts.items()}


def test_full_width_has_the_shares_of_table_1() -> None:
    found = shares(skeleton(Model("vit"), 3, 100, 32))
    assert round(found["linear"], 4) == 0.5392 and round(found["norm"], 4) == 0.0701
    assert {kind: round(share, 2) for kind, share in found.items()} == {
        "main": 99.39,
        "linear": 0.54,
        "norm": 0.07,
    }


def test_count_by_hand() -> None:
    d = 512
    block = 2 * 2 * d + 3 * d * d + (d * d + d) + 2 * (d * d + d)
    stem = (3 * 16 + 1) * d + d + 65 * d
    expected = stem + 6 * block + 2 * d + 10 * (d + 1)
    assert (
        expected
        == sum(p.numel() for p in skeleton(Model("vit"), 3, 10, 32).parameters())
        == 9_523_722
    )


@pytest.mark.parametrize(
    ("pixels", "patch", "tokens"), [(32, 4, 65), (28, 4, 50), (64, 4, 257), (32, 8, 17)]
)
def test_tokens(pixels: int, patch: int, tokens: int) -> None:
    net = skeleton(Model("vit", width=2, patch=patch), 3, 10, pixels)
    x = torch.empty(2, 3, pixels, pixels, device="meta")
    for name, part in net.named_children():
        x = part(x)
        assert x.shape == ((2, 10) if name == "head" else (2, tokens, 16))
    assert net.parts() == ("stem", *(f"stage{number}" for number in range(1, 7)), "head")


def test_attention_is_a_softmax_over_scaled_products() -> None:
    torch.manual_seed(0)
    attention, x = Attention(6, 2), torch.randn(2, 5, 6)
    q, k, v = (part.view(2, 5, 2, 3) for part in attention.qkv(x).split(6, dim=-1))
    weights = torch.einsum("bihd,bjhd->bhij", q, k).div(math.sqrt(3)).softmax(dim=-1)
    found = torch.einsum("bhij,bjhd->bihd", weights, v).flatten(2)
    torch.testing.assert_close(attention(x, None), attention.project(found))
    mask = torch.tensor([[True] * 5, [True, True, False, True, False]])
    alone = attention(x[1:, [0, 1, 3]], None)
    torch.testing.assert_close(attention(x, mask)[1:, [0, 1, 3]], alone)


def test_positions_are_normal() -> None:
    positions = build(Model("vit", width=16), 3, 10, 0, 32).state_dict()["stem.positions"]
    assert float(positions.std()) == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("place", ["stage1", "stage4", "head"])
def test_the_front_is_held_and_the_rest_learns(data: Resident, place: str) -> None:
    net = small()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    held = freeze(before, place)
    schedule = Schedule(2, batch=24, optimizer="adam", lr=1e-3, weight_decay=0.1)
    after = fit(net, data, torch.arange(72), schedule, seed=0, frozen=held).states["last"]
    known = places(before)
    for position, name in enumerate(before):
        assert (
            (name in held) == (position < known[place]) == torch.equal(after[name], before[name])
        ), name


def test_single_weights_are_held(data: Resident) -> None:
    net = small()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    generator = torch.Generator().manual_seed(0)
    held = {
        name: torch.rand(value.shape, generator=generator) < 0.3 for name, value in before.items()
    }
    after = fit(
        net,
        data,
        torch.arange(72),
        Schedule(2, batch=24, optimizer="adam", lr=1e-3),
        seed=0,
        frozen=held,
    )
    for name, mask in held.items():
        same = after.states["last"][name] == before[name]
        assert same[mask].all() and not same[~mask].any(), name


def test_counts_block_by_block() -> None:
    counts = anatomy(SMALL, 1, 3, 8)
    t, d = 5, 16
    assert counts["parts"].tolist() == list(small().parts())
    assert counts["flops"][0] == 2 * 4 * 16 * d
    assert set(counts["flops"][1:7]) == {
        2 * t * (3 * d * d + d * d + 2 * d * d) + 2 * 2 * t * t * d
    }
    assert counts["activations"].tolist() == [t * d] * 7 + [3]
    assert counts["parameters"].tolist() == [
        sum(p.numel() for p in part.parameters()) for part in small()
    ]
