"""Figures: what the papers draw, and each number with its interval.

Every function takes arrays or a table (a DataFrame or a list of rows) and returns one finished Figure whose title is
the finding. A column may hold Estimates, or plain numbers with their interval in columns `low` and `high`. Colour never
stands alone: series differ in marker and line style too. A hue that is a quantity (channels, depth, epoch) gets
sequential colours, a hue that is a name gets categorical ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib.colors
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lib.report.sheet import (
    FAINT,
    FLOOR,
    HOLLOW,
    QUIET,
    Frame,
    Sheet,
    arrow,
    bins,
    finish,
    grey_floor,
    key_line,
    label_points,
    levels,
    limits,
    looks_of,
    name_axes,
    name_null,
    name_parts,
    note_above,
    only,
    panels_of,
    spans,
    within,
)
from lib.report.sheet import (
    INK as INK,  # explorers draw with it
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from lib.audit import Roc

GUESS: Any = (0, (2, 2))  # the dash of what means "no difference"


def histograms(
    panels: Mapping[Any, tuple[np.ndarray, np.ndarray]],
    names: tuple[str, str] = ("seen by both", "seen only by M_all"),
    xlabel: str = "normalised feature distance",
    title: str = "",
    notes: Mapping[Any, str] | None = None,
) -> Sheet:
    """Two laid-over distributions per panel; bins are common to a panel. Keys `(row, column)` make a grid.

    A note (an AUC with its interval, say) stands above its panel. The farthest 0.1 % are counted in the last bin.
    """
    grid, fig = panels_of(list(panels), height=1.75)
    colours = (FAINT, sns.color_palette()[1])
    for key, ax in grid.items():
        pair = [np.asarray(values, float).ravel() for values in panels[key]]
        both = np.concatenate(pair)
        low, high = np.quantile(both, [0.0, 0.999]) if both.size else (0.0, 1.0)
        row = ax.get_ylabel()
        edges = np.linspace(low, max(high, low + 1e-9), bins(pair) + 1)
        for values, colour, solid in zip(pair, colours, (True, False), strict=True):
            weights = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / max(values.size, 1)
            sns.histplot(
                x=edges[:-1], bins=list(edges), weights=weights, ax=ax, element="step", color=colour, legend=False,
                alpha=0.45 if solid else 0.12, edgecolor=QUIET if solid else colour, linewidth=0.8 if solid else 1.6,
            )  # fmt: skip
        ax.set(ylabel=row, yticks=[], xlabel="")
        ax.grid(False)
        ax.spines["left"].set_visible(False)
        ax.locator_params(axis="x", nbins=4)
        if notes and key in notes:
            note_above(ax, notes[key])
    name_axes(grid, xlabel, "share of samples")
    handles: list[Artist] = [
        Patch(facecolor=(*matplotlib.colors.to_rgb(FAINT), 0.45), edgecolor=QUIET, linewidth=0.8),
        Patch(facecolor=(*colours[1], 0.12), edgecolor=colours[1], linewidth=1.6),
    ]
    return finish(fig, title, handles, list(names))


def profile(
    frame: Frame,
    x: str = "part",
    *,
    hue: str | None = None,
    facet: str | None = None,
    value: str = "value",
    low: str = "low",
    high: str = "high",
    null: float | None = 0.5,
    floor: Frame | None = None,
    paper: Frame | None = None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "AUC",
) -> Sheet:
    """An estimate and its interval for each part of a network (or any other ordered thing), a line through each series.

    `null` is the value that means "no difference"; `floor` (same columns) is drawn as a grey band: what two seeds on
    the same data differ by; `paper` (same columns, no interval) as hollow markers.
    """
    table = spans(frame, value, low, high)
    grid, fig = panels_of(levels(table, facet), height=2.9, share=True)
    parts, series = levels(table, x), levels(table, hue)
    looks = looks_of(series)
    dodge = (np.arange(len(series)) - (len(series) - 1) / 2) * min(0.11, 0.5 / max(len(series), 1))
    band = None if floor is None else spans(floor, value, low, high)
    printed = None if paper is None else spans(paper, value, low, high)
    bottom, top = limits(null, table, band, printed)
    for key, ax in grid.items():
        if band is not None:
            grey_floor(ax, only(band, facet, key), x, parts, (bottom, top))
        if null is not None:
            ax.axhline(null, color=QUIET, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        ends: list[tuple[float, str, Any]] = []
        for index, name in enumerate(series):
            colour, marker, dash = looks[name]
            rows = only(only(table, facet, key), hue, name)
            at = rows[x].map(parts.index).to_numpy(float) + dodge[index]
            order = np.argsort(at)
            at, rows = at[order], rows.iloc[order]
            if not len(rows):
                continue
            ax.vlines(at, *within(rows, bottom, top), color=colour, alpha=0.6, linewidth=1.8, zorder=2)
            ax.plot(at, rows["_value"], color=colour, marker=marker, linestyle=dash, zorder=3, markeredgecolor="white")
            ends.append((float(rows["_value"].iloc[-1]), str(name), colour))
            if printed is not None:
                said = only(only(printed, facet, key), hue, name)
                places = said[x].map(parts.index).to_numpy(float) + dodge[index]
                ax.plot(places, said["_value"], color=colour, marker=marker, **HOLLOW)
        name_parts(ax, [str(part) for part in parts], len(grid))
        ax.set_ylim(bottom, top)
    name_null(grid, null, ends if len(grid) == 1 and len(series) > 1 else [])
    name_axes(grid, xlabel, ylabel)
    handles: list[Artist] = []
    labels: list[str] = []
    if hue and len(series) > 1 and len(grid) > 1:
        handles, labels = [key_line(looks[name]) for name in series], [str(name) for name in series]
    if band is not None:
        handles, labels = [*handles, Patch(facecolor=FLOOR, edgecolor="none")], [*labels, "two seeds, same data"]
    if printed is not None:
        handles, labels = [*handles, Line2D([], [], color=QUIET, marker="o", **HOLLOW)], [*labels, "paper"]
    return finish(fig, title, handles, labels)


def tradeoff(
    frame: Frame,
    x: str = "accuracy",
    y: str = "auc",
    *,
    hue: str = "variant",
    facet: str | None = "attack",
    chosen: str | None = None,
    null: float | None = 0.5,
    better: str = "down and right",
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
) -> Sheet:
    """Two measurements against each other, both with intervals (columns of Estimates, or `x_low`, `x_high`, ...).

    Several rows of one series (strengths of a defence) are joined in their order. Facets share their axes. `chosen`
    names a Boolean column: where it is True the point stands in a ring, with its interval and off the line; the others
    are then small and have none.
    """
    table = spans(frame, x, f"{x}_low", f"{x}_high", "_x")
    table = spans(table, y, f"{y}_low", f"{y}_high", "_y")
    facet = facet if facet in table.columns else None
    across, upward = limits(None, table, name="_x", least=0.01), limits(null, table, name="_y")
    grid, fig = panels_of(levels(table, facet), height=3.1, widest=3, share=True)
    series = levels(table, hue)
    looks = looks_of(series)
    drawn: list[tuple[Axes, pd.DataFrame]] = []
    for key, ax in grid.items():
        rows = only(table, facet, key)
        for name in series:
            colour, marker, dash = looks[name]
            own = only(rows, hue, name)
            ringed = own[own[chosen].astype(bool)] if chosen else own
            ax.hlines(ringed["_y"], *within(ringed, *across, "_x"), color=colour, alpha=0.5, linewidth=1.3, zorder=2)
            ax.vlines(ringed["_x"], *within(ringed, *upward, "_y"), color=colour, alpha=0.5, linewidth=1.3, zorder=2)
            joined = own[~own[chosen].astype(bool)] if chosen else own
            ax.plot(
                joined["_x"], joined["_y"], color=colour, marker=marker, linestyle=dash if len(joined) > 1 else "none",
                markeredgecolor="white", markersize=4.5 if chosen else 7.5, linewidth=1.1, zorder=3,
            )  # fmt: skip
            if chosen:
                ax.plot(
                    ringed["_x"], ringed["_y"], color=colour, marker=marker, linestyle="none", markeredgecolor=INK,
                    markersize=9, markeredgewidth=1.4, zorder=4,
                )  # fmt: skip
        if null is not None:
            ax.axhline(null, color=QUIET, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        drawn.append((ax, rows))
    for ax in grid.values():
        ax.set(xlim=across, ylim=upward)
    name_null(grid, null, [])
    corner = next(iter(grid.values()))
    bottom, top = corner.get_ylim()
    room = 0.07 * (top - bottom) if better else 0.0
    corner.set_ylim(bottom - room * ("down" in better), top + room * ("down" not in better))
    name_axes(grid, xlabel or x, ylabel or y)
    handles = [key_line((colour, marker, "none")) for colour, marker, _ in looks.values()]
    labels = [str(name) for name in series]
    if chosen:
        ring = Line2D([], [], linestyle="none", marker="o", color="none", markeredgecolor=INK, markersize=8)
        handles, labels = [*handles, ring], [*labels, chosen]
    direct = len(grid) == 1
    finish(fig, title, [] if direct else handles, [] if direct else labels)
    arrow(corner, better)
    if direct:
        for ax, rows in drawn:
            label_points(fig, ax, rows, hue, looks)
    return fig


def against_paper(
    frame: Frame,
    x: str = "setting",
    *,
    value: str = "value",
    low: str = "low",
    high: str = "high",
    paper: str = "paper",
    hue: str | None = None,
    facet: str | None = None,
    source: str = "paper",
    title: str = "",
    xlabel: str = "",
) -> Sheet:
    """Measured, with its interval, beside the number that the paper prints (hollow); one line for each setting.

    `source` names the paper's setting in the legend: "paper (TinyImageNet, width 64)".
    """
    table = spans(frame, value, low, high)
    settings, series = levels(table, x), levels(table, hue)
    grid, fig = panels_of(
        levels(table, facet), height=0.55 + 0.36 * len(settings) * max(1.0, 0.7 * len(series)), widest=3
    )
    looks = looks_of(series)
    printed = pd.to_numeric(table[paper], errors="coerce") if paper in table else pd.Series(dtype=float)
    left, right = limits(None, table, table.assign(_value=printed) if printed.notna().any() else None, least=0.01)
    dodge = (np.arange(len(series)) - (len(series) - 1) / 2) * min(0.3, 0.7 / max(len(series), 1))
    for key, ax in grid.items():
        for index, name in enumerate(series):
            colour, marker, _ = looks[name]
            rows = only(only(table, facet, key), hue, name)
            at = rows[x].map(settings.index).to_numpy(float) + dodge[index]
            ax.hlines(at, *within(rows, left, right), color=colour, alpha=0.55, linewidth=2.4, zorder=2)
            ax.plot(
                rows["_value"], at, color=colour, marker=marker, linestyle="none", markeredgecolor="white", zorder=3
            )
            if paper in rows:
                ax.plot(printed[rows.index], at, color=colour, marker=marker, **HOLLOW)
        ax.set_yticks(range(len(settings)), [str(name) for name in settings])
        ax.set_ylim(len(settings) - 0.4, -0.6)
        ax.grid(axis="y", visible=False)
        ax.set_xlim(left, right)
    name_axes(grid, xlabel, "")
    handles: list[Artist] = []
    labels: list[str] = []
    if hue and len(series) > 1:
        handles = [key_line((colour, marker, "none")) for colour, marker, _ in looks.values()]
        labels = [str(name) for name in series]
    else:
        handles, labels = [key_line((*looks[series[0]][:2], "none"))], ["measured, 95 % interval"]
    if printed.notna().any():
        shown = looks[series[0]] if len(series) == 1 else (QUIET, "o", "none")
        handles, labels = [*handles, Line2D([], [], color=shown[0], marker=shown[1], **HOLLOW)], [*labels, source]
    return finish(fig, title, handles, labels)


def curves(
    frame: Frame,
    x: str,
    y: str = "value",
    *,
    hue: str | None = None,
    facet: str | None = None,
    low: str = "low",
    high: str = "high",
    null: float | None = None,
    diagonal: bool = False,
    log: str = "",
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
) -> Sheet:
    """Lines over a quantity (epoch, strength, false positive rate), each in its band. `log` is "", "x", "y" or "xy".

    `null` draws the value that means "no difference"; `diagonal` draws y = x, which means it for ROC curves.
    """
    table = spans(frame, y, low, high)
    bottom, top = limits(null, table)
    grid, fig = panels_of(levels(table, facet), height=2.9, widest=3, share=True)
    series = levels(table, hue)
    looks = looks_of(series)
    for key, ax in grid.items():
        ends: list[tuple[float, str, Any]] = []
        for name in series:
            colour, _, dash = looks[name]
            rows = only(only(table, facet, key), hue, name).sort_values(x, kind="stable")
            if not len(rows):
                continue
            if (rows["_high"] > rows["_low"]).any():
                edges = (rows["_low"], rows["_high"]) if "y" in log else within(rows, bottom, top)
                ax.fill_between(rows[x].astype(float), *edges, color=colour, alpha=0.14, linewidth=0)
            ax.plot(rows[x].astype(float), rows["_value"], color=colour, linestyle=dash)
            ends.append((float(rows["_value"].iloc[-1]), str(name), colour))
        if "x" in log:
            ax.set_xscale("log")
        if "y" in log:
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom, top)
        ax.margins(x=0.01)
        if null is not None:
            ax.axhline(null, color=QUIET, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        elif diagonal:
            ends_of_x = np.geomspace(*ax.get_xlim(), 200) if "x" in log else np.array(ax.get_xlim())
            ax.plot(ends_of_x, ends_of_x, color=QUIET, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
    name_null(grid, null, ends if len(grid) == 1 and len(series) > 1 else [])
    name_axes(grid, xlabel or x, ylabel or y)
    shown = hue and len(series) > 1 and len(grid) > 1
    handles: list[Artist] = [key_line((colour, "", dash)) for colour, _, dash in looks.values()] if shown else []
    return finish(fig, title, handles, [str(name) for name in series] if shown else [])


def roc(
    found: Mapping[Any, Roc],
    *,
    title: str = "",
    xlabel: str = "false positive rate",
    ylabel: str = "true positive rate",
) -> Sheet:
    """ROC curves (`audit.roc_band`) with their pointwise 95 % bands, on linear and on logarithmic axes side by side.

    Keys are names of series, or pairs (row, series): a row of two panels for each. A logarithmic axis ends below the
    resolution, the smallest FPR that the non-members can show; no curve is drawn there.
    """
    facets = list(dict.fromkeys(key[0] for key in found)) if all(isinstance(key, tuple) for key in found) else [None]
    drawn = {(facet, series): band for facet in facets for series, band in _row(found, facet).items()}
    looks = looks_of(list(dict.fromkeys(series for _, series in drawn)))
    scales = ("linear axes", "logarithmic axes")
    names = {(f, scale): scale if f is None else f"{f}, {scale}" for f in facets for scale in scales}
    grid, fig = panels_of(list(names.values()), height=3.8 if len(facets) == 1 else 3.0, widest=2)
    for facet in facets:
        bands = _row(found, facet)
        finest = min((band.resolution for band in bands.values()), default=0.01)
        for scale in scales:
            ax, log = grid[names[facet, scale]], scale == scales[1]
            start = finest / 2.5 if log else 0.0
            for name, band in bands.items():
                colour, _, dash = looks[name]
                shown = band.fpr >= (band.resolution if log else 0.0)
                x = band.fpr[shown]
                y, low, high = (np.maximum(part[shown], start / 2) for part in (band.tpr, band.low, band.high))
                ax.fill_between(x, low, high, color=colour, alpha=0.14, linewidth=0)
                ax.plot(x, y, color=colour, linestyle=dash)
            ax.plot((start, 1), (start, 1), color=QUIET, linewidth=0.9, linestyle=GUESS, zorder=1)
            if log:
                ax.set(xscale="log", yscale="log")
                ax.axvspan(start, finest, color=FLOOR, linewidth=0, zorder=0.5)
                ax.text(
                    np.sqrt(start * finest), 0.97, "below resolution", transform=ax.get_xaxis_transform(), rotation=90,
                    ha="center", va="top", color=QUIET, fontsize=8,
                )  # fmt: skip
            margin = 0.0 if log else 0.01
            ax.set(xlim=(start - margin, 1 + margin), ylim=(start - margin, 1.05 if log else 1 + margin))
            ax.set_box_aspect(1)
    name_axes(grid, xlabel, ylabel)
    handles: list[Artist] = [key_line((colour, "", dash)) for colour, _, dash in looks.values()]
    handles.append(Line2D([], [], color=QUIET, linewidth=0.9, linestyle=GUESS))
    return finish(fig, title, handles, [*map(str, looks), "guessing"])


def _row(found: Mapping[Any, Roc], facet: Any) -> dict[Any, Roc]:
    """The series of one row of panels; of the only one, where keys are plain names."""
    return dict(found) if facet is None else {key[1]: band for key, band in found.items() if key[0] == facet}
