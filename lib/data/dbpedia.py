"""DBpedia-14's rows of CSV, and the arrays in which they are kept: one run of UTF-8 bytes, and where each text ends.

On disk, because hundreds of thousands of Python strings would cost every process several times what the text takes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lib import BadInput
from lib.data import archives
from lib.data.registry import Entry

BATCH = 4096  # texts that are Python strings at once


def write(entry: Entry, source: Path, into: Path) -> np.ndarray:
    """Writes the texts of `source`, an archive or a folder, into the folder `into`; returns their labels, (N,) int64.

    `text.npy` (bytes,) uint8 holds one text after the other, in the order of the files; `ends.npy` (N,) int64 where
    each ends. A text is the title and the content with a space between, both without space around them: the archive
    puts one before most contents. Everything else stays as the file has it, backslashes and line breaks too.

    BadInput where a file or a class is missing, and for a row that is not class number, title and content in UTF-8.
    """
    found = dict(archives.contents(entry, source, {"train.csv", "test.csv"}))
    blob, ends, parts = bytearray(), [], []
    for part, size in (("train", entry.train), ("test", entry.test)):
        classes = []
        for name, text in _rows(entry, source, f"{part}.csv", found.pop(f"{part}.csv", None)):
            classes.append(name)
            blob += text.encode()
            ends.append(len(blob))
        parts.append((part, classes, size))
    labels = archives.labels(entry, source, parts)
    np.save(into / "text.npy", np.frombuffer(blob, np.uint8))
    np.save(into / "ends.npy", np.array(ends, np.int64))
    return labels


def _rows(entry: Entry, source: Path, file: str, data: bytes | None) -> Iterator[tuple[str, str]]:
    """(class, text) of each row."""
    if data is None:
        raise BadInput(f"{entry.name}: {file} in {source} is missing; get it again")
    classes = {str(number): name for number, name in enumerate(entry.classes, 1)}
    # Not strict: a quote that is not closed swallows rows, which their number or their columns give away.
    rows = csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8", newline=""))
    try:
        for number, title, content in rows:
            yield classes[number], f"{title.strip()} {content.strip()}".strip()
    except (ValueError, KeyError, csv.Error) as error:
        raise BadInput(
            f"{entry.name}: {file} in {source}, line {rows.line_num}: not a class from 1 to {len(classes)}, a title"
            " and a content in UTF-8; get it again"
        ) from error


def read(at: Path) -> np.ndarray:
    """The texts that `write` put into the folder `at`: (N,) of variable-width strings. ValueError where they do not
    fit together."""
    blob = np.load(at / "text.npy", mmap_mode="r", allow_pickle=False)
    ends = np.load(at / "ends.npy", allow_pickle=False)
    starts = np.concatenate([[0], ends[:-1]])
    if blob.shape != (ends[-1],) or (ends < starts).any():
        raise ValueError(f"{len(blob):,} bytes of text do not fit their {len(ends):,} ends")
    texts = np.empty(len(ends), np.dtypes.StringDType())
    for first in range(0, len(ends), BATCH):
        some = slice(first, first + BATCH)
        base = starts[first]
        part = blob[base : ends[some][-1]].tobytes()
        texts[some] = [part[a:b].decode() for a, b in zip(starts[some] - base, ends[some] - base, strict=True)]
    return texts
