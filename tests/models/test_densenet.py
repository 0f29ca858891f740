"""DenseNet against its parameter counts and map sizes, and through a training that holds its front."""

import pytest
import torch

from leak_atlas.models import Net, build, skeleton
from leak_atlas.models.densenet import DEPTHS
from leak_atlas.recipe import Model

NAME = "densenet121"


@pytest.mark.parametrize(
    ("classes", "count"), [(10, 6_956_426), (100, 7_048_676), (200, 7_151_176)]
)
def test_full_width_is_the_papers_net(classes: int, count: int) -> None:
    assert sum(p.numel() for p in skeleton(Model(NAME), 3, classes).parameters()) == count


def test_parts_and_blocks() -> None:
    net = skeleton(Model(NAME, width=4), 1, 10)
    assert net.parts() == Net.PARTS
    names = [block for block, _ in net.blocks()]
    assert len(names) == 2 + sum(DEPTHS[NAME]) + 4  # three transitions and the last norm


@pytest.mark.parametrize(
    ("stem", "pixels", "sizes"),
    [
        ("conv3", 32, (32, 16, 8, 4, 4)),
        ("conv3-pool", 32, (16, 8, 4, 2, 2)),
        ("conv3", 64, (64, 32, 16, 8, 8)),
        ("conv3-pool", 8, (4, 2, 1, 1, 1)),
    ],
)
def test_map_sizes(stem: str, pixels: int, sizes: tuple[int, ...]) -> None:
    net = skeleton(Model(NAME, stem=stem), 3, 10).eval()
    x = torch.empty(2, 3, pixels, pixels, device="meta")
    found = []
    for part in net:
        x = part(x)
        found.append(tuple(x.shape[1:]))
    assert found[:-1] == [(c, s, s) for c, s in zip((64, 128, 256, 512, 1024), sizes, strict=True)]
    assert x.shape == (2, 10)


def test_a_layer_hands_on_what_came_in() -> None:
    stage = build(Model(NAME, width=4), 3, 10, seed=0).eval().stage1
    x = torch.randn(2, 4, 8, 8)
    y = stage[1](stage[0](x))
    assert torch.equal(y[:, :4], x) and y.shape[1] == 8
    last = stage[-1]
    half = last.conv(last.norm(z := torch.randn(2, 16, 4, 4)).relu())
    torch.testing.assert_close(
        last(z), half.unflatten(3, (2, 2)).unflatten(2, (2, 2)).mean(dim=(3, 5))
    )
