"""What every figure stands on: the one style, a sheet that shows itself, panels, axes, names and keys."""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import matplotlib.style
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lib.report.tables import is_estimate

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Frame: TypeAlias = "pd.DataFrame | Sequence[Mapping[str, Any]]"

matplotlib.style.use(Path(__file__).with_name("leakatlas.mplstyle"))

INK, QUIET, FAINT, WASH = "#1f2933", "#5b6570", "#9aa5b1", "#e4e7eb"
SEQUENTIAL = "crest"
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (3, 1)), (0, (8, 2)), (0, (1, 2.5)))
SHARPER, COLOURS = 2.0, 128  # dots per dot of the page, colours of a picture
WIDTH = 8.4  # inches: 924 pixels, a text column of a page at one and a quarter


class Sheet(Figure):
    """A Figure that belongs to no window system: shown where a cell returns it, once, as a small sharp PNG.

    Twice the dots at the same size on the page, in a palette of few colours; its title is its description for
    those who cannot see it.
    """

    finding = ""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        wide = round(self.get_size_inches()[0] * self.dpi)
        data = {"image/png": base64.b64encode(self.png()).decode(), "text/plain": f"Figure: {self.finding}"}
        return data, {"image/png": {"width": wide, "alt": self.finding}}

    def png(self, sharper: float = SHARPER) -> bytes:
        """The picture; the same figure gives the same bytes."""
        from PIL import Image

        raw, small = io.BytesIO(), io.BytesIO()
        self.savefig(raw, format="png", dpi=self.dpi * sharper)
        picture = Image.open(raw).convert("RGB")
        picture.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
            small, "PNG", optimize=True
        )
        return small.getvalue()


# ---------------------------------------------------------------- tables in, looks out

HOLLOW: dict[str, Any] = {
    "linestyle": "none", "markerfacecolor": "white", "markeredgewidth": 1.5, "zorder": 4, "markersize": 7,
}  # fmt: skip
FLOOR = "#dfe3e8"


def spans(frame: Frame, value: str, low: str, high: str, name: str = "") -> pd.DataFrame:
    """A copy with number, low and high ends under fixed names, from Estimates or from columns."""
    table = frame.copy() if isinstance(frame, pd.DataFrame) else pd.DataFrame(list(frame))
    whole, bottom, top = name or "_value", f"{name}_low", f"{name}_high"
    if len(table) and is_estimate(table[value].iloc[0]):
        for column, part in ((whole, "value"), (bottom, "low"), (top, "high")):
            table[column] = [float(getattr(item, part)) for item in table[value]]
    else:
        table[whole] = table[value].astype(float)
        for column, given in ((bottom, low), (top, high)):
            table[column] = table[given].astype(float) if given in table else table[whole]
    return table


def limits(
    null: float | None, *tables: pd.DataFrame | None, name: str = "", least: float = 0.05
) -> tuple[float, float]:
    """Limits of an axis: all values, and their intervals as far as these do not dwarf them.

    An interval over two models may reach beyond the plane, one over a single model is infinite; both then leave the
    frame, which is what they say.
    """
    whole, bottom, top = name or "_value", f"{name}_low", f"{name}_high"
    found = [table for table in tables if table is not None]
    values = np.concatenate(
        [table[whole].to_numpy(float) for table in found] + [np.array([] if null is None else [null])]
    )
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    low, high = values.min(), values.max()
    reach = max(high - low, least)
    low = max(low - reach, np.min([table[bottom].min() for table in found], initial=low))
    high = min(high + reach, np.max([table[top].max() for table in found], initial=high))
    margin = 0.07 * max(high - low, least)
    return float(low - margin), float(high + margin)


