"""Pictures of the vulnerability plane (Dynamics): where each sample lies in it, epoch by epoch.

A *course* is an array `(E, 2, n)`: at each of E epochs, how often each of n samples is called a
member by networks that never saw it (row 0, its false positive rate) and by networks that trained
on it (row 1, its true positive rate).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import LogNorm, to_hex
from numpy.typing import ArrayLike, NDArray

from leak_atlas import BadInput
from leak_atlas.report import figures, sheet
from leak_atlas.report.markup import drawn
from leak_atlas.report.sheet import Look, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leak_atlas.audit import FloatArray

__all__ = ["Moving", "moving", "planes"]

FPR, TPR = "called member though outside (FPR)", "found as member (TPR)"
CENTRE = "#d1550b"  # the one warm colour beside those of a density
# cells along an axis; at most so many; steps of a lattice that is looked for
COARSE, FINEST, DEEPEST = 40, 65, 1024
DRAWN, MARGIN = 600, 0.05  # samples of a course that move at most; of the plane's side, around it
LEVELS = (0.0, 0.25, 0.5, 0.75)  # of TPR - FPR in the last epoch, where the colour changes


def planes(over_time: Mapping[str, ArrayLike], epochs: Sequence[int], **words: str) -> Sheet:
    """The vulnerability plane of each course `(E, 2, n)`, a row, in five of its `epochs`.

    Epoch 0 is before training. Shown are the first, the last, and three between, evenly spread over
    the grid. Colour says how many samples lie in a cell, on one scale. Rates that are counted lie
    on a lattice: each cell then holds the same number of its points. Raises BadInput on rates
    outside [0, 1] and on another shape.
    """
    rates = _checked(over_time, epochs)
    shown = dict.fromkeys(np.linspace(0, len(epochs) - 1, 5).round().astype(int))
    alone, several = len(rates) == 1, len(rates) > 1 < len(shown)
    panels: dict[Any, tuple[str, int]] = {}
    for course in rates:
        for at in shown:
            name = f"epoch {epochs[at]}" if epochs[at] else "before training"
            panels["" if alone else course, name] = course, at
    edges = {course: [_edges(each[:, row]) for row in (0, 1)] for course, each in rates.items()}
    norm = LogNorm(1, 10)
    samples: list[pd.DataFrame] = []
    centres: list[pd.DataFrame] = []
    for panel, (course, at) in panels.items():
        way = rates[course].mean(axis=2)[: at + 1]
        for rows, (x, y) in ((samples, rates[course][at]), (centres, way.T)):
            table = pd.DataFrame({"_x": x, "_y": y, "course": course})
            rows.append(table.assign(panel=[panel] * len(table)))

    def cells(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
        own = edges[rows["course"].iloc[0]]
        figures.count_in_cells(ax, rows["_x"], rows["_y"], own, norm)

    def dress(panel: Any, ax: Axes) -> None:
        ax.plot((0, 1), (0, 1), **figures.GUESS, label="a guess")
        ends = np.concatenate([each[[0, -1]] for pair in edges.values() for each in pair])
        around = min(-0.03, ends.min()), max(1.03, ends.max())
        ax.set(xlim=around, ylim=around, aspect="equal")
        ax.set_xticks((0, 0.5, 1), ("0", ".5", "1"))
        ax.set_yticks((0, 0.5, 1), ("0", ".5", "1"))

    course = next(iter(rates))
    fig = figures.draw(
        [(pd.concat(samples), cells), (pd.concat(centres), _way)],
        facet="panel",
        panels=list(panels),
        height=min((0.2 if several else 0.7) + 7.2 / len(shown), 3.6),
        share=True,
        dress=dress,
        words={"xlabel": FPR, "ylabel": f"{course}: {TPR}" if alone and course else TPR, **words},
    )
    # panels of one shape, whatever stands around them
    fig.set_layout_engine("compressed", w_pad=0.05, h_pad=0.05)
    figures.colour_key(fig, norm, "samples")
    return fig


def _way(ax: Axes, rows: pd.DataFrame, look: Look) -> None:
    """The way of the centre of mass, and where it is now."""
    ax.plot(rows["_x"], rows["_y"], color="white", linewidth=2.6, zorder=3)
    ax.plot(rows["_x"], rows["_y"], color=CENTRE, linewidth=1.2, zorder=3)
    ax.plot(
        *rows[["_x", "_y"]].iloc[-1],
        color=CENTRE,
        marker="o",
        markersize=6.5,
        markeredgecolor="white",
        zorder=4,
        linestyle="none",
        label="centre of mass, and its way until then",
    )


def _checked(over_time: Mapping[str, ArrayLike], epochs: Sequence[int]) -> dict[str, FloatArray]:
    found = {name: np.asarray(rates, float) for name, rates in over_time.items()}
    if not found or not len(epochs) or list(epochs) != sorted(set(epochs)):
        raise BadInput("a plane needs a course, and epochs in their order")
    for name, rates in found.items():
        if rates.ndim != 3 or rates.shape[:2] != (len(epochs), 2) or not rates.size:
            raise BadInput(
                f"the course '{name}' is {rates.shape}; {len(epochs)} epochs make it ({len(epochs)}, 2, n)"
            )
        if not ((rates >= 0) & (rates <= 1)).all():
            raise BadInput(
                f"the course '{name}' holds numbers that are no rates: give those of samples that have both"
            )
    return found


def _steps(rates: FloatArray) -> int:
    """Into how many steps counted rates part [0, 1]; 0 where they are not counted."""
    values = np.unique(rates)
    known = range(1, DEEPEST + 1) if len(values) <= DEEPEST + 1 else ()
    return next(
        (m for m in known if np.allclose(values * m, np.rint(values * m), rtol=0, atol=1e-4)), 0
    )


def _edges(rates: FloatArray) -> FloatArray:
    """Of the cells along an axis: each holds one point of the lattice, or as many as the others."""
    if not (steps := _steps(rates)):
        return np.linspace(0, 1, COARSE + 1)
    steps *= -(-8 // steps)  # rates that hardly differ do not tell how finely they are counted
    wide = -(-(steps + 1) // FINEST)
    return (np.arange(0, steps + 1 + wide, wide) - 0.5) / steps


# ---------------------------------------------------------------- over time


@dataclass(frozen=True)
class Moving:
    """What `moving` returns: HTML that needs nothing else, shown where a cell returns it."""

    title: str
    html: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": f"Moving picture: {self.title}"}


def moving(over_time: Mapping[str, ArrayLike], epochs: Sequence[int], title: str) -> Moving:
    """The plane of each course `(E, 2, n)`, side by side, with one slider over their `epochs`, and
    play and pause.

    A point is a sample, coloured by TPR - FPR in the last epoch; of more than 600 so many move,
    evenly spread, and the centre of mass is that of all. Counted rates are shaken within their step
    of the lattice, a sample by the same in all epochs, so that points do not cover each other;
    places are exact to a 255th of the panel. Between two epochs points move straight, unless their
    reader prefers less motion. Without JavaScript the last epoch is shown. Raises BadInput as
    `planes` does.
    """
    found = _checked(over_time, epochs)
    shades = sns.color_palette(sheet.SEQUENTIAL, as_cmap=True)(np.linspace(0, 1, len(LEVELS)))
    colours = [sheet.FAINT, *map(to_hex, shades)]
    ends = [f"{low:g} to {high:g}" for low, high in zip(LEVELS, (*LEVELS[1:], 1), strict=True)]
    panels = [_panel(name, rates, epochs, colours) for name, rates in found.items()]
    values = {
        "title": sheet.proper(title),
        "epochs": json.dumps(list(map(int, epochs))),
        "last": epochs[-1],
        "fewer": any(rates.shape[2] > DRAWN for rates in found.values()),
        "most": DRAWN,
        "margin": MARGIN,
        "shaken": any(panel["shaken"] for panel in panels),
        "centre": CENTRE,
        "colours": list(zip(("below 0", *ends), colours, strict=True)),
    }
    return Moving(sheet.proper(title), str(drawn("moving.html", panels=panels, **values)))


def _panel(
    name: str, rates: FloatArray, epochs: Sequence[int], colours: Sequence[str]
) -> dict[str, Any]:
    """One course as the template wants it: bytes for the script, and the last epoch as a picture."""
    centres = rates.mean(axis=2)
    taken = rates[
        ..., np.linspace(0, rates.shape[2] - 1, min(rates.shape[2], DRAWN)).round().astype(int)
    ]
    level = np.digitize(taken[-1, 1] - taken[-1, 0], LEVELS)
    order = np.argsort(level, kind="stable")
    aside = shaken(taken)
    places = _bytes(taken[..., order] + aside)
    sizes = np.bincount(level, minlength=len(colours))
    dots = [
        "".join(f"M{x} {y}h0" for x, y in each.T)
        for each in np.split(places[-1], np.cumsum(sizes)[:-1], axis=1)
    ]
    way = " ".join(f"{x:.1f} {y:.1f}" for x, y in _places(centres.T).T)
    inside = {
        "edge": round(255 * MARGIN / (1 + 2 * MARGIN), 1),
        "way": way,
        "at": _places(centres[-1]).round(1),
    }
    svg = drawn(
        "plane.svg",
        dots=list(zip(dots, colours, strict=True)),
        fpr=FPR,
        tpr=TPR,
        centre=CENTRE,
        **inside,
    )
    return {
        "name": name,
        "svg": _encoded(svg.encode()),
        "rates": _encoded(places.tobytes()),
        "shaken": aside.any(),
        "sizes": json.dumps(sizes.tolist()),
        "centres": json.dumps(centres.round(3).tolist()),
        "fpr": centres[-1, 0],
        "tpr": centres[-1, 1],
    }


def shaken(rates: FloatArray) -> FloatArray:
    """How far aside `(2, n)` a course's samples are drawn: within a counted rate's step, so that
    none hides another.

    Rates that are not counted, or in steps that cannot be seen, stay where they are.
    """
    steps = np.array([0.8 / steps if (steps := _steps(rates[:, row])) else 0.0 for row in (0, 1)])
    steps = np.where(steps > 1.5 / 255, np.minimum(steps, 1.6 * MARGIN), 0.0)
    return np.asarray(
        np.random.default_rng(0).uniform(-0.5, 0.5, (2, rates.shape[2])) * steps[:, None]
    )


def _places(rates: FloatArray) -> FloatArray:
    """Rates `(2, ...)` as places in a panel of 255 by 255, from its upper left corner."""
    across, up = 255 * (rates + MARGIN) / (1 + 2 * MARGIN)
    return np.array([across, 255 - up])


def _bytes(rates: FloatArray) -> NDArray[np.uint8]:
    return (
        np.moveaxis(_places(np.moveaxis(rates, 1, 0)), 0, 1).round().clip(0, 255).astype(np.uint8)
    )


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
