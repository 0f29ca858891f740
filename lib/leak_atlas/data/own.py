"""A user's own data set: a folder of pictures, an .npz or a .csv becomes prepared arrays and their
description.
"""

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from leak_atlas import BadInput, reason
from leak_atlas.data import faults, formats, pictures, readers, sources
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import Entry, File, Kind

__all__ = ["add"]

LIMIT = 2**35  # bytes that an .npz unpacks to
LARGEST = 1024  # pixels of the side that images are resized to
BATCH = 1024  # images whose pixels are measured at once


# Values (N, ...), or (N,) of picture files; (N,) classes, as numbers or names; the first samples
# that are the train part, None if that is to be drawn.
_Found = tuple[np.ndarray, np.ndarray, int | None]
_Moments = tuple[tuple[float, ...], tuple[float, ...]]  # mean and deviation, a value a channel


class _Form(NamedTuple):
    """What samples are, the shape of one as it is stored, and all that keeps them from being
    stored.
    """

    kind: Kind
    shape: tuple[int, ...]
    faults: list[str]


@np.errstate(over="ignore")  # a number that is too large becomes infinite, and is refused
def add(
    name: str,
    path: Path,
    label: str = "label",
    seed: int = 0,
    size: int | None = None,
    mean: Sequence[float] = (),
    std: Sequence[float] = (),
) -> Entry:
    """Prepares the user's own set `name` from `path`, so that `Data(name)` finds it; returns its
    entry.

    `path` is one of

    - a folder with a folder of pictures for each class, or with `train` and `test` that hold such
      folders;
    - an .npz with `x` and `y`, or with `x_train`, `y_train`, `x_test` and `y_test`: images uint8
      (N, H, H) or
      (N, H, H, C) of 1 or 3 channels, or (N, D) bits or numbers; labels (N,) are whole numbers or
      names;
    - a .csv of bits or numbers, a sample a line, in which the column `label` has the classes; a
      whole number is the
      column's place, from 0, in a file without a header (-1 is the last);
    - under the name of one of `registry.ORIGINALS`, its file or folder as it is in the archive.

    Where no test part is given, a fifth of each class, drawn by `seed`, becomes it. Images of any
    form are taken where `size` is given: the shorter side is resized to so many pixels, and the
    middle is cropped (`pictures.cropped`). `mean` and `std`, one value a channel in units of pixel
    / 255, normalise the images; without them they are computed of the train part. BadInput where
    any of it fails; it names all faults that can be found in one look.
    """
    at = registry.folder(name)
    if name in registry.ENTRIES or not registry.NAME.fullmatch(name):
        why = (
            "a set of this name comes with the library"
            if name in registry.ENTRIES
            else "use a-z, 0-9, '.', '_', '-'"
        )
        raise BadInput(f"a set of your own cannot have the name {name!r}: {why}; choose another")
    if at.exists():
        raise BadInput(f"{name} is there already; remove {at.parent}, or choose another name")
    if seed < 0:
        raise BadInput(f"a seed cannot be {seed}; give 0 or more")
    if size is not None and not 1 <= size <= LARGEST:
        raise BadInput(f"images can be resized to 1 to {LARGEST:,} pixels, not to {size:,}")
    original = registry.ORIGINALS.get(name)
    x, y, train = _read(path, label, original is not None)
    kind, shape, wrong = _form(x, size)
    wrong += faults.labels(y, len(x))
    wrong += faults.moments(shape[2] if kind == "images" else 0, mean, std)
    if wrong:
        raise BadInput(f"{path}: {'; '.join(wrong)}")
    classes, labels = _classes(path, y)
    notes = []
    if train is None:
        order, train = _drawn(path, labels, seed)
        x, labels = x[order], labels[order]
        notes.append(f"the test part is a fifth of each class, drawn by seed {seed}")
    missing = np.bincount(labels[:train], minlength=len(classes)).argmin()
    if missing not in labels[:train]:
        raise BadInput(
            f"{path}: class '{classes[missing]}' has no train sample; add some or leave it out"
        )
    if original and (kind, shape, len(classes), len(x)) != (
        "bits",
        (original.bits,),
        original.classes,
        original.size,
    ):
        raise BadInput(
            f"{path}: {len(x):,} samples of {shape} {kind} in {len(classes)} classes, but {name} has "
            f"{original.size:,} of {original.bits:,} bits in {original.classes}: take {original.archive}"
        )
    if size is not None:
        notes.append(f"the shorter side is resized to {size} pixels, and the middle is cropped")
    if mean:
        notes.append("mean and std are yours")
    with readers.preparing(at) as ready:
        out = readers.blank(kind, (len(x), *shape), ready)
        _fill(out, x, size)
        if not np.isfinite(out).all():
            raise BadInput(
                f"{path} holds values that are no finite numbers of 32 bits; fill them or leave them out"
            )
        pair: _Moments = (tuple(mean), tuple(std))
        if kind == "images" and not mean:
            pair = _moments(out[:train])
        files = tuple(File(*each) for each in readers.write(ready, out, labels).items())
        facts = (
            name,
            name,
            kind,
            shape,
            classes,
            train,
            len(x) - train,
            "own",
            files,
            "your own",
            "",
            *pair,
        )
        _describe(ready, Entry(*facts, note="; ".join(notes)))
    return registry.find(name)


