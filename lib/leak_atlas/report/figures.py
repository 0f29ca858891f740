"""Figures of all reports. Every number is drawn with its 95 % interval.

A function takes arrays or a table (a DataFrame or a list of rows) and returns one finished Figure.
Its title is the finding. `labels` are its `title`, `xlabel` and `ylabel`. A column of a table may
hold Estimates, or plain numbers with their interval in columns `low` and `high`. Series differ in
colour, marker and line style. A hue that is a quantity (channels, depth, epoch) gets sequential
colours, a hue that is a name gets categorical ones.

All functions call `draw`, with *layers*. A layer is a table and a *mark*: a function that draws one
series on axes. For a new figure call `draw`; for a new way to draw a series write a mark. Columns
that marks read:

- `_x`, `_y`: the values;
- `_x_low`, `_x_high`, `_y_low`, `_y_high`: the ends of their intervals;
- `_at`: the position of a name on an axis of names (see `add_positions`).
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
SCALES = ("linear axes", "logarithmic axes")  # of a ROC curve
FPR, TPR = "FPR of a sample", "TPR of a sample"  # axes of a vulnerability plane
CENTRE_COLOUR = "#d1550b"
CELLS = 40  # along an axis of a plane, if rates are continuous
MAX_CELLS = 64  # along an axis, if rates are multiples of 1 / networks
MOST_NETWORKS = 1000  # if rates lie closer than 1 / 1000, they are continuous
FEWEST_LEVELS = 8  # possible rates; a few samples may have fewer rates than the networks allow
NO_SERIES = {None: Look("", QUIET, "o", "-")}  # the look of a layer without series: grey
NO_DIFFERENCE = "no difference"  # label of most reference lines
REFERENCE: Style = {"color": QUIET, "linewidth": 0.9, "linestyle": (0, (2, 2)), "zorder": 1}
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


def cut_ends(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """Arrows at the ends of the axes where an interval goes on beyond them."""
    left, right = sorted(ax.get_xlim())
    bottom, top = sorted(ax.get_ylim())
    style: Style = {"color": look.colour, "alpha": 0.55, "linestyle": "none", "clip_on": False}

    def arrow(x: float, y: float, marker: str) -> None:
        ax.plot(x, y, marker=marker, markersize=5, **style)

    if "_x_low" in rows:
        for y in rows.loc[rows["_x_low"] < left, "_y"].dropna():
            arrow(left, y, "<")
        for y in rows.loc[rows["_x_high"] > right, "_y"].dropna():
            arrow(right, y, ">")
    if "_y_low" in rows:
        for x in rows.loc[rows["_y_low"] < bottom, "_x"].dropna():
            arrow(x, bottom, "v")
        for x in rows.loc[rows["_y_high"] > top, "_x"].dropna():
            arrow(x, top, "^")


def points(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """The values with their intervals, joined by a line in the look's dash."""
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
    """A line over `_x` with a band for its intervals; a single value has a marker."""
    if len(rows) == 1:
        points(ax, rows, look)
        return
    ends = rows["_y_low"], rows["_y_high"]
    ax.fill_between(rows["_x"], *ends, color=look.colour, alpha=0.14, linewidth=0)
    ax.plot(rows["_x"], rows["_y"], color=look.colour, linestyle=look.dash, label=look.label)


