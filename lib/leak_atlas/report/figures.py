"""Figures: what the papers draw, and each number with its interval.

Every function takes arrays or a table (a DataFrame or a list of rows) and returns one finished
Figure whose title is the finding. A column may hold Estimates, or plain numbers with their interval
in columns `low` and `high`. Colour never stands alone: series differ in marker and line style too.
A hue that is a quantity (channels, depth, epoch) gets sequential colours, a hue that is a name gets
categorical ones.

All go through `draw`: into each panel it puts a *mark* (`points`, `band`, `steps`, `stairs`, ...:
how a series looks on axes) for each series. A new figure is a call of `draw`, a new look a new
mark.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from numpy.typing import ArrayLike

from leak_atlas import BadInput
from leak_atlas.report import sheet
from leak_atlas.report.sheet import (
    FLOOR,
    INK,
    QUIET,
    Frame,
    Look,
    Sheet,
    levels,
    limits,
    looks_of,
    only,
    spans,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leak_atlas.audit import Roc

__all__ = ["against_paper", "curves", "density", "histograms", "profile", "roc", "tradeoff"]

Mark: TypeAlias = Callable[["Axes", pd.DataFrame, Look], None]
Column: TypeAlias = str | None
Notes: TypeAlias = Mapping[Any, str] | None
SEEN = ("seen by both", "seen only by M_all")
# no difference
GUESS: dict[str, Any] = {"color": QUIET, "linewidth": 0.9, "linestyle": (0, (2, 2)), "zorder": 1}
HOLLOW: dict[str, Any] = {
    "markerfacecolor": "none",
    "markeredgewidth": 1.5,
    "markersize": 7,
    "linestyle": "none",
}
RING: dict[str, Any] = {
    "markeredgecolor": INK,
    "markeredgewidth": 1.4,
    "markersize": 9,
    "linestyle": "none",
}

# ---------------------------------------------------------------- marks


def intervals(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """The intervals of `_x` and of `_y`, where the table has them."""
    known = rows[np.isfinite(rows["_x"] + rows["_y"])]
    for name, lines, at in (("_x", ax.hlines, "_y"), ("_y", ax.vlines, "_x")):
        if f"{name}_low" in rows:
            ends = known[f"{name}_low"], known[f"{name}_high"]
            lines(known[at], *ends, color=look.colour, alpha=0.55, linewidth=1.8, zorder=2)


def points(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """Numbers `_x`, `_y` with their intervals, joined by the look's dash."""
    intervals(ax, rows, look)
    ax.plot(
        rows["_x"],
        rows["_y"],
        color=look.colour,
        marker=look.marker,
        linestyle=look.dash if len(rows) > 1 else "none",
        markersize=look.size,
        markeredgecolor="white",
        zorder=3,
        label=look.label,
    )


