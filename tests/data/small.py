"""Small sets of the true formats under the true names of the sets that are fetched or brought."""

import gzip
import hashlib
import io
import pickle
import tarfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pooch
import pytest
from PIL import Image
from scipy.io import savemat

from leak_atlas.data import pictures, readers
from leak_atlas.data.formats import ANNOTATIONS
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import File

TRAIN, TEST = 100, 20  # samples of the sets whose files hold many of them
PARTS = {"train": slice(0, TRAIN), "test": slice(TRAIN, None)}
CINIC = ("airplane", "bird", "truck")
WNIDS = ("n01443537", "n01629819", "n12267677")
TISSUES = ("tumor", "stroma", "complex")
TOPICS = ("Company", "Artist", "Plant")


class Source(NamedTuple):
    """The files of a set, and what is to be read from them."""

    files: dict[str, bytes]
    x: np.ndarray
    labels: np.ndarray
    facts: dict[str, Any]  # in which the small set differs from the true one
    digests: dict[str, str] | None = None  # of files whose values are pinned, not their bytes
    close: int = 0  # largest difference of a pixel


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def encoded(pixels: np.ndarray, form: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, form)
    return buffer.getvalue()


def images(side: int, channels: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (TRAIN + TEST, side, side, channels), np.uint8)
    return x, rng.integers(0, classes, TRAIN + TEST)


def idx() -> Source:
    """MNIST's files: a head of two zeros, the type, the number of axes and their lengths."""
    x, labels = images(28, 1, 10)
    files = {}
    for part, rows in zip(("train", "t10k"), PARTS.values(), strict=True):
        for name, array in (("images", x[rows, :, :, 0]), ("labels", labels[rows].astype("u1"))):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            files[f"{part}-{name}-idx{array.ndim}-ubyte"] = head + array.tobytes()
    return Source(files, x, labels, {"train": TRAIN, "test": TEST})


def cifar(batches: list[str], test: str, key: str, names: str) -> Source:
    """CIFAR's pickled batches: rows of all red, then all green, then all blue values."""
    x, labels = images(32, 3, 100 if key == "fine_labels" else 10)
    parts = dict(zip(batches, np.split(np.arange(TRAIN), len(batches)), strict=True))
    parts[test] = np.arange(TRAIN, TRAIN + TEST)
    files = {names: pickle.dumps({"label_names": [], "fine_label_names": []})}
    for name, rows in parts.items():
        data = x[rows].transpose(0, 3, 1, 2).reshape(len(rows), -1)
        files[name] = pickle.dumps({"data": data, key: labels[rows].tolist()}, 2)
    return Source(files, x, labels, {"train": TRAIN, "test": TEST})


def svhn() -> Source:
    """Images (H, W, C, N), and labels in which 10 is the digit 0."""
    x, labels = images(32, 3, 10)
    files = {}
    for part, rows in PARTS.items():
        buffer = io.BytesIO()
        y = np.where(labels[rows] == 0, 10, labels[rows]).astype(np.uint8)
        savemat(buffer, {"X": x[rows].transpose(1, 2, 3, 0), "y": y[:, None]})
        files[f"{part}_32x32.mat"] = buffer.getvalue()
    return Source(files, x, labels, {"train": TRAIN, "test": TEST})


def cinic() -> Source:
    """Four images of each of three classes in each part; one of them is kept as greyscale."""
    rng = np.random.default_rng(0)
    files = {"README.md": b"# CINIC-10"}
    x = []
    for part in ("train", "valid", "test"):
        for name in CINIC:
            for file in ("cifar10-train-10", "cifar10-train-9", "n02690373_1008"):
                x.append(rng.integers(0, 256, (32, 32, 3), np.uint8))
                files[f"{part}/{name}/{file}.png"] = encoded(x[-1], "PNG")
            grey = rng.integers(0, 256, (32, 32), np.uint8)
            x.append(np.stack([grey] * 3, axis=2))
            files[f"{part}/{name}/n02690373_37.png"] = encoded(grey, "PNG")
    labels = np.tile(np.arange(3).repeat(4), 3)
    return Source(files, np.stack(x), labels, {"classes": CINIC, "train": 24, "test": 12})


