"""The engine of all explorers: choices, marks, the offer, what the browser is sent, what is exported."""

import base64
import io
import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import vl_convert
from PIL import Image

from leak_atlas import BadInput
from leak_atlas.engine import store
from leak_atlas.explore import charts, vega
from leak_atlas.explore.description import Choice, Description, Pointer, figure
from leak_atlas.explore.instrument import Instrument
from leak_atlas.recipe import Anatomy, Data, Model
from leak_atlas.report.live import VEGA_LITE
from tests.explore.conftest import text


class Toy(Description):
    """Stages of a network by width; what is stored of a width is a number."""

    name, hint = "toy", "Point at a cell."
    choices = (
        Choice("A_width", {"4": 4, "8": 8, "patch": 0}, "4", side="A", label="width"),
        Choice("B_width", {"4": 4, "8": 8}, "8", side="B", label="width", more=True),
    )

    def step(self, state: dict[str, Any], side: str) -> Anatomy:
        width = self.value(state, f"{side}_width")
        if not width:
            raise BadInput("a ResNet has no patches")
        return Anatomy(Data(pixels=16), Model("resnet10", width=width))

    def steps(self, state: dict[str, Any]) -> list[list[Any]]:
        return [[self.step(state, side)] for side in "AB"]

    def marks(self, state: dict[str, Any], side: str) -> list[Any]:
        return [self.step(state, letter) for letter in side]

    def rows(self, state: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        steps = {side: self.step(state, side) for side in "AB"}
        stored = [side for side, step in steps.items() if store.has(step.key)]
        cells = [
            {"side": side, "part": "stem", "epoch": epoch, "auc": 0.6, "low": 0.4, "high": 0.8}
            | {"meaning": "could be chance", "list": [1, 2]}
            for side in stored
            for epoch in (1, 2)
        ]
        return {"cells": cells} if cells else {}

    def pointers(self, state: dict[str, Any], rows: Any) -> list[Pointer]:
        return [Pointer("epoch", "cell_epoch", [1, 2], 2, slider=True, play=True)]

    def sentences(self, state: dict[str, Any], rows: Any) -> list[str]:
        return [f"{len(rows.get('cells', []))} cells, epoch {state.get('epoch')}."]

    def chart(self, state: dict[str, Any], rows: Any, narrow: bool) -> dict[str, Any]:
        cell = vega.selection("cell", "rect", epoch=state["epoch"])
        axes = vega.by("epoch:O"), vega.by("part:N", sort=["stem"])
        shown = charts.heat(vega.rows("cells"), [cell], *axes, "datum.part", 100)
        return vega.page([{"A: toy": shown}], narrow, "a toy")


def put(width: int) -> None:
    step = Anatomy(Data(pixels=16), Model("resnet10", width=width))
    store.write(step.key, step.record(), {}, {})


@pytest.fixture
def app(own_outputs: Any) -> Instrument:
    put(4)
    return Instrument(Toy())


def test_an_option_says_whether_it_is_stored(app: Instrument) -> None:
    assert app.controls.lists["A_width"].options == (
        ("● 4", "4"),
        ("○ 8", "8"),
        ("○ patch", "patch"),
    )
    assert app.controls.lists["B_width"].options == (("● 4", "4"), ("○ 8", "8"))


def test_the_state_goes_to_a_cell_and_back(app: Instrument) -> None:
    assert app.state == {"A_width": "4", "B_width": "8", "epoch": 2}
    app.choose(B_width="4", epoch=1)
    assert app.code == "app.choose(B_width='4', epoch=1)" and "epoch 1" in text(app.says.value)
    other = Instrument(Toy())
    eval(app.code, {"app": other})
    assert other.state == app.state


def test_what_is_not_offered_is_refused_in_a_line(app: Instrument) -> None:
    with pytest.raises(BadInput, match="there is no 'A_with'; did you mean 'A_width'"):
        app.choose(A_with="4")
    with pytest.raises(BadInput, match="A_width cannot be '5'"):
        app.choose(A_width="5")
    with pytest.raises(BadInput, match="A_width cannot be 8"):
        app.choose(A_width=8)
    before = app.state
    with pytest.raises(BadInput, match="epoch cannot be 99; there is: 1, 2"):
        app.choose(B_width="4", epoch=99)
    assert app.state == before


def test_a_pointer_of_a_state_that_its_beginning_does_not_have(own_outputs: Any) -> None:
    """Nothing is stored of the first choices, so that they have no epochs."""
    put(4)
    toy = Toy()
    toy.choices = [replace(each, start="8") for each in toy.choices]
    app = Instrument(toy)
    assert not app.rows
    app.choose(A_width="4", epoch=1)
    again = Instrument(toy)
    eval(app.code, {"app": again})
    assert again.state == app.state


def test_what_cannot_be_is_said_and_not_offered(app: Instrument) -> None:
    app.choose(A_width="patch")
    assert "a ResNet has no patches" in text(app.offer.cost.value) and not app.rows
    assert app.offer.train.layout.display == "none"


def test_what_is_missing_is_offered(app: Instrument) -> None:
    assert app.offer.train.description and app.offer.train.layout.display is None
    put(8)
    app._computed("")
    assert app.offer.train.layout.display == "none" and len(app.rows["cells"]) == 4


def test_the_browser_gets_nothing_before_it_asks(app: Instrument) -> None:
    sent = app.browser.script.outputs[0]["data"]["text/html"]
    assert len(sent) < 2000
    app.browser.text.value = json.dumps({"ask": "script"})
    sent = app.browser.script.outputs[0]["data"]["text/html"]
    assert "window.leakAtlas ??=" in sent and '"auc": 0.6' in sent
    assert sent.count("</script") == 1
    app.browser.text.value = json.dumps({"epoch": 1})
    assert app.state["epoch"] == 1 and "epoch 1" in text(app.says.value)


def test_without_a_kernel_there_is_a_picture(app: Instrument) -> None:
    shown = app._repr_mimebundle_()
    picture = Image.open(io.BytesIO(base64.b64decode(shown["image/png"])))
    assert picture.width > 100 and "2 cells" in shown["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in shown


def test_numbers_are_exported_without_lists(app: Instrument) -> None:
    app.export.click()
    address = app.links.value.partition('href="data:text/csv;base64,')[2].partition('"')[0]
    table = pd.read_csv(io.BytesIO(base64.b64decode(address)))
    assert list(table) == ["side", "part", "epoch", "auc", "low", "high", "meaning"]
    assert len(table) == 2 and app.code in text(app.links.value)


@pytest.mark.parametrize("narrow", [False, True])
def test_a_figure_is_valid_and_holds_no_data(app: Instrument, narrow: bool) -> None:
    shown = figure(app.of, app.state, app.rows)["narrow" if narrow else "wide"]
    assert "0.6" not in json.dumps(shown)
    signals = vl_convert.vegalite_to_vega(shown, vl_version=VEGA_LITE)["signals"]
    assert "cell_epoch" in {each["name"] for each in signals}