def band(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """A line over `_x`, in the band of its intervals; a single number has a marker."""
    if len(rows) == 1:
        points(ax, rows, look)
        return
    if (rows["_y_high"] > rows["_y_low"]).any():
        ax.fill_between(
            rows["_x"], rows["_y_low"], rows["_y_high"], color=look.colour, alpha=0.14, linewidth=0
        )
    ax.plot(rows["_x"], rows["_y"], color=look.colour, linestyle=look.dash, label=look.label)


def steps(ax: Axes, rows: pd.DataFrame, look: Look, wide: float = 0.9) -> None:
    """What two seeds on the same data differ by: a grey step for each interval."""
    tall = rows["_y_high"] - rows["_y_low"]
    ax.bar(
        rows["_x"],
        tall,
        wide,
        rows["_y_low"],
        color=FLOOR,
        zorder=0.5,
        label="two seeds, same data",
    )


def stairs(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """A distribution: shares `_y` of bins of equal width that begin at `_x`; an outline where the
    dash is "none".
    """
    edges, outline = (
        [*rows["_x"], 2 * rows["_x"].iloc[-1] - rows["_x"].iloc[-2]],
        look.dash == "none",
    )
    ax.stairs(
        rows["_y"],
        edges,
        fill=not outline,
        facecolor=(look.colour, 0.45),
        edgecolor=look.colour if outline else QUIET,
        linewidth=1.6 if outline else 0.8,
        label=look.label,
    )


def upright(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """A line across the panel at a series' mean `_x`; its dash tells outlines from filled ones."""
    label = f"mean of {look.label}"
    dash = "--" if look.dash == "none" else "-"
    ax.axvline(
        rows["_x"].iloc[0],
        color=sheet.readable(look.colour),
        linestyle=dash,
        linewidth=1.4,
        label=label,
    )


def marker(**style: Any) -> Mark:
    """Bare markers in a style: HOLLOW, what a paper prints; RING, what a rule chose."""

    def mark(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
        ax.plot(
            rows["_x"],
            rows["_y"],
            color=look.colour,
            marker=look.marker,
            zorder=4,
            label=look.label,
            **style,
        )

    return mark


def keyed(ax: Axes, label: str, **style: Any) -> None:
    """An entry of the key for what is drawn without a label."""
    ax.plot([], [], label=sheet.proper(label), marker="o", **style)


# ---------------------------------------------------------------- the engine


def draw(
    layers: Sequence[tuple[pd.DataFrame, Mark]],
    *,
    looks: Mapping[Any, Look] | None = None,
    hue: Column = None,
    facet: Column = None,
    panels: Sequence[Any] = (),
    height: float,
    widest: int = 4,
    share: bool = False,
    width: float = sheet.WIDTH,
    dress: Callable[[Any, Axes], None],
    notes: Notes = None,
    null: float | None = None,
    level: str = "no difference",
    words: Mapping[str, str] | None = None,
) -> Sheet:
    """One panel for each value of `facet`, in it the marks of all layers, series by series.

    A layer is a table and its mark; one without the column `hue` is drawn in quiet grey. `panels`
    lays the values out otherwise than the first table has them, as a mosaic for example
    (`sheet.panels_of`). `dress` gives a panel its scales and limits, `notes` a quiet line above.
    `null` is the y that means "no difference", or what `level` says. A key above names the series. `words`
    are what the figure says beside its numbers: its title, which is the finding, xlabel and ylabel.
    """
    looks = looks or looks_of(levels(layers[0][0], hue))
    grid, fig = sheet.panels_of(panels or levels(layers[0][0], facet), height, widest, share, width)
    fig.numbers = sheet.numbers(*(table for table, _ in layers))
    for panel, ax in grid.items():
        for table, mark in layers:
            series = looks if hue is None or hue in table else {None: Look("", QUIET, "o", "-")}
            if len(here := only(table, facet, panel)):
                for name, look in series.items():
                    if len(rows := only(here, hue, name)):
                        mark(ax, rows, look)
        dress(panel, ax)
        spec = ax.get_subplotspec()
        part = len(spec.colspan) / spec.get_gridspec().ncols if spec else 1.0
        sheet.note_above(ax, (notes or {}).get(panel, ""), 0.85 * part * fig.get_figwidth() - 0.35)
        if null is not None:
            draw_null(ax, null, level)
    key: dict[str, Any] = {}
    for ax in grid.values():
        for artist, label in zip(*ax.get_legend_handles_labels(), strict=True):
            key.setdefault(label, artist)
    sheet.finish(fig, key, **(words or {}))
    return fig


def draw_null(ax: Axes, null: float, level: str) -> None:
    """The line that means "no difference", or what `level` says; in the key where it lies outside."""
    low, high = ax.get_ylim()
    if low <= null <= high:
        ax.axhline(null, label=level, **GUESS)
    else:
        side = "below" if null < low else "above"
        ax.plot([], [], label=f"{level}: {null:g}, {side} the panel", **GUESS)


def places(frames: Sequence[pd.DataFrame], x: str, hue: Column, room: float) -> list[str]:
    """Puts each row at its place `_at` on an axis of names, `room` inches long; returns the names.

    Series of the first frame stand side by side, a tenth of an inch apart, where intervals would
    cover each other; all of them within 0.6 of the way to the next name.
    """
    parts, series = levels(frames[0], x), levels(frames[0], hue)
    wide = (frames[0]["_y_high"] > frames[0]["_y_low"]).any()
    apart = min(0.1 * len(parts) / room, 0.6 / len(series)) if wide else 0.0
    aside = {name: (i - (len(series) - 1) / 2) * apart for i, name in enumerate(series)}
    for frame in frames:
        frame["_at"] = frame[x].map({part: i for i, part in enumerate(parts)}).astype(float)
        frame["_at"] += frame[hue].map(aside).astype(float) if hue in frame else 0.0
    return [str(part) for part in parts]


# ---------------------------------------------------------------- figures


def histograms(
    panels: Mapping[Any, tuple[np.ndarray, np.ndarray]],
    names: Sequence[str] = SEEN,
    notes: Notes = None,
    *,
    log: bool = False,
    means: bool = False,
    columns: bool = False,
    **words: str,
) -> Sheet:
    """Two laid-over distributions per panel; bins are common to a panel. Keys `(row, column)` make
    a grid.

    A note (an AUC with its interval, say) stands above its panel. The farthest 0.1 % are counted in
    the last bin. With `log` shares stand on a logarithmic axis, common to all panels; with `means`
    a line stands at each mean; with `columns` bins, and so the range, are common to a column of the
    grid, whose rows are to be compared.
    """
    alike = {
        panel: [p for p in panels if p[1] == panel[1]] if columns else [panel] for panel in panels
    }
    found = {
        panel: shares(panels[panel], names, [panels[p] for p in each])
        for panel, each in alike.items()
    }
    table = pd.concat([each.assign(panel=[panel] * len(each)) for panel, each in found.items()])
    layers: list[tuple[pd.DataFrame, Mark]] = [(table, stairs)]
    if means:
        who = [
            (panel, *one)
            for panel, pair in panels.items()
            for one in zip(names, map(np.mean, pair), strict=True)
        ]
        layers.append((pd.DataFrame(who, columns=["panel", "who", "_x"]), upright))
    heights = table.loc[table["_y"] > 0, "_y"]

    def scaled(panel: Any, ax: Axes) -> None:
        ax.set(yscale="log", ylim=(heights.min() / 1.5, heights.max() * 1.5))
        ax.locator_params(axis="x", nbins=4)

    return draw(
        layers,
        looks=outlined(names),
        hue="who",
        facet="panel",
        height=1.75,
        notes=notes,
        dress=scaled if log else bare,
        words={"xlabel": "normalised feature distance", "ylabel": "share of samples", **words},
    )


def outlined(names: Sequence[str]) -> dict[str, Look]:
    """The looks of two distributions: the first is filled, the second an outline."""
    known, new = looks_of(names).items()
    return {known[0]: known[1]._replace(colour=sheet.FAINT), new[0]: new[1]._replace(dash="none")}


def shares(
    pair: Sequence[np.ndarray], names: Sequence[str], beside: Sequence[Sequence[np.ndarray]]
) -> pd.DataFrame:
    """What `stairs` draws of two sets of values, told apart in the column `who`; bins reach over
    all pairs `beside`.
    """
    both = np.concatenate([np.ravel(values) for each in beside for values in each])
    low, high = np.quantile(both, [0.0, 0.999]) if both.size else (0.0, 1.0)
    bins = int(np.clip(np.sqrt(min(np.size(values) for values in pair)) * 1.1, 8, 40))
    edges = np.linspace(low, max(high, low + 1e-9), bins + 1)
    made = []
    for name, values in zip(names, pair, strict=True):
        counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        made.append(
            pd.DataFrame({"who": name, "_x": edges[:-1], "_y": counts / max(np.size(values), 1)})
        )
    return pd.concat(made)


def bare(panel: Any, ax: Axes) -> None:
    """Axes of a distribution: how high it is says nothing."""
    ax.set(yticks=[], ylim=(0, None))
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    ax.locator_params(axis="x", nbins=4)


def density(
    panels: Mapping[Any, tuple[ArrayLike, ArrayLike]],
    *,
    counted: str = "points",
    notes: Notes = None,
    **words: str,
) -> Sheet:
    """Two numbers of each of many things, `x (n,)` against `y (n,)`, none negative, on logarithmic
    axes.

    Each cell's colour says how many they are. Keys `(row, column)` make a grid; all panels share
    axes and colours. Zeros, which have no logarithm, and the smallest 0.1 % lie on the left or
    lower border. A note stands above its panel. Raises BadInput on negative numbers.
    """
    found = {
        key: np.array([np.ravel(values) for values in pair], float) for key, pair in panels.items()
    }
    both = np.concatenate([*found.values()], axis=1)
    if not (np.isfinite(both) & (both >= 0)).all():
        raise BadInput("a density has logarithmic axes: give finite numbers of 0 or more")
    table = pd.DataFrame(both.T, columns=["_x", "_y"])
    table["panel"] = [key for key, pair in found.items() for _ in range(pair.shape[1])]
    (across, up), norm = map(_cells, both), LogNorm(1, 10)
    counted_cells: list[pd.DataFrame] = []

    def cells(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
        x, y = rows["_x"].clip(across[0], across[-1]), rows["_y"].clip(up[0], up[-1])
        counts = count_in_cells(ax, x, y, [across, up], norm)
        i, j = np.nonzero(np.nan_to_num(counts))
        drawn = {"_x": across[i], "_y": up[j], counted: counts[i, j]}
        counted_cells.append(pd.DataFrame(drawn).assign(panel=[rows["panel"].iloc[0]] * len(i)))

    def dress(panel: Any, ax: Axes) -> None:
        ax.set(xscale="log", yscale="log")
        ax.locator_params(numticks=4)
        ax.minorticks_off()

    fig = draw(
        [(table, cells)],
        facet="panel",
        height=2.1,
        share=True,
        dress=dress,
        notes=notes,
        words=words,
    )
    fig.numbers = sheet.numbers(*counted_cells)
    colour_key(fig, norm, counted)
    return fig


def count_in_cells(ax: Axes, x: Any, y: Any, edges: Any, norm: LogNorm) -> np.ndarray:
    """Draws how many points lie in each cell; `norm`, the scale of all panels, reaches the most."""
    style: dict[str, Any] = {"cmap": sheet.SEQUENTIAL, "rasterized": True}
    counts, *_ = ax.hist2d(x, y, edges, cmin=1, norm=norm, **style)
    norm.vmax = max(norm.vmax or 0.0, np.nanmax(counts))
    return counts


def colour_key(fig: Sheet, norm: LogNorm, counted: str) -> None:
    """A bar at the right of all panels: the colours of counts."""
    mapped = ScalarMappable(norm, sheet.SEQUENTIAL)
    fig.colorbar(mapped, ax=fig.axes, label=f"{counted} in a cell", aspect=40, pad=0.01)


def _cells(values: np.ndarray) -> np.ndarray:
    """Edges of 44 cells, evenly spaced in logarithms, from the smallest but a few to the largest."""
    positive = values[values > 0]
    low, high = (
        (np.quantile(positive, 1e-3) / 1.2, positive.max() * 1.2) if positive.size else (0.1, 1)
    )
    return np.geomspace(low, high, 45)


def profile(
    frame: Frame,
    x: str = "part",
    *,
    hue: Column = None,
    facet: Column = None,
    null: float | None = 0.5,
    level: str = "no difference",
    floor: Frame | None = None,
    begins: str = "",
    said: str = "where the paper has it",
    **words: str,
) -> Sheet:
    """An estimate and its interval for each part of a network (or any other ordered thing), a line
    through each series.

    `null` is the value that means "no difference", or what `level` says of it; `floor` (same
    columns) is drawn as grey steps: what two seeds on the same data differ by. Stages from `begins`
    on are hatched, and `said` says why.
    """
    tables = [spans(each) for each in (frame, floor) if each is not None]
    tables[1:] = [table.drop(columns=hue or [], errors="ignore") for table in tables[1:]]
    panels = levels(tables[0], facet)
    widest = int(np.clip(0.8 * sheet.WIDTH / (sheet.LINE * tables[0][x].nunique()), 1, 4))
    across = sheet.columns(len(panels), widest)
    parts, shown = places(tables, x, hue, 0.8 * sheet.WIDTH / across), limits(null, *tables)

    def dress(panel: Any, ax: Axes) -> None:
        sheet.name_parts(ax, parts, across)
        ax.set_ylim(shown)
        if begins:
            first = next(i for i, part in enumerate(parts) if part.startswith(begins))
            end = max(i for i, part in enumerate(parts) if part.startswith("stage"))
            hatched: dict[str, Any] = {
                "facecolor": "none",
                "edgecolor": sheet.WASH,
                "hatch": "///",
                "linewidth": 0.0,
            }
            ax.axvspan(first - 0.5, end + 0.5, zorder=0.1, label=said, **hatched)

    ordered = [each.assign(_x=each["_at"]).sort_values("_x") for each in tables]
    return draw(
        list(zip(ordered, (points, steps), strict=False)),
        looks=looks_of(levels(tables[0], hue)),
        hue=hue,
        facet=facet,
        panels=panels,
        height=2.9,
        widest=widest,
        share=True,
        dress=dress,
        null=null,
        level=level,
        words={"ylabel": "AUC", **words},
    )


def tradeoff(
    frame: Frame,
    x: str = "accuracy",
    y: str = "auc",
    *,
    hue: str = "variant",
    facet: Column = "attack",
    null: float | None = 0.5,
    level: str = "no difference",
    better: str = "better ↘",
    **words: str,
) -> Sheet:
    """Two measurements against each other, both with intervals (columns of Estimates, or `x_low`,
    `x_high`, ...).

    Several rows of one series (strengths of a defence) are joined in their order. Facets share
    their axes. Markers of later series
    are smaller, so that none hides another. `null` is the y that means "no difference", or what
    `level` says; `better` says in a corner where one would be, "" where no side is.
    """
    table = spans(spans(frame, x, "_x"), y)
    facet = facet if facet in table else None
    across, (low, high) = limits(None, table, name="_x", least=0.01), limits(null, table)
    looks = looks_of(levels(table, hue))
    sizes = np.linspace(9, 7, len(looks))
    looks = {name: looks[name]._replace(size=size) for name, size in zip(looks, sizes, strict=True)}

    def dress(panel: Any, ax: Axes) -> None:
        ax.set(xlim=across, ylim=(low - 0.07 * (high - low), high))  # room for the arrow

    fig = draw(
        [(table, points)],
        looks=looks,
        hue=hue,
        facet=facet,
        panels=levels(table, facet),
        height=3.1,
        widest=3,
        share=True,
        dress=dress,
        null=null,
        level=level,
        words={"xlabel": x, "ylabel": y, **words},
    )
    corner: dict[str, Any] = {
        "ha": "right",
        "va": "bottom",
        "fontsize": 9,
        "style": "italic",
        "color": QUIET,
    }
    fig.axes[0].text(0.99, 0.015, better, transform=fig.axes[0].transAxes, **corner)
    return fig


def against_paper(
    frame: Frame,
    x: str = "setting",
    *,
    hue: Column = None,
    facet: Column = None,
    source: str = "paper",
    **words: str,
) -> Sheet:
    """Measured, with its interval, beside the number in column `paper`, if any (hollow); one line
    for each setting.

    `source` names the paper's setting in the legend: "paper (TinyImageNet, width 64)".
    """
    table = spans(frame)
    printed = table.drop(columns=["_y_low", "_y_high"])
    printed["_y"] = pd.to_numeric(table.get("paper", np.nan), errors="coerce")
    looks = {
        name: look._replace(label=look.label or "measured, 95 % interval", dash="none")
        for name, look in looks_of(levels(table, hue)).items()
    }
    across = sheet.columns(len(levels(table, facet)), 3)
    letters = int(0.45 * sheet.WIDTH / across / sheet.LETTER)
    lines = max(len(textwrap.wrap(str(name), letters)) for name in levels(table, x))
    height = 0.55 + table[x].nunique() * max(0.36, 0.25 * len(looks), 0.03 + sheet.LINE * lines)
    settings = places([table, printed], x, hue, height - 0.5)
    shown = limits(None, table, printed, least=0.01)

    def dress(panel: Any, ax: Axes) -> None:
        sheet.name_panel(ax, ax.get_title(loc="left"), 0.4 * sheet.WIDTH / across)
        ax.set_yticks(range(len(settings)), [textwrap.fill(name, letters) for name in settings])
        ax.set(xlim=shown, ylim=(len(settings) - 0.4, -0.6))
        ax.grid(axis="y", visible=False)
        if printed["_y"].notna().any():
            keyed(ax, source, color=looks[None].colour if None in looks else QUIET, **HOLLOW)

    turned = {"_y": "_x", "_y_low": "_x_low", "_y_high": "_x_high", "_at": "_y"}
    return draw(
        [
            (table.rename(columns=turned), points),
            (printed.rename(columns=turned), marker(**HOLLOW)),
        ],
        looks=looks,
        hue=hue,
        facet=facet,
        height=height,
        widest=3,
        dress=dress,
        words=words,
    )


def curves(
    frame: Frame,
    x: str,
    *,
    hue: Column = None,
    facet: Column = None,
    null: float | None = None,
    level: str = "no difference",
    diagonal: bool = False,
    log: str = "",
    **words: str,
) -> Sheet:
    """Lines over a quantity (epoch, strength, false positive rate), each in its band. `log` is "",
    "x", "y" or "xy".

    `null` draws the value that means "no difference", or what `level` says; `diagonal` draws y = x,
    which means it for ROC curves.
    """
    table = spans(frame)
    table = table.assign(_x=table[x].astype(float)).sort_values("_x", kind="stable")
    shown = limits(null, table)

    def dress(panel: Any, ax: Axes) -> None:
        ax.margins(x=0.01)
        ax.set(**{f"{axis}scale": "log" for axis in log}, **{} if "y" in log else {"ylim": shown})
        if diagonal:
            ends = np.geomspace(*ax.get_xlim(), 200) if "x" in log else np.array(ax.get_xlim())
            ax.plot(ends, ends, **GUESS)

    return draw(
        [(table, band)],
        hue=hue,
        facet=facet,
        height=2.9,
        widest=3,
        share=True,
        dress=dress,
        null=null,
        level=level,
        words={"xlabel": x, "ylabel": "value", **words},
    )


def roc(found: Mapping[Any, Roc], *, title: str = "", narrow: bool = False) -> Sheet:
    """ROC curves (`audit.roc_band`) with their pointwise 95 % bands, on linear and on logarithmic
    axes side by side.

    Keys are names of series, or pairs (row, series): a row of two panels for each. A logarithmic
    axis ends below the resolution, the smallest FPR that the non-members can show; no curve is
    drawn there. `narrow` puts the panels of the one row below each other, so that a phone shows
    them in a size that can be read.
    """
    bands = {key if isinstance(key, tuple) else ("", key): one for key, one in found.items()}
    finest = {
        row: min(one.resolution for key, one in bands.items() if key[0] == row) for row, _ in bands
    }
    scales, made = ("linear axes", "logarithmic axes"), []
    for (row, series), one in bands.items():
        curve = pd.DataFrame({"_x": one.fpr, "_y": one.tpr, "_y_low": one.low, "_y_high": one.high})
        resolved = curve[curve["_x"] >= one.resolution].clip(lower=finest[row] / 5)
        for scale, shown in zip(scales, (curve, resolved), strict=True):
            made.append(shown.assign(series=series, panel=[(row, scale)] * len(shown)))
    table = pd.concat(made)

    def dress(panel: Any, ax: Axes) -> None:
        least, log = finest[panel[0]], panel[1] == scales[1]
        start, margin = (least / 2.5, 0.0) if log else (0.0, 0.01)
        ax.plot((start, 1), (start, 1), **GUESS, label="guessing")
        if log:
            ax.set(xscale="log", yscale="log")
            ax.axvspan(start, least, color=FLOOR, linewidth=0, zorder=0.5)
            ax.text(
                np.sqrt(start * least),
                0.97,
                "below resolution",
                transform=ax.get_xaxis_transform(),
                rotation=90,
                ha="center",
                va="top",
                color=QUIET,
                fontsize=8,
            )
        ax.set(
            xlim=(start - margin, 1 + margin),
            ylim=(start - margin, 1.05 if log else 1 + margin),
            box_aspect=1,
        )

    panels: list[Any] = [(row, scale) for row in finest for scale in scales]
    return draw(
        [(table, band)],
        hue="series",
        facet="panel",
        panels=[[each] for each in panels] if narrow else panels,
        height=3.8 if len(finest) == 1 else 3.0,
        width=sheet.NARROW if narrow else sheet.WIDTH,
        dress=dress,
        words={"title": title, "xlabel": "false positive rate", "ylabel": "true positive rate"},
    )
