"""Numbers of results as rows of figures: plain dictionaries, of what JSON knows."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leak_atlas.audit import Estimate
from leak_atlas.data import readers
from leak_atlas.recipe import Data, registry

Row: TypeAlias = dict[str, Any]
BoolArray: TypeAlias = NDArray[np.bool_]
BINS = 24  # of a histogram
TAILS = (0.002, 0.998)  # quantiles; what lies beyond is in the first and the last bin


# ---------------------------------------------------------------- columns


def records(columns: Mapping[str, Iterable[Any]]) -> list[Row]:
    """Rows from columns of the same length; numbers of arrays `(rows, ...)` have four digits, and
    None stands for NaN.
    """
    lists = [plain(column) for column in columns.values()]
    rows = zip(*lists, strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def plain(column: Iterable[Any]) -> list[Any]:
    """A column as a list; numbers of an array have four digits, and None stands for NaN."""
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.dtype.kind != "f":
        return column.tolist()
    known = column.round(4).astype(object)
    known[np.isnan(column)] = None
    return known.tolist()


def values(rows: Sequence[Row], column: str) -> list[Any]:
    """The values of a column, each once, in the order of the rows."""
    return list(dict.fromkeys(row[column] for row in rows))


def placed(rows: Sequence[Row], **columns: Any) -> list[Row]:
    """The rows with further columns, the same in each."""
    return [columns | row for row in rows]


def select(rows: Sequence[Row], **columns: Any) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if columns.items() <= row.items()]


# ---------------------------------------------------------------- estimates


def interval(estimate: Estimate, column: str = "auc") -> Row:
    """The columns of a row that hold an estimate: its value, `low` and `high`."""
    return {
        column: round(float(estimate.value), 3),
        "low": round(float(estimate.low), 3),
        "high": round(float(estimate.high), 3),
    }


def sentence(row: Row, column: str, name: str, digits: int = 2) -> str:
    """An estimate of a row in words: "AUC 0.61 (95 % interval 0.55 to 0.67)"."""
    numbers = row[column], row["low"], row["high"]
    return f"{name} {_with_interval(*numbers, digits)}"


def words(estimate: Estimate, digits: int = 2) -> str:
    """An estimate in words: "0.61 (95 % interval 0.55 to 0.67)"."""
    if not estimate.resolved:
        return "not resolved"
    return _with_interval(estimate.value, estimate.low, estimate.high, digits)


def _with_interval(value: float, low: float, high: float, digits: int) -> str:
    text = f"{value:.{digits}f} (95 % interval {low:.{digits}f} to {high:.{digits}f})"
    return text.replace("-", "−")


def meaning(auc: Estimate, who: str, what: str) -> str:
    """What an AUC says of a group: `who` has larger or smaller values than the others."""
    if auc.low <= 0.5 <= auc.high:
        return "could be chance: the interval contains 0.5"
    size = "larger" if auc.value > 0.5 else "smaller"
    return f"{who} {size} {what}"


# ---------------------------------------------------------------- samples


def histogram(values: NDArray, groups: Mapping[str, BoolArray]) -> dict[str, list[float]]:
    """The columns that `charts.distribution` draws: the left ends of the bins, `edge`, and of each
    group the percentage of its samples in each bin.
    """
    low, high = np.quantile(values, TAILS)
    if high <= low:
        high = low + 1
    edges = np.linspace(low, high, BINS + 1)
    clipped = values.clip(low, high)
    left = edges[:-1]
    columns = {"edge": [float(f"{edge:.4g}") for edge in left]}
    for name, inside in groups.items():
        counts, _ = np.histogram(clipped[inside], edges)
        percent = 100 * counts / max(inside.sum(), 1)
        columns[name] = percent.round(2).tolist()
    return columns


def ranks(values: NDArray, seen: BoolArray) -> NDArray:
    """For each row `(R, n)` and sample, the percentage of the seen samples whose value is lower;
    equal values count half.
    """
    percent = np.empty(values.shape)
    for row, own in enumerate(values):
        others = np.sort(own[seen])
        lower = np.searchsorted(others, own, "left")
        lower_or_equal = np.searchsorted(others, own, "right")
        percent[row] = 50 * (lower + lower_or_equal) / len(others)
    return percent


def mean_where(values: NDArray, chosen: BoolArray) -> NDArray:
    """Mean over the first axis where a sample is chosen; NaN where it never is."""
    chosen = np.broadcast_to(chosen, values.shape)
    count = chosen.sum(axis=0)
    total = np.sum(values, axis=0, where=chosen)
    mean = np.full(total.shape, np.nan)
    return np.divide(total, count, out=mean, where=count > 0)


def rounded(values: NDArray, digits: int = 0) -> list[float | None]:
    """Rounded numbers; None for NaN."""
    return plain(values.round(digits))


def sample_name(data: Data, index: int) -> str:
    """How rows name a sample: "NAME INDEX"."""
    return f"{data.name} {index}"


def sample_index(sample: str) -> int:
    """The index of a sample in its data set."""
    return int(sample.rpartition(" ")[2])


def portraits(data: Data, samples: Iterable[str]) -> list[Row]:
    """Rows of "pictures": picture and class of those samples that are of these data."""
    loaded = readers.load(data.name, data.pixels)
    classes = registry.find(data.name).classes
    rows = []
    for sample in samples:
        at = sample_index(sample)
        if sample != sample_name(data, at):
            continue
        label = classes[loaded.labels[at]]
        row = {
            "sample": sample,
            "class": label,
            "label": f"{label} ({sample})",
            "image": png(loaded.x[at]),
        }
        rows.append(row)
    return rows


def png(pixels: NDArray) -> str:
    """A picture `(H, W, 1 or 3)` as an address that holds it; bits `(n,)` lie row by row in a
    square, dark where they are set.
    """
    from PIL import Image

    if pixels.ndim == 1:
        side = int(np.ceil(np.sqrt(len(pixels))))
        bits = np.zeros(side**2, np.uint8)
        bits[: len(pixels)] = pixels
        pixels = 255 * (1 - bits).reshape(side, side)
    elif pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    packed = io.BytesIO()
    Image.fromarray(pixels).save(packed, "PNG")
    encoded = base64.b64encode(packed.getvalue()).decode()
    return f"data:image/png;base64,{encoded}"
