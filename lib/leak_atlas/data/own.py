"""A user's own data set: a folder of pictures, an .npz or a .csv becomes prepared arrays and their
description.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput
from leak_atlas.data import formats, pictures, readers, sources
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import Entry, File, Kind

__all__ = ["add"]

BATCH = 1024  # images whose pixels are measured at once
PARTS = ("train", "test")
FORMS = "images are uint8 (N, H, W) or (N, H, W, 1 or 3), rows of numbers are (N, D)"


class _Raw(NamedTuple):
    """What the user's files hold."""

    x: NDArray  # values (N, ...), or (N,) picture files
    y: NDArray  # classes (N,), as numbers or names
    train: int | None = None  # the first samples, which are the train part; None: it is drawn


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
      (N, H, H) or (N, H, H, C) of 1 or 3 channels, or (N, D) bits or numbers; labels (N,) are whole
      numbers or names;
    - a .csv of bits or numbers, a sample a line, in which the column `label` has the classes; a
      whole number is the column's place, from 0, in a file without a header (-1 is the last);
    - under the name of one of `registry.ORIGINALS`, its file or folder as it is in the archive.

    Where no test part is given, a fifth of each class, drawn by `seed`, becomes it. Images of any
    form are taken where `size` is given: the shorter side is resized to so many pixels, and the
    middle is cropped (`pictures.cropped`). `mean` and `std`, one value a channel in units of pixel
    / 255, normalise the images; without them they are computed of the train part. Raises BadInput
    if any of it fails.
    """
    _check_request(name, seed, size)
    try:
        x, y, train = _read(name, path, label)
        if x.ndim == 0 or 0 in x.shape[1:]:
            raise BadInput(f"x has shape {x.shape}, so no values")
        _check_labels(y, len(x))
        classes, labels = _classes(y)
        kind, shape = _form(x, size)
        _check_moments(shape[2] if kind == "images" else 0, mean, std)
        notes = []
        if train is None:
            order, train = _drawn(labels, seed)
            x, labels = x[order], labels[order]
            notes.append(f"the test part is a fifth of each class, drawn by seed {seed}")
        if len(np.unique(labels[:train])) < len(classes):
            raise BadInput("some class has no train sample; add some or leave it out")
        _check_original(name, (len(x), kind, shape, len(classes)))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    if size is not None:
        notes.append(f"the shorter side is resized to {size} pixels, and the middle is cropped")
    if mean:
        notes.append("mean and std are yours")
    with readers.preparing(registry.folder(name)) as ready:
        digests = readers.write(ready, kind, shape, x, labels, size)
        stored = np.load(ready / f"{kind}.npy", mmap_mode="r")
        if not np.isfinite(stored).all():
            raise BadInput(f"{path} holds values that are no finite numbers of 32 bits")
        if kind == "images" and not mean:
            mean, std = _moments(stored[:train])
        entry = Entry(
            name=name,
            title=name,
            kind=kind,
            shape=shape,
            classes=classes,
            train=train,
            test=len(x) - train,
            format="own",
            files=tuple(File(file, digest) for file, digest in digests.items()),
            source="your own",
            licence="",
            mean=tuple(mean),
            std=tuple(std),
            note="; ".join(notes),
        )
        _describe(ready, entry)
    return registry.find(name)


# ---------------------------------------------------------------- files


def _read(name: str, path: Path, label: str) -> _Raw:
    """What the files at `path` hold. Raises BadInput if they cannot be read."""
    with sources.reading("it", "is it a folder of pictures, an .npz or a .csv?"):
        if name in registry.ORIGINALS:
            return _Raw(*formats.shokri(path))
        if path.is_dir():
            return _folder(path)
        if path.suffix == ".npz":
            return _npz(path)
        if path.suffix == ".csv":
            return _csv(path, label)
    raise BadInput("it is no folder of pictures, .npz or .csv")


def _folder(path: Path) -> _Raw:
    """Picture files, a folder a class, or of both parts such folders."""
    parts = [path / part for part in PARTS]
    split = all(part.is_dir() for part in parts)
    files: list[Path] = []
    counts = []
    for root in parts if split else [path]:
        for folder in filter(Path.is_dir, _visible(root)):
            inside = _visible(folder)
            if not inside:
                raise BadInput(f"the folder {folder.name!a} has no pictures; fill or remove it")
            files += inside
        counts.append(len(files))
    samples = np.empty(len(files), object)
    samples[:] = files
    classes = np.array([file.parent.name for file in files], str)
    return _Raw(samples, classes, counts[0] if split else None)


def _visible(folder: Path) -> list[Path]:
    """What is in a folder, in the order of its names, without names that begin with a dot."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _npz(path: Path) -> _Raw:
    arrays = sources.npz(path)
    if {"x", "y"} <= arrays.keys():
        return _Raw(arrays["x"], arrays["y"])
    if not {"x_train", "y_train", "x_test", "y_test"} <= arrays.keys():
        raise BadInput(f"it holds {[*arrays]}; name them x, y or x_train, y_train, x_test, y_test")
    train = arrays["x_train"]
    test = arrays["x_test"]
    _check_labels(arrays["y_train"], len(train))
    _check_labels(arrays["y_test"], len(test))
    if train.shape[1:] != test.shape[1:]:
        why = f"samples of x_train are {train.shape[1:]}, of x_test {test.shape[1:]}"
        raise BadInput(why)
    x = np.concatenate([train, test])
    y = np.concatenate([arrays["y_train"], arrays["y_test"]])
    return _Raw(x, y, len(train))


