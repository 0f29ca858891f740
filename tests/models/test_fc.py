"""The fully connected network against the papers' parameter counts, and what it reads."""

import pytest
import torch

from leak_atlas import BadInput
from leak_atlas.models import build, skeleton
from leak_atlas.recipe import Data, Model, RandomHalves, Schedule, Setup


@pytest.mark.parametrize(
    ("features", "classes", "count"),
    [(446, 30, 151_198), (600, 100, 199_652), (6169, 100, 1_625_316)],
)
def test_at_width_256_it_is_the_papers_net(features: int, classes: int, count: int) -> None:
    net = skeleton(Model("fc", width=256), features, classes)
    assert sum(p.numel() for p in net.parameters()) == count
    assert net.parts() == ("stage1", "stage2", "head") and [name for name, _ in net.blocks()] == [
        *net.parts()
    ]
    shares = [module.p for module in net.modules() if isinstance(module, torch.nn.Dropout)]
    assert shares == [0.1, 0.1]


def test_it_reads_bits_and_numbers_alone() -> None:
    assert build(Model("fc", width=8), 5, 3, seed=0)(torch.rand(2, 5)).shape == (2, 3)
    bits = Data("digits-bits")
    for data, model, words in (
        (Data(pixels=8), Model("fc"), "reads bits and numbers"),
        (bits, Model(), "reads images"),
    ):
        with pytest.raises(BadInput, match=words):
            Setup(data, RandomHalves(20, 0), model, Schedule(1), 1).trained()
