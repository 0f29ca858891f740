"""What every figure stands on: the style, a sheet that shows itself, panels, looks, wrapped words."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Mapping, Sequence
from itertools import count, cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import matplotlib.style
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from PIL import Image

from leak_atlas.audit import Estimate
from leak_atlas.report import printed
from leak_atlas.report.markup import png, proper

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Style: TypeAlias = dict[str, Any]  # options of matplotlib, or of what IPython shows
Frame: TypeAlias = "pd.DataFrame | Sequence[Mapping[str, Any]]"

matplotlib.style.use(Path(__file__).with_name("leakatlas.mplstyle"))

INK, QUIET, FAINT, FLOOR = "#1f2933", "#5b6570", "#9aa5b1", "#dfe3e8"
HATCH = "#cbd2d9"
SEQUENTIAL = "crest"
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "p")
DASHES: tuple[Any, ...] = (
    "-",
    "--",
    ":",
    "-.",
    (0, (3, 1)),
    (0, (8, 2)),
    (0, (1, 2.5)),
    (0, (5, 1, 1, 1)),
)
FAR = 1e3  # where an interval ends that has no end
COUNTED = count(1)  # figures that this kernel has shown
SHARPER = 2.0  # dots per dot of the page
COLOURS, UNCHANGED = 256, 64  # colours of a picture, and how many of them are as they were drawn
LETTER, LINE = (
    0.0075,
    0.0172,
)  # inches for each point of the font: a letter's width, a line's height
HEAD: Style = {
    "loc": "outside upper left",
    "alignment": "left",
    "borderaxespad": 0.4,
    "title_fontproperties": {"size": 11, "weight": "bold"},
}
AXIS: Style = {"fontsize": 9, "color": "#3e4c59"}
WIDTH = 8.4  # inches: 924 pixels, a text column of a page at one and a quarter
NARROW = 4.6  # inches: on a phone of 390 pixels letters are still 9 pixels high


class Sheet(Figure):
    """A Figure that belongs to no window system: shown where a cell returns it, as a sharp PNG.

    Its title is its description for those who cannot see it.
    """

    finding = ""
    deeper = 0.0  # inches that long names under the panels need
    numbers: pd.DataFrame | None = None  # what is drawn
    compared: Sequence[Mapping[str, Any]] = ()  # of these, numbers that a paper prints, with ours

    def _repr_mimebundle_(self, **_: Any) -> tuple[Style, Style]:
        picture = self.png()
        about: Style = {"width": round(self.bbox.width), "alt": self.finding}
        place = os.environ.get("LEAK_ATLAS_FIGURES")
        if place:  # a batch's, in whose page this figure comes to stand
            page = Path(place)
            name = f"{page.name}.fig{next(COUNTED)}"
            self.keep(page.with_name(name))
            about["figure"] = name
        shown: Style = {"image/png": picture, "text/plain": f"Figure: {self.finding}"}
        if self.compared:
            shown[printed.MIME] = list(self.compared)
        return shown, {"image/png": about}

    def keep(self, place: Path) -> None:
        """Writes `place`.svg, .pdf and, of what is drawn, .csv; the same figure gives the same
        bytes.
        """
        with matplotlib.rc_context({"svg.hashsalt": "leak atlas"}):
            self.savefig(f"{place}.svg", metadata={"Date": None})
            self.savefig(f"{place}.pdf", metadata={"CreationDate": None})
        if self.numbers is not None:
            self.numbers.to_csv(f"{place}.csv", index=False, float_format="%.6g")

    def png(self) -> str:
        """The picture in base64; the same figure gives the same bytes."""
        raw = io.BytesIO()
        self.savefig(raw, format="png", dpi=self.dpi * SHARPER)
        small = with_fewer_colours(Image.open(raw).convert("RGB"))
        return png(small, optimize=True)


def with_fewer_colours(picture: Image.Image) -> Image.Image:
    """The picture in `COLOURS` colours: the most frequent ones, which do not change, and some that
    are near all others. Pillow's palette alone gives pale bands of two hues the same colour.
    """
    pixels = np.asarray(picture, np.int32)
    codes = pixels @ np.array([256 * 256, 256, 1], np.int32)  # one number for each colour
    unique, place, count = np.unique(codes, return_inverse=True, return_counts=True)
    colours = np.stack([unique >> 16, unique >> 8 & 255, unique & 255], axis=1)
    frequent = colours[np.argsort(-count, kind="stable")[:UNCHANGED]]
    others = COLOURS - len(frequent)
    near_all = picture.quantize(others, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    rest = np.array(near_all.getpalette() or []).reshape(-1, 3)[:others]
    palette = np.concatenate([frequent, rest])
    squares = (colours[:, None] - palette) ** 2
    nearest = squares.sum(axis=2).argmin(axis=1)
    small = Image.fromarray(nearest[place].reshape(codes.shape).astype(np.uint8), "P")
    small.putpalette(palette.astype(np.uint8).tobytes())
    return small


# ---------------------------------------------------------------- tables in, looks out


def numbers(*tables: pd.DataFrame) -> pd.DataFrame:
    """What marks draw: `x`, `y` and the ends of their intervals, with the names of the rows."""
    drawn = pd.concat(tables, ignore_index=True)
    if "_at" in drawn:  # x is the place of a name
        drawn = drawn.drop(columns=["_at", "_x"])
    return drawn.rename(columns=lambda name: str(name).removeprefix("_"))


def spans(frame: Frame, value: str = "value", name: str = "_y") -> pd.DataFrame:
    """A copy with number, low and high ends as columns `name`, `name_low`, `name_high`.

    The column `value` holds Estimates, or numbers whose ends stand in `low` and `high` or are the
    numbers themselves. An interval without an end reaches far outside the figure.
    """
    table = frame.copy() if isinstance(frame, pd.DataFrame) else pd.DataFrame(list(frame))
    given = table[value]
    known = table.assign(value=given)
    if any(isinstance(one, Estimate) for one in given):
        estimates = []
        for one in given:
            if isinstance(one, Estimate):
                estimates.append(one)
                continue
            number = np.nan if one is None else float(one)  # a plain number has no interval
            estimates.append(Estimate(number, number, number))
        known = pd.DataFrame([vars(one) for one in estimates], index=table.index)
    columns = {"value": name, "low": f"{name}_low", "high": f"{name}_high"}
    for end, column in columns.items():
        numbers = known.get(end, given).astype(float)
        table[column] = numbers.clip(-FAR, FAR)
    return table


def limits(
    reference: float | None, *tables: pd.DataFrame, name: str = "_y", least: float = 0.05
) -> tuple[float, float]:
    """Limits of an axis: all values, their intervals unless these are much wider than the values
    differ, and the reference if it is near.

    An interval over two models may be wider than the axis should be; over one model it is infinite.
    """
    values = pd.concat([table[name] for table in tables]).dropna()
    if values.empty:
        return 0.0, 1.0
    low = values.min()
    high = values.max()
    reach = max(high - low, least)
    shown = [low, high]
    for table in tables:
        ends = table.filter([f"{name}_low", f"{name}_high"])
        shown += list(ends.clip(low - reach, high + reach).stack())
    is_near = reference is not None and low - 2 * reach <= reference <= high + 2 * reach
    if is_near:
        shown.append(reference)
    margin = 0.07 * reach
    return float(min(shown) - margin), float(max(shown) + margin)


def levels(table: pd.DataFrame, column: str | None) -> list[Any]:
    """The column's values in the order of their first appearance."""
    return [None] if column is None else list(dict.fromkeys(table[column]))


