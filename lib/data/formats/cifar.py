"""CIFAR's pickled batches, the train part's first, and the names of their classes, which are not read."""

import pickle
from pathlib import Path

import numpy as np

from lib.data import sources
from lib.registry import Entry


def read(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """See `lib.data.formats`. A row of a batch has all red, then all green, then all blue values."""
    batches = [pickle.loads(data, encoding="latin1") for data in sources.files(entry, source)[:-1]]  # digests are known
    height, width, channels = entry.shape
    rows = np.concatenate([batch["data"] for batch in batches])
    x[:] = rows.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
    return np.concatenate([batch.get("fine_labels") or batch["labels"] for batch in batches]).astype(np.int64)
