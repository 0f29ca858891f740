"""A headless browser, servers of Jupyter's, and what tests look for in a page."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from leak_atlas.engine import paths

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
needs_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(not BROWSER, reason="NO CHROMIUM: install it to run these tests"),
]


@contextmanager
def served(place: Path, *command: str) -> Iterator[str]:
    """The address of a server of Jupyter's on this machine, set up as `make lab` and `make app` set
    it up.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "JUPYTER_CONFIG_PATH": str(paths.NOTEBOOKS / ".jupyter"),
        "PYTHONPATH": f"{paths.ROOT}/lib{os.pathsep}{paths.ROOT}",
        "LEAK_ATLAS_OUTPUTS": str(place / "outputs"),
        "HOME": str(place),
    }
    address = f"http://127.0.0.1:{port}"
    with (place / "server.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *command, "--no-browser", f"--port={port}"],
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            for _ in range(120):
                try:
                    urllib.request.urlopen(f"{address}/?token=atlas", timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.5)
            yield address
        finally:
            server.terminate()
            server.wait(20)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """One for all tests of a module."""
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
        lambda r: (
            outside.append(r.url) if "127.0.0.1" not in r.url and r.url.startswith("http") else None
        ),
    )
    return outside


def violations(page: "Page", part: str) -> list[str]:
    """Where a part of a page, by a CSS selector, breaks WCAG 2.1 AA, as far as axe-core finds."""
    from axe_playwright_python.sync_playwright import Axe

    # A slider of ipywidgets has its label beside it, and no way to give its handle a name.
    slider = {"aria-input-field-name": {"enabled": False}}
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "rules": slider}
    found = Axe().run(page, part, rules).response["violations"]
    return [
        f"{rule['id']}: {node['failureSummary']} {node['html'][:200]}"
        for rule in found
        for node in rule["nodes"]
    ]


# controls that are narrower than so many pixels
NARROW = """least => [...document.querySelectorAll('.jupyter-widgets > :is(select, input), .leak-atlas-pointer > :is(select, input), .leak-atlas-play')]
    .filter(each => each.checkVisibility() && each.getBoundingClientRect().width < least)
    .map(each => `${each.parentElement.innerText || each.outerHTML}: ${each.getBoundingClientRect().width} px`)"""

# what does not fit into the width of a page and cannot be scrolled to
TOO_WIDE = """() => {
    const wide = document.documentElement.clientWidth, flow = e => getComputedStyle(e).overflowX;
    const scrolls = e => ["auto", "scroll"].includes(flow(e));
    const own = e => { for (; e; e = e.parentElement) if (scrolls(e)) return true; return false; };
    return [...document.querySelectorAll("body *")].filter(e => {
        const box = e.getBoundingClientRect(), cut = ["hidden", "clip"].includes(flow(e));
        const lost = (box.right > wide + 1 && !own(e)) || (cut && e.scrollWidth > e.clientWidth + 1);
        return box.width && box.height && lost;
    }).map(e => `${e.tagName} ${e.textContent.slice(0, 60)}`).slice(0, 5);
}"""
