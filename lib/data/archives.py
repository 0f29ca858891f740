"""What a source holds, be it a zip, a gzipped tar or the folder to which they unpack: the same names for all three.

Names are relative to the one folder of an archive. CINIC-10's has none and asks its users to make it, so a leading
`./` or folder name is left out where there is one.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from lib import BadInput
from lib.data.registry import Entry


def names(entry: Entry, source: Path) -> list[str]:
    """The names of all files, in the order of text."""
    if source.is_dir():
        return sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())
    if source.suffix == ".zip":
        with zipfile.ZipFile(source) as packed:
            return sorted(_inner(entry, file.filename) for file in packed.infolist() if not file.is_dir())
    with tarfile.open(source, "r|gz") as stream:
        return sorted(_inner(entry, member.name) for member in stream if member.isfile())


def contents(entry: Entry, source: Path, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of those `wanted` files that are there, one at a time, in whatever order the source has.

    A tar is read once from its start to its end: it cannot be entered in the middle without unpacking what is before.
    """
    if source.is_dir():
        for name in wanted:
            if (source / name).is_file():
                yield name, (source / name).read_bytes()
    elif source.suffix == ".zip":
        with zipfile.ZipFile(source) as packed:
            for file in packed.infolist():
                if (name := _inner(entry, file.filename)) in wanted:
                    yield name, packed.read(file)
    else:
        with tarfile.open(source, "r|gz") as stream:
            for member in stream:
                if (name := _inner(entry, member.name)) in wanted and (opened := stream.extractfile(member)):
                    yield name, opened.read()


def _inner(entry: Entry, name: str) -> str:
    return name.removeprefix("./").removeprefix(f"{entry.layout}/")


def labels(entry: Entry, source: Path, parts: Sequence[tuple[str, Sequence[str], int]]) -> np.ndarray:
    """Places in `entry.classes`, (N,) int64, of the samples of all `parts` in turn: (part, class of each, size).

    All sets that come in archives are balanced: BadInput where a part has not its size, the same in each class.
    """
    number = {name: label for label, name in enumerate(entry.classes)}
    for part, classes, size in parts:
        each = size // len(number)
        counts = Counter(classes)
        wrong = [name for name in number if counts[name] != each]
        if wrong or len(classes) != size:
            raise BadInput(
                f"{entry.name}: {source} has {len(classes):,} {part} samples, expected {size:,}, {each:,} of each class"
                f" (not so in {len(wrong)} classes); get it again"
            )
    return np.array([number[name] for _, classes, _ in parts for name in classes], np.int64)
