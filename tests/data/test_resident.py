"""Data sets as tensors that stay."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from leak_atlas.data import readers, resident
from leak_atlas.recipe import Data


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None]]:
    """Readers that note who asked."""
    asked: list[tuple[str, int | None]] = []

    def load(name: str, pixels: int | None) -> SimpleNamespace:
        asked.append((name, pixels))
        x = np.arange(4 * 6 * 5, dtype=np.uint8).reshape(4, 6, 5, 1)
        x.flags.writeable = False  # as a memory-mapped file is
        return SimpleNamespace(x=x, labels=np.array([3, 1, 2, 0]), train=3)

    monkeypatch.setattr(readers, "load", load)
    monkeypatch.setattr(resident, "resident", cache(resident.resident.__wrapped__))
    return asked


def test_types_and_shapes(fake: list[tuple[str, int | None]]) -> None:
    data = resident.resident(Data())
    assert data.samples.dtype == torch.uint8 and data.shape == (6, 5, 1)
    assert data.labels.dtype == torch.int64 and data.labels.tolist() == [3, 1, 2, 0]
    assert data.mean.shape == data.std.shape == (1,) and data.mean.dtype == torch.float32
    assert data.train == 3 and data.classes == 10
    assert data.device == torch.device("cpu")
    assert resident.resident(Data()) is data and fake == [("fashion-mnist-small", None)]


def test_padding_is_zero_and_made_once(fake: list[tuple[str, int | None]]) -> None:
    data = resident.resident(Data())
    padded = data.padded(2)
    assert padded.shape == (4, 10, 9, 1) and padded is data.padded(2)
    assert torch.equal(padded[:, 2:-2, 2:-2], data.samples)
    assert int(padded.sum()) == int(data.samples.sum())
    assert data.padded(0) is data.samples
