"""DBpedia-14's rows of CSV: class number, title, content."""

import csv
from pathlib import Path

import numpy as np

from lib import BadInput
from lib.data import formats
from lib.registry import Entry


def read(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """See `lib.data.formats`. A text is the title and the content with a space between.

    Both are without space around them: the archive puts one before most contents. Everything else stays as the file has
    it, backslashes and line breaks too.
    """
    names = {str(number): name for number, name in enumerate(entry.classes, 1)}
    texts, parts = [], []
    for part, size in (("train", entry.train), ("test", entry.test)):
        classes: list[str] = []
        try:
            with (source / f"{part}.csv").open(encoding="utf-8", newline="") as file:
                # Not strict: a quote that is not closed swallows rows, which their number or their columns give away.
                for number, title, content in csv.reader(file):
                    classes.append(names[number])
                    texts.append(f"{title.strip()} {content.strip()}".strip())
        except (OSError, ValueError, KeyError, csv.Error) as error:
            raise BadInput(
                f"{entry.name}: {part}.csv in {source}, after row {len(classes)}: missing, or not a class from 1 to"
                f" {len(names)}, a title and a content in UTF-8; get it again"
            ) from error
        parts.append((part, classes, size))
    labels = formats.balanced(entry, source, parts)
    x[:] = texts
    return labels