def only(table: pd.DataFrame, column: str | None, level: Any) -> pd.DataFrame:
    return table if column is None or column not in table else table[table[column] == level]


class Look(NamedTuple):
    """How a series is drawn; `label` is its name in the key, "" where it has none."""

    label: str
    colour: Any
    marker: str
    dash: Any
    size: float = 6.0  # of a marker, points


def looks_of(series: Sequence[Any]) -> dict[Any, Look]:
    """A look for each series; quantities go from light to dark, names get colours that differ."""
    are_numbers = [isinstance(name, int | float | np.number) for name in series]
    ordered = len(series) > 1 and all(are_numbers)
    many = ordered or len(series) > len(MARKERS)
    colours = sns.color_palette(SEQUENTIAL if many else None, len(series))
    dashes = cycle("-" if ordered else DASHES)
    looks = {}
    for name, colour, marker, dash in zip(series, colours, cycle(MARKERS), dashes, strict=False):
        label = "" if name is None else proper(str(name))
        looks[name] = Look(label, colour, marker, dash)
    return looks


# ---------------------------------------------------------------- panels


def columns(count: int, widest: int) -> int:
    """The number of columns for `count` panels, at most `widest`: as few rows as possible, of
    nearly equal length (5 panels are 3 and 2, not 4 and 1).
    """
    rows = -(-max(count, 1) // widest)
    return -(-max(count, 1) // rows)


def panels_of(
    keys: Sequence[Any], height: float, widest: int = 4, share: bool = False, width: float = WIDTH
) -> tuple[dict[Any, Axes], Sheet]:
    """One axes per key: a row that wraps, or rows and columns where the keys are pairs."""
    places = _places(keys, widest)
    down = len(places)
    across = len(places[0])
    size = width, down * height
    if len(keys) == 1:
        size = 0.8 * width, height + 0.6
    fig = Sheet(figsize=size)
    mosaic: Any = places
    panels = fig.subplot_mosaic(mosaic, empty_sentinel=-1, sharex=share, sharey=share)
    crossed = _pairs(keys) and min(down, across) > 1
    for number, key in enumerate(keys):
        ax = panels[number]
        if crossed:
            _name_crossed(ax, *key)
        else:
            parts = key if isinstance(key, tuple) else [key]
            name_panel(ax, ", ".join(str(part) for part in parts if part))
        if share:
            ax.label_outer()
    return {key: panels[number] for number, key in enumerate(keys)}, fig


def _pairs(keys: Sequence[Any]) -> bool:
    return all(isinstance(key, tuple) for key in keys)


def _places(keys: Sequence[Any], widest: int) -> list[list[int]]:
    """Rows of the numbers of keys, -1 where no panel stands."""
    if not _pairs(keys):
        wide = columns(len(keys), widest)
        numbers = np.pad(np.arange(len(keys)), (0, -len(keys) % wide), constant_values=-1)
        return numbers.reshape(-1, wide).tolist()
    number_of = {key: number for number, key in enumerate(keys)}
    across = dict.fromkeys(column for _, column in keys)
    places = []
    for row in dict.fromkeys(row for row, _ in keys):
        places.append([number_of.get((row, column), -1) for column in across])
    return places


def _name_crossed(ax: Axes, row: Any, column: Any) -> None:
    """The column's name above the first row, the row's at the left of the first column."""
    place: Any = ax.get_subplotspec()
    if place.is_first_row():
        name_panel(ax, str(column))
    if place.is_first_col():
        fig: Any = ax.figure
        height = 0.72 * fig.get_figheight() / place.get_gridspec().nrows
        name = wrapped(str(row), height, 10)
        ax.set_ylabel(name, fontweight="bold", fontsize=9.5, color=INK)


def room(ax: Axes) -> float:
    """About how wide a panel is, inches."""
    place: Any = ax.get_subplotspec()
    fig: Any = ax.figure
    share = len(place.colspan) / place.get_gridspec().ncols
    return float(0.8 * share * fig.get_figwidth() - 0.15)


def name_panel(ax: Axes, name: str, width: float = 0.0) -> None:
    """A panel's name above it, in lines as wide as the panel, or of `width` inches."""
    fig: Any = ax.figure
    lines = wrapped(name, width or room(ax), 10)
    fig.deeper = max(fig.deeper, 10 * LINE * lines.count("\n"))
    ax.set_title(lines)


def note_above(ax: Axes, note: str) -> None:
    """A quiet line between the panel's name and the panel."""
    lines = wrapped(note, room(ax), 8.5)
    offset: Style = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate(lines, (0, 1), (0, 5), color=QUIET, fontsize=8.5, **offset)
    ax.set_title(ax.get_title(loc="left"), pad=7 + 12 * (lines.count("\n") + 1))


def name_parts(ax: Axes, names: Sequence[str], panels: int = 1) -> None:
    """Names under the axis, which lean where they are long."""
    fig: Any = ax.figure
    ax.set_xlim(-0.45, len(names) - 0.55)
    ax.grid(axis="x", visible=False)
    apart = 0.8 * fig.get_figwidth() / panels / len(names)  # inches
    letters = max(map(len, names), default=0)
    longest = 9 * LETTER * letters  # inches
    style: Style = {}
    if longest > apart - 0.05:
        style = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
        fig.deeper = max(fig.deeper, 0.5 * longest - 0.3)
    ax.set_xticks(range(len(names)), names, **style)


# ---------------------------------------------------------------- words


def finish(
    fig: Sheet, key: Mapping[str, Any], title: str = "", xlabel: str = "", ylabel: str = ""
) -> None:
    """The finding on top, the key (artists by their labels) under it, as one legend; the panels
    keep their size.
    """
    fig.finding = proper(title)
    width, body = fig.get_size_inches()
    fig.set_layout_engine("constrained", w_pad=0.05, h_pad=0.05)
    if xlabel:
        fig.supxlabel(wrapped(xlabel, width), **AXIS)
    labels = [wrapped(label, width - 0.6, 8.5) for label in key]
    across = _across(labels, width)
    words = wrapped(title, width - 0.1, 11, "bold")
    head = fig.legend(key.values(), labels, title=words, ncols=across, **HEAD)
    tall = 0.0  # inches
    if key or title:
        tall = head.get_window_extent().height / fig.dpi + 0.1
    fig.set_size_inches(width, body + tall + fig.deeper)
    if ylabel:  # beside the panels, not beside the key above them
        middle = (body / 2 + fig.deeper) / fig.get_figheight()
        fig.supylabel(wrapped(ylabel, body - 0.5), y=middle, **AXIS)


def _across(labels: Sequence[str], width: float) -> int:
    """How many columns of the key fit into `width` inches, 1 at least."""
    entries = []  # inches
    for label in labels:
        letters = max(map(len, label.split("\n")))
        entries.append(8.5 * LETTER * letters + 0.5)
    if sum(entries) < width:
        return max(len(entries), 1)
    return max(int(width / max(entries)), 1)


def wrapped(text: str, room: float, size: float = 9, weight: str = "normal") -> str:
    """The text in lines of at most `room` inches at a font `size` in points."""
    font = FontProperties(size=size, weight=weight)
    letters = max(8, int(room / (size * LETTER)))
    while True:
        lines: list[str] = []
        for line in proper(text).split("\n"):
            lines += textwrap.wrap(line, letters, break_long_words=False, break_on_hyphens=False)
        widest = max(
            (TextPath((0, 0), line, prop=font).get_extents().width for line in lines), default=0
        )
        # a drawn line is a little wider than its outline; 72 points an inch
        if widest <= 0.98 * 72 * room or letters <= 8:
            return "\n".join(lines)
        letters -= 1
