"""A user's own data set: from files as people have them to `Data(name)`, and every mistake on one
line.
"""

import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from bench.vision import torchvision
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from leak_atlas import BadInput
from leak_atlas.__main__ import main
from leak_atlas.data import augmentation, own, readers
from leak_atlas.data.resident import resident
from leak_atlas.engine import paths
from leak_atlas.lab.declare import Notebook
from leak_atlas.recipe import Data, registry

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (20, 6, 6, 3), np.uint8)
Y = np.arange(20) % 4
BITS = RNG.integers(0, 2, (20, 9))
NUMBERS = RNG.normal(3, 2, (20, 5))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("LEAK_ATLAS_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def pictures(at: Path, x: np.ndarray = X, y: np.ndarray = Y, mode: str = "RGB") -> Path:
    """A folder of PNGs, a folder a class."""
    for place, (pixels, label) in enumerate(zip(x, y, strict=True)):
        (at / f"class {label}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).convert(mode).save(at / f"class {label}" / f"{place:02}.png")
    return at


def npz(at: Path, **arrays: object) -> Path:
    np.savez_compressed(at, **arrays)  # type: ignore[arg-type]
    return at


# ---------------------------------------------------------------- what is taken


def test_a_folder_with_parts(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pictures(tmp_path / "mine/train", X[:12], Y[:12])
    pictures(tmp_path / "mine/test", X[12:], Y[12:])
    (tmp_path / "mine/train/class 0/.hidden").write_bytes(b"")
    assert main(["data", "add", "mine", str(tmp_path / "mine")]) == 0
    said = "mine is ready: images of shape (6, 6, 3), 12 train and 8 test samples of 4 classes"
    assert said in capsys.readouterr().out
    entry, samples = registry.find("mine"), readers.load("mine")
    assert entry.classes == ("class 0", "class 1", "class 2", "class 3") and entry.note == ""
    order = [*np.argsort(Y[:12], kind="stable"), *(12 + np.argsort(Y[12:], kind="stable"))]
    assert (
        np.array_equal(samples.x, X[order])
        and np.array_equal(samples.labels, Y[order])
        and samples.train == 12
    )
    train = X[:12] / 255
    assert np.allclose(entry.mean, train.mean((0, 1, 2)), atol=1e-6)
    assert np.allclose(entry.std, train.std((0, 1, 2)), atol=1e-6)
    data = Data("mine")
    assert (data.kind, data.channels, data.size, data.classes) == ("images", 3, 6, 4)
    assert resident(data).shape == (6, 6, 3) and readers.load("mine", 3).x.shape == (20, 3, 3, 3)
    assert main(["data", "list"]) == 0 and "mine " in capsys.readouterr().out
    assert main(["data", "get", "mine"]) == 0, "it is checked"


def test_a_folder_without_parts(tmp_path: Path) -> None:
    entry = own.add("grey", pictures(tmp_path / "grey", mode="L"))
    samples = readers.load("grey")
    assert entry.shape == (6, 6, 1) and (entry.train, entry.test) == (16, 4)
    assert entry.note == "the test part is a fifth of each class, drawn by seed 0"
    assert (np.bincount(samples.labels[:16]) == 4).all() and (
        np.bincount(samples.labels[16:]) == 1
    ).all()


def test_the_seed_draws_the_test_part(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", x=X, y=Y)
    digests = {own.add(f"a{place}", path, seed=seed).digest for place, seed in enumerate((0, 1, 0))}
    assert len(digests) == 2, "the same seed gives the same set, another name or not"
    assert not np.array_equal(readers.load("a0").x, readers.load("a1").x)
    for name in ("a0", "a1"):
        samples = readers.load(name)
        back = [int(np.flatnonzero((one == X).all((1, 2, 3)))[0]) for one in samples.x]
        assert sorted(back) == [*range(20)] and np.array_equal(Y[back], samples.labels)


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, float])
def test_bits_of_any_type(kind: type, tmp_path: Path) -> None:
    whole = npz(
        tmp_path / "b.npz",
        x_train=BITS[:12].astype(kind),
        y_train=Y[:12],
        x_test=BITS[12:],
        y_test=Y[12:],
    )
    assert own.add("b", whole).kind == "bits"
    samples = readers.load("b")
    assert samples.x.dtype == np.uint8 and np.array_equal(samples.x, BITS) and samples.train == 12
    assert augmentation.plain(resident(Data("b")), torch.arange(2)).dtype == torch.float32


def test_numbers_are_standardised_where_they_live(tmp_path: Path) -> None:
    x = np.c_[NUMBERS, np.full(20, 7.0)]
    own.add(
        "n", npz(tmp_path / "n.npz", x_train=x[:12], y_train=Y[:12], x_test=x[12:], y_test=Y[12:])
    )
    assert np.array_equal(readers.load("n").x, x.astype(np.float32))
    found = augmentation.plain(resident(Data("n")), torch.arange(20)).numpy()
    assert np.allclose(found[:12, :5].mean(0), 0, atol=1e-5) and np.allclose(
        found[:12, :5].std(0), 1, atol=1e-5
    )
    assert np.allclose(
        found[12:, :5], (NUMBERS[12:] - NUMBERS[:12].mean(0)) / NUMBERS[:12].std(0), atol=1e-4
    )
    assert (found[:, 5] == 0).all(), "a constant stays finite"


@pytest.mark.parametrize(("column", "head"), [("label", True), ("0", False), ("-1", False)])
def test_a_csv(column: str, head: bool, tmp_path: Path) -> None:
    names = [*"abcdefghi"]
    names.insert(0 if column == "0" else 9, "label")
    rows = [[*BITS[i], Y[i]] if column != "0" else [Y[i], *BITS[i]] for i in range(20)]
    text = [",".join(names)] * head + [",".join(map(str, row)) for row in rows]
    (tmp_path / "c.csv").write_text("\n".join(text))
    assert (
        main(
            [
                "data",
                "add",
                "c",
                str(tmp_path / "c.csv"),
                *(["--label", column] if not head else []),
            ]
        )
        == 0
    )
    samples = readers.load("c")
    assert registry.find("c").kind == "bits" and samples.x.shape == (20, 9)
    assert sorted(map(tuple, np.c_[samples.x, samples.labels])) == sorted(
        map(tuple, np.c_[BITS, Y])
    )


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(
            st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=8
        ),
        min_size=2,
        max_size=4,
        unique=True,
    ),
    st.booleans(),
)
def test_class_names_come_back(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], standing: bool
) -> None:
    """Quotes, backslashes and letters of any script, through the description's TOML."""
    at = tmp_path_factory.mktemp("names")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAK_ATLAS_DATA", str(at / "data"))
        y = np.array(names * 5)
        entry = own.add(
            "m", npz(at / "m.npz", x=RNG.integers(0, 256, (len(y), 2, 2), np.uint8), y=y)
        )
        assert entry.classes == tuple(sorted(set(map(str, y))))


