"""The ways in which data sets are filed: a reader for each, which `format` in the registry's table
names.

A reader fills `x (N, *entry.shape)` with the samples of `source`, the train part first, and returns
their labels `(N,)` int64. `source` is a folder that `leak_atlas.data.sources` found. BadInput where
something is missing or damaged.
"""

import csv
import hashlib
import io
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from leak_atlas import BadInput
from leak_atlas.data import pictures, sources
from leak_atlas.recipe.registry import Entry

__all__ = ["READERS", "idx_array", "places", "shokri"]

ANNOTATIONS = "val/val_annotations.txt"  # of Tiny ImageNet
TILES = 500  # CHMNIST's whole images that are in memory at once


def npz(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """Images and labels in one .npz, as the package carries them."""
    (data,) = sources.files(entry, source)
    with np.load(io.BytesIO(data), allow_pickle=False) as packed:
        x[:] = packed["images"].reshape(x.shape)
        return packed["labels"].astype(np.int64)


def digits(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """scikit-learn's digits: images whose 17 levels of grey are spread over a byte, or bits: at
    least half of full.

    The first of each repeated pattern stays; every fifth of a class is test.
    """
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    values = (pixels >= 8 if entry.kind == "bits" else np.rint(pixels * 255 / 16)).astype(np.uint8)
    labels = labels.astype(np.int64)
    first = np.sort(np.unique(values, axis=0, return_index=True)[1])
    order = first[_fifths(labels[first])]
    values, labels = values[order], labels[order]
    digest = hashlib.sha256(values.tobytes() + labels.astype("<i8").tobytes()).hexdigest()
    sources.check(entry, "scikit-learn's digits", digest, entry.files[0].digest)
    x[:] = values.reshape(x.shape)
    return labels


def glosses(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """Lines of `part <tab> class <tab> text`, as the package carries WordNet's glosses."""
    (data,) = sources.files(entry, source)
    _, classes, x[:] = zip(
        *(line.split("\t") for line in data.decode("ascii").splitlines()), strict=True
    )
    return np.array([entry.classes.index(f"noun.{name}") for name in classes], np.int64)


def idx(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """MNIST's idx files: train images, train labels, test images, test labels."""
    images, labels, test_images, test_labels = map(idx_array, sources.files(entry, source))
    x[:] = np.concatenate([images, test_images])[..., None]
    return np.concatenate([labels, test_labels]).astype(np.int64)


def idx_array(data: bytes) -> np.ndarray:
    """An idx file of unsigned bytes: two zero bytes, type 8, the number of axes, their lengths, the
    values.
    """
    axes = data[3]
    shape = np.frombuffer(data, ">u4", count=axes, offset=4).astype(int)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def cifar(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """CIFAR's pickled batches, the train part's first, and the names of their classes, which are
    not read.

    A row of a batch has all red, then all green, then all blue values.
    """
    # digests are known
    batches = [pickle.loads(data, encoding="latin1") for data in sources.files(entry, source)[:-1]]
    height, width, channels = entry.shape
    rows = np.concatenate([batch["data"] for batch in batches])
    x[:] = rows.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
    return np.concatenate(
        [batch.get("fine_labels") or batch["labels"] for batch in batches]
    ).astype(np.int64)


def svhn(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """SVHN's .mat files: images (H, W, C, N), and labels in which 10 is the digit 0."""
    from scipy.io import loadmat

    parts = [loadmat(io.BytesIO(data)) for data in sources.files(entry, source)]
    x[:] = np.concatenate([part["X"] for part in parts], axis=3).transpose(3, 0, 1, 2)
    return np.concatenate([part["y"].ravel() for part in parts]).astype(np.int64) % 10


def arrays(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """A user's own x_train.npy, y_train.npy, x_test.npy and y_test.npy of a known set.

    Labels may be of any whole numbers; digests are those of the values, not of the files.
    """
    parts = []
    for name, expected, _ in entry.files:
        path, kind = source / name, "<i8" if name.startswith("y") else "u1"
        with sources.reading(entry, path, sources.bring(entry)):
            values = np.load(path, mmap_mode="r", allow_pickle=False)
            parts.append(np.ascontiguousarray(values.astype(kind, casting="safe", copy=False)))
        sources.check(entry, name, hashlib.md5(parts[-1].data).hexdigest(), expected)
    x[:] = np.concatenate([part.reshape(-1, *entry.shape) for part in parts[::2]])
    return np.concatenate(parts[1::2])


def tiny(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """Tiny ImageNet's JPEGs. Greyscale images have three equal channels.

    The train part is ordered by class, then by file name as text. The test part is the archive's
    `val` in the order of its annotations, for the archive's own test images have no labels.
    """
    train = sorted(source.glob("train/*/images/*.JPEG"), key=Path.as_posix)
    with sources.reading(entry, source / ANNOTATIONS, "get it again"):
        val = [line.split("\t") for line in (source / ANNOTATIONS).read_text("ascii").splitlines()]
        wnids = {file: wnid for file, wnid, *_ in val}
    parts = [
        ("train", [file.parts[-3] for file in train], entry.train),
        ("val", [*wnids.values()], entry.test),
    ]
    labels = _balanced(entry, source, parts)
    pictures.fill(x, train + [source / "val/images" / file for file in wnids])
    return labels


def cinic(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """CINIC-10's PNGs: PART/CLASS/NAME.png. Greyscale images have three equal channels.

    The train part is the archive's `train` and then its `valid`. Each is ordered by class, then by
    file name as text.
    """
    sizes = {"train": entry.train // 2, "valid": entry.train // 2, "test": entry.test}
    files = {part: sorted(source.glob(f"{part}/*/*.png"), key=Path.as_posix) for part in sizes}
    parts = [
        (part, [file.parent.name for file in files[part]], size) for part, size in sizes.items()
    ]
    labels = _balanced(entry, source, parts)
    pictures.fill(x, [file for part in files.values() for file in part])
    return labels


def kather(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """CHMNIST's TIFFs: NUMBER_CLASS/NAME.tif, 150 x 150 pixels, reduced by `pictures.resize`.

    Ordered by class, then by file name as text; every fifth of a class is test.
    """
    files = sorted(source.glob("*/*.tif"), key=Path.as_posix)
    names = [file.parent.name.partition("_")[2].lower() for file in files]
    labels = _balanced(entry, source, [("TIFF", names, entry.size)])
    order = _fifths(labels)
    for start in range(0, len(order), TILES):
        chosen = order[start : start + TILES]
        whole = np.empty((len(chosen), 150, 150, 3), np.uint8)
        pictures.fill(whole, [files[number] for number in chosen])
        x[start : start + TILES] = pictures.resize(whole, x.shape[1])
    return labels[order]


def location(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """Shokri's check-ins of Bangkok, ordered by class and bits; every fifth of a class is test.

    The digest is that of the values in this order, so all copies of the rows are one data set,
    whatever their order.
    """
    (file,) = entry.files
    path = sources.placed(source, file)
    with sources.reading(entry, path, sources.bring(entry)):
        bits, labels = shokri(path)
    order = np.lexsort((*bits.T[::-1], labels))
    bits, labels = bits[order], labels[order].astype(np.int64) - 1
    digest = hashlib.md5(bits.tobytes() + labels.astype("<i8").tobytes()).hexdigest()
    sources.check(entry, file.name, digest, file.digest)
    order = _fifths(labels)
    x[:] = bits[order]
    return labels[order]


def shokri(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Bits (N, D) and labels (N,) from 1, uint8, of a set in Shokri's archives.

    A file has a label and then the bits in each row; a folder has the bits in `feats` and the
    labels in `labels`. ValueError or OSError where it cannot be read.
    """
    import pandas as pd

    read = partial(pd.read_csv, header=None, dtype=np.uint8)
    if path.is_dir():
        return read(path / "feats").to_numpy(), read(path / "labels").to_numpy()[:, 0]
    rows = read(path).to_numpy()
    return rows[:, 1:], rows[:, 0]


def dbpedia(entry: Entry, source: Path, x: np.ndarray) -> np.ndarray:
    """DBpedia-14's rows of CSV: class number, title, content. A text is title and content with a
    space between.

    Both are without space around them: the archive puts one before most contents. Everything else
    stays as the file has it, backslashes and line breaks too.
    """
    names = {str(number): name for number, name in enumerate(entry.classes, 1)}
    texts, parts = [], []
    for part, size in (("train", entry.train), ("test", entry.test)):
        classes: list[str] = []
        try:
            with (source / f"{part}.csv").open(encoding="utf-8", newline="") as file:
                # Not strict: a quote that is not closed swallows rows, which their number or their
                # columns give away.
                for number, title, content in csv.reader(file):
                    classes.append(names[number])
                    texts.append(f"{title.strip()} {content.strip()}".strip())
        except (OSError, ValueError, KeyError, csv.Error) as error:
            raise BadInput(
                f"{entry.name}: {part}.csv in {source}, after row {len(classes)}: missing, or not a class from 1 to"
                f" {len(names)}, a title and a content in UTF-8; get it again"
            ) from error
        parts.append((part, classes, size))
    labels = _balanced(entry, source, parts)
    x[:] = texts
    return labels


def _balanced(
    entry: Entry, source: Path, parts: Sequence[tuple[str, Sequence[str], int]]
) -> np.ndarray:
    """Labels (N,) int64 of the samples of all `parts` in turn: (part, class of each, size).

    For sets that hold the same number of each class: BadInput where a part has not its size, or is
    not balanced.
    """
    number = {name: label for label, name in enumerate(entry.classes)}
    for part, classes, size in parts:
        of_class, counts = size // len(number), Counter(classes)
        wrong = [name for name in number if counts[name] != of_class]
        if wrong or len(classes) != size:
            raise BadInput(
                f"{entry.name}: {source} has {len(classes):,} {part} samples, expected {size:,}, {of_class:,} of each class"
                f" (not so in {len(wrong)} classes); get it again"
            )
    return np.array([number[name] for _, classes, _ in parts for name in classes], np.int64)


def _fifths(labels: np.ndarray) -> np.ndarray:
    """An order in which every fifth of each class comes last: the test part of a set that has none."""
    return np.argsort(places(labels) % 5 == 4, kind="stable")


def places(labels: np.ndarray) -> np.ndarray:
    """Each sample's place among those of its class, in their order: (N,) from 0."""
    order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
    place = np.empty(len(labels), int)
    place[order] = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return place


READERS: dict[str, Callable[[Entry, Path, np.ndarray], np.ndarray]] = {
    read.__name__: read
    for read in (
        npz,
        digits,
        glosses,
        idx,
        cifar,
        svhn,
        arrays,
        tiny,
        cinic,
        kather,
        location,
        dbpedia,
    )
}
