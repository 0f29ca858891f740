"""Reads data sets into arrays: the train part first, then the test part.

Images are uint8 NHWC. Sets that do not come with the package are prepared once: their source files are checked against
the pinned MD5s, then written as arrays to be memory-mapped below `lib.paths.data()/NAME/prepared`, whole or not at all.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lib import BadInput, paths
from lib.data import dbpedia, pictures, registry
from lib.data.registry import Entry

EMBEDDED = Path(__file__).resolve().parent / "embedded"
DEBIAN = Path("/usr/share/datasets/fashion-mnist")  # where Debian's package dataset-fashion-mnist puts its files
READERS = {"fashion-mnist": "FashionMNIST", "mnist": "MNIST", "cifar10": "CIFAR10", "cifar100": "CIFAR100"}
ARCHIVES = {"cifar10": "cifar-10-python.tar.gz", "cifar100": "cifar-100-python.tar.gz"}  # torchvision's
BATCH = 2048  # images that are resized at once


@dataclass(frozen=True, eq=False)
class Samples:
    """A data set in memory, read-only; the first `train` samples are its train part."""

    x: np.ndarray  # images (N, H, W, C) uint8, bits (N, D) uint8 of 0 and 1, text (N,) of variable-width strings
    labels: np.ndarray  # (N,) int64
    train: int

    def __len__(self) -> int:
        return len(self.labels)


def load(name: str, pixels: int | None = None) -> Samples:
    """The data set of that name; with `pixels`, its images at that side by exact area average (see `resize`).

    Kept for the life of the process. Prepared sets are memory-mapped; their shapes are checked here, their SHA-256 only
    by `python -m lib.data get NAME`, which would otherwise be paid by every worker. BadInput for an unknown name, a set
    that is not there (with how to get it), damaged files, or `pixels` that do not fit.
    """
    entry = registry.find(name)
    if pixels is not None:
        if entry.kind != "images":
            raise BadInput(f"{name} holds {entry.kind}, not images; leave `pixels` out")
        if not 1 <= pixels <= entry.shape[0]:
            raise BadInput(f"{name}: pixels cannot be {pixels}; its images can be reduced to 1 to {entry.shape[0]}")
        if pixels == entry.shape[0]:
            pixels = None
    return _load(name, pixels, paths.data())


@cache
def _load(name: str, pixels: int | None, root: Path) -> Samples:
    if pixels is not None:
        whole = _load(name, None, root)
        return Samples(_frozen(resize(whole.x, pixels)), whole.labels, whole.train)
    entry = registry.find(name)
    match entry:
        case Entry(file=file) if file.endswith(".npz"):
            x, labels = _images(entry)
        case Entry(kind="text", embedded=True):
            x, labels = _glosses(entry)
        case Entry(kind="bits"):
            x, labels = _digits(entry)
        case _:
            x, labels = _prepared(entry, root)
    if len(x) != entry.size or x.shape[1:] != entry.shape or labels.shape != (entry.size,):
        raise BadInput(f"{name}: found {x.shape}, expected {(entry.size, *entry.shape)}; {how(entry)}")
    return Samples(_frozen(x), _frozen(labels), entry.train)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False  # shared by everyone in this process
    return array


# ---------------------------------------------------------------- embedded


def _content(entry: Entry) -> bytes:
    path = EMBEDDED / entry.file
    if not path.exists():
        raise BadInput(f"{entry.name}: {path} is missing; reinstall the package")
    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != entry.sha256:
        raise BadInput(f"{path}: SHA-256 is {found}, expected {entry.sha256}; reinstall the package")
    return data


def _images(entry: Entry) -> tuple[np.ndarray, np.ndarray]:
    _content(entry)
    with np.load(EMBEDDED / entry.file, allow_pickle=False) as arrays:
        return arrays["images"].reshape(-1, *entry.shape), arrays["labels"].astype(np.int64)


def _glosses(entry: Entry) -> tuple[np.ndarray, np.ndarray]:
    rows = [line.split("\t") for line in _content(entry).decode("ascii").splitlines()]
    number = {name.removeprefix("noun."): label for label, name in enumerate(entry.classes)}
    text = np.array([row[2] for row in rows], dtype=np.dtypes.StringDType())
    return text, np.array([number[row[1]] for row in rows], np.int64)


def _digits(entry: Entry) -> tuple[np.ndarray, np.ndarray]:
    """Bits: at least half of full. The first of each repeated pattern stays; every fifth of a class is test."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    bits, labels = (pixels >= 8).astype(np.uint8), labels.astype(np.int64)
    first = np.sort(np.unique(bits, axis=0, return_index=True)[1])
    bits, labels = bits[first], labels[first]
    # A sample's place among those of its class, in the original order.
    order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
    place = np.empty(len(labels), int)
    place[order] = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    parts = np.argsort(place % 5 == 4, kind="stable")
    bits, labels = bits[parts], labels[parts]
    found = hashlib.sha256(bits.tobytes() + labels.astype("<i8").tobytes()).hexdigest()
    if found != entry.sha256:
        raise BadInput(f"{entry.name}: SHA-256 is {found}, expected {entry.sha256}; this scikit-learn's digits differ")
    return bits, labels


