"""The embedded files can be made again from their sources, where these are installed."""

from pathlib import Path

import numpy as np
import pytest
from bench import make_embedded as make

from leak_atlas.data import readers

FASHION = Path("/usr/share/datasets/fashion-mnist")
WORDNET = Path("/usr/share/wordnet")


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
