"""Pictures as pixels: decoding of files, and exact reduction."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput, reason

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["area_weights", "cropped", "fill", "opened", "resize"]

BATCH = 2048  # images that are resized at once


def opened(file: Path) -> Image.Image:
    """A picture file with its pixels read. BadInput with its name where that is not possible, or
    where pixels have more than 8 bits, which Pillow would cut off at 255.
    """
    from PIL import Image

    try:
        with Image.open(file) as image:
            image.load()
    except Exception as error:  # a damaged file makes Pillow's decoders fail in many ways
        raise BadInput(f"{file} is missing, damaged or no picture ({reason(error)})") from error
    if image.mode[0] in "IF":
        raise BadInput(f"{file} has pixels of more than 8 bits; convert it")
    return image


def fill(x: NDArray, images: NDArray | Iterable[Path], size: int | None = None) -> None:
    """Fills `x (N, H, W, C)` uint8 with images, an array or picture files; with a `size` each is
    `cropped` to it. Greyscale files have equal channels, or C is 1.

    One file at a time is in memory. BadInput for a picture of another size.
    """
    if isinstance(images, np.ndarray) and images.dtype != object and size is None:
        x[:] = images.reshape(x.shape)
        return
    _, height, width, channels = x.shape
    for place, source in enumerate(images):
        image = _image(source, channels)
        if size is not None:
            image = cropped(image, size)
        if (image.height, image.width) != (height, width):
            raise BadInput(
                f"{source} has {image.height} x {image.width} pixels, not {height} x {width}"
            )
        x[place] = np.asarray(image).reshape(x.shape[1:])


def _image(source: NDArray | Path, channels: int) -> Image.Image:
    """A picture of an array (H, W) or (H, W, C), or of a file, which becomes grey or RGB."""
    from PIL import Image

    if isinstance(source, np.ndarray):
        grey = source.shape[2:] == (1,)
        return Image.fromarray(source.squeeze(2) if grey else source)
    return opened(source).convert("L" if channels == 1 else "RGB")


def cropped(image: Image.Image, side: int) -> Image.Image:
    """The picture with its shorter side resized to `side` (bilinear), and of that the middle,
    `side` x `side`.

    As torchvision's `Resize(side)` and `CenterCrop(side)` on Pillow's images, which evaluate most
    models.
    """
    from PIL import Image

    shorter = min(image.size)
    width = int(side * image.width / shorter)
    height = int(side * image.height / shorter)
    left = round((width - side) / 2)
    top = round((height - side) / 2)
    resized = image.resize((width, height), Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + side, top + side))


def area_weights(side: int, pixels: int) -> NDArray:
    """(pixels, side) whole numbers: how much of each source pixel lies in each target pixel, in
    1 / pixels.

    Every row sums to `side`, every column to `pixels`.
    """
    target_start = np.arange(pixels)[:, None] * side
    source_start = np.arange(side)[None, :] * pixels
    end = np.minimum(target_start + side, source_start + pixels)
    start = np.maximum(target_start, source_start)
    overlap = end - start
    return np.clip(overlap, 0, None)


def resize(x: NDArray, pixels: int) -> NDArray:
    """Area average of square images (N, H, H, C) uint8 to (N, pixels, pixels, C) uint8, half
    rounded up.

    Each target pixel is the mean of the source under it, partly covered pixels counting by their
    share. The weights are whole numbers and every sum stays below 2^24, so float32 products are
    exact and the bytes are the same on every machine; wider images go through float64.
    """
    n, side, _, channels = x.shape
    area = side * side
    kind: Any = np.float32 if 255 * area < 2**24 else np.float64
    weights = area_weights(side, pixels).astype(kind)
    out = np.empty((n, pixels, pixels, channels), np.uint8)
    for start in range(0, n, BATCH):
        batch = x[start : start + BATCH]
        planes = batch.transpose(0, 3, 1, 2).astype(kind)  # n c h w
        by_row = planes @ weights.T
        total = (weights @ by_row).astype(np.int64)  # n c h' w'
        rounded = (2 * total + area) // (2 * area)
        out[start : start + BATCH] = rounded.transpose(0, 2, 3, 1)
    return out
