"""A user's own data set: from files as people have them to `Data(name)`, and every mistake on one
line.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from bench.vision import torchvision
from PIL import Image

from leak_atlas import BadInput
from leak_atlas.__main__ import main
from leak_atlas.data import augmentation, own, readers
from leak_atlas.data.resident import resident
from leak_atlas.recipe import Data, registry

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (20, 6, 6, 3), np.uint8)
Y = np.arange(20) % 4
BITS = RNG.integers(0, 2, (20, 9))
NUMBERS = RNG.normal(3, 2, (20, 5))


def pictures(at: Path, x: np.ndarray = X, y: np.ndarray = Y, mode: str = "RGB") -> Path:
    """A folder of PNGs, a folder a class."""
    for place, (pixels, label) in enumerate(zip(x, y, strict=True)):
        (at / f"class {label}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).convert(mode).save(at / f"class {label}" / f"{place:02}.png")
    return at


def npz(at: Path, **arrays: Any) -> Path:
    np.savez_compressed(at, **arrays)
    return at


def parted(x: np.ndarray, y: np.ndarray = Y) -> dict[str, np.ndarray]:
    """Arrays whose first 12 samples are the train part."""
    return {"x_train": x[:12], "y_train": y[:12], "x_test": x[12:], "y_test": y[12:]}


@pytest.fixture
def mine(tmp_path: Path, folder: Path) -> Path:
    """The folder of a set of images that was added as `mine`."""
    own.add("mine", npz(tmp_path / "a.npz", x=X, y=Y))
    return folder / "mine"


# ---------------------------------------------------------------- what is taken


def test_a_folder_with_parts(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pictures(tmp_path / "mine/train", X[:12], Y[:12])
    pictures(tmp_path / "mine/test", X[12:], Y[12:])
    (tmp_path / "mine/train/class 0/.hidden").write_bytes(b"")
    assert main(["data", "add", "mine", str(tmp_path / "mine")]) == 0
    facts = "mine is ready: images of shape (6, 6, 3), 12 train and 8 test samples of 4 classes"
    assert facts in capsys.readouterr().out
    entry = registry.find("mine")
    samples = readers.load("mine")
    assert entry.classes == ("class 0", "class 1", "class 2", "class 3")
    assert entry.note == ""
    assert own.has_test_part(entry)
    order = [*np.argsort(Y[:12], kind="stable"), *(12 + np.argsort(Y[12:], kind="stable"))]
    assert np.array_equal(samples.x, X[order])
    assert np.array_equal(samples.labels, Y[order])


def test_a_folder_without_parts(tmp_path: Path) -> None:
    entry = own.add("grey", pictures(tmp_path / "grey", mode="L"))
    labels = readers.load("grey").labels
    assert entry.shape == (6, 6, 1)
    assert (entry.train, entry.test) == (16, 4)
    assert entry.note == "the test part is a fifth of each class, drawn by seed 0"
    assert not own.has_test_part(entry)
    assert (np.bincount(labels[:16]) == 4).all()
    assert (np.bincount(labels[16:]) == 1).all()


@pytest.mark.parametrize("kind", [bool, np.int64, float])
def test_bits_of_any_type(kind: type, tmp_path: Path) -> None:
    entry = own.add("b", npz(tmp_path / "b.npz", **parted(BITS.astype(kind))))
    samples = readers.load("b")
    assert entry.kind == "bits"
    assert samples.x.dtype == np.uint8
    assert samples.train == 12
    assert np.array_equal(samples.x, BITS)
    assert augmentation.plain(resident(Data("b")), torch.arange(2)).dtype == torch.float32


def test_numbers_are_standardised_where_they_live(tmp_path: Path) -> None:
    x = np.c_[NUMBERS, np.full(20, 7.0)]
    own.add("n", npz(tmp_path / "n.npz", **parted(x)))
    assert np.array_equal(readers.load("n").x, x.astype(np.float32))
    read = augmentation.plain(resident(Data("n")), torch.arange(20)).numpy()
    standardised = (NUMBERS - NUMBERS[:12].mean(0)) / NUMBERS[:12].std(0)
    assert np.allclose(read[:, :5], standardised, atol=1e-4)
    assert (read[:, 5] == 0).all(), "a constant stays finite"


@pytest.mark.parametrize(("column", "head"), [("label", True), ("0", False), ("-1", False)])
def test_a_csv(column: str, head: bool, tmp_path: Path) -> None:
    rows = np.c_[Y, BITS] if column == "0" else np.c_[BITS, Y]
    lines = ["a,b,c,d,e,f,g,h,i,label"] * head + [",".join(map(str, row)) for row in rows]
    (tmp_path / "c.csv").write_text("\n".join(lines))
    option = [] if head else ["--label", column]
    assert main(["data", "add", "c", str(tmp_path / "c.csv"), *option]) == 0
    samples = readers.load("c")
    assert registry.find("c").kind == "bits"
    stored = np.c_[samples.x, samples.labels].tolist()
    assert sorted(stored) == sorted(np.c_[BITS, Y].tolist())


def test_duplicates_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Of another class, and in the other part; two equal train samples of a class are no news."""
    x = X.copy()
    x[4] = x[0]
    x[5] = x[2]
    x[16] = x[1]
    path = npz(tmp_path / "a.npz", **parted(x))
    assert main(["data", "add", "mine", str(path)]) == 0
    notes = [
        "4 samples have an exact duplicate of another class",
        "2 samples have an exact duplicate in the other part, train or test",
    ]
    assert registry.find("mine").note == "; ".join(notes)
    assert notes[0] in capsys.readouterr().out


