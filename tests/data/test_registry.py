"""What is known without data: consistent, pinned, and free of heavy imports."""

import hashlib
import re
import subprocess
import sys

import numpy as np
import pytest

from lib import BadInput
from lib.data import readers, registry
from lib.data.registry import ENTRIES, Entry

ALL = pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))


@ALL
def test_facts_fit_each_other(entry: Entry) -> None:
    assert entry.train > entry.test > 0 and entry.size == entry.train + entry.test
    assert len(set(entry.classes)) == len(entry.classes) >= 10
    channels = entry.shape[-1] if entry.kind == "images" else 0
    assert len(entry.mean) == len(entry.std) == channels
    assert all(0 < value < 1 for value in (*entry.mean, *entry.std))
    assert entry.title and entry.source and entry.licence
    assert len(entry.digest) == 64 and all(len(md5) == 32 for _, md5 in entry.files)
    assert entry.embedded == bool(entry.sha256) != bool(entry.files)


def test_digests_differ() -> None:
    assert len({entry.digest for entry in ENTRIES.values()}) == len(ENTRIES)


@pytest.mark.parametrize(
    "name, digest",
    [
        ("fashion-mnist-small", "e697b8acf85f9ece60b9c975bc17c87e516fc4ce2b00615cd32064e13c1ca39d"),
        ("cifar10", "84a8921534ec82c71cb5501a61781d76dad3ad025986fe9f259da0f1194dbd8f"),
        ("tinyimagenet", "ab02da95a669348a14e46a1cf78fbf67672f0bfccd005664ad460f684cc0ee29"),
        ("cinic10", "20b576edfa45809b59152ffde424bd4f8765ba5db92740376b2c98e2c7f15d77"),
        ("dbpedia14", "a5fd328d2e9d94f081cbeabc715d32af082700adfc2661c4340c20c232ae3dec"),
        ("cifar100-half", "86563fc9657590a8f6285a87d6a6291df17032ad0b915676147d5e376e7fdc65"),
        ("tinyimagenet32-half", "bed2535cd28949ace26d694cb5a3c055eed050dd0a7887da06c7b2b3ede62f5b"),
    ],
)
def test_digests_are_pinned(name: str, digest: str) -> None:
    """A digest that moved would orphan every stored result of its data set."""
    assert registry.find(name).digest == digest


@pytest.mark.parametrize("name", [entry.name for entry in ENTRIES.values() if entry.file])
def test_embedded_files_are_the_pinned_ones(name: str) -> None:
    entry = registry.find(name)
    data = (readers.EMBEDDED / entry.file).read_bytes()
    assert hashlib.sha256(data).hexdigest() == entry.sha256
    assert len(data) <= (4_000_000 if entry.kind == "images" else 2_000_000)


def test_moments_are_those_of_the_train_part() -> None:
    entry = registry.find("fashion-mnist-small")
    pixels = readers.load(entry.name).x[: entry.train] / 255
    assert np.isclose(pixels.mean(), entry.mean[0], atol=5e-5) and np.isclose(pixels.std(), entry.std[0], atol=5e-5)


def test_classes_of_tiny_imagenet() -> None:
    whole, half = registry.find("tinyimagenet"), registry.find("tinyimagenet32-half")
    assert len(whole.classes) == 200 and list(whole.classes) == sorted(whole.classes)
    assert all(re.fullmatch(r"n\d{8}", wnid) for wnid in whole.classes)
    assert (whole.classes[0], whole.classes[199]) == ("n01443537", "n12267677")  # goldfish, acorn
    assert whole.classes == half.classes and half.size * 2 == whole.size


def test_sets_that_come_as_one_archive() -> None:
    """What torchvision does not read: one pinned file, and parts that hold the same number of each class."""
    for entry in ENTRIES.values():
        if entry.url:
            assert len(entry.files) == 1 and entry.layout and re.match("https?://", entry.url)
            assert entry.train % len(entry.classes) == entry.test % len(entry.classes) == 0
    assert {entry.name for entry in ENTRIES.values() if entry.url} == {"tinyimagenet", "cinic10", "dbpedia14"}


def test_cinic_and_dbpedia() -> None:
    cinic, dbpedia = registry.find("cinic10"), registry.find("dbpedia14")
    assert cinic.classes == registry.find("cifar10").classes and cinic.shape == (32, 32, 3)
    assert (cinic.train, cinic.test) == (180_000, 90_000), "train and valid are the train part"
    assert (dbpedia.train, dbpedia.test, len(dbpedia.classes)) == (560_000, 70_000, 14)
    assert (dbpedia.classes[0], dbpedia.classes[13]) == ("Company", "WrittenWork")


@pytest.mark.parametrize("name", ["cifar100-half", "tinyimagenet32-half"])
def test_a_half_is_named_as_such(name: str) -> None:
    entry = registry.find(name)
    assert "half" in entry.title and "a class-balanced half, for development" in entry.note
    assert ("lossy" in entry.title) == ("lossy" in entry.note) == name.startswith("tiny")


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="no data set 'cifar11'; did you mean 'cifar10'"):
        registry.find("cifar11")


def test_facts_need_no_libraries() -> None:
    code = "import sys, lib.data.registry; print([m for m in ('numpy', 'torch', 'sklearn') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    code = (
        "import sys, lib.data.readers, lib.data.designs; print([m for m in ('torch', 'sklearn') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
