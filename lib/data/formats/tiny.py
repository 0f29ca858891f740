"""Tiny ImageNet's JPEGs."""

from pathlib import Path

import numpy as np

from lib import BadInput
from lib.data import formats, pictures
from lib.registry import Entry

ANNOTATIONS = "val/val_annotations.txt"


def read(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """See `lib.data.formats`. Greyscale images have three equal channels.

    The train part is ordered by class, then by file name as text. The test part is the archive's `val` in the order of
    its annotations, for the archive's own test images have no labels.
    """
    train = sorted(source.glob("train/*/images/*.JPEG"), key=Path.as_posix)
    try:
        val = [line.split("\t") for line in (source / ANNOTATIONS).read_text("ascii").splitlines()]
        wnids = {file: wnid for file, wnid, *_ in val}
    except (OSError, ValueError) as error:  # not there, not ASCII, or not of that many columns
        raise BadInput(f"{entry.name}: {ANNOTATIONS} in {source} is missing or damaged; get it again") from error
    parts = [("train", [file.parts[-3] for file in train], entry.train), ("val", [*wnids.values()], entry.test)]
    labels = formats.balanced(entry, source, parts)
    pictures.fill(x, train + [source / "val/images" / file for file in wnids])
    return labels
