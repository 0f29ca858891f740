"""A tiny data set that a tiny network learns in a second."""

import pytest
import torch

from leak_atlas.data.resident import Resident
from leak_atlas.models import Net, build
from leak_atlas.recipe import Model

MODEL = Model("resnet10", width=2)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def data() -> Resident:
    """96 images of 8x8, three classes that differ in which third is bright."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(96) % 3
    images = torch.randint(0, 120, (96, 8, 8, 1), generator=generator)
    for label in range(3):
        images[labels == label, 3 * label : 3 * label + 2] += 100
    return Resident(images.to(torch.uint8), labels, torch.tensor([0.3]), torch.tensor([0.2]), 72, 3)


@pytest.fixture
def net() -> Net:
    return build(MODEL, 1, 3, seed=0)
