"""A user's own data set: a folder of pictures, an .npz or a .csv becomes prepared arrays and their
description.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from leak_atlas import BadInput, reason
from leak_atlas.data import faults, formats, pictures, readers, sources
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import Entry, File, Kind, Original

__all__ = ["add"]

LARGEST = 1024  # pixels of the side that images are resized to
BATCH = 1024  # images whose pixels are measured at once
PARTS = ("train", "test")

_Moments = tuple[tuple[float, ...], tuple[float, ...]]  # mean and deviation, a value a channel


class _Raw(NamedTuple):
    """What the user's files hold."""

    x: np.ndarray  # values (N, ...), or (N,) picture files
    y: np.ndarray  # classes (N,), as numbers or names
    train: int | None = None  # the first samples, which are the train part; None: it is drawn


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
      (N, H, H) or (N, H, H, C) of 1 or 3 channels, or (N, D) bits or numbers; labels (N,) are whole
      numbers or names;
    - a .csv of bits or numbers, a sample a line, in which the column `label` has the classes; a
      whole number is the column's place, from 0, in a file without a header (-1 is the last);
    - under the name of one of `registry.ORIGINALS`, its file or folder as it is in the archive.

    Where no test part is given, a fifth of each class, drawn by `seed`, becomes it. Images of any
    form are taken where `size` is given: the shorter side is resized to so many pixels, and the
    middle is cropped (`pictures.cropped`). `mean` and `std`, one value a channel in units of pixel
    / 255, normalise the images; without them they are computed of the train part. BadInput where
    any of it fails; it names all faults that can be found in one look.
    """
    _refuse_request(name, seed, size)
    original = registry.ORIGINALS.get(name)
    x, y, train = _read(path, label, original)
    kind, shape, wrong = _form(x, size)
    wrong += faults.labels(y, len(x))
    wrong += faults.moments(shape[2] if kind == "images" else 0, mean, std)
    _refuse(path, wrong)
    classes, labels = _classes(path, y)
    notes = []
    if train is None:
        order, train = _drawn(path, labels, seed)
        x, labels = x[order], labels[order]
        notes.append(f"the test part is a fifth of each class, drawn by seed {seed}")
    if size is not None:
        notes.append(f"the shorter side is resized to {size} pixels, and the middle is cropped")
    if mean:
        notes.append("mean and std are yours")
    untrained = np.setdiff1d(np.arange(len(classes)), labels[:train])
    if untrained.size:
        why = f"class '{classes[untrained[0]]}' has no train sample; add some or leave it out"
        raise BadInput(f"{path}: {why}")
    if original:
        _refuse_another(original, name, (len(x), kind, shape, len(classes)), path)
    with readers.preparing(registry.folder(name)) as ready:
        out = readers.blank(kind, (len(x), *shape), ready)
        _fill(out, x, size)
        if not np.isfinite(out).all():
            why = "values that are no finite numbers of 32 bits; fill them or leave them out"
            raise BadInput(f"{path} holds {why}")
        moments: _Moments = (tuple(mean), tuple(std))
        if kind == "images" and not mean:
            moments = _moments(out[:train])
        files = tuple(File(*file) for file in readers.write(ready, out, labels).items())
        entry = Entry(
            name=name,
            title=name,
            kind=kind,
            shape=shape,
            classes=classes,
            train=train,
            test=len(x) - train,
            format="own",
            files=files,
            source="your own",
            licence="",
            mean=moments[0],
            std=moments[1],
            note="; ".join(notes),
        )
        _describe(ready, entry)
    return registry.find(name)


def _refuse(path: Path, wrong: list[str]) -> None:
    """BadInput, which names all faults of the files, where there are some."""
    if wrong:
        raise BadInput(f"{path}: {'; '.join(wrong)}")


def _refuse_request(name: str, seed: int, size: int | None) -> None:
    """BadInput where a set cannot have that name, seed or size, whatever its files hold."""
    if name in registry.ENTRIES or not registry.NAME.fullmatch(name):
        why = "use a-z, 0-9, '.', '_', '-', and no name of a set that comes with the library"
        raise BadInput(f"a set of your own cannot have the name {name!r}: {why}")
    at = registry.folder(name)
    if at.exists():
        raise BadInput(f"{name} is there already; remove {at.parent}, or choose another name")
    if seed < 0:
        raise BadInput(f"a seed cannot be {seed}; give 0 or more")
    if size is not None and not 1 <= size <= LARGEST:
        raise BadInput(f"images can be resized to 1 to {LARGEST:,} pixels, not to {size:,}")


def _refuse_another(original: Original, name: str, facts: tuple[object, ...], path: Path) -> None:
    """BadInput where number, kind, shape and classes of the samples are not those of the set of the
    papers whose name they get.
    """
    known = original.size, "bits", (original.bits,), original.classes
    if facts != known:
        form = "{:,} samples of {} {} in {} classes".format
        why = f"{form(*facts)}, but {name} has {form(*known)}"
        raise BadInput(f"{path}: {why}: take {original.archive}")


def _classes(path: Path, y: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """The names of the classes in order, and each sample's place among them, `(N,)`."""
    names, labels = np.unique(y, return_inverse=True)
    classes = tuple(map(str, names))
    if len(classes) < 2 or not "".join(classes).isprintable():
        why = "two or more are needed, named in printable letters"
        raise BadInput(f"{path}: classes {classes[:3]!a}; {why}")
    return classes, labels


