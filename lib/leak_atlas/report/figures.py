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

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from numpy.typing import ArrayLike, NDArray

from leak_atlas.report import printed, sheet
from leak_atlas.report.markup import proper
from leak_atlas.report.sheet import (
    FLOOR,
    QUIET,
    Frame,
    Look,
    Sheet,
    Style,
    levels,
    limits,
    looks_of,
    only,
    spans,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leak_atlas.audit import FloatArray, Roc

__all__ = [
    "against_paper",
    "curves",
    "density",
    "histograms",
    "planes",
    "profile",
    "roc",
    "tradeoff",
]

Mark: TypeAlias = Callable[["Axes", pd.DataFrame, Look], None]
Column: TypeAlias = str | None
Notes: TypeAlias = Mapping[Any, str] | None
SEEN = ("seen by both", "seen only by M_all")
SCALES = ("linear axes", "logarithmic axes")  # of a ROC curve
FPR, TPR = "FPR of a sample", "TPR of a sample"  # of a plane
CENTRE = "#d1550b"  # the one warm colour beside those of a plane
CELLS, FINEST = 40, 64  # along an axis of a plane; at most so many where rates are counted
GREY = {None: Look("", QUIET, "o", "-")}  # of a layer that has no series
# no difference
GUESS: Style = {"color": QUIET, "linewidth": 0.9, "linestyle": (0, (2, 2)), "zorder": 1}
HOLLOW: Style = {
    "markerfacecolor": "none",
    "markeredgewidth": 1.5,
    "markersize": 7,
    "linestyle": "none",
}

# ---------------------------------------------------------------- marks


def intervals(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """The intervals of `_x` and of `_y`, where the table has them."""
    is_known = np.isfinite(rows["_x"] + rows["_y"])
    known = rows[is_known]
    style: Style = {"color": look.colour, "alpha": 0.55, "linewidth": 1.8, "zorder": 2}
    if "_x_low" in rows:
        ax.hlines(known["_y"], known["_x_low"], known["_x_high"], **style)
    if "_y_low" in rows:
        ax.vlines(known["_x"], known["_y_low"], known["_y_high"], **style)


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
    ends = rows["_y_low"], rows["_y_high"]
    ax.fill_between(rows["_x"], *ends, color=look.colour, alpha=0.14, linewidth=0)
    ax.plot(rows["_x"], rows["_y"], color=look.colour, linestyle=look.dash, label=look.label)


def steps(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """What two seeds on the same data differ by: a grey step for each interval."""
    tall = rows["_y_high"] - rows["_y_low"]
    ax.bar(
        rows["_x"],
        tall,
        width=0.9,
        bottom=rows["_y_low"],
        color=FLOOR,
        zorder=0.5,
        label="chance: two seeds, same data",
    )


def stairs(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """A distribution: shares `_y` of bins of equal width that begin at `_x`; an outline where the
    dash is "none".
    """
    outline = look.dash == "none"
    starts = rows["_x"].to_numpy()
    ax.stairs(
        rows["_y"],
        [*starts, 2 * starts[-1] - starts[-2]],
        fill=not outline,
        facecolor=(look.colour, 0.45),
        edgecolor=look.colour if outline else QUIET,
        linewidth=1.6 if outline else 0.8,
        label=look.label,
    )


def upright(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """A line across the panel at a series' mean `_x`: dashed for the outline."""
    outline = look.dash == "none"
    ax.axvline(
        rows["_x"].iloc[0],
        color=look.colour if outline else QUIET,
        linestyle="--" if outline else "-",
        linewidth=1.4,
        label=f"mean of {look.label}",
    )


def hollow(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """Numbers that a paper prints: bare, hollow markers."""
    ax.plot(
        rows["_x"],
        rows["_y"],
        color=look.colour,
        marker=look.marker,
        label=look.label,
        zorder=4,
        **HOLLOW,
    )


# ---------------------------------------------------------------- the engine


def draw(
    layers: Sequence[tuple[pd.DataFrame, Mark]],
    *,
    looks: Mapping[Any, Look] | None = None,
    hue: Column = None,
    facet: Column = None,
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

    A layer is a table and its mark; one without the column `hue` is drawn in quiet grey. `dress` gives a panel its scales and limits, `notes` a quiet line above.
    `null` is the y that means "no difference", or what `level` says. A key above names the series.
    `words` are what the figure says beside its numbers: its title, which is the finding, xlabel and
    ylabel.
    """
    first = layers[0][0]
    looks = looks or looks_of(levels(first, hue))
    grid, fig = sheet.panels_of(levels(first, facet), height, widest, share, width)
    fig.numbers = sheet.numbers(*(table for table, _ in layers))
    key: Style = {}
    for panel, ax in grid.items():
        for table, mark in layers:
            here = only(table, facet, panel)
            has_series = hue is None or hue in table
            for name, look in (looks if has_series else GREY).items():
                rows = only(here, hue, name)
                if len(rows):
                    mark(ax, rows, look)
        dress(panel, ax)
        if notes and notes.get(panel):
            sheet.note_above(ax, notes[panel])
        if null is not None:
            ax.axhline(null, label=f"{level} ({null:.3g})", **GUESS)
        for artist, label in zip(*ax.get_legend_handles_labels(), strict=True):
            key.setdefault(label, artist)
    sheet.finish(fig, key, **(words or {}))
    return fig


def places(frames: Sequence[pd.DataFrame], x: str, hue: Column, room: float) -> list[str]:
    """Puts each row at its place `_at` on an axis of names, `room` inches long; returns the names.

    Series of the first frame stand side by side, a tenth of an inch apart, where intervals would
    cover each other; all of them within 0.6 of the way to the next name.
    """
    first = frames[0]
    parts = levels(first, x)
    series = levels(first, hue)
    apart = 0.0  # of the way to the next name
    if (first["_y_high"] > first["_y_low"]).any():
        apart = min(0.1 * len(parts) / room, 0.6 / len(series))
    middle = (len(series) - 1) / 2
    aside = {name: (number - middle) * apart for number, name in enumerate(series)}
    for frame in frames:
        frame["_at"] = frame[x].map(parts.index).astype(float)
        if hue in frame:
            frame["_at"] += frame[hue].map(aside).astype(float)
    return [str(part) for part in parts]


# ---------------------------------------------------------------- distributions


def histograms(
    panels: Mapping[Any, tuple[NDArray, NDArray]],
    names: Sequence[str] = SEEN,
    notes: Notes = None,
    *,
    log: bool = False,
    **words: str,
) -> Sheet:
    """Two laid-over distributions per panel; bins are common to a panel. Keys `(row, column)` make
    a grid.

    A note (an AUC with its interval, say) stands above its panel. The farthest 0.1 % are counted in
    the last bin. With `log`, for what is rare, shares stand on a logarithmic axis, common to all
    panels, a line stands at each mean, and bins are common to a column of the grid.
    """
    counted, averages = [], []
    for panel, pair in panels.items():
        column = panel[1] if log and isinstance(panel, tuple) else None
        alike = [each for key, each in panels.items() if column and key[1] == column]
        found = shares(pair, names, alike or [pair])
        counted.append(found.assign(panel=[panel] * len(found)))
        for name, values in zip(names, pair, strict=True):
            averages.append({"panel": panel, "who": name, "_x": float(np.mean(values))})
    table = pd.concat(counted)
    heights = table.loc[table["_y"] > 0, "_y"]

    def scaled(panel: Any, ax: Axes) -> None:
        ax.set(yscale="log", ylim=(heights.min() / 1.5, heights.max() * 1.5))
        ax.locator_params(axis="x", nbins=4)

    layers: list[tuple[pd.DataFrame, Mark]] = [(table, stairs), (pd.DataFrame(averages), upright)]
    return draw(
        layers if log else layers[:1],
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
    looks = looks_of(names)
    known, new = names
    looks[known] = looks[known]._replace(colour=sheet.FAINT)
    looks[new] = looks[new]._replace(dash="none")
    return looks


def shares(
    pair: Sequence[NDArray], names: Sequence[str], every_pair: Sequence[Sequence[NDArray]]
) -> pd.DataFrame:
    """What `stairs` draws of two sets of values, named in the column `who`; bins reach over all
    pairs of `every_pair`.
    """
    flat = [np.ravel(values) for values in chain.from_iterable(every_pair)]
    both = np.concatenate(flat)
    low, high = 0.0, 1.0
    if both.size:
        low, high = np.quantile(both, [0.0, 0.999])
    fewest = min(map(np.size, pair))
    bins = int(np.clip(np.sqrt(fewest) * 1.1, 8, 40))
    edges = np.linspace(low, max(high, low + 1e-9), bins + 1)
    tables = []
    for name, values in zip(names, pair, strict=True):
        inside = np.clip(values, edges[0], edges[-1])
        counts, _ = np.histogram(inside, edges)
        share = counts / max(np.size(values), 1)
        tables.append(pd.DataFrame({"who": name, "_x": edges[:-1], "_y": share}))
    return pd.concat(tables)


def bare(panel: Any, ax: Axes) -> None:
    """Axes of a distribution: how high it is says nothing."""
    ax.set(yticks=[], ylim=(0, None))
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    ax.locator_params(axis="x", nbins=4)


# ---------------------------------------------------------------- many things in a plane


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
    lower border. A note stands above its panel.
    """
    table = pd.concat([in_panel(key, x, y) for key, (x, y) in panels.items()])
    values = table[["_x", "_y"]]
    least, most = values[values > 0].quantile(1e-3), values.max()
    edges = [np.geomspace(least[name] / 1.2, most[name] * 1.2, 45) for name in values]
    table[["_x", "_y"]] = values.clip(lower=least, axis=1)
    norm = LogNorm(1, 10)

    def cells(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
        count_in_cells(ax, rows, edges, norm)

    def dress(panel: Any, ax: Axes) -> None:
        ax.set(xscale="log", yscale="log")
        ax.locator_params(numticks=4)
        ax.minorticks_off()

    fig = draw(
        [(table, cells)],
        facet="panel",
        height=2.1,
        share=True,
        notes=notes,
        dress=dress,
        words=words,
    )
    fig.numbers = None  # every weight of a network, say
    colour_key(fig, norm, counted)
    return fig


def in_panel(panel: Any, x: ArrayLike, y: ArrayLike) -> pd.DataFrame:
    """Points of one panel, as `draw` takes them."""
    x = np.ravel(x)
    return pd.DataFrame({"_x": x, "_y": np.ravel(y), "panel": [panel] * len(x)})


def count_in_cells(ax: Axes, rows: pd.DataFrame, edges: Any, norm: LogNorm) -> None:
    """Draws how many points lie in each cell; `norm`, the scale of all panels, reaches the most."""
    style: Style = {"cmap": sheet.SEQUENTIAL, "rasterized": True}
    counts, *_ = ax.hist2d(rows["_x"], rows["_y"], edges, cmin=1, norm=norm, **style)
    norm.vmax = max(norm.vmax or 0.0, np.nanmax(counts))


def colour_key(fig: Sheet, norm: LogNorm, counted: str) -> None:
    """A bar at the right of all panels: the colours of counts."""
    mapped = ScalarMappable(norm, sheet.SEQUENTIAL)
    fig.colorbar(mapped, ax=fig.axes, label=f"{counted} in a cell", aspect=40, pad=0.01)


def planes(over_time: Mapping[str, ArrayLike], epochs: Sequence[int], **words: str) -> Sheet:
    """The vulnerability plane (Dynamics) of each trajectory `(E, 2, n)`, a row, in five of its
    `epochs`.

    A trajectory is, at each of E epochs, how often each of n samples is called a member by networks
    that never saw it (row 0, its false positive rate) and by networks that trained on it (row 1,
    its true positive rate). Epoch 0 is before training. Shown are the first, the last, and three
    between, evenly spread over the grid. Colour says how many samples lie in a cell, on one scale.
    """
    shown = dict.fromkeys(np.linspace(0, len(epochs) - 1, 5).round().astype(int))
    norm = LogNorm(1, 10)
    samples, centres = [], []
    edges: dict[Any, list[FloatArray]] = {}
    for name, values in over_time.items():
        rates = np.asarray(values, float)
        for at in shown:
            epoch = f"epoch {epochs[at]}" if epochs[at] else "before training"
            panel = (name, epoch) if len(over_time) > 1 else epoch
            edges[panel] = [rate_cells(rates[:, 0]), rate_cells(rates[:, 1])]
            samples.append(in_panel(panel, *rates[at]))
            centres.append(in_panel(panel, *rates[: at + 1].mean(axis=2).T))

    def cells(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
        count_in_cells(ax, rows, edges[rows["panel"].iloc[0]], norm)

    def dress(panel: Any, ax: Axes) -> None:
        ax.plot((0, 1), (0, 1), **GUESS, label="guessing (TPR = FPR)")
        ax.set(xlim=(-0.07, 1.07), ylim=(-0.07, 1.07), aspect="equal")
        ax.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))

    fig = draw(
        [(pd.concat(samples), cells), (pd.concat(centres), path_of_centre)],
        facet="panel",
        height=1.65 if len(over_time) > 1 else 2.15,
        widest=5,
        share=True,
        dress=dress,
        words={"xlabel": FPR, "ylabel": TPR, **words},
    )
    # panels of one shape, whatever stands around them
    fig.set_layout_engine("compressed", w_pad=0.05, h_pad=0.05)
    colour_key(fig, norm, "samples")
    return fig


def path_of_centre(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """The way of the centre of mass, and where it is now."""
    ax.plot(rows["_x"], rows["_y"], color="white", linewidth=2.6, zorder=3)
    ax.plot(rows["_x"], rows["_y"], color=CENTRE, linewidth=1.2, zorder=3)
    now = rows.iloc[-1:]
    ax.plot(
        now["_x"],
        now["_y"],
        color=CENTRE,
        marker="o",
        markersize=6.5,
        markeredgecolor="white",
        linestyle="none",
        zorder=4,
        label="mean over samples, and its path so far",
    )


def rate_cells(rates: FloatArray) -> FloatArray:
    """Edges of the cells along an axis; of counted rates each cell holds as many steps as others."""
    gaps = np.diff(np.unique(rates.round(6)))
    count = round(1 / gaps.min()) if gaps.size else CELLS
    if count > 1000:  # not counted
        return np.linspace(0, 1, CELLS + 1)
    count *= math.ceil(
        8 / count
    )  # rates that hardly differ do not tell how finely they are counted
    wide = math.ceil((count + 1) / (FINEST + 1))
    starts = np.arange(0, count + 1 + wide, wide)
    return (starts - 0.5) / count


# ---------------------------------------------------------------- estimates


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
    said: str = "stages with a disparity in the paper",
    **words: str,
) -> Sheet:
    """An estimate and its interval for each part of a network (or any other ordered thing), a line
    through each series.

    `null` is the value that means "no difference", or what `level` says of it; `floor` (same
    columns) is drawn as grey steps: what two seeds on the same data differ by. Stages from `begins`
    on are hatched, and `said` says why.
    """
    tables = [spans(frame)]
    if floor is not None:
        tables.append(spans(floor).drop(columns=hue or [], errors="ignore"))
    panels = levels(tables[0], facet)
    least = 18 * sheet.LINE * tables[0][x].nunique()  # inches that a panel's leaning names need
    widest = int(np.clip(0.8 * sheet.WIDTH / least, 1, 4))
    across = sheet.columns(len(panels), widest)
    parts = places(tables, x, hue, 0.8 * sheet.WIDTH / across)
    shown = limits(null, *tables)

    def dress(panel: Any, ax: Axes) -> None:
        names = [part.replace("stage", "stage ") if part[5:].isdigit() else part for part in parts]
        sheet.name_parts(ax, names, across)
        ax.set_ylim(shown)
        if begins:
            hatch(ax, parts, begins, said)

    ordered = [table.assign(_x=table["_at"]).sort_values("_x", kind="stable") for table in tables]
    return draw(
        list(zip(ordered, (points, steps), strict=False)),
        hue=hue,
        facet=facet,
        height=2.9,
        widest=widest,
        share=True,
        dress=dress,
        null=null,
        level=level,
        words={"ylabel": "AUC", **words},
    )


def hatch(ax: Axes, parts: Sequence[str], begins: str, label: str) -> None:
    """Hatches the stages from `begins` to the last one."""
    first = next(i for i, part in enumerate(parts) if part.startswith(begins))
    end = max(i for i, part in enumerate(parts) if part.startswith("stage"))
    style: Style = {"facecolor": "none", "edgecolor": sheet.HATCH, "hatch": "///"}
    ax.axvspan(first - 0.5, end + 0.5, zorder=0.1, linewidth=0.0, label=label, **style)


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
    their axes. Markers of later series are smaller, so that none hides another. `null` is the y
    that means "no difference", or what `level` says; `better` says in a corner where one would be,
    "" where no side is.
    """
    table = spans(spans(frame, x, "_x"), y)
    across, (low, high) = limits(None, table, name="_x", least=0.01), limits(null, table)

    def dress(panel: Any, ax: Axes) -> None:
        ax.set(xlim=across, ylim=(low - 0.07 * (high - low), high))  # room for the arrow
        ax.locator_params(axis="x", nbins=4 if facet in table else 7)

    fig = draw(
        [(table, points)],
        hue=hue,
        facet=facet if facet in table else None,
        height=3.1,
        widest=3,
        share=True,
        dress=dress,
        null=null,
        level=level,
        words={"xlabel": x, "ylabel": y, **words},
    )
    corner: Style = {"ha": "right", "va": "bottom", "fontsize": 9, "style": "italic"}
    for ax in fig.axes:
        ax.text(0.99, 0.015, better, transform=ax.transAxes, color=QUIET, **corner)
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
    drawn = table.drop(columns=["_y_low", "_y_high"])
    drawn["_y"] = pd.to_numeric(table.get("paper", np.nan), errors="coerce")
    looks = {}
    for name, look in looks_of(levels(table, hue)).items():
        label = look.label or "measured, 95 % interval"
        looks[name] = look._replace(label=label, dash="none")
    across = sheet.columns(len(levels(table, facet)), 3)
    wide = 0.45 * sheet.WIDTH / across  # inches of the names of settings
    names = [sheet.wrapped(str(name), wide) for name in levels(table, x)]
    lines = 1 + max(name.count("\n") for name in names)
    tall = max(0.36, 0.25 * len(looks), 0.03 + 9 * sheet.LINE * lines)  # inches of a setting
    height = 0.55 + len(names) * tall
    places([table, drawn], x, hue, height - 0.5)
    shown = limits(None, table, drawn, least=0.01)

    def dress(panel: Any, ax: Axes) -> None:
        sheet.name_panel(ax, ax.get_title(loc="left"), 0.4 * sheet.WIDTH / across)
        ax.set_yticks(range(len(names)), names)
        ax.set(xlim=shown, ylim=(len(names) - 0.4, -0.6))
        ax.grid(axis="y", visible=False)
        if shown[0] < 0 < shown[1]:
            ax.axvline(0, **GUESS)
        if drawn["_y"].notna().any():
            look = looks.get(None, GREY[None])
            ax.plot([], [], label=proper(source), marker="o", color=look.colour, **HOLLOW)

    turned = {"_y": "_x", "_y_low": "_x_low", "_y_high": "_x_high", "_at": "_y"}
    bare_marks = drawn.rename(columns=turned), hollow
    figure = draw(
        [(table.rename(columns=turned), points), bare_marks],
        looks=looks,
        hue=hue,
        facet=facet,
        height=height,
        widest=3,
        dress=dress,
        words=words,
    )
    columns = [name for name in (facet, hue, x) if isinstance(name, str)]
    figure.compared = printed.compared(table, columns, words.get("xlabel", ""), source)
    return figure


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
        ax.set(**{f"{axis}scale": "log" for axis in log})
        if "y" not in log:
            ax.set_ylim(shown)
        if diagonal:
            ends = np.geomspace(*ax.get_xlim(), 200) if "x" in log else np.array(ax.get_xlim())
            ax.plot(ends, ends, label=level, **GUESS)

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
    finest: dict[str, float] = {}
    tables = []
    many = any(isinstance(key, tuple) for key in found)
    for key, one in found.items():
        row, series = key if isinstance(key, tuple) else ("", key)
        finest[row] = min(finest.get(row, 1.0), one.resolution)
        curve = pd.DataFrame({"_x": one.fpr, "_y": one.tpr, "_y_low": one.low, "_y_high": one.high})
        resolved = curve[curve["_x"] >= one.resolution].clip(lower=one.resolution / 5)
        for scale, shown in zip(SCALES, (curve, resolved), strict=True):
            panel = (row, scale) if many else scale
            tables.append(shown.assign(series=series, panel=[panel] * len(shown)))

    def dress(panel: Any, ax: Axes) -> None:
        row, scale = panel if many else ("", panel)
        if scale == SCALES[0]:
            ax.plot((0, 1), (0, 1), **GUESS, label="guessing")
            ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), box_aspect=1)
        else:
            dress_logarithmic(ax, finest[row])

    return draw(
        [(pd.concat(tables), band)],
        hue="series",
        facet="panel",
        height=3.8 if len(finest) == 1 else 3.0,
        widest=1 if narrow else 2,
        width=sheet.NARROW if narrow else sheet.WIDTH,
        dress=dress,
        words={"title": title, "xlabel": "false positive rate", "ylabel": "true positive rate"},
    )


def dress_logarithmic(ax: Axes, least: float) -> None:
    """The logarithmic axes of ROC curves, which end below the resolution `least`."""
    start = least / 2.5
    ax.plot((start, 1), (start, 1), **GUESS, label="guessing")
    ax.axvspan(start, least, color=FLOOR, linewidth=0, zorder=0.5)
    ax.text(
        np.sqrt(start * least),
        0.97,
        "underpowered",
        transform=ax.get_xaxis_transform(),
        color=QUIET,
        rotation=90,
        ha="center",
        va="top",
        fontsize=8,
    )
    ax.set(xscale="log", yscale="log", box_aspect=1)
    ax.set(xlim=(start, 1), ylim=(start, 1.05))
