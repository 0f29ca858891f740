"""The text transformer: padding says nothing, and Opacus sees every sample's gradient of both
transformers.
"""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from leak_atlas.localization.layers import pixels, walk
from leak_atlas.models import Net, build
from leak_atlas.recipe import Model
from leak_atlas.training.cost import anatomy

SMALL = Model("transformer", width=8)


def small(length: int = 12) -> Net:
    return build(SMALL, 50, 3, 0, length).eval()


def texts(*lengths: int, total: int = 12) -> torch.Tensor:
    out = torch.zeros(len(lengths), total, dtype=torch.int64)
    generator = torch.Generator().manual_seed(sum(lengths))
    for row, length in zip(out, lengths, strict=True):
        row[:length] = torch.randint(1, 50, (length,), generator=generator)
    return out


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_more_padding_changes_nothing(lengths: list[int], more: int) -> None:
    net = small()
    x = texts(*lengths)
    with torch.no_grad():
        short = net(x[:, :7])
        long = net(x[:, : 7 + more])
        torch.testing.assert_close(short, long)
        alone = torch.cat([net(row[None, :length]) for row, length in zip(x, lengths, strict=True)])
        torch.testing.assert_close(long, alone)


def test_the_head_reads_the_mean_of_the_words_alone() -> None:
    net = small()
    nn.init.constant_(net.head.norm.bias, 0.5)  # which LayerNorm gives to padding
    lengths = (3, 12)
    x = texts(*lengths)
    maps = dict(net.features(x))["stage2"]
    for row, length in enumerate(lengths):
        mean = net.head.norm(maps[row, :length]).mean(dim=0)
        torch.testing.assert_close(net(x)[row], net.head.fc(mean))


def test_gradients_do_not_come_from_padding() -> None:
    net = small()
    x = texts(3, 5)
    net(x).square().sum().backward()
    words, places = net.stem.embedding.weight.grad, net.stem.positions.grad  # type: ignore[union-attr]
    assert not words[0].any() and not places[5:].any() and places[:5].any(dim=1).all()  # type: ignore[index,union-attr]


def test_every_map_is_zero_behind_the_end_of_a_text_and_nowhere_else() -> None:
    x = texts(3, 12, 7)
    for name, (maps,) in walk((small(),), x, "stages"):
        if name != "head":
            assert torch.equal((maps != 0).all(dim=-1), x != 0), name
            assert torch.equal((maps != 0).any(dim=-1), x != 0), name
            assert pixels(maps) is maps


def test_words_and_their_order_matter() -> None:
    net = small()
    x = texts(6)
    assert not torch.allclose(net(x), net(torch.where(x == x[0, 0], 7, x)))
    assert not torch.allclose(net(x), net(torch.cat([x[:, :6].flip(1), x[:, 6:]], dim=1)))


def test_no_word_at_all_is_finite() -> None:
    out = small()(texts(0, 4))
    out.sum().backward()
    assert torch.isfinite(out).all()


def test_operations_by_hand() -> None:
    d, length, classes = 64, 64, 14
    layer = 2 * length * 12 * d * d + 4 * length * length * d
    text = anatomy(Model("transformer"), 10_000, classes, length)
    assert text["flops"].tolist() == [0, layer, layer, 2 * d * classes]
    t = 5
    d = 16
    vit = anatomy(Model("vit", width=2), 1, 3, 8)
    assert vit["flops"][0] == 2 * 4 * 16 * d
    assert set(vit["flops"][1:7]) == {2 * t * 6 * d * d + 2 * 2 * t * t * d}