# ---------------------------------------------------------------- what is refused


def refused(path: Path, words: str, folder: Path, **options: Any) -> None:
    with pytest.raises(BadInput, match=words) as error:
        own.add("mine", path, **options)
    assert "\n" not in str(error.value)
    assert not [*folder.glob("*")], "nothing half written is left"


@pytest.mark.parametrize("name", ["cifar10", "../up", "", "a\nb"])
def test_names(name: str, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(BadInput, match="a set of your own cannot have the name"):
        own.add(name, npz(tmp_path / "a.npz", x=X, y=Y))
    assert not folder.exists()


def test_a_name_is_taken_once(mine: Path, tmp_path: Path) -> None:
    words = r"mine is there already; remove .*mine, or choose another name"
    with pytest.raises(BadInput, match=words):
        own.add("mine", tmp_path / "a.npz")
    with pytest.raises(BadInput, match="did you mean 'mine'"):
        registry.find("mime")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"a": X, "b": Y}, r"holds \['a', 'b'\]; name them x, y or"),
        ({"x": X[:, :5], "y": Y}, "images of 5 x 6 pixels; --size 5"),
        (
            {"x": X / 255, "y": Y},
            r"x is float64 .*; take \(255 \* x\).round\(\).astype\('uint8'\)$",
        ),
        ({"x": X.astype(float), "y": Y}, r"x is float64 .*; take x.astype\('uint8'\)$"),
        ({"x": X - 300.0, "y": Y}, r"x is float64 .*; images are uint8 .* \(N, D\)$"),
        ({"x": X.transpose(0, 3, 1, 2), "y": Y}, r"take x.transpose\(0, 2, 3, 1\)$"),
        ({"x": np.array(1), "y": Y}, r"x has shape \(\), so no values"),
        ({"x": BITS[:, :0], "y": Y}, r"x has shape \(20, 0\), so no values"),
        ({"x": BITS, "y": Y / 2}, "whole numbers or names"),
        ({"x": BITS, "y": Y * 0}, r"classes \('0',\); two or more are needed"),
        ({"x": BITS, "y": np.array(["a\nb", "c"] * 10)}, r"\('a\\nb', 'c'\).* printable letters"),
        (parted(BITS, np.where(np.arange(20) < 12, 0, Y)), "class '1' has no train sample: add"),
        ({"x": np.where(NUMBERS > 4, np.nan, NUMBERS), "y": Y}, "no finite numbers"),
        ({"x": np.array([[{}]] * 20), "y": Y}, "a.npz: x holds Python objects; save"),
    ],
)
def test_arrays(arrays: dict[str, np.ndarray], words: str, tmp_path: Path, folder: Path) -> None:
    refused(npz(tmp_path / "a.npz", **arrays), words, folder)


