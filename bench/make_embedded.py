"""Builds the embedded files from their sources, the same bytes every time.

    python -m bench.make_embedded --fashion DIR --wordnet DIR --list NAME

`--fashion` holds Fashion-MNIST's four idx files (plain or .gz), `--wordnet` holds WordNet 3.0's
`data.noun` and `lexnames` (or only `data.noun`). Debian's packages dataset-fashion-mnist and
wordnet-base carry both. `--list` names a set that is taken from a larger one, and is already
prepared: the file lists the digests of its samples.

Nothing is drawn at random from either source: the first so many samples of each class are taken, in
the source's order, after exact duplicates have been dropped (the first occurrence stays; a test
image that equals a train image goes). The bytes of the .npz also depend on the zlib that packs it;
its arrays do not.
"""

from __future__ import annotations

import argparse
import gzip
import io
import re
import zipfile
from pathlib import Path

import numpy as np

from leak_atlas.data.formats import idx_array, sample_digests
from leak_atlas.data.readers import EMBEDDED, load

FASHION = {"train": 600, "test": 200}  # images of each class
GLOSSES = {"train": 1200, "test": 300}  # glosses of each class

# WordNet's lexicographer files for nouns are numbered from 3 (noun.Tops); these 14 hold over 2,000
# glosses each.
LEXICOGRAPHER = {
    4: "act",
    5: "animal",
    6: "artifact",
    7: "attribute",
    8: "body",
    9: "cognition",
    10: "communication",
    13: "food",
    14: "group",
    15: "location",
    18: "person",
    20: "plant",
    26: "state",
    27: "substance",
}


def _idx(folder: Path, name: str) -> np.ndarray:
    plain = folder / name
    return idx_array(
        plain.read_bytes()
        if plain.exists()
        else gzip.decompress((folder / f"{name}.gz").read_bytes())
    )


def _first_of_each_class(labels: np.ndarray, count: int) -> np.ndarray:
    """Ascending indices of the first `count` samples of each class."""
    chosen = [np.flatnonzero(labels == label)[:count] for label in np.unique(labels)]
    if min(map(len, chosen)) < count:
        raise ValueError(f"a class has fewer than {count} samples")
    return np.sort(np.concatenate(chosen))


def fashion(folder: Path) -> dict[str, np.ndarray]:
    """`images (8000, 28, 28)` and `labels`, train then test, and `source`: each one's index in its
    original part.
    """
    parts = [
        (_idx(folder, f"{part}-images-idx3-ubyte"), _idx(folder, f"{part}-labels-idx1-ubyte"))
        for part in ("train", "t10k")
    ]
    flat = np.concatenate([images for images, _ in parts]).reshape(
        sum(len(labels) for _, labels in parts), -1
    )
    first = np.zeros(len(flat), bool)
    first[np.unique(flat, axis=0, return_index=True)[1]] = True
    chosen, start = [], 0
    for (_, labels), count in zip(parts, FASHION.values(), strict=True):
        unique = np.flatnonzero(first[start : start + len(labels)])
        chosen.append(unique[_first_of_each_class(labels[unique], count)])
        start += len(labels)
    return {
        "images": np.concatenate(
            [images[index] for (images, _), index in zip(parts, chosen, strict=True)]
        ),
        "labels": np.concatenate(
            [labels[index] for (_, labels), index in zip(parts, chosen, strict=True)]
        ),
        "source": np.concatenate(chosen).astype(np.uint16),
    }


def pack(arrays: dict[str, np.ndarray]) -> bytes:
    """An .npz whose bytes do not depend on the clock, the user or the system."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type, info.create_system, info.external_attr = (
                zipfile.ZIP_DEFLATED,
                3,
                0o644 << 16,
            )
            archive.writestr(info, member.getvalue(), compresslevel=9)
    return buffer.getvalue()


def definition(gloss: str) -> str:
    """A gloss without its quoted example sentences and their authors: what stands before the first
    one.
    """
    return re.split(r'[;:,]?\s*"', gloss, maxsplit=1)[0].strip().rstrip(";").strip()


def glosses(folder: Path) -> str:
    """Lines of `part <tab> class <tab> gloss`, train then test; within a part by the synset's
    offset in `data.noun`.
    """
    seen: set[str] = set()
    found: dict[str, list[tuple[int, str]]] = {name: [] for name in LEXICOGRAPHER.values()}
    for line in (folder / "data.noun").read_text("ascii").splitlines():
        if line.startswith("  "):  # the licence, at the head of the file
            continue
        fields, _, gloss = line.partition(" | ")
        offset, file = fields.split(" ", 2)[:2]
        name, text = LEXICOGRAPHER.get(int(file)), definition(gloss)
        identity = " ".join(text.lower().split())
        # a gloss that two files share stays with the first synset only
        if identity and identity not in seen:
            seen.add(identity)
            if name is not None and "\t" not in text:
                found[name].append((int(offset), text))
    wanted = sum(GLOSSES.values())
    lines = []
    # four fifths and one fifth: 1,200 and 300
    for part, every in (("train", (0, 1, 2, 3)), ("test", (4,))):
        rows = []
        for name, items in found.items():
            # Spread over the whole file: WordNet's neighbours are alike, so the first 1,500 would
            # be a narrow choice.
            spread = items[:: len(items) // wanted][:wanted]
            rows += [(*item, name) for i, item in enumerate(spread) if i % 5 in every]
        lines += [f"{part}\t{name}\t{text}\n" for _, text, name in sorted(rows)]
    return "".join(lines)


def make() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fashion", type=Path, help="folder with Fashion-MNIST's four idx files")
    parser.add_argument("--wordnet", type=Path, help="folder with WordNet 3.0's data.noun")
    parser.add_argument("--list", help="a prepared set that is taken from a larger one")
    options = parser.parse_args()
    if options.fashion:
        (EMBEDDED / "fashion-mnist-small.npz").write_bytes(pack(fashion(options.fashion)))
    if options.wordnet:
        (EMBEDDED / "wordnet-glosses.tsv").write_text(
            glosses(options.wordnet), "ascii", newline="\n"
        )
    if options.list:
        samples = load(options.list)
        np.save(EMBEDDED / f"{options.list}.npy", sample_digests(samples.x, samples.labels))


if __name__ == "__main__":
    make()
