"""Plain convolutional networks: counts and maps by hand, depth alone between them, a training that
holds a front.
"""

import pytest
import torch

from leak_atlas import BadInput
from leak_atlas.models import build, skeleton
from leak_atlas.recipe import Model
from leak_atlas.recipe.steps import filtered

NAMES = ("cnn2", "cnn4", "cnn6")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("pixels", "sides"), [(32, (16, 8)), (28, (14, 7)), (3, (1, 1)), (1, (1, 1))]
)
def test_counts_and_maps_by_hand(name: str, pixels: int, sides: tuple[int, ...]) -> None:
    net, each = skeleton(Model(name, width=8), 3, 10, pixels), int(name[3:]) // 2
    inner = [(3, 8), *[(8, 8)] * (each - 1), (8, 16), *[(16, 16)] * (each - 1)]
    convolutions = sum(9 * before * after + after for before, after in inner)
    assert sum(p.numel() for p in net[:-1].parameters()) == convolutions
    assert sum(p.numel() for p in net.head.parameters()) == (16 * sides[-1] ** 2 + 1) * 10
    assert net.parts() == ("stage1", "stage2", "head") and len(list(net.blocks())) == 2 * each + 1
    x, found = torch.empty(2, 3, pixels, pixels, device="meta"), []
    for part in net:
        x = part(x)
        found.append(tuple(x.shape[1:]))
    assert found == [(8, sides[0], sides[0]), (16, sides[1], sides[1]), (10,)]


def test_it_is_convolutions_relu_pool_and_a_linear_layer() -> None:
    net, x = build(Model("cnn4", width=4), 3, 5, seed=0, size=8), torch.randn(2, 3, 8, 8)
    own, y = net.state_dict(), x
    for stage in ("stage1", "stage2"):
        for number in range(2):
            weight, bias = (own[f"{stage}.{number}.conv.{part}"] for part in ("weight", "bias"))
            y = torch.nn.functional.conv2d(y, weight, bias, padding=1).relu()
        y = torch.nn.functional.max_pool2d(y, 2)
    torch.testing.assert_close(net(x), y.flatten(1) @ own["head.fc.weight"].T + own["head.fc.bias"])
    assert len(own) == 10 and not own["stage2.1.conv.bias"].any()


def test_it_has_no_norms() -> None:
    assert not Model("cnn2").shares_statistics
    with pytest.raises(BadInput, match="unlike a cnn2: take a resnet"):
        filtered(Model("cnn2"), "PruneFilters")
