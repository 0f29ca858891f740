"""A user's own data set: a folder of pictures, an .npz or a .csv becomes prepared arrays and their description."""

import json
import re
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from lib import BadInput, reason, registry
from lib.data import formats, pictures, readers, sources
from lib.registry import Entry, File, Kind

__all__ = ["add"]

LIMIT = 2**35  # bytes that an .npz unpacks to
BATCH = 1024  # images whose pixels are measured at once


# Values (N, ...), or (N,) of picture files; (N,) classes, as numbers or names; the first samples that are the train
# part, None if that is to be drawn.
_Found = tuple[np.ndarray, np.ndarray, int | None]


@np.errstate(over="ignore")  # a number that is too large becomes infinite, and is refused
def add(name: str, path: Path, label: str = "label", seed: int = 0) -> Entry:
    """Prepares the user's own set `name` from `path`, so that `Data(name)` finds it; returns its entry.

    `path` is one of

    - a folder with a folder of pictures for each class, or with `train` and `test` that hold such folders;
    - an .npz with `x` and `y`, or with `x_train`, `y_train`, `x_test` and `y_test`: images uint8 (N, H, H) or
      (N, H, H, C) of 1 or 3 channels, or (N, D) bits or numbers; labels (N,) are whole numbers or names;
    - a .csv of bits or numbers, a sample a line, in which the column `label` has the classes; a whole number is the
      column's place, from 0, in a file without a header (-1 is the last);
    - under the name of one of `registry.ORIGINALS`, its file or folder as it is in the archive.

    Where no test part is given, a fifth of each class, drawn by `seed`, becomes it. BadInput where any of it fails.
    """
    at = registry.folder(name)
    if name in registry.ENTRIES or not registry.NAME.fullmatch(name):
        why = "a set of this name comes with the library" if name in registry.ENTRIES else "use a-z, 0-9, '.', '_', '-'"
        raise BadInput(f"a set of your own cannot have the name {name!r}: {why}; choose another")
    if at.exists():
        raise BadInput(f"{name} is there already; remove {at.parent}, or choose another name")
    if seed < 0:
        raise BadInput(f"a seed cannot be {seed}; give 0 or more")
    original = registry.ORIGINALS.get(name)
    x, y, train = _read(path, label, original is not None)
    if y.shape != x.shape[:1] or y.dtype.kind not in "biuU":
        raise BadInput(f"{path}: {len(x)} samples need as many labels, whole numbers or names, in one row")
    found, labels = np.unique(y, return_inverse=True)
    classes = tuple(map(str, found))
    if len(classes) < 2 or not "".join(classes).isprintable():
        raise BadInput(f"{path}: classes {classes[:3]!a}; two or more are needed, named in printable letters")
    note = "" if train is not None else f"the test part is a fifth of each class, drawn by seed {seed}"
    if train is None:
        order = np.random.default_rng(seed).permutation(len(labels))
        test = formats.places(labels[order]) % 5 == 4
        order = order[np.argsort(test, kind="stable")]
        x, labels, train = x[order], labels[order], int((~test).sum())
    missing = np.bincount(labels[:train], minlength=len(classes)).argmin()
    if missing not in labels[:train]:
        raise BadInput(f"{path}: class '{classes[missing]}' has no train sample; add some or leave it out")
    kind, shape = _form(path, x)
    if original and (kind, shape, len(classes), len(x)) != ("bits", (original.bits,), original.classes, original.size):
        raise BadInput(
            f"{path}: {len(x):,} samples of {shape} {kind} in {len(classes)} classes, but {name} has "
            f"{original.size:,} of {original.bits:,} bits in {original.classes}: take {original.archive}"
        )
    with readers.preparing(at) as ready:
        out = readers.blank(kind, (len(x), *shape), ready)
        if x.dtype == object:
            pictures.fill(out, x)
        else:
            out[:] = x.reshape(out.shape)
        if not np.isfinite(out).all():
            raise BadInput(f"{path} holds values that are no finite numbers of 32 bits; fill them or leave them out")
        moments = _moments(out[:train]) if kind == "images" else ((), ())
        files = tuple(File(*each) for each in readers.write(ready, out, labels).items())
        sizes = (train, len(x) - train)
        entry = Entry(name, name, kind, shape, classes, *sizes, "own", files, "your own", "", *moments, note=note)
        facts = {field: value for field, value in asdict(entry).items() if field != "name"}
        # JSON's texts, numbers and lists are TOML's too.
        text = "".join(f"{field} = {json.dumps(value, ensure_ascii=False)}\n" for field, value in facts.items())
        (ready / registry.DESCRIPTION).write_text(text, "utf-8")
    return registry.find(name)


