"""What every figure stands on: the style, a sheet that shows itself, panels, looks, words that fit their place."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import matplotlib.style
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from lib.audit import Estimate
from lib.report.markup import png

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text

Frame: TypeAlias = "pd.DataFrame | Sequence[Mapping[str, Any]]"

matplotlib.style.use(Path(__file__).with_name("leakatlas.mplstyle"))

INK, QUIET, FAINT, WASH, FLOOR = "#1f2933", "#5b6570", "#9aa5b1", "#e4e7eb", "#dfe3e8"
SEQUENTIAL = "crest"
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (3, 1)), (0, (8, 2)), (0, (1, 2.5)))
SHARPER, COLOURS = 2.0, 128  # dots per dot of the page, colours of a picture
HEAD: dict[str, Any] = {"loc": "outside upper left", "alignment": "left", "borderaxespad": 0.4,
                        "title_fontproperties": {"size": 11, "weight": "bold"}}  # fmt: skip
WIDTH = 8.4  # inches: 924 pixels, a text column of a page at one and a quarter


class Sheet(Figure):
    """A Figure that belongs to no window system: shown where a cell returns it, once, as a small sharp PNG.

    Twice the dots at the same size on the page, in a palette of few colours; its title is its description for
    those who cannot see it. What moves with a slider are animated artists in `moving`; `still` are the pixels of the
    rest, once they are drawn.
    """

    finding = ""
    numbers: pd.DataFrame | None = None  # what is drawn
    moving: Sequence[Artist] = ()
    still: Any = None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        about = {"width": round(self.bbox.width), "alt": self.finding}
        return {"image/png": self.png(), "text/plain": f"Figure: {self.finding}"}, {"image/png": about}

    def png(self) -> str:
        """The picture in base64; the same figure gives the same bytes."""
        self.savefig(raw := io.BytesIO(), format="png", dpi=self.dpi * SHARPER)
        whole = Image.open(raw).convert("RGB")
        return png(whole.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE), optimize=True)


# ---------------------------------------------------------------- tables in, looks out


def numbers(*tables: pd.DataFrame) -> pd.DataFrame:
    """What marks draw: `x`, `y` and the ends of their intervals, with all that tells rows apart."""
    drawn = pd.concat(tables, ignore_index=True)
    drawn = drawn.drop(columns=["_at", "_x"] if "_at" in drawn else [])  # where a name has its place
    own = [name for name in drawn if str(name).startswith("_")]
    told = [
        name for name in drawn if name not in own and not drawn[name].map(lambda one: isinstance(one, Estimate)).any()
    ]
    words = drawn[told].map(lambda one: ", ".join(map(str, one)) if isinstance(one, tuple) else one)
    return words.drop(columns=[name[1:] for name in own], errors="ignore").join(
        drawn[own].rename(columns=lambda n: n[1:])
    )


def spans(frame: Frame, value: str = "value", name: str = "_y") -> pd.DataFrame:
    """A copy with number, low and high ends as columns `name`, `name_low`, `name_high`.

    The column `value` holds Estimates, or numbers; their ends then stand in `value_low` and `value_high`, or in `low`
    and `high`.
    """
    table = frame.copy() if isinstance(frame, pd.DataFrame) else pd.DataFrame(list(frame))
    known = len(table) and isinstance(table[value].iloc[0], Estimate)
    for end in ("value", "low", "high"):
        given = next((each for each in (f"{value}_{end}", end) if each in table and end != "value"), value)
        found = [getattr(each, end) for each in table[value]] if known else table[given]
        table[name if end == "value" else f"{name}_{end}"] = np.asarray(found, float)
    return table


def limits(null: float | None, *tables: pd.DataFrame, name: str = "_y", least: float = 0.05) -> tuple[float, float]:
    """Limits of an axis: all values, their intervals as far as these do not dwarf them, and `null` where it is near.

    An interval over two models may reach beyond the plane, one over a single model is infinite. Such intervals are cut
    in the tables, one length of the axis outside it, so that they leave the frame.
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
    keys: Sequence[Any], height: float, widest: int = 4, share: bool = False
) -> tuple[dict[Any, Axes], Sheet]:
    """One axes per key: a row that wraps, rows and columns where the keys are pairs, or the places of a mosaic.

    A mosaic is a list of rows; a key that stands in several places has one large panel.
    """
    pairs, layout = all(isinstance(key, tuple) and len(key) == 2 for key in keys), list(keys)
    if pairs:
        downs, acrosses = (list(dict.fromkeys(part)) for part in zip(*keys, strict=True))
        layout = [[(row, name) if (row, name) in keys else "" for name in acrosses] for row in downs]
    elif not isinstance(keys[0], list):
        across = columns(len(keys), widest)
        filled = [*keys, *[""] * (-len(keys) % across)]
        layout = [filled[i : i + across] for i in range(0, len(filled), across)]
    alone, grown = layout == [[keys[0]]], pairs and min(len(layout), len(layout[0])) > 1
    fig = Sheet(figsize=(0.8 * WIDTH if alone else WIDTH, len(layout) * height + (0.6 if alone else 0)))
    number = {key: i for i, key in enumerate(dict.fromkeys(key for row in layout for key in row if key != ""))}
    places: list[Any] = [[number.get(key, -1) for key in row] for row in layout]
    made = fig.subplot_mosaic(places, empty_sentinel=-1, sharex=share, sharey=share)
    axes = {key: made[i] for key, i in number.items()}
    for key, ax in axes.items():
        row, name = key if grown else ("", ", ".join(str(part) for part in key if part) if pairs else key)
        ax.set_title(proper(str(name)) if name is not None and not (grown and row != downs[0]) else "")
        if grown and name == acrosses[0]:
            fit(ax.set_ylabel(proper(str(row)), fontweight="bold", fontsize=9.5, color=INK), 0.72 * height)
        if share:
            ax.label_outer()
    return axes, fig


