"""MNIST's idx files: train images, train labels, test images, test labels."""

from pathlib import Path

import numpy as np

from lib.data import sources
from lib.registry import Entry


def read(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """See `lib.data.formats`."""
    images, labels, test_images, test_labels = map(array, sources.files(entry, source))
    x[:] = np.concatenate([images, test_images])[..., None]
    return np.concatenate([labels, test_labels]).astype(np.int64)


def array(data: bytes) -> np.ndarray:
    """An idx file of unsigned bytes: two zero bytes, type 8, the number of axes, their lengths, the values."""
    axes = data[3]
    shape = np.frombuffer(data, ">u4", count=axes, offset=4).astype(int)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)