# ---------------------------------------------------------------- prepared


def how(entry: Entry) -> str:
    """How to get a data set, as the end of a sentence."""
    if entry.embedded:
        return "reinstall the package" if entry.file else "reinstall scikit-learn"
    get = f"`python -m lib.data get {entry.name}`"
    return f"{bring(entry)}, then run {get}" if entry.arrays else f"get it with {get}, or first {bring(entry)}"


def bring(entry: Entry) -> str:
    """Which files of one's own to put where, as the end of a sentence."""
    archive = entry.files[0][0] if entry.url else ARCHIVES.get(entry.name)
    files = f"{archive} or its folder {entry.layout}" if archive else "the four idx files (plain or .gz)"
    files = "your own " + ", ".join(file for file, _ in entry.files) if entry.arrays else files
    debian = " or install Debian's package dataset-fashion-mnist" if entry.name == "fashion-mnist" else ""
    return f"put {files} into {paths.data() / entry.name}{debian}"


def folder(entry: Entry, root: Path | None = None) -> Path:
    """Where the prepared arrays of a set lie."""
    return (root or paths.data()) / entry.name / "prepared"


def there(name: str) -> bool:
    """Whether `load` would find the set; nothing is read but the note that its preparation left."""
    entry = registry.find(name)
    if entry.embedded:
        return not entry.file or (EMBEDDED / entry.file).exists()
    return _note(folder(entry)).get("digest") == entry.digest


