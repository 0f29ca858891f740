"""SVHN's .mat files: images (H, W, C, N), and labels in which 10 is the digit 0."""

import io
from pathlib import Path

import numpy as np

from lib.data import sources
from lib.registry import Entry


def read(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """See `lib.data.formats`."""
    from scipy.io import loadmat

    parts = [loadmat(io.BytesIO(data)) for data in sources.files(entry, source)]
    x[:] = np.concatenate([part["X"] for part in parts], axis=3).transpose(3, 0, 1, 2)
    return np.concatenate([part["y"].ravel() for part in parts]).astype(np.int64) % 10
