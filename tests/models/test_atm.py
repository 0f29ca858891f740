"""Active Token Mixer: its operator against closed forms, and what the blocks of a stage share."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from leak_atlas.models import build
from leak_atlas.models.atm import SHARES, Mixer, grid, sample
from leak_atlas.recipe import Model
from leak_atlas.training.cost import anatomy

SMALL = Model("atm-xt", width=8)


# --- the operator


@given(st.integers(0, 2**16), st.sampled_from([1, 2]), st.integers(1, 6), st.integers(1, 6))
def test_looking_is_linear_interpolation(seed: int, axis: int, height: int, width: int) -> None:
    """Against hat functions: the weight of pixel j, seen from position p, is 1 - |p - j| where that
    is positive.
    """
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, height, width, 6, generator=generator, requires_grad=True)
    offsets = (3 * torch.randn(2, height, width, 3, generator=generator)).requires_grad_()
    n = x.shape[axis]
    here = torch.arange(n).view((n, 1) if axis == 2 else (n, 1, 1))
    each = (offsets + here).repeat_interleave(2, dim=-1)
    expected = sum((1 - (each - j).abs()).clamp_min(0) * x.narrow(axis, j, 1) for j in range(n))
    found = sample(x, grid(offsets, axis))
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)
    weights = torch.randn(found.shape, generator=generator)
    for a, b in zip(
        *(torch.autograd.grad((y * weights).sum(), (x, offsets)) for y in (found, expected)),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=2e-4, rtol=1e-3)


def test_a_mixer_weighs_the_pixel_to_the_right_the_pixel_below_and_the_pixel_itself() -> None:
    """With offsets of one pixel. The weights of each channel are a softmax over the three."""
    torch.manual_seed(0)
    mixer = Mixer(8)
    x = torch.randn(2, 4, 4, 8)
    one = torch.ones(2, 4, 4, 2)
    found = mixer(x, (grid(one, axis=2), grid(one, axis=1)))
    width = mixer.width(functional.pad(x[:, :, 1:], (0, 0, 0, 1)))
    height = mixer.height(functional.pad(x[:, 1:], (0, 0, 0, 0, 0, 1)))
    here = mixer.here(x)
    mean = (width + height + here).mean(dim=(1, 2))
    weights = mixer.fusion(mean).view(2, 3, 1, 1, 8).softmax(dim=1)
    mixed = width * weights[:, 0] + height * weights[:, 1] + here * weights[:, 2]
    torch.testing.assert_close(found, mixer.project(mixed), atol=1e-5, rtol=1e-4)


# --- the nets


def test_a_copy_borrows_from_itself() -> None:
    net = build(SMALL, 1, 3, seed=0)
    own = copy.deepcopy(net).stage3
    assert own[1].borrowed[0] is own[0].peg
    assert own[0].peg is not net.stage3[0].peg


def test_both_blocks_of_a_stage_teach_the_encoding_that_they_share() -> None:
    net = build(SMALL, 1, 3, seed=0)
    x = torch.randn(4, 1, 16, 16)
    y = net[:3](x).detach()
    net.stage3[1](net.stage3[0](y).detach()).square().sum().backward()
    assert net.stage3[0].peg.weight.grad.abs().sum() > 0  # type: ignore[union-attr]
    assert net.stage3[0].offsets.fc.weight.grad is None


def test_a_map_of_one_pixel_is_convolved_like_any_other() -> None:
    down = build(SMALL, 3, 10, seed=0).stage4[0].down
    for size in (1, 2, 5):
        x = torch.randn(2, 40, size, size)
        torch.testing.assert_close(down(x), functional.conv2d(x, down.weight, down.bias, 2, 1))


def test_initialisation() -> None:
    net = build(Model("atm-xt", width=16), 3, 10, seed=0)
    linear = net.stage4[0].layers[0].mlp.fc1
    conv = net.stage4[0].down
    peg = net.stage4[0].peg
    assert float(linear.weight.detach().std()) == pytest.approx(0.02, rel=0.02)
    assert not linear.bias.any()
    assert float(conv.weight.detach().std()) == pytest.approx((2 / (9 * 128)) ** 0.5, rel=0.02)
    assert float(peg.weight.detach().std()) == pytest.approx((2 / 9) ** 0.5, rel=0.1)


def test_operations_by_hand() -> None:
    flops = anatomy(SMALL, 1, 10, 16)["flops"]
    assert len(flops) == 7
    assert flops[0] == 2 * 49 * 8 * 16
    c = 8
    tokens = 16
    layer = tokens * (4 * c * c + 2 * 4 * c * c) + c * (c // 4) * 4
    assert flops[1] == 2 * (9 * c * tokens + tokens * c * 2 * c // SHARES[0] + 2 * layer)
