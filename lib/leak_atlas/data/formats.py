"""Readers of the known data sets, one for each `format` in the registry's table. `part` is no such
reader: it selects samples of a prepared set.

A reader returns the samples of the folder `source` and their labels `(N,)`, the train part first.
Samples are an array `(N, ...)`, or a list of picture files. `leak_atlas.data.sources` finds the
folder. Readers raise an error of `sources.UNREADABLE` if a file is missing or damaged, and BadInput
if its content is not that of the set.
"""

import csv
import hashlib
import io
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput
from leak_atlas.data import pictures, sources
from leak_atlas.recipe.registry import Entry

Read = tuple[NDArray | list[Path], NDArray]
ANNOTATIONS = "val/val_annotations.txt"  # of Tiny ImageNet


def npz(entry: Entry, source: Path) -> Read:
    """Images and labels in one .npz, as the package carries them."""
    (data,) = sources.files(entry, source)
    with np.load(io.BytesIO(data), allow_pickle=False) as packed:
        images = packed["images"]
        labels = packed["labels"]
    return images, labels


def digits(entry: Entry, source: Path) -> Read:
    """scikit-learn's digits, whose pixels have 17 levels of grey, 0 to 16.

    Images have these levels scaled to 0 .. 255. Bits are 1 from level 8 on. Of equal samples only
    the first stays. Every fifth of a class is test.
    """
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    scaled = pixels >= 8 if entry.kind == "bits" else np.rint(pixels * 255 / 16)
    values = scaled.astype(np.uint8)
    labels = labels.astype("<i8")

    _, first = np.unique(values, axis=0, return_index=True)
    first.sort()
    test_last = _fifths(labels[first])
    order = first[test_last]
    values = values[order]
    labels = labels[order]

    file = entry.files[0]
    sources.check(entry, file.name, file.digest, values.tobytes() + labels.tobytes())
    return values, labels


def glosses(entry: Entry, source: Path) -> Read:
    """Lines of `part <tab> class <tab> text`, as the package carries WordNet's glosses."""
    (data,) = sources.files(entry, source)
    classes = []
    texts = []
    for line in data.decode("ascii").splitlines():
        _, name, text = line.split("\t")
        classes.append(f"noun.{name}")
        texts.append(text)
    return _texts(texts), _labels(entry, classes)


def idx(entry: Entry, source: Path) -> Read:
    """MNIST's idx files: train images, train labels, test images, test labels."""
    contents = sources.files(entry, source)
    train_images, train_labels, test_images, test_labels = map(idx_array, contents)
    images = np.concatenate([train_images, test_images])
    labels = np.concatenate([train_labels, test_labels])
    return images, labels


def idx_array(data: bytes) -> NDArray:
    """An idx file of unsigned bytes: two zero bytes, type 8, the number of axes, their lengths, the
    values.
    """
    axes = data[3]
    lengths = np.frombuffer(data, ">u4", count=axes, offset=4)
    header = 4 + 4 * axes  # bytes
    values = np.frombuffer(data, np.uint8, offset=header)
    return values.reshape(lengths.astype(int))


def cifar(entry: Entry, source: Path) -> Read:
    """CIFAR's pickled batches, those of the train part first. The last file, with the names of the
    classes, is not used.

    A row of a batch has all red, then all green, then all blue values.
    """
    *batches, _ = sources.files(entry, source)
    rows = []
    labels = []
    for data in batches:
        batch = pickle.loads(data, encoding="latin1")  # safe: `sources.files` checks the digest
        rows.append(batch["data"])
        fine = batch.get("fine_labels")
        labels.append(fine or batch["labels"])
    height, width, channels = entry.shape
    planes = np.concatenate(rows)
    planes = planes.reshape(-1, channels, height, width)
    images = planes.transpose(0, 2, 3, 1)
    return images, np.concatenate(labels)


def svhn(entry: Entry, source: Path) -> Read:
    """SVHN's .mat files: images (H, W, C, N), and labels in which 10 is the digit 0."""
    from scipy.io import loadmat

    images = []
    labels = []
    for data in sources.files(entry, source):
        part = loadmat(io.BytesIO(data))
        images.append(part["X"])
        labels.append(part["y"].ravel())
    x = np.concatenate(images, axis=3)
    y = np.concatenate(labels)
    return x.transpose(3, 0, 1, 2), y % 10


def sample_digests(x: NDArray, labels: NDArray) -> NDArray:
    """A digest of each sample `x (N, ...)` uint8 and its label `(N,)`: the first eight bytes of
    SHA-256, (N,) uint64. Equal only for equal samples with equal labels.
    """
    digests = []
    for sample, label in zip(x, labels.astype("<i8"), strict=True):
        digest = hashlib.sha256(sample.tobytes() + label.tobytes())
        digests.append(digest.digest()[:8])
    return np.frombuffer(b"".join(digests), "<u8")


def part(entry: Entry, x: NDArray, labels: NDArray, listed: NDArray) -> Read:
    """A part `entry` of a larger set, whose samples are `x` and `labels`: those with the digests
    `listed` `(N,)`, in this order.

    The MD5s of the result are checked. BadInput if the larger set lacks a sample.
    """
    place = {digest: index for index, digest in enumerate(sample_digests(x, labels).tolist())}
    wanted = listed.tolist()
    missing = set(wanted) - set(place)
    if missing:
        raise BadInput(
            f"{entry.part_of} lacks {len(missing):,} of the listed samples of {entry.name}; "
            f"{sources.again(entry)}"
        )
    order = [place[digest] for digest in wanted]
    chosen = x[order]
    chosen_labels = labels[order].astype("<i8")
    train, test = slice(entry.train), slice(entry.train, None)
    arrays = chosen[train], chosen_labels[train], chosen[test], chosen_labels[test]
    for file, values in zip(entry.files, arrays, strict=True):
        sources.check(entry, file.name, file.digest, values.data)
    return chosen, chosen_labels