def _drawn(path: Path, labels: np.ndarray, seed: int) -> tuple[np.ndarray, int]:
    """An order of the samples `(N,)` in which a fifth of each class comes last, and how many come
    before.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    test = formats.places(labels[order]) % 5 == 4
    if not test.any():
        why = "a fifth of each class becomes the test part, and no class has 5 of the"
        remedy = "give more samples, or a test part of your own"
        raise BadInput(f"{path}: {why} {len(labels)} samples; {remedy}")
    return order[np.argsort(test, kind="stable")], int((~test).sum())


def _describe(ready: Path, entry: Entry) -> None:
    """Writes what is known of the set beside its arrays. JSON's texts, numbers and lists are TOML's
    too.
    """
    facts = asdict(entry)
    del facts["name"]
    lines = [f"{field} = {json.dumps(facts[field], ensure_ascii=False)}\n" for field in facts]
    (ready / registry.DESCRIPTION).write_text("".join(lines), "utf-8")


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
    if size is not None or x.dtype == object:
        pictures.fill(out, x, crop=size is not None)
    else:
        out[:] = x.reshape(out.shape)


def _moments(x: np.ndarray) -> _Moments:
    """Mean and deviation of each channel of images (N, H, W, C) uint8, of pixel values in [0, 1]."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    for start in range(0, len(x), BATCH):
        scaler.partial_fit(x[start : start + BATCH].reshape(-1, x.shape[3]))
    mean, std = scaler.mean_ / 255, np.sqrt(scaler.var_) / 255
    return tuple(map(float, mean.round(6))), tuple(map(float, std.round(6)))


def _read(path: Path, label: str, original: Original | None) -> _Raw:
    """What the files at `path` hold. BadInput where they cannot be read."""
    try:
        if original:
            return _Raw(*formats.shokri(path))
        if path.is_dir():
            return _folder(path)
        if path.suffix == ".npz" and path.is_file():
            return _npz(path)
        if path.suffix == ".csv" and path.is_file():
            return _csv(path, label)
    except BadInput:
        raise
    except sources.UNREADABLE as error:
        raise BadInput(f"{path} cannot be read ({reason(error)})") from error
    missing = "" if path.exists() else ": nothing is there"
    raise BadInput(f"{path} is no folder of pictures, .npz or .csv{missing}")


