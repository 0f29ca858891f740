"""Counts against arithmetic."""

import numpy as np
import pytest

from lib.models import build
from lib.recipe import Model
from lib.training.cost import anatomy, flops


def test_resnet18_at_full_width() -> None:
    operations, parameters = flops(Model("resnet18"), 3, 10, 32)
    assert parameters == 11_173_962
    assert 3 * operations / 1e9 == pytest.approx(3.33, abs=0.01)  # a training step is about three forward passes


def test_block_by_block() -> None:
    counts = anatomy(Model("resnet10", width=8), 1, 10, 16)
    assert counts["parts"].tolist() == ["stem", "stage1.0", "stage2.0", "stage3.0", "stage4.0", "head"]
    assert counts["activations"].tolist() == [8 * 256, 8 * 256, 16 * 64, 32 * 16, 64 * 4, 10]
    assert counts["flops"][0] == 2 * 9 * 8 * 256
    assert counts["flops"][1] == 2 * 2 * 9 * 8 * 8 * 256
    assert counts["flops"][2] == 2 * 64 * (9 * 8 * 16 + 9 * 16 * 16 + 8 * 16)
    assert counts["flops"][-1] == 2 * 64 * 10
    net = build(Model("resnet10", width=8), 1, 10, seed=0)
    own = [sum(p.numel() for p in block.parameters()) for _, block in net.blocks()]
    np.testing.assert_array_equal(counts["parameters"], own)