def arrays(entry: Entry, source: Path) -> Read:
    """A user's own x_train.npy, y_train.npy, x_test.npy and y_test.npy of a known set.

    Labels may have any integer type. Digests are those of the values, not of the files.
    """
    parts = []
    for file in entry.files:
        kind = "<i8" if file.name.startswith("y") else "u1"
        path = source / file.name
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
        converted = stored.astype(kind, casting="safe", copy=False)
        values = np.ascontiguousarray(converted)
        sources.check(entry, path, file.digest, values.data)
        parts.append(values)
    train_x, train_y, test_x, test_y = parts
    images = [
        train_x.reshape(-1, *entry.shape),
        test_x.reshape(-1, *entry.shape),
    ]
    labels = [train_y, test_y]
    return np.concatenate(images), np.concatenate(labels)


def tiny(entry: Entry, source: Path) -> Read:
    """Tiny ImageNet's JPEGs.

    The train part is ordered by class, then by file name as text. The test part is the archive's
    `val` in the order of its annotations, for the archive's own test images have no labels.
    """
    train = _listed(source, "train/*/images/*.JPEG")
    classes = [file.parts[-3] for file in train]
    annotations = (source / ANNOTATIONS).read_text("ascii")
    test = []
    for line in annotations.splitlines():
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
        files += _listed(source, f"{part}/*/*.png")
    classes = [file.parent.name for file in files]
    return files, _labels(entry, classes)


def _listed(source: Path, pattern: str) -> list[Path]:
    """The files of a pattern, in the order of their paths as text."""
    return sorted(source.glob(pattern), key=Path.as_posix)


def kather(entry: Entry, source: Path) -> Read:
    """CHMNIST's TIFFs: NUMBER_CLASS/NAME.tif, 150 x 150 pixels, reduced by `pictures.resize`.

    Ordered by class, then by file name as text; every fifth of a class is test.
    """
    files = _listed(source, "*/*.tif")
    classes = []
    for file in files:
        _, _, name = file.parent.name.partition("_")
        classes.append(name.lower())
    labels = _labels(entry, classes)

    side = entry.shape[0]
    x = np.empty((len(files), *entry.shape), np.uint8)
    whole = np.empty((1, 150, 150, 3), np.uint8)
    for place, file in enumerate(files):
        pictures.fill(whole, [file])
        x[place] = pictures.resize(whole, side)[0]
    order = _fifths(labels)
    return x[order], labels[order]


def location(entry: Entry, source: Path) -> Read:
    """Shokri's check-ins of Bangkok, ordered by class and bits; every fifth of a class is test.

    The digest is that of the values in this order, so all copies of the rows are one data set,
    whatever their order.
    """
    (file,) = entry.files
    path = sources.placed(source, file)
    bits, numbers = shokri(path)
    keys = *bits.T[::-1], numbers  # lexsort sorts by its last key first
    order = np.lexsort(keys)
    bits = bits[order]
    labels = numbers[order].astype("<i8") - 1

    sources.check(entry, path, file.digest, bits.tobytes() + labels.tobytes())
    test_last = _fifths(labels)
    return bits[test_last], labels[test_last]


def shokri(path: Path) -> tuple[NDArray, NDArray]:
    """Bits (N, D) and labels (N,) from 1, uint8, of a set in Shokri's archives.

    A file has a label and then the bits in each row; a folder has the bits in `feats` and the
    labels in `labels`.
    """
    import pandas as pd

    def read(file: Path) -> NDArray:
        return pd.read_csv(file, header=None, dtype=np.uint8).to_numpy()

    if path.is_dir():
        bits = read(path / "feats")
        labels = read(path / "labels")
        return bits, labels[:, 0]
    rows = read(path)
    return rows[:, 1:], rows[:, 0]


def dbpedia(entry: Entry, source: Path) -> Read:
    """DBpedia-14's rows of CSV: class number from 1, title, content.

    A text is title, space, content. White space around both is removed, because most contents begin
    with a space. Everything else stays as in the file, backslashes and line breaks too.
    """
    texts = []
    labels = []
    for part in ("train.csv", "test.csv"):
        path = source / part
        with path.open(encoding="utf-8", newline="") as file:
            for number, title, content in csv.reader(file):
                text = f"{title.strip()} {content.strip()}"
                texts.append(text.strip())
                labels.append(int(number) - 1)
    return _texts(texts), np.array(labels)


def _texts(texts: list[str]) -> NDArray:
    return np.array(texts, np.dtypes.StringDType())


def _labels(entry: Entry, names: list[str]) -> NDArray:
    """Labels (N,) of samples whose classes have these names. KeyError for an unknown name."""
    number = {name: label for label, name in enumerate(entry.classes)}
    labels = [number[name] for name in names]
    return np.array(labels, np.int64)


def _fifths(labels: NDArray) -> NDArray:
    """An order in which every fifth sample of each class comes last, as the set's test part."""
    is_test = places(labels) % 5 == 4
    return np.argsort(is_test, kind="stable")


def places(labels: NDArray) -> NDArray:
    """Each sample's place among those of its class, in their order: (N,) from 0."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes  # where each class begins in `order`
    place = np.empty(len(labels), int)
    place[order] = np.arange(len(labels)) - np.repeat(starts, sizes)
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