# ---------------------------------------------------------------- what is refused


def refused(path: Path, words: str, folder: Path, **options: object) -> None:
    with pytest.raises(BadInput, match=words) as error:
        own.add("mine", path, **options)  # type: ignore[arg-type]
    assert "\n" not in str(error.value) and len(str(error.value)) < 600
    assert not folder.exists() or not [*folder.iterdir()], "nothing half written is left"


@pytest.mark.parametrize(
    "name", ["cifar10", "../up", "", ".hidden", "Upper", "a/b", "a\nb", "x" * 65]
)
def test_names(name: str, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(BadInput, match="a set of your own cannot have the name") as error:
        own.add(name, npz(tmp_path / "a.npz", x=X, y=Y))
    assert "\n" not in str(error.value) and not folder.exists()
    assert main(["data", "add", name, str(tmp_path / "a.npz")]) == 2


def test_seeds(tmp_path: Path, folder: Path) -> None:
    refused(npz(tmp_path / "a.npz", x=X, y=Y), "a seed cannot be -1", folder, seed=-1)


def test_a_name_is_taken_once(tmp_path: Path, folder: Path) -> None:
    own.add("mine", npz(tmp_path / "a.npz", x=X, y=Y))
    with pytest.raises(
        BadInput, match=r"mine is there already; remove .*mine, or choose another name"
    ):
        own.add("mine", tmp_path / "a.npz")
    with pytest.raises(BadInput, match="did you mean 'mine'"):
        registry.find("mime")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"a": X, "b": Y}, r"holds \['a', 'b'\]; name them x, y or"),
        (
            {"x": X.astype(float), "y": Y},
            r"float64 from 0 to 255, not uint8 from 0 to 255: x\.round",
        ),
        ({"x": X[:, :5], "y": Y}, "images of 5 x 6 are not square: --size 5"),
        ({"x": X[..., :2], "y": Y}, "1 or 3 channels"),
        ({"x": X.astype("U3"), "y": Y}, "are neither images of uint8 nor rows of numbers"),
        (
            {"x": np.zeros((20, 6, 6), np.uint8), "y": Y},
            r"mean \(0.0,\) and deviation \(0.0,\) do not fit",
        ),
        ({"x": BITS + 0j, "y": Y}, "are neither images"),
        ({"x": BITS[:, :0], "y": Y}, r"of shape \(0,\) cannot be"),
        ({"x": BITS[:19], "y": Y}, "19 samples need as many labels"),
        ({"x": BITS, "y": Y[:, None]}, "20 samples need as many labels"),
        ({"x": BITS, "y": Y / 2}, "whole numbers or names"),
        ({"x": BITS, "y": Y * 0}, r"classes \('0',\); two or more are needed"),
        ({"x": BITS[:0], "y": Y[:0]}, r"classes \(\); two or more"),
        (
            {"x": BITS[:4], "y": Y[:4]},
            "no class has 5 of the 4 samples; give more samples, or a test part",
        ),
        (
            {"x": BITS, "y": np.array(["a\nb", "c"] * 10)},
            r"classes \('a\\nb', 'c'\).* printable letters",
        ),
        (
            {"x_train": BITS, "y_train": Y * 0, "x_test": BITS, "y_test": Y},
            "class '1' has no train sample",
        ),
        (
            {"x_train": BITS, "y_train": Y, "x_test": BITS[:, :4], "y_test": Y},
            r"x_train have shape \(9,\), .* x_test \(4,\)",
        ),
        (
            {"x_train": BITS, "y_train": Y[:5], "x_test": BITS[:5], "y_test": Y},
            "x_train and y_train are not of one length",
        ),
        ({"x": np.where(NUMBERS > 4, np.nan, NUMBERS), "y": Y}, "no finite numbers"),
        ({"x": NUMBERS * 1e300, "y": Y}, "no finite numbers"),
        (
            {"x": np.array([[{}]] * 20), "y": Y},
            r"cannot be read .*allow_pickle.*write objects as .*astype\(str\)",
        ),
    ],
)
def test_arrays(arrays: dict[str, np.ndarray], words: str, tmp_path: Path, folder: Path) -> None:
    refused(npz(tmp_path / "a.npz", **arrays), words, folder)