def _classes(path: Path, y: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """The names of the classes in order, and each sample's place among them, `(N,)`."""
    found, labels = np.unique(y, return_inverse=True)
    classes = tuple(map(str, found))
    if len(classes) < 2 or not "".join(classes).isprintable():
        raise BadInput(
            f"{path}: classes {classes[:3]!a}; two or more are needed, named in printable letters"
        )
    return classes, labels


def _drawn(path: Path, labels: np.ndarray, seed: int) -> tuple[np.ndarray, int]:
    """An order of the samples `(N,)` in which a fifth of each class comes last, and how many come
    before.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    test = formats.places(labels[order]) % 5 == 4
    if not test.any():
        why = f"a fifth of each class becomes the test part, and no class has 5 of the {len(labels)} samples"
        raise BadInput(f"{path}: {why}; give more samples, or a test part of your own")
    return order[np.argsort(test, kind="stable")], int((~test).sum())


def _describe(ready: Path, entry: Entry) -> None:
    """Writes what is known of the set beside its arrays. JSON's texts, numbers and lists are TOML's
    too.
    """
    facts = {field: value for field, value in asdict(entry).items() if field != "name"}
    text = "".join(
        f"{field} = {json.dumps(value, ensure_ascii=False)}\n" for field, value in facts.items()
    )
    (ready / registry.DESCRIPTION).write_text(text, "utf-8")


def _form(x: np.ndarray, size: int | None) -> _Form:
    """What the samples `x` are."""
    if x.ndim == 2 and x.dtype.kind in "biuf":
        wrong = ["--size is for images, and these are rows of numbers"] if size else []
        return _Form("bits" if ((x == 0) | (x == 1)).all() else "numbers", x.shape[1:], wrong)
    of_images = faults.of_pictures if x.dtype == object else faults.of_arrays
    sizes, channels, wrong = of_images(x)
    if size is None and sizes:
        wrong += faults.of_sizes(sizes)
    side = (size, size) if size else sizes[0] if sizes else (0, 0)
    return _Form("images", (*side, channels), wrong)


def _fill(out: np.ndarray, x: np.ndarray, size: int | None) -> None:
    """Writes the samples `x` into `out (N, ...)`; images at that `size`, where there is one."""
    if size is not None:
        pictures.fill_cropped(out, x)
    elif x.dtype == object:
        pictures.fill(out, x)
    else:
        out[:] = x.reshape(out.shape)


def _moments(x: np.ndarray) -> _Moments:
    """Mean and deviation of each channel of images (N, H, W, C) uint8, of pixel values in [0, 1]."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    for start in range(0, len(x), BATCH):
        scaler.partial_fit(x[start : start + BATCH].reshape(-1, x.shape[3]))
    mean, std = (
        tuple(map(float, (values / 255).round(6)))
        for values in (scaler.mean_, np.sqrt(scaler.var_))
    )
    return mean, std


def _read(path: Path, label: str, original: bool) -> _Found:
    try:
        if original:
            return *formats.shokri(path), None
        if path.is_dir():
            return _folder(path)
        if path.suffix == ".npz" and path.is_file():
            return _npz(path)
        if path.suffix == ".csv" and path.is_file():
            return _csv(path, label)
    except BadInput:
        raise
    except (
        OSError,
        ValueError,
        TypeError,
        EOFError,
        MemoryError,
        zipfile.BadZipFile,
        NotImplementedError,
    ) as error:
        remedy = (
            "; write objects as text or numbers: a.astype(str)"
            if "allow_pickle" in str(error)
            else ""
        )
        raise BadInput(f"{path} cannot be read ({reason(error)}){remedy}") from error
    raise BadInput(
        f"{path} is no folder of pictures, .npz or .csv{'' if path.exists() else ': nothing is there'}"
    )


def _folder(path: Path) -> _Found:
    parts = [part for part in ("train", "test") if (path / part).is_dir()]
    split = len(parts) == 2
    rows = [(file.relative_to(path).parts, file) for file in sources.inside(path)]
    rows = [row for row in rows if not any(name.startswith(".") for name in row[0])]
    rows.sort(key=lambda row: split and row[0][0] == "test")
    strange = []
    for names, _file in rows:
        if (
            len(names) != 2 + split
            or (split and names[0] not in parts)
            or not "".join(names).isprintable()
        ):
            strange.append("/".join(names))
    if strange:
        more = f", nor are {len(strange) - 1} more" if strange[1:] else ""
        beside = "; beside train/ the other part is called test/" if parts == ["train"] else ""
        raise BadInput(
            f"{path}: {strange[0]!a} is not a picture in a folder of its class{more}{beside}"
        )
    filled = {file.parent for _, file in rows}
    for place in path.glob("*/*/" if split else "*/"):
        if not place.name.startswith(".") and place not in filled:
            raise BadInput(f"{path}: the folder {place.name!a} has no pictures; fill or remove it")
    y = np.array([names[-2] for names, _ in rows], str)
    train = sum(names[0] == "train" for names, _ in rows) if split else None
    return np.array([file for _, file in rows], object), y, train


def _npz(path: Path) -> _Found:
    with zipfile.ZipFile(path) as packed:
        size = sum(file.file_size for file in packed.infolist())
    if size > LIMIT:
        raise BadInput(f"{path} unpacks to {size:,} bytes; {LIMIT:,} are the most")
    with np.load(path, allow_pickle=False) as arrays:
        if {"x", "y"} <= set(arrays):
            return arrays["x"], arrays["y"], None
        if {"x_train", "y_train", "x_test", "y_test"} <= set(arrays):
            return _joined(path, arrays)
        remedy = "name them x, y or x_train, y_train, x_test, y_test, as numpy.savez(path, x=..., y=...) does"
        raise BadInput(f"{path} holds {[*arrays]}; {remedy}")


def _joined(path: Path, arrays: Mapping[str, np.ndarray]) -> _Found:
    """Train and test part of an .npz as one."""
    wrong = []
    for part in ("train", "test"):
        if arrays[f"x_{part}"].shape[:1] != arrays[f"y_{part}"].shape[:1]:
            wrong.append(f"x_{part} and y_{part} are not of one length")
    for one in "xy":
        train, test = (arrays[f"{one}_{part}"].shape[1:] for part in ("train", "test"))
        if train != test:
            wrong.append(f"entries of {one}_train have shape {train}, those of {one}_test {test}")
    if wrong:
        raise BadInput(f"{path}: {'; '.join(wrong)}")
    x, y = (np.concatenate([arrays[f"{one}_train"], arrays[f"{one}_test"]]) for one in "xy")
    return x, y, len(arrays["y_train"])


def _csv(path: Path, label: str) -> _Found:
    import pandas as pd

    bare = re.fullmatch(r"-?\d+", label)
    frame = pd.read_csv(path, header=None if bare else "infer")
    try:
        y = frame.pop(frame.columns[int(label)] if bare else label)
    except (KeyError, IndexError) as error:
        there = ", ".join(map(str, frame.columns))
        remedy = "--label names the one with the classes, or gives its place (-1: the last) where there is no header"
        raise BadInput(
            f"{path} has no column {label!r}; {remedy}; there is: {there[:80]}"
        ) from error
    wrong = faults.of_table(frame, first=1 if bare else 2)
    if y.isna().any():
        wrong.append(f"{y.isna().sum()} samples have no label")
    elif y.dtype.kind == "f" and (y % 1 != 0).any():
        wrong.append(f"the labels in {label!r} have fractions; classes are whole numbers or names")
    if wrong:
        raise BadInput(f"{path}: {'; '.join(wrong)}")
    return (
        frame.to_numpy(np.float32),
        y.to_numpy() if y.dtype.kind in "biu" else y.to_numpy(str),
        None,
    )
