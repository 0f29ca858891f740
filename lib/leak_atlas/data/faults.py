"""What is wrong with samples and labels that a user brings, and what to do about each.

Every function returns one phrase a fault, so that a refusal names all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leak_atlas import BadInput
from leak_atlas.data import pictures

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["labels", "moments", "of_arrays", "of_pictures", "of_sizes", "of_table"]

CHANNELS = (1, 3)  # of an image
NAMED = 3  # columns or files that a refusal names; the rest is counted
NEITHER = "are neither images of uint8 nor rows of numbers"
FORMS = "images are (N, H, W) or (N, H, W, channels), rows are (N, D)"


def of_arrays(x: np.ndarray) -> tuple[list[tuple[int, int]], int, list[str]]:
    """The size (H, W) of the images `x`, their channels, and their faults; of what are no images
    there is no size.
    """
    if x.ndim not in (3, 4) or x.dtype.kind not in "biuf":
        return [], 0, [f"{x.dtype} of shape {x.shape} {NEITHER}: {FORMS}"]
    wrong = _pixels(x)
    shape = (*x.shape[1:], 1)[:3]
    if shape[2] not in CHANNELS and shape[0] in CHANNELS:
        wrong.append("channels come first: x.transpose(0, 2, 3, 1)")
        shape = (shape[1], shape[2], shape[0])
    elif shape[2] not in CHANNELS:
        few = 1 if shape[2] < 3 else 3
        wrong.append(
            f"images have {shape[2]} channels, and 1 or 3 channels are taken: x[..., :{few}]"
        )
        shape = (*shape[:2], few)
    return [shape[:2]], shape[2], wrong


def _pixels(x: np.ndarray) -> list[str]:
    """What is wrong with the type or the range of the pixels."""
    if x.dtype == np.uint8:
        return []
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    if not math.isfinite(low + high):
        return [f"pixels are {x.dtype}, some of them not finite: 0 to 255 as uint8 are needed"]
    whole = x.dtype.kind != "f"
    if low >= 0 and high <= 1 and not whole:
        remedy = "(x * 255).round().astype('uint8')"
    elif low >= 0 and high <= 255:
        remedy = "x.astype('uint8')" if whole else "x.round().astype('uint8')"
    elif whole:
        remedy = "scale them first"
    else:
        remedy = "undo the normalisation, ((x * std + mean) * 255).round().astype('uint8')"
    return [f"pixels are {x.dtype} from {low:g} to {high:g}, not uint8 from 0 to 255: {remedy}"]


def of_sizes(sizes: Sequence[tuple[int, int]]) -> list[str]:
    """The fault of images that are not of one size, or not square; `sizes` has each (H, W) once, in
    order.
    """
    shortest = min(min(size) for size in sizes)
    remedy = f"--size {shortest} resizes and crops"
    first, last = (" x ".join(map(str, size)) for size in (sizes[0], sizes[-1]))
    if len(sizes) > 1:
        return [f"images of {len(sizes)} sizes, {first} to {last}, are not of one size: {remedy}"]
    return [] if sizes[0][0] == sizes[0][1] else [f"images of {first} are not square: {remedy}"]


def of_pictures(files: Iterable[Path]) -> tuple[list[tuple[int, int]], int, list[str]]:
    """The sizes (H, W) of picture files, each once, their channels, and the faults of the files."""
    sizes: set[tuple[int, int]] = set()
    grey, wrong = True, []
    for file in files:
        try:
            with pictures.opened(file) as image:
                sizes.add((image.height, image.width))
                grey &= image.mode in ("1", "L")
        except BadInput as error:
            wrong.append(str(error))
    more = [f"{len(wrong) - 1} more pictures cannot be read"] if wrong[1:] else []
    return sorted(sizes), 1 if grey else 3, wrong[:1] + more


def of_table(frame: pd.DataFrame, first: int) -> list[str]:
    """The faults of a table's columns; its first sample stands in line `first` of the file."""
    import pandas as pd

    text, empty = {}, {}
    wrong = []
    for name, column in frame.items():
        numbers = pd.to_numeric(column, errors="coerce")
        strange = numbers.isna() & column.notna()
        if strange.any():
            line = int(strange.to_numpy().argmax())
            text[str(name)] = f"{str(column.iloc[line])[:20]!a} in line {first + line}"
        elif numbers.isna().any():
            empty[str(name)] = f"{numbers.isna().sum():,} values"
        elif str(name).startswith("Unnamed") and np.array_equal(numbers, np.arange(len(frame))):
            wrong.append(
                f"column {str(name)!a} counts the samples; leave it out, as to_csv(index=False) does"
            )
    remedies = "leave it out, or write each of its values as a column of 0 and 1"
    if text:
        wrong.append(f"{_columns(text)}: text, no numbers; {remedies}")
    if empty:
        wrong.append(f"{_columns(empty)}: missing; fill them, or leave the column out")
    return wrong


def _columns(named: Mapping[str, str]) -> str:
    """`column 'a' (one) and 2 more`."""
    shown = [f"{name!a} ({why})" for name, why in [*named.items()][:NAMED]]
    more = [f"{len(named) - NAMED} more"] if len(named) > NAMED else []
    return f"column{'s' * (len(named) > 1)} {', '.join(shown + more)}"


def labels(y: np.ndarray, samples: int) -> list[str]:
    """The fault of labels `y`, of which each of so many samples needs one."""
    if y.shape[:1] != (samples,) or y.ndim != 1:
        flat = "y.ravel()" if y.size == samples else ""
        encoded = "y.argmax(1)" if y.ndim == 2 and y.shape[0] == samples and not flat else ""
        remedy = flat or encoded or "one label a sample"
        return [f"{samples} samples need as many labels, not {y.shape}: {remedy}"]
    if y.dtype.kind in "biuU":
        return []
    whole = y.dtype.kind == "f" and bool(np.isfinite(y).all() and (y == y.round()).all())
    remedy = ": y.astype('int64')" if whole else ""
    return [f"labels are {y.dtype}, not whole numbers or names{remedy}"]


def moments(channels: int, mean: Sequence[float], std: Sequence[float]) -> list[str]:
    """What is wrong with the mean and the deviation of pixels in [0, 1] that a user gives; of rows
    `channels` is 0.
    """
    if not mean and not std:
        return []
    if not channels:
        return [
            "--mean and --std are for images: rows of numbers are standardised as they are read"
        ]
    wrong = []
    for option, values in (("--mean", mean), ("--std", std)):
        if len(values) != channels:
            wrong.append(f"{option} needs a value for each channel, {channels}, not {len(values)}")
    if not all(0 <= value <= 1 for value in mean):
        wrong.append("--mean takes values from 0 to 1, in units of pixel / 255")
    if not all(0 < value <= 1 for value in std):
        wrong.append("--std takes values above 0 to 1, in units of pixel / 255")
    return wrong