@pytest.mark.parametrize(
    ("text", "label", "words"),
    [
        ("", "label", "cannot be read"),
        ("a,b\n1,2\n", "label", "has no column 'label'; --label names"),
        ("1,2\n", "2", "has no column '2'"),
        ("a,label\n1,x\n2,\n", "label", "1 samples have no label"),
        ("a,label\n" + "1,x\n,y\n" * 9, "label", r"column 'a' \(9 values\): missing; fill them"),
        ("a,label\n" + "one,x\ntwo,y\n" * 9, "label", r"column 'a' \('one' in line 2\): text"),
        ("1,2,x\n3,?,y\n", "-1", r"column '1' \('\?' in line 2\): text"),
        (
            ",a,label\n0,5,x\n1,5,y\n",
            "label",
            "column 'Unnamed: 0' counts the samples; leave it out",
        ),
        ("a,label\n1,.5\n2,.7\n", "label", "labels in 'label' have fractions"),
        (
            "a,label\n1,x\n",
            "class",
            "no column 'class'; --label names the one .*; there is: a, label",
        ),
        ("a,label\n" + "1,x\n2,y,3,4\n" * 9, "label", "cannot be read"),
        ("\udcff\udcfe,label\n1,2\n", "label", "cannot be read"),
    ],
)
def test_tables(text: str, label: str, words: str, tmp_path: Path, folder: Path) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode(errors="surrogateescape"))
    refused(tmp_path / "a.csv", words, folder, label=label)