def _form(path: Path, x: np.ndarray) -> tuple[Kind, tuple[int, ...]]:
    """The kind of the samples `x`, and the shape of one."""
    if x.ndim == 2 and x.dtype.kind in "biuf":
        return "bits" if ((x == 0) | (x == 1)).all() else "numbers", x.shape[1:]
    shapes = {(*x.shape[1:], 1)[:3]}
    if x.dtype == object:
        shapes, grey = set(), True
        for file in x:
            with pictures.opened(file) as image:
                shapes.add(image.size[::-1])
                grey &= image.mode in ("1", "L")
        shapes = {(*side, 1 if grey else 3) for side in shapes}
    elif x.dtype != np.uint8 or x.ndim not in (3, 4):
        raise BadInput(f"{path}: {x.dtype} of shape {x.shape} are neither images of uint8 nor rows of numbers")
    shape = min(shapes)
    if len(shapes) > 1 or shape[0] != shape[1] or shape[2] not in (1, 3):
        raise BadInput(f"{path}: images of {sorted(shapes)[:3]} are not of one size, square, of 1 or 3 channels")
    return "images", shape


def _moments(x: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel of images (N, H, W, C) uint8, of pixel values in [0, 1]."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    for start in range(0, len(x), BATCH):
        scaler.partial_fit(x[start : start + BATCH].reshape(-1, x.shape[3]))
    mean, std = (tuple(map(float, (values / 255).round(6))) for values in (scaler.mean_, np.sqrt(scaler.var_)))
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
    except (OSError, ValueError, TypeError, EOFError, MemoryError, zipfile.BadZipFile, NotImplementedError) as error:
        raise BadInput(f"{path} cannot be read ({reason(error)})") from error
    raise BadInput(f"{path} is no folder of pictures, .npz or .csv")


def _folder(path: Path) -> _Found:
    split = all((path / part).is_dir() for part in ("train", "test"))
    rows = [(file.relative_to(path).parts, file) for file in sources.inside(path)]
    rows = [row for row in rows if not any(name.startswith(".") for name in row[0])]
    rows.sort(key=lambda row: split and row[0][0] == "test")
    for names, _file in rows:
        if len(names) != 2 + split or (split and names[0] not in ("train", "test")) or not "".join(names).isprintable():
            raise BadInput(f"{path}: {'/'.join(names)!a} is not a picture in a folder of its class")
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
            for part in ("train", "test"):
                if arrays[f"x_{part}"].shape[:1] != arrays[f"y_{part}"].shape:
                    raise BadInput(f"{path}: x_{part} and y_{part} are not of one length")
            x, y = (np.concatenate([arrays[f"{one}_train"], arrays[f"{one}_test"]]) for one in "xy")
            return x, y, len(arrays["y_train"])
        raise BadInput(f"{path} holds {[*arrays]}; name them x, y or x_train, y_train, x_test, y_test")


def _csv(path: Path, label: str) -> _Found:
    import pandas as pd

    bare = re.fullmatch(r"-?\d+", label)
    frame = pd.read_csv(path, header=None if bare else "infer")
    try:
        y = frame.pop(frame.columns[int(label)] if bare else label)
    except (KeyError, IndexError) as error:
        raise BadInput(f"{path} has no column {label!r}; --label names the one with the classes") from error
    if y.isna().any():
        raise BadInput(f"{path}: {y.isna().sum()} samples have no label")
    return frame.to_numpy(np.float32), y.to_numpy() if y.dtype.kind in "biu" else y.to_numpy(str), None
