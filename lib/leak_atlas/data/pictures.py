"""Decodes picture files, and reduces images by an exact area average."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput, reason

if TYPE_CHECKING:
    from PIL import Image

BATCH = 2048  # images that are resized at once


def opened(file: Path) -> Image.Image:
    """The decoded picture of a file.

    BadInput, which names the file, if it cannot be decoded, or if its grey values have more than 8
    bits: Pillow would cut them off at 255.
    """
    from PIL import Image

    try:
        with Image.open(file) as image:
            image.load()
    except Exception as error:  # a damaged file makes Pillow's decoders fail in many ways
        raise BadInput(
            f"{file} is missing, damaged or no picture ({reason(error)}); remove or replace it"
        ) from error
    if image.mode[0] in "IF":
        raise BadInput(f"{file} has pixels of more than 8 bits; convert it")
    return image


def fill(x: NDArray, images: NDArray | Iterable[Path], size: int | None = None) -> None:
    """Fills `x (N, H, W, C)` uint8 with images, which are arrays or picture files.

    With a `size`, each image is `cropped` to it. A file becomes grey if C is 1, else RGB. Only one
    file at a time is in memory. BadInput for an image that is not H x W.
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
    """The picture of an array (H, W) or (H, W, C), or of a file, which becomes grey or RGB."""
    from PIL import Image

    if isinstance(source, np.ndarray):
        grey = source.shape[2:] == (1,)
        return Image.fromarray(source.squeeze(2) if grey else source)
    return opened(source).convert("L" if channels == 1 else "RGB")


def cropped(image: Image.Image, side: int) -> Image.Image:
    """The central `side` x `side` pixels, after the shorter side is resized to `side` (bilinear).

    Equal to torchvision's `Resize(side)` and `CenterCrop(side)` of a Pillow image, with which most
    models are evaluated.
    """
    from PIL import Image

    shorter = min(image.size)
    width = int(side * image.width / shorter)
    height = int(side * image.height / shorter)
    left = round((width - side) / 2)
    top = round((height - side) / 2)
    resized = image.resize((width, height), Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + side, top + side))


def _overlaps(source: int, target: int) -> NDArray:
    """How much of each of `source` pixels lies in each of `target` pixels, `(target, source)`.

    Whole numbers, in units of 1 / target of a source pixel. Every row sums to `source`, every
    column to `target`.
    """
    target_start = np.arange(target)[:, None] * source
    source_start = np.arange(source)[None, :] * target
    end = np.minimum(target_start + source, source_start + target)
    start = np.maximum(target_start, source_start)
    return np.clip(end - start, 0, None)


def resize(x: NDArray, pixels: int) -> NDArray:
    """Square images (N, H, H, C) uint8 reduced by area average to (N, pixels, pixels, C) uint8.

    Each target pixel is the mean of the source pixels under it, weighted by the area covered, and
    half is rounded up. The weights are whole numbers. For small images all sums stay below 2^24, so
    float32 is exact and the bytes are the same on every machine; larger images take float64.
    """
    n, side, _, channels = x.shape
    area = side * side
    kind: Any = np.float32 if 255 * area < 2**24 else np.float64
    weights = _overlaps(side, pixels).astype(kind)
    out = np.empty((n, pixels, pixels, channels), np.uint8)
    for start in range(0, n, BATCH):
        batch = x[start : start + BATCH]
        planes = batch.transpose(0, 3, 1, 2).astype(kind)  # n c h w
        by_row = planes @ weights.T
        total = (weights @ by_row).astype(np.int64)  # n c h' w'
        rounded = (2 * total + area) // (2 * area)
        out[start : start + BATCH] = rounded.transpose(0, 2, 3, 1)
    return out
