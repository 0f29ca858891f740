"""Figures of more points than can be drawn: how many lie where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.colors import LogNorm
from numpy.typing import ArrayLike, NDArray

from lib import BadInput
from lib.report.sheet import INK, SEQUENTIAL, Sheet, finish, name_axes, note_above, panels_of

FEW = 1000  # points that can be seen one by one
CELLS = 44  # along each axis
FARTHEST = 1e-3  # of the points, those below or left of all others that are drawn on the border


def density(
    panels: Mapping[Any, tuple[ArrayLike, ArrayLike]],
    *,
    xlabel: str = "",
    ylabel: str = "",
    counted: str = "points",
    title: str = "",
    notes: Mapping[Any, str] | None = None,
) -> Sheet:
    """Two numbers of each of many things, `x (n,)` against `y (n,)`, none negative, on logarithmic axes.

    Up to 1,000 points are drawn; of more, each cell's colour says how many they are, on one scale for all panels. Keys
    `(row, column)` make a grid; the panels of a row share their axes. Zeros, which have no logarithm, and the smallest
    0.1 % of a row lie on the left or lower border. A note stands above its panel. Raises BadInput on negative numbers.
    """
    found = {key: tuple(np.asarray(values, float).ravel() for values in pair) for key, pair in panels.items()}
    if any((values < 0).any() or not np.isfinite(values).all() for pair in found.values() for values in pair):
        raise BadInput("a density has logarithmic axes: give finite numbers of 0 or more")
    grid, fig = panels_of(list(found), height=2.1)
    meshes = []
    for key, ax in grid.items():
        row = [pair for other, pair in found.items() if not isinstance(key, tuple) or other[0] == key[0]]
        edges = [_edges(np.concatenate([pair[i] for pair in row])) for i in (0, 1)]
        x, y = (np.clip(values, own[0], own[-1]) for values, own in zip(found[key], edges, strict=True))
        if len(x) > FEW:
            counts = np.histogram2d(x, y, edges)[0].T
            colours = sns.color_palette(SEQUENTIAL, as_cmap=True)
            meshes.append(ax.pcolormesh(*edges, np.ma.masked_equal(counts, 0), cmap=colours, rasterized=True))
        else:
            ax.plot(x, y, linestyle="none", marker="o", markersize=2.4, color=INK, alpha=0.6, markeredgewidth=0)
        ax.set(xscale="log", yscale="log", xlim=edges[0][[0, -1]], ylim=edges[1][[0, -1]])
        ax.locator_params(axis="x", numticks=3)
        ax.locator_params(axis="y", numticks=4)
        ax.minorticks_off()
        if notes and key in notes:
            note_above(ax, notes[key])
    if meshes:
        most = max(float(mesh.get_array().max()) for mesh in meshes)  # type: ignore[union-attr]
        for mesh in meshes:
            mesh.set_norm(LogNorm(1, max(most, 10)))
        fig.colorbar(meshes[0], ax=list(grid.values()), label=f"{counted} in a cell", aspect=40, pad=0.01)
    name_axes(grid, xlabel, ylabel)
    return finish(fig, title, [], [])


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of cells, evenly spaced in logarithms, from the smallest but a few to the largest."""
    positive = values[values > 0]
    if not positive.size:
        return np.geomspace(0.1, 1, CELLS + 1)
    low, high = np.quantile(positive, FARTHEST), positive.max()
    return np.geomspace(low / 1.2, high * 1.2, CELLS + 1)
