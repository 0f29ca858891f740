"""What every figure stands on: the style, a sheet that shows itself, panels, looks, words that fit
their place.
"""

from __future__ import annotations

import io
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import chain, combinations, count, cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import matplotlib.style
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.path import Path as Outline
from matplotlib.transforms import Affine2D
from PIL import Image

from leak_atlas.audit import Estimate
from leak_atlas.report.markup import png

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text

Frame: TypeAlias = "pd.DataFrame | Sequence[Mapping[str, Any]]"

matplotlib.style.use(Path(__file__).with_name("leakatlas.mplstyle"))

INK, QUIET, FAINT, WASH, FLOOR = "#1f2933", "#5b6570", "#9aa5b1", "#e4e7eb", "#dfe3e8"
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
COUNTED = count(1)  # figures that this kernel has shown
SHARPER, COLOURS = 2.0, 128  # dots per dot of the page, colours of a picture
LETTER, LINE = 0.066, 0.15  # inches: of a name's letter, of its line
HEAD: dict[str, Any] = {
    "loc": "outside upper left",
    "alignment": "left",
    "borderaxespad": 0.4,
    "title_fontproperties": {"size": 11, "weight": "bold"},
}
WIDTH = 8.4  # inches: 924 pixels, a text column of a page at one and a quarter
NARROW = 4.6  # inches: on a phone of 390 pixels letters are still 9 pixels high


class Sheet(Figure):
    """A Figure that belongs to no window system: shown where a cell returns it, once, as a small
    sharp PNG.

    Twice the dots at the same size on the page, in a palette of few colours; its title is its
    description for those who cannot see it. What moves with a slider are animated artists in
    `moving`; `still` are the pixels of the rest, once they are drawn.
    """

    finding = ""
    deeper = 0.0  # inches that long names under or over its panels take from them
    numbers: pd.DataFrame | None = None  # what is drawn
    moving: Sequence[Artist] = ()
    still: Any = None

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        about: dict[str, Any] = {"width": round(self.bbox.width), "alt": self.finding}
        picture = self.png()
        # a batch's, in whose page this figure comes to stand
        if place := os.environ.get("LEAK_ATLAS_FIGURES"):
            about["figure"] = Path(place).name + f".fig{next(COUNTED)}"
            about["overlaps"] = overlaps(self)
            self.keep(Path(place).with_name(about["figure"]))
        return {"image/png": picture, "text/plain": f"Figure: {self.finding}"}, {"image/png": about}

    def keep(self, place: Path) -> None:
        """Writes `place`.svg, .pdf and, of what is drawn, .csv; the same figure gives the same
        bytes.
        """
        layout, self._layout_engine = self.get_layout_engine(), None  # as `png` has laid it out
        with matplotlib.rc_context({"svg.hashsalt": "leak atlas"}):
            for kind, clock in (("svg", "Date"), ("pdf", "CreationDate")):
                self.savefig(f"{place}.{kind}", metadata={clock: None})
        self._layout_engine = layout
        if self.numbers is not None:
            self.numbers.to_csv(f"{place}.csv", index=False, float_format="%.6g")

    def png(self) -> str:
        """The picture in base64; the same figure gives the same bytes."""
        self.savefig(raw := io.BytesIO(), format="png", dpi=self.dpi * SHARPER)
        whole = Image.open(raw).convert("RGB")
        return png(
            whole.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE),
            optimize=True,
        )


# ---------------------------------------------------------------- tables in, looks out


def numbers(*tables: pd.DataFrame) -> pd.DataFrame:
    """What marks draw: `x`, `y` and the ends of their intervals, with all that tells rows apart."""
    drawn = pd.concat(tables, ignore_index=True)
    # where a name has its place
    drawn = drawn.drop(columns=["_at", "_x"] if "_at" in drawn else [])
    own = [name for name in drawn if str(name).startswith("_")]
    columns = [
        name
        for name in drawn
        if name not in own and not drawn[name].map(lambda one: isinstance(one, Estimate)).any()
    ]
    words = drawn[columns].map(
        lambda one: ", ".join(map(str, one)) if isinstance(one, tuple) else one
    )
    return words.drop(columns=[name[1:] for name in own], errors="ignore").join(
        drawn[own].rename(columns=lambda n: n[1:])
    )