@pytest.mark.parametrize(
    ("text", "label", "words"),
    [
        ("", "label", "cannot be read"),
        (
            "a,b\n1,2\n",
            "label",
            "no column 'label'; --label names the one .*; there is: .'a', 'b'.",
        ),
        ("a,label\n1,x\n2,\n", "label", "1 samples have no label"),
        ("a,label\n" + "1,x\n,y\n" * 9, "label", "column 'a' is not all numbers"),
        (",a,label\n0,5,x\n1,5,y\n", "label", "column 'Unnamed: 0' counts the samples"),
        ("a,label\n1,.5\n2,.7\n", "label", "whole numbers or names"),
        ("a,label\n1,x\n2,y,3\n", "label", "a.csv: line 3 has 3 columns, not 2$"),
        ("a,b,c\n.1,.2,0\n.3,.4,1\n", "2", r"a.csv has a header: .* \(--label c\)$"),
        ("a,b,c\n.1,.2,x\n.3,.4,y\n", "-1", r"a.csv has a header: .* \(--label c\)$"),
        ("0,1,c\n.1,.2,0\n.3,.4,1\n", "-1", r"a.csv has a header: .* \(--label c\)$"),
        ("?,1,x\n.1,.2,x\n.3,.4,y\n", "-1", "column '0' is not all numbers"),
        ("a;b;label\n0,5;1;x\n", "label", "columns are separated by ';': save it with ','$"),
        ("1\t2\tx\n3\t4\ty\n", "-1", r"columns are separated by '.t': save it with ','$"),
    ],
)
def test_tables(text: str, label: str, words: str, tmp_path: Path, folder: Path) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode(errors="surrogateescape"))
    refused(tmp_path / "a.csv", words, folder, label=label)


FIRST = "class 0/00.png"
NO_PICTURE = "is missing, damaged or no picture"
HARM: list[tuple[Callable[[Path], object], str]] = [
    (lambda at: (at / FIRST).write_bytes(b"GIF89a"), f"00.png {NO_PICTURE} .*; remove or replace"),
    (
        lambda at: (at / "class 0/Thumbs.db").write_bytes(b"-"),
        "Thumbs.db .*; remove or replace it$",
    ),
    (lambda at: Image.new("RGB", (7, 7)).save(at / FIRST), "images of 6 x 6 and 7 x 7 pixels"),
    (lambda at: Image.new("I;16", (6, 6)).save(at / FIRST), "00.png has pixels of more than 8"),
    (lambda at: (at / "class 9").mkdir(), "the folder 'class 9' has no pictures"),
]


@pytest.mark.parametrize(("change", "words"), HARM)
def test_folders(
    change: Callable[[Path], object], words: str, tmp_path: Path, folder: Path
) -> None:
    change(pictures(tmp_path / "mine"))
    refused(tmp_path / "mine", words, folder)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (["train", "val"], "^PATH has train/ and val/: name the second one test/$"),
        (["train"], "^PATH has train/ but no test/: add test/, or give PATH/train$"),
        (["test"], "^PATH has test/ but no train/: add train/, or give PATH/test$"),
    ],
)
def test_a_folder_with_one_part(parts: list[str], words: str, tmp_path: Path, folder: Path) -> None:
    for part in parts:
        pictures(tmp_path / "mine" / part)
    refused(tmp_path / "mine", words.replace("PATH", str(tmp_path / "mine")), folder)


def test_a_folder_without_classes(tmp_path: Path, folder: Path) -> None:
    pictures(tmp_path / "mine/train")
    (tmp_path / "mine/test").mkdir()
    for path in (tmp_path / "mine/test", tmp_path / "mine/train/class 0", tmp_path / "mine"):
        refused(path, "(test|class 0) has no folders of classes: put the pictures of each", folder)