def bomb() -> bytes:
    """A PNG of 200 million pixels, by its head."""
    head = struct.pack(">IIBBBBB", 20_000, 10_000, 8, 0, 0, 0, 0)
    chunk = b"IHDR" + head
    return (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + chunk
        + struct.pack(">III", zlib.crc32(chunk), 0, 0x49444154)
    )


def large() -> bytes:
    """Another size than the others."""
    buffer = io.BytesIO()
    Image.new("RGB", (7, 7)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda at: (at / "class 0/00.png").write_bytes(b"GIF89a"),
            "00.png is missing, damaged or no picture",
        ),
        (
            lambda at: os.truncate(at / "class 0/00.png", 60),
            "00.png is missing, damaged or no picture",
        ),
        (
            lambda at: (at / "class 0/00.png").write_bytes(bomb()),
            "00.png is missing, damaged or no picture .*pixels",
        ),
        (lambda at: (at / "class 0/00.png").write_bytes(large()), "are not of one size"),
        (
            lambda at: Image.new("I;16", (6, 6)).save(at / "class 0/00.png"),
            "00.png has pixels of more than 8 bits",
        ),
        (
            lambda at: (at / "class 0/notes.txt").write_text("x"),
            "notes.txt is missing, damaged or no picture",
        ),
        (
            lambda at: (at / "notes.txt").write_text("x"),
            "'notes.txt' is not a picture in a folder of its class",
        ),
        (
            lambda at: (at / "class 0").rename(at / "class 1/more"),
            "'class 1/more/00.png' is not a picture in a folder",
        ),
        (lambda at: (at / "class 9").mkdir(), "the folder 'class 9' has no pictures"),
        (
            lambda at: (at / "class 0/00.png").rename(at / "class 0/a\nb.png"),
            r"'class 0/a\\nb.png' is not",
        ),
        (
            lambda at: os.rename(at / "class 0", os.fsencode(at) + b"/\xff"),
            r"'\\udcff/00.png' is not",
        ),
        (
            lambda at: (at / "class 0/x.png").symlink_to("/etc/hostname"),
            "x.png is a link that leaves",
        ),
        (lambda at: (at / "class 9").symlink_to("/etc"), "class 9 is a link that leaves"),
        (
            lambda at: [
                path.rename(at / "class 0" / path.name) for path in at.glob("class [123]/*")
            ],
            "has no pictures",
        ),
    ],
)
def test_folders(
    change: Callable[[Path], object], words: str, tmp_path: Path, folder: Path
) -> None:
    change(pictures(tmp_path / "mine"))
    refused(tmp_path / "mine", words, folder)


def test_files_that_are_none(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "two or more are needed", folder)
    refused(tmp_path / "gone", "is no folder of pictures, .npz or .csv", folder)
    refused(tmp_path / "gone.npz", "is no folder of pictures, .npz or .csv", folder)
    os.mkfifo(tmp_path / "pipe.npz")
    refused(tmp_path / "pipe.npz", "is no folder", folder)
    for name, data in (
        ("a.txt", b"1"),
        ("a.npz", b""),
        ("b.npz", b"PK\x03\x04torn"),
        ("c.npz", b"\x80\x04N."),
    ):
        (tmp_path / name).write_bytes(data)
        refused(tmp_path / name, "cannot be read|is no folder", folder)


def test_an_archive_that_unpacks_to_too_much(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "LIMIT", 1000)
    refused(
        npz(tmp_path / "a.npz", x=np.zeros((1000, 9), np.uint8), y=Y),
        "unpacks to [0-9,]+ bytes; 1,000 are",
        folder,
    )
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as packed:
        packed.writestr("x.npy", b"not an array")
    refused(tmp_path / "b.npz", "holds", folder)


def test_a_data_folder_that_is_a_file(tmp_path: Path, folder: Path) -> None:
    folder.write_text("")
    with pytest.raises(BadInput, match=r"cannot prepare .*name another folder by LEAK_ATLAS_DATA"):
        own.add("mine", npz(tmp_path / "a.npz", x=X, y=Y))


