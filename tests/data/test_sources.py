"""Sets from files of the true formats: in the user's folder, in archives, downloaded; and damage."""

import errno
import gzip
import hashlib
import io
import json
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pooch
import pytest
from bench.vision import torchvision

from leak_atlas import BadInput
from leak_atlas.__main__ import main
from leak_atlas.data import formats, own, readers
from leak_atlas.data.formats import ANNOTATIONS
from leak_atlas.recipe import registry
from tests.data.small import ROWS, SOURCES, WNIDS, Small, encoded, rows, serve

ARCHIVES = ("cifar10", "cifar100", "cinic10", "dbpedia14", "tinyimagenet", "chmnist")
OF_TORCHVISION = ("fashion-mnist", "mnist", "cifar10", "cifar100", "svhn")
BROUGHT = ("location30", "tinyimagenet32-half")
FETCHED = tuple(name for name in SOURCES if name not in BROUGHT)


def sets(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("small", names, indirect=True)


# ---------------------------------------------------------------- where files lie


@sets(*SOURCES)
def test_files_in_the_users_folder(small: Small, capsys: pytest.CaptureFixture) -> None:
    small.unpack()
    assert not readers.there(small.name)
    assert main(["data", "get", small.name]) == 0
    small.check()
    assert ("has no known digest" in capsys.readouterr().err) == small.alone
    at = small.home / "prepared"
    note = json.loads((at / "meta.json").read_text())
    assert note["digest"] == small.entry.digest
    for file, digest in note["sha256"].items():
        assert hashlib.sha256((at / file).read_bytes()).hexdigest() == digest
    assert readers.prepare(small.name) == at, "a second time it is only checked"


@pytest.mark.parametrize(
    ("small", "under"),
    [
        *((name, None) for name in ARCHIVES),
        *((name, under) for name in ("cinic10", "dbpedia14") for under in ("", "./")),
    ],
    indirect=["small"],
)
def test_the_archive(small: Small, under: str | None, capsys: pytest.CaptureFixture) -> None:
    """With and without a folder in it."""
    small.pack(under)
    assert main(["data", "get", small.name]) == 0
    small.check()
    left = {path.name for path in small.home.iterdir()}
    assert left == {small.archive.name, "prepared"}
    assert capsys.readouterr().err == ""


@sets("fashion-mnist")
@pytest.mark.parametrize("below", ["FashionMNIST/raw", "raw", ".", "elsewhere"])
@pytest.mark.parametrize("packed", [True, False])
def test_idx_files_lie_in_any_of_their_folders(
    small: Small, below: str, packed: bool, tmp_path: Path
) -> None:
    """Elsewhere: as Debian's package has them."""
    place = str(tmp_path / "debian") if below == "elsewhere" else below
    small.put(folders=(place, *small.entry.folders))
    small.unpack(gzip.compress if packed else bytes, ".gz" if packed else "")
    readers.prepare(small.name)
    small.check()


@sets(*FETCHED)
def test_a_download(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = small.served()
    requests = serve(contents, monkeypatch)
    assert main(["data", "get", small.name]) == 0
    small.check()
    assert set(requests) == set(contents)
    assert [path.name for path in small.home.iterdir()] == ["prepared"]


@sets("svhn")
def test_a_download_with_another_digest(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = serve(dict.fromkeys(small.served(), b"<html>not here</html>"), monkeypatch)
    with pytest.raises(BadInput, match=r"could not be downloaded \(MD5 hash .*; put train_32x32"):
        readers.prepare("svhn")
    assert len(requests) == 3, "tried again twice"
    assert not [*small.home.iterdir()]


@sets("svhn")
def test_an_interrupted_download(
    small: Small, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    small.served()

    def download(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", download)
    assert main(["data", "get", "svhn"]) == 130
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == ("leak atlas: the download was interrupted; the same command starts it anew")
    assert not [*small.home.iterdir()], "nothing is left of the attempt"


@sets(*SOURCES)
def test_a_missing_set_says_how_to_get_it(
    small: Small, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(BadInput, match=f"{small.name} is not there; ") as error:
        readers.load(small.name)
    assert f"leak-atlas data get {small.name}" in str(error.value)
    assert str(small.home) in str(error.value)
    assert "\n" not in str(error.value)
    serve({}, monkeypatch)
    assert main(["data", "get", small.name]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"into {small.home}" in line
    assert ("Name or service not known" in line) == (small.name in FETCHED)
    assert not [*small.home.iterdir()], "nothing half-written stays"


@sets(*OF_TORCHVISION)
def test_torchvision_reads_the_same(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    small.unpack()
    readers.prepare(small.name)
    datasets = torchvision().datasets
    kinds = ("FashionMNIST", "MNIST", "CIFAR10", "CIFAR100", "SVHN")
    kind = getattr(datasets, dict(zip(OF_TORCHVISION, kinds, strict=True))[small.name])
    pinned = {file.name: [file.name, file.digest] for file in small.entry.files}
    of_svhn = small.name == "svhn"
    of_cifar = small.name.startswith("cifar")
    if of_svhn:
        listed = {part: ["", *pinned[f"{part}_32x32.mat"]] for part in ("train", "test")}
        monkeypatch.setattr(kind, "split_list", listed)
    elif of_cifar:
        *train, test, names = pinned.values()
        monkeypatch.setattr(kind, "train_list", train)
        monkeypatch.setattr(kind, "test_list", [test])
        meta = kind.meta | {"filename": names[0], "md5": names[1]}
        monkeypatch.setattr(kind, "meta", meta)
    sides = ("train", "test") if of_svhn else (True, False)
    parts = [kind(small.home, side, download=False) for side in sides]
    x = np.concatenate([np.asarray(part.data) for part in parts])
    x = x.transpose(0, 2, 3, 1) if of_svhn else x.reshape(small.source.x.shape)
    labels = [np.asarray(part.labels if of_svhn else part.targets) for part in parts]
    assert np.array_equal(readers.load(small.name).x, x)
    assert np.array_equal(readers.load(small.name).labels, np.concatenate(labels))


# ---------------------------------------------------------------- harm


@sets("cifar10", "cinic10", "tinyimagenet")
@pytest.mark.parametrize("change", [lambda data: data[:-1] + b"?", lambda data: data[:200]])
def test_another_archive_is_never_opened(
    small: Small, change: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    small.archive.write_bytes(change(small.pack()))
    for module, opens in ((tarfile, "open"), (zipfile, "ZipFile")):
        monkeypatch.setattr(module, opens, lambda *_: pytest.fail("opened an unknown file"))
    with pytest.raises(BadInput, match=rf"the MD5 of {small.archive} is .*; remove it"):
        readers.prepare(small.name)
    assert [path.name for path in small.home.iterdir()] == [small.archive.name]


@sets("mnist", "cifar10")
def test_another_file_is_named_and_never_read(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.unpack(lambda data: data[:-1] + b"?")
    monkeypatch.setattr(pickle, "loads", lambda *_, **__: pytest.fail("an unknown pickle"))
    first, expected, _ = small.entry.files[0]
    with pytest.raises(BadInput, match=rf"the MD5 of .*/{first} is \w{{32}}, expected {expected}"):
        readers.prepare(small.name)
    assert not (small.home / "prepared").exists()


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


BLACK = np.zeros((64, 32, 3), np.uint8)
PNG = "valid/bird/n02690373_1008.png"
JPEG = f"train/{WNIDS[1]}/images/{WNIDS[1]}_5.JPEG"
NO_PICTURE = "is missing, damaged or no picture"
FEWER = "has .* samples, not"
HARM = [  # (set, file, what it becomes (None: it is missing), what the refusal says)
    ("cinic10", PNG, None, FEWER),
    ("cinic10", "test/boat/x.png", encoded(BLACK, "PNG"), "cannot be read .'boat'"),
    ("cinic10", PNG, encoded(BLACK[:32], "PNG")[:60], f"{PNG} {NO_PICTURE}"),
    ("cinic10", PNG, encoded(BLACK, "PNG"), "has 64 x 32 pixels, not 32 x 32"),
    ("tinyimagenet", ANNOTATIONS, b"val_0.JPEG\n", "cannot be read"),
    ("tinyimagenet", JPEG, None, FEWER),
    ("dbpedia14", "test.csv", None, "cannot be read .*test.csv"),
    ("dbpedia14", "train.csv", rows(ROWS[:8]), FEWER),
    ("location30", "bangkok", b"1,0,1\n2,1,0\n", "the MD5 of .*/bangkok is"),
    ("tinyimagenet32-half", "x_test.npy", npy(BLACK / 255), "cannot be read .*float64"),
]


@pytest.mark.parametrize(
    ("small", "name", "data", "words"),
    HARM,
    ids=[f"{harm[0]}-{number}" for number, harm in enumerate(HARM)],
    indirect=["small"],
)
def test_a_harmful_file_is_named(small: Small, name: str, data: bytes | None, words: str) -> None:
    small.files.pop(name, None)
    if data is not None:
        small.files[name] = data
    small.unpack()
    with pytest.raises(BadInput, match=words) as error:
        readers.prepare(small.name)
    assert "\n" not in str(error.value)
    assert not (small.home / "prepared").exists()
    assert not list(small.home.glob(".preparing*"))


@sets("mnist")
def test_a_full_disk(
    small: Small, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    small.unpack()
    assert main(["data", "get", "mnist"]) == 2
    assert "No space left on device); free space there" in capsys.readouterr().err
    assert not readers.there("mnist")


@sets("mnist")
def test_damage_after_preparation(small: Small) -> None:
    small.unpack()
    at = readers.prepare("mnist")
    whole = (at / "images.npy").read_bytes()
    (at / "images.npy").write_bytes(whole[:-1] + b"?")  # a changed byte: found by `get`
    with pytest.raises(BadInput, match=r"images.npy: SHA-256 is \w+, expected \w+; remove"):
        readers.prepare("mnist")
    (at / "images.npy").write_bytes(whole[:-1000])  # a torn file: found by `load`
    with pytest.raises(BadInput, match="prepared cannot be read"):
        readers.load("mnist")
    note = json.loads((at / "meta.json").read_text())
    (at / "meta.json").write_text(json.dumps(note | {"digest": "0" * 64}))
    assert not readers.there("mnist")
    with pytest.raises(BadInput, match="prepared from other files"):
        readers.load("mnist")


# ---------------------------------------------------------------- values


@sets("location30")
@pytest.mark.parametrize("quoted", [False, True])
def test_location_is_one_set_whatever_its_order(small: Small, quoted: bool) -> None:
    lines = small.files["bangkok"].decode().splitlines()
    turned = [*lines[7:], *lines[:7]]
    if quoted:
        turned = ['"' + line.replace(",", '",', 1) for line in turned]
    small.files["bangkok"] = "\n".join(turned).encode()
    small.unpack()
    readers.prepare("location30")
    small.check()


@sets("tinyimagenet32-half")
@pytest.mark.parametrize("kind", [np.uint8, ">i8"])
def test_values_are_pinned_not_how_a_file_stores_them(small: Small, kind: Any) -> None:
    small.files["x_train.npy"] = npy(small.source.x[:100].reshape(100, -1))
    small.files["y_train.npy"] = npy(small.source.labels[:100].astype(kind))
    small.unpack()
    readers.prepare(small.name)
    small.check()


# ---------------------------------------------------------------- a part of another set


HALF = "cifar100-half"
TURNED = np.random.default_rng(1).permutation(100)[:50]  # of the whole's train part, in this order
CHOSEN = np.concatenate([TURNED, [100, 103]])


@pytest.fixture
def half(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """The small whole set, of which `HALF` has the samples `CHOSEN`."""
    x, labels = small.source.x, small.source.labels
    pinned = []
    for name, values in {
        "x_train.npy": x[CHOSEN[:50]],
        "y_train.npy": labels[CHOSEN[:50]],
        "x_test.npy": x[CHOSEN[50:]],
        "y_test.npy": labels[CHOSEN[50:]],
    }.items():
        pinned.append(registry.File(name, hashlib.md5(values.tobytes()).hexdigest()))
    entry = replace(registry.find(HALF), files=tuple(pinned), train=50, test=2)
    monkeypatch.setitem(registry.ENTRIES, HALF, entry)
    embedded = tmp_path / "embedded"
    embedded.mkdir()
    monkeypatch.setattr(readers, "EMBEDDED", embedded)
    np.save(embedded / f"{HALF}.npy", formats.sample_digests(x[CHOSEN], labels[CHOSEN]))
    return small


@sets("cifar100")
def test_a_part_is_made_of_the_whole(half: Small) -> None:
    """The whole is in the user's folder, and prepared too."""
    half.unpack()
    assert main(["data", "get", HALF]) == 0
    half.check()
    samples = readers.load(HALF)
    assert np.array_equal(samples.x, half.source.x[CHOSEN])
    assert np.array_equal(samples.labels, half.source.labels[CHOSEN])
    assert samples.train == 50
    assert [path.name for path in registry.folder(HALF).parent.iterdir()] == ["prepared"]


@sets("cifar100")
def test_a_part_fetches_the_whole(half: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = half.served()
    requests = serve(contents, monkeypatch)
    with pytest.raises(BadInput, match=f"{HALF} is not there; get it with .* data get {HALF}`, or"):
        readers.load(HALF)
    readers.prepare(HALF)
    readers.load(HALF)
    assert requests == [*contents]


@sets("cifar100")
def test_a_part_without_its_whole(half: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    serve({}, monkeypatch)
    with pytest.raises(
        BadInput, match=f"cifar100 could not be .*; put cifar-100.* into {half.home}"
    ):
        readers.prepare(HALF)
    assert not [*registry.folder(HALF).parent.iterdir()]


@sets("cifar100")
@pytest.mark.parametrize("damage", ["another sample", "another order", "no list"])
def test_a_damaged_list_of_a_part(half: Small, damage: str) -> None:
    half.unpack()
    path = readers.EMBEDDED / f"{HALF}.npy"
    listed = np.load(path)
    if damage == "another sample":
        np.save(path, np.append(listed[1:], np.uint64(1)))
    elif damage == "another order":
        np.save(path, listed[::-1])
    else:
        path.unlink()
    with pytest.raises(BadInput, match="; reinstall the package"):
        readers.prepare(HALF)
    assert not readers.there(HALF)


def test_images_with_two_labels_are_two_samples() -> None:
    x = np.zeros((3, 4, 4, 3), np.uint8)
    first, second, third = formats.sample_digests(x, np.array([0, 1, 0]))
    assert first == third != second


def test_the_list_of_the_half() -> None:
    listed = np.load(readers.EMBEDDED / f"{HALF}.npy")
    assert listed.shape == (registry.find(HALF).size,)
    assert len(np.unique(listed)) == len(listed) - 2, "two images are there twice with one label"


# ---------------------------------------------------------------- Shokri's sets, which a user adds


BITS = np.random.default_rng(0).integers(0, 2, (30, 8))
CLASSES = 1 + np.arange(30) % 3


def table(*columns: np.ndarray) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in np.column_stack(columns).tolist())


@pytest.fixture(params=["purchase100", "texas100"])
def original(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Path]:
    """A small one of that name, where its user unpacked it."""
    name = request.param
    path = tmp_path / "unpacked"
    known = registry.ORIGINALS[name]._replace(bits=8, classes=3, size=30)
    monkeypatch.setitem(registry.ORIGINALS, name, known)
    if name == "purchase100":
        path.write_text(table(CLASSES, BITS))
    else:
        path.mkdir()
        (path / "feats").write_text(table(BITS))
        (path / "labels").write_text(table(CLASSES))
    return name, path


def test_an_original_is_added_as_it_is(original: tuple[str, Path]) -> None:
    name, path = original
    with pytest.raises(BadInput, match=f"{name} is not there; unpack dataset_"):
        readers.load(name)
    assert main(["data", "add", name, str(path)]) == 0
    samples = readers.load(name)
    stored = np.c_[samples.labels + 1, samples.x].tolist()
    assert sorted(stored) == sorted(np.c_[CLASSES, BITS].tolist())
    assert samples.train == 24
    assert registry.find(name).own
    assert name in registry.names()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            table(CLASSES[:29], BITS[:29]),
            "30 samples of 8 bits in 3 classes; these files do not",
        ),
        (table(CLASSES, 2 * BITS), "30 samples of 8 bits in 3 classes; these"),
        ("", "cannot be read"),
    ],
)
def test_another_set_cannot_have_an_originals_name(
    original: tuple[str, Path], tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "other").write_text(text)
    with pytest.raises(BadInput, match=words):
        own.add(original[0], tmp_path / "other")
