"""All explorers in a headless browser: as pages without a kernel, and in Voila."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from leak_atlas.__main__ import main
from leak_atlas.engine import paths
from leak_atlas.explore import app
from tests.browsing import (
    NARROW,
    TOO_WIDE,
    asked,
    browser,
    needs_browser,
    served,
    violations,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

__all__ = ["browser"]  # a fixture
pytestmark = needs_browser

EXPLORERS = ("layers", "weights", "pruning", "samples", "time", "atlas")
SMALLER: dict[str, dict[str, Any]] = {  # than `smoke`
    "layers": {"models": ["resnet10"]},
    "weights": {"rates": [0.05], "balances": [0.5]},
    "pruning": {"sparsities": [0.5]},
    "samples": {"data": ["digits-bits"], "networks": 16},
    "time": {},
    "atlas": {"ccl": [], "hamp": [], "cskd": [], "noise": [], "rhos": []},
}
FIGURE = ".leak-atlas-figure[data-ready]"
# Voila and JupyterLab themselves: a socket that closes, a widget's own style
NOT_OURS = re.compile("WebSocket|preload|third-party")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the explorers' notebooks, their tiny networks, and a run with its pages."""
    folder = tmp_path_factory.mktemp("explorers")
    shutil.copytree(paths.NOTEBOOKS / ".jupyter", folder / "notebooks/.jupyter")
    (folder / "notebooks/explore").mkdir()
    for name, smaller in SMALLER.items():
        text = (paths.NOTEBOOKS / f"explore/{name}.py").read_text()
        given = yaml.safe_load((paths.PARAMS / f"smoke/explore/{name}.yaml").read_text())
        for key, value in (given | smaller).items():
            text = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value!r}  # small", text, count=1)
        (folder / f"notebooks/explore/{name}.py").write_text(text)
    (folder / "params/smoke").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAK_ATLAS_OUTPUTS", str(folder / "outputs"))
        patch.setattr(paths, "NOTEBOOKS", folder / "notebooks")
        patch.setattr(paths, "PARAMS", folder / "params")
        assert main(["reproduce", "--profile", "smoke", "explore/*"]) == 0
        yield folder


@pytest.fixture(scope="module")
def voila(place: Path) -> Iterator[str]:
    """The address of the explorers without code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAK_ATLAS_OUTPUTS", str(place / "outputs"))
        for name, value in app.prepare(place / "app").items():
            patch.setenv(name, value)
        own = "voila", "--token=atlas", "--Voila.ip=127.0.0.1", str(place / "app")
        with served(place, *own) as address:
            yield address


@pytest.fixture
def page(browser: "Browser") -> Iterator["Page"]:
    """A page that asks nobody else for anything, and has nothing to complain of."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    outside, wrong = asked(page), list[str]()
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    page.close()
    assert not outside
    assert not [text for text in wrong if not NOT_OURS.search(text)]


def marks(page: "Page") -> "Locator":
    """What can be clicked in the figure."""
    found = page.locator(f"{FIGURE} svg :is([role=button], image[aria-label])")
    found.first.wait_for(timeout=30_000)
    return found


def moves(page: "Page", act: Any) -> bool:
    """Whether the place that the address names is another one after `act`, within a second."""
    before = page.evaluate("location.hash")
    act()
    for _ in range(20):
        if page.evaluate("location.hash") != before:
            return True
        page.wait_for_timeout(50)
    return False


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_page_answers_without_a_kernel(page: "Page", place: Path, name: str) -> None:
    page.goto((place / f"outputs/runs/smoke/explore/{name}.html").as_uri())
    found = marks(page)
    found.first.hover(force=True)  # tiny networks lie on top of each other
    page.locator("#vg-tooltip-element.visible").wait_for()
    clicks = [lambda each=each: each.click(force=True) for each in (found.first, found.last)]
    assert any([moves(page, click) for click in clicks])
    assert "undefined" not in page.url and "null" not in page.url
    play = page.locator(".leak-atlas-play")
    assert moves(page, play.click) and play.inner_text() == "⏸ pause"
    play.click()
    page.locator(".leak-atlas-chart").focus()
    keys = [lambda key=key: page.keyboard.press(key) for key in ("ArrowLeft", "ArrowRight")]
    assert any([moves(page, press) for press in keys])
    assert not page.evaluate(NARROW, 100)
    assert not violations(page, ".leak-atlas-page")


def test_the_words_of_a_page_follow_its_slider(page: "Page", place: Path) -> None:
    page.goto((place / "outputs/runs/smoke/explore/samples.html").as_uri())
    marks(page)
    before = page.locator(".leak-atlas-says").inner_text()
    page.locator(".leak-atlas-chart").focus()
    page.keyboard.press("ArrowLeft")
    changed = "was => document.querySelector('.leak-atlas-says').innerText != was"
    page.wait_for_function(changed, arg=before)


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_page_fits_a_phone(page: "Page", place: Path, name: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto((place / f"outputs/runs/smoke/explore/{name}.html").as_uri())
    found = marks(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not page.evaluate(TOO_WIDE) and not page.evaluate(NARROW, 100)
    found.last.hover(force=True)
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    box = tooltip.bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390


@pytest.mark.parametrize("name", EXPLORERS)
def test_voila_shows_choices_and_answers_a_click(page: "Page", voila: str, name: str) -> None:
    page.goto(f"{voila}/voila/render/{name}.ipynb?token=atlas")
    found = marks(page)
    assert not page.evaluate(NARROW, 100)
    assert not violations(page, ".leak-atlas-instrument")
    top = page.locator(FIGURE).bounding_box()
    assert top and top["y"] < 900, "the figure begins below the first screen"
    before = page.locator(FIGURE).inner_html()
    found.last.click(force=True)
    found.first.click(force=True)
    page.wait_for_function(
        f"was => document.querySelector('{FIGURE}').innerHTML != was", arg=before
    )


def test_the_first_page_of_voila_has_a_card_for_each_explorer(page: "Page", voila: str) -> None:
    page.goto(f"{voila}/?token=atlas")
    cards = page.locator(".cards a")
    assert cards.count() == len(EXPLORERS) == page.locator(".cards img").count()
    assert not violations(page, "html")
    cards.last.click()
    page.get_by_role("link", name="All explorers").wait_for()


def test_a_lost_kernel_is_said_in_a_line(page: "Page", voila: str) -> None:
    page.goto(f"{voila}/voila/render/time.ipynb?token=atlas")
    marks(page)
    lost = page.locator(".leak-atlas-lost")
    assert not lost.is_visible()
    page.evaluate("WebSocket.prototype.send = () => {}")
    page.locator(".leak-atlas-instrument select").first.select_option(index=1)
    lost.wait_for(timeout=15_000)