def spans(frame: Frame, value: str = "value", name: str = "_y") -> pd.DataFrame:
    """A copy with number, low and high ends as columns `name`, `name_low`, `name_high`.

    The column `value` holds Estimates, or numbers; their ends then stand in `value_low` and
    `value_high`, or in `low` and `high`.
    """
    table = frame.copy() if isinstance(frame, pd.DataFrame) else pd.DataFrame(list(frame))
    known = len(table) and isinstance(table[value].iloc[0], Estimate)
    for end in ("value", "low", "high"):
        given = next(
            (each for each in (f"{value}_{end}", end) if each in table and end != "value"), value
        )
        found = [getattr(each, end) for each in table[value]] if known else table[given]
        table[name if end == "value" else f"{name}_{end}"] = np.asarray(found, float)
    return table


def limits(
    null: float | None, *tables: pd.DataFrame, name: str = "_y", least: float = 0.05
) -> tuple[float, float]:
    """Limits of an axis: all values, their intervals as far as these do not dwarf them, and `null`
    where it is near.

    An interval over two models may reach beyond the plane, one over a single model is infinite.
    Such intervals are cut in the tables, one length of the axis outside it, so that they leave the
    frame.
    """
    values = np.concatenate([table[name].to_numpy(float) for table in tables])
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    low, high = values.min(), values.max()
    reach = max(high - low, least)
    ended = [table for table in tables if f"{name}_low" in table]
    low = max(low - reach, np.min([table[f"{name}_low"].min() for table in ended], initial=low))
    high = min(high + reach, np.max([table[f"{name}_high"].max() for table in ended], initial=high))
    if null is not None and low - reach <= null <= high + reach:
        low, high = min(low, null), max(high, null)
    margin = 0.07 * max(high - low, least)
    low, high = float(low - margin), float(high + margin)
    for table in ended:
        for end, far in ((f"{name}_low", low - reach), (f"{name}_high", high + reach)):
            table[end] = table[end].fillna(far).clip(low - reach, high + reach)
    return low, high


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
    ordered = len(series) > 1 and all(isinstance(name, int | float | np.number) for name in series)
    many = ordered or len(series) > len(MARKERS)
    colours: Any = sns.color_palette(SEQUENTIAL if many else None, len(series))
    labels = ["" if name is None else proper(str(name)) for name in series]
    looks = zip(labels, colours, cycle(MARKERS), cycle("-" if ordered else DASHES), strict=False)
    return {name: Look(*look) for name, look in zip(series, looks, strict=True)}


def readable(colour: Any) -> tuple[float, ...]:
    """The colour, darkened until it can be read as text on white."""
    rgb = np.array(to_rgb(colour))
    return tuple(rgb * min(1.0, 0.42 / (rgb @ [0.2126, 0.7152, 0.0722] + 1e-9)))


# ---------------------------------------------------------------- the sheet


