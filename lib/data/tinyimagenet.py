"""Tiny ImageNet's JPEG files as one array, from its zip or from the folder to which that unpacks."""

from __future__ import annotations

import contextlib
import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from lib import BadInput
from lib.data.registry import Entry

URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
ANNOTATIONS = "val/val_annotations.txt"

Read = Callable[[str], bytes]  # the content of a file, named relative to the archive's one folder


def write(entry: Entry, source: Path, to: Path) -> np.ndarray:
    """Decodes every labelled image of `source`, a zip or a folder, into the .npy file `to`; returns their labels.

    `to` holds (N, H, W, 3) uint8; one image at a time is in memory. Greyscale images have three equal channels. The
    train part is ordered by class, then by file name as text. The test part is the archive's `val` in the order of its
    annotations, for the archive's own test images have no labels. Labels are (N,) int64, places in `entry.classes`.

    BadInput where a class, an image or the annotations are missing, and for an image that cannot be decoded or has
    another size.
    """
    with _opened(entry, source) as (train, read):
        names, labels = _listed(entry, source, sorted(train), read)
        with to.open("wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (entry.size, *entry.shape)}
            np.lib.format.write_array_header_1_0(file, header)
            for name in names:
                file.write(_pixels(entry, source, name, read).tobytes())
    return labels


@contextlib.contextmanager
def _opened(entry: Entry, source: Path) -> Iterator[tuple[list[str], Read]]:
    """The names of the train images, and how to read a file."""
    if source.is_dir():
        paths = source.glob("train/*/images/*.JPEG")
        yield [path.relative_to(source).as_posix() for path in paths], lambda name: (source / name).read_bytes()
        return
    pattern = re.compile(rf"{re.escape(entry.layout)}/(train/[^/]+/images/[^/]+\.JPEG)")
    with zipfile.ZipFile(source) as packed:
        images = [match[1] for name in packed.namelist() if (match := pattern.fullmatch(name))]
        yield images, lambda name: packed.read(f"{entry.layout}/{name}")


def _listed(entry: Entry, source: Path, train: list[str], read: Read) -> tuple[list[str], np.ndarray]:
    """The names of all labelled images in the order of the arrays, and their labels."""
    try:
        val = [line.split("\t") for line in read(ANNOTATIONS).decode("ascii").splitlines()]
        parts = {"train": [name.split("/")[1] for name in train], "val": [wnid for _, wnid, *_ in val]}
    except (OSError, KeyError, ValueError) as error:
        raise BadInput(f"{entry.name}: {ANNOTATIONS} in {source} is missing or damaged; get it again") from error
    number = {wnid: label for label, wnid in enumerate(entry.classes)}
    for (part, wnids), size in zip(parts.items(), (entry.train, entry.test), strict=True):
        each = size // len(number)
        counts = Counter(wnids)
        wrong = [wnid for wnid in number if counts[wnid] != each]
        if wrong or len(wnids) != size:
            raise BadInput(
                f"{entry.name}: {source} names {len(wnids):,} {part} images, expected {size:,}, {each} of each class"
                f" (not so in {len(wrong)} classes); get it again"
            )
    labels = np.array([number[wnid] for wnids in parts.values() for wnid in wnids], np.int64)
    return train + [f"val/images/{file}" for file, *_ in val], labels


def _pixels(entry: Entry, source: Path, name: str, read: Read) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(read(name))) as image:
            pixels = np.asarray(image.convert("RGB"))
    except (OSError, KeyError, SyntaxError) as error:  # SyntaxError is Pillow's word for a broken header
        raise BadInput(f"{entry.name}: {name} in {source} is missing or damaged; get it again") from error
    if pixels.shape != entry.shape:
        raise BadInput(f"{entry.name}: {name} in {source} has the shape {pixels.shape}, expected {entry.shape}")
    return pixels