def name_parts(ax: Axes, names: Sequence[str], panels: int = 1) -> None:
    """Names under the axis; blocks (`stage4.1`) get their stage's name once, under their own; long names lean."""
    owners = [name.partition(".")[0] for name in names]
    shown = [name.partition(".")[2].removeprefix("block") or name for name in names]
    room = ax.figure.get_figure(root=True).get_size_inches()[0] / panels * 0.8  # type: ignore[union-attr]
    long = 0.066 * sum(len(name) + 1 for name in shown) > room
    lean: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if long else {}
    ax.set_xticks(range(len(names)), shown, **lean)
    ax.set_xlim(-0.45, len(names) - 0.55)
    ax.grid(axis="x", visible=False)
    for owner in dict.fromkeys(own for own, name in zip(owners, names, strict=True) if own != name):
        places = [i for i, own in enumerate(owners) if own == owner]
        ax.annotate(
            owner, (np.mean(places), 0), (0, -17), xycoords=("data", "axes fraction"), textcoords="offset points",
            ha="center", va="top", fontsize=8.5, color=QUIET, annotation_clip=False,
        )  # fmt: skip
        ax.axvline(places[0] - 0.5, color=WASH, linewidth=0.8, zorder=0)


def finish(fig: Sheet, key: Mapping[str, Any], title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """The finding on top, the key (artists by their labels) under it, as one legend; the panels keep their size."""
    fig.finding = proper(title)
    width, body = fig.get_size_inches()
    for label, room, put in ((xlabel, width, fig.supxlabel), (ylabel, body - 0.5, fig.supylabel)):
        if label:
            fit(put(proper(label), fontsize=9, color="#3e4c59"), room)
    for across in range(len(key) or 1, 0, -1):
        head = fig.legend(key.values(), key.keys(), title=fig.finding, ncols=across, **HEAD)
        fit(head.get_title(), 0.985 * width)
        if across == 1 or head.get_window_extent().width < fig.bbox.width:
            break
        head.remove()
    tall = head.get_window_extent().height / fig.dpi + 0.1 if key or title else 0.0
    fig.set_size_inches(width, body + tall)
    fig.set_layout_engine("constrained", w_pad=0.05, h_pad=0.05)


# ---------------------------------------------------------------- words


def proper(text: str) -> str:
    """The text with a true minus before its numbers."""
    return re.sub(r"(?<![\w-])-(?=\.?\d)", "−", text)


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


def note_above(ax: Axes, note: str) -> None:
    """A quiet line, if there is one, between the panel's name and the panel."""
    if note:
        ax.set_title(name := ax.get_title(loc="left"), pad=19 if name else 6)
        offset: dict[str, Any] = {"xytext": (0, 5), "xycoords": "axes fraction", "textcoords": "offset points"}
        ax.annotate(proper(note), (0, 1), color=QUIET, fontsize=8.5, **offset)
