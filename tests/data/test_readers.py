"""Data sets as arrays: the embedded ones as they are, the fetched ones through small files of the
true format.
"""

import gzip
import hashlib
import io
import json
import pickle
import tarfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pooch
import pytest
from bench.vision import torchvision
from scipy.io import savemat

from leak_atlas import BadInput
from leak_atlas.__main__ import main
from leak_atlas.data import pictures, readers
from leak_atlas.recipe import Data, registry
from leak_atlas.recipe.registry import File

TRAIN, TEST = 100, 20  # samples of the small files


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("LEAK_ATLAS_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def no_network(*_: object, **__: object) -> None:
    raise OSError("Name or service not known")


# ---------------------------------------------------------------- embedded


@pytest.mark.parametrize(
    "name", [entry.name for entry in registry.ENTRIES.values() if entry.embedded]
)
def test_embedded(name: str) -> None:
    entry, samples = registry.find(name), readers.load(name)
    assert len(samples.labels) == entry.size and samples.train == entry.train
    assert samples.x.shape == (entry.size, *entry.shape) and samples.labels.dtype == np.int64
    for labels in (samples.labels[: entry.train], samples.labels[entry.train :]):
        counts = np.bincount(labels)
        assert len(counts) == len(entry.classes) and counts.max() <= 1.2 * counts.min()
    whole = samples.x.reshape(len(samples.labels), -1) if samples.x.ndim > 1 else samples.x
    assert len(np.unique(whole, axis=0)) == len(samples.labels), "no content occurs twice"
    with pytest.raises(ValueError, match="read-only"):
        samples.labels[0] = 1
    assert readers.load(name) is samples, "loaded once per process"


def test_embedded_kinds() -> None:
    images, bits, text = (
        readers.load(name) for name in ("fashion-mnist-small", "digits-bits", "wordnet-glosses")
    )
    assert images.x.dtype == np.uint8 and (np.bincount(images.labels[: images.train]) == 600).all()
    assert bits.x.dtype == np.uint8 and set(np.unique(bits.x)) == {0, 1}
    assert (np.bincount(text.labels[text.train :]) == 300).all()
    assert all(isinstance(gloss, str) and gloss and '"' not in gloss for gloss in text.x[::500])


def test_a_changed_embedded_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wordnet-glosses.tsv").write_text("train\tact\tgetting something\n")
    monkeypatch.setattr(readers, "EMBEDDED", tmp_path)
    with pytest.raises(
        BadInput, match=r"the SHA-256 of wordnet-glosses.tsv is \w+, expected \w+; reinstall"
    ):
        readers.load("wordnet-glosses")
    with pytest.raises(BadInput, match=r"fashion-mnist-small.npz cannot be read .*; reinstall"):
        readers.load("fashion-mnist-small")


# ---------------------------------------------------------------- resize


def test_whole_ratios_are_block_means() -> None:
    x = np.random.default_rng(0).integers(0, 256, (5, 12, 12, 3), np.uint8)
    means = x.reshape(5, 4, 3, 4, 3, 3).astype(int).sum((2, 4)) / 9
    assert np.array_equal(pictures.resize(x, 4), np.floor(means + 0.5).astype(np.uint8))


@pytest.mark.parametrize("side, pixels", [(28, 16), (28, 1), (32, 31), (28, 28), (300, 7)])
def test_area_average_is_exact(side: int, pixels: int) -> None:
    """Against the definition: paint each source pixel `pixels` times finer, so that blocks are
    whole.
    """
    x = np.random.default_rng(side).integers(0, 256, (2, side, side, 1), np.uint8)
    fine = (
        x.repeat(pixels, 1)
        .repeat(pixels, 2)
        .reshape(2, pixels, side, pixels, side, 1)
        .sum((2, 4), dtype=np.int64)
    )
    assert np.array_equal(
        pictures.resize(x, pixels), ((2 * fine + side**2) // (2 * side**2)).astype(np.uint8)
    )


@pytest.mark.parametrize("value", [0, 1, 127, 255])
def test_constant_images_stay(value: int) -> None:
    x = np.full((3, 28, 28, 2), value, np.uint8)
    assert (pictures.resize(x, 16) == value).all()


def test_axes_keep_their_order() -> None:
    x = np.zeros((1, 28, 28, 1), np.uint8)
    x[0, :7, 14:] = 255
    small = pictures.resize(x, 4)[0, :, :, 0]
    assert np.array_equal(small, [[0, 0, 255, 255]] + [[0] * 4] * 3)


def test_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).integers(0, 256, (11, 28, 28, 1), np.uint8)
    whole = pictures.resize(x, 9)
    monkeypatch.setattr(pictures, "BATCH", 4)
    assert np.array_equal(pictures.resize(x, 9), whole)


def test_load_resizes_once() -> None:
    small = readers.load("fashion-mnist-small", 14)
    assert small.x.shape == (8000, 14, 14, 1) and readers.load("fashion-mnist-small", 14) is small
    assert readers.load("fashion-mnist-small", 28) is readers.load("fashion-mnist-small")


@pytest.mark.parametrize(
    "name, pixels, message",
    [
        ("fashion-mnist-small", 29, "pixels cannot be 29: images of .* can be reduced to 1 to 28"),
        ("fashion-mnist-small", 0, "pixels takes 1 or more, not 0"),
        ("digits-bits", 4, "holds bits, not images"),
        ("fashion", None, "did you mean 'fashion-mnist'"),
    ],
)
def test_bad_requests(name: str, pixels: int | None, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        readers.load(name, pixels)


# ---------------------------------------------------------------- fetched sets, in small


def _idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def _mnist(rng: np.random.Generator) -> tuple[dict[str, bytes], np.ndarray, np.ndarray]:
    x = rng.integers(0, 256, (TRAIN + TEST, 28, 28, 1), np.uint8)
    labels = rng.integers(0, 10, TRAIN + TEST).astype(np.uint8)
    files = {}
    for part, rows in (("train", slice(0, TRAIN)), ("t10k", slice(TRAIN, None))):
        files[f"{part}-images-idx3-ubyte"] = _idx(x[rows, :, :, 0])
        files[f"{part}-labels-idx1-ubyte"] = _idx(labels[rows])
    return files, x, labels


def cifar_files(x: np.ndarray, labels: np.ndarray, train: int, fine: bool) -> dict[str, bytes]:
    """Images and labels as CIFAR's pickled batches: rows of all red, then all green, then all blue
    values.
    """
    key = "fine_labels" if fine else "labels"
    names = ("train",) if fine else tuple(f"data_batch_{i}" for i in range(1, 6))
    parts = [*zip(names, np.split(np.arange(train), len(names)), strict=True)]
    parts.append(("test" if fine else "test_batch", np.arange(train, len(x))))
    files = {
        name: pickle.dumps(
            {
                "data": x[rows].transpose(0, 3, 1, 2).reshape(len(rows), -1),
                key: labels[rows].tolist(),
            },
            2,
        )
        for name, rows in parts
    }
    files["meta" if fine else "batches.meta"] = pickle.dumps(
        {"fine_label_names" if fine else "label_names": list("ab")}, 2
    )
    return files


def _cifar(rng: np.random.Generator, fine: bool) -> tuple[dict[str, bytes], np.ndarray, np.ndarray]:
    x = rng.integers(0, 256, (TRAIN + TEST, 32, 32, 3), np.uint8)
    labels = rng.integers(0, 100 if fine else 10, TRAIN + TEST)
    return cifar_files(x, labels, TRAIN, fine), x, labels


def _svhn(rng: np.random.Generator) -> tuple[dict[str, bytes], np.ndarray, np.ndarray]:
    x = rng.integers(0, 256, (TRAIN + TEST, 32, 32, 3), np.uint8)
    labels = rng.integers(0, 10, TRAIN + TEST)
    files = {}
    for part, rows in (("train", slice(0, TRAIN)), ("test", slice(TRAIN, None))):
        y = np.where(labels[rows] == 0, 10, labels[rows]).astype(np.uint8)[:, None]
        buffer = io.BytesIO()
        savemat(buffer, {"X": x[rows].transpose(1, 2, 3, 0), "y": y})
        files[f"{part}_32x32.mat"] = buffer.getvalue()
    return files, x, labels


FETCHED = ("fashion-mnist", "mnist", "cifar10", "cifar100", "svhn")


class Small:
    """A small data set of the true format under a true name."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        rng, self.monkeypatch = np.random.default_rng(0), monkeypatch
        made = _svhn(rng) if name == "svhn" else _mnist(rng)
        self.files, self.x, self.labels = (
            _cifar(rng, name == "cifar100") if name.startswith("cifar") else made
        )
        known = registry.find(name)
        files = tuple(File(file.name, md5(self.files[file.name]), file.url) for file in known.files)
        self.put(replace(known, train=TRAIN, test=TEST, files=files))

    def put(self, entry: registry.Entry) -> None:
        self.entry = entry
        self.monkeypatch.setitem(registry.ENTRIES, entry.name, entry)

    def write(
        self, into: Path, change: Callable[[bytes], bytes] = lambda data: data, end: str = ""
    ) -> None:
        into.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            (into / f"{name}{end}").write_bytes(change(data))

    def pack(self, path: Path) -> bytes:
        """The archive, whose MD5 becomes the pinned one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w:gz") as packed:
            for name, data in self.files.items():
                info = tarfile.TarInfo(f"{self.entry.folders[0]}/{name}")
                info.size = len(data)
                packed.addfile(info, io.BytesIO(data))
        ((name, _, url),) = self.entry.downloads
        self.put(replace(self.entry, downloads=(File(name, md5(path.read_bytes()), url),)))
        return path.read_bytes()

    def check(self) -> None:
        samples = readers.load(self.entry.name)
        assert (
            isinstance(samples.x, np.memmap)
            and samples.x.dtype == np.uint8
            and samples.train == TRAIN
        )
        assert np.array_equal(samples.x, self.x) and np.array_equal(samples.labels, self.labels)
        assert samples.labels.dtype == np.int64


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


@pytest.fixture
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Small:
    return Small(request.param, monkeypatch)


def only_prepared(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*/*"))


@pytest.mark.parametrize("small", FETCHED, indirect=True)
def test_files_in_torchvisions_layout(small: Small, folder: Path) -> None:
    name = small.entry.name
    small.write(folder / name / small.entry.folders[0])
    assert not readers.there(name)
    assert readers.prepare(name) == folder / name / "prepared"
    assert readers.there(name)
    small.check()
    note = json.loads((folder / name / "prepared" / "meta.json").read_text())
    assert note["digest"] == small.entry.digest and set(note["sha256"]) == {
        "images.npy",
        "labels.npy",
    }
    for file, digest in note["sha256"].items():
        assert (
            hashlib.sha256((folder / name / "prepared" / file).read_bytes()).hexdigest() == digest
        )
    assert readers.prepare(name) == folder / name / "prepared", "a second time it is only checked"


@pytest.mark.parametrize("small", FETCHED, indirect=True)
def test_torchvision_reads_the_same(
    small: Small, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, root = small.entry.name, folder / small.entry.name
    small.write(root / small.entry.folders[0])
    readers.prepare(name)
    datasets = torchvision().datasets
    kinds = (
        datasets.FashionMNIST,
        datasets.MNIST,
        datasets.CIFAR10,
        datasets.CIFAR100,
        datasets.SVHN,
    )
    kind = dict(zip(FETCHED, kinds, strict=True))[name]
    pinned = [[file, md5(data)] for file, data in small.files.items()]
    if name == "svhn":
        monkeypatch.setattr(
            kind,
            "split_list",
            {p: ["", *row] for p, row in zip(("train", "test"), pinned, strict=True)},
        )
    elif name.startswith("cifar"):
        monkeypatch.setattr(kind, "train_list", pinned[:-2])
        monkeypatch.setattr(kind, "test_list", pinned[-2:-1])
        monkeypatch.setattr(
            kind, "meta", kind.meta | {"filename": pinned[-1][0], "md5": pinned[-1][1]}
        )
    sides = ("train", "test") if name == "svhn" else (True, False)
    parts = [kind(root, side, download=False) for side in sides]
    x = np.concatenate([np.asarray(part.data) for part in parts])
    x = x.transpose(0, 2, 3, 1) if name == "svhn" else x.reshape(small.x.shape)
    labels = np.concatenate(
        [np.asarray(part.labels if name == "svhn" else part.targets) for part in parts]
    )
    assert np.array_equal(readers.load(name).x, x) and np.array_equal(
        readers.load(name).labels, labels
    )


@pytest.mark.parametrize("small", ["fashion-mnist", "mnist"], indirect=True)
@pytest.mark.parametrize("below, packed", [(".", True), (".", False), ("raw", True)])
def test_flat_idx_files(small: Small, folder: Path, below: str, packed: bool) -> None:
    small.write(
        folder / small.entry.name / below,
        gzip.compress if packed else bytes,
        ".gz" if packed else "",
    )
    readers.prepare(small.entry.name)
    small.check()


@pytest.mark.parametrize("small", ["fashion-mnist"], indirect=True)
def test_a_folder_elsewhere(small: Small, folder: Path, tmp_path: Path) -> None:
    """As Debian's package has it."""
    assert small.entry.folders[-1] == "/usr/share/datasets/fashion-mnist"
    small.put(replace(small.entry, folders=(*small.entry.folders[:-1], str(tmp_path / "debian"))))
    small.write(tmp_path / "debian", gzip.compress, ".gz")
    readers.prepare("fashion-mnist")
    small.check()
    assert only_prepared(folder) == ["prepared"]


@pytest.mark.parametrize("small", ["cifar10", "cifar100"], indirect=True)
def test_the_archive(small: Small, folder: Path) -> None:
    archive = small.entry.downloads[0].name
    small.pack(folder / small.entry.name / archive)
    readers.prepare(small.entry.name)
    small.check()
    assert only_prepared(folder) == [archive, "prepared"]


def serve(contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answers each url by what is its, through pooch's own checks; returns the urls that were asked
    for.
    """
    asked: list[str] = []

    def download(_: object, url: str, file: str, *__: object) -> None:
        asked.append(url)
        Path(file).write_bytes(contents[url])

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", download)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return asked


@pytest.mark.parametrize("small", FETCHED, indirect=True)
def test_a_download(
    small: Small,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    if small.entry.archive:
        contents = {small.entry.archive.url: small.pack(tmp_path / "archive")}
    elif small.entry.downloads:
        packed = {
            file.url: gzip.compress(small.files[file.name[:-3]]) for file in small.entry.downloads
        }
        downloads = tuple(
            File(file.name, md5(packed[file.url]), file.url) for file in small.entry.downloads
        )
        small.put(replace(small.entry, downloads=downloads))
        contents = packed
    else:
        contents = {file.url: small.files[file.name] for file in small.entry.files}
    asked = serve(contents, monkeypatch)
    small.put(
        replace(
            small.entry, folders=tuple(place for place in small.entry.folders if place[0] != "/")
        )
    )
    assert main(["data", "get", small.entry.name]) == 0
    small.check()
    assert only_prepared(folder) == ["prepared"] and set(asked) == set(contents)
    assert f"{small.entry.name} is ready" in capsys.readouterr().out


@pytest.mark.parametrize("small", ["svhn"], indirect=True)
def test_a_download_with_another_digest(
    small: Small, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = serve({file.url: b"<html>not here</html>" for file in small.entry.files}, monkeypatch)
    with pytest.raises(
        BadInput, match=r"svhn could not be downloaded \(MD5 hash .*; put train_32x32.mat"
    ):
        readers.prepare("svhn")
    assert len(asked) == 3, "tried again twice"
    assert only_prepared(folder) == []


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("name", FETCHED)
def test_a_missing_set_says_how_to_get_it(name: str, folder: Path) -> None:
    with pytest.raises(
        BadInput, match=f"{name} is not there; get it with `.*leak.atlas data get {name}`"
    ) as error:
        readers.load(name)
    assert str(folder / name) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("name", FETCHED)
def test_no_network(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", no_network)
    known = registry.find(name)
    here = tuple(place for place in known.folders if place[0] != "/")
    monkeypatch.setitem(registry.ENTRIES, name, replace(known, folders=here))
    assert main(["data", "get", name]) == 2
    said = capsys.readouterr().err.splitlines()
    assert f"{name} could not be downloaded (Name or service not known); put " in said[-1]
    assert only_prepared(folder) == [], "nothing half-written stays"


@pytest.mark.parametrize("small", ["mnist", "cifar10"], indirect=True)
def test_a_wrong_file_is_named_and_never_read(
    small: Small, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write(folder / small.entry.name / small.entry.folders[0], lambda data: data[:-1] + b"?")
    monkeypatch.setattr(
        pickle, "load", lambda *_, **__: pytest.fail("unpickled a file that nobody knows")
    )
    first, expected, _ = small.entry.files[0]
    with pytest.raises(BadInput, match=rf"the MD5 of {first} is \w{{32}}, expected {expected}"):
        readers.prepare(small.entry.name)
    assert "prepared" not in only_prepared(folder) and not list(folder.rglob(".preparing*"))


@pytest.mark.parametrize("small", ["cifar10"], indirect=True)
@pytest.mark.parametrize("keep", [0, 100, 5000])
def test_a_torn_archive(small: Small, folder: Path, keep: int) -> None:
    path = folder / "cifar10" / small.entry.downloads[0].name
    path.write_bytes(small.pack(path)[:keep])
    with pytest.raises(
        BadInput,
        match=r"the MD5 of cifar-10-python.tar.gz is \w+, expected \w+; remove it and get it",
    ):
        readers.prepare("cifar10")


@pytest.mark.parametrize("small", ["mnist"], indirect=True)
def test_a_torn_gz(small: Small, folder: Path) -> None:
    small.write(folder / "mnist", lambda data: gzip.compress(data)[:-9], ".gz")
    with pytest.raises(BadInput, match=r"train-images-idx3-ubyte.gz cannot be read"):
        readers.prepare("mnist")


@pytest.mark.parametrize("small", ["mnist"], indirect=True)
def test_damage_after_preparation(small: Small, folder: Path) -> None:
    small.write(folder / "mnist")
    at = readers.prepare("mnist")
    whole = (at / "images.npy").read_bytes()

    (at / "images.npy").write_bytes(whole[:-1] + b"?")  # a changed byte: found by `get`
    with pytest.raises(BadInput, match=r"images.npy: SHA-256 is \w+, expected \w+; remove"):
        readers.prepare("mnist")
    (at / "images.npy").write_bytes(whole[:-1000])  # a torn file: found by `load`
    with pytest.raises(BadInput, match="is damaged"):
        readers.load("mnist")
    (at / "images.npy").write_bytes(whole)
    note = json.loads((at / "meta.json").read_text())
    (at / "meta.json").write_text(json.dumps(note | {"digest": "0" * 64}))
    for use in (readers.load, readers.prepare):
        with pytest.raises(BadInput, match="prepared from other files"):
            use("mnist")
    (at / "meta.json").write_text("{")
    with pytest.raises(BadInput, match="prepared from other files"):
        readers.load("mnist")
    assert not readers.there("mnist")


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LEAK_ATLAS_DATA", str(tmp_path / "file"))
    with pytest.raises(BadInput, match=r"cannot prepare .*name another folder by LEAK_ATLAS_DATA"):
        readers.prepare("mnist")


# ---------------------------------------------------------------- the command


def test_the_listing(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAK_ATLAS_DATA", "/home/someone/.cache/leak-atlas")
    assert main(["data"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in (*registry.ENTRIES, *registry.ORIGINALS))
    assert max(map(len, out.splitlines())) <= 100
    assert out.count(" yes ") == 4 and out.count(" no ") == 14


def test_the_command_on_bad_input(capsys: pytest.CaptureFixture) -> None:
    assert main(["data", "get", "fashion-mnist-small"]) == 0
    assert main(["data", "get", "cifar"]) == 2
    assert (
        capsys.readouterr().err
        == "leak atlas: there is no data set 'cifar'; did you mean 'cifar10'?\n"
    )


def test_dealt_labels_stay_in_their_part_and_say_nothing() -> None:
    data = Data("fashion-mnist-small", 8)
    own = readers.load(data.name, data.pixels)
    true, dealt = (readers.labels(replace(data, dealt=each), own) for each in (False, True))
    train = data.parts[0]
    for part in (slice(train), slice(train, None)):
        np.testing.assert_array_equal(np.bincount(dealt[part]), np.bincount(true[part]))
        assert np.mean(dealt[part] == true[part]) < 0.15
    np.testing.assert_array_equal(dealt, readers.labels(replace(data, dealt=True), own))