def _csv(path: Path, label: str) -> _Raw:
    import pandas as pd

    is_place = re.fullmatch(r"-?\d+", label)
    frame = pd.read_csv(path, header=None if is_place else "infer")
    try:
        column = frame.columns[int(label)] if is_place else label
        y = frame.pop(column)
    except (KeyError, IndexError) as error:
        raise BadInput(
            f"no column {label!r}; --label names the one with the classes, or gives its place (-1: "
            f"the last) where there is no header; there is: {[*frame.columns][:5]}"
        ) from error
    for name, values in frame.items():
        if pd.to_numeric(values, errors="coerce").isna().any():
            raise BadInput(f"column {str(name)!a} is not all numbers; fill it, or leave it out")
        if str(name).startswith("Unnamed"):
            raise BadInput(f"column {str(name)!a} counts the samples; write with index=False")
    if y.isna().any():
        raise BadInput(f"{y.isna().sum()} samples have no label")
    x = frame.to_numpy(np.float32)
    is_text = y.dtype.kind == "O"
    return _Raw(x, y.to_numpy(str if is_text else None))


# ---------------------------------------------------------------- what they hold


def _form(x: NDArray, size: int | None) -> tuple[Kind, tuple[int, ...]]:
    """What the samples are, and the shape of one as it is stored."""
    if x.ndim == 2 and x.dtype.kind in "biuf":
        if size:
            raise BadInput("--size is for images, and these are rows of numbers")
        binary = ((x == 0) | (x == 1)).all()
        return "bits" if binary else "numbers", x.shape[1:]
    sizes, channels = _measured(x)
    if size:
        return "images", (size, size, channels)
    side = min(min(height, width) for height, width in sizes)
    if sizes != {(side, side)}:
        named = [f"{height} x {width}" for height, width in sorted(sizes)]
        some = " and ".join(named[:2])
        raise BadInput(f"images of {some} pixels; --size {side} makes them square, of one size")
    return "images", (side, side, channels)


def _measured(x: NDArray) -> tuple[set[tuple[int, ...]], int]:
    """The sizes (H, W) of images or picture files, each once, and their channels."""
    if x.dtype == object:
        return _measured_files(x)
    channels = x.shape[3:] or (1,)
    if x.dtype != np.uint8 or x.ndim < 3 or channels not in ((1,), (3,)):
        raise BadInput(f"x is {x.dtype} of shape {x.shape}; {FORMS}")
    return {x.shape[1:3]}, channels[0]


def _measured_files(files: NDArray) -> tuple[set[tuple[int, ...]], int]:
    sizes: set[tuple[int, ...]] = set()
    channels = 1
    for file in files:
        image = pictures.opened(file)
        sizes.add((image.height, image.width))
        if image.mode not in ("1", "L"):
            channels = 3
    return sizes, channels


