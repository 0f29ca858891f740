"""Tiny ImageNet's files and a user's own arrays, through small sets of the true format."""

import hashlib
import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pooch
import pytest
from PIL import Image

from leak_atlas import BadInput
from leak_atlas.__main__ import main
from leak_atlas.data import readers
from leak_atlas.data.formats import ANNOTATIONS
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import Entry, File
from tests.data.test_readers import no_network, serve

ZIP, FOLDER = "tiny-imagenet-200.zip", "tiny-imagenet-200"
WNIDS = ("n01443537", "n01629819", "n12267677")
HALVES = ("cifar100-half", "tinyimagenet32-half")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("LEAK_ATLAS_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


# ---------------------------------------------------------------- Tiny ImageNet


def jpeg(value: int, mode: str = "RGB", side: int = 64) -> bytes:
    """A picture of one colour, which JPEG keeps to within a step or two: red falls and blue grows
    with `value`.
    """
    colour = value if mode == "L" else (255 - value, 128, value)
    buffer = io.BytesIO()
    Image.new(mode, (side, side), colour).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def tiny_files() -> tuple[dict[str, bytes], list[int], list[int]]:
    """Files of three classes, 11 train and 2 val images each; and the values and labels in the
    order to be found.
    """
    files = {"wnids.txt": "\n".join(reversed(WNIDS)).encode(), "words.txt": b"n01443537\tgoldfish"}
    files["test/images/test_0.JPEG"] = jpeg(0)
    values, labels = [], []
    for label, wnid in enumerate(WNIDS):
        files[f"train/{wnid}/{wnid}_boxes.txt"] = b""
        for i in [0, 1, 10, *range(2, 10)]:  # names in the order of text
            values.append(10 * label + 20 * i + 1)
            labels.append(label)
            files[f"train/{wnid}/images/{wnid}_{i}.JPEG"] = jpeg(values[-1])
    files[f"train/{WNIDS[0]}/images/{WNIDS[0]}_0.JPEG"] = jpeg(values[0], "L")
    rows = []
    for i, label in enumerate([2, 0, 1, 1, 0, 2]):
        values.append(40 * i + 5)
        labels.append(label)
        files[f"val/images/val_{i}.JPEG"] = jpeg(values[-1])
        rows.append(f"val_{i}.JPEG\t{WNIDS[label]}\t0\t3\t63\t60\n")
    files[ANNOTATIONS] = "".join(rows).encode()
    return dict(reversed(files.items())), values, labels


class Tiny:
    """A small Tiny ImageNet under the true name."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.monkeypatch = folder / "tinyimagenet", monkeypatch
        self.files, self.values, self.labels = tiny_files()

    def pack(self) -> bytes:
        """The zip, at its place; its MD5 becomes the pinned one."""
        to = self.home / ZIP
        to.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, data in self.files.items():
                packed.writestr(f"{FOLDER}/{name}", data)
        self.pin(hashlib.md5(to.read_bytes()).hexdigest())
        return to.read_bytes()

    def unpack(self) -> None:
        for name, data in self.files.items():
            path = self.home / FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.pin("0" * 32)

    def pin(self, md5: str) -> None:
        file = File(ZIP, md5, registry.find("tinyimagenet").files[0].url)
        entry = replace(
            registry.find("tinyimagenet"), classes=WNIDS, train=33, test=6, files=(file,)
        )
        self.monkeypatch.setitem(registry.ENTRIES, "tinyimagenet", entry)

    def check(self) -> None:
        samples = readers.load("tinyimagenet")
        assert (
            isinstance(samples.x, np.memmap)
            and samples.x.shape == (39, 64, 64, 3)
            and samples.x.dtype == np.uint8
        )
        assert samples.train == 33 and samples.labels.tolist() == self.labels
        expected = np.array([(255 - value, 128, value) for value in self.values])
        expected[0] = self.values[0]  # greyscale
        assert (abs(samples.x.astype(int) - expected[:, None, None, :]) <= 3).all()


@pytest.fixture
def tiny(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    return Tiny(folder, monkeypatch)


def test_tiny_imagenet_from_its_zip(tiny: Tiny, capsys: pytest.CaptureFixture) -> None:
    tiny.pack()
    assert main(["data", "get", "tinyimagenet"]) == 0
    tiny.check()
    assert sorted(path.name for path in tiny.home.iterdir()) == ["prepared", ZIP]
    assert main(["data", "get", "tinyimagenet"]) == 0, "a second time it is only checked"
    assert capsys.readouterr().err == ""


def test_tiny_imagenet_from_its_folder(tiny: Tiny, capsys: pytest.CaptureFixture) -> None:
    tiny.unpack()
    assert main(["data", "get", "tinyimagenet"]) == 0
    tiny.check()
    assert (
        "has no known digest: form and numbers are checked, content not" in capsys.readouterr().err
    )


def test_the_zip_goes_before_the_folder(tiny: Tiny, capsys: pytest.CaptureFixture) -> None:
    tiny.unpack()
    (tiny.home / FOLDER / "val/images/val_0.JPEG").write_bytes(b"")
    tiny.pack()
    readers.prepare("tinyimagenet")
    tiny.check()
    assert capsys.readouterr().err == ""


def test_a_download_of_tiny_imagenet(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tiny.pack()
    (tiny.home / ZIP).unlink()

    serve({registry.find("tinyimagenet").files[0].url: data}, monkeypatch)
    readers.prepare("tinyimagenet")
    tiny.check()
    assert [path.name for path in tiny.home.iterdir()] == ["prepared"]


def test_no_network_for_tiny_imagenet(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", no_network)
    with pytest.raises(
        BadInput, match=rf"could not be downloaded .*; put {ZIP} or its folder {FOLDER} into "
    ):
        readers.prepare("tinyimagenet")


@pytest.mark.parametrize(
    "change", [lambda data: data[:-1] + b"?", lambda data: data[:500], lambda _: b""]
)
def test_another_zip(
    tiny: Tiny, change: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tiny.home / ZIP).write_bytes(change(tiny.pack()))
    monkeypatch.setattr(
        zipfile, "ZipFile", lambda *_: pytest.fail("opened a file that nobody knows")
    )
    with pytest.raises(
        BadInput, match=rf"the MD5 of {ZIP} is \w{{32}}, expected \w{{32}}; remove it"
    ):
        readers.prepare("tinyimagenet")
    assert [path.name for path in tiny.home.iterdir()] == [ZIP]


TRAIN = f"train/{WNIDS[1]}/images/{WNIDS[1]}_5.JPEG"


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    "name, data, message",
    [
        (ANNOTATIONS, None, "val/val_annotations.txt in .* is missing or damaged"),
        (ANNOTATIONS, b"val_0.JPEG\n", "val/val_annotations.txt in .* is missing or damaged"),
        (ANNOTATIONS, b"\xff\t\xff\n", "val/val_annotations.txt in .* is missing or damaged"),
        (ANNOTATIONS, f"val_0.JPEG\t{WNIDS[0]}\n".encode() * 6, r"has 1 val samples, expected 6"),
        (
            ANNOTATIONS,
            b"",
            r"has 0 val samples, expected 6, 2 of each class \(not so in 3 classes\)",
        ),
        (
            TRAIN,
            None,
            r"has 32 train samples, expected 33, 11 of each class \(not so in 1 classes\)",
        ),
        (
            f"train/n00000000/images/{WNIDS[0]}_0.JPEG",
            jpeg(0),
            r"has 34 train samples, expected 33",
        ),
        ("val/images/val_3.JPEG", None, "val/images/val_3.JPEG is missing, damaged or no picture"),
        (TRAIN, b"GIF", f"{TRAIN} is missing, damaged or no picture"),
        (TRAIN, jpeg(7)[:300], f"{TRAIN} is missing, damaged or no picture"),
        (TRAIN, jpeg(7, side=32), r"5.JPEG has 32 x 32 pixels, not 64 x 64"),
    ],
)
def test_what_is_wrong_is_named(
    tiny: Tiny, packed: bool, name: str, data: bytes | None, message: str
) -> None:
    tiny.files.pop(name, None)
    if data is not None:
        tiny.files[name] = data
    tiny.pack() if packed else tiny.unpack()
    with pytest.raises(BadInput, match=message) as error:
        readers.prepare("tinyimagenet")
    assert "\n" not in str(error.value) and not (tiny.home / "prepared").exists()
    assert not list(tiny.home.glob(".preparing*"))


# ---------------------------------------------------------------- a user's own arrays


def own_arrays(entry: Entry) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made: dict[str, np.ndarray] = {}
    for part, size in (("train", 60), ("test", 12)):
        made[f"x_{part}"] = rng.integers(0, 256, (size, *entry.shape), np.uint8)
        made[f"y_{part}"] = rng.integers(0, len(entry.classes), size)
    return made


@pytest.fixture
def own(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, np.ndarray]:
    """Four small arrays, pinned and saved in the folder of the set."""
    entry = registry.find(request.param)
    arrays = own_arrays(entry)
    (folder / request.param).mkdir(parents=True)
    for name, array in arrays.items():
        np.save(folder / request.param / f"{name}.npy", array)
    names = [file.name for file in entry.files]
    pinned = tuple(
        File(name, hashlib.md5(arrays[name.removesuffix(".npy")].tobytes()).hexdigest())
        for name in names
    )
    monkeypatch.setitem(
        registry.ENTRIES, request.param, replace(entry, train=60, test=12, files=pinned)
    )
    return arrays


@pytest.mark.parametrize("own, name", [(name, name) for name in HALVES], indirect=["own"])
def test_own_arrays(own: dict[str, np.ndarray], name: str, folder: Path) -> None:
    assert main(["data", "get", name]) == 0 and readers.there(name)
    samples = readers.load(name)
    assert isinstance(samples.x, np.memmap) and samples.train == 60
    assert np.array_equal(samples.x, np.concatenate([own["x_train"], own["x_test"]]))
    assert np.array_equal(samples.labels, np.concatenate([own["y_train"], own["y_test"]]))


@pytest.mark.parametrize("own", ["cifar100-half"], indirect=True)
def test_rows_are_pixels_too(own: dict[str, np.ndarray], folder: Path) -> None:
    """The same values have the same digest, whatever shape their file says."""
    for part in ("train", "test"):
        np.save(folder / "cifar100-half" / f"x_{part}.npy", own[f"x_{part}"].reshape(-1, 3072))
    readers.prepare("cifar100-half")
    assert np.array_equal(readers.load("cifar100-half").x[:60], own["x_train"])


@pytest.mark.parametrize("own", ["cifar100-half"], indirect=True)
@pytest.mark.parametrize("kind", [np.uint8, np.int32, ">i8"])
def test_labels_of_any_whole_numbers(own: dict[str, np.ndarray], kind: str, folder: Path) -> None:
    np.save(folder / "cifar100-half" / "y_train.npy", own["y_train"].astype(kind))
    readers.prepare("cifar100-half")
    assert np.array_equal(readers.load("cifar100-half").labels[:60], own["y_train"])


@pytest.mark.parametrize("own", ["cifar100-half"], indirect=True)
@pytest.mark.parametrize(
    "name, change, message",
    [
        (
            "x_train",
            lambda x: x ^ np.uint8(1),
            r"the MD5 of x_train.npy is \w{32}, expected \w{32}",
        ),
        ("y_test", lambda y: np.roll(y, 1), r"the MD5 of y_test.npy is \w{32}, expected \w{32}"),
        ("x_test", lambda x: x / 255, "x_test.npy cannot be read .*float64"),
        ("y_train", lambda y: y.astype(float), "y_train.npy cannot be read .*float64"),
        ("y_train", lambda y: y.astype(object), "y_train.npy cannot be read"),
    ],
)
def test_other_arrays(
    own: dict[str, np.ndarray],
    name: str,
    change: Callable[[np.ndarray], np.ndarray],
    message: str,
    folder: Path,
) -> None:
    np.save(folder / "cifar100-half" / f"{name}.npy", change(own[name]), allow_pickle=True)
    with pytest.raises(BadInput, match=message) as error:
        readers.prepare("cifar100-half")
    assert "\n" not in str(error.value) and not (folder / "cifar100-half" / "prepared").exists()


@pytest.mark.parametrize("name", HALVES)
def test_own_arrays_are_asked_for(name: str, folder: Path, capsys: pytest.CaptureFixture) -> None:
    wanted = f"put x_train.npy, y_train.npy, x_test.npy, y_test.npy into {folder / name}"
    with pytest.raises(
        BadInput,
        match=rf"{name} is not there; {wanted}, then run `.*leak.atlas data get {name}`",
    ):
        readers.load(name)
    assert main(["data", "get", name]) == 2
    assert capsys.readouterr().err == f"leak atlas: {name} cannot be downloaded; {wanted}\n"
