"""CHMNIST, Location, Purchase and Texas through small files of the true format."""

import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from leak_atlas import BadInput
from leak_atlas.__main__ import main
from leak_atlas.data import own, pictures, readers
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import File

TISSUES = ("tumor", "stroma", "complex")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("LEAK_ATLAS_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


# ---------------------------------------------------------------- CHMNIST


def tiff(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "TIFF")
    return buffer.getvalue()


def tiles() -> dict[str, np.ndarray]:
    """Five images of each of three tissues, by file, in the order of class and name."""
    rng = np.random.default_rng(0)
    places = [(number, name, tile) for number, name in enumerate(TISSUES, 1) for tile in range(5)]
    return {
        f"0{number}_{name.upper()}/{tile}_CRC-Prim-HE.tif": rng.integers(
            0, 256, (150, 150, 3), np.uint8
        )
        for number, name, tile in places
    }


def packed(home: Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive at its place, in no order; its MD5 becomes the pinned one."""
    entry = registry.find("chmnist")
    (file,) = entry.files
    home.mkdir(parents=True)
    with zipfile.ZipFile(home / file.name, "w") as archive:
        for name in reversed(files):
            archive.writestr(f"{entry.folders[0]}/{name}", files[name])
    pinned = File(file.name, hashlib.md5((home / file.name).read_bytes()).hexdigest(), file.url)
    small = replace(entry, classes=TISSUES, train=12, test=3, files=(pinned,))
    monkeypatch.setitem(registry.ENTRIES, "chmnist", small)


def test_chmnist_is_reduced_and_every_fifth_is_test(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tiles()
    packed(folder / "chmnist", {name: tiff(pixels) for name, pixels in found.items()}, monkeypatch)
    assert main(["data", "get", "chmnist"]) == 0
    samples = readers.load("chmnist")
    order = [i for i in range(15) if i % 5 < 4] + [4, 9, 14]
    assert samples.train == 12 and samples.labels.tolist() == [i // 5 for i in order]
    assert np.array_equal(samples.x, pictures.resize(np.stack([*found.values()]), 32)[order])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda files: files.popitem(), "has 14 TIFF samples, expected 15, 5 of each class"),
        (
            lambda files: files.update({next(iter(files)): b"no picture"}),
            "missing, damaged or no picture",
        ),
        (
            lambda files: files.update({next(iter(files)): tiff(np.zeros((9, 9, 3), np.uint8))}),
            "has 9 x 9 pixels",
        ),
    ],
)
def test_a_damaged_chmnist(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change, words: str
) -> None:
    files = {name: tiff(pixels) for name, pixels in tiles().items()}
    change(files)
    packed(folder / "chmnist", files, monkeypatch)
    with pytest.raises(BadInput, match=words):
        readers.prepare("chmnist")


# ---------------------------------------------------------------- Shokri's sets of bits


def bits(samples: int, width: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples, and labels that count from 1."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, (samples, width)), 1 + np.arange(samples) % classes


def rows(*columns: np.ndarray, quoted: bool = False) -> str:
    lines = [",".join(map(str, line)) + "\n" for line in np.column_stack(columns).tolist()]
    return "".join('"' + line.replace(",", '",', 1) if quoted else line for line in lines)


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("turn", [0, 7])
def test_location_is_one_set_whatever_its_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch, quoted: bool, turn: int
) -> None:
    x, y = bits(20, 6, 2)
    expected = sorted(zip(y - 1, map(tuple, x), strict=True))
    values = (
        np.array([row for _, row in expected], np.uint8).tobytes()
        + np.array([label for label, _ in expected], "<i8").tobytes()
    )
    file = File("bangkok", hashlib.md5(values).hexdigest())
    entry = replace(
        registry.find("location30"), shape=(6,), classes=("1", "2"), train=16, test=4, files=(file,)
    )
    monkeypatch.setitem(registry.ENTRIES, "location30", entry)
    (folder / "location30").mkdir(parents=True)
    path = folder / "location30" / "bangkok"
    path.write_text(rows(np.roll(y, turn), np.roll(x, turn, axis=0), quoted=quoted))
    readers.prepare("location30")
    samples = readers.load("location30")
    order = [i for i in range(20) if i % 5 < 4] + [4, 9, 14, 19]
    assert samples.train == 16 and samples.x.dtype == np.uint8
    found = [
        (label, tuple(row))
        for label, row in zip(samples.labels.tolist(), samples.x.tolist(), strict=True)
    ]
    assert found == [expected[i] for i in order]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,0,1\n2,1,0\n", "the MD5 of bangkok is"),
        ("1,0\n1,0,1\n", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_another_location_is_refused(
    folder: Path, text: str, words: str, capsys: pytest.CaptureFixture
) -> None:
    assert main(["data", "get", "location30"]) == 2
    own = f"location30 cannot be downloaded; put bangkok into {folder / 'location30'}"
    assert capsys.readouterr().err == f"leak atlas: {own}\n"
    (folder / "location30").mkdir(parents=True)
    (folder / "location30" / "bangkok").write_text(text)
    with pytest.raises(BadInput, match=words):
        readers.prepare("location30")


@pytest.fixture(params=["purchase100", "texas100"])
def original(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Path]:
    """A small one of that name, where its user unpacked it."""
    x, y = bits(30, 8, 3)
    name, path = request.param, tmp_path / "unpacked"
    monkeypatch.setitem(
        registry.ORIGINALS, name, registry.ORIGINALS[name]._replace(bits=8, classes=3, size=30)
    )
    if name == "purchase100":
        path.write_text(rows(y, x))
    else:
        path.mkdir()
        (path / "feats").write_text(rows(x))
        (path / "labels").write_text(rows(y))
    return name, path


def test_an_original_is_added_as_it_is(
    original: tuple[str, Path], capsys: pytest.CaptureFixture
) -> None:
    name, path = original
    with pytest.raises(BadInput, match=f"{name} is not there; unpack dataset_"):
        readers.load(name)
    assert main(["data", "add", name, str(path)]) == 0
    assert "bits of shape (8,), 24 train and 6 test samples of 3 classes" in capsys.readouterr().out
    x, y = bits(30, 8, 3)
    samples = readers.load(name)
    found = sorted(zip(samples.labels.tolist(), map(tuple, samples.x.tolist()), strict=True))
    assert found == sorted(zip((y - 1).tolist(), map(tuple, x.tolist()), strict=True))
    assert registry.find(name).own and name in registry.names()


def test_another_set_cannot_have_its_name(original: tuple[str, Path], tmp_path: Path) -> None:
    name = original[0]
    x, y = bits(29, 8, 3)
    other = tmp_path / "other"
    other.write_text(rows(y, x))
    with pytest.raises(
        BadInput, match=f"29 samples of .* but {name} has 30 of 8 bits in 3: take dataset_"
    ):
        own.add(name, other)
    with pytest.raises(BadInput, match="cannot be read"):
        own.add(name, tmp_path / "nowhere")
    other.write_text(rows(y, 2 * x))
    with pytest.raises(BadInput, match="numbers in 3 classes"):
        own.add(name, other)