def test_a_message_names_the_path_once(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the path is a class's name."""
    monkeypatch.chdir(tmp_path)
    pictures(Path("mine/train"))
    pictures(Path("mine/test"))
    Path("mine/test/class 0").rename("mine/test/mine")
    refused(Path("mine"), "^mine: class 'mine' has no train sample: add some or leave", folder)
    Path("mine/test/mine/00.png").write_bytes(b"")
    refused(Path("mine"), "^mine/test/mine/00.png is missing, damaged or no picture", folder)


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    pictures(tmp_path / "mine")
    (tmp_path / "mine/class 0").rename(tmp_path / "mine/train")
    assert own.add("mine", tmp_path / "mine").classes[-1] == "train"


def test_a_folder_of_the_users_stays(tmp_path: Path, folder: Path) -> None:
    (folder / "mine").mkdir(parents=True)
    with pytest.raises(BadInput, match="no finite numbers"):
        own.add("mine", npz(tmp_path / "a.npz", x=NUMBERS * np.inf, y=Y))
    assert (folder / "mine").is_dir()


def test_files_that_are_none(tmp_path: Path, folder: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    for name in ("gone", "gone.npz", "gone.csv"):
        refused(tmp_path / name, f"^cannot read {tmp_path / name}: No such file", folder)
    refused(tmp_path / "pipe.npz", "^cannot read .*pipe.npz: not a file", folder)
    files = {
        "a.txt": (b"1", "a.txt: it is no folder of pictures"),
        "a.npz": (b"", "a.npz is no .npz; numpy.savez_compressed makes one$"),
        "b.npz": (b"a text", "b.npz is no .npz; numpy.savez_compressed makes one$"),
        "c.npz": (b"\x80\x04N.", "c.npz is no .npz; numpy.savez_compressed makes one$"),
        "d.npz": (
            b"PK\x03\x04torn",
            "d.npz is no .npz, or is damaged .*; numpy.savez_compressed makes one$",
        ),
    }
    for name, (data, words) in files.items():
        (tmp_path / name).write_bytes(data)
        refused(tmp_path / name, words, folder)


# ---------------------------------------------------------------- images of other sizes, and other mean and std


def torchvision_crops(files: list[Path], size: int, mode: str) -> np.ndarray:
    """`Resize(size)`, `CenterCrop(size)` of torchvision on Pillow's images, as models are
    evaluated.
    """
    transforms = torchvision().transforms
    chain = transforms.Compose([transforms.Resize(size), transforms.CenterCrop(size)])
    return np.stack([np.asarray(chain(Image.open(file).convert(mode))) for file in files])


@pytest.mark.parametrize("channels", [(), (3,)])
def test_size_of_arrays(channels: tuple[int, ...], tmp_path: Path) -> None:
    x = RNG.integers(0, 256, (20, 7, 11, *channels), np.uint8)
    own.add("mine", npz(tmp_path / "a.npz", **parted(x)), size=5)
    files = [tmp_path / f"{place}.png" for place in range(20)]
    for file, pixels in zip(files, x.reshape(20, 7, 11, -1), strict=True):
        Image.fromarray(pixels.squeeze()).save(file)
    expected = torchvision_crops(files, 5, "RGB" if channels == (3,) else "L")
    assert np.array_equal(readers.load("mine").x, expected.reshape(20, 5, 5, -1))


def test_mean_and_std_are_stored_and_part_of_the_digest(
    mine: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    options = ["--mean", ".5,.25,0", "--std", "0.5,.1,1"]
    assert main(["data", "add", "given", str(tmp_path / "a.npz"), *options]) == 0
    entry = registry.find("given")
    computed = registry.find("mine")
    assert entry.mean == (0.5, 0.25, 0.0)
    assert entry.std == (0.5, 0.1, 1.0)
    assert entry.files == computed.files
    assert entry.digest != computed.digest
    assert Data("given").key != Data("mine").key
    read = augmentation.plain(resident(Data("given")), torch.arange(20)).permute(0, 2, 3, 1).numpy()
    assert np.allclose(read, (readers.load("given").x / 255 - entry.mean) / entry.std, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--mean .5,.5,.5", "--mean also needs --std: give both or none"),
        ("--std .5,.5,.5", "--std also needs --mean: give both or none"),
        ("--mean .5 --std .5", "take one value a channel, 3 in all"),
        ("--mean 123,117,104 --std 58,57,57", "in units of pixel / 255"),
        ("--mean a,b,c --std .5,.5,.5", "Numbers are needed"),
        ("--size 0", "resized to 1 pixel or more, not to 0"),
    ],
)
def test_options_that_do_not_fit(
    options: str, words: str, tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture
) -> None:
    path = npz(tmp_path / "a.npz", x=X, y=Y)
    assert main(["data", "add", "mine", str(path), *options.split()]) == 2
    message = capsys.readouterr().err
    assert re.search(words, message)
    assert message.count("\n") == 1
    assert not folder.exists()


@pytest.mark.parametrize("options", [{"size": 4}, {"mean": (0.5,), "std": (0.5,)}])
def test_options_of_images_are_none_of_rows(
    options: dict[str, Any], tmp_path: Path, folder: Path
) -> None:
    path = npz(tmp_path / "a.npz", x=NUMBERS, y=Y)
    refused(path, "is for images|are for images", folder, **options)


# ---------------------------------------------------------------- a page on any set


@pytest.mark.notebook
def test_my_defence_takes_any_set_by_its_name(tmp_path: Path, own_outputs: Path) -> None:
    """With no other parameter; its sizes are reduced, and the page says so."""
    frame = pd.DataFrame(NUMBERS.repeat(3, 0)).assign(label=Y.repeat(3))
    frame.to_csv(tmp_path / "mine.csv", index=False)
    assert main(["data", "add", "mine", str(tmp_path / "mine.csv")]) == 0
    assert main(["reproduce", "own/my_defence", "--profile", "smoke", "-p", "data=mine"]) == 0
    notebook = own_outputs / "runs/smoke+data=mine/own/my_defence.ipynb"
    cells = json.loads(notebook.read_text())["cells"]
    page = str([output.get("text") for cell in cells for output in cell.get("outputs", ())])
    assert "fc of width 4, pool of 48, 6 samples a step" in page
    for note in ("pool: 48, not 120", "test: 12, not 600", "pixels: left out"):
        assert note in page


# ---------------------------------------------------------------- what changes afterwards


def test_a_changed_array_is_noticed(mine: Path) -> None:
    path = mine / "prepared/images.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(BadInput, match=r"images.npy: SHA-256 is .*; remove .*mine and add it"):
        readers.load("mine")
    path.unlink()
    with pytest.raises(BadInput, match=r"images.npy: SHA-256 is missing"):
        readers.load("mine")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("train", "colour = 3\ntrain"),
        ("train = 16", 'train = "16"'),
        ('classes = ["0", ', 'classes = ["1", '),
    ],
)
def test_a_changed_description(
    before: str, after: str, mine: Path, capsys: pytest.CaptureFixture
) -> None:
    path = mine / "prepared/set.toml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1), "utf-8", "surrogatepass")
    words = r"set.toml describes no data set \(.*\); remove .*mine and add it again"
    with pytest.raises(BadInput, match=words) as error:
        Data("mine")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600
    assert main(["data"]) == 0, "the others are listed"
    assert "set.toml describes no data set" in capsys.readouterr().out


def test_what_a_description_says_is_in_the_key(mine: Path) -> None:
    path = mine / "prepared/set.toml"
    key = Data("mine").key
    text = path.read_text().replace("train = 16", "train = 15").replace("test = 4", "test = 5")
    path.write_text(text)
    os.utime(path, (0, 0))
    assert Data("mine").key != key


def test_a_built_in_name_is_not_shadowed(mine: Path) -> None:
    mine.rename(mine.with_name("cifar10"))
    assert registry.find("cifar10") is registry.ENTRIES["cifar10"]
    assert registry.names().count("cifar10") == 1
    with pytest.raises(BadInput, match="prepared from other files"):
        readers.load("cifar10")