def _classes(y: NDArray) -> tuple[tuple[str, ...], NDArray]:
    """The names of the classes in order, and each sample's place among them, `(N,)`."""
    names, labels = np.unique(y, return_inverse=True)
    classes = tuple(map(str, names))
    printable = "".join(classes).isprintable()
    if len(classes) < 2 or not printable:
        raise BadInput(
            f"classes {classes[:3]!a}; two or more are needed, named in printable letters"
        )
    return classes, labels


def _drawn(labels: NDArray, seed: int) -> tuple[NDArray, int]:
    """An order of the samples `(N,)` in which a fifth of each class comes last, and how many come
    before.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    test = formats.places(labels[order]) % 5 == 4
    if not test.any():
        raise BadInput("no class has 5 samples, of which one becomes the test part; give more")
    test_last = np.argsort(test, kind="stable")
    train = len(test) - int(test.sum())
    return order[test_last], train


def _moments(x: NDArray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel of images (N, H, W, C) uint8, of pixel values in [0, 1]."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    for start in range(0, len(x), BATCH):
        batch = x[start : start + BATCH]
        scaler.partial_fit(batch.reshape(-1, x.shape[3]))
    mean = scaler.mean_ / 255
    std = np.sqrt(scaler.var_) / 255
    means = mean.round(6).tolist()
    deviations = std.round(6).tolist()
    return tuple(means), tuple(deviations)


def _describe(ready: Path, entry: Entry) -> None:
    """Writes what is known of the set beside its arrays. JSON's texts, numbers and lists are TOML's
    too.
    """
    facts = asdict(entry)
    del facts["name"]
    lines = []
    for field, value in facts.items():
        text = json.dumps(value, ensure_ascii=False)
        lines.append(f"{field} = {text}\n")
    path = ready / registry.DESCRIPTION
    path.write_text("".join(lines), "utf-8")


# ---------------------------------------------------------------- checks


def _check_request(name: str, seed: int, size: int | None) -> None:
    """Raises BadInput if a set cannot have that name, seed or size, whatever its files hold."""
    if name in registry.ENTRIES or not registry.NAME.fullmatch(name):
        raise BadInput(
            f"a set of your own cannot have the name {name!r}: use a-z, 0-9, '.', '_', '-', and no "
            "name of a set that comes with the library"
        )
    at = registry.folder(name)
    if at.exists():
        raise BadInput(f"{name} is there already; remove {at.parent}, or choose another name")
    if seed < 0:
        raise BadInput(f"a seed cannot be {seed}; give 0 or more")
    if size is not None and size < 1:
        raise BadInput(f"images can be resized to 1 pixel or more, not to {size}")


def _check_labels(y: NDArray, samples: int) -> None:
    """Raises BadInput if labels are not one whole number or name for each of so many samples."""
    if y.shape != (samples,) or y.dtype.kind not in "biuU":
        raise BadInput(
            f"the labels are {y.dtype} of shape {y.shape}; ({samples},) whole numbers or names are "
            "needed"
        )


def _check_moments(channels: int, mean: Sequence[float], std: Sequence[float]) -> None:
    """Raises BadInput if mean and deviation of pixels in [0, 1] do not fit images of so many
    channels; rows have 0 channels.
    """
    if not mean and not std:
        return
    if not channels:
        raise BadInput("--mean and --std are for images: rows of numbers are standardised")
    number_fits = len(mean) == len(std) == channels
    mean_fits = all(0 <= value <= 1 for value in mean)
    std_fits = all(0 < value <= 1 for value in std)
    if not (number_fits and mean_fits and std_fits):
        raise BadInput(
            f"--mean and --std take {channels} values each, one a channel, in units of pixel / "
            "255: from 0 to 1, and std above 0"
        )


def _check_original(name: str, facts: tuple[object, ...]) -> None:
    """Raises BadInput if number, kind, shape and classes of the samples are not those of the set of
    the papers whose name they get.
    """
    original = registry.ORIGINALS.get(name)
    if original is None:
        return
    expected = original.size, "bits", (original.bits,), original.classes
    if facts != expected:
        raise BadInput(
            f"{name} has {original.size:,} samples of {original.bits} bits in {original.classes} "
            f"classes; these files do not: take {original.archive}"
        )
