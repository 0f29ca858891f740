"""Sets of labelled picture files as one array: Tiny ImageNet's JPEGs and CINIC-10's PNGs."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np

from lib import BadInput
from lib.data import archives
from lib.data.registry import Entry

ANNOTATIONS = "val/val_annotations.txt"


def write(entry: Entry, source: Path, to: Path) -> np.ndarray:
    """Decodes every labelled image of `source`, an archive or a folder, into the .npy file `to`; returns their labels.

    `to` holds (N, H, W, 3) uint8; one image at a time is in memory. Greyscale images have three equal channels. The
    images of a part are ordered by class, then by file name as text, except Tiny ImageNet's test part: it is the
    archive's `val` in the order of its annotations, for the archive's own test images have no labels. CINIC-10's train
    part is the archive's `train` and then its `valid`. Labels are (N,) int64, places in `entry.classes`.

    BadInput where a class, an image or the annotations are missing, and for an image that cannot be decoded or has
    another size.
    """
    files, labels = (_tiny if entry.name == "tinyimagenet" else _cinic)(entry, source)
    places = dict(zip(files, range(entry.size), strict=True))
    missing = set(files)
    with to.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (entry.size, *entry.shape)}
        np.lib.format.write_array_header_1_0(file, header)
        first = file.tell()
        for name, data in archives.contents(entry, source, places):
            pixels = _pixels(entry, source, name, data)
            file.seek(first + places[name] * pixels.nbytes)  # an archive has its own order
            file.write(pixels.tobytes())
            missing.remove(name)
    if missing:
        raise BadInput(f"{entry.name}: {min(missing)} in {source} is missing; get it again")
    return labels


def _tiny(entry: Entry, source: Path) -> tuple[list[str], np.ndarray]:
    """The names of all labelled images in the order of the arrays, and their labels."""
    train = [name for name in archives.names(entry, source) if re.fullmatch(r"train/[^/]+/images/[^/]+\.JPEG", name)]
    try:
        ((_, notes),) = archives.contents(entry, source, {ANNOTATIONS})
        val = [line.split("\t") for line in notes.decode("ascii").splitlines()]
        wnids = {file: wnid for file, wnid, *_ in val}
    except ValueError as error:  # not there, not ASCII, or not of that many columns
        raise BadInput(f"{entry.name}: {ANNOTATIONS} in {source} is missing or damaged; get it again") from error
    parts = [("train", [name.split("/")[1] for name in train], entry.train), ("val", [*wnids.values()], entry.test)]
    return train + [f"val/images/{file}" for file in wnids], archives.labels(entry, source, parts)


def _cinic(entry: Entry, source: Path) -> tuple[list[str], np.ndarray]:
    """The same of CINIC-10: PART/CLASS/NAME.png."""
    images = [name for name in archives.names(entry, source) if re.fullmatch(r"[^/]+/[^/]+/[^/]+\.png", name)]
    files, parts = [], []
    for part, size in (("train", entry.train // 2), ("valid", entry.train // 2), ("test", entry.test)):
        own = [name for name in images if name.startswith(f"{part}/")]
        files += own
        parts.append((part, [name.split("/")[1] for name in own], size))
    return files, archives.labels(entry, source, parts)


def _pixels(entry: Entry, source: Path, name: str, data: bytes) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            pixels = np.asarray(image.convert("RGB"))
    except (OSError, SyntaxError) as error:  # SyntaxError is Pillow's word for a broken header
        raise BadInput(f"{entry.name}: {name} in {source} is damaged; get it again") from error
    if pixels.shape != entry.shape:
        raise BadInput(f"{entry.name}: {name} in {source} has the shape {pixels.shape}, expected {entry.shape}")
    return pixels