def test_a_full_disk(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(readers, "write", full)
    refused(npz(tmp_path / "a.npz", x=X, y=Y), "cannot prepare .*No space left on device", folder)


# ---------------------------------------------------------------- all that is wrong, and what to do


def remedies(message: str) -> tuple[list[str], list[str]]:
    """What a refusal says to do: expressions that make a better `x` or `y`, and options."""
    found = [part.rpartition(": ")[2] for part in message.split("; ")]
    options = [each.split(" resizes")[0] for each in found if each.startswith("--")]
    return [each for each in found if each[0] in "xy("], " ".join(options).split()


@pytest.mark.parametrize(
    ("x", "y", "faults", "pixels"),
    [
        (X / 255, Y, 1, X),
        (X.astype(np.float32), Y, 1, X),
        (X.astype(int), Y, 1, X),
        (np.moveaxis(X, 3, 1), Y, 1, X),
        (X[..., :1].transpose(0, 3, 1, 2) / 255, Y, 2, X[..., :1]),
        (X[..., :2], Y, 1, X[..., :1]),
        (np.moveaxis(X[:, :5], 3, 1) / 255, np.eye(4)[Y], 4, None),
        (X, Y.astype(float), 1, X),
        (X, Y[:, None], 1, X),
    ],
)
def test_what_a_refusal_says_to_do_is_enough(
    x: np.ndarray,
    y: np.ndarray,
    faults: int,
    pixels: np.ndarray | None,
    tmp_path: Path,
    capsys,
    monkeypatch,
) -> None:
    """All faults are named at once, so that one round of remedies is enough."""
    monkeypatch.chdir(tmp_path)
    npz(tmp_path / "a.npz", x=x, y=y)
    assert main(["data", "add", "mine", "a.npz"]) == 2
    message = capsys.readouterr().err.strip()
    assert message.count("; ") == faults - 1 and " ... " not in message and "\n" not in message
    expressions, options = remedies(message)
    for expression in expressions:
        if expression.startswith("y"):
            y = eval(expression)
        else:
            x = eval(expression)
    npz(tmp_path / "a.npz", x=x, y=y)
    assert main(["data", "add", "mine", "a.npz", *options]) == 0, capsys.readouterr().err
    stored = readers.load("mine").x
    if pixels is None:
        assert stored.shape == (20, 5, 5, 3)
    else:
        assert sorted(map(bytes, stored)) == sorted(map(bytes, pixels))


def test_images_that_were_normalised_are_to_be_put_back(tmp_path: Path, folder: Path) -> None:
    refused(
        npz(tmp_path / "a.npz", x=X / 128 - 1, y=Y),
        r"float64 from -1 to .*: undo the normalisation",
        folder,
    )
    refused(npz(tmp_path / "a.npz", x=X / np.nan, y=Y), "float64, some of them not finite", folder)
    refused(
        npz(tmp_path / "a.npz", x=X.astype(int) + 9, y=Y), "int64 from 9 to 264, not uint8", folder
    )


def test_all_columns_and_files_that_are_wrong_are_named(tmp_path: Path, folder: Path) -> None:
    rows = ["city,age,height,label", "Paris,30,,a", "Rome,?,1.8,b"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    words = r"columns 'city' \('Paris' in line 2\), 'age' \('\?' in line 3\): text.*; column 'height' \(1 values\)"
    refused(tmp_path / "a.csv", words, folder)
    at = pictures(tmp_path / "mine")
    for name in ("00", "04", "08"):
        (at / f"class 0/{name}.png").write_bytes(b"GIF89a")
    refused(at, "class 0/00.png is missing, damaged .*; 2 more pictures cannot be read", folder)
    for place in range(3):
        (at / f"{place}.png").write_bytes(b"")
    refused(at, "'0.png' is not a picture in a folder of its class, nor are 2 more", folder)
    pictures(tmp_path / "parts/train")
    pictures(tmp_path / "parts/val")
    refused(tmp_path / "parts", "the other part is called test/", folder)


# ---------------------------------------------------------------- images of other sizes, and other mean and std


def torchvision_crops(files: list[Path], size: int, mode: str) -> np.ndarray:
    """`Resize(size)`, `CenterCrop(size)` of torchvision on Pillow's images, as models are
    evaluated.
    """
    transforms = torchvision().transforms
    chain = transforms.Compose([transforms.Resize(size), transforms.CenterCrop(size)])
    return np.stack([np.asarray(chain(Image.open(file).convert(mode))) for file in files])


@pytest.mark.parametrize(("mode", "size"), [("RGB", 4), ("RGB", 9), ("L", 5), ("RGB", 31)])
def test_size_resizes_and_crops_as_torchvision_does(mode: str, size: int, tmp_path: Path) -> None:
    files = []
    for place in range(20):
        height, width = RNG.integers(5, 40, 2)
        at = tmp_path / f"mine/class {place % 4}"
        at.mkdir(parents=True, exist_ok=True)
        pixels = RNG.integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(pixels).convert(mode).save(at / f"{place:02}.png")
        files.append(at / f"{place:02}.png")
    with pytest.raises(BadInput, match=r"images of \d+ sizes, .* are not of one size: --size \d"):
        own.add("mine", tmp_path / "mine")
    assert main(["data", "add", "mine", str(tmp_path / "mine"), "--size", str(size)]) == 0
    expected = torchvision_crops(files, size, mode)
    stored = readers.load("mine").x
    assert sorted(map(bytes, stored)) == sorted(map(bytes, expected))
    assert f"resized to {size} pixels" in registry.find("mine").note


@pytest.mark.parametrize("channels", [0, 1, 3])
def test_size_of_arrays(channels: int, tmp_path: Path) -> None:
    shape = (20, 7, 11, channels) if channels else (20, 7, 11)
    x = RNG.integers(0, 256, shape, np.uint8)
    own.add(
        "mine",
        npz(tmp_path / "a.npz", x_train=x[:12], y_train=Y[:12], x_test=x[12:], y_test=Y[12:]),
        size=5,
    )
    for place, pixels in enumerate(x.reshape(20, 7, 11, -1)):
        Image.fromarray(pixels.squeeze()).save(tmp_path / f"{place}.png")
    files = [tmp_path / f"{place}.png" for place in range(20)]
    expected = torchvision_crops(files, 5, "RGB" if channels == 3 else "L")
    assert np.array_equal(readers.load("mine").x, expected.reshape(20, 5, 5, -1))


def test_mean_and_std_are_stored_and_part_of_the_digest(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture
) -> None:
    path = str(npz(tmp_path / "a.npz", x=X, y=Y))
    assert main(["data", "add", "computed", path]) == 0
    computed = capsys.readouterr().out
    assert main(["data", "add", "given", path, "--mean", ".5,.25,0", "--std", "0.5,.1,1"]) == 0
    text = capsys.readouterr().out
    assert (
        str(folder / "given/prepared/set.toml") in text
        and "digest" in text
        and "0.5,0.25,0" in text
    )
    assert str(folder / "computed/prepared/set.toml") in computed
    entry, other = registry.find("given"), registry.find("computed")
    assert entry.mean == (0.5, 0.25, 0.0) and entry.std == (0.5, 0.1, 1.0)
    assert (
        entry.files == other.files
        and entry.digest != other.digest
        and Data("given").key != Data("computed").key
    )
    train = readers.load("computed").x[: other.train] / 255
    assert np.allclose(other.mean, train.mean((0, 1, 2)), atol=1e-6)
    read = augmentation.plain(resident(Data("given")), torch.arange(20)).permute(0, 2, 3, 1).numpy()
    assert np.allclose(read, (readers.load("given").x / 255 - entry.mean) / entry.std, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--mean .5,.5,.5", "give both"),
        ("--std .5,.5,.5", "give both"),
        ("--mean .5 --std .5", "--mean needs a value for each channel, 3, not 1; --std needs"),
        (
            "--mean .5,.5,.5 --std .5,0,.5",
            "--std takes values above 0 to 1, in units of pixel / 255",
        ),
        ("--mean .5,.5,.5 --std .5,-1,.5", "--std takes values above 0"),
        ("--mean 123,117,104 --std 58,57,57", "--mean takes values from 0 to 1, .*; --std takes"),
        ("--mean nan,.5,.5 --std .5,.5,inf", "--mean takes values from 0 to 1, .*; --std takes"),
        ("--mean .5,.5, --std .5,.5,.5", "Numbers are needed, 0.5,0.5,0.5"),
        ("--size 0", "resized to 1 to 1,024 pixels, not to 0"),
        ("--size 99999999", "resized to 1 to 1,024 pixels"),
        ("--size a", "not a valid integer"),
    ],
)
def test_options_that_do_not_fit(
    options: str, words: str, tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture
) -> None:
    path = npz(tmp_path / "a.npz", x=X, y=Y)
    assert main(["data", "add", "mine", str(path), *options.split()]) == 2
    message = capsys.readouterr().err
    assert re.search(words, message) and message.count("\n") == 1 and not folder.exists()


def test_options_of_images_are_none_of_rows(tmp_path: Path, folder: Path) -> None:
    path = npz(tmp_path / "a.npz", x=NUMBERS, y=Y)
    words = "--size is for images.*; --mean and --std are for images"
    refused(path, words, folder, size=4, mean=(0.5,), std=(0.5,))


def test_a_picture_that_would_fill_the_memory_when_resized(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "mine/a").mkdir(parents=True)
    Image.new("L", (1_000_000, 1)).save(tmp_path / "mine/a/long.png")
    pictures(tmp_path / "mine")
    refused(
        tmp_path / "mine", "1 x 1000000 pixels is too long to be resized to 224", folder, size=224
    )


# ---------------------------------------------------------------- a page on any set


def test_sizes_fit_a_set(tmp_path: Path) -> None:
    own.add(
        "odd", npz(tmp_path / "a.npz", x_train=X[:13], y_train=Y[:13], x_test=X[13:], y_test=Y[13:])
    )
    own.add("rows", npz(tmp_path / "b.npz", x=BITS, y=Y))
    fitted = registry.fitted_sizes("odd", pixels=4, pool=10, test=5)
    assert (fitted.pixels, fitted.pool, fitted.test) == (4, 10, 5)
    assert len(fitted.notes) == 1 and "from 6 x 6 to 4 x 4 pixels" in fitted.notes[0]
    assert registry.fitted_sizes("odd") == registry.Sizes(None, 12, 7, ())
    fitted = registry.fitted_sizes("odd", pixels=16, pool=600, test=600)
    assert (fitted.pixels, fitted.pool, fitted.test) == (None, 12, 7)
    assert [word for note in fitted.notes for word in re.findall("16|600|13|12|7", note)] == [
        "16",
        "12",
        "600",
        "13",
        "7",
        "600",
    ]
    assert len(registry.fitted_sizes("rows", pixels=16).notes) == 1
    with pytest.raises(BadInput, match="there is no data set"):
        registry.fitted_sizes("none")


def printed_on(notebook: Path) -> str:
    cells = json.loads(notebook.read_text())["cells"]
    printed = [str(output.get("text")) for cell in cells for output in cell.get("outputs", ())]
    return "".join([*cells[0]["source"], *printed])


@pytest.mark.notebook
@pytest.mark.parametrize(
    ("name", "arrays", "words"),
    [
        (
            "numbers",
            {"x": NUMBERS.repeat(3, 0), "y": Y.repeat(3) // 2},
            "fc of width 4, pool of 48, 6 samples a step",
        ),
        (
            "bits",
            {"x": BITS.repeat(3, 0), "y": Y.repeat(3)},
            "fc of width 4, pool of 48, 6 samples a step",
        ),
        (
            "small",
            {"x": X.repeat(3, 0), "y": Y.repeat(3)},
            "resnet10 of width 4, pool of 48, 6 samples a step",
        ),
    ],
)
def test_my_defence_takes_any_set_by_its_name(
    name: str, arrays: dict[str, np.ndarray], words: str, tmp_path: Path, own_outputs: Path
) -> None:
    """With no other parameter; its sizes are reduced, and the page tells so."""
    if name == "numbers":
        table = [",".join(map(str, row)) for row in np.c_[arrays["x"], arrays["y"].astype(int)]]
        path = tmp_path / "mine.csv"
        path.write_text(
            "\n".join(["a,b,c,d,e,label", *(line.removesuffix(".0") for line in table)])
        )
    else:
        path = npz(tmp_path / "mine.npz", **arrays)
    assert main(["data", "add", "mine", str(path)]) == 0
    assert main(["reproduce", "own/my_defence", "--profile", "smoke", "-p", "data=mine"]) == 0
    page = printed_on(own_outputs / "runs/smoke+data=mine/own/my_defence.ipynb")
    assert (
        words in page
        and "The pool has 48 samples, not 120" in page
        and "Test samples are 12, not 600" in page
    )
    assert "pool of 120" not in page and "at 8 x 8 pixels" not in page
    assert (
        "Images keep their 6 x 6 pixels" if name == "small" else "Nothing is resized to 8 pixels"
    ) in page


def test_my_defence_reads_as_the_project_writes() -> None:
    one = Notebook("own/my_defence", paths.NOTEBOOKS / "own/my_defence.py")
    assert max(map(len, one.path.read_text().splitlines())) <= 100
    assert max(len(cell.source.splitlines()) for cell in one.text.cells) <= 25


# ---------------------------------------------------------------- what changes afterwards


def test_a_changed_array_is_noticed(tmp_path: Path, folder: Path) -> None:
    own.add("mine", npz(tmp_path / "a.npz", x=X, y=Y))
    path = folder / "mine/prepared/images.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(
        BadInput, match=r"images.npy: SHA-256 is \w+, expected \w+; remove .*mine and add it again"
    ):
        readers.load("mine")
    path.unlink()
    with pytest.raises(BadInput, match=r"images.npy: SHA-256 is missing"):
        readers.load("mine")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "[" * 100_000,
        lambda text: "",
        lambda text: "\ud800",
        lambda text: text + "colour = 3\n",
        lambda text: text.replace("train = 16", 'train = "16"'),
        lambda text: text.replace("train = 16", "train = -1"),
        lambda text: text.replace('kind = "images"', 'kind = "sounds"'),
        lambda text: text.replace("shape = [6, 6, 3]", "shape = 6"),
        lambda text: text.replace("files = [[", "files = [5, ["),
        lambda text: text.replace('classes = ["0", ', 'classes = ["1", '),
        lambda text: text.replace('classes = ["0", "1", "2", "3"]', 'classes = "digits"'),
    ],
)
def test_a_changed_description(
    change: Callable[[str], str], tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture
) -> None:
    own.add("mine", npz(tmp_path / "a.npz", x=X, y=Y))
    path = folder / "mine/prepared/set.toml"
    before = path.read_text()
    path.write_text(change(before), "utf-8", "surrogatepass")
    assert path.read_bytes() != before.encode()
    with pytest.raises(
        BadInput, match=r"set.toml describes no data set \(.*\); remove .*mine and add it again"
    ) as error:
        Data("mine")
    assert "\n" not in str(error.value) and len(str(error.value)) < 600
    assert main(["data"]) == 0 and "set.toml describes no data set" in capsys.readouterr().out, (
        "the others are listed"
    )


