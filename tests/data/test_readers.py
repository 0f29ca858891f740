"""Embedded sets as they are, exact reduction of images, and the command that lists sets."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leak_atlas import BadInput
from leak_atlas.__main__ import main
from leak_atlas.data import pictures, readers
from leak_atlas.recipe import Data, registry

# ---------------------------------------------------------------- embedded


@pytest.mark.parametrize(
    "name", [entry.name for entry in registry.ENTRIES.values() if entry.embedded]
)
def test_embedded(name: str) -> None:
    entry = registry.find(name)
    samples = readers.load(name)
    assert len(samples.labels) == entry.size
    assert samples.train == entry.train
    assert samples.x.shape == (entry.size, *entry.shape)
    assert samples.labels.dtype == np.int64
    for labels in (samples.labels[: entry.train], samples.labels[entry.train :]):
        counts = np.bincount(labels)
        assert len(counts) == len(entry.classes)
        assert counts.max() <= 1.2 * counts.min()
    with pytest.raises(ValueError, match="read-only"):
        samples.labels[0] = 1
    assert readers.load(name) is samples, "loaded once per process"


def test_a_changed_embedded_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wordnet-glosses.tsv").write_text("train\tact\tgetting something\n")
    monkeypatch.setattr(readers, "EMBEDDED", tmp_path)
    with pytest.raises(
        BadInput, match=r"the SHA256 of .*wordnet-glosses.tsv is \w+, expected \w+; reinstall"
    ):
        readers.load("wordnet-glosses")
    with pytest.raises(BadInput, match=r"fashion-mnist-small: .* cannot be read .*; reinstall"):
        readers.load("fashion-mnist-small")


# ---------------------------------------------------------------- resize


@pytest.mark.parametrize("side, pixels", [(28, 16), (28, 1), (32, 31), (28, 28), (300, 7)])
def test_area_average_is_exact(side: int, pixels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the definition, in two batches: paint each source pixel `pixels` times finer, so that
    blocks are whole.
    """
    monkeypatch.setattr(pictures, "BATCH", 1)
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


def test_load_resizes_once() -> None:
    small = readers.load("fashion-mnist-small", 14)
    assert small.x.shape == (8000, 14, 14, 1)
    assert readers.load("fashion-mnist-small", 14) is small
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


# ---------------------------------------------------------------- the command


def test_the_listing(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAK_ATLAS_DATA", "/home/someone/.cache/leak-atlas")
    assert main(["data"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in (*registry.ENTRIES, *registry.ORIGINALS))
    assert max(map(len, out.splitlines())) <= 100
    assert out.count(" yes ") == 4
    assert out.count(" no ") == 14


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
    true, permuted = (readers.labels(replace(data, permuted=each), own) for each in (False, True))
    train = data.parts[0]
    for part in (slice(train), slice(train, None)):
        np.testing.assert_array_equal(np.bincount(permuted[part]), np.bincount(true[part]))
        assert np.mean(permuted[part] == true[part]) < 0.15
    np.testing.assert_array_equal(permuted, readers.labels(replace(data, permuted=True), own))


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_wrong_labels_are_a_share_of_the_train_part_and_never_true(share: float) -> None:
    data = Data("fashion-mnist-small", 8, mislabelled=share)
    own = readers.load(data.name, data.pixels)
    wrong = np.flatnonzero(readers.labels(data, own) != own.labels)
    np.testing.assert_array_equal(wrong, readers.mislabelled(data))
    train = data.parts[0]
    assert len(wrong) == round(share * train) and wrong.max() < train
    shifts = (readers.labels(data, own) - own.labels)[wrong] % data.classes
    assert set(shifts) == set(range(1, data.classes)) or share < 0.02
