"""Reads data sets into arrays: the train part first, then the test part.

Sets that do not come with the package are prepared once: their source files are checked by digest,
then written as arrays below `leak_atlas.engine.paths.data()/NAME/prepared`, whole or not at all, to
be memory-mapped.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput, reason, typed
from leak_atlas.data import pictures, sources
from leak_atlas.data.formats import READERS, Read, part
from leak_atlas.engine import files, paths
from leak_atlas.recipe import Data, registry
from leak_atlas.recipe.registry import Entry, Kind

__all__ = [
    "EMBEDDED",
    "Samples",
    "absent",
    "load",
    "mislabelled",
    "prepare",
    "preparing",
    "there",
    "write",
]

PERMUTE = 20_000  # the stream that permutes labels
MISLABEL = 20_001  # the stream that replaces labels
EMBEDDED = Path(__file__).resolve().parent / "embedded"
TYPES = {"images": np.uint8, "bits": np.uint8, "numbers": np.float32}


@dataclass(frozen=True, eq=False)
class Samples:
    """A data set in memory, read-only; the first `train` samples are its train part."""

    # (N, H, W, C) uint8 images, (N, D) uint8 bits or float32 numbers, (N,) variable-width strings
    x: NDArray
    labels: NDArray  # (N,) int64
    train: int


def labels(data: Data, samples: Samples) -> NDArray:
    """The label of each sample `(N,)` int64, permuted or replaced where the recipe says so: the
    same way for all networks.
    """
    labels_of = samples.labels
    if data.permuted:
        _, test = data.parts
        first = samples.train if test else len(labels_of)
        draws = np.random.default_rng(PERMUTE)
        train_labels = draws.permutation(labels_of[:first])
        other_labels = draws.permutation(labels_of[first:])
        labels_of = np.concatenate([train_labels, other_labels])
    if data.mislabelled:
        wrong = mislabelled(data)
        draws = np.random.default_rng(MISLABEL)
        shifts = draws.integers(1, data.classes, len(wrong))  # never a whole turn
        labels_of = labels_of.copy()
        labels_of[wrong] = (labels_of[wrong] + shifts) % data.classes
    return labels_of


def mislabelled(data: Data) -> NDArray:
    """The samples of the train part whose labels are replaced: their index in the data set,
    ascending.
    """
    train, _ = data.parts
    number = round(data.mislabelled * train)
    draws = np.random.default_rng([MISLABEL, 1])
    return np.sort(draws.choice(train, number, replace=False))


def load(name: str, pixels: int | None = None) -> Samples:
    """The data set of that name; with `pixels`, its images at that side by exact area average
    (`pictures.resize`).

    Kept for the life of the process. Prepared sets are memory-mapped and their shapes checked. The
    SHA-256 of a user's own set is checked here too, that of the others by `leak-atlas data get
    NAME` alone: every worker would pay for it. BadInput for an unknown name, a set that is not
    there (with how to get it), damaged files, or `pixels` that do not fit.
    """
    data = Data(name, pixels)  # a recipe refuses what does not fit
    entry = registry.find(data.name)
    if entry.shape[:1] == (pixels,):
        pixels = None  # its own size
    return _load(entry, pixels, paths.data())


@cache
def _load(entry: Entry, pixels: int | None, root: Path) -> Samples:
    if pixels is not None:
        whole = _load(entry, None, root)
        resized = pictures.resize(whole.x, pixels)
        return Samples(_frozen(resized), whole.labels, whole.train)
    x, labels = _embedded(entry) if entry.embedded else _prepared(entry)
    expected = (entry.size, *entry.shape)
    if x.shape != expected or labels.shape != (entry.size,):
        why = f"found {x.shape}, expected {expected}"
        raise BadInput(f"{entry.name}: {why}; {_again(entry)}")
    classes = len(entry.classes)
    if labels.min() < 0 or labels.max() >= classes:
        why = f"a label is no place among its {classes} classes"
        raise BadInput(f"{entry.name}: {why}; {_again(entry)}")
    return Samples(_frozen(x), _frozen(labels), entry.train)


def _frozen(array: NDArray) -> NDArray:
    array.flags.writeable = False  # shared by everyone in this process
    return array


def _embedded(entry: Entry) -> tuple[NDArray, NDArray]:
    samples, labels = _read(entry, EMBEDDED)
    x = np.asarray(samples)
    return x.reshape(-1, *entry.shape), labels


def _read(entry: Entry, source: Path) -> Read:
    """Samples and labels of the files in `source`. Raises BadInput if they cannot be read, or are
    not as many as they should be.
    """
    remedy = sources.again(entry)
    with sources.reading(f"{entry.name}: the files in {source}", remedy):
        samples, labels = READERS[entry.format](entry, source)
    if len(labels) != entry.size:
        raise BadInput(
            f"{entry.name}: {source} has {len(labels):,} samples, not {entry.size:,}; {remedy}"
        )
    return samples, labels.astype(np.int64)


def _part(entry: Entry) -> Read:
    """Samples and labels of a part of a larger set, which is prepared first."""
    prepare(entry.part_of)
    whole = load(entry.part_of)
    path = EMBEDDED / f"{entry.name}.npy"
    with sources.reading(path, sources.again(entry)):
        listed = np.load(path)
        return part(entry, whole.x, whole.labels, listed)


# ---------------------------------------------------------------- prepared


def absent(name: str) -> str:
    """Why `load` would not find the set, and how to get it; "" where it is there.

    Nothing is read but the note that its preparation left.
    """
    entry = registry.find(name)
    try:
        if not entry.embedded:
            _digests(entry)
        return ""
    except BadInput as error:
        return str(error)


def there(name: str) -> bool:
    """Whether `load` would find the set."""
    return not absent(name)


def _again(entry: Entry) -> str:
    """What to do about damaged arrays, as the end of a sentence."""
    at = registry.folder(entry.name)
    if entry.own:
        return f"remove {at.parent} and add it again"
    if entry.embedded:
        return sources.again(entry)
    get = typed(f"leak-atlas data get {entry.name}")
    return f"remove {at} and run `{get}`"


def _digests(entry: Entry) -> dict[str, str]:
    """The SHA-256 of each prepared file, as noted when it was written; raises BadInput if this is
    another set.
    """
    at = registry.folder(entry.name)
    if not at.exists():
        raise BadInput(f"{entry.name} is not there; {sources.how(entry)}")
    if entry.own:
        return {file.name: file.digest for file in entry.files}
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        text = (at / "meta.json").read_text("utf-8")
        note = json.loads(text)
        if note["digest"] == entry.digest:
            return dict(note["sha256"])
    raise BadInput(
        f"{at} was prepared from other files than those known by this version; {_again(entry)}"
    )


def _prepared(entry: Entry) -> tuple[NDArray, NDArray]:
    at = registry.folder(entry.name)
    _digests(entry)
    if entry.own:
        _verify(entry)
    with sources.reading(at, _again(entry)):
        labels = np.load(at / "labels.npy")
        if entry.kind == "text":
            return _texts(at), labels
        x = np.load(at / f"{entry.kind}.npy", mmap_mode="r")
        return x, labels


def _verify(entry: Entry) -> None:
    """Raises BadInput if a prepared file is not as it was written."""
    folder = registry.folder(entry.name)
    for name, expected in _digests(entry).items():
        path = folder / name
        digest = files.sha256(path) if path.is_file() else "missing"
        if digest != expected:
            raise BadInput(f"{path}: SHA-256 is {digest}, expected {expected}; {_again(entry)}")


def prepare(name: str) -> Path:
    """Makes a set's arrays from its source files, which are downloaded where they are not there;
    returns their folder.

    Source files are taken from `leak_atlas.engine.paths.data()/NAME`, or wherever else the set's
    table says that a user's files may lie. A set that is already there is checked, byte by byte.
    Raises BadInput if any of it fails.
    """
    entry = registry.find(name)
    if entry.embedded:
        load(name)
        return EMBEDDED
    at = registry.folder(name)
    if not at.exists():
        with preparing(at) as ready:
            if entry.part_of:
                samples, labels = _part(entry)
            else:
                source = sources.find(entry, ready.parent)
                samples, labels = _read(entry, source)
            digests = write(ready, entry.kind, entry.shape, samples, labels)
            note = {"name": name, "digest": entry.digest, "sha256": digests}
            text = json.dumps(note, indent=1)
            (ready / "meta.json").write_text(text, "utf-8")
    _verify(entry)
    return at


@contextlib.contextmanager
def preparing(at: Path) -> Iterator[Path]:
    """A new folder that becomes `at` if all goes well, and is removed if not.

    Where another process is first, its folder stays. Raises BadInput if the disk refuses.
    """
    parent = at.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".preparing-", dir=parent) as scratch:
            ready = Path(scratch) / "prepared"
            ready.mkdir()
            yield ready
            if not at.exists():
                os.replace(ready, at)
    except OSError as error:
        raise BadInput(
            f"cannot prepare {at} ({reason(error)}); free space there or allow to write, or name another folder by "
            "LEAK_ATLAS_DATA"
        ) from error


def write(
    into: Path,
    kind: Kind,
    shape: tuple[int, ...],
    samples: NDArray | list[Path],
    labels: NDArray,
    size: int | None = None,
) -> dict[str, str]:
    """Writes samples, each of that shape, and labels into a folder; returns each file's SHA-256.

    Pictures are resized to `size`, where there is one. Text is kept as `text.npy` (bytes,) uint8,
    one after the other, and `ends.npy` (N,) int64, where each ends: hundreds of thousands of Python
    strings would cost every process several times what the text takes.
    """
    if kind == "text":
        texts = [str(text).encode() for text in samples]
        lengths = [len(text) for text in texts]
        joined = b"".join(texts)
        np.save(into / "text.npy", np.frombuffer(joined, np.uint8))
        np.save(into / "ends.npy", np.cumsum(lengths, dtype=np.int64))
    else:
        path = into / f"{kind}.npy"
        whole = (len(samples), *shape)
        out = np.lib.format.open_memmap(path, "w+", TYPES[kind], whole)
        if hasattr(os, "posix_fallocate"):  # else a full disk kills the process as it fills `out`
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        pictures.fill(out, samples, size)
        out.flush()
    np.save(into / "labels.npy", labels)
    return {path.name: files.sha256(path) for path in sorted(into.iterdir())}


def _texts(at: Path) -> NDArray:
    """The texts in the folder `at`: (N,) of variable-width strings. Raises ValueError if they do
    not fit together.
    """
    text = np.load(at / "text.npy").tobytes()
    ends = np.load(at / "ends.npy").tolist()
    if len(text) != ends[-1] or ends != sorted(ends):
        raise ValueError(f"{len(text):,} bytes of text do not fit their {len(ends):,} ends")
    texts = np.empty(len(ends), np.dtypes.StringDType())
    start = 0
    for place, end in enumerate(ends):
        texts[place] = text[start:end].decode()
        start = end
    return texts