def tiny() -> Source:
    """11 train and 2 val images of each of three classes, each of one grey or one colour."""
    files = {"wnids.txt": "\n".join(reversed(WNIDS)).encode(), "test/images/test_0.JPEG": b""}
    colours = []
    annotations = []
    for label, wnid in enumerate(WNIDS):
        for number in [0, 1, 10, *range(2, 10)]:  # names in the order of text
            value = 10 * label + 20 * number + 1
            colours.append((255 - value, 128, value) if number else (value,) * 3)
            pixels = np.full((64, 64, 3), colours[-1], np.uint8)
            data = encoded(pixels if number else pixels[:, :, 0], "JPEG")
            files[f"train/{wnid}/images/{wnid}_{number}.JPEG"] = data
    for number, label in enumerate([2, 0, 1, 1, 0, 2]):
        colours.append((40 * number, 5, 200))
        pixels = np.full((64, 64, 3), colours[-1], np.uint8)
        files[f"val/images/val_{number}.JPEG"] = encoded(pixels, "JPEG")
        annotations.append(f"val_{number}.JPEG\t{WNIDS[label]}\t0\t3\t63\t60\n")
    files[ANNOTATIONS] = "".join(annotations).encode()
    x = np.broadcast_to(np.array(colours)[:, None, None], (39, 64, 64, 3))
    labels = np.array([*np.arange(3).repeat(11), 2, 0, 1, 1, 0, 2])
    return Source(files, x, labels, {"classes": WNIDS, "train": 33, "test": 6}, close=3)


def kather() -> Source:
    """Five images of each of three tissues; the fifth of each is test."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (15, 150, 150, 3), np.uint8)
    files = {}
    for number, pixels in enumerate(x):
        label = number // 5
        place = f"0{label + 1}_{TISSUES[label].upper()}/{number % 5}_CRC.tif"
        files[place] = encoded(pixels, "TIFF")
    order = np.array([number for number in range(15) if number % 5 < 4] + [4, 9, 14])
    facts = {"classes": TISSUES, "train": 12, "test": 3}
    return Source(files, pictures.resize(x, 32)[order], order // 5, facts)


ROWS = [  # (class, title, content) as they are meant, and the text that is read
    ("1", "E. D. Abbott Ltd", " Abbott was a coachbuilder.", "E. D. Abbott Ltd Abbott was a coachbuilder."),
    ("3", 'Rosa "Peace"', ' A "hybrid tea", yellow.', 'Rosa "Peace" A "hybrid tea", yellow.'),
    ("2", "Café 日本", " naïve — “quoted” \U0001f600", "Café 日本 naïve — “quoted” \U0001f600"),
    ("2", "A\\B", r" C:\new\table\" and a trailing \ ", r'A\B C:\new\table\" and a trailing' " \\"),
    ("1", "Two\nlines", " first\r\nsecond", "Two\nlines first\r\nsecond"),
    ("3", "", " no title, only 'this'", "no title, only 'this'"),
    ("3", "Last of train", " ", "Last of train"),
    ("1", "x", "y", "x y"),
    ("2", "1", "2", "1 2"),
    ("1", "of test", " a,b,,c", "of test a,b,,c"),
    ("2", "of test", ' ""', 'of test ""'),
    ("3", "of test", " \t tab", "of test tab"),
]  # fmt: skip


def rows(some: list[tuple[str, str, str, str]]) -> bytes:
    """Rows as the set's readme has them: text in quotes, quotes inside doubled, the class bare."""
    lines = []
    for number, *texts, _ in some:
        quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
        lines.append(",".join([number, *quoted]) + "\n")
    return "".join(lines).encode()


def dbpedia() -> Source:
    files = {"classes.txt": b"", "test.csv": rows(ROWS[9:]), "train.csv": rows(ROWS[:9])}
    labels = np.array([int(row[0]) - 1 for row in ROWS])
    texts = np.array([row[3] for row in ROWS])
    return Source(files, texts, labels, {"classes": TOPICS, "train": 9, "test": 3})


def location() -> Source:
    """Two classes of ten samples of bits; the set is ordered by class and bits."""
    bits = np.random.default_rng(0).integers(0, 2, (20, 6))
    labels = np.arange(20) % 2
    lines = [",".join(map(str, row)) + "\n" for row in np.c_[labels + 1, bits].tolist()]
    order = np.lexsort((*bits.T[::-1], labels))
    x = bits[order].astype(np.uint8)
    y = labels[order]
    digest = md5(x.tobytes() + y.astype("<i8").tobytes())
    fifths = np.array([place for place in range(20) if place % 5 < 4] + [4, 9, 14, 19])
    facts = {"shape": (6,), "classes": ("1", "2"), "train": 16, "test": 4}
    files = {"bangkok": "".join(lines).encode()}
    return Source(files, x[fifths], y[fifths], facts, {"bangkok": digest})


def halves(side: int, classes: int) -> Source:
    """A user's own arrays, of which the values are pinned."""
    x, labels = images(side, 3, classes)
    files = {}
    digests = {}
    for part, rows_ in PARTS.items():
        for name, array in ((f"x_{part}.npy", x[rows_]), (f"y_{part}.npy", labels[rows_])):
            buffer = io.BytesIO()
            np.save(buffer, array)
            files[name], digests[name] = buffer.getvalue(), md5(array.tobytes())
    return Source(files, x, labels, {"train": TRAIN, "test": TEST}, digests)