def test_a_class_that_was_cut_off(tmp_path: Path, folder: Path) -> None:
    own.add("mine", npz(tmp_path / "a.npz", x=X, y=Y))
    path = folder / "mine/prepared/set.toml"
    path.write_text(path.read_text().replace(', "3"]', "]"))
    with pytest.raises(BadInput, match="a label is no place among its 3 classes; remove"):
        readers.load("mine")


def test_what_a_description_says_is_in_the_key(tmp_path: Path, folder: Path) -> None:
    own.add("mine", npz(tmp_path / "a.npz", x=X, y=Y))
    path, key = folder / "mine/prepared/set.toml", Data("mine").key
    path.write_text(
        path.read_text().replace("train = 16", "train = 15").replace("test = 4", "test = 5")
    )
    os.utime(path, (0, 0))
    assert Data("mine").key != key


def test_a_built_in_name_is_not_shadowed(tmp_path: Path, folder: Path) -> None:
    own.add("mine", npz(tmp_path / "a.npz", x=X, y=Y))
    (folder / "mine").rename(folder / "cifar10")
    assert (
        registry.find("cifar10") is registry.ENTRIES["cifar10"]
        and registry.names().count("cifar10") == 1
    )
    with pytest.raises(BadInput, match="prepared from other files"):
        readers.load("cifar10")


def test_notes_that_are_none(folder: Path) -> None:
    at = folder / "mnist/prepared"
    at.mkdir(parents=True)
    digest = registry.find("mnist").digest
    for note in (
        "[" * 100_000,
        "5",
        "[]",
        "{}",
        "\x00",
        json.dumps({"digest": digest, "sha256": 3}),
    ):
        (at / "meta.json").write_text(note)
        assert not readers.there("mnist")
        with pytest.raises(BadInput, match="prepared from other files"):
            readers.load("mnist")
