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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leak_atlas.audit import Estimate
from leak_atlas.data import readers
from leak_atlas.explore.look import COLOURS
from leak_atlas.recipe import Data, registry

Chart: TypeAlias = dict[str, Any]
Transform: TypeAlias = dict[str, Any]

INK, QUIET = "#000000", "#6b6b6b"
PURPLE, GREY = "#b3388a", "#595959"  # of two groups of samples
TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}
BLUE_TO_RED = ("#4393c3", "#f7f7f7", "#d6604d")  # black numbers can be read on all of them
# what came of networks that are attacked: columns of `audit.audit`, by their words
OUTCOMES = {"test accuracy": "accuracy", "attack AUC": "auc", "TPR at 1 % FPR": "tpr_at_1%"}
BETWEEN = 90  # pixels between two charts, for the words next to an axis
FONTS = {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "grid": False}


@dataclass(frozen=True)
class Measure:
    """What the colours of a map mean: a column of its rows, next to `low` and `high`."""

    column: str
    title: str
    ends: tuple[float, ...]  # what lies beyond the first and the last has their colour
    chance: float | None = None  # a number is grey where its interval contains this
    digits: int = 2
    colours: Sequence[str] = BLUE_TO_RED


AUC = Measure("auc", "AUC", (0.25, 0.5, 0.75), chance=0.5)


# ---------------------------------------------------------------- rows


