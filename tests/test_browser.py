"""What a reader sees, in a headless browser: a .py opens in JupyterLab, runs, answers a key; planes move on a page."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import numpy as np
import pytest

from lib import paths, report
from lib.report import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(not BROWSER, reason="NO CHROMIUM: install it to run these tests")]


@pytest.fixture
def lab_address(tmp_path: Path) -> Iterator[str]:
    """A JupyterLab of its own, set up as `make lab` sets it up."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path / "notebooks"
    shutil.copytree(paths.NOTEBOOKS, folder, ignore=shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints"))
    command = [
        sys.executable,
        "-m",
        "jupyter",
        "lab",
        "--no-browser",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--allow-root",
    ]
    environment = os.environ | {
        "JUPYTER_CONFIG_PATH": str(paths.NOTEBOOKS / ".jupyter"),
        "LEAK_ATLAS_OUTPUTS": str(tmp_path / "outputs"),
        "HOME": str(tmp_path),
    }
    log = (tmp_path / "lab.log").open("w")
    server = subprocess.Popen(
        [*command, "--IdentityProvider.token=atlas", str(folder)], env=environment, stdout=log, stderr=log
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{address}/api/status?token=atlas", timeout=1).close()
                break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.wait(20)
        log.close()


@pytest.fixture
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright

    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=quiet)
        yield browser
        browser.close()


def asked(page: "Page") -> list[str]:
    """What a page loads that is not on this machine."""
    outside: list[str] = []
    page.on(
        "request",
        lambda r: outside.append(r.url) if "127.0.0.1" not in r.url and r.url.startswith("http") else None,
    )
    return outside


@pytest.fixture
def page(lab_address: str, browser: "Browser") -> Iterator["Page"]:
    """A page that may load from nowhere but JupyterLab."""
    page = browser.new_page(viewport={"width": 1400, "height": 1400}, base_url=lab_address)
    outside = asked(page)
    yield page
    assert not outside, outside


def run(page: "Page", notebook: str, smaller: str) -> None:
    """Opens a notebook, adds parameters to its first cell and runs all cells, until the widget says something."""
    page.goto(f"/lab/workspaces/test/tree/{notebook}?token=atlas")
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=90_000)
    page.get_by_text("| Idle").first.wait_for(timeout=90_000)  # a run before there is a kernel asks for one
    page.locator(".jp-CodeCell").first.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("\n" + smaller)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-itemLabel", has_text="Run All Cells").first.click()
    page.locator(".leak-atlas-says").wait_for(state="attached", timeout=180_000)


def said(page: "Page", before: str = "") -> str:
    """What the widget says, once that is not what it said before."""
    page.wait_for_function(
        "was => ![was, ''].includes(document.querySelector('.leak-atlas-says').innerText)", arg=before, timeout=30_000
    )
    return page.locator(".leak-atlas-says").inner_text()


def test_the_layer_explorer_opens_runs_and_answers(page: "Page") -> None:
    smaller = "pool = 120\nepochs = 2\npairs = 2\nwidth = 4\npixels = 8\nmoments = [1]\nmodels = ['resnet10']"
    run(page, "explore/layers.py", smaller)
    before = said(page)
    assert "stage4" in before and page.locator(".leak-atlas-samples img").count() == 24
    button = page.locator(".leak-atlas-part button", has_text="stage2")
    button.focus()
    button.press("Enter")
    assert "stage2: AUC" in said(page, before)
    assert page.locator(".leak-atlas-samples img").count() == 24


