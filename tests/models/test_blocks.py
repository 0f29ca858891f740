"""Blocks of each architecture, written out by hand."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.models import build
from leak_atlas.models.net import Dropout
from leak_atlas.models.transformer import Attention
from leak_atlas.recipe import Data, Model, RandomHalves, Schedule, Setup
from leak_atlas.recipe.steps import check_has_filters


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def four(x: torch.Tensor) -> torch.Tensor:
    """Each pixel of a halved map with its four pixels in the map, on axes 3 and 5."""
    return x.unflatten(3, (-1, 2)).unflatten(2, (-1, 2))


def test_a_plain_network_is_convolutions_relu_pool_and_a_linear_layer() -> None:
    net = build(Model("cnn4", width=4), 3, 5, seed=0, size=8)
    x = normal(2, 3, 8, 8)
    state = net.state_dict()
    y = x
    for stage in ("stage1", "stage2"):
        for number in range(2):
            weight, bias = (state[f"{stage}.{number}.conv.{part}"] for part in ("weight", "bias"))
            y = functional.conv2d(y, weight, bias, padding=1).relu()
        y = functional.max_pool2d(y, 2)
    expected = y.flatten(1) @ state["head.fc.weight"].T + state["head.fc.bias"]
    torch.testing.assert_close(net(x), expected)
    assert len(state) == 10
    assert not state["stage2.1.conv.bias"].any()


def test_a_basic_block_has_two_convolutions_and_a_shortcut_before_its_last_relu() -> None:
    stage = build(Model("resnet18", width=4), 3, 10, seed=0).eval().stage2
    first, second = stage
    x = normal(2, 4, 8, 8)
    y = functional.conv2d(x, first.conv1.weight, stride=2, padding=1)
    y = first.norm2(first.conv2(first.norm1(y).relu()))
    shortcut = functional.conv2d(x, first.shortcut.conv.weight, stride=2)
    y = (y + first.shortcut.norm(shortcut)).relu()
    torch.testing.assert_close(first(x), y)
    z = second.norm2(second.conv2(second.norm1(second.conv1(y)).relu()))
    torch.testing.assert_close(stage(x), (y + z).relu())


def test_a_bottleneck_has_its_stride_in_the_second_of_three_convolutions() -> None:
    block = build(Model("resnet50", width=4), 3, 10, seed=0).eval().stage2[0]
    x = normal(2, 16, 8, 8)
    y = block.norm1(block.conv1(x)).relu()
    y = functional.conv2d(y, block.conv2.weight, stride=2, padding=1)
    y = block.norm3(block.conv3(block.norm2(y).relu()))
    shortcut = functional.conv2d(x, block.shortcut.conv.weight, stride=2)
    torch.testing.assert_close(block(x), (y + block.shortcut.norm(shortcut)).relu())


def test_a_dense_layer_appends_its_channels_to_its_input() -> None:
    stage = build(Model("densenet121", width=4), 3, 10, seed=0).eval().stage1
    layer = stage[0]
    x = normal(2, 4, 8, 8)
    added = layer.conv2(layer.norm2(layer.conv1(layer.norm1(x).relu())).relu())
    torch.testing.assert_close(layer(x), torch.cat([x, added], dim=1))
    transition = stage[-1]
    z = normal(2, 16, 4, 4)
    half = transition.conv(transition.norm(z).relu())
    torch.testing.assert_close(transition(z), four(half).mean(dim=(3, 5)))


def test_a_vgg_stage_ends_with_the_largest_of_each_four_pixels() -> None:
    stage = build(Model("vgg11", width=4), 3, 10, seed=0).eval().stage1
    x = normal(2, 3, 8, 8)
    whole = stage[0].norm(stage[0].conv(x)).relu()
    assert torch.equal(stage(x), four(whole).amax(dim=(3, 5)))


def test_wide_blocks_have_their_shortcut_after_the_first_relu() -> None:
    net = build(Model("wrn16", width=4), 3, 10, seed=0).eval()
    x = normal(2, 16, 8, 8)
    first, second = net.stage1
    activated = first.norm1(x).relu()
    y = first.conv2(first.norm2(first.conv1(activated)).relu())
    y = y + functional.conv2d(activated, first.shortcut.weight)
    torch.testing.assert_close(first(x), y)
    z = y + second.conv2(second.norm2(second.conv1(second.norm1(y).relu())).relu())
    torch.testing.assert_close(net.stage1(x), z)


def test_dropout_of_a_wrn_is_between_convolutions() -> None:
    plain, net = (
        build(Model("wrn16", width=4, dropout=share), 3, 10, seed=0) for share in (0.0, 0.3)
    )
    shares = {name: m.p for name, m in net.named_modules() if isinstance(m, Dropout)}
    assert len(shares) == 6
    assert set(shares.values()) == {0.3}
    assert all(name.endswith(".dropout") for name in shares)
    assert [*net.state_dict()] == [*plain.state_dict()]
    x = normal(4, 3, 8, 8)
    assert not torch.equal(net(x), net(x))
    assert torch.equal(net.eval()(x), net(x))
    seen = []
    net.stage1[0].dropout.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    net(x)
    assert (seen[0] >= 0).all(), "after the second ReLU"


def test_a_vit_is_tokens_attention_mlps_and_a_linear_layer() -> None:
    net = build(Model("vit", width=2), 1, 3, seed=0, size=8)
    x = normal(2, 1, 8, 8)
    stem, block, head = net.stem, net.stage1, net.head
    patches = x.unfold(2, 4, 4).unfold(3, 4, 4).reshape(2, 4, 16)
    tokens = patches @ stem.conv.weight.view(16, 16).T + stem.conv.bias
    y = torch.cat([stem.token.expand(2, 1, 16), tokens], dim=1) + stem.positions
    torch.testing.assert_close(stem(x), y)
    z = y + block.attention(block.norm1(y), None)
    torch.testing.assert_close(block(y), z + block.mlp(block.norm2(z)))
    torch.testing.assert_close(head(y), head.fc(head.norm(y[:, 0])))


@pytest.mark.parametrize("lengths", [None, (3, 5, 2)])
def test_attention_is_torchs(lengths: tuple[int, ...] | None) -> None:
    torch.manual_seed(0)
    attention = Attention(16, 4)
    x = normal(3, 5, 16)
    mask = None if lengths is None else torch.arange(5) < torch.tensor(lengths)[:, None]
    q, k, v = (
        part.unflatten(-1, (4, 4)).transpose(1, 2) for part in attention.qkv(x).split(16, -1)
    )
    seen = None if mask is None else mask[:, None, None]
    expected = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    expected = attention.project(expected.transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(x, mask), expected)


def test_a_fully_connected_network_reads_rows_alone() -> None:
    net = build(Model("fc", width=8), 5, 3, seed=0)
    assert net(torch.rand(2, 5)).shape == (2, 3)
    assert [m.p for m in net.modules() if isinstance(m, nn.Dropout)] == [0.1, 0.1]
    images = Data(pixels=8)
    bits = Data("digits-bits")
    for data, model, words in (
        (images, Model("fc"), "reads bits and numbers"),
        (bits, Model(), "reads images"),
    ):
        with pytest.raises(BadInput, match=words):
            Setup(data, RandomHalves(20, 0), model, Schedule(1), 1).trained()


def test_a_network_without_norms_has_no_scales_to_prune() -> None:
    assert not Model("cnn2").shares_statistics
    with pytest.raises(BadInput, match="unlike a cnn2: take a resnet"):
        check_has_filters(Model("cnn2"), "PruneFilters")
