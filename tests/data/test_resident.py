"""Data sets as tensors that stay."""

import torch

from leak_atlas.data import readers
from leak_atlas.data.resident import resident
from leak_atlas.recipe import Data

DIGITS = Data("digits")


def test_types_and_shapes() -> None:
    data = resident(DIGITS)
    read = readers.load("digits")
    assert data.samples.dtype == torch.uint8
    assert data.shape == (8, 8, 1)
    assert torch.equal(data.samples, torch.tensor(read.x))
    assert data.labels.dtype == torch.int64
    assert data.labels.tolist() == read.labels.tolist()
    assert resident(DIGITS) is data, "loaded once"


def test_padding_is_zero_and_made_once() -> None:
    data = resident(DIGITS)
    padded = data.padded(2)
    assert padded.shape == (len(data.labels), 12, 12, 1)
    assert padded is data.padded(2)
    assert torch.equal(padded[:, 2:-2, 2:-2], data.samples)
    assert int(padded.sum()) == int(data.samples.sum())
    assert data.padded(0) is data.samples
