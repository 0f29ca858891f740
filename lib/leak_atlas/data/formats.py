"""The ways in which data sets are filed: a reader for each, which `format` in the registry's table
names.

A reader returns the samples of the folder `source` and their labels `(N,)`, the train part first.
Samples are an array `(N, ...)`, or a list of picture files. `source` is a folder that
`leak_atlas.data.sources` found. Readers raise what is in `sources.UNREADABLE` where a file is
missing or damaged, and BadInput where its content is not that of the set.
"""

import csv
import hashlib
import io
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from leak_atlas.data import pictures, sources
from leak_atlas.recipe.registry import Entry

__all__ = ["READERS", "idx_array", "places", "shokri"]

Read = tuple[np.ndarray | list[Path], np.ndarray]
ANNOTATIONS = "val/val_annotations.txt"  # of Tiny ImageNet


def npz(entry: Entry, source: Path) -> Read:
    """Images and labels in one .npz, as the package carries them."""
    (data,) = sources.files(entry, source)
    with np.load(io.BytesIO(data), allow_pickle=False) as packed:
        return packed["images"], packed["labels"]


def digits(entry: Entry, source: Path) -> Read:
    """scikit-learn's digits: images whose 17 levels of grey are spread over a byte, or bits: at
    least half of full.

    The first of each repeated pattern stays; every fifth of a class is test.
    """
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    values = np.rint(pixels * 255 / 16)
    if entry.kind == "bits":
        values = pixels >= 8
    values, labels = values.astype(np.uint8), labels.astype("<i8")
    _, first = np.unique(values, axis=0, return_index=True)
    first.sort()
    order = first[_fifths(labels[first])]
    values, labels = values[order], labels[order]
    digest = hashlib.sha256(values.tobytes() + labels.tobytes()).hexdigest()
    sources.check(entry, "scikit-learn's digits", digest, entry.files[0].digest)
    return values, labels


def glosses(entry: Entry, source: Path) -> Read:
    """Lines of `part <tab> class <tab> text`, as the package carries WordNet's glosses."""
    (data,) = sources.files(entry, source)
    rows = [line.split("\t") for line in data.decode("ascii").splitlines()]
    labels = _labels(entry, [f"noun.{name}" for _, name, _ in rows])
    return _texts([text for _, _, text in rows]), labels


def idx(entry: Entry, source: Path) -> Read:
    """MNIST's idx files: train images, train labels, test images, test labels."""
    arrays = [idx_array(data) for data in sources.files(entry, source)]
    return np.concatenate(arrays[::2]), np.concatenate(arrays[1::2])


def idx_array(data: bytes) -> np.ndarray:
    """An idx file of unsigned bytes: two zero bytes, type 8, the number of axes, their lengths, the
    values.
    """
    axes = data[3]
    shape = np.frombuffer(data, ">u4", count=axes, offset=4).astype(int)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def cifar(entry: Entry, source: Path) -> Read:
    """CIFAR's pickled batches, the train part's first, and the names of their classes, which are
    not read.

    A row of a batch has all red, then all green, then all blue values.
    """
    *batches, _ = sources.files(entry, source)
    rows, labels = [], []
    for data in batches:
        batch = pickle.loads(data, encoding="latin1")  # its digest is known
        rows.append(batch["data"])
        labels.append(batch.get("fine_labels") or batch["labels"])
    height, width, channels = entry.shape
    planes = np.concatenate(rows).reshape(-1, channels, height, width)
    return planes.transpose(0, 2, 3, 1), np.concatenate(labels)


def svhn(entry: Entry, source: Path) -> Read:
    """SVHN's .mat files: images (H, W, C, N), and labels in which 10 is the digit 0."""
    from scipy.io import loadmat

    parts = [loadmat(io.BytesIO(data)) for data in sources.files(entry, source)]
    images = np.concatenate([part["X"] for part in parts], axis=3)
    labels = np.concatenate([part["y"].ravel() for part in parts])
    return images.transpose(3, 0, 1, 2), labels % 10


def arrays(entry: Entry, source: Path) -> Read:
    """A user's own x_train.npy, y_train.npy, x_test.npy and y_test.npy of a known set.

    Labels may be of any whole numbers; digests are those of the values, not of the files.
    """
    parts = []
    for file in entry.files:
        kind = "<i8" if file.name.startswith("y") else "u1"
        values = np.load(source / file.name, mmap_mode="r", allow_pickle=False)
        values = np.ascontiguousarray(values.astype(kind, casting="safe", copy=False))
        sources.check(entry, file.name, hashlib.md5(values.data).hexdigest(), file.digest)
        parts.append(values)
    images = [part.reshape(-1, *entry.shape) for part in parts[::2]]
    return np.concatenate(images), np.concatenate(parts[1::2])