def records(columns: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Rows from columns of the same length; numbers of arrays `(rows, ...)` have four digits, and
    None stands for NaN.
    """
    lists = [plain(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def plain(column: Iterable[Any]) -> list[Any]:
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.dtype.kind != "f":
        return column.tolist()
    known = column.round(4).astype(object)
    known[np.isnan(column)] = None
    return known.tolist()


def interval(estimate: Estimate, column: str = "auc") -> dict[str, float]:
    """The columns of a row that hold an estimate: its value, `low` and `high`."""
    ends = {column: estimate.value, "low": estimate.low, "high": estimate.high}
    return {name: round(float(value), 3) for name, value in ends.items()}


def values(rows: Sequence[Mapping[str, Any]], column: str) -> list[Any]:
    """The values of a column, each once, in the order of the rows."""
    return list(dict.fromkeys(row[column] for row in rows))


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


def ranks(values: NDArray, seen: NDArray[np.bool_]) -> NDArray:
    """For each row `(R, n)` and sample, the percentage of the seen samples whose value is lower."""
    made = np.empty(values.shape)
    for row, own in enumerate(values):
        others = np.sort(own[seen])
        left, right = (np.searchsorted(others, own, side) for side in ("left", "right"))
        made[row] = 50 * (left + right) / len(others)
    return made


def mean_where(values: Sequence[NDArray] | NDArray, chosen: Sequence[NDArray] | NDArray) -> NDArray:
    """Mean over the pairs in which a sample is chosen; NaN where it never is."""
    count = np.sum(chosen, axis=0)
    total = np.sum([own * of for own, of in zip(values, chosen, strict=True)], axis=0)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def listed(values: NDArray, digits: int = 0) -> list[float | None]:
    """Rounded numbers; None for NaN."""
    return [None if value != value else value for value in values.round(digits).tolist()]


def portraits(data: Mapping[str, Data], samples: Iterable[str]) -> list[dict[str, str]]:
    """Rows of "pictures": picture and class of each sample, "NAME INDEX"; `data` are the recipes of
    their data sets by name.
    """
    loaded = {name: readers.load(name, each.pixels) for name, each in data.items()}
    made = []
    for sample in samples:
        name, _, index = sample.rpartition(" ")
        label = registry.find(name).classes[loaded[name].labels[int(index)]]
        named = {"sample": sample, "class": label, "label": f"{label} ({sample})"}
        made.append(named | {"image": png(loaded[name].x[int(index)])})
    return made


def meaning(auc: Estimate, who: str, what: str) -> str:
    """What an AUC says of a group: `who` has larger or smaller values than the others."""
    if auc.low <= 0.5 <= auc.high:
        return "could be chance: the interval contains 0.5"
    return f"{who} {'larger' if auc.value > 0.5 else 'smaller'} {what}"


def png(pixels: NDArray) -> str:
    """A picture `(H, W, 1 or 3)` as an address that holds it; bits `(n,)` lie row by row in a
    square, dark where they are set.
    """
    from PIL import Image

    if pixels.ndim == 1:
        side = int(np.ceil(np.sqrt(len(pixels))))
        bits = np.pad(pixels, (0, side**2 - len(pixels)))
        pixels = (255 * (1 - bits)).reshape(side, side, 1).astype(np.uint8)
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


def highest(column: str, number: int) -> list[Transform]:
    """Keeps so many rows with the largest values of a column, counted from 1 by `place`."""
    counted = {"window": [{"op": "row_number", "as": "place"}]}
    descending = {"sort": [{"field": column, "order": "descending"}]}
    return [counted | descending, where(f"datum.place <= {number}")]


def by(column: str, **more: Any) -> dict[str, Any]:
    """A column with its type, as Q, N or O: `by("auc:Q", title="AUC")`."""
    name, _, kind = column.rpartition(":")
    return {"field": name, "type": TYPES[kind], **more}


def at(expression: str) -> dict[str, Any]:
    """A place that a Vega expression over the pointers' signals gives."""
    return {"datum": {"expr": expression}, "type": "quantitative"}


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

CLICKABLE = {"cursor": "pointer", "ariaRole": "button"}
LEGEND = {"title": None, "orient": "top", "offset": 2}
PICTURES = {  # of samples
    "lookup": "sample",
    "from": {"data": {"name": "pictures"}, "key": "sample", "fields": ["image", "label", "class"]},
}
ONCE: Chart = {"data": {"values": [{}]}}  # of a mark that no rows repeat
APART = {"scale": {"color": "independent"}}  # charts have their own colours


def heat(
    cells: Chart,
    selections: Sequence[Chart],
    x: Any,
    y: Any,
    named: str,
    of: Measure = AUC,
    **size: Any,
) -> Chart:
    """A map of a measure. A click sets all selections, and the chosen cell gets a frame; `named` is an expression that
    says in words which cell it is.

    A number in brackets could be chance: its interval contains `Measure.chance`.
    """
    form = f".{of.digits}f"
    number = f"format(datum.{of.column}, '{form}')"
    could_be_chance = f"datum.low <= {of.chance} && datum.high >= {of.chance}"
    if of.chance is not None:
        number = f"{could_be_chance} ? '(' + {number} + ')' : {number}"
    spoken = f"': {of.title} ' + datum.{of.column} + ', 95 % interval '"
    words = calculate(
        where=named,
        number=number,
        interval=f"format(datum.low, '{form}') + ' to ' + format(datum.high, '{form}')",
        spoken=f"datum.where + {spoken} + datum.interval + '. ' + datum.meaning",
    )
    facts = [
        by("where:N"),
        by(f"{of.column}:Q", title=of.title, format=f".{of.digits + 1}f"),
        by("interval:N", title="95 % interval"),
        by("meaning:N"),
    ]
    legend = LEGEND | {"title": of.title, "titleOrient": "left", "tickCount": 3}
    legend |= {"direction": "horizontal", "gradientLength": 120, "gradientThickness": 9}
    legend |= {"format": form}
    scale = {"domain": list(of.ends), "range": list(of.colours), "clamp": True}
    place = {"x": x, "y": y}
    tiles = mark(
        "rect",
        CLICKABLE,
        **place,
        color=by(f"{of.column}:Q", scale=scale, legend=legend),
        tooltip=facts,
        description=by("spoken:N"),
    )
    text = {"fontSize": 11, "aria": False, "color": INK}
    numbers = mark("text", text, **place, text=by("number:N"))
    line = {"filled": False, "stroke": INK, "strokeWidth": 3, "aria": False}
    frame = mark("rect", line, **place)
    frame["transform"] = [chosen(each["name"]) for each in selections]
    tiles["params"] = list(selections)
    return layers(on(cells, words), tiles, numbers, frame, **size)


def distribution(cells: Chart, groups: Mapping[str, str], x: str, **size: Any) -> Chart:
    """Groups of samples at the chosen cell, each a column of `histogram` with its colour."""
    folded = {"fold": list(groups), "as": ["group", "share"]}
    unfolded = on(cells, unfold("edge", *groups), folded)
    look = {"interpolate": "step-after", "fillOpacity": 0.25, "line": True, "strokeWidth": 1.5}
    shade = by("group:N", scale=colours(groups), legend=LEGEND)
    across = by("edge:Q", title=x, scale={"zero": False, "nice": False}, axis={"tickCount": 5})
    up = by("share:Q", stack=None, title="% of samples", axis={"tickCount": 3})
    return layers(unfolded, mark("area", look, x=across, y=up, color=shade), **size)


def curves(
    rows: Chart, along: str, groups: Mapping[str, str], x: Any, y: Any, **look: Any
) -> Chart:
    """A line for each of some columns of lists, `groups` with their colours: `value` along another
    such column.
    """
    folded = {"fold": [*groups], "as": ["group", "value"]}
    shade = by("group:N", scale=colours(groups), legend=LEGEND)
    line = mark("line", {"aria": False} | look, x=x, y=y, color=shade)
    return layers(on(rows, unfold(along, *groups), folded), line)


def columns(name: str, values: Sequence[Any], title: str) -> dict[str, Any]:
    """An axis with a column for each value, also of charts that lack some."""
    axis = {"labelAngle": 0, "labelOverlap": True}
    return by(f"{name}:O", title=title, scale={"domain": list(values)}, axis=axis)


def maps(
    names: Mapping[str, str],
    cells: str,
    selections: Sequence[Chart],
    x: Any,
    y: Any,
    named: str,
    of: Measure = AUC,
    **size: Any,
) -> dict[str, Chart]:
    """A `heat` of each side, by its title; `names` say what the sides are."""
    size.setdefault("height", 26 * len(y["sort"]))
    return {
        f"{side}: {name}": heat(
            rows(cells, where(f"datum.side == '{side}'")), selections, x, y, named, of, **size
        )
        for side, name in names.items()
    }


def outcomes(others: Sequence[str], x: Any, now: str, **size: Any) -> dict[str, Chart]:
    """Charts of accuracy and leakage along the columns `x`, by their titles.

    Rows are those of `Shelf.outcomes`. A and B are points with 95 % intervals; what they are
    compared with, `others`, are bands. A stripe marks the value of the signal `now`.
    """
    shades = COLOURS | dict(zip(others, (INK, QUIET), strict=False))
    look = {
        "color": by("side:N", scale=colours(shades), legend=LEGEND | {"symbolOpacity": 1}),
        "tooltip": [
            by("side:N"),
            by("value:Q", format=".3f"),
            by("low:Q", title="95 % interval from", format=".3f"),
            by("high:Q", title="to", format=".3f"),
        ],
    }
    up = {"scale": {"zero": False}, "axis": {"tickCount": 4}, "title": None}
    middle = {"y": by("value:Q", **up)}
    ends = {"y": by("low:Q", **up), "y2": {"field": "high"}}
    place = {"x": x, "xOffset": by("side:N", scale={"domain": list(COLOURS)})}
    stripe = mark("rect", {"color": "#ececec", "aria": False}, x=x) | {
        "data": {"sequence": {"start": 0, "stop": 1}},
        "transform": calculate(**{x["field"]: now}),
    }
    of_others = {"transform": [where(f"indexof({list(others)}, datum.side) >= 0")]}
    of_sides = {"transform": [where(f"indexof({list(COLOURS)}, datum.side) >= 0")]}
    marks = [
        stripe,
        mark("rect", {"opacity": 0.12}, **ends, **look) | of_others,
        mark("rule", {"strokeDash": [5, 3]}, **middle, **look) | of_others,
        mark("rule", {"strokeWidth": 2}, **place, **ends, **look) | of_sides,
        mark("point", {"filled": True, "size": 60}, **place, **middle, **look) | of_sides,
    ]
    made = {}
    for measure in OUTCOMES:
        known = rows("outcomes", where(f"datum.measure == '{measure}'"))
        made[measure] = layers(known, *marks, **{"height": 150} | size)
    return made


def strip(
    cells: Chart,
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
    known = on(cells, unfold(*columns), PICTURES)
    return pictures(known, sample, "label", tooltip, width, shown)


def pictures(
    rows: Chart,
    sample: dict[str, Any],
    description: str,
    tooltip: Sequence[Any],
    width: int,
    shown: int,
) -> Chart:
    """At most so many pictures, the columns `image`, in the order of `place` from 1; a click
    chooses a sample. A column describes each in words.
    """
    size = min(width // shown - 4, 40)
    scale = {"domain": list(range(1, shown + 1))}
    place = {"x": by("place:O", axis=None, scale=scale), "y": {"value": size / 2 + 4}}
    spoken = by(f"{description}:N")
    made = images(rows, sample, place, size, size, description=spoken, tooltip=list(tooltip))
    return made | {"width": width, "height": size + 8}


def images(
    rows: Chart, sample: Chart, place: Chart, width: float, height: float, **encoding: Any
) -> Chart:
    """Pictures, the columns `image`, at a `place`; a click chooses one, which gets a frame."""
    look = CLICKABLE | {"width": width, "height": height, "baseline": "middle"}
    shown = mark("image", look, **place, url=by("image:N"), **encoding)
    square = {"filled": False, "stroke": INK, "strokeWidth": 2.5, "size": (width + 3) ** 2}
    frame = mark("square", square | {"opacity": 1, "aria": False}, **place)
    frame["transform"] = [chosen(sample["name"])]
    return layers(rows, shown | {"params": [sample]}, frame)


def card(sample: Chart, lines: Sequence[str]) -> Chart:
    """The picture of one sample next to lines of text, each a Vega expression."""
    known = on(sample, calculate(lines=f"[{', '.join(lines)}]"))
    look = {"width": 64, "height": 64, "x": 34, "y": 36, "aria": False}
    text = {"align": "left", "x": 78, "y": 14, "lineHeight": 17}
    shown = mark("image", look, url=by("image:N")), mark("text", text, text=by("lines:N"))
    return layers(known, *shown, width=280, height=76)


def with_intervals(rows: Chart, x: Any, groups: Mapping[str, str], chance: float) -> Chart:
    """A line of `value` for each `group`, with its interval; a dashed one at chance level."""
    known = on(rows, calculate(interval="datum.low + ' to ' + datum.high"))
    colour = by("group:N", scale=colours(groups), legend=LEGEND)
    tips = [by("group:N"), by("value:Q"), by("interval:N", title="95 % interval")]
    up: dict[str, Any] = {"scale": {"zero": False}, "title": None}
    ends = {"y": by("low:Q", **up), "y2": {"field": "high"}}
    dashes = {"strokeDash": [4, 4], "color": QUIET, "aria": False}
    return layers(
        known,
        mark("rule", dashes, y={"datum": chance}),
        mark("line", {"point": True}, x=x, y=by("value:Q", **up), color=colour, tooltip=tips),
        mark("area", {"opacity": 0.15, "aria": False}, x=x, **ends, color=colour),
    )


def portrait(sample: Chart) -> Chart:
    """The picture of one sample, in the corner of a chart."""
    look = {"width": 36, "height": 36, "align": "left", "baseline": "top", "aria": False}
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
    if narrow:
        return {"vconcat": titled, "resolve": APART}
    # what stands above each other begins alike, whatever is written next to its axis
    return {"hconcat": titled, "bounds": "flush", "spacing": BETWEEN, "resolve": APART}


def two_columns(left: Mapping[str, Chart], right: Mapping[str, Chart], narrow: bool) -> Chart:
    """Charts by their titles in two columns, or in one on a phone."""
    both = [side_by_side(left, narrow=True), side_by_side(right, narrow=True)]
    return {"vconcat" if narrow else "hconcat": both}


def signals(**values: Any) -> list[dict[str, Any]]:
    """Values that expressions know by their names, for `page`; pointers move some of them."""
    return [{"name": name, "value": value} for name, value in values.items()]


def page(lines: Sequence[Chart], description: str, params: Sequence[dict[str, Any]] = ()) -> Chart:
    """Lines of charts as one figure, with values that a pointer moves: `{"name", "value"}`."""
    titles = {"anchor": "start", "frame": "group", "fontSize": 13}
    config = {"axis": FONTS, "title": titles, "view": {"stroke": None}}
    whole = {"vconcat": list(lines), "resolve": APART, "config": config}
    return whole | {"description": description, "params": list(params)}
