"""A user's own data set: a folder of pictures, an .npz or a .csv becomes prepared arrays and their
description.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput
from leak_atlas.data import formats, honesty, pictures, readers, sources
from leak_atlas.engine.files import require_file
from leak_atlas.recipe import registry
from leak_atlas.recipe.registry import Entry, File, Kind

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["add", "has_test_part"]

BATCH = 1024  # images whose pixels are measured at once
PARTS = ("train", "test")
VALIDATION = ("val", "valid", "validation")  # what other tools call the second part
DRAWN = "the test part is a fifth of each class, drawn by seed"  # the note of such a set
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

    Where no test part is given, a fifth of each class, drawn by `seed`, becomes it: `has_test_part`
    is False of such a set. Exact duplicates are kept, and the entry's note counts them. Images of
    any form are taken where `size` is given: the shorter side is resized to so many pixels, and the
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
            notes.append(f"{DRAWN} {seed}")
        _check_train(classes, labels[:train])
        _check_original(name, (len(x), kind, shape, len(classes)))
    except BadInput as error:
        # some messages name the file already, or a picture in the folder
        names_it = (f"{path}:", f"{path} ", f"{path}/", f"cannot read {path}:")
        message = str(error) if str(error).startswith(names_it) else f"{path}: {error}"
        raise BadInput(message) from error
    if size is not None:
        notes.append(f"the shorter side is resized to {size} pixels, and the middle is cropped")
    if mean:
        notes.append("mean and std are yours")
    with _preparing(name) as ready:
        digests = readers.write(ready, kind, shape, x, labels, size)
        stored = np.load(ready / f"{kind}.npy", mmap_mode="r")
        if not np.isfinite(stored).all():
            raise BadInput(f"{path} holds values that are no finite numbers of 32 bits")
        if kind == "images" and not mean:
            mean, std = _moments(stored[:train])
        notes += _duplicates(stored, labels, train)
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


def has_test_part(entry: Entry) -> bool:
    """Whether the user's files had a test part. If not, it was drawn from all samples: a model that
    the user trained on them has seen it.
    """
    return DRAWN not in entry.note


@contextlib.contextmanager
def _preparing(name: str) -> Iterator[Path]:
    """`readers.preparing`, which leaves no new empty folder of the set if anything fails."""
    home = registry.folder(name).parent
    was_there = home.exists()
    try:
        with readers.preparing(registry.folder(name)) as ready:
            yield ready
    finally:
        if not was_there:
            with contextlib.suppress(OSError):  # it holds the set, and stays
                home.rmdir()


# ---------------------------------------------------------------- files


def _read(name: str, path: Path, label: str) -> _Raw:
    """What the files at `path` hold. Raises BadInput if they cannot be read."""
    with sources.reading("it", "give a folder of pictures, an .npz or a .csv of UTF-8 text"):
        if not path.is_dir():
            require_file(path)
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
    split = _has_parts(path)
    roots = [path / part for part in PARTS] if split else [path]
    files: list[Path] = []
    counts = []
    for root in roots:
        folders = _folders(root)
        if not folders:
            raise BadInput(
                f"{root} has no folders of classes: put the pictures of each class into a folder of "
                "its own"
            )
        for folder in folders:
            inside = _visible(folder)
            if not inside:
                raise BadInput(f"the folder {folder.name!a} has no pictures; fill or remove it")
            files += inside
        counts.append(len(files))
    samples = np.empty(len(files), object)
    samples[:] = files
    classes = np.array([file.parent.name for file in files], str)
    return _Raw(samples, classes, counts[0] if split else None)


def _has_parts(path: Path) -> bool:
    """Whether a folder of pictures has a train and a test part. Raises BadInput if it has only one
    of them.
    """
    if all((path / part).is_dir() for part in PARTS):
        return True
    train, test = PARTS
    for part, other in ((train, test), (test, train)):
        if not (path / part).is_dir() or not _folders(path / part):
            continue  # a folder of pictures is a class, whatever its name
        second = next((name for name in VALIDATION if (path / name).is_dir()), "")
        if second and part == train:
            raise BadInput(f"{path} has train/ and {second}/: name the second one test/")
        raise BadInput(f"{path} has {part}/ but no {other}/: add {other}/, or give {path / part}")
    return False


def _folders(path: Path) -> list[Path]:
    return [folder for folder in _visible(path) if folder.is_dir()]


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

    _check_separator(path)
    is_place = re.fullmatch(r"-?\d+", label)
    try:
        frame = pd.read_csv(path, header=None if is_place else "infer")
    except pd.errors.ParserError as error:
        lengths = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if lengths is None:
            raise
        expected, line, seen = lengths.groups()
        raise BadInput(f"line {line} has {seen} columns, not {expected}") from error
    try:
        column = frame.columns[int(label)] if is_place else label
        y = frame.pop(column)
    except (KeyError, IndexError) as error:
        raise BadInput(
            f"no column {label!r}; --label names the one with the classes, or gives its place (-1: "
            f"the last) where there is no header; there is: {[*frame.columns][:5]}"
        ) from error
    if is_place and _has_header(frame, y):
        name = str(y.iloc[0])
        remedy = f"give the column's name (--label {shlex.quote(name)})"
        if re.fullmatch(r"-?\d+", name):  # it would be read as a place again
            remedy = f"rename the column '{name}' and give its name"
        raise BadInput(f"{path} has a header: {remedy}")
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


def _check_separator(path: Path) -> None:
    """Raises BadInput if the first line of a table has another separator than a comma."""
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline()
    for separator in (";", "\t"):
        if separator in first and "," not in first:
            raise BadInput(f"columns are separated by {separator!r}: save it with ','")


def _has_header(frame: pd.DataFrame, y: pd.Series) -> bool:
    """Whether the first line of a table, read without a header, is one: it has a text where numbers
    follow, in the column of classes or in every other column.
    """
    import pandas as pd

    def is_header(values: pd.Series) -> bool:
        followed = pd.to_numeric(values.iloc[1:], errors="coerce")
        return isinstance(values.iloc[0], str) and bool(followed.notna().all())

    columns = [values for _, values in frame.items()]
    return is_header(y) or (bool(columns) and all(map(is_header, columns)))


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
        raise BadInput(f"x is {x.dtype} of shape {x.shape}; {FORMS}{_conversion(x)}")
    return {x.shape[1:3]}, channels[0]


def _conversion(x: NDArray) -> str:
    """The code that makes uint8 images (N, H, W, C) of other arrays of images, as the end of a
    sentence; "" where none does.
    """
    if x.ndim not in (3, 4) or x.dtype.kind not in "biuf" or not 0 <= x.min() <= x.max() <= 255:
        return ""
    code = "x"
    if x.dtype != np.uint8:
        of_unit = x.dtype.kind in "bf" and x.max() <= 1
        code = "(255 * x).round().astype('uint8')" if of_unit else "x.astype('uint8')"
    channels_first = x.ndim == 4 and x.shape[1] in (1, 3) and x.shape[3] not in (1, 3)
    if x.ndim == 4 and not channels_first and x.shape[3] not in (1, 3):
        return ""
    if channels_first:
        code += ".transpose(0, 2, 3, 1)"
    return f"; take {code}" if code != "x" else ""


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


def _duplicates(x: NDArray, labels: NDArray, train: int) -> list[str]:
    """Notes on exact duplicates: two classes of one sample, or a test sample that is trained on."""
    notes = []
    if count := honesty.in_several_groups(x, labels):
        notes.append(f"{count:,} samples have an exact duplicate of another class")
    if count := honesty.in_several_groups(x, np.arange(len(x)) < train):
        notes.append(f"{count:,} samples have an exact duplicate in the other part, train or test")
    return notes


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


def _check_train(classes: tuple[str, ...], labels: NDArray) -> None:
    """Raises BadInput if a class has none of the labels of the train part."""
    missing = np.setdiff1d(np.arange(len(classes)), labels)
    if len(missing):
        name = classes[missing[0]]
        raise BadInput(f"class {name!a} has no train sample: add some or leave it out")


def _check_moments(channels: int, mean: Sequence[float], std: Sequence[float]) -> None:
    """Raises BadInput if mean and deviation of pixels in [0, 1] do not fit images of so many
    channels; rows have 0 channels.
    """
    if not mean and not std:
        return
    if not channels:
        raise BadInput("--mean and --std are for images: rows of numbers are standardised")
    if not mean or not std:
        given, other = ("--mean", "--std") if mean else ("--std", "--mean")
        raise BadInput(f"{given} also needs {other}: give both or none")
    number_fits = len(mean) == len(std) == channels
    mean_fits = all(0 <= value <= 1 for value in mean)
    std_fits = all(0 < value <= 1 for value in std)
    if not (number_fits and mean_fits and std_fits):
        raise BadInput(
            f"--mean and --std take one value a channel, {channels} in all, in units of pixel / "
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
