"""The embedded files can be made again from their sources, where these are installed."""

from pathlib import Path

import numpy as np
import pytest

from leak_atlas.data import readers
from tests.data import make_embedded as make

FASHION, WORDNET = Path("/usr/share/datasets/fashion-mnist"), Path("/usr/share/wordnet")


def test_packing_does_not_depend_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {"labels": np.arange(3)}
    first = make.pack(arrays)
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert make.pack(arrays) == first


def test_a_definition_ends_where_examples_begin() -> None:
    assert make.definition('a thing; another; "one"; "two"') == "a thing; another"
    assert make.definition("Athens (named after Athena)  ") == "Athens (named after Athena)"


def test_duplicates_and_classes(tmp_path: Path) -> None:
    """Images that equal an earlier one are passed over, in the same part and across."""
    rng = np.random.default_rng(0)
    for part, each in (("train", 610), ("t10k", 210)):
        x = rng.integers(0, 256, (10 * each, 4, 4), np.uint8)
        if part == "train":
            kept = x
            x[10] = x[0]
        else:
            x[3] = kept[5]
        for name, array in (
            ("images-idx3", x),
            ("labels-idx1", np.tile(np.arange(10, dtype=np.uint8), each)),
        ):
            head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            (tmp_path / f"{part}-{name}-ubyte").write_bytes(head + array.tobytes())
    arrays = make.fashion(tmp_path)
    assert len(np.unique(arrays["images"].reshape(8000, -1), axis=0)) == 8000
    assert np.array_equal(np.bincount(arrays["labels"]), np.full(10, 800))
    assert 10 not in arrays["source"][:6000] and 3 not in arrays["source"][6000:]
    assert np.array_equal(arrays["images"][:6000], kept[arrays["source"][:6000]])


@pytest.mark.skipif(
    not FASHION.exists(), reason=f"no {FASHION} (Debian's package dataset-fashion-mnist)"
)
def test_images_from_their_source() -> None:
    made = make.fashion(FASHION)
    with np.load(readers.EMBEDDED / "fashion-mnist-small.npz") as kept:
        assert set(kept) == set(made)
        assert all(
            np.array_equal(kept[name], made[name]) and kept[name].dtype == made[name].dtype
            for name in made
        )


@pytest.mark.skipif(not WORDNET.exists(), reason=f"no {WORDNET} (Debian's package wordnet-base)")
def test_glosses_from_their_source() -> None:
    assert make.glosses(WORDNET).encode() == (readers.EMBEDDED / "wordnet-glosses.tsv").read_bytes()


def test_licences_ship() -> None:
    assert "Zalando SE" in (readers.EMBEDDED / "LICENSE.fashion-mnist").read_text("utf-8")
    wordnet = " ".join((readers.EMBEDDED / "LICENSE.wordnet").read_text("ascii").split())
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in wordnet
    assert wordnet.endswith("LICENSEE agrees to preserve same.")