def columns(count: int, widest: int) -> int:
    """As few rows as fit, and rows as even as they go: 5 panels are 3 and 2, not 4 and 1."""
    return max(1, -(-count // -(-count // widest))) if count else 1


def panels_of(
    keys: Sequence[Any], height: float, widest: int = 4, share: bool = False, width: float = WIDTH
) -> tuple[dict[Any, Axes], Sheet]:
    """One axes per key: a row that wraps, rows and columns where the keys are pairs, or the places
    of a mosaic.

    A mosaic is a list of rows; a key that stands in several places has one large panel.
    """
    rows, pairs = _rows_of(keys, widest)
    across = len(rows[0])
    crossed, alone = pairs and min(len(rows), across) > 1, len(rows) == across == 1
    fig = Sheet(figsize=((0.8 if alone else 1.0) * width, len(rows) * height + 0.6 * alone))
    known = [key for key in dict.fromkeys(chain.from_iterable(rows)) if key != ""]
    places: list[Any] = [[known.index(key) if key != "" else -1 for key in row] for row in rows]
    panels = fig.subplot_mosaic(places, empty_sentinel=-1, sharex=share, sharey=share)
    axes = {key: panels[i] for i, key in enumerate(known)}
    for key, ax in axes.items():
        place: Any = ax.get_subplotspec()
        row, name = key if crossed else ("", _words(key))
        room = 0.8 * len(place.colspan) / across * fig.get_figwidth() - 0.15
        name_panel(ax, str(name) if not crossed or place.is_first_row() else "", room)
        if crossed and place.is_first_col():
            label = ax.set_ylabel(proper(str(row)), fontweight="bold", fontsize=9.5, color=INK)
            fit(label, 0.72 * height)
        if share:
            ax.label_outer()
    return axes, fig


def _rows_of(keys: Sequence[Any], widest: int) -> tuple[list[list[Any]], bool]:
    """Rows of keys, "" where no panel stands; and whether the keys are pairs (row, column)."""
    if isinstance(keys[0], list):
        return list(keys), False
    if all(isinstance(key, tuple) and len(key) == 2 for key in keys):
        down, across = (list(dict.fromkeys(part)) for part in zip(*keys, strict=True))
        return [[(row, at) if (row, at) in keys else "" for at in across] for row in down], True
    wide = columns(len(keys), widest)
    filled = [*keys, *[""] * (-len(keys) % wide)]
    return [filled[i : i + wide] for i in range(0, len(filled), wide)], False


def _words(key: Any) -> str:
    if isinstance(key, tuple):
        return ", ".join(str(part) for part in key if part)
    return "" if key is None else str(key)


def name_panel(ax: Axes, name: str, room: float) -> None:
    """A panel's name above it, in lines of at most `room` inches."""
    fig: Sheet = ax.figure.get_figure(root=True)  # type: ignore[assignment]
    fit(named := ax.set_title(proper(name)), room)
    fig.deeper = max(fig.deeper, 0.16 * named.get_text().count("\n"))


def name_parts(ax: Axes, names: Sequence[str], panels: int = 1) -> None:
    """Names under the axis; blocks (`stage4.1`) get their stage's name once, under their own; long
    names lean.
    """
    fig: Sheet = ax.figure.get_figure(root=True)  # type: ignore[assignment]
    blocks = [re.fullmatch(r"([^\W\d]\w*)\.(\S+)", name) for name in names]  # `0.1 %` is none
    stages: dict[str, list[int]] = {}
    shown = list(names)
    for i, block in enumerate(blocks):
        if block:
            stages.setdefault(block[1], []).append(i)
            shown[i] = block[2].removeprefix("block")
    room = 0.8 * fig.get_figwidth() / panels
    if LETTER * sum(len(name) + 1 for name in shown) > room:
        _lean(ax, shown, room)
    else:
        ax.set_xticks(range(len(names)), shown)
    ax.set_xlim(-0.45, len(names) - 0.55)
    ax.grid(axis="x", visible=False)
    style: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 8.5, "color": QUIET}
    place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    for stage, at in stages.items():
        ax.annotate(stage, (np.mean(at), 0), (0, -17), annotation_clip=False, **place, **style)
        ax.axvline(at[0] - 0.5, color=WASH, linewidth=0.8, zorder=0)


def _lean(ax: Axes, names: Sequence[str], room: float) -> None:
    """Names under the axis, `room` inches long, turned as little as their lines allow."""
    fig: Sheet = ax.figure.get_figure(root=True)  # type: ignore[assignment]
    apart = room / len(names)
    angle, steep = 90, 0.0
    for angle in (60, 90) if LETTER * max(map(len, names)) > 1.5 else (30, 60, 90):
        steep = np.sin(np.deg2rad(angle))
        if apart * steep > LINE:
            break
    lines = max(1, int(apart * steep / LINE))
    wrapped = [textwrap.fill(name, max(24, -(-len(name) // lines) + 4)) for name in names]
    fig.deeper = max(fig.deeper, LETTER * max(map(_longest, wrapped)) * steep - 0.7)
    side = "center" if angle > 30 else "top"
    ax.set_xticks(range(len(names)), wrapped, rotation=angle, rotation_mode="anchor")
    for label in ax.get_xticklabels():
        label.set(ha="right", va=side)


def finish(
    fig: Sheet, key: Mapping[str, Any], title: str = "", xlabel: str = "", ylabel: str = ""
) -> None:
    """The finding on top, the key (artists by their labels) under it, as one legend; the panels
    keep their size.
    """
    fig.finding = proper(title)
    width, body = fig.get_size_inches()
    style: dict[str, Any] = {"fontsize": 9, "color": "#3e4c59"}
    below = fig.supxlabel(proper(xlabel), **style) if xlabel else None
    beside = fig.supylabel(proper(ylabel), **style) if ylabel else None
    if below:
        fit(below, width)
    if beside:
        fit(beside, body - 0.5)
    for across in range(len(key) or 1, 0, -1):
        head = fig.legend(key.values(), key.keys(), title=fig.finding, ncols=across, **HEAD)
        fit(head.get_title(), 0.985 * width)
        if across == 1 or head.get_window_extent().width < 0.98 * fig.bbox.width:
            break
        head.remove()
    tall = head.get_window_extent().height / fig.dpi + 0.1 if key or title else 0.0
    fig.set_size_inches(width, body + tall + fig.deeper)
    if beside:  # the panels, not the key above them
        beside.set_y((body / 2 + fig.deeper) / fig.get_figheight())
    fig.set_layout_engine("constrained", w_pad=0.05, h_pad=0.05)


# ---------------------------------------------------------------- words


def proper(text: str) -> str:
    """The text with a true minus before its numbers."""
    return re.sub(r"(?<![\w-])-(?=\.?\d)", "−", text)


def _longest(text: str) -> int:
    return max(map(len, text.split("\n")), default=0)


def fit(text: Text, room: float) -> None:
    """Breaks a text into lines that are at most `room` inches long, as they are drawn."""
    words, letters = text.get_text(), len(text.get_text())
    while letters:
        text.set_text(textwrap.fill(words, letters, break_long_words=False, break_on_hyphens=False))
        box = text.get_window_extent()
        long = (box.height if text.get_rotation() else box.width) / text.figure.dpi  # type: ignore[union-attr]
        if long <= room:
            return
        letters = min(letters - 1, int(letters * room / long) + 2)


def note_above(ax: Axes, note: str, room: float) -> None:
    """A quiet line, if there is one, between the panel's name and the panel, at most `room` inches
    long.
    """
    if note:
        offset: dict[str, Any] = {
            "xytext": (0, 5),
            "xycoords": "axes fraction",
            "textcoords": "offset points",
        }
        fit(label := ax.annotate(proper(note), (0, 1), color=QUIET, fontsize=8.5, **offset), room)
        lines = label.get_text().count("\n") + 1
        ax.set_title(name := ax.get_title(loc="left"), pad=7 + 12 * lines if name else 6)


# ---------------------------------------------------------------- what a reader could not read


def overlaps(fig: Figure, most: float = 2.0) -> list[str]:
    """Words of a figure that others overprint, or that the canvas cuts, by more than `most` dots."""
    from matplotlib.text import Text

    fig.draw_without_rendering()
    axes = [axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)]
    owner = {label: axis for axis in axes for label in axis.get_ticklabels(which="both")}
    outlines = [
        (text.get_text(), _outline(text, most))  # type: ignore[attr-defined]
        for text in fig.findobj(Text)
        if _seen(text, owner.get(text))
    ]
    canvas = fig.bbox.padded(most / 2)
    problems = [
        f"'{words}' is cut"
        for words, outline in outlines
        if not all(canvas.contains(x, y) for x, y in np.asarray(outline.vertices))
    ]
    for (words, outline), (others, beyond) in combinations(outlines, 2):
        if outline.intersects_path(beyond):
            problems.append(f"'{words}' meets '{others}'")
    return problems


def _seen(text: Any, axis: Any) -> bool:
    """Is it drawn? A tick of an `axis` beyond its limits is not."""
    if not (text.get_text().strip() and text.get_visible() and text.get_alpha() != 0):
        return False
    if axis is None:
        return True
    at, (low, high) = text.get_position()[axis.axis_name == "y"], sorted(axis.get_view_interval())
    return bool(axis.axes.get_visible() and axis.get_visible() and low <= at <= high)


def _outline(text: Any, margin: float) -> Outline:
    """A text's box in dots, turned as the text is, smaller by `margin` dots."""
    box, angle = text.get_window_extent(), text.get_rotation()
    text.set_rotation(0)
    flat = text.get_window_extent()
    text.set_rotation(angle)
    size = max(flat.width - margin, 1), max(flat.height - margin, 1)
    placed = Affine2D().translate(-0.5, -0.5).scale(*size).rotate_deg(angle)
    return Outline.unit_rectangle().transformed(
        placed.translate((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
    )