def within(rows: pd.DataFrame, low: float, high: float, name: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the intervals, cut where they leave the frame; an end that is not known leaves it too."""
    room, known = high - low, np.isfinite(rows[name or "_value"].to_numpy(float))
    ends = (rows[f"{name}_{end}"].to_numpy(float) for end in ("low", "high"))
    bottom, top = (
        np.clip(np.nan_to_num(end, nan=way * np.inf), low - room, high + room)
        for end, way in zip(ends, (-1, 1), strict=True)
    )
    return np.where(known, bottom, np.nan), np.where(known, top, np.nan)


def levels(table: pd.DataFrame, column: str | None) -> list[Any]:
    """The column's values in their order: a Categorical's, or that of first appearance."""
    if column is None:
        return [None]
    if isinstance(table[column].dtype, pd.CategoricalDtype):
        present = set(table[column])
        return [level for level in table[column].cat.categories if level in present]
    return list(dict.fromkeys(table[column]))


def only(table: pd.DataFrame, column: str | None, level: Any) -> pd.DataFrame:
    return table if column is None or column not in table else table[table[column] == level]


def looks_of(series: Sequence[Any]) -> dict[Any, tuple[Any, str, Any]]:
    """Colour, marker and dash of each series; quantities go from light to dark, names get colours that differ."""
    ordered = len(series) > 1 and all(isinstance(name, int | float | np.number) for name in series)
    if ordered or len(series) > len(MARKERS):
        colours: Any = sns.color_palette(SEQUENTIAL, len(series))
    else:
        colours = sns.color_palette(n_colors=len(series))
    return {
        name: (colours[i], MARKERS[i % len(MARKERS)], "-" if ordered else DASHES[i % len(DASHES)])
        for i, name in enumerate(series)
    }


def key_line(look: tuple[Any, str, Any]) -> Line2D:
    colour, marker, dash = look
    return Line2D([], [], color=colour, marker=marker or None, linestyle=dash, markeredgecolor="white", markersize=7)


# ---------------------------------------------------------------- the sheet


def panels_of(keys: list[Any], height: float, widest: int = 4, share: bool = False) -> tuple[dict[Any, Axes], Sheet]:
    """One axes per key: a row that wraps, or rows and columns where the keys are pairs."""
    pairs = bool(keys) and all(isinstance(key, tuple) and len(key) == 2 for key in keys)
    if pairs:
        downs, acrosses = (list(dict.fromkeys(key[i] for key in keys)) for i in (0, 1))
        places = {key: (downs.index(key[0]), acrosses.index(key[1])) for key in keys}
        rows, columns = len(downs), len(acrosses)
    else:
        columns = _columns(len(keys), widest)
        rows = -(-len(keys) // columns)
        places = {key: divmod(i, columns) for i, key in enumerate(keys)}
    alone = len(keys) == 1
    fig = Sheet(figsize=(0.8 * WIDTH if alone else WIDTH, rows * height + (0.6 if alone else 0)))
    axes = fig.subplots(
        rows, columns, squeeze=False, sharex="all" if share else False, sharey="all" if share else False
    )
    used = set(places.values())
    for down in range(rows):
        for across in range(columns):
            if (down, across) not in used:
                axes[down, across].remove()
    grid = {key: axes[place] for key, place in places.items()}
    for key, ax in grid.items():
        if pairs:
            down, across = places[key]
            ax.set_title(f"{key[0]}, {key[1]}" if rows == 1 or columns == 1 else str(key[1]) if down == 0 else "")
            if across == 0 and rows > 1 and columns > 1:
                ax.set_ylabel(str(key[0]), fontweight="bold", fontsize=9.5, color=INK)
        elif key is not None:
            ax.set_title(str(key))
        if share:
            ax.label_outer()
    return grid, fig


def _columns(count: int, widest: int) -> int:
    """As few rows as fit, and rows as even as they go: 5 panels are 3 and 2, not 4 and 1."""
    rows = -(-count // widest)
    return max(1, -(-count // rows)) if count else 1


def name_parts(ax: Axes, names: Sequence[str], panels: int) -> None:
    """Names under the axis; blocks (`stage4.1`) get their stage's name once, under their own; long names lean."""
    groups = [name.split(".", 1)[0] for name in names]
    heads = [name.partition(".")[2].removeprefix("block") for name in names]
    nested = any(heads)
    shown = [head or name for head, name in zip(heads, names, strict=True)] if nested else list(names)
    ax.set_xticks(range(len(names)), shown)
    ax.set_xlim(-0.45, len(names) - 0.55)
    ax.grid(axis="x", visible=False)
    if nested:
        for group in dict.fromkeys(group for group, head in zip(groups, heads, strict=True) if head):
            places = [i for i, own in enumerate(groups) if own == group]
            ax.annotate(
                group, (np.mean(places), 0), (0, -17), xycoords=("data", "axes fraction"), textcoords="offset points",
                ha="center", va="top", fontsize=8.5, color=QUIET, annotation_clip=False,
            )  # fmt: skip
            ax.axvline(places[0] - 0.5, color=WASH, linewidth=0.8, zorder=0)
    room = ax.figure.get_figure(root=True).get_size_inches()[0] / panels * 0.8  # type: ignore[union-attr]
    if 0.066 * sum(len(name) + 1 for name in shown) > room:
        ax.tick_params(axis="x", labelrotation=30)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")


def name_axes(grid: Mapping[Any, Axes], xlabel: str, ylabel: str) -> None:
    """Axis labels once for all panels."""
    fig = next(iter(grid.values())).figure
    if xlabel:
        fig.supxlabel(xlabel, fontsize=9, color="#3e4c59")  # type: ignore[union-attr]
    if ylabel:
        letters = int((fig.get_figure(root=True).get_size_inches()[1] - 0.5) * 13)  # type: ignore[union-attr]
        fig.supylabel(textwrap.fill(ylabel, max(letters, 12)), fontsize=9, color="#3e4c59")  # type: ignore[union-attr]


def finish(fig: Sheet, title: str, handles: Sequence[Artist], labels: Sequence[str]) -> Sheet:
    """The finding on top, the key under it, both flush left; the panels below keep their size."""
    fig.finding = title
    width, body = fig.get_size_inches()
    lines = textwrap.wrap(title, int(width * 11.2)) if title else []
    key_rows = _key_rows(labels, width) if labels else 0
    above = 0.2 * len(lines) + (0.07 if lines else 0)
    top = above + 0.2 * key_rows
    height = body + top
    fig.set_size_inches(width, height)
    if lines:
        fig.text(
            0.006, 1 - 0.03 / height, "\n".join(lines), ha="left", va="top", fontsize=11, fontweight="bold", color=INK,
            linespacing=1.25,
        )  # fmt: skip
    if labels:
        fig.legend(
            handles, labels, loc="upper left", ncols=-(-len(labels) // key_rows), labelcolor=INK,
            bbox_to_anchor=(0.006, 1 - (above + 0.02) / height),
        )  # fmt: skip
    fig.set_layout_engine("constrained", rect=(0, 0, 1, 1 - top / height), w_pad=0.05, h_pad=0.05)
    return fig


def _key_rows(labels: Sequence[str], width: float) -> int:
    """How many rows a key of these labels needs, 0.075 inches a letter and half an inch for each handle."""
    return max(1, int(np.ceil(sum(0.075 * len(label) + 0.55 for label in labels) / (width - 0.1))))


# ---------------------------------------------------------------- marks and words


def bins(pair: Sequence[np.ndarray]) -> int:
    return int(np.clip(np.sqrt(min(values.size for values in pair)) * 1.1, 8, 40))


def grey_floor(ax: Axes, rows: pd.DataFrame, x: str, parts: Sequence[Any], limits: tuple[float, float]) -> None:
    """A grey step for each part."""
    for name, low, high in zip(rows[x], *within(rows, *limits), strict=True):
        at = parts.index(name)
        ax.fill_between([at - 0.45, at + 0.45], low, high, color=FLOOR, linewidth=0, zorder=0.5)


def name_null(grid: Mapping[Any, Axes], null: float | None, ends: list[tuple[float, str, Any]]) -> None:
    """The names that stand at the right: of the line that means nothing, and of the series where one panel is all."""
    if null is not None:
        ends = [*ends, (null, "no difference", QUIET)]
    for ax in grid.values():
        low, high = ax.get_ylim()
        if null is not None and ax.get_yscale() == "linear":
            room = 0.05 * (high - low)
            ax.set_ylim(min(low, null - room), max(high, null + room))
    specs = [ax.get_subplotspec() for ax in grid.values()]
    last = max(i for i, spec in enumerate(specs) if spec is not None and spec.rowspan.start == 0)
    _label_ends(list(grid.values())[last], ends)


def _label_ends(ax: Axes, ends: list[tuple[float, str, Any]]) -> None:
    """Each series' name at the end of its line, pushed apart where two would meet."""
    low, high = ax.get_ylim()
    gap = (high - low) * 0.065
    log = ax.get_yscale() == "log"
    order = sorted(range(len(ends)), key=lambda i: ends[i][0])
    places = [np.log10(ends[i][0]) if log else ends[i][0] for i in order]
    if log:
        gap = (np.log10(high) - np.log10(low)) * 0.065
    for _ in range(60):
        for i in range(len(places) - 1):
            short = gap - (places[i + 1] - places[i])
            if short > 1e-9:
                places[i] -= short / 2
                places[i + 1] += short / 2
    for i, place in zip(order, places, strict=True):
        _, name, colour = ends[i]
        ax.annotate(
            name, (1, 10**place if log else place), (5, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", ha="left", color=_readable(colour), fontsize=8.5,
            annotation_clip=False,
        )  # fmt: skip


def _readable(colour: Any) -> tuple[float, ...]:
    """The colour, darkened until it can be read as text on white."""
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    while rgb @ [0.2126, 0.7152, 0.0722] > 0.42:
        rgb = rgb * 0.93
    return tuple(rgb)


def arrow(ax: Axes, better: str) -> None:
    """An arrow in the corner that is better."""
    if not better:
        return
    down, right = "down" in better, "right" in better
    arrow = {(True, True): "↘", (True, False): "↙", (False, True): "↗", (False, False): "↖"}[down, right]
    text = f"better {arrow}" if right else f"{arrow} better"
    ax.text(
        0.99 if right else 0.01, 0.015 if down else 0.99, text, transform=ax.transAxes,
        ha="right" if right else "left", va="bottom" if down else "top", fontsize=9, style="italic", color=QUIET,
    )  # fmt: skip


def label_points(
    fig: Figure, ax: Axes, rows: pd.DataFrame, hue: str, looks: Mapping[Any, tuple[Any, str, Any]]
) -> None:
    """Each series' name beside one of its ends, where it covers the least of what is drawn."""
    fig.draw_without_rendering()
    points = ax.transData.transform(rows[["_x", "_y"]].to_numpy(float))
    taken = [(px - 7, py - 7, px + 7, py + 7) for px, py in points]
    for ends in (("_x_low", "_y", "_x_high", "_y"), ("_x", "_y_low", "_x", "_y_high")):
        corners = rows[list(ends)].to_numpy(float)
        starts, stops = ax.transData.transform(corners[:, :2]), ax.transData.transform(corners[:, 2:])
        taken += [(a[0] - 1, a[1] - 1, b[0] + 1, b[1] + 1) for a, b in zip(starts, stops, strict=True)]
    for name in looks:
        own = ax.transData.transform(rows.loc[rows[hue] == name, ["_x", "_y"]].to_numpy(float))
        for a, b in pairwise(own):
            taken += [(px - 3, py - 3, px + 3, py + 3) for px, py in np.linspace(a, b, int(np.hypot(*(b - a)) / 6) + 2)]
    frame = ax.get_window_extent()
    for name, (colour, *_rest) in looks.items():
        own = rows[rows[hue] == name]
        if not len(own):
            continue
        wide, tall = _extent(fig, str(name))
        places = own[["_x", "_y"]].to_numpy(float)[[-1, 0] if len(own) > 1 else [0]]
        dots = ax.transData.transform(places)
        spots = [(i, *spot) for i, (px, py) in enumerate(dots) for spot in _around(px, py, wide, tall)]
        i, dx, dy, box = min(spots, key=lambda spot: _cost(spot[3], taken, frame.extents))
        taken.append(box)
        ax.annotate(
            str(name), tuple(places[i]), (dx * 72 / fig.dpi, dy * 72 / fig.dpi), textcoords="offset points", ha="left",
            va="bottom", color=_readable(colour), fontsize=8.5, zorder=5, annotation_clip=False,
        )  # fmt: skip


def _extent(fig: Figure, text: str) -> tuple[float, float]:
    """Width and height of a label, pixels."""
    label = fig.text(0, 0, text, fontsize=8.5)
    box = label.get_window_extent()
    label.remove()
    return box.width, box.height


Box = tuple[float, float, float, float]


def _around(px: float, py: float, wide: float, tall: float) -> Iterator[tuple[float, float, Box]]:
    for far in (9, 16, 26, 40):
        side = ((far, -tall / 2), (-far - wide, -tall / 2), (far * 0.7, far * 0.5), (far * 0.7, -far * 0.5 - tall))
        more = (
            (-wide / 2, far),
            (-wide / 2, -far - tall),
            (-far * 0.7 - wide, far * 0.5),
            (-far * 0.7 - wide, -far * 0.5 - tall),
        )
        for dx, dy in (*side, *more):
            yield dx, dy, (px + dx, py + dy, px + dx + wide, py + dy + tall)


def _cost(box: Box, taken: Sequence[Box], frame: Sequence[float]) -> float:
    def shared(a: Sequence[float], b: Sequence[float]) -> float:
        return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))

    area = (box[2] - box[0]) * (box[3] - box[1])
    return sum(shared(box, other) for other in taken) + 3 * (area - shared(box, frame))


def note_above(ax: Axes, note: str) -> None:
    """A quiet line between the panel's name and the panel."""
    name = ax.get_title(loc="left")
    ax.set_title(name, pad=19 if name else 6)
    ax.annotate(note, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", color=QUIET, fontsize=8.5)
