"""Pictures as pixels: decoding of files, and exact reduction."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leak_atlas import BadInput, reason

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["area_weights", "cropped", "fill", "opened", "resize"]

BATCH = 2048  # images that are resized at once


@contextlib.contextmanager
def opened(file: Path) -> Iterator[Image.Image]:
    """Opens a picture file and reads its head; the caller decodes the pixels.

    Raises BadInput with the file's name where it cannot be read, also while the caller decodes it;
    where pixels have more than 8 bits, which Pillow would cut off at 255; and beyond Pillow's limit
    of pixels, because a small file may fill the memory when it is decoded.
    """
    from PIL import Image

    try:
        refusal = warnings.catch_warnings(action="error", category=Image.DecompressionBombWarning)
        with refusal, Image.open(file) as image:
            if image.mode[0] in "IF":
                raise BadInput(f"{file} has pixels of more than 8 bits; convert it")
            yield image
    except BadInput:
        raise
    except Exception as error:  # a damaged file makes Pillow's decoders fail in many ways
        raise BadInput(f"{file} is missing, damaged or no picture ({reason(error)})") from error


def fill(x: np.ndarray, images: Iterable[Path] | np.ndarray, crop: bool = False) -> None:
    """Fills `x (N, H, W, C)` with picture files, or with images (N, H', W') or (N, H', W', C)
    uint8. Greyscale ones have equal channels, or C is 1.

    With `crop` each is `cropped` to H = W pixels. One at a time is in memory. BadInput for a
    picture that is missing, damaged, or, without `crop`, of another size.
    """
    from PIL import Image

    mode = "L" if x.shape[3] == 1 else "RGB"
    for place, source in enumerate(images):
        if isinstance(source, np.ndarray):
            image = Image.fromarray(source.squeeze(2) if source.shape[2:] == (1,) else source)
        else:
            with opened(source) as file:
                image = file.convert(mode)
        if crop:
            image = cropped(image, x.shape[1])
        elif image.size[::-1] != x.shape[1:3]:
            sizes = f"{image.height} x {image.width} pixels, not {x.shape[1]} x {x.shape[2]}"
            raise BadInput(f"{source} has {sizes}")
        x[place] = np.asarray(image).reshape(x.shape[1:])


def cropped(image: Image.Image, side: int) -> Image.Image:
    """The picture with its shorter side resized to `side` (bilinear), and of that the middle,
    `side` x `side`.

    As torchvision's `Resize(side)` and `CenterCrop(side)` on Pillow's images, which evaluate most
    models. BadInput for a picture so long that its resized form exceeds Pillow's limit of pixels.
    """
    from PIL import Image

    shorter = min(image.size)
    wide, tall = (int(side * length / shorter) for length in image.size)
    if wide * tall > (Image.MAX_IMAGE_PIXELS or math.inf):
        raise BadInput(
            f"a picture of {image.height} x {image.width} pixels is too long to be resized to {side}"
        )
    left, top = round((wide - side) / 2), round((tall - side) / 2)
    resized = image.resize((wide, tall), Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + side, top + side))


def area_weights(side: int, pixels: int) -> np.ndarray:
    """(pixels, side) float32 whole numbers: how much of each source pixel lies in each target
    pixel, in 1 / pixels.

    Every row sums to `side`, every column to `pixels`.
    """
    target, source = np.arange(pixels)[:, None] * side, np.arange(side)[None, :] * pixels
    overlap = np.minimum(target + side, source + pixels) - np.maximum(target, source)
    return np.clip(overlap, 0, None).astype(np.float32)


def resize(x: np.ndarray, pixels: int) -> np.ndarray:
    """Area average of square images (N, H, H, C) uint8 to (N, pixels, pixels, C) uint8, half
    rounded up.

    Each target pixel is the mean of the source under it, partly covered pixels counting by their
    share. The weights are whole numbers and every sum stays below 2^24, so float32 products are
    exact and the bytes are the same on every machine; wider images go through float64.
    """
    n, side, _, channels = x.shape
    kind: Any = np.float32 if 255 * side * side < 2**24 else np.float64
    weights = area_weights(side, pixels).astype(kind)
    out = np.empty((n, pixels, pixels, channels), np.uint8)
    for start in range(0, n, BATCH):
        part = x[start : start + BATCH].transpose(0, 3, 1, 2)  # n c h w
        wide = part.reshape(-1, side).astype(kind) @ weights.T  # n c h, w'
        # n c w', h'
        tall = wide.reshape(-1, side, pixels).swapaxes(1, 2).reshape(-1, side) @ weights.T
        total = tall.reshape(len(part), channels, pixels, pixels).astype(np.int64)
        out[start : start + BATCH] = ((2 * total + side * side) // (2 * side * side)).transpose(
            0, 3, 2, 1
        )
    return out
