"""Reads data sets into arrays: the train part first, then the test part.

Sets that do not come with the package are prepared once: their source files are checked by digest,
then written as arrays below `leak_atlas.engine.paths.data()/NAME/prepared`, whole or not at all, to
be memory-mapped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from leak_atlas import BadInput, reason, typed
from leak_atlas.data import pictures, sources
from leak_atlas.data.formats import READERS
from leak_atlas.engine import paths
from leak_atlas.recipe import Data, registry
from leak_atlas.recipe.registry import Entry, Kind

__all__ = ["EMBEDDED", "Samples", "blank", "load", "prepare", "preparing", "there", "write"]

DEAL = 20_000  # the stream that deals labels out
EMBEDDED = Path(__file__).resolve().parent / "embedded"
TYPES: dict[str, np.dtype] = {
    "images": np.dtype(np.uint8),
    "bits": np.dtype(np.uint8),
    "numbers": np.dtype(np.float32),
}


@dataclass(frozen=True, eq=False)
class Samples:
    """A data set in memory, read-only; the first `train` samples are its train part."""

    # (N, H, W, C) uint8 images, (N, D) uint8 bits or float32 numbers, (N,) variable-width strings
    x: np.ndarray
    labels: np.ndarray  # (N,) int64
    train: int


def labels(data: Data, samples: Samples) -> np.ndarray:
    """The label of each sample `(N,)` int64, permuted where the recipe says so: the same way
    for all networks.
    """
    if not data.permuted:
        return samples.labels
    first = samples.train if data.parts[1] else len(samples.labels)
    draws = np.random.default_rng(DEAL)
    return np.concatenate([draws.permutation(part) for part in np.split(samples.labels, [first])])


def load(name: str, pixels: int | None = None) -> Samples:
    """The data set of that name; with `pixels`, its images at that side by exact area average
    (`pictures.resize`).

    Kept for the life of the process. Prepared sets are memory-mapped and their shapes checked. The
    SHA-256 of a user's own set is checked here too, that of the others by `python -m
    leak_atlas.data get NAME` alone: every worker would pay for it. BadInput for an unknown name, a
    set that is not there (with how to get it), damaged files, or `pixels` that do not fit.
    """
    entry = registry.find(Data(name, pixels).name)  # a recipe refuses what does not fit
    return _load(entry, None if (pixels,) == entry.shape[:1] else pixels, paths.data())


@cache
def _load(entry: Entry, pixels: int | None, root: Path) -> Samples:
    if pixels is not None:
        whole = _load(entry, None, root)
        return Samples(_frozen(pictures.resize(whole.x, pixels)), whole.labels, whole.train)
    x, labels = _read(entry, EMBEDDED) if entry.embedded else _prepared(entry)
    if x.shape != (entry.size, *entry.shape) or labels.shape != (entry.size,):
        raise BadInput(
            f"{entry.name}: found {x.shape}, expected {(entry.size, *entry.shape)}; {_again(entry)}"
        )
    if labels.min() < 0 or labels.max() >= len(entry.classes):
        raise BadInput(
            f"{entry.name}: a label is no place among its {len(entry.classes)} classes; {_again(entry)}"
        )
    return Samples(_frozen(x), _frozen(labels), entry.train)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False  # shared by everyone in this process
    return array


def blank(kind: Kind, shape: tuple[int, ...], into: Path | None = None) -> np.ndarray:
    """An array for samples of that kind: in memory, or on disk in the folder `into` (but of text)."""
    if kind == "text":
        return np.empty(shape, np.dtypes.StringDType())
    if into is None:
        return np.empty(shape, TYPES[kind])
    return np.lib.format.open_memmap(into / f"{kind}.npy", "w+", TYPES[kind], shape)


def _read(entry: Entry, source: Path, into: Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    x = blank(entry.kind, (entry.size, *entry.shape), into)
    return x, READERS[entry.format](entry, source, x)


# ---------------------------------------------------------------- prepared


def absent(name: str) -> str:
    """Why `load` would not find the set, and how to get it; "" where it is there.

    Nothing is read but the note that its preparation left.
    """
    entry = registry.find(name)
    try:
        if not entry.embedded:
            _sums(entry)
        return ""
    except BadInput as error:
        return str(error)


def there(name: str) -> bool:
    """Whether `load` would find the set."""
    return not absent(name)


def _again(entry: Entry) -> str:
    at = registry.folder(entry.name)
    if entry.own:
        return f"remove {at.parent} and add it again"
    get = typed(f"leak-atlas data get {entry.name}")
    return "reinstall the package" if entry.embedded else f"remove {at} and run `{get}`"


def _sums(entry: Entry) -> dict[str, str]:
    """The SHA-256 of each prepared file, as noted when it was written; BadInput where this is
    another set.
    """
    at = registry.folder(entry.name)
    if not at.exists():
        raise BadInput(f"{entry.name} is not there; {sources.how(entry)}")
    if entry.own:
        return {file.name: file.digest for file in entry.files}
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        note = json.loads((at / "meta.json").read_text("utf-8"))
        if note["digest"] == entry.digest:
            return dict(note["sha256"])
    raise BadInput(
        f"{at} was prepared from other files than those known by this version; {_again(entry)}"
    )


def _prepared(entry: Entry) -> tuple[np.ndarray, np.ndarray]:
    at = registry.folder(entry.name)
    _sums(entry)
    if entry.own:
        _verify(entry)
    try:
        x = _texts(at) if entry.kind == "text" else np.load(at / f"{entry.kind}.npy", mmap_mode="r")
        return x, np.load(at / "labels.npy")
    except (OSError, ValueError) as error:
        raise BadInput(f"{at} is damaged ({reason(error)}); {_again(entry)}") from error


def _verify(entry: Entry) -> None:
    for file, expected in _sums(entry).items():
        path = registry.folder(entry.name) / file
        digest = _sha256(path) if path.is_file() else "missing"
        if digest != expected:
            raise BadInput(f"{path}: SHA-256 is {digest}, expected {expected}; {_again(entry)}")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def prepare(name: str) -> Path:
    """Makes a set's arrays from its source files, which are downloaded where they are not there;
    returns their folder.

    Source files are taken from `leak_atlas.engine.paths.data()/NAME`, or wherever else the set's
    table says that a user's files may lie. A set that is already there is checked, byte by byte.
    BadInput where any of it fails.
    """
    entry = registry.find(name)
    if entry.embedded:
        load(name)
        return EMBEDDED
    at = registry.folder(name)
    if not at.exists():
        with preparing(at) as ready:
            sums = write(ready, *_read(entry, sources.find(entry, ready.parent), ready))
            note = {"name": name, "digest": entry.digest, "train": entry.train, "sha256": sums}
            (ready / "meta.json").write_text(json.dumps(note, indent=1) + "\n", "utf-8")
    _verify(entry)
    return at


@contextlib.contextmanager
def preparing(at: Path) -> Iterator[Path]:
    """A new folder that becomes `at` if all goes well, and is removed if not.

    Where another process is first, its folder stays. BadInput where the disk refuses.
    """
    parent = at.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for old in parent.glob(".preparing-*"):  # left by a process that was killed
            if time.time() - old.stat().st_mtime > 86_400:
                shutil.rmtree(old, ignore_errors=True)
        with tempfile.TemporaryDirectory(
            prefix=".preparing-", dir=parent, ignore_cleanup_errors=True
        ) as scratch:
            ready = Path(scratch) / "prepared"
            ready.mkdir()
            yield ready
            if not at.exists():
                os.replace(ready, at)
    except OSError as error:
        raise BadInput(
            f"cannot prepare {at} ({reason(error)}); free some space, or name another folder by LEAK_ATLAS_DATA"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            parent.rmdir()  # only where it is empty


def write(into: Path, x: np.ndarray, labels: np.ndarray) -> dict[str, str]:
    """Completes the folder `into`, in which `x` may lie already, by labels and text; returns each
    file's SHA-256.

    Text is kept as `text.npy` (bytes,) uint8, one after the other, and `ends.npy` (N,) int64, where
    each ends: hundreds of thousands of Python strings would cost every process several times what
    the text takes.
    """
    if isinstance(x, np.memmap):
        x.flush()
    else:
        text = [sample.encode() for sample in x]
        np.save(into / "text.npy", np.frombuffer(b"".join(text), np.uint8))
        np.save(into / "ends.npy", np.cumsum([len(sample) for sample in text], dtype=np.int64))
    np.save(into / "labels.npy", labels)
    return {path.name: _sha256(path) for path in sorted(into.iterdir())}


def _texts(at: Path) -> np.ndarray:
    """The texts in the folder `at`: (N,) of variable-width strings. ValueError where they do not
    fit together.
    """
    blob = np.load(at / "text.npy", mmap_mode="r")
    ends = np.load(at / "ends.npy")
    starts = np.concatenate([[0], ends[:-1]])
    if blob.shape != (ends[-1],) or (ends < starts).any():
        raise ValueError(f"{len(blob):,} bytes of text do not fit their {len(ends):,} ends")
    texts = (blob[a:b].tobytes().decode() for a, b in zip(starts, ends, strict=True))
    return np.fromiter(texts, np.dtypes.StringDType(), len(ends))
