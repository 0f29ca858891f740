"""The charts of which figures of explorers are made, in the language of `vega.py`.

A row of "cells" has `side`, what its axes go by, a measure, `low`, `high` and `meaning`; the lists
that only the chosen cell shows (its distributions, its samples) lie inside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leak_atlas.explore import vega
from leak_atlas.explore.look import COLOURS
from leak_atlas.explore.vega import (
    INK,
    LEGEND,
    PICTURES,
    QUIET,
    Chart,
    Spec,
    by,
    calculate,
    chosen,
    fold,
    layers,
    mark,
    on,
    silent,
    unfold,
    where,
)

BLUE_TO_RED = ("#4393c3", "#f7f7f7", "#d6604d")  # black numbers can be read on all of them
# what came of networks that are attacked: columns of `audit.audit`, by their words
OUTCOMES = {"test accuracy": "accuracy", "attack AUC": "auc", "TPR at 1 % FPR": "tpr_at_1%"}
CLICKABLE = {"cursor": "pointer", "ariaRole": "button"}
DASHED = {"strokeDash": [4, 4], "color": QUIET}
FREE: Spec = {"scale": {"zero": False}, "title": None}  # an axis that may begin above 0


@dataclass(frozen=True)
class Measure:
    """What the colours of a map mean: a column of its rows, next to `low` and `high`. No value is
    below 0, and none is above `most`.
    """

    column: str
    title: str
    ends: tuple[float, ...]  # what lies beyond the first and the last has their colour
    chance: float | None = None  # a number is in brackets where its interval contains this
    most: float = math.inf
    digits: int = 2
    colours: Sequence[str] = BLUE_TO_RED


AUC = Measure("auc", "AUC", (0.25, 0.5, 0.75), chance=0.5, most=1)


# ---------------------------------------------------------------- of both sides


def of_sides(names: Mapping[str, str] | str, chart: Chart) -> dict[str, Chart]:
    """A chart of the rows of A and one of those of B, by their titles; `names` say what they show."""
    if isinstance(names, str):
        names = dict.fromkeys(COLOURS, names)
    charts = {}
    for side, name in names.items():
        transforms = [*vega.of_side(side), *chart["transform"]]
        charts[f"{side}: {name}"] = chart | {"transform": transforms}
    return charts


# ---------------------------------------------------------------- maps


def heat(
    cells: Chart,
    selections: Sequence[Chart],
    x: Any,
    y: Any,
    named: str,
    width: int,
    of: Measure = AUC,
) -> Chart:
    """A map of a measure. A click sets all selections, and the chosen cell gets a frame; `named` is
    an expression that says in words which cell it is.

    A number in brackets could be chance: its interval contains `Measure.chance`.
    """
    place = {"x": x, "y": y}
    tiles = mark(
        "rect",
        CLICKABLE,
        **place,
        color=_heat_colour(of),
        tooltip=[
            by("where:N"),
            by(f"{of.column}:Q", title=of.title, format=f".{of.digits + 1}f"),
            by("interval:N", title="95 % interval"),
            by("meaning:N"),
        ],
        description=by("spoken:N"),
    )
    tiles["params"] = list(selections)
    numbers = silent("text", {"fontSize": 11, "color": INK}, **place, text=by("number:N"))
    line = {"filled": False, "stroke": INK, "strokeWidth": 3}
    frame = silent("rect", line, **place)
    frame["transform"] = chosen(*(each["name"] for each in selections))
    words = on(cells, calculate(where=named, **_words(of)))
    size = {"width": width, "height": 26 * len(y["sort"])}
    return layers(words, tiles, numbers, frame, **size)


def _heat_colour(of: Measure) -> Spec:
    """The colour of a cell, and its legend, which says that its ends stand for what lies beyond."""
    scale = {"domain": list(of.ends), "range": list(of.colours), "clamp": True}
    number = f"format(datum.value, '.{of.digits}f')"
    first, last = of.ends[0], of.ends[-1]
    above = f"datum.value >= {last} ? '≥ ' : ''" if last < of.most else "''"
    below = f"datum.value <= {first} ? '≤ ' : ''" if first > 0 else "''"
    legend = {
        "title": of.title,
        "titleOrient": "left",
        "values": list(of.ends),
        "direction": "horizontal",
        "gradientLength": 120,
        "gradientThickness": 9,
        "labelExpr": f"({above}) + ({below}) + {number}",
    }
    return by(f"{of.column}:Q", scale=scale, legend=LEGEND | legend)


def _words(of: Measure) -> dict[str, str]:
    """Columns of a cell for the eye and for a screen reader, as expressions."""
    value = f"datum.{of.column}"
    form = f"'.{of.digits}f'"
    number = f"format({value}, {form})"
    if of.chance is not None:
        could_be_chance = f"datum.low <= {of.chance} && datum.high >= {of.chance}"
        number = f"{could_be_chance} ? '(' + {number} + ')' : {number}"
    estimate = f"': {of.title} ' + {value} + ', 95 % interval ' + datum.interval"
    return {
        "number": number,
        "interval": f"format(datum.low, {form}) + ' to ' + format(datum.high, {form})",
        "spoken": f"datum.where + {estimate} + '. ' + datum.meaning",
    }


# ---------------------------------------------------------------- curves


def distribution(cells: Chart, groups: Mapping[str, str], x: str, **size: Any) -> Chart:
    """Groups of samples at the chosen cell, each a column of `records.histogram` with its colour."""
    look = {
        "interpolate": "step-after",
        "fillOpacity": 0.25,
        "line": True,
        "strokeWidth": 1.5,
    }
    scale = {"zero": False, "nice": False}
    area = mark(
        "area",
        look,
        x=by("edge:Q", title=x, scale=scale, axis={"tickCount": 5}),
        y=by("share:Q", stack=None, title="% of samples", axis={"tickCount": 3}),
        color=group_colour(groups),
    )
    unfolded = on(cells, unfold("edge", *groups), fold([*groups], "group", "share"))
    return layers(unfolded, area, **size)


def curves(
    rows: Chart, along: str, groups: Mapping[str, str], x: Any, y: Any, **look: Any
) -> Chart:
    """A line for each of some columns of lists, `groups` with their colours: `value` along another
    such column.
    """
    line = silent(
        "line",
        look,
        x=x,
        y=y,
        color=group_colour(groups),
    )
    unfolded = on(rows, unfold(along, *groups), fold([*groups], "group", "value"))
    return layers(unfolded, line)


def with_intervals(rows: Chart, x: Any, groups: Mapping[str, str], chance: float) -> Chart:
    """A line of `value` for each `group`, with its interval; a dashed one at chance level."""
    colour = group_colour(groups)
    tips = [by("group:N"), by("value:Q"), by("interval:N", title="95 % interval")]
    value = by("value:Q", **FREE)
    ends = {"y": by("low:Q", **FREE), "y2": {"field": "high"}}
    return layers(
        on(rows, calculate(interval="datum.low + ' to ' + datum.high")),
        silent("rule", DASHED, y={"datum": chance}),
        mark(
            "line",
            {"point": True},
            x=x,
            y=value,
            color=colour,
            tooltip=tips,
        ),
        silent(
            "area",
            {"opacity": 0.15},
            x=x,
            **ends,
            color=colour,
        ),
    )


def group_colour(groups: Mapping[str, str]) -> Spec:
    """The colour of each `group`."""
    return by("group:N", scale=vega.colours(groups), legend=LEGEND)


# ---------------------------------------------------------------- accuracy and leakage


def outcomes(others: Sequence[str], x: Any, now: str, narrow: bool) -> dict[str, Chart]:
    """Charts of accuracy and leakage along the columns `x`, by their titles.

    Rows are those of `Shelf.outcomes`. A and B are points with 95 % intervals; what they are
    compared with, `others`, are bands. A stripe marks the value of the signal `now`.
    """
    marks = [_stripe(x, now), *_bands(others), *_points(others, x)]
    size = {"height": 150, "width": 270 if narrow else 237}
    charts = {}
    for measure in OUTCOMES:
        known = vega.rows("outcomes", where(f"datum.measure == '{measure}'"))
        charts[measure] = layers(known, *marks, **size)
    return charts


def _stripe(x: Any, now: str) -> Chart:
    """A grey stripe at the value of a signal."""
    stripe = silent("rect", {"color": "#ececec"}, x=x)
    stripe["data"] = {"sequence": {"start": 0, "stop": 1}}
    stripe["transform"] = calculate(**{x["field"]: now})
    return stripe


def _bands(others: Sequence[str]) -> list[Chart]:
    """The interval and the value of networks that have no place along the columns."""
    look = _outcome_look(others)
    ends = _outcome_interval()
    band = mark("rect", {"opacity": 0.12}, **ends, **look)
    middle = mark("rule", {"strokeDash": [5, 3]}, y=_outcome("value"), **look)
    own = {"transform": where(f"indexof({list(others)}, datum.side) >= 0")}
    return [band | own, middle | own]


def _points(others: Sequence[str], x: Any) -> list[Chart]:
    """The interval and the value of A and B in each column."""
    look = _outcome_look(others)
    place = {"x": x, "xOffset": by("side:N", scale={"domain": list(COLOURS)})}
    line = mark(
        "rule",
        {"strokeWidth": 2},
        **place,
        **_outcome_interval(),
        **look,
    )
    point = mark(
        "point",
        {"filled": True, "size": 60},
        **place,
        y=_outcome("value"),
        **look,
    )
    own = {"transform": where(f"indexof({list(COLOURS)}, datum.side) >= 0")}
    return [line | own, point | own]


def _outcome(column: str) -> Spec:
    return by(f"{column}:Q", **FREE, axis={"tickCount": 4})


def _outcome_interval() -> Spec:
    return {"y": _outcome("low"), "y2": {"field": "high"}}


def _outcome_look(others: Sequence[str]) -> Spec:
    """Colours and hovers of A and B, and of those that they are compared with."""
    shades = COLOURS | dict(zip(others, (INK, QUIET), strict=False))
    legend = LEGEND | {"symbolOpacity": 1}
    tips = [
        by("side:N"),
        by("value:Q", format=".3f"),
        by("low:Q", title="95 % interval from", format=".3f"),
        by("high:Q", title="to", format=".3f"),
    ]
    return {"color": by("side:N", scale=vega.colours(shades), legend=legend), "tooltip": tips}


# ---------------------------------------------------------------- samples


def chosen_sample(state: Mapping[str, Any], on_click: str = "image") -> Chart:
    """The selection that the pointer `sample` moves."""
    return vega.selection("sample", on_click, sample=state["sample"])


def strip(
    rows: Chart,
    sample: Chart,
    tooltip: Sequence[Any],
    width: int,
    shown: int,
    description: str = "label",
) -> Chart:
    """At most so many pictures of samples, in the order of `place` from 1; a click chooses one. A
    column describes each in words.
    """
    size = min(width // shown - 4, 40)
    scale = {"domain": list(range(1, shown + 1))}
    place = {"x": by("place:O", axis=None, scale=scale), "y": {"value": size / 2 + 4}}
    spoken = by(f"{description}:N")
    tiles = images(rows, sample, place, size, size, description=spoken, tooltip=list(tooltip))
    return tiles | {"width": width, "height": size + 8}


def carriers(cells: Chart, sample: Chart, compared: str, width: int, shown: int) -> Chart:
    """The samples of the chosen cell, a `strip`, with their ranks among those `compared`."""
    unfolded = on(cells, unfold("sample", "rank"), PICTURES)
    tips = [
        by("label:N", title="sample"),
        by("rank:Q", title=f"% of {compared} below it"),
    ]
    return strip(unfolded, sample, tips, width, shown)


def images(
    rows: Chart, sample: Chart, place: Chart, width: float, height: float, **encoding: Any
) -> Chart:
    """Pictures, the columns `image`, at a `place`; a click chooses one, which gets a frame."""
    look = CLICKABLE | {"width": width, "height": height, "baseline": "middle"}
    picture = mark(
        "image",
        look,
        **place,
        url=by("image:N"),
        **encoding,
    )
    picture["params"] = [sample]
    square = {
        "filled": False,
        "stroke": INK,
        "strokeWidth": 2.5,
        "size": (width + 3) ** 2,
        "opacity": 1,
    }
    frame = silent("square", square, **place)
    frame["transform"] = chosen(sample["name"])
    return layers(rows, picture, frame)


def card(sample: Chart, lines: Sequence[str]) -> Chart:
    """The picture of one sample next to lines of text, each a Vega expression."""
    known = on(sample, calculate(lines=f"[{', '.join(lines)}]"))
    square = {
        "width": 64,
        "height": 64,
        "x": 34,
        "y": 36,
    }
    picture = silent("image", square, url=by("image:N"))
    text = mark(
        "text",
        {
            "align": "left",
            "x": 78,
            "y": 14,
            "lineHeight": 17,
        },
        text=by("lines:N"),
    )
    return layers(known, picture, text, width=280, height=76)


def portrait(sample: Chart) -> Chart:
    """The picture of one sample, in the corner of a chart."""
    look = {
        "width": 36,
        "height": 36,
        "align": "left",
        "baseline": "top",
    }
    place = {"x": {"value": 6}, "y": {"value": 0}}
    tips = [by("label:N")]
    return sample | silent(
        "image",
        look,
        **place,
        url=by("image:N"),
        tooltip=tips,
    )
