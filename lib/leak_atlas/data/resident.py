"""A data set as integer tensors that stay on the device of the training."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from leak_atlas import BadInput
from leak_atlas.data import readers, words
from leak_atlas.recipe import Data, registry


@dataclass(eq=False)
class Resident:
    """Samples and their labels `(n,)` int64 on one device; the first `train` are the data set's
    train part.

    Samples are images `(n, height, width, channels)` uint8, bits `(n, D)` uint8 of 0 and 1, numbers
    `(n, D)` float32 with mean 0 and deviation 1 over the train part, or texts `(n, length)` int32
    of word numbers, 0 where a text has ended. `mean` and `std` `(channels,)` float32 belong to
    pixel values between 0 and 1; without pixels they are empty.
    """

    samples: Tensor
    labels: Tensor
    mean: Tensor
    std: Tensor
    train: int
    classes: int
    _made: dict[tuple[str, int], Tensor] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of an image; raises BadInput if there are no images."""
        if not self.pictures:
            raise BadInput(
                "only images can be cropped, mirrored or shifted: ask for plain samples, views=1"
            )
        height, width, channels = self.samples.shape[1:]
        return height, width, channels

    @property
    def pictures(self) -> bool:
        """Whether samples are images."""
        return self.samples.ndim == 4

    @property
    def device(self) -> torch.device:
        return self.samples.device

    def _once(self, name: str, crop: int, make: Callable[[], Tensor]) -> Tensor:
        """What is made at the first call. A CUDA device is waited for: trainings on other streams
        will read it.
        """
        if (name, crop) not in self._made:
            self._made[name, crop] = make()
            if self.device.type == "cuda":
                torch.cuda.current_stream(self.device).synchronize()
        return self._made[name, crop]

    @property
    def row(self) -> Tensor:
        """Factor and subtrahend that normalise one row of a uint8 image: `(2, width * channels)`."""

        def made() -> Tensor:
            factor = 1 / (255 * self.std)
            subtrahend = self.mean / self.std
            _, width, _ = self.shape
            return torch.stack([factor, subtrahend]).repeat(1, width)

        return self._once("row", 0, made)

    def padded(self, crop: int) -> Tensor:
        """The images with `crop` zero pixels on each side."""
        if crop == 0:
            return self.samples
        sides = (0, 0, crop, crop, crop, crop)
        return self._once("padded", crop, lambda: functional.pad(self.samples, sides))

    def window(self, crop: int) -> Tensor:
        """Where the pixels of a crop lie in a padded image, counted from the crop's first: `(2,
        height * width)` int64, as they are and mirrored."""

        def made() -> Tensor:
            height, width, _ = self.shape
            row = torch.arange(height, device=self.device) * (width + 2 * crop)
            column = torch.arange(width, device=self.device)
            as_they_are = row[:, None] + column
            mirrored = row[:, None] + column.flip(0)
            return torch.stack([as_they_are, mirrored]).flatten(1)

        return self._once("window", crop, made)


@cache
def resident(data: Data, device: str = "cpu") -> Resident:
    """The data set of a recipe on `device`, loaded once per process.

    Raises BadInput if the files are missing, with what to do about it.
    """
    entry = registry.find(data.name)
    read = readers.load(data.name, data.pixels)
    x = read.x
    if entry.kind == "text":
        x = words.encoded(x, read.train, data.words, data.length)
    elif entry.kind == "numbers":
        train = x[: read.train]
        mean = train.mean(axis=0, dtype=np.float64)
        std = train.std(axis=0, dtype=np.float64)
        varying = np.where(std > 0, std, 1)
        x = ((x - mean) / varying).astype(np.float32)
    labels = readers.labels(data, read)
    return Resident(
        samples=torch.tensor(x, device=device),
        labels=torch.tensor(labels, dtype=torch.int64, device=device),
        mean=torch.tensor(entry.mean, dtype=torch.float32, device=device),
        std=torch.tensor(entry.std, dtype=torch.float32, device=device),
        train=read.train,
        classes=len(entry.classes),
    )
