"""Crop and flip by index arithmetic against torchvision's transforms on the same draws."""

import numpy as np
import pytest
import torch
from bench.vision import torchvision

from leak_atlas import BadInput
from leak_atlas.data.augmentation import gather, plain, tables, views
from leak_atlas.data.resident import Resident
from leak_atlas.recipe import Augment

MEAN = (0.49, 0.48, 0.45)
STD = (0.25, 0.24, 0.26)


def images(height: int, width: int, channels: int) -> Resident:
    generator = torch.Generator().manual_seed(0)
    return Resident(
        torch.randint(
            0, 256, (60, height, width, channels), dtype=torch.uint8, generator=generator
        ),
        torch.randint(0, 10, (60,), generator=generator),
        torch.tensor(MEAN[:channels]),
        torch.tensor(STD[:channels]),
        50,
        10,
    )


@pytest.mark.parametrize("shape", [(32, 32, 3), (28, 28, 1), (12, 20, 3)])
@pytest.mark.parametrize("crop", [0, 2, 4])
def test_equal_to_torchvision(shape: tuple[int, int, int], crop: int) -> None:
    from PIL import Image

    functional = torchvision().transforms.functional
    data = images(*shape)
    index = torch.arange(50)
    _, dy, dx, flip = tables(1, 2, 50, Augment(crop))
    found = gather(data, index, dy, dx, flip, crop)
    assert found.dtype == torch.float32
    assert found.is_contiguous(memory_format=torch.channels_last)
    for i in range(50):
        image = Image.fromarray(data.samples[i].numpy().squeeze())
        # what RandomCrop(size, padding=crop) does with its draw
        image = functional.pad(image, [crop] * 4, fill=0)
        image = functional.crop(image, int(dy[i]), int(dx[i]), shape[0], shape[1])
        image = functional.hflip(image) if flip[i] else image
        expected = functional.normalize(
            functional.to_tensor(image), MEAN[: shape[2]], STD[: shape[2]]
        )
        torch.testing.assert_close(found[i], expected, atol=2e-6, rtol=0)


def test_plain_is_the_middle_unmirrored() -> None:
    data = images(16, 16, 1)
    index = torch.tensor([5, 5, 0, 59])
    middle = torch.full((4,), 3)
    found = gather(data, index, middle, middle, torch.zeros(4, dtype=torch.bool), 3)
    assert torch.equal(plain(data, index), found)
    assert found.shape == (4, 1, 16, 16)


def test_tables_depend_on_seed_and_epoch_alone() -> None:
    torch.manual_seed(1)
    first = tables(3, 4, 100, Augment(4))
    torch.rand(7)
    assert all(torch.equal(a, b) for a, b in zip(first, tables(3, 4, 100, Augment(4)), strict=True))
    for seed, epoch in ((2, 4), (3, 5), (4, 3)):
        other = tables(seed, epoch, 100, Augment(4))
        assert not torch.equal(first.perm, other.perm)
        assert not torch.equal(first.dy, other.dy)
    assert not torch.equal(first.dy, tables(3, 4, 100, Augment(4), stream=5).dy)
    # augmenting does not change the order
    assert torch.equal(first.perm, tables(3, 4, 100, None).perm)


def test_tables_are_uniform() -> None:
    perm, dy, dx, flip = tables(0, 0, 20_000, Augment(4))
    assert torch.equal(perm.sort().values, torch.arange(20_000))
    for offsets in (dy, dx):
        assert (offsets.min(), offsets.max()) == (0, 8)
        counts = np.bincount(offsets.numpy(), minlength=9)
        # chi-squared, 8 degrees: p = 2e-4
        assert ((counts - 20_000 / 9) ** 2 / (20_000 / 9)).sum() < 30
    assert abs(float(flip.double().mean()) - 0.5) < 0.015
    assert abs(np.corrcoef(dy, dx)[0, 1]) < 0.03
    assert not tables(0, 0, 100, Augment(4, flip=False)).flip.any()
    still = tables(0, 0, 100, None)
    assert not still.dy.any()
    assert not still.dx.any()
    assert not still.flip.any()


def test_views() -> None:
    assert views(1) == [(0, 0, False)]
    assert views(2) == [(0, 0, False), (0, 0, True)]
    every = views(18, 2)
    assert every[0] == (0, 0, False)
    assert every[1] == (0, 0, True)
    assert set(every) == {
        (dy, dx, flip) for dy in (-2, 0, 2) for dx in (-2, 0, 2) for flip in (False, True)
    }
    with pytest.raises(BadInput):
        views(3)