def marked_band(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """A band whose line has a marker at each measured value."""
    band(ax, rows, look)
    ax.lines[-1].set(marker=look.marker, markersize=look.size, markeredgecolor="white")


def chance_bars(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """Grey bars over the intervals: by how much two seeds on the same data differ."""
    ax.bar(
        rows["_x"],
        rows["_y_high"] - rows["_y_low"],
        width=0.9,
        bottom=rows["_y_low"],
        color=FLOOR,
        zorder=0.5,
        label="chance: two seeds, same data",
    )


def stairs(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """A histogram: bins of equal width start at `_x` and have the share `_y`. A look without a line
    (dash "none") gives an outline, others are filled.
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


def mean_line(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """A vertical line at the series' mean `_x`: dashed for an outline."""
    outline = look.dash == "none"
    ax.axvline(
        rows["_x"].iloc[0],
        color=look.colour if outline else QUIET,
        linestyle="--" if outline else "-",
        linewidth=1.4,
        label=f"mean of {look.label}",
    )


def paper_values(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """A paper's numbers: hollow markers without intervals."""
    ax.plot(
        rows["_x"],
        rows["_y"],
        color=look.colour,
        marker=look.marker,
        label=look.label,
        zorder=4,
        **HOLLOW,
    )


# ---------------------------------------------------------------- panels, layers and legend


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
    format_axes: Callable[[Any, Axes], None],
    notes: Notes = None,
    reference: float | None = None,
    reference_label: str = NO_DIFFERENCE,
    labels: Mapping[str, str] | None = None,
) -> Sheet:
    """One panel for each value of `facet`. A panel has the marks of all layers, series by series.

    A layer without the column `hue` is grey. `format_axes(panel, ax)` sets scales and limits,
    `notes` are lines of text above panels, by panel. `reference` is the y of a dashed line, with
    its label. The legend stands above all panels. `height` (of a panel) and `width` are in inches.
    """
    first = layers[0][0]
    looks = looks or looks_of(levels(first, hue))
    grid, fig = sheet.panels_of(levels(first, facet), height, widest, share, width)
    fig.numbers = sheet.numbers(*(table for table, _ in layers))
    legend: Style = {}
    for panel, ax in grid.items():
        drawn = []
        for table, mark in layers:
            in_this_panel = only(table, facet, panel)
            has_series = hue is None or hue in table
            series = looks if has_series else NO_SERIES
            for name, look in series.items():
                rows = only(in_this_panel, hue, name)
                if len(rows):
                    mark(ax, rows, look)
                    drawn.append((mark, rows, look))
        format_axes(panel, ax)
        for mark, rows, look in drawn:
            if mark is points:
                cut_ends(ax, rows, look)
        if notes and notes.get(panel):
            sheet.note_above(ax, notes[panel])
        if reference is not None:
            ax.axhline(reference, label=f"{reference_label} ({reference:.3g})", **REFERENCE)
        for artist, label in zip(*ax.get_legend_handles_labels(), strict=True):
            legend.setdefault(label, artist)
    sheet.finish(fig, legend, **(labels or {}))
    return fig


def add_positions(
    tables: Sequence[pd.DataFrame], x: str, hue: Column, axis_inches: float
) -> list[str]:
    """Adds the column `_at` to each table, in place: the position of a row's name `x` on an axis of
    names. Returns the names.

    Where intervals of the first table would cover each other, its series are shifted by .1 inch
    each, and all together by at most .6 of the way to the next name.
    """
    first = tables[0]
    names = levels(first, x)
    series = levels(first, hue)
    gap = 0.0  # between two series, as a share of the way to the next name
    if (first["_y_high"] > first["_y_low"]).any():
        gap = min(0.1 * len(names) / axis_inches, 0.6 / len(series))
    centre = (len(series) - 1) / 2
    shift = {name: (number - centre) * gap for number, name in enumerate(series)}
    for table in tables:
        table["_at"] = table[x].map(names.index).astype(float)
        if hue in table:
            table["_at"] += table[hue].map(shift).astype(float)
    return [str(name) for name in names]


# ---------------------------------------------------------------- distributions


def histograms(
    panels: Mapping[Any, tuple[NDArray, NDArray]],
    names: Sequence[str],
    notes: Notes = None,
    *,
    log: bool = False,
    **labels: str,
) -> Sheet:
    """Two overlaid histograms in each panel, with the same bins. Keys `(row, column)` make a grid
    of panels.

    `names` are those of the two distributions, `notes` lines of text above panels, by panel. Values
    above the 99.9th percentile count in the last bin. With `log` (for rare values) the shares have
    a logarithmic axis for all panels, each mean has a vertical line, and the panels of a column
    have the same bins.
    """
    counted, means = [], []
    for panel, pair in panels.items():
        rows = histogram_rows(pair, names, pairs_in_column(panels, panel) if log else [pair])
        counted.append(rows.assign(panel=[panel] * len(rows)))
        for name, values in zip(names, pair, strict=True):
            means.append({"panel": panel, "who": name, "_x": float(np.mean(values))})
    table = pd.concat(counted)
    heights = table.loc[table["_y"] > 0, "_y"]

    def logarithmic(panel: Any, ax: Axes) -> None:
        ax.set(yscale="log", ylim=(heights.min() / 1.5, heights.max() * 1.5))
        ax.locator_params(axis="x", nbins=4)

    layers: list[tuple[pd.DataFrame, Mark]] = [(table, stairs)]
    if log:
        layers.append((pd.DataFrame(means), mean_line))
    return draw(
        layers,
        looks=filled_and_outline(names),
        hue="who",
        facet="panel",
        height=1.75,
        notes=notes,
        format_axes=logarithmic if log else hide_y_axis,
        labels={"ylabel": "share of samples", **labels},
    )


def pairs_in_column(
    panels: Mapping[Any, tuple[NDArray, NDArray]], panel: Any
) -> list[tuple[NDArray, NDArray]]:
    """The pairs of all panels in the column of `panel`, which get the same bins. A key without a
    column has only its own pair.
    """
    if not isinstance(panel, tuple):
        return [panels[panel]]
    return [pair for key, pair in panels.items() if key[1] == panel[1]]


def filled_and_outline(names: Sequence[str]) -> dict[str, Look]:
    """The looks of two distributions: the first is filled, the second an outline."""
    looks = looks_of(names)
    first, second = names
    looks[first] = looks[first]._replace(colour=sheet.FAINT)
    looks[second] = looks[second]._replace(dash="none")
    return looks


def histogram_rows(
    pair: Sequence[NDArray], names: Sequence[str], range_of: Sequence[Sequence[NDArray]]
) -> pd.DataFrame:
    """The rows that `stairs` draws of two sets of values: `who`, `_x` (start of a bin) and `_y`
    (share of the values). Bins cover the values of all pairs in `range_of`.
    """
    flat = [np.ravel(values) for values in chain.from_iterable(range_of)]
    together = np.concatenate(flat)
    low, high = 0.0, 1.0
    if together.size:
        low, high = np.quantile(together, [0.0, 0.999])
    fewest = min(map(np.size, pair))
    bins = int(np.clip(np.sqrt(fewest) * 1.1, 8, 40))  # about the square root of the sample size
    edges = np.linspace(low, max(high, low + 1e-9), bins + 1)
    tables = []
    for name, values in zip(names, pair, strict=True):
        inside = np.clip(values, edges[0], edges[-1])
        counts, _ = np.histogram(inside, edges)
        share = counts / max(np.size(values), 1)
        tables.append(pd.DataFrame({"who": name, "_x": edges[:-1], "_y": share}))
    return pd.concat(tables)


def hide_y_axis(panel: Any, ax: Axes) -> None:
    """For histograms on a linear axis: only their shapes are compared."""
    ax.set(yticks=[], ylim=(0, None))
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    ax.locator_params(axis="x", nbins=4)


# ---------------------------------------------------------------- many things in a plane


def density(
    panels: Mapping[Any, tuple[ArrayLike, ArrayLike]],
    *,
    counted: str,
    notes: Notes = None,
    **labels: str,
) -> Sheet:
    """A two-dimensional histogram of `x (n,)` and `y (n,)` in each panel, on logarithmic axes. No
    value is negative.

    The colour of a cell is the number of points, which `counted` names. Keys `(row, column)` make a
    grid; all panels share axes and colours. Zeros and the smallest 0.1 % lie on the lower or left
    border. `notes` are lines of text above panels, by panel.
    """
    table = pd.concat([in_panel(key, x, y) for key, (x, y) in panels.items()])
    values = table[["_x", "_y"]]
    least, most = values[values > 0].quantile(1e-3), values.max()
    edges = [np.geomspace(least[name] / 1.2, most[name] * 1.2, 45) for name in values]
    table[["_x", "_y"]] = values.clip(lower=least, axis=1)
    norm = LogNorm(1, 10)

    def cells(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
        count_in_cells(ax, rows, edges, norm)

    def format_axes(panel: Any, ax: Axes) -> None:
        ax.set(xscale="log", yscale="log")
        ax.locator_params(numticks=4)
        ax.minorticks_off()

    fig = draw(
        [(table, cells)],
        facet="panel",
        height=2.1,
        share=True,
        notes=notes,
        format_axes=format_axes,
        labels=labels,
    )
    fig.numbers = None  # no CSV: it would have a row for each point
    colour_key(fig, norm, counted)
    return fig


def in_panel(panel: Any, x: ArrayLike, y: ArrayLike) -> pd.DataFrame:
    """Points of one panel, as `draw` takes them."""
    x = np.ravel(x)
    return pd.DataFrame({"_x": x, "_y": np.ravel(y), "panel": [panel] * len(x)})


def count_in_cells(ax: Axes, rows: pd.DataFrame, edges: Any, norm: LogNorm) -> None:
    """Draws the number of points in each cell. Raises `norm.vmax` to the largest number, so that
    all panels share one colour scale.
    """
    style: Style = {"cmap": sheet.SEQUENTIAL, "rasterized": True}
    counts, *_ = ax.hist2d(rows["_x"], rows["_y"], edges, cmin=1, norm=norm, **style)
    norm.vmax = max(norm.vmax or 0.0, np.nanmax(counts))


def colour_key(fig: Sheet, norm: LogNorm, counted: str) -> None:
    """The colour bar at the right of all panels."""
    mapped = ScalarMappable(norm, sheet.SEQUENTIAL)
    fig.colorbar(mapped, ax=fig.axes, label=f"{counted} in a cell", aspect=40, pad=0.01)


def planes(trajectories: Mapping[str, ArrayLike], epochs: Sequence[int], **labels: str) -> Sheet:
    """The vulnerability plane (Dynamics) of each trajectory, a row of panels, at five epochs.

    A trajectory has the shape `(E, 2, n)`: at each of E `epochs`, of each of n samples, its false
    positive rate `[e, 0]` (the share of the networks that did not train on it, but call it a
    member) and its true positive rate `[e, 1]` (the same share of the networks that trained on it).
    Epoch 0 is before training. The panels are the first, the last, and three epochs between. The
    colour of a cell is the number of samples.
    """
    shown = dict.fromkeys(np.linspace(0, len(epochs) - 1, 5).round().astype(int))
    norm = LogNorm(1, 10)
    samples, centres = [], []
    edges: dict[Any, list[FloatArray]] = {}
    for name, values in trajectories.items():
        rates = np.asarray(values, float)
        for at in shown:
            epoch = "before training" if epochs[at] == 0 else f"epoch {epochs[at]}"
            panel = (name, epoch)
            edges[panel] = [cell_edges(rates[:, 0]), cell_edges(rates[:, 1])]
            samples.append(in_panel(panel, rates[at, 0], rates[at, 1]))
            path = rates[: at + 1].mean(axis=2)  # (epochs so far, 2)
            centres.append(in_panel(panel, path[:, 0], path[:, 1]))

    def cells(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
        count_in_cells(ax, rows, edges[rows["panel"].iloc[0]], norm)

    def format_axes(panel: Any, ax: Axes) -> None:
        ax.plot((0, 1), (0, 1), **REFERENCE, label="guessing (TPR = FPR)")
        ax.set(xlim=(-0.07, 1.07), ylim=(-0.07, 1.07), aspect="equal")
        ax.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))

    fig = draw(
        [(pd.concat(samples), cells), (pd.concat(centres), path_of_centre)],
        facet="panel",
        height=1.65,
        widest=5,
        share=True,
        format_axes=format_axes,
        labels={"xlabel": FPR, "ylabel": TPR, **labels},
    )
    # all panels have the same size
    fig.set_layout_engine("compressed", w_pad=0.05, h_pad=0.05)
    colour_key(fig, norm, "samples")
    return fig


def path_of_centre(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """The path of the mean FPR and TPR, with a marker at the panel's epoch."""
    ax.plot(rows["_x"], rows["_y"], color="white", linewidth=2.6, zorder=3)
    ax.plot(rows["_x"], rows["_y"], color=CENTRE_COLOUR, linewidth=1.2, zorder=3)
    now = rows.iloc[-1:]
    ax.plot(
        now["_x"],
        now["_y"],
        color=CENTRE_COLOUR,
        marker="o",
        markersize=6.5,
        markeredgecolor="white",
        linestyle="none",
        zorder=4,
        label="mean over samples, and its path so far",
    )


def cell_edges(rates: FloatArray) -> FloatArray:
    """Edges of the cells along an axis for `rates` of any shape: `(cells + 1,)`.

    Rates over few networks are multiples of 1 / networks. Then each cell has the same number of
    possible rates, so that no cell is empty by construction.
    """
    gaps = np.diff(np.unique(rates.round(6)))
    networks = round(1 / gaps.min()) if gaps.size else CELLS
    if networks > MOST_NETWORKS:
        return np.linspace(0, 1, CELLS + 1)
    # A multiple of the number of networks has the same possible rates, and more.
    networks *= math.ceil(FEWEST_LEVELS / networks)
    levels_in_cell = math.ceil((networks + 1) / (MAX_CELLS + 1))
    first_levels = np.arange(0, networks + 1 + levels_in_cell, levels_in_cell)
    return (first_levels - 0.5) / networks


# ---------------------------------------------------------------- estimates


def profile(
    frame: Frame,
    x: str = "part",
    *,
    hue: Column = None,
    facet: Column = None,
    reference: float | None = 0.5,
    reference_label: str = NO_DIFFERENCE,
    floor: Frame | None = None,
    hatch_from: str = "",
    hatch_label: str = "stages with a disparity in the paper",
    **labels: str,
) -> Sheet:
    """Estimates over an ordered `x` (parts of a network, sparsity, ...), a line for each series.

    `reference` is the y of a dashed line, with its label. `floor` (same columns) is drawn as grey
    bars: by how much two seeds on the same data differ. Stages from `hatch_from` on are hatched,
    for the reason in `hatch_label`.
    """
    tables = [spans(frame)]
    if floor is not None:
        tables.append(spans(floor).drop(columns=hue or [], errors="ignore"))
    panels = levels(tables[0], facet)
    label_inches = 18 * sheet.LINE * tables[0][x].nunique()  # width of a panel's slanted names
    widest = int(np.clip(0.8 * sheet.WIDTH / label_inches, 1, 4))
    columns = sheet.columns(len(panels), widest)
    parts = add_positions(tables, x, hue, 0.8 * sheet.WIDTH / columns)
    y_limits = limits(reference, *tables)

    def format_axes(panel: Any, ax: Axes) -> None:
        names = [part.replace("stage", "stage ") if part[5:].isdigit() else part for part in parts]
        sheet.name_parts(ax, names, columns)
        ax.set_ylim(y_limits)
        if hatch_from:
            hatch(ax, parts, hatch_from, hatch_label)

    ordered = [table.assign(_x=table["_at"]).sort_values("_x", kind="stable") for table in tables]
    layers: list[tuple[pd.DataFrame, Mark]] = [(ordered[0], points)]
    if floor is not None:
        layers.append((ordered[1], chance_bars))
    return draw(
        layers,
        hue=hue,
        facet=facet,
        height=2.9,
        widest=widest,
        share=True,
        format_axes=format_axes,
        reference=reference,
        reference_label=reference_label,
        labels={"ylabel": "AUC", **labels},
    )


def hatch(ax: Axes, parts: Sequence[str], hatch_from: str, label: str) -> None:
    """Hatches the parts from the first whose name begins with `hatch_from` to the last stage."""
    first = next(i for i, part in enumerate(parts) if part.startswith(hatch_from))
    last = max(i for i, part in enumerate(parts) if part.startswith("stage"))
    style: Style = {"facecolor": "none", "edgecolor": sheet.HATCH, "hatch": "///"}
    ax.axvspan(first - 0.5, last + 0.5, zorder=0.1, linewidth=0.0, label=label, **style)


def tradeoff(
    frame: Frame,
    x: str = "accuracy",
    y: str = "auc",
    *,
    hue: str = "variant",
    facet: Column = "attack",
    reference: float | None = 0.5,
    reference_label: str = NO_DIFFERENCE,
    corner_label: str = "better ↘",
    **labels: str,
) -> Sheet:
    """Two measurements against each other, both columns of Estimates. Plain numbers have no
    intervals.

    The rows of a series (strengths of a defence) are joined in their order. Panels share their
    axes. `reference` is the y of a dashed line, with its label; `corner_label` says which corner is
    the better one ("": none).
    """
    table = spans(spans(frame, x, "_x"), y)
    x_limits = limits(None, table, name="_x", least=0.01)
    low, high = limits(reference, table)

    def format_axes(panel: Any, ax: Axes) -> None:
        ax.set(xlim=x_limits, ylim=(low - 0.07 * (high - low), high))  # room for the corner's label
        ax.locator_params(axis="x", nbins=4 if facet in table else 7)

    fig = draw(
        [(table, points)],
        hue=hue,
        facet=facet if facet in table else None,
        height=3.1,
        widest=3,
        share=True,
        format_axes=format_axes,
        reference=reference,
        reference_label=reference_label,
        labels={"xlabel": x, "ylabel": y, **labels},
    )
    corner: Style = {"ha": "right", "va": "bottom", "fontsize": 9, "style": "italic"}
    for ax in fig.axes:
        ax.text(0.99, 0.015, corner_label, transform=ax.transAxes, color=QUIET, **corner)
    return fig


def against_paper(
    frame: Frame,
    x: str = "setting",
    *,
    hue: Column = None,
    facet: Column = None,
    source: str = "paper",
    reference: float | None = None,
    reference_label: str = NO_DIFFERENCE,
    share: bool = True,
    **labels: str,
) -> Sheet:
    """Our estimates with intervals and, as hollow markers, the paper's numbers (column `paper`,
    which may be empty); a row for each setting.

    `source` names the paper's setting in the legend: "paper (TinyImageNet, width 64)". `reference`
    is where a dashed line stands, with its label. `share`: all panels have the same axis; without,
    each panel has the limits of its own values.
    """
    ours = spans(frame)
    paper = ours.drop(columns=["_y_low", "_y_high"])
    paper["_y"] = pd.to_numeric(ours.get("paper", np.nan), errors="coerce")
    looks = {}
    for name, look in looks_of(levels(ours, hue)).items():
        label = look.label or "measured, 95 % interval"
        looks[name] = look._replace(label=label, dash="none")
    columns = sheet.columns(len(levels(ours, facet)), 3)
    label_inches = 0.45 * sheet.WIDTH / columns  # width of the settings' names
    names = [sheet.wrapped(str(name), label_inches) for name in levels(ours, x)]
    lines = 1 + max(name.count("\n") for name in names)
    row_inches = max(0.36, 0.25 * len(looks), 0.12 + 9 * sheet.LINE * lines)
    height = 0.55 + len(names) * row_inches
    add_positions([ours, paper], x, hue, height - 0.5)

    def format_axes(panel: Any, ax: Axes) -> None:
        shown = [ours, paper]
        if not share:
            shown = [only(table, facet, panel) for table in shown]
        left, right = limits(reference, *shown, least=0.01)
        sheet.name_panel(ax, ax.get_title(loc="left"), 0.4 * sheet.WIDTH / columns)
        ax.set_yticks(range(len(names)), names)
        ax.set(xlim=(left, right), ylim=(len(names) - 0.4, -0.6))
        ax.grid(axis="y", visible=False)
        if left < 0 < right:
            ax.axvline(0, **REFERENCE)
        if reference is not None:
            ax.axvline(reference, label=f"{reference_label} ({reference:.3g})", **REFERENCE)
        with_numbers = paper[paper["_y"].notna()]
        if len(with_numbers):  # an entry in the legend: grey, where several series have numbers
            series = levels(with_numbers, hue)
            look = looks[series[0]] if len(series) == 1 else NO_SERIES[None]
            ax.plot([], [], label=proper(source), marker=look.marker, color=look.colour, **HOLLOW)

    swapped = {"_y": "_x", "_y_low": "_x_low", "_y_high": "_x_high", "_at": "_y"}  # values along x
    figure = draw(
        [
            (ours.rename(columns=swapped), points),
            (paper.rename(columns=swapped), paper_values),
        ],
        looks=looks,
        hue=hue,
        facet=facet,
        height=height,
        widest=3,
        format_axes=format_axes,
        labels=labels,
    )
    described = [name for name in (facet, hue, x) if isinstance(name, str)]
    figure.compared = printed.compared(ours, described, labels.get("xlabel", ""), source)
    return figure


def curves(
    frame: Frame,
    x: str,
    *,
    hue: Column = None,
    facet: Column = None,
    reference: float | None = None,
    reference_label: str = NO_DIFFERENCE,
    diagonal: bool = False,
    log_x: bool = False,
    share: bool = True,
    marked: bool = False,
    **labels: str,
) -> Sheet:
    """Lines over a quantity (epoch, strength, number of shadow models), each with a band for its
    intervals.

    `reference` is the y of a dashed line, with its label; `diagonal` draws y = x with that label.
    `log_x`: the x axis is logarithmic. `share`: all panels have the same axes; without, each panel
    has the limits of its own values. `marked`: each measured x has a tick and a marker.
    """
    table = spans(frame)
    table = table.assign(_x=table[x].astype(float)).sort_values("_x", kind="stable")

    def format_axes(panel: Any, ax: Axes) -> None:
        ax.margins(x=0.01)
        if log_x:
            ax.set_xscale("log")
        if marked:
            ax.set_xticks(table["_x"].unique())
        ax.set_ylim(limits(reference, table if share else only(table, facet, panel)))
        if diagonal:  # y = x bends on a logarithmic axis
            ends = ax.get_xlim()
            line = np.geomspace(*ends, 200) if log_x else np.array(ends)
            ax.plot(line, line, label=reference_label, **REFERENCE)

    return draw(
        [(table, marked_band if marked else band)],
        hue=hue,
        facet=facet,
        height=2.9,
        widest=3,
        share=share,
        format_axes=format_axes,
        reference=reference,
        reference_label=reference_label,
        labels={"xlabel": x, "ylabel": "value", **labels},
    )


def roc(curves_of: Mapping[Any, Roc], *, title: str = "", narrow: bool = False) -> Sheet:
    """ROC curves (`audit.roc_band`) with their pointwise 95 % bands, on linear and on logarithmic
    axes side by side.

    Keys are names of series, or pairs (row, series): a row of two panels for each. The *resolution*
    is the smallest FPR above 0 that the non-members can show. On logarithmic axes curves begin
    there, and smaller FPRs are grey. `narrow` puts the two panels below each other, for phones.
    """
    resolutions: dict[str, float] = {}
    tables = []
    has_rows = any(isinstance(key, tuple) for key in curves_of)
    for key, one in curves_of.items():
        row, series = key if isinstance(key, tuple) else ("", key)
        resolutions[row] = min(resolutions.get(row, 1.0), one.resolution)
        curve = pd.DataFrame({"_x": one.fpr, "_y": one.tpr, "_y_low": one.low, "_y_high": one.high})
        resolved = curve[curve["_x"] >= one.resolution].clip(lower=one.resolution / 5)
        for scale, shown in zip(SCALES, (curve, resolved), strict=True):
            panel = (row, scale) if has_rows else scale
            tables.append(shown.assign(series=series, panel=[panel] * len(shown)))

    def format_axes(panel: Any, ax: Axes) -> None:
        row, scale = panel if has_rows else ("", panel)
        if scale == SCALES[0]:
            ax.plot((0, 1), (0, 1), **REFERENCE, label="guessing")
            ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), box_aspect=1)
        else:
            format_logarithmic(ax, resolutions[row])

    return draw(
        [(pd.concat(tables), band)],
        hue="series",
        facet="panel",
        height=3.8 if len(resolutions) == 1 else 3.0,
        widest=1 if narrow else 2,
        width=sheet.NARROW if narrow else sheet.WIDTH,
        format_axes=format_axes,
        labels={"title": title, "xlabel": "false positive rate", "ylabel": "true positive rate"},
    )


def format_logarithmic(ax: Axes, resolution: float) -> None:
    """The logarithmic axes of ROC curves, grey below the resolution."""
    start = resolution / 2.5
    ax.plot((start, 1), (start, 1), **REFERENCE, label="guessing")
    ax.axvspan(start, resolution, color=FLOOR, linewidth=0, zorder=0.5)
    ax.text(
        np.sqrt(start * resolution),
        0.97,
        "too few non-members",
        transform=ax.get_xaxis_transform(),
        color=QUIET,
        rotation=90,
        ha="center",
        va="top",
        fontsize=8,
    )
    ax.set(xscale="log", yscale="log", box_aspect=1)
    ax.set(xlim=(start, 1), ylim=(start, 1.05))
