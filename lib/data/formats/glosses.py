"""Lines of `part <tab> class <tab> text`, as the package carries WordNet's glosses."""

from pathlib import Path

import numpy as np

from lib.data import sources
from lib.registry import Entry


def read(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """See `lib.data.formats`."""
    (data,) = sources.files(entry, source)
    _, classes, x[:] = zip(*(line.split("\t") for line in data.decode("ascii").splitlines()), strict=True)
    return np.array([entry.classes.index(f"noun.{name}") for name in classes], np.int64)