def test_the_weight_explorer_opens_runs_and_answers(page: "Page") -> None:
    smaller = (
        "pool = 120\nreference = 40\ntest = 100\nepochs = 2\nretrain_epochs = 1\nshadows = 6\nwidth = 4\npixels = 8"
    )
    run(page, "explore/weights.py", f"{smaller}\nrates = [0.05]\nscore_steps = 2\nbalances = [0.5]")
    before = said(page)
    assert "at 5 %: test accuracy" in before and page.locator(".leak-atlas-table tbody tr").count() == 3
    handle = page.locator(".leak-atlas-rate [role=slider]")
    handle.focus()
    handle.press("ArrowRight")
    assert "at 6 %: what comes of rewinding these weights is not trained yet" in said(page, before)
    page.locator(".leak-atlas-train", has_text="train 12 networks, about").wait_for(timeout=60_000)
    page.locator(".leak-atlas-export").press("Enter")
    page.locator(".leak-atlas-links a").first.wait_for()
    assert page.evaluate(FAINT) == []


# Texts of an explorer whose contrast with what lies behind them is below WCAG's 4.5.
FAINT = """() => {
    const parts = text => text.match(/[\\d.]+/g).map(Number);
    const light = rgb => rgb.slice(0, 3).map(v => v / 255)
        .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
    const behind = at => { for (; at; at = at.parentElement) {
        const rgb = parts(getComputedStyle(at).backgroundColor);
        if (rgb.length < 4 || rgb[3] > .9) return rgb; } return [255, 255, 255]; };
    const root = document.querySelector('.leak-atlas-says').closest('.jp-OutputArea-output');
    return [...root.querySelectorAll('*')].filter(each => each.offsetParent && !each.disabled &&
        [...each.childNodes].some(node => node.nodeType == 3 && node.data.trim())).map(each => {
            const [a, b] = [light(parts(getComputedStyle(each).color)), light(behind(each))].sort((x, y) => y - x);
            return [each.textContent.trim().slice(0, 40), (a + .05) / (b + .05)];
        }).filter(([_, ratio]) => ratio < 4.5);
}"""


def test_the_pruning_explorer_opens_runs_and_answers(page: "Page") -> None:
    smaller = "pool = 120\ndev = 10\nvictims = 2\nshadows = 2\nepochs = 2\nretrain_epochs = 1\nwidth = 4\npixels = 8"
    run(page, "explore/pruning.py", f"{smaller}\nreference = 40\nsparsities = [0.6]")
    before = said(page)
    assert "L1 unstructured, Base at 60 %: test accuracy" in before
    handle = page.locator(".leak-atlas-sparsity [role=slider]")
    handle.focus()
    handle.press("ArrowRight")
    assert "L1 unstructured, Base: not trained yet" in said(page, before)


def test_the_sample_explorer_opens_runs_and_answers(page: "Page") -> None:
    smaller = (
        "data = ['digits-bits']\npool = [200]\ndev = [10]\nvictims = 2\nshadows = 2\nepochs = [2]\nround_epochs = [3]"
    )
    run(
        page,
        "explore/samples.py",
        f"{smaller}\nscore_epochs = [2]\nnetworks = 16\nshare = 0.5\nwidths = [[3]]\nsteps = [[1]]",
    )
    before = said(page)
    assert "In epoch 2 of 3 of a round the window is at ranks 2 to 4 of each class" in before
    handle = page.locator(".leak-atlas-epoch [role=slider]")
    handle.focus()
    handle.press("ArrowRight")
    assert "In epoch 3 of 3 of a round the window is at ranks 3 to 5" in said(page, before)


def test_the_time_explorer_opens_runs_and_answers(page: "Page") -> None:
    smaller = (
        "axis = ['digits']\naxis_pixels = [0]\nwidth = 2\npool = 100\ntest = 40\nepochs = 2\nnetworks = 8\njudges = 8"
    )
    run(page, "explore/time.py", f"{smaller}\nshare = 0.5\ncheckpoints = [0, 1, 2]")
    before = said(page)
    assert "Epoch 2: LiRA with its threshold at 10 % FPR" in before
    handle = page.locator(".leak-atlas-epoch [role=slider]")
    handle.focus()
    handle.press("ArrowLeft")
    assert "Epoch 1: LiRA with its threshold at 10 % FPR" in said(page, before)


