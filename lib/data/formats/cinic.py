"""CINIC-10's PNGs: PART/CLASS/NAME.png."""

from pathlib import Path

import numpy as np

from lib.data import formats, pictures
from lib.registry import Entry


def read(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """See `lib.data.formats`. The train part is the archive's `train` and then its `valid`.

    Each is ordered by class, then by file name as text. Greyscale images have three equal channels.
    """
    sizes = {"train": entry.train // 2, "valid": entry.train // 2, "test": entry.test}
    files = {part: sorted(source.glob(f"{part}/*/*.png"), key=Path.as_posix) for part in sizes}
    parts = [(part, [file.parent.name for file in files[part]], size) for part, size in sizes.items()]
    labels = formats.balanced(entry, source, parts)
    pictures.fill(x, [file for part in files.values() for file in part])
    return labels
