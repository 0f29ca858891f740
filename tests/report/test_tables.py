"""Tables: intervals beside estimates, the paper's digits as printed, three faces with the same
words.
"""

import math

import numpy as np
import pandas as pd

from leak_atlas import report
from leak_atlas.audit import Estimate
from leak_atlas.report.tables import plain

ROWS = [
    {
        "part": "stage<1>",
        "AUC": Estimate(0.5, 0.48, 0.52, 5),
        "n": 12000,
        "KS": 0.1,
        "paper": 54.58,
    },
    {
        "part": "stage4",
        "AUC": Estimate(-0.1, -0.2, 0.0, 1, resolved=False),
        "n": 3,
        "KS": math.nan,
        "paper": None,
    },
]


def test_three_faces_say_the_same():
    shown = report.table(ROWS, paper="Tab. 1", caption="Over 5 pairs.")._repr_mimebundle_()
    assert (
        "stage&lt;1&gt;" in shown["text/html"]
        and "0.500 <small>[0.480, 0.520]</small>" in shown["text/html"]
    )
    for face in ("text/markdown", "text/plain"):
        assert (
            "0.500 [0.480, 0.520]" in shown[face]
            and "−0.100 [−0.200, 0.000] (not resolved)" in shown[face]
        )
    for text in shown.values():
        assert "12 000" in text and "54.58" in text and "54.580" not in text and "–" in text
        assert (
            "Over 5 pairs. Paper: Tab. 1. [ ]: 95 % interval. Not resolved: too few samples" in text
        )


def test_an_endless_interval_is_shown_as_such():
    one = report.table([{"x": Estimate(0.5, -math.inf, math.inf, 1, False)}])
    assert "0.500 [−∞, ∞] (not resolved)" in str(one) and "[−∞, ∞]" in one.drawn("html")


def test_nothing_is_explained_that_is_not_there():
    assert report.table([{"part": "stem", "acc": 0.5}]).caption == ""


def test_a_frame_is_shown_as_it_is():
    shown = str(report.table(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}, index=[7, 8])))
    assert shown.splitlines() == ["a  b", "1  x", "2  y"]


def test_every_number_has_a_face():
    numbers = [
        {
            "a": math.inf,
            "b": -math.inf,
            "c": np.float32(0.5),
            "d": np.int64(-12345),
            "e": True,
            "f": None,
        }
    ]
    assert str(report.table(numbers)).split()[6:] == ["∞", "−∞", "0.500", "−12", "345", "yes", "–"]
    assert [plain(number) for number in (123.456, 1e-4)] == ["123.5", "0.0001"]


def test_a_table_that_decides_nothing_is_folded() -> None:
    html = report.table(ROWS, fold="All")._repr_mimebundle_()["text/html"]
    assert html.startswith("<details><summary>All</summary>")