def _folder(path: Path) -> _Raw:
    """Picture files, a folder a class, or of both parts such folders."""
    parts = [path / part for part in PARTS if (path / part).is_dir()]
    roots = parts if len(parts) == 2 else [path]
    files = [file for file in sources.inside(path) if not _hidden(file, path)]
    samples = [file for root in roots for file in files if file.parent.parent == root]
    names = {file: str(file.relative_to(path)) for file in files}
    right = {file for file in samples if names[file].isprintable()}
    strange = [names[file] for file in files if file not in right]
    if strange:
        more = f", nor are {len(strange) - 1} more" if strange[1:] else ""
        train_alone = parts == [path / "train"]
        beside = "; beside train/ the other part is called test/" if train_alone else ""
        raise BadInput(
            f"{path}: {strange[0]!a} is not a picture in a folder of its class{more}{beside}"
        )
    classes = {place for root in roots for place in root.glob("*/") if not _hidden(place, path)}
    for empty in sorted(classes - {file.parent for file in samples}):
        raise BadInput(f"{path}: the folder {empty.name!a} has no pictures; fill or remove it")
    train = sum(file.parent.parent == roots[0] for file in samples)
    y = np.array([file.parent.name for file in samples], str)
    return _Raw(np.array(samples, object), y, train if len(roots) == 2 else None)


def _hidden(file: Path, folder: Path) -> bool:
    """Whether a file or a folder below `folder` has a name that begins with a dot."""
    return any(name.startswith(".") for name in file.relative_to(folder).parts)


def _npz(path: Path) -> _Raw:
    parts = {f"{letter}_{part}" for letter in "xy" for part in PARTS}
    arrays = sources.npz(path, {"x", "y", *parts})
    if {"x", "y"} <= set(arrays):
        return _Raw(arrays["x"], arrays["y"])
    if parts <= set(arrays):
        return _joined(path, arrays)
    remedy = "name them x, y or x_train, y_train, x_test, y_test"
    raise BadInput(f"{path} holds {[*arrays]}; {remedy}, as numpy.savez(path, x=..., y=...)")


def _joined(path: Path, arrays: Mapping[str, np.ndarray]) -> _Raw:
    """Train and test part of an .npz as one."""
    x, y = ([arrays[f"{letter}_{part}"] for part in PARTS] for letter in "xy")
    wrong = []
    for part, samples, labels in zip(PARTS, x, y, strict=True):
        if samples.shape[:1] != labels.shape[:1]:
            wrong.append(f"x_{part} and y_{part} are not of one length")
    for letter, (train, test) in (("x", x), ("y", y)):
        if train.shape[1:] != test.shape[1:]:
            shapes = f"{letter}_train have shape {train.shape[1:]}, those of {letter}_test"
            wrong.append(f"entries of {shapes} {test.shape[1:]}")
    _refuse(path, wrong)
    return _Raw(np.concatenate(x), np.concatenate(y), len(y[0]))


def _csv(path: Path, label: str) -> _Raw:
    import pandas as pd

    bare = re.fullmatch(r"-?\d+", label)
    frame = pd.read_csv(path, header=None if bare else "infer")
    try:
        y = frame.pop(frame.columns[int(label)] if bare else label)
    except (KeyError, IndexError) as error:
        there = ", ".join(map(str, frame.columns))[:80]
        remedy = (
            "--label names the one with the classes, or gives its place (-1: the last) where there "
            f"is no header; there is: {there}"
        )
        raise BadInput(f"{path} has no column {label!r}; {remedy}") from error
    wrong = faults.of_table(frame, first=1 if bare else 2)
    if y.isna().any():
        wrong.append(f"{y.isna().sum()} samples have no label")
    elif y.dtype.kind == "f" and (y % 1 != 0).any():
        wrong.append(f"the labels in {label!r} have fractions; classes are whole numbers or names")
    _refuse(path, wrong)
    return _Raw(frame.to_numpy(np.float32), y.to_numpy(None if y.dtype.kind in "biu" else str))
