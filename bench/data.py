"""Crop, flip and normalisation of CIFAR-shaped images: torchvision's transforms in a DataLoader,
against our gather.

2,000 random 32 x 32 colour images in batches of 128, one thread. The DataLoader has no workers:
they would only spread the same work over more processors. Ratio: its processor time over ours, one
shuffled and augmented epoch each.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from bench.ratios import Ratio, compare
from bench.vision import torchvision
from leak_atlas.data import augmentation
from leak_atlas.data.resident import Resident
from leak_atlas.recipe import Augment

BATCH, CROP = 128, 4
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)


def images(n: int) -> Resident:
    """Random images: the time does not depend on what they show."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (n, 32, 32, 3), dtype=torch.uint8, generator=generator)
    labels = torch.randint(0, 10, (n,), generator=generator)
    return Resident(pixels, labels, torch.tensor(MEAN), torch.tensor(STD), n, 10)


class Usual(Dataset[tuple[Tensor, int]]):
    """What most training code does with CIFAR: image by image, through PIL."""

    def __init__(self, data: Resident) -> None:
        transforms = torchvision().transforms
        self.pixels, self.labels = data.samples.numpy(), data.labels.tolist()
        self.transform = transforms.Compose(
            [
                transforms.RandomCrop(32, padding=CROP),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        from PIL import Image

        return self.transform(Image.fromarray(self.pixels[i])), self.labels[i]


def main() -> dict[str, Ratio]:
    """Print and return the ratio."""
    torch.set_num_threads(1)
    data = images(2000)
    loader = DataLoader(Usual(data), batch_size=BATCH, shuffle=True)

    def usual() -> None:
        for _ in loader:
            pass

    def ours() -> None:
        perm, *draws = augmentation.tables(0, 0, len(data.labels), Augment(CROP))
        for rows, dy, dx, flip in zip(
            *(column.split(BATCH) for column in (perm, *draws)), strict=True
        ):
            augmentation.gather(data, rows, dy, dx, flip, CROP)

    ours()
    return compare("data path", usual, ours, required=4.0, loops=10)


if __name__ == "__main__":
    main()