# ---------------------------------------------------------------- planes that move, on a page that lies on a disk


@pytest.fixture
def planes(tmp_path: Path) -> str:
    """A page with two of them: one course, and three."""
    rates = np.linspace(0.5, np.random.default_rng(0).random((2, 80)), 4)
    shown = [report.moving({name: rates for name in names}, [0, 1, 5, 20], "Moving") for names in ("a", "xyz")]
    v4 = nbformat.v4
    outputs = [v4.new_output("display_data", each._repr_mimebundle_()) for each in shown]
    path = tmp_path / "planes.html"
    path.write_text(render.html(v4.new_notebook(cells=[v4.new_code_cell("", outputs=outputs)]), "Planes"))
    return path.as_uri()


def told(page: "Page") -> list[str]:
    """What each panel says of itself."""
    return [each.get_attribute("aria-label") or "" for each in page.locator(".leakatlas-moving svg").all()]


def test_a_slider_moves_the_planes_of_its_own_figure(browser: "Browser", planes: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    outside, errors = asked(page), list[str]()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(planes)
    slider = page.locator(".leakatlas-moving input").first
    dots, before = page.locator(".dots"), told(page)
    drawn = [each.get_attribute("d") for each in dots.all()]
    assert len(before) == 4 and all("epoch 20: mean FPR" in each for each in before)
    slider.focus()
    slider.press("ArrowLeft")
    assert told(page)[0].startswith("a, epoch 5") and told(page)[1:] == before[1:]
    assert slider.get_attribute("aria-valuetext") == "epoch 5" == page.locator(".now").first.inner_text()
    slider.press("Home")
    assert page.locator(".now").first.inner_text() == "before training" and told(page)[0].endswith("0.500, TPR 0.500")
    assert dots.first.get_attribute("d") != drawn[0]
    slider.press("End")
    assert [each.get_attribute("d") for each in dots.all()] == drawn
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not outside and not errors


def test_planes_play_and_pause(browser: "Browser", planes: str) -> None:
    page = browser.new_page()
    page.goto(planes)
    button, now = page.locator(".leakatlas-moving button").last, page.locator(".now").last
    button.focus()
    button.press("Enter")
    page.wait_for_function("[...document.querySelectorAll('.now')].at(-1).textContent == 'epoch 1'")
    assert "pause" in button.inner_text() and page.locator(".now").first.inner_text() == "epoch 20"
    button.click()
    stopped = now.inner_text()
    page.wait_for_timeout(1000)
    assert now.inner_text() == stopped != "epoch 20" and "play" in button.inner_text()
    button.click()
    page.wait_for_function("[...document.querySelectorAll('.now')].at(-1).textContent == 'epoch 20'")
    page.wait_for_function("[...document.querySelectorAll('button')].at(-1).textContent.includes('play')")


def test_who_prefers_less_motion_sees_epochs_alone(browser: "Browser", planes: str) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto(planes)
    seen = page.evaluate(
        """() => new Promise(done => {
            const seen = new Set(), root = document.querySelector('.leakatlas-moving');
            root.querySelector('button').click();
            const look = () => {
                seen.add(root.querySelector('.centre').getAttribute('cx'));
                root.querySelector('.now').textContent == 'epoch 20' ? done(seen.size) : requestAnimationFrame(look);
            };
            requestAnimationFrame(() => requestAnimationFrame(look));
        })"""
    )
    assert seen == 4


def test_without_scripts_planes_show_the_last_epoch(browser: "Browser", planes: str) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(planes)
    assert "Shown is the last epoch, 20" in page.locator(".leakatlas-moving").first.inner_text()
    pictures = page.locator(".leakatlas-moving img")
    assert pictures.count() == 4 and not page.locator(".leakatlas-moving button").count()
    assert "epoch 20: mean FPR" in (pictures.first.get_attribute("alt") or "")
