"""A data set as integer tensors that stay on the device of the training."""

from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lib import BadInput, registry
from lib.data import readers, words
from lib.recipe import Data


@dataclass(eq=False)
class Resident:
    """Samples and their labels `(n,)` int64 on one device; the first `train` are the data set's train part.

    Samples are images `(n, height, width, channels)` uint8, bits `(n, D)` uint8 of 0 and 1, numbers `(n, D)` float32
    with mean 0 and deviation 1 over the train part, or texts `(n, length)` int32 of word numbers, 0 where a text has
    ended. `mean` and `std` `(channels,)` float32 belong to pixel values
    between 0 and 1; without pixels they are empty.
    """

    samples: Tensor
    labels: Tensor
    mean: Tensor
    std: Tensor
    train: int
    classes: int
    _padded: dict[int, Tensor] = field(default_factory=dict, repr=False)
    _windows: dict[int, Tensor] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of an image; BadInput where there are no images."""
        if not self.pictures:
            raise BadInput("only images can be cropped, mirrored or shifted: ask for plain samples, views=1")
        height, width, channels = self.samples.shape[1:]
        return height, width, channels

    @property
    def pictures(self) -> bool:
        """Whether samples are images."""
        return self.samples.ndim == 4

    @property
    def device(self) -> torch.device:
        return self.samples.device

    @cached_property
    def row(self) -> tuple[Tensor, Tensor]:
        """Factor and subtrahend `(width * channels,)` that normalise one row of a uint8 image."""
        width = self.shape[1]
        made = (1 / (255 * self.std)).repeat(width), (self.mean / self.std).repeat(width)
        _settle(self.device)
        return made

    def padded(self, crop: int) -> Tensor:
        """The images with `crop` zero pixels on each side, made at the first call."""
        if crop == 0:
            return self.samples
        if crop not in self._padded:
            self._padded[crop] = functional.pad(self.samples, (0, 0, crop, crop, crop, crop))
            _settle(self.device)
        return self._padded[crop]

    def window(self, crop: int) -> Tensor:
        """Where the pixels of a crop lie in a padded image, counted from the crop's first: `(2, height * width)` int64,
        as they are and mirrored; made at the first call."""
        if crop not in self._windows:
            height, width, _ = self.shape
            row = torch.arange(height, device=self.device)[:, None] * (width + 2 * crop)
            column = torch.arange(width, device=self.device)
            self._windows[crop] = torch.stack([row + column, row + column.flip(0)]).flatten(1)
            _settle(self.device)
        return self._windows[crop]


def _settle(device: torch.device) -> None:
    """Wait until what was asked of a CUDA device is there: trainings on other streams will read it."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()


@cache
def resident(data: Data, device: str = "cpu") -> Resident:
    """The data set of a recipe on `device`, loaded once per process.

    Raises BadInput where the files are missing, with what to do about it.
    """
    entry = registry.find(data.name)
    read = readers.load(data.name, data.pixels)
    x = read.x
    if entry.kind == "text":
        x = words.encoded(x, read.train, data.words, data.length)
    elif entry.kind == "numbers":
        mean, std = (of(x[: read.train], axis=0, dtype=np.float64) for of in (np.mean, np.std))
        x = ((x - mean) / np.where(std > 0, std, 1)).astype(np.float32)
    labels = torch.tensor(read.labels, dtype=torch.int64, device=device)
    pixels = [torch.tensor(moment, dtype=torch.float32, device=device) for moment in (entry.mean, entry.std)]
    return Resident(torch.tensor(x, device=device), labels, pixels[0], pixels[1], read.train, len(entry.classes))
