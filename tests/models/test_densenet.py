"""DenseNet against its parameter counts and map sizes, and through a training that holds its front."""

import pytest
import torch

from leak_atlas import BadInput
from leak_atlas.models import Net, build, skeleton
from leak_atlas.models.densenet import DEPTHS
from leak_atlas.recipe import Model
from tests.models.chains import assert_front_is_held, assert_no_distance_before, images

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
    in_blocks = {f"{block}.{own}" for block, module in net.blocks() for own in module.state_dict()}
    assert in_blocks == set(net.state_dict())


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


@pytest.mark.parametrize("place", ["stage2", "stage2.5"])
def test_the_front_is_held_and_kept(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_front_is_held(Model(NAME, width=2), place, monkeypatch)


def test_distances_begin_where_two_nets_part() -> None:
    assert_no_distance_before(Model(NAME, width=2), "stage4.1", images())


def test_impossible_networks_are_refused() -> None:
    for fields in ({"stage4_channels": 8}, {"stage4_stride": 1}, {"patch": 2}, {"hidden": 8}):
        with pytest.raises(BadInput, match=f"{next(iter(fields))} belongs to the"):
            Model(NAME, **fields)
    with pytest.raises(BadInput, match="half its width: give an even one, not 5"):
        Model(NAME, width=5)
