"""A data set as uint8 tensors that stay on the device of the training."""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from lib.data import readers, registry
from lib.recipe import Data

_LOADED: dict[tuple[str, str], "Resident"] = {}


@dataclass(eq=False)
class Resident:
    """Images `(n, height, width, channels)` uint8 and labels `(n,)` int64 on one device; the first `train` are the
    data set's train part. `mean` and `std` `(channels,)` float32 belong to pixel values between 0 and 1."""

    images: Tensor
    labels: Tensor
    mean: Tensor
    std: Tensor
    train: int
    classes: int
    _padded: dict[int, Tensor] = field(default_factory=dict, repr=False)
    _windows: dict[int, Tensor] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of an image."""
        height, width, channels = self.images.shape[1:]
        return height, width, channels

    @property
    def device(self) -> torch.device:
        return self.images.device

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
            return self.images
        if crop not in self._padded:
            self._padded[crop] = functional.pad(self.images, (0, 0, crop, crop, crop, crop))
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


def resident(data: Data, device: str | torch.device = "cpu") -> Resident:
    """The data set of a recipe on `device`, loaded once per process.

    Raises BadInput where the files are missing, with what to do about it.
    """
    place = torch.device(device)
    name = (data.key, str(place))
    if name not in _LOADED:
        entry = registry.find(data.name)
        samples = readers.load(data.name, data.pixels)
        _LOADED[name] = Resident(
            images=torch.tensor(samples.x, device=place),
            labels=torch.tensor(samples.labels, dtype=torch.int64, device=place),
            mean=torch.tensor(entry.mean, dtype=torch.float32, device=place),
            std=torch.tensor(entry.std, dtype=torch.float32, device=place),
            train=samples.train,
            classes=len(entry.classes),
        )
    return _LOADED[name]
