"""What is known without data: consistent, pinned, and free of heavy imports."""

import hashlib

import numpy as np
import pytest

from leak_atlas import BadInput
from leak_atlas.data import readers
from leak_atlas.recipe import Data, registry
from leak_atlas.recipe.registry import ENTRIES, Entry

ALL = pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))


@ALL
def test_facts_fit_each_other(entry: Entry) -> None:
    assert entry.train > entry.test > 0
    assert len(entry.classes) >= 8
    assert all(0 < value < 1 for value in (*entry.mean, *entry.std))
    assert entry.title
    assert entry.source
    assert entry.licence
    assert len(entry.digest) == 64
    assert {len(file.digest) for file in entry.files} == {64 if entry.embedded else 32}
    assert all(len(file.digest) == 32 and file.url.startswith("http") for file in entry.downloads)
    assert entry.embedded or entry.part_of or entry.folders


@pytest.mark.parametrize(
    "name, digest",
    [
        ("fashion-mnist-small", "e697b8acf85f9ece60b9c975bc17c87e516fc4ce2b00615cd32064e13c1ca39d"),
        ("cifar10", "84a8921534ec82c71cb5501a61781d76dad3ad025986fe9f259da0f1194dbd8f"),
        ("tinyimagenet", "ab02da95a669348a14e46a1cf78fbf67672f0bfccd005664ad460f684cc0ee29"),
        ("cinic10", "20b576edfa45809b59152ffde424bd4f8765ba5db92740376b2c98e2c7f15d77"),
        ("dbpedia14", "a5fd328d2e9d94f081cbeabc715d32af082700adfc2661c4340c20c232ae3dec"),
        ("location30", "f6f15cf460f42861bfd7a8c27a575b30686714d31e1338a7821f7d0adf7a7a12"),
    ],
)
def test_digests_are_pinned(name: str, digest: str) -> None:
    """A digest that moved would orphan every stored result of its data set."""
    assert registry.find(name).digest == digest


def test_what_networks_read_of_a_set_is_pinned() -> None:
    """Shape, classes and moments are in no key: where one of them is corrected, `Data` needs a new
    revision.
    """
    facts = [
        (e.name, e.kind, e.shape, e.classes, e.mean, e.std) for _, e in sorted(ENTRIES.items())
    ]
    assert hashlib.sha256(repr(facts).encode()).hexdigest()[:16] == "7b56fc79ed76039c"


EMBEDDED = [e.name for e in ENTRIES.values() if e.embedded and e.format != "digits"]


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_files_are_the_pinned_ones(name: str) -> None:
    entry = registry.find(name)
    (file,) = entry.files
    data = (readers.EMBEDDED / file.name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == file.digest == entry.digest


@pytest.mark.parametrize("name", ["digits", "fashion-mnist-small"])
def test_moments_are_those_of_the_train_part(name: str) -> None:
    entry = registry.find(name)
    pixels = readers.load(entry.name).x[: entry.train] / 255
    found = pixels.mean(), pixels.std()
    np.testing.assert_allclose(found, (entry.mean[0], entry.std[0]), atol=5e-5)


def test_originals_are_named_until_they_are_added() -> None:
    assert registry.ORIGINALS.keys() == {"purchase100", "texas100"}
    assert not registry.ORIGINALS.keys() & ENTRIES.keys()
    with pytest.raises(BadInput, match=r"run `.*leak.atlas data add purchase100 dataset_purchase`"):
        Data("purchase100")


def test_sets_of_the_papers_have_their_sizes() -> None:
    location = registry.find("location30")
    cinic = registry.find("cinic10")
    assert (location.size, location.shape, len(location.classes)) == (5_010, (446,), 30)
    assert Data("location30", joined=True).parts == (5_010, 0)
    assert (cinic.train, cinic.test) == (180_000, 90_000), "train and valid are the train part"


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="no data set 'cifar11'; did you mean 'cifar10'"):
        registry.find("cifar11")
