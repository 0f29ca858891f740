"""One module for each way in which data sets are filed; `format` in the registry's table names it.

Each has `read(entry, source, x)`: it fills `x (N, *entry.shape)` with the samples of `source`, the train part first,
and returns their labels `(N,)` int64. `source` is a folder or an archive that `lib.data.sources` found. BadInput where
something is missing or damaged.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lib import BadInput
from lib.registry import Entry


def balanced(entry: Entry, source: Path, parts: Sequence[tuple[str, Sequence[str], int]]) -> np.ndarray:
    """Labels (N,) int64 of the samples of all `parts` in turn: (part, class of each, size).

    For sets that hold the same number of each class: BadInput where a part has not its size, or is not balanced.
    """
    number = {name: label for label, name in enumerate(entry.classes)}
    for part, classes, size in parts:
        each, counts = size // len(number), Counter(classes)
        wrong = [name for name in number if counts[name] != each]
        if wrong or len(classes) != size:
            raise BadInput(
                f"{entry.name}: {source} has {len(classes):,} {part} samples, expected {size:,}, {each:,} of each class"
                f" (not so in {len(wrong)} classes); get it again"
            )
    return np.array([number[name] for _, classes, _ in parts for name in classes], np.int64)


def places(labels: np.ndarray) -> np.ndarray:
    """Each sample's place among those of its class, in their order: (N,) from 0."""
    order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
    place = np.empty(len(labels), int)
    place[order] = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return place