def _note(at: Path) -> dict[str, Any]:
    try:
        found = json.loads((at / "meta.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _prepared(entry: Entry, root: Path) -> tuple[np.ndarray, np.ndarray]:
    at = folder(entry, root)
    if not at.exists():
        raise BadInput(f"{entry.name} is not there; {how(entry)}")
    again = f"remove {at} and run `python -m lib.data get {entry.name}`"
    if _note(at).get("digest") != entry.digest:
        raise BadInput(f"{at} was prepared from other files than those known by this version; {again}")
    try:
        x = dbpedia.read(at) if entry.kind == "text" else np.load(at / "images.npy", mmap_mode="r", allow_pickle=False)
        labels = np.load(at / "labels.npy", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise BadInput(f"{at} is damaged ({_line(error)}); {again}") from error
    return x, labels


def prepare(name: str) -> Path:
    """Makes a set's arrays from its source files, which are downloaded where they are not there; returns their folder.

    Source files are looked for in `lib.paths.data()/NAME`, as torchvision lays them out below it or flat, then (those
    of Fashion-MNIST) where Debian's package puts them, then torchvision downloads them; sets of a user's own arrays are
    never downloaded. Each file's MD5 must be the pinned one before it is read; only for the unpacked folder of an
    archive that torchvision does not read there is none, and that is said. A set that is already there is checked, byte
    by byte, instead.

    BadInput where any of it fails.
    """
    entry = registry.find(name)
    if entry.embedded:
        load(name)
        return EMBEDDED
    at = folder(entry)
    if at.exists():
        _verify(entry, at)
        return at
    with _scratch(at.parent) as scratch:
        source = _source(entry, scratch) or _download(entry, scratch / "download")
        _check(entry, source)
        ready = scratch / "prepared"
        ready.mkdir()
        np.save(ready / "labels.npy", _write(entry, source, ready))
        sums = {path.name: _digest(path, "sha256") for path in sorted(ready.iterdir())}
        note = {"name": name, "digest": entry.digest, "train": entry.train, "sha256": sums}
        (ready / "meta.json").write_text(json.dumps(note, indent=1) + "\n", "utf-8")
        try:
            os.replace(ready, at)
        except OSError:
            if not at.exists():
                raise
            _verify(entry, at)  # another process was first; it made the same
    return at


@contextlib.contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for old in parent.glob(".preparing-*"):  # left by a process that was killed
            if time.time() - old.stat().st_mtime > 86_400:
                shutil.rmtree(old, ignore_errors=True)
        made = Path(tempfile.mkdtemp(prefix=".preparing-", dir=parent))
    except OSError as error:
        raise BadInput(
            f"cannot write below {parent} ({error.strerror}); LEAK_ATLAS_DATA names another folder"
        ) from error
    try:
        yield made
    except OSError as error:
        raise BadInput(f"cannot prepare {parent.name} ({_line(error)}); free some space or repair the file") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _digest(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def _verify(entry: Entry, at: Path) -> None:
    again = f"remove {at} and run `python -m lib.data get {entry.name}`"
    note = _note(at)
    if note.get("digest") != entry.digest:
        raise BadInput(f"{at} was prepared from other files than those known by this version; {again}")
    for file, expected in note.get("sha256", {}).items():
        found = _digest(at / file, "sha256") if (at / file).exists() else "missing"
        if found != expected:
            raise BadInput(f"{at / file}: SHA-256 is {found}, expected {expected}; {again}")


def _source(entry: Entry, scratch: Path) -> Path | None:
    """A torchvision root that holds the set's files; packed or flat files are put in order below `scratch` for that.

    Of a set that torchvision does not read, the archive, or else the folder to which it unpacks.
    """
    own = paths.data() / entry.name
    names = [file for file, _ in entry.files]
    if entry.url:
        return next((place for place in (own / names[0], own / entry.layout) if place.exists()), None)
    if all((own / entry.layout / file).exists() for file in names):
        return own
    into = scratch / "root" / entry.layout
    into.mkdir(parents=True, exist_ok=True)
    if entry.name in ARCHIVES:
        archive = own / ARCHIVES[entry.name]
        if not archive.exists():
            return None
        with _unpacking(archive), tarfile.open(archive) as packed:
            for file in names:  # these alone, whatever else the archive holds
                member = packed.extractfile(f"{entry.layout}/{file}")
                assert member is not None
                with member, (into / file).open("wb") as plain:
                    shutil.copyfileobj(member, plain)
        return scratch / "root"
    places = [own / entry.layout, own / "raw", own, *([DEBIAN] if entry.name == "fashion-mnist" else [])]
    for place in places:
        if all((place / file).exists() or (place / f"{file}.gz").exists() for file in names):
            for file in names:
                if (place / file).exists():
                    (into / file).symlink_to(place / file)
                    continue
                archive = place / f"{file}.gz"
                with _unpacking(archive), gzip.open(archive) as packed, (into / file).open("wb") as plain:
                    shutil.copyfileobj(packed, plain)
            return scratch / "root"
    return None


@contextlib.contextmanager
def _unpacking(archive: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, KeyError, AssertionError, tarfile.TarError, zlib.error) as error:
        raise BadInput(f"{archive} cannot be unpacked ({_line(error)}); remove it and get it again") from error


def _check(entry: Entry, source: Path) -> None:
    if entry.url and source.is_dir():
        print(f"{source} has no known digest: form and numbers are checked, content not", file=sys.stderr, flush=True)
        return
    for file, expected in entry.files:
        path = source if source.is_file() else source / entry.layout / file
        if entry.arrays:
            found = hashlib.md5(_array(entry, path).data).hexdigest()
        else:
            found = _digest(path, "md5") if path.exists() else "missing"
        if found != expected:
            raise BadInput(
                f"{entry.name}: the MD5 of {file} is {found}, expected {expected}; remove it and get it again"
            )


def _array(entry: Entry, path: Path) -> np.ndarray:
    """One of the arrays that a user brings; images as uint8, labels as int64, whatever whole numbers the file holds."""
    kind = "<i8" if path.name.startswith("y") else "u1"
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        return np.ascontiguousarray(array.astype(kind, casting="safe", copy=False))
    except (OSError, ValueError, TypeError, EOFError) as error:
        raise BadInput(f"{entry.name}: {path} cannot be read ({_line(error)}); {bring(entry)}") from error


def _download(entry: Entry, root: Path) -> Path:
    if entry.arrays:
        raise BadInput(f"{entry.name} cannot be downloaded; {bring(entry)}")
    from lib.data.vision import torchvision

    datasets = torchvision().datasets
    print(f"{entry.name} is fetched from the network: {entry.source}", file=sys.stderr, flush=True)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            if entry.url:
                archive = entry.files[0][0]
                datasets.utils.download_url(entry.url, root, archive)
                return root / archive
            getattr(datasets, READERS[entry.name])(root, train=True, download=True)
    except (OSError, RuntimeError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(":")
        raise BadInput(f"{entry.name} could not be downloaded ({reason}); {bring(entry)}") from error
    return root


def _write(entry: Entry, source: Path, into: Path) -> np.ndarray:
    """Writes all samples into the folder `into`, images as (N, H, W, C) uint8; returns their labels, (N,) int64."""
    if entry.kind == "text":
        return dbpedia.write(entry, source, into)
    if entry.url:
        return pictures.write(entry, source, into / "images.npy")
    if entry.arrays:
        x, labels = ([_array(entry, source / f"{axis}_{part}.npy") for part in ("train", "test")] for axis in "xy")
    else:
        from lib.data.vision import torchvision

        reader = getattr(torchvision().datasets, READERS[entry.name])
        try:
            parts = [reader(source, train=train, download=False) for train in (True, False)]
        except (OSError, RuntimeError) as error:
            raise BadInput(f"{entry.name}: torchvision cannot read {source} ({_line(error)})") from error
        x, labels = [np.asarray(part.data) for part in parts], [np.asarray(part.targets, np.int64) for part in parts]
    np.save(into / "images.npy", np.concatenate(x).reshape(entry.size, *entry.shape))
    return np.concatenate(labels)


# ---------------------------------------------------------------- resize


def area_weights(side: int, pixels: int) -> np.ndarray:
    """(pixels, side) float32 whole numbers: how much of each source pixel lies in each target pixel, in 1 / pixels.

    Every row sums to `side`, every column to `pixels`.
    """
    target, source = np.arange(pixels)[:, None] * side, np.arange(side)[None, :] * pixels
    overlap = np.minimum(target + side, source + pixels) - np.maximum(target, source)
    return np.clip(overlap, 0, None).astype(np.float32)


def resize(x: np.ndarray, pixels: int) -> np.ndarray:
    """Area average of square images (N, H, H, C) uint8 to (N, pixels, pixels, C) uint8, half rounded up.

    Each target pixel is the mean of the source under it, partly covered pixels counting by their share. The weights are
    whole numbers and every sum stays below 2^24, so float32 products are exact and the bytes are the same on every
    machine; wider images go through float64.
    """
    n, side, _, channels = x.shape
    kind: Any = np.float32 if 255 * side * side < 2**24 else np.float64
    weights = area_weights(side, pixels).astype(kind)
    out = np.empty((n, pixels, pixels, channels), np.uint8)
    for start in range(0, n, BATCH):
        part = x[start : start + BATCH].transpose(0, 3, 1, 2)  # n c h w
        wide = part.reshape(-1, side).astype(kind) @ weights.T  # n c h, w'
        tall = wide.reshape(-1, side, pixels).swapaxes(1, 2).reshape(-1, side) @ weights.T  # n c w', h'
        total = tall.reshape(len(part), channels, pixels, pixels).astype(np.int64)
        out[start : start + BATCH] = ((2 * total + side * side) // (2 * side * side)).transpose(0, 3, 2, 1)
    return out