SOURCES: dict[str, Callable[[], Source]] = {
    "fashion-mnist": idx,
    "mnist": idx,
    "cifar10": lambda: cifar(
        [f"data_batch_{number}" for number in range(1, 6)], "test_batch", "labels", "batches.meta"
    ),
    "cifar100": lambda: cifar(["train"], "test", "fine_labels", "meta"),
    "svhn": svhn,
    "cinic10": cinic,
    "dbpedia14": dbpedia,
    "tinyimagenet": tiny,
    "chmnist": kather,
    "location30": location,
    "tinyimagenet32-half": lambda: halves(32, 200),
}


class Small:
    """A small set, under the true name in the registry, and its user's folder."""

    def __init__(self, name: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name = name
        self.home = data / name
        self.monkeypatch = monkeypatch
        self.source = SOURCES[name]()
        self.files = dict(self.source.files)
        here = tuple(place for place in registry.find(name).folders if place[0] != "/")
        self.put(folders=here, **self.source.facts)
        if not self.alone:
            self.put(files=self.pinned(self.entry.files, self.files))

    @property
    def entry(self) -> registry.Entry:
        return registry.find(self.name)

    @property
    def alone(self) -> bool:
        """Whether only the archive has a digest, not the files in it."""
        return self.entry.files[0] == self.entry.archive

    @property
    def inside(self) -> Path:
        """The folder of the unpacked files."""
        return self.home / self.entry.folders[0]

    @property
    def archive(self) -> Path:
        assert self.entry.archive
        return self.home / self.entry.archive.name

    def put(self, **facts: Any) -> None:
        entry = replace(self.entry, **facts)
        self.monkeypatch.setitem(registry.ENTRIES, self.name, entry)

    def pinned(self, known: tuple[File, ...], contents: dict[str, bytes]) -> tuple[File, ...]:
        digests = {name: md5(data) for name, data in contents.items()} | (self.source.digests or {})
        return tuple(file._replace(digest=digests[file.name]) for file in known)

    def unpack(self, change: Callable[[bytes], bytes] = bytes, end: str = "") -> None:
        """Writes the files into the user's folder."""
        for name, data in self.files.items():
            path = self.inside / f"{name}{end}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(change(data))

    def pack(self, under: str | None = None) -> bytes:
        """The archive, at its place, in no order; its MD5 becomes the pinned one."""
        start = f"{self.entry.folders[0]}/" if under is None else under
        self.home.mkdir(parents=True, exist_ok=True)
        entries = {f"{start}{name}": data for name, data in reversed(self.files.items())}
        (zipped if self.archive.suffix == ".zip" else tarred)(self.archive, entries)
        data = self.archive.read_bytes()
        field = "files" if self.alone else "downloads"
        known = getattr(self.entry, field)
        self.put(**{field: self.pinned(known, {self.archive.name: data})})
        return data

    def served(self) -> dict[str, bytes]:
        """What its urls answer; the digests are pinned."""
        if self.entry.archive:
            data = self.pack()
            self.archive.unlink()
            return {self.entry.archive.url: data}
        contents = self.files
        if self.entry.downloads:
            contents = {f"{name}.gz": gzip.compress(data) for name, data in contents.items()}
            self.put(downloads=self.pinned(self.entry.downloads, contents))
        wanted = self.entry.downloads or self.entry.files
        return {file.url: contents[file.name] for file in wanted}

    def check(self) -> None:
        """The prepared set is the source's, memory-mapped."""
        samples = readers.load(self.name)
        source = self.source
        assert samples.train == self.entry.train
        assert readers.there(self.name)
        assert samples.labels.dtype == np.int64
        assert samples.labels.tolist() == source.labels.tolist()
        if self.entry.kind == "text":
            assert samples.x.dtype.kind == "T"
            assert samples.x.tolist() == source.x.tolist()
        else:
            assert isinstance(samples.x, np.memmap)
            assert samples.x.dtype == np.uint8
            assert samples.x.shape == source.x.shape
            assert abs(samples.x.astype(int) - source.x).max() <= source.close


def zipped(path: Path, contents: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in contents.items():
            packed.writestr(name, data)


def tarred(path: Path, contents: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as packed:
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))


def serve(contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answers each url through pooch's own checks; returns the urls that were asked for."""
    requests: list[str] = []

    def download(_: object, url: str, file: str, *__: object) -> None:
        requests.append(url)
        if url not in contents:
            raise OSError("Name or service not known")
        Path(file).write_bytes(contents[url])

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", download)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return requests
