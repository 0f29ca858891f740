"""CINIC-10 and DBpedia-14 through small archives and folders of the true format."""

import csv
import hashlib
import io
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pooch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from leak_atlas import BadInput, typed
from leak_atlas.__main__ import main
from leak_atlas.data import readers
from leak_atlas.data.formats import dbpedia
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import File
from tests.data.test_readers import no_network, serve

NAMES = ("cinic10", "dbpedia14")
CINIC = ("airplane", "bird", "truck")
TOPICS = ("Company", "Artist", "Plant")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("LEAK_ATLAS_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def cinic() -> tuple[dict[str, bytes], np.ndarray, np.ndarray]:
    """Four images of each of three classes in each part; and the images and labels in the order to
    be found.
    """
    rng = np.random.default_rng(0)
    files, x, labels = (
        {"README.md": b"# CINIC-10", "imagenet-contributors.csv": b"synset, class"},
        [],
        [],
    )
    for part in ("train", "valid", "test"):
        for label, name in enumerate(CINIC):
            for file in ("cifar10-train-10", "cifar10-train-9", "n02690373_1008", "n02690373_37"):
                pixels = rng.integers(0, 256, (32, 32, 3), np.uint8)
                if file == "n02690373_37":
                    pixels[:] = pixels[:, :, :1]
                # One of them is kept as greyscale, as ImageNet's can be.
                files[f"{part}/{name}/{file}.png"] = png(
                    pixels[:, :, 0] if file == "n02690373_37" else pixels
                )
                x.append(pixels)
                labels.append(label)
    return files, np.stack(x), np.array(labels)


ROWS = [  # (class, title, content) as they are meant
    ("1", "E. D. Abbott Ltd", " Abbott of Farnham was a coachbuilder."),
    ("3", 'Rosa "Peace"', ' A "hybrid tea", yellow, and pink.'),
    ("2", "Café Müller 日本", " naïve — “quoted” \U0001f600"),
    ("2", "A\\B", r" C:\new\table\" and a trailing \ "),
    ("1", "Two\nlines", " first\r\nsecond"),
    ("3", "", " no title, only 'this'"),
    ("3", "Last of train", " "),
    ("1", "x", "y"),
    ("2", "1", "2"),
    ("1", "of test", " a,b,,c"),
    ("2", "of test", ' ""'),
    ("3", "of test", " \t tab"),
]
TEXTS = [
    "E. D. Abbott Ltd Abbott of Farnham was a coachbuilder.",
    'Rosa "Peace" A "hybrid tea", yellow, and pink.',
    "Café Müller 日本 naïve — “quoted” \U0001f600",
    r"A\B C:\new\table\" and a trailing \ ".strip(),
    "Two\nlines first\r\nsecond",
    "no title, only 'this'",
    "Last of train",
    "x y",
    "1 2",
    "of test a,b,,c",
    'of test ""',
    "of test tab",
]


def rows(some: list[tuple[str, str, str]]) -> bytes:
    """Rows as the set's readme has them: text in quotes, quotes inside doubled, the class bare."""
    return "".join(
        f'{n},"{t.replace(chr(34), chr(34) * 2)}","{c.replace(chr(34), chr(34) * 2)}"\n'
        for n, t, c in some
    ).encode()


class Small:
    """A small set of the true format under its true name."""

    def __init__(self, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        entry = registry.find(name)
        self.home, self.monkeypatch, self.file = folder / name, monkeypatch, entry.files[0].name
        if name == "cinic10":
            self.files, self.x, self.labels = cinic()
            self.entry = replace(entry, classes=CINIC, train=24, test=12)
        else:
            self.files = {
                "classes.txt": b"Company\nArtist\nPlant\n",
                "test.csv": rows(ROWS[9:]),
                "train.csv": rows(ROWS[:9]),
            }
            self.x, self.labels = np.array(TEXTS), np.array([int(row[0]) - 1 for row in ROWS])
            self.entry = replace(entry, classes=TOPICS, train=9, test=3)

    def pack(self, under: str = "") -> bytes:
        """The archive, at its place, in no order; its MD5 becomes the pinned one."""
        self.home.mkdir(parents=True, exist_ok=True)
        with tarfile.open(self.home / self.file, "w:gz") as packed:
            for name in reversed(self.files):
                info = tarfile.TarInfo(under + name)
                info.size = len(self.files[name])
                packed.addfile(info, io.BytesIO(self.files[name]))
        data = (self.home / self.file).read_bytes()
        self.pin(hashlib.md5(data).hexdigest())
        return data

    def unpack(self) -> None:
        for name, data in self.files.items():
            path = self.home / self.entry.folders[0] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.pin("0" * 32)

    def pin(self, md5: str) -> None:
        entry = replace(self.entry, files=(File(self.file, md5, self.entry.files[0].url),))
        self.monkeypatch.setitem(registry.ENTRIES, self.entry.name, entry)

    def check(self) -> None:
        samples = readers.load(self.entry.name)
        assert samples.train == self.entry.train and samples.labels.tolist() == self.labels.tolist()
        assert samples.x.tolist() == self.x.tolist()
        assert (
            isinstance(samples.x, np.memmap)
            if self.entry.kind == "images"
            else samples.x.dtype.kind == "T"
        )
        assert readers.there(self.entry.name)


@pytest.fixture
def small(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    return Small(request.param, folder, monkeypatch)


both = pytest.mark.parametrize("small", NAMES, indirect=True)
of_cinic = pytest.mark.parametrize("small", ["cinic10"], indirect=True)
of_dbpedia = pytest.mark.parametrize("small", ["dbpedia14"], indirect=True)


@both
@pytest.mark.parametrize("under", ["", "./", "LAYOUT/", "./LAYOUT/"])
def test_the_archive(small: Small, under: str, capsys: pytest.CaptureFixture) -> None:
    """With and without a folder in it."""
    small.pack(under.replace("LAYOUT", small.entry.folders[0]))
    assert main(["data", "get", small.entry.name]) == 0
    small.check()
    assert sorted(path.name for path in small.home.iterdir()) == sorted([small.file, "prepared"])
    assert main(["data", "get", small.entry.name]) == 0, "a second time it is only checked"
    assert capsys.readouterr().err == ""


@both
def test_the_folder(small: Small, capsys: pytest.CaptureFixture) -> None:
    small.unpack()
    assert main(["data", "get", small.entry.name]) == 0
    small.check()
    assert (
        "has no known digest: form and numbers are checked, content not" in capsys.readouterr().err
    )


@both
def test_a_download(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    data = small.pack()
    (small.home / small.file).unlink()

    serve({small.entry.files[0].url: data}, monkeypatch)
    readers.prepare(small.entry.name)
    small.check()
    assert [path.name for path in small.home.iterdir()] == ["prepared"]


@pytest.mark.parametrize("name", NAMES)
def test_no_network(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    entry = registry.find(name)
    own = f"put {entry.files[0].name} or its folder {entry.folders[0]} into {folder / name}"
    with pytest.raises(BadInput) as error:
        readers.load(name)
    assert (
        str(error.value)
        == f"{name} is not there; get it with `{typed(f'leak-atlas data get {name}')}`, or first {own}"
    )
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", no_network)
    assert main(["data", "get", name]) == 2
    said = capsys.readouterr().err.splitlines()
    assert (
        said[-1] == f"leak atlas: {name} could not be downloaded (Name or service not known); {own}"
    )
    assert not (folder / name).exists(), "nothing half-written stays"


@both
@pytest.mark.parametrize(
    "change", [lambda data: data[:-1] + b"?", lambda data: data[:200], lambda _: b"<html>"]
)
def test_another_archive(
    small: Small, change: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (small.home / small.file).write_bytes(change(small.pack()))
    monkeypatch.setattr(tarfile, "open", lambda *_: pytest.fail("opened a file that nobody knows"))
    with pytest.raises(
        BadInput, match=rf"the MD5 of {small.file} is \w{{32}}, expected \w{{32}}; remove it"
    ):
        readers.prepare(small.entry.name)
    assert [path.name for path in small.home.iterdir()] == [small.file]


def fails(small: Small, packed: bool, name: str, data: bytes | None, message: str) -> None:
    small.files.pop(name, None)
    if data is not None:
        small.files[name] = data
    small.pack() if packed else small.unpack()
    with pytest.raises(BadInput, match=message) as error:
        readers.prepare(small.entry.name)
    assert "\n" not in str(error.value) and not (small.home / "prepared").exists()
    assert not list(small.home.glob(".preparing*"))


PNG = "valid/bird/n02690373_1008.png"


@of_cinic
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    "name, data, message",
    [
        (
            PNG,
            None,
            r"has 11 valid samples, expected 12, 4 of each class \(not so in 1 classes\); get it again",
        ),
        (
            "test/boat/x.png",
            png(np.zeros((32, 32, 3), np.uint8)),
            r"has 13 test samples, expected 12, .* in 0 classes",
        ),
        (PNG, b"\x89PNG", f"{PNG} is missing, damaged or no picture"),
        (
            PNG,
            png(np.zeros((32, 32, 3), np.uint8))[:60],
            f"{PNG} is missing, damaged or no picture",
        ),
        (PNG, png(np.zeros((64, 32, 3), np.uint8)), "has 64 x 32 pixels, not 32 x 32"),
    ],
)
def test_what_is_wrong_with_pictures(
    small: Small, packed: bool, name: str, data: bytes | None, message: str
) -> None:
    fails(small, packed, name, data, message)


@of_cinic
@pytest.mark.parametrize("part, named", [("valid", "0 valid"), ("test/truck", "8 test")])
def test_missing_parts_and_classes(small: Small, part: str, named: str) -> None:
    small.files = {name: data for name, data in small.files.items() if not name.startswith(part)}
    fails(small, True, "README.md", None, f"has {named} samples, expected 12, 4 of each class")


@of_dbpedia
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    "name, data, message",
    [
        ("test.csv", None, "test.csv in .*, after row 0: missing, or not a class"),
        (
            "test.csv",
            b"",
            r"has 0 test samples, expected 3, 1 of each class \(not so in 3 classes\)",
        ),
        ("train.csv", rows(ROWS[:8]), "has 8 train samples, expected 9"),
        (
            "test.csv",
            rows([ROWS[9], ROWS[9], ROWS[10]]),
            r"has 3 test samples, .* \(not so in 2 classes\)",
        ),
        (
            "test.csv",
            rows(ROWS[9:11]) + b'4,"a","b"\n',
            r"test.csv in .*, after row 2: .* class from 1 to 3, a title",
        ),
        ("test.csv", b'0,"a","b"\n' + rows(ROWS[9:11]), "test.csv in .*, after row 0"),
        ("test.csv", rows(ROWS[9:11]) + b'3,"only a title"\n', "test.csv in .*, after row [12]"),
        ("test.csv", rows(ROWS[9:11]) + b'3,"a","b","c"\n', "test.csv in .*, after row [12]"),
        ("test.csv", rows(ROWS[9:11]) + b"\n" + rows(ROWS[11:]), "test.csv in .*, after row [12]"),
        ("test.csv", rows(ROWS[9:11]) + b'3,"caf\xe9","latin"\n', "test.csv in .*, after row "),
        (
            "test.csv",
            rows(ROWS[9:10]) + b'2,"a","not closed\n' + rows(ROWS[11:]),
            "test.csv in .*, after row [12]",
        ),
        ("test.csv", b'1,"a","' + b"x" * 200_000 + b'"\n', "test.csv in .*, after row "),
        ("test.csv", b"class,title,content\n" + rows(ROWS[9:]), "test.csv in .*, after row 0"),
    ],
)
def test_what_is_wrong_with_rows(
    small: Small, packed: bool, name: str, data: bytes | None, message: str
) -> None:
    fails(small, packed, name, data, message)


@of_dbpedia
def test_damaged_texts(small: Small) -> None:
    small.pack()
    at = readers.prepare("dbpedia14")
    assert sorted(path.name for path in at.iterdir()) == [
        "ends.npy",
        "labels.npy",
        "meta.json",
        "text.npy",
    ]
    whole, ends = np.load(at / "text.npy"), np.load(at / "ends.npy")
    torn = [
        (whole[:-1], ends),
        (whole, ends[::-1]),
        (whole, np.r_[ends[1], ends[0], ends[2:]]),
        (whole, ends + 1),
    ]
    for text, places in [*torn, (np.full_like(whole, 255), ends)]:
        np.save(at / "text.npy", text)
        np.save(at / "ends.npy", places)
        with pytest.raises(BadInput, match=r"prepared is damaged .*; remove"):
            readers.load("dbpedia14")
        with pytest.raises(BadInput, match=r"(text|ends).npy: SHA-256 is"):
            readers.prepare("dbpedia14")
    np.save(at / "text.npy", whole)
    np.save(at / "ends.npy", ends[:-1])
    with pytest.raises(BadInput, match="is damaged"):
        readers.load("dbpedia14")


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.text("\"',\\\n\r a")
        ),
        min_size=1,
    )
)
def test_texts_come_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str]]
) -> None:
    """Whatever is in quotes, through the format and through the arrays."""
    at = tmp_path_factory.mktemp("texts")
    for part in ("train", "test"):
        with (at / f"{part}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(
                (n, *text) for n in "12" for text in texts
            )
    entry = replace(
        registry.find("dbpedia14"),
        classes=("Company", "Artist"),
        train=2 * len(texts),
        test=2 * len(texts),
    )
    x = readers.blank("text", (entry.size,))
    readers.write(at, x, dbpedia(entry, at, x))
    found = readers._texts(at)
    assert np.load(at / "labels.npy").tolist() == ([0] * len(texts) + [1] * len(texts)) * 2
    assert (
        found.tolist()
        == [f"{title.strip()} {content.strip()}".strip() for title, content in texts] * 4
    )
