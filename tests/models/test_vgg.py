"""VGG against the papers' parameter counts and map sizes, and through a training that holds its
front.
"""

import pytest
import torch

from leak_atlas.models import build, skeleton
from leak_atlas.models.vgg import DEPTHS
from leak_atlas.recipe import Model

FEATURES = {"vgg11": 9_225_984, "vgg13": 9_410_880, "vgg16": 14_723_136, "vgg19": 20_035_392}


@pytest.mark.parametrize("name", FEATURES)
def test_full_width_is_the_papers_net(name: str) -> None:
    net = skeleton(Model(name), 3, 100)
    assert sum(p.numel() for p in net[:-1].parameters()) == FEATURES[name]
    assert sum(p.numel() for p in net.head.parameters()) == 513 * 100


def test_hidden_layers_make_the_net_of_pruning() -> None:
    net = skeleton(Model("vgg16", hidden=4096), 3, 10)
    assert sum(p.numel() for p in net.parameters()) == 33_646_666
    names = [name for name, _ in net.head.named_parameters() if name.endswith("weight")]
    assert names == ["hidden.0.fc.weight", "hidden.1.fc.weight", "fc.weight"]
    made = build(Model("vgg11", width=4, hidden=6), 3, 10, seed=0)
    x = torch.randn(5, 3, 16, 16)
    assert not torch.equal(made(x), made(x)) and torch.equal(made.eval()(x), made(x))


@pytest.mark.parametrize("name", DEPTHS)
def test_parts_and_blocks(name: str) -> None:
    net = skeleton(Model(name, width=4), 1, 10)
    assert net.parts() == ("stage1", "stage2", "stage3", "stage4", "stage5", "head")
    names = [block for block, _ in net.blocks()]
    # the three fully connected layers of the number are one here
    assert len(names) == int(name[3:]) - 2
    assert names[0] == "stage1.0" and names[-1] == "head"


@pytest.mark.parametrize(
    ("pixels", "sizes"),
    [
        (64, (32, 16, 8, 4, 2)),
        (32, (16, 8, 4, 2, 1)),
        (28, (14, 7, 3, 1, 1)),
        (16, (8, 4, 2, 1, 1)),
    ],
)
@pytest.mark.parametrize("name", ["vgg11", "vgg19"])
def test_map_sizes(name: str, pixels: int, sizes: tuple[int, ...]) -> None:
    net = skeleton(Model(name), 3, 10).eval()
    x = torch.empty(2, 3, pixels, pixels, device="meta")
    found = []
    for part in net:
        x = part(x)
        found.append(tuple(x.shape[1:]))
    assert found[:-1] == [(c, s, s) for c, s in zip((64, 128, 256, 512, 512), sizes, strict=True)]
    assert x.shape == (2, 10)


def test_a_stage_ends_with_the_largest_of_each_four_pixels() -> None:
    stage = build(Model("vgg11", width=4), 3, 10, seed=0).eval().stage1
    x = torch.randn(2, 3, 8, 8)
    whole = stage[0].norm(stage[0].conv(x)).relu()
    expected = whole.unflatten(3, (4, 2)).unflatten(2, (4, 2)).amax(dim=(3, 5))
    assert torch.equal(stage(x), expected)


def test_channels_of_a_stage() -> None:
    net = build(Model("vgg11", width=4, stage3_channels=6, stage4_channels=10), 3, 10, seed=0)
    assert [stage[-1].norm.num_features for stage in net[:-1]] == [4, 8, 6, 10, 32]
    assert net(torch.randn(2, 3, 16, 16)).shape == (2, 10)
