"""The pieces of which figures of explorers are made: Vega-Lite over named data, none inside.

A chart is a dictionary, as https://vega.github.io/vega-lite/docs describes it. It begins with `rows`
and what to do with them; `layers` draws marks over these:

    near = rows("cells", where("datum.side == 'A'"))
    layers(near, mark("rect", x=by("epoch:O"), y=by("part:N"), color=by("auc:Q")), width=400)

A row of "cells" has `side`, what its axes go by, `auc`, `low`, `high` and `meaning`; lists that
only the chosen cell shows (its distributions, its samples) lie inside the row, and `unfold` takes
them out in the browser.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leak_atlas.audit import Estimate
from leak_atlas.explore.look import COLOURS

Chart: TypeAlias = dict[str, Any]
Transform: TypeAlias = dict[str, Any]

INK, QUIET = "#000000", "#6b6b6b"
PURPLE, GREY = "#b3388a", "#595959"  # of two groups of samples
TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}
# AUCs: chance is white, whatever lies beyond the ends has their colour
CHANCE = {"domain": [0.25, 0.5, 0.75], "range": ["#2166ac", "#f7f7f7", "#b2182b"], "clamp": True}
FONTS = {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "grid": False}


# ---------------------------------------------------------------- rows


def interval(estimate: Estimate) -> dict[str, float]:
    """The columns `auc`, `low` and `high` of a row."""
    ends = {"auc": estimate.value, "low": estimate.low, "high": estimate.high}
    return {name: round(float(value), 3) for name, value in ends.items()}


def histogram(values: NDArray, groups: Mapping[str, NDArray[np.bool_]]) -> dict[str, list[float]]:
    """The columns that `distribution` draws: the left ends of 24 bins, `edge`, and of each group
    the percentage of its samples in each bin.
    """
    low, high = np.quantile(values, [0.002, 0.998])
    edges = np.linspace(low, high if high > low else low + 1, 25)
    made = {"edge": [float(f"{edge:.4g}") for edge in edges[:-1]]}
    for name, inside in groups.items():
        counts = np.histogram(values[inside].clip(low, high), edges)[0]
        made[name] = (100 * counts / max(inside.sum(), 1)).round(2).tolist()
    return made


def png(pixels: NDArray[np.uint8]) -> str:
    """A picture `(H, W, 1 or 3)` as an address that holds it."""
    from PIL import Image

    packed = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(packed, "PNG")
    return "data:image/png;base64," + base64.b64encode(packed.getvalue()).decode()


# ---------------------------------------------------------------- the language


def rows(name: str, *transforms: Transform | list[Transform]) -> Chart:
    """The rows of that name, and what is done with them."""
    flat = [each for one in transforms for each in (one if isinstance(one, list) else [one])]
    return {"data": {"name": name}, "transform": flat}


def where(condition: str) -> Transform:
    """Keeps rows for which a Vega expression over `datum` and the pointers' signals holds."""
    return {"filter": condition}


def chosen(selection: str) -> Transform:
    """Keeps rows that a selection has chosen."""
    return {"filter": {"param": selection, "empty": False}}


def calculate(**columns: str) -> list[Transform]:
    """Columns by Vega expressions; later ones know earlier ones."""
    return [{"calculate": expression, "as": name} for name, expression in columns.items()]


def unfold(*columns: str) -> list[Transform]:
    """A row for each element of the lists in some columns, counted from 1 by `place`."""
    counted = {"window": [{"op": "row_number", "as": "place"}]}
    return [{"flatten": list(columns)}, counted]


def by(column: str, **more: Any) -> dict[str, Any]:
    """A column with its type, as Q, N or O: `by("auc:Q", title="AUC")`."""
    name, _, kind = column.rpartition(":")
    return {"field": name, "type": TYPES[kind], **more}


def mark(kind: str, look: Mapping[str, Any] = {}, **encoding: Any) -> Chart:
    """Marks of one kind: how they look, and what they encode."""
    return {"mark": {"type": kind, **look}, "encoding": encoding}


def layers(base: Chart, *marks: Chart, **properties: Any) -> Chart:
    """Marks over the same rows."""
    return base | {"layer": list(marks)} | properties


def on(base: Chart, *transforms: Transform | list[Transform]) -> Chart:
    """The same rows after some more is done with them."""
    return base | {"transform": base["transform"] + rows("", *transforms)["transform"]}


def selection(name: str, on_click: str, **start: Any) -> dict[str, Any]:
    """A choice by a click on a mark of kind `on_click`; `start` has its fields and their values.

    Each field is a signal of its own, `NAME_FIELD`, which a `Pointer` moves: hence `bind`, whose
    inputs nobody sees.
    """
    point = {"type": "point", "fields": list(start), "on": f"{on_click}:click", "clear": False}
    bind = {field: {"input": "text"} for field in start}
    return {"name": name, "select": point, "value": [start], "bind": bind}


# ---------------------------------------------------------------- charts