def tiny(entry: Entry, source: Path) -> Read:
    """Tiny ImageNet's JPEGs.

    The train part is ordered by class, then by file name as text. The test part is the archive's
    `val` in the order of its annotations, for the archive's own test images have no labels.
    """
    train = sorted(source.glob("train/*/images/*.JPEG"), key=Path.as_posix)
    classes = [file.parts[-3] for file in train]
    test = []
    for line in (source / ANNOTATIONS).read_text("ascii").splitlines():
        name, wnid, *_ = line.split("\t")
        test.append(source / "val/images" / name)
        classes.append(wnid)
    return train + test, _labels(entry, classes)


def cinic(entry: Entry, source: Path) -> Read:
    """CINIC-10's PNGs: PART/CLASS/NAME.png.

    The train part is the archive's `train` and then its `valid`. Each is ordered by class, then by
    file name as text.
    """
    files: list[Path] = []
    for part in ("train", "valid", "test"):
        files += sorted(source.glob(f"{part}/*/*.png"), key=Path.as_posix)
    return files, _labels(entry, [file.parent.name for file in files])


def kather(entry: Entry, source: Path) -> Read:
    """CHMNIST's TIFFs: NUMBER_CLASS/NAME.tif, 150 x 150 pixels, reduced by `pictures.resize`.

    Ordered by class, then by file name as text; every fifth of a class is test.
    """
    files = sorted(source.glob("*/*.tif"), key=Path.as_posix)
    names = [file.parent.name.partition("_")[2].lower() for file in files]
    labels = _labels(entry, names)
    x = np.empty((len(files), *entry.shape), np.uint8)
    whole = np.empty((1, 150, 150, 3), np.uint8)
    for place, file in enumerate(files):
        pictures.fill(whole, [file])
        x[place] = pictures.resize(whole, entry.shape[0])[0]
    order = _fifths(labels)
    return x[order], labels[order]


def location(entry: Entry, source: Path) -> Read:
    """Shokri's check-ins of Bangkok, ordered by class and bits; every fifth of a class is test.

    The digest is that of the values in this order, so all copies of the rows are one data set,
    whatever their order.
    """
    (file,) = entry.files
    bits, labels = shokri(sources.placed(source, file))
    order = np.lexsort((*bits.T[::-1], labels))
    bits, labels = bits[order], labels[order].astype("<i8") - 1
    digest = hashlib.md5(bits.tobytes() + labels.tobytes()).hexdigest()
    sources.check(entry, file.name, digest, file.digest)
    order = _fifths(labels)
    return bits[order], labels[order]


def shokri(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Bits (N, D) and labels (N,) from 1, uint8, of a set in Shokri's archives.

    A file has a label and then the bits in each row; a folder has the bits in `feats` and the
    labels in `labels`.
    """
    import pandas as pd

    read = partial(pd.read_csv, header=None, dtype=np.uint8)
    if path.is_dir():
        return read(path / "feats").to_numpy(), read(path / "labels").to_numpy()[:, 0]
    rows = read(path).to_numpy()
    return rows[:, 1:], rows[:, 0]


def dbpedia(entry: Entry, source: Path) -> Read:
    """DBpedia-14's rows of CSV: class number from 1, title, content. A text is title and content
    with a space between.

    Both are without space around them: the archive puts one before most contents. Everything else
    stays as the file has it, backslashes and line breaks too.
    """
    texts, labels = [], []
    for part in ("train.csv", "test.csv"):
        with (source / part).open(encoding="utf-8", newline="") as file:
            for number, title, content in csv.reader(file):
                labels.append(int(number) - 1)
                texts.append(f"{title.strip()} {content.strip()}".strip())
    return _texts(texts), np.array(labels)


def _texts(texts: list[str]) -> np.ndarray:
    return np.array(texts, np.dtypes.StringDType())


def _labels(entry: Entry, names: list[str]) -> np.ndarray:
    """Labels (N,) of classes by name; KeyError for a name that is none."""
    number = {name: label for label, name in enumerate(entry.classes)}
    return np.array([number[name] for name in names], np.int64)


def _fifths(labels: np.ndarray) -> np.ndarray:
    """An order in which every fifth of each class comes last: the test part of a set that has none."""
    return np.argsort(places(labels) % 5 == 4, kind="stable")


def places(labels: np.ndarray) -> np.ndarray:
    """Each sample's place among those of its class, in their order: (N,) from 0."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)  # where each sample's class begins
    place = np.empty(len(labels), int)
    place[order] = np.arange(len(labels)) - first
    return place


READERS: dict[str, Callable[[Entry, Path], Read]] = {
    "npz": npz,
    "digits": digits,
    "glosses": glosses,
    "idx": idx,
    "cifar": cifar,
    "svhn": svhn,
    "arrays": arrays,
    "tiny": tiny,
    "cinic": cinic,
    "kather": kather,
    "location": location,
    "dbpedia": dbpedia,
}
