"""The language of figures: Vega-Lite over named data, none inside.

A chart is a dictionary, as https://vega.github.io/vega-lite/docs describes it. It begins with
`rows` and what is done with them; `layers` draws marks over these:

    near = rows("cells", of_side("A"))
    layers(near, mark("rect", x=by("epoch:O"), y=by("part:N"), color=by("auc:Q")), width=400)

Lists that only a chosen row shows (its distributions, its samples) lie inside that row, and
`unfold` takes them out in the browser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from leak_atlas.explore.look import COLOURS

Spec: TypeAlias = dict[str, Any]  # a part of a chart, as an axis or a colour
Chart: TypeAlias = Spec
Transforms: TypeAlias = list[Spec]

INK, QUIET = "#000000", "#6b6b6b"
PURPLE, GREY = "#b3388a", "#595959"  # of two groups of samples
TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}
BETWEEN = 90  # pixels between two charts, for the words next to an axis
LEGEND = {"title": None, "orient": "top", "offset": 2}
ONCE: Chart = {"data": {"values": [{}]}}  # of a mark that no rows repeat
APART = {"scale": {"color": "independent"}}  # charts have their own colours
CONFIG = {
    "axis": {
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "grid": False,
    },
    "title": {"anchor": "start", "frame": "group", "fontSize": 13},
    "view": {"stroke": None},
}
PICTURES: Transforms = [  # joins picture, label and class of each sample
    {
        "lookup": "sample",
        "from": {
            "data": {"name": "pictures"},
            "key": "sample",
            "fields": ["image", "label", "class"],
        },
    }
]


# ---------------------------------------------------------------- rows


def rows(name: str, *transforms: Transforms) -> Chart:
    """The rows of that name, and what is done with them."""
    return {"data": {"name": name}, "transform": [*chain(*transforms)]}


def on(base: Chart, *transforms: Transforms) -> Chart:
    """The same rows after some more is done with them."""
    return base | {"transform": [*base["transform"], *chain(*transforms)]}


def where(condition: str) -> Transforms:
    """Keeps rows for which a Vega expression over `datum` and the pointers' signals holds."""
    return [{"filter": condition}]


def of_side(side: str) -> Transforms:
    """Keeps rows of side A or B."""
    return where(f"datum.side == '{side}'")


def chosen(*selections: str) -> Transforms:
    """Keeps rows that all selections have chosen."""
    return [{"filter": {"param": name, "empty": False}} for name in selections]


def calculate(**columns: str) -> Transforms:
    """Columns by Vega expressions; later ones know earlier ones."""
    return [{"calculate": expression, "as": name} for name, expression in columns.items()]


def unfold(*columns: str) -> Transforms:
    """A row for each element of the lists in some columns, counted from 1 by `place`."""
    return [{"flatten": list(columns)}, _counted()]


def fold(columns: Sequence[str], name: str, value: str) -> Transforms:
    """A row for each of some columns: its name and its value as two columns."""
    return [{"fold": list(columns), "as": [name, value]}]


def highest(column: str, number: int) -> Transforms:
    """Keeps so many rows with the largest values of a column, counted from 1 by `place`."""
    descending = {"field": column, "order": "descending"}
    return [_counted(sort=[descending]), *where(f"datum.place <= {number}")]


def _counted(**order: Any) -> Spec:
    return {"window": [{"op": "row_number", "as": "place"}], **order}


# ---------------------------------------------------------------- marks


def by(column: str, **more: Any) -> Spec:
    """A column with its type, as Q, N or O: `by("auc:Q", title="AUC")`."""
    name, _, kind = column.rpartition(":")
    return {"field": name, "type": TYPES[kind], **more}


def at(expression: str) -> Spec:
    """A place that a Vega expression over the pointers' signals gives."""
    return {"datum": {"expr": expression}, "type": "quantitative"}


def columns(name: str, values: Sequence[Any], title: str) -> Spec:
    """An axis with a column for each value, also of charts that lack some."""
    axis = {"labelAngle": 0, "labelOverlap": True}
    return by(f"{name}:O", title=title, scale={"domain": list(values)}, axis=axis)


def colours(groups: Mapping[str, str]) -> Spec:
    """A scale of the colours of named groups."""
    return {"domain": list(groups), "range": list(groups.values())}


def mark(kind: str, look: Mapping[str, Any] = {}, **encoding: Any) -> Chart:
    """Marks of one kind: how they look, and what they encode."""
    return {"mark": {"type": kind, **look}, "encoding": encoding}


def silent(kind: str, look: Mapping[str, Any] = {}, **encoding: Any) -> Chart:
    """Marks that a screen reader passes over."""
    return mark(kind, {**look, "aria": False}, **encoding)


def layers(base: Chart, *marks: Chart, **properties: Any) -> Chart:
    """Marks over the same rows."""
    return base | {"layer": list(marks)} | properties


# ---------------------------------------------------------------- pointers


def selection(name: str, on_click: str, **start: Any) -> Spec:
    """A choice by a click on a mark of kind `on_click`; `start` has its fields and their values.

    Each field is a signal of its own, `NAME_FIELD`, which a `Pointer` moves: hence `bind`, whose
    inputs nobody sees.
    """
    return {
        "name": name,
        "select": {
            "type": "point",
            "fields": list(start),
            "on": f"{on_click}:click",
            "clear": False,
        },
        "value": [start],
        "bind": {field: {"input": "text"} for field in start},
    }


def signals(**values: Any) -> list[Spec]:
    """Values that expressions know by their names, for `page`; pointers move some of them."""
    return [{"name": name, "value": value} for name, value in values.items()]


# ---------------------------------------------------------------- figures


def page(
    lines: Sequence[Mapping[str, Chart]],
    narrow: bool,
    description: str,
    params: Sequence[Spec] = (),
) -> Chart:
    """A figure of lines of charts by their titles, with values that a pointer moves, of `signals`.
    On a phone all charts stand above each other.
    """
    return _figure([_line(each, narrow) for each in lines], description, params)


def two_columns(
    left: Mapping[str, Chart],
    right: Mapping[str, Chart],
    narrow: bool,
    description: str,
    params: Sequence[Spec],
) -> Chart:
    """A figure of charts by their titles in two columns, or in one on a phone."""
    columns = [_line(left, narrow=True), _line(right, narrow=True)]
    whole = {"vconcat" if narrow else "hconcat": columns}
    return _figure([whole], description, params)


def _line(charts: Mapping[str, Chart], narrow: bool) -> Chart:
    """Charts by their titles next to each other, or above each other where it is narrow; a title
    that begins with a side has its colour.
    """
    titled = []
    for text, chart in charts.items():
        title = {"text": text, "color": COLOURS.get(text[:1], INK)}
        titled.append(chart | {"title": title})
    if narrow:
        return {"vconcat": titled, "resolve": APART}
    return {
        "hconcat": titled,
        "bounds": "flush",  # charts above each other begin alike, whatever stands next to an axis
        "spacing": BETWEEN,
        "resolve": APART,
    }


def _figure(lines: list[Chart], description: str, params: Sequence[Spec]) -> Chart:
    return {
        "vconcat": lines,
        "resolve": APART,
        "config": CONFIG,
        "description": description,
        "params": list(params),
    }