LEGEND = {"title": None, "orient": "top", "offset": 2}
PICTURES = {  # of samples
    "lookup": "sample",
    "from": {"data": {"name": "pictures"}, "key": "sample", "fields": ["image", "label"]},
}
INTERVAL = "format(datum.low, '.2f') + ' to ' + format(datum.high, '.2f')"
SPOKEN = "datum.where + ': AUC ' + datum.auc + ', 95 % ' + datum.interval + '. ' + datum.meaning"
FACTS = [
    by("where:N"),
    by("auc:Q", title="AUC", format=".3f"),
    by("interval:N", title="95 % interval"),
    by("meaning:N"),
]


def heat(cells: Chart, cell: dict[str, Any], x: Any, y: Any, named: str, **size: Any) -> Chart:
    """A map of AUCs. A click chooses a cell, which gets a frame; `named` is an expression that says
    in words which cell it is.

    A number in grey could be chance: its interval contains 0.5.
    """
    words = calculate(where=named, interval=INTERVAL, spoken=SPOKEN)
    legend = {"title": "AUC", "gradientLength": 100, "tickCount": 3}
    shade = by("auc:Q", scale=CHANCE, legend=legend)
    place = {"x": x, "y": y}
    tiles = mark("rect", {"cursor": "pointer"}, **place, color=shade, tooltip=FACTS)
    tiles["encoding"]["description"] = by("spoken:N")
    open_ = {"test": "datum.low <= 0.5 && datum.high >= 0.5", "value": "#808080"}
    ink = {"condition": open_, "value": INK}
    text = {"fontSize": 11, "aria": False}
    numbers = mark("text", text, **place, text=by("auc:Q", format=".2f"), color=ink)
    line = {"filled": False, "stroke": INK, "strokeWidth": 3, "aria": False}
    frame = mark("rect", line, **place) | {"transform": [chosen(cell["name"])]}
    return layers(on(cells, words), tiles | {"params": [cell]}, numbers, frame, **size)


def distribution(cells: Chart, cell: str, groups: Mapping[str, str], x: str, **size: Any) -> Chart:
    """Groups of samples at the chosen cell, each a column of `histogram` with its colour."""
    folded = {"fold": list(groups), "as": ["group", "share"]}
    unfolded = on(cells, chosen(cell), unfold("edge", *groups), folded)
    look = {"interpolate": "step-after", "fillOpacity": 0.25, "line": True, "strokeWidth": 1.5}
    shade = by("group:N", scale=colours(groups), legend=LEGEND)
    across = by("edge:Q", title=x, scale={"zero": False, "nice": False}, axis={"tickCount": 5})
    up = by("share:Q", stack=None, title="% of samples", axis={"tickCount": 3})
    return layers(unfolded, mark("area", look, x=across, y=up, color=shade), **size)


def strip(
    cells: Chart,
    cell: str,
    sample: dict[str, Any],
    columns: Sequence[str],
    tooltip: Sequence[Any],
    width: int,
    shown: int,
) -> Chart:
    """The samples that carry the chosen cell, as pictures in a row: a click chooses one.

    `columns` are lists to unfold, "sample" among them; "pictures" has `image` and `label` of each
    sample; at most so many are `shown`.
    """
    size = min(width // shown - 4, 40)
    known = on(cells, chosen(cell), unfold(*columns), PICTURES)
    scale = {"domain": list(range(1, shown + 1))}
    place = {"x": by("place:O", axis=None, scale=scale), "y": {"value": size / 2 + 3}}
    look = {"width": size, "height": size, "cursor": "pointer"}
    images = mark("image", look, **place, url=by("image:N"), tooltip=list(tooltip))
    images["encoding"]["description"] = by("label:N")
    square = {"filled": False, "stroke": INK, "strokeWidth": 2.5, "size": (size + 4) ** 2}
    frame = mark("square", square | {"opacity": 1, "aria": False}, **place)
    frame |= {"transform": [chosen(sample["name"])]}
    return layers(known, images | {"params": [sample]}, frame, width=width, height=size + 8)


def portrait(sample: Chart) -> Chart:
    """The picture of one sample, in the corner of a chart."""
    look = {"width": 36, "height": 36, "align": "left", "baseline": "top"}
    place = {"x": {"value": 6}, "y": {"value": 0}}
    return sample | mark("image", look, **place, url=by("image:N"), tooltip=[by("label:N")])


def colours(groups: Mapping[str, str]) -> dict[str, Any]:
    """A scale of the colours of named groups."""
    return {"domain": list(groups), "range": list(groups.values())}


def side_by_side(charts: Mapping[str, Chart], narrow: bool) -> Chart:
    """Charts by their titles next to each other, or one above the other on a phone; a title that
    begins with a side has its colour.
    """
    titled = [
        chart | {"title": {"text": title, "color": COLOURS.get(title[:1], INK)}}
        for title, chart in charts.items()
    ]
    return {"vconcat" if narrow else "hconcat": titled}


def page(lines: Sequence[Chart], description: str, params: Sequence[dict[str, Any]] = ()) -> Chart:
    """Lines of charts as one figure, with values that a pointer moves: `{"name", "value"}`."""
    titles = {"anchor": "start", "fontSize": 13}
    config = {"axis": FONTS, "title": titles, "view": {"stroke": None}}
    resolved = {"scale": {"color": "independent"}}
    whole = {"vconcat": list(lines), "resolve": resolved, "config": config}
    return whole | {"description": description, "params": list(params)}
