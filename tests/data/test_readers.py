"""Data sets as arrays: the embedded ones as they are, the fetched ones through small files of the true format."""

import gzip
import hashlib
import io
import json
import pickle
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lib import BadInput
from lib.data import readers, registry
from lib.data.__main__ import main
from lib.data.vision import torchvision

TRAIN, TEST = 100, 20  # samples of the small files


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, and no Debian package."""
    monkeypatch.setenv("LEAK_ATLAS_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(readers, "DEBIAN", tmp_path / "debian")
    return tmp_path / "data"


# ---------------------------------------------------------------- embedded


@pytest.mark.parametrize("name", [entry.name for entry in registry.ENTRIES.values() if entry.embedded])
def test_embedded(name: str) -> None:
    entry, samples = registry.find(name), readers.load(name)
    assert len(samples) == entry.size and samples.train == entry.train
    assert samples.x.shape == (entry.size, *entry.shape) and samples.labels.dtype == np.int64
    for labels in (samples.labels[: entry.train], samples.labels[entry.train :]):
        counts = np.bincount(labels)
        assert len(counts) == len(entry.classes) and counts.max() <= 1.2 * counts.min()
    whole = samples.x.reshape(len(samples), -1) if samples.x.ndim > 1 else samples.x
    assert len(np.unique(whole, axis=0)) == len(samples), "no content occurs twice"
    with pytest.raises(ValueError, match="read-only"):
        samples.labels[0] = 1
    assert readers.load(name) is samples, "loaded once per process"


def test_embedded_kinds() -> None:
    images, bits, text = (readers.load(name) for name in ("fashion-mnist-small", "digits-bits", "wordnet-glosses"))
    assert images.x.dtype == np.uint8 and (np.bincount(images.labels[: images.train]) == 600).all()
    assert bits.x.dtype == np.uint8 and set(np.unique(bits.x)) == {0, 1}
    assert (np.bincount(text.labels[text.train :]) == 300).all()
    assert all(isinstance(gloss, str) and gloss and '"' not in gloss for gloss in text.x[::500])


def test_a_changed_embedded_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wordnet-glosses.tsv").write_text("train\tact\tgetting something\n")
    monkeypatch.setattr(readers, "EMBEDDED", tmp_path)
    with pytest.raises(BadInput, match=r"wordnet-glosses.tsv: SHA-256 is \w+, expected \w+; reinstall"):
        readers._load.__wrapped__("wordnet-glosses", None, tmp_path)
    with pytest.raises(BadInput, match="is missing; reinstall"):
        readers._load.__wrapped__("fashion-mnist-small", None, tmp_path)


# ---------------------------------------------------------------- resize


def test_whole_ratios_are_block_means() -> None:
    x = np.random.default_rng(0).integers(0, 256, (5, 12, 12, 3), np.uint8)
    means = x.reshape(5, 4, 3, 4, 3, 3).astype(int).sum((2, 4)) / 9
    assert np.array_equal(readers.resize(x, 4), np.floor(means + 0.5).astype(np.uint8))


@pytest.mark.parametrize("side, pixels", [(28, 16), (28, 1), (32, 31), (28, 28), (300, 7)])
def test_area_average_is_exact(side: int, pixels: int) -> None:
    """Against the definition: paint each source pixel `pixels` times finer, so that blocks are whole."""
    x = np.random.default_rng(side).integers(0, 256, (2, side, side, 1), np.uint8)
    fine = x.repeat(pixels, 1).repeat(pixels, 2).reshape(2, pixels, side, pixels, side, 1).sum((2, 4), dtype=np.int64)
    assert np.array_equal(readers.resize(x, pixels), ((2 * fine + side**2) // (2 * side**2)).astype(np.uint8))


@pytest.mark.parametrize("value", [0, 1, 127, 255])
def test_constant_images_stay(value: int) -> None:
    x = np.full((3, 28, 28, 2), value, np.uint8)
    assert (readers.resize(x, 16) == value).all()


def test_axes_keep_their_order() -> None:
    x = np.zeros((1, 28, 28, 1), np.uint8)
    x[0, :7, 14:] = 255
    small = readers.resize(x, 4)[0, :, :, 0]
    assert np.array_equal(small, [[0, 0, 255, 255]] + [[0] * 4] * 3)


def test_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).integers(0, 256, (11, 28, 28, 1), np.uint8)
    whole = readers.resize(x, 9)
    monkeypatch.setattr(readers, "BATCH", 4)
    assert np.array_equal(readers.resize(x, 9), whole)


def test_load_resizes_once() -> None:
    small = readers.load("fashion-mnist-small", 14)
    assert small.x.shape == (8000, 14, 14, 1) and readers.load("fashion-mnist-small", 14) is small
    assert readers.load("fashion-mnist-small", 28) is readers.load("fashion-mnist-small")


@pytest.mark.parametrize(
    "name, pixels, message",
    [
        ("fashion-mnist-small", 29, "pixels cannot be 29; its images can be reduced to 1 to 28"),
        ("fashion-mnist-small", 0, "pixels cannot be 0"),
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
    """Images and labels as CIFAR's pickled batches: rows of all red, then all green, then all blue values."""
    key = "fine_labels" if fine else "labels"
    names = ("train",) if fine else tuple(f"data_batch_{i}" for i in range(1, 6))
    parts = [*zip(names, np.split(np.arange(train), len(names)), strict=True)]
    parts.append(("test" if fine else "test_batch", np.arange(train, len(x))))
    files = {
        name: pickle.dumps(
            {"data": x[rows].transpose(0, 3, 1, 2).reshape(len(rows), -1), key: labels[rows].tolist()}, 2
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


class Small:
    """A small data set of the true format under a true name."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(0)
        made = _cifar(rng, name == "cifar100") if name.startswith("cifar") else _mnist(rng)
        self.files, self.x, self.labels = made
        md5 = tuple((file, hashlib.md5(data).hexdigest()) for file, data in self.files.items())
        self.entry = replace(registry.find(name), train=TRAIN, test=TEST, files=md5)
        monkeypatch.setitem(registry.ENTRIES, name, self.entry)
        if name.startswith("cifar"):  # torchvision checks them too
            reader = getattr(torchvision().datasets, readers.READERS[name])
            *batches, meta = [list(pair) for pair in md5]
            monkeypatch.setattr(reader, "train_list", batches[:-1])
            monkeypatch.setattr(reader, "test_list", batches[-1:])
            monkeypatch.setattr(reader, "meta", reader.meta | {"filename": meta[0], "md5": meta[1]})

    def write(self, into: Path, change: Callable[[bytes], bytes] = lambda data: data, end: str = "") -> None:
        into.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            (into / f"{name}{end}").write_bytes(change(data))

    def archive(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w:gz") as packed:
            for name, data in {**self.files, "../../evil": b"no"}.items():
                info = tarfile.TarInfo(f"{self.entry.layout}/{name}")
                info.size = len(data)
                packed.addfile(info, io.BytesIO(data))

    def check(self) -> None:
        samples = readers.load(self.entry.name)
        assert isinstance(samples.x, np.memmap) and samples.x.dtype == np.uint8 and samples.train == TRAIN
        assert np.array_equal(samples.x, self.x) and np.array_equal(samples.labels, self.labels)


FETCHED = ("fashion-mnist", "mnist", "cifar10", "cifar100")


@pytest.fixture
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Small:
    return Small(request.param, monkeypatch)


def only_prepared(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*/*"))


@pytest.mark.parametrize("small", FETCHED, indirect=True)
def test_files_in_torchvisions_layout(small: Small, folder: Path) -> None:
    name = small.entry.name
    small.write(folder / name / small.entry.layout)
    assert not readers.there(name)
    assert readers.prepare(name) == folder / name / "prepared"
    assert readers.there(name)
    small.check()
    note = json.loads((folder / name / "prepared" / "meta.json").read_text())
    assert note["digest"] == small.entry.digest
    for file, digest in note["sha256"].items():
        assert hashlib.sha256((folder / name / "prepared" / file).read_bytes()).hexdigest() == digest
    assert readers.prepare(name) == folder / name / "prepared", "a second time it is only checked"


@pytest.mark.parametrize("small", ["fashion-mnist", "mnist"], indirect=True)
@pytest.mark.parametrize("below, packed", [(".", True), (".", False), ("raw", True)])
def test_flat_idx_files(small: Small, folder: Path, below: str, packed: bool) -> None:
    small.write(folder / small.entry.name / below, gzip.compress if packed else bytes, ".gz" if packed else "")
    readers.prepare(small.entry.name)
    small.check()


@pytest.mark.parametrize("small", ["fashion-mnist"], indirect=True)
def test_debians_package(small: Small, folder: Path) -> None:
    small.write(readers.DEBIAN, gzip.compress, ".gz")
    readers.prepare("fashion-mnist")
    small.check()
    assert only_prepared(folder) == ["prepared"]


@pytest.mark.parametrize("small", ["cifar10", "cifar100"], indirect=True)
def test_the_archive(small: Small, folder: Path, tmp_path: Path) -> None:
    archive = readers.ARCHIVES[small.entry.name]
    small.archive(folder / small.entry.name / archive)
    readers.prepare(small.entry.name)
    small.check()
    assert only_prepared(folder) == [archive, "prepared"]
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("small", ["cifar10"], indirect=True)
def test_a_download(small: Small, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    def download(reader: object) -> None:
        small.write(Path(reader.root) / small.entry.layout)  # type: ignore[attr-defined]

    monkeypatch.setattr(torchvision().datasets.CIFAR10, "download", download)
    assert main(["get", "cifar10"]) == 0
    small.check()
    assert only_prepared(folder) == ["prepared"]
    assert "cifar10 is ready" in capsys.readouterr().out


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("name", FETCHED)
def test_a_missing_set_says_how_to_get_it(name: str, folder: Path) -> None:
    with pytest.raises(BadInput, match=f"{name} is not there; get it with `python -m lib.data get {name}`") as error:
        readers.load(name)
    assert str(folder / name) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("name", FETCHED)
def test_no_network(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    def offline(*_: object, **__: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr(getattr(torchvision().datasets, readers.READERS[name]), "download", offline)
    assert main(["get", name]) == 2
    said = capsys.readouterr().err.splitlines()
    assert f"{name} could not be downloaded (Name or service not known); put " in said[-1]
    assert only_prepared(folder) == [], "nothing half-written stays"


@pytest.mark.parametrize("small", ["mnist", "cifar10"], indirect=True)
def test_a_wrong_file_is_named_and_never_read(small: Small, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small.write(folder / small.entry.name / small.entry.layout, lambda data: data[:-1] + b"?")
    monkeypatch.setattr(pickle, "load", lambda *_, **__: pytest.fail("unpickled a file that nobody knows"))
    first, expected = small.entry.files[0]
    with pytest.raises(BadInput, match=rf"the MD5 of {first} is \w{{32}}, expected {expected}"):
        readers.prepare(small.entry.name)
    assert "prepared" not in only_prepared(folder) and not list(folder.rglob(".preparing*"))


@pytest.mark.parametrize("small", ["cifar10"], indirect=True)
@pytest.mark.parametrize("keep", [0, 100, 5000])
def test_a_torn_archive(small: Small, folder: Path, keep: int) -> None:
    path = folder / "cifar10" / readers.ARCHIVES["cifar10"]
    small.archive(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BadInput, match=r"cifar-10-python.tar.gz cannot be unpacked .* get it again"):
        readers.prepare("cifar10")


@pytest.mark.parametrize("small", ["mnist"], indirect=True)
def test_a_torn_gz(small: Small, folder: Path) -> None:
    small.write(folder / "mnist", lambda data: gzip.compress(data)[:-9], ".gz")
    with pytest.raises(BadInput, match=r"train-images-idx3-ubyte.gz cannot be unpacked"):
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
    with pytest.raises(BadInput, match=r"cannot write below .*LEAK_ATLAS_DATA names another folder"):
        readers.prepare("mnist")


# ---------------------------------------------------------------- the command


def test_the_listing(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAK_ATLAS_DATA", "/home/someone/.cache/leak-atlas")
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in registry.ENTRIES)
    assert max(map(len, out.splitlines())) <= 100
    assert out.count(" yes ") == 3 and out.count(" no ") == 9


def test_the_command_on_bad_input(capsys: pytest.CaptureFixture) -> None:
    assert main(["get", "fashion-mnist-small"]) == 0
    assert main(["get", "cifar"]) == 2
    assert capsys.readouterr().err == "leak atlas: there is no data set 'cifar'; did you mean 'cifar10'?\n"
