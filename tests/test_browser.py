"""What a reader sees, in a headless browser: a .py opens in JupyterLab, runs, answers a key.

Pages and their index lie on a disk: they filter, fit a phone, and lose nothing on paper.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import nbformat
import pytest

from leak_atlas import audit, report
from leak_atlas.engine import paths
from tests.report.parts import rows as rows_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
pytestmark = [
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


def git(folder: Path, *arguments: str) -> str:
    own = "-c", "user.name=atlas", "-c", "user.email=atlas@localhost"
    return subprocess.run(
        ["git", *own, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository that holds the notebooks."""
    ours = shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints")
    folder = tmp_path / "clone"
    shutil.copytree(paths.NOTEBOOKS, folder / "notebooks", ignore=ours)
    shutil.copy(paths.ROOT / ".gitignore", folder)
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "--message", "as published")
    return folder


@pytest.fixture
def lab_address(tmp_path: Path, clone: Path) -> Iterator[str]:
    """A JupyterLab of its own."""
    own = (
        "--ip=127.0.0.1",
        "--allow-root",
        "--IdentityProvider.token=atlas",
        str(clone / "notebooks"),
    )
    with served(tmp_path, "jupyter", "lab", *own) as address:
        yield address


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
        lambda r: (
            outside.append(r.url) if "127.0.0.1" not in r.url and r.url.startswith("http") else None
        ),
    )
    return outside


@pytest.fixture
def page(lab_address: str, browser: "Browser") -> Iterator["Page"]:
    """A page that may load from nowhere but JupyterLab."""
    page = browser.new_page(viewport={"width": 1400, "height": 1400}, base_url=lab_address)
    outside = asked(page)
    yield page
    assert not outside, outside


def opened(page: "Page", notebook: str) -> None:
    """Opens a notebook and waits for its kernel."""
    page.goto(f"/lab/workspaces/test/tree/{notebook}?token=atlas")
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=90_000)
    # a run before there is a kernel asks for one
    page.get_by_text("| Idle").first.wait_for(timeout=90_000)


def run_all(page: "Page") -> None:
    """Runs all cells, until the widget says something."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-itemLabel", has_text="Run All Cells").first.click()
    page.locator(".leak-atlas-says").wait_for(state="attached", timeout=180_000)


def run(page: "Page", notebook: str, smaller: str) -> None:
    """Opens a notebook, adds parameters to its first cell and runs all cells, until the widget says
    something.
    """
    opened(page, notebook)
    page.locator(".jp-CodeCell").first.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("\n" + smaller)
    run_all(page)


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


NARROW = """least => [...document.querySelectorAll('.jupyter-widgets')]
    .flatMap(widget => [...widget.querySelectorAll(':scope > :is(select, input), .noUi-target')])
    .filter(each => each.checkVisibility() && each.getBoundingClientRect().width < least)
    .map(each => `${each.parentElement.innerText || each.outerHTML}: ${each.getBoundingClientRect().width} px`)"""


def said(page: "Page", before: str = "") -> str:
    """What the widget says, once that is not what it said before.

    Its figure is there, its texts can be read, and what a user moves, chooses from or types into is
    100 px wide.
    """
    page.wait_for_function(
        "was => ![was, ''].includes(document.querySelector('.leak-atlas-says').innerText)",
        arg=before,
        timeout=30_000,
    )
    page.locator("img[alt][src^='data:image/png']").last.wait_for()
    assert not violations(page, ":has(> .leak-atlas-says)")
    assert page.locator(".jupyter-widgets :is(select, .noUi-target)").count()
    assert not page.evaluate(NARROW, 100)
    return page.locator(".leak-atlas-says").inner_text()


LAYERS = (
    "pool = 120\nepochs = 2\npairs = 2\nwidth = 4\npixels = 8\nmoments = [1]\nmodels = ['resnet10']"
)


WEIGHTS = """pool = 120
reference = 40
test = 100
epochs = 2
retrain_epochs = 1
shadows = 6
width = 4
pixels = 8
rates = [0.05]
score_steps = 2
balances = [0.5]"""

PRUNING = """pool = 120
dev = 10
victims = 2
shadows = 2
epochs = 2
retrain_epochs = 1
width = 4
pixels = 8
reference = 40
sparsities = [0.6]"""

# notebook, its parameters, what a tile is called, and what a click on that tile points at
INSTRUMENTS = {
    "layers": (LAYERS, "stage2, epoch 1", {"part": "stage2", "epoch": "1"}),
    "weights": (WEIGHTS, "stage2, r = 0.05", {"part": "stage2", "r": "0.05"}),
    "pruning": (PRUNING, "all classes, sparsity 0:", {"who": "all classes", "sparsity": "0"}),
}


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_an_instrument_opens_and_answers_a_click(page: "Page", name: str) -> None:
    smaller, tile, pointed = INSTRUMENTS[name]
    run(page, f"explore/{name}.py", smaller)
    figure = page.locator(".leak-atlas-figure[data-ready]")
    tiles = figure.locator(f".mark-rect path[aria-label*='{tile}']")
    tiles.first.wait_for(timeout=60_000)
    assert not violations(page, ".leak-atlas-instrument")
    assert not page.evaluate(NARROW, 100)
    tiles.first.click()
    for pointer, value in pointed.items():
        control = page.locator(f"[data-pointer={pointer}] :is(select, output)")
        shown = "([e, value]) => (e.value ?? e.textContent) === value"
        page.wait_for_function(shown, arg=[control.element_handle(), value])
    play = figure.locator(".leak-atlas-play")
    play.click()
    assert play.inner_text() == "⏸ pause"
    play.click()


def test_a_notebook_that_is_run_and_saved_leaves_nothing_to_commit(
    page: "Page", clone: Path
) -> None:
    path = clone / "notebooks/explore/layers.py"
    path.write_text(re.sub(r"(?m)^(precision = .*)$", rf"\1\n{LAYERS}", path.read_text()))
    git(clone, "commit", "--all", "--message", "smaller")
    committed = path.stat().st_mtime_ns
    opened(page, "explore/layers.py")
    run_all(page)
    page.locator(".leak-atlas-figure[data-ready] svg").first.wait_for(timeout=60_000)
    page.get_by_text("| Idle").first.wait_for(timeout=90_000)
    page.keyboard.press("Control+s")
    deadline = time.monotonic() + 30
    while path.stat().st_mtime_ns == committed:  # the .py is written last
        assert time.monotonic() < deadline, "not saved"
        time.sleep(0.1)
    assert any(cell.get("outputs") for cell in nbformat.read(path.with_suffix(".ipynb"), 4).cells)
    assert git(clone, "status", "--porcelain") == ""


def test_the_samples_explorer_opens_runs_and_answers(page: "Page") -> None:
    smaller = "data = ['digits-bits']\npool = [200]\ndev = [10]\nvictims = 2\nshadows = 2"
    smaller += "\nepochs = [2]\nround_epochs = [3]\nscore_epochs = [2]\nnetworks = 16\nshare = 0.5"
    run(page, "explore/samples.py", f"{smaller}\nninths = 6")
    figure, says = page.locator(".leak-atlas-figure[data-ready]"), page.locator(".leak-atlas-says")
    members = figure.locator(".mark-image image[aria-label]")
    members.first.wait_for(timeout=60_000)
    assert not violations(page, ".leak-atlas-instrument")
    assert not page.evaluate(NARROW, 100)
    assert "In epoch 2 of 3 of a round the window holds ranks 2 to 4" in says.inner_text()
    members.nth(3).click()
    card = figure.locator(".mark-text text tspan").first
    card.filter(has_text=members.nth(3).get_attribute("aria-label") or "-").wait_for(
        state="attached"
    )
    page.locator("[data-pointer=epoch] input").fill("2")
    says.get_by_text("In epoch 3 of 3 of a round the window holds ranks 3 to 5").wait_for()


SHORT = """axis = ['digits']
axis_pixels = [0]
width = 2
pool = 100
test = 40
epochs = 2
networks = 8
judges = 8
share = 0.5
checkpoints = [0, 1, 2]"""  # explore/time


def test_the_time_explorer_opens_runs_and_answers(page: "Page") -> None:
    run(page, "explore/time.py", SHORT)
    figure = page.locator(".leak-atlas-figure[data-ready]")
    figure.locator(".mark-image image").first.wait_for(timeout=60_000)
    assert not violations(page, ".leak-atlas-instrument")
    assert not page.evaluate(NARROW, 100)
    says, card = page.locator(".leak-atlas-says"), figure.locator(".mark-text text tspan").first
    assert "Epoch 2, LiRA at 10 % FPR" in says.inner_text()
    figure.locator(".mark-image image[aria-label]").nth(3).click()
    label = figure.locator(".mark-image image[aria-label]").nth(3).get_attribute("aria-label")
    assert label and label.startswith(card.text_content() or "-")
    page.locator("[data-pointer=epoch] input").fill("1")
    says.get_by_text("Epoch 1, LiRA at 10 % FPR").wait_for()


def test_the_app_shows_an_explorer_and_asks_nobody_else(browser: "Browser", tmp_path: Path) -> None:
    import jupytext

    node = jupytext.read(paths.NOTEBOOKS / "explore/time.py")
    (given,) = (cell for cell in node.cells if "parameters" in cell.metadata.get("tags", []))
    given.source += f"\n{SHORT}"
    (tmp_path / "app").mkdir()
    nbformat.write(node, tmp_path / "app/time.ipynb")
    own = "voila", "--token=atlas", "--Voila.ip=127.0.0.1", str(tmp_path / "app")
    with served(tmp_path, *own) as address:
        page, left = browser.new_page(), list[str]()
        page.on("requestfinished", lambda r: left.append(r.url))
        page.on("requestfailed", lambda r: left.append(r.url) if r.failure != "csp" else None)
        page.goto(f"{address}/?token=atlas")
        page.goto(f"{address}/voila/render/time.ipynb?token=atlas")
        slider = page.locator("[data-pointer=epoch] input")
        slider.wait_for(timeout=180_000)
        slider.press("ArrowLeft")
        page.locator(".leak-atlas-says", has_text="Epoch 1, LiRA at 10 % FPR").wait_for()
        assert left and not [url for url in left if not url.startswith((address, "data:", "blob:"))]


# ---------------------------------------------------------------- reports on a screen, on a phone, on paper

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


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """A run of three reports: two small ones, and one with a table of fourteen columns and long
    words.
    """
    folder, v4 = tmp_path / "runs" / "quick", nbformat.v4
    claims = report.claims(
        report.Claim(
            "a",
            "Stage 4 stands out",
            "contrast of stage 4",
            above=0.0,
            paper="Fig. 1",
            control="two seeds",
        ),
        report.Claim(
            "b",
            "Early stages are silent",
            "strength of stages 1 and 2",
            below=0.1,
            ours=True,
            control="planted memory",
        ),
        regime={"member accuracy": 0.9},
    )
    estimate = audit.Estimate(0.3, 0.2, 0.4, 5)
    judged = report.judge(claims, regime={"member accuracy": 0.95}, a=estimate, b=estimate)
    wide = report.table(
        [
            {"network": "resnet18, pruned iteratively"}
            | {f"accuracy {i}": estimate for i in range(13)}
        ]
        * 3
    )
    profile = report.profile(rows_of(["stem", "head"], [estimate] * 2), title="Nothing to see")
    for name, title in {
        "layers/fig01": "Where?",
        "layers/fig02": "How wide?",
        "time/plane": "When?",
    }.items():
        shown = [claims, profile, *([wide] if name == "layers/fig02" else []), judged]
        bundles = [each._repr_mimebundle_() for each in shown]
        outputs = [
            v4.new_output("display_data", each if isinstance(each, dict) else each[0])
            for each in bundles
        ]
        head = v4.new_markdown_cell(f"# {title}\n\n*Profile quick: thin*")
        code = "def x(a=1):  # words\n    return None, 'b'"
        node = v4.new_notebook(
            cells=[head, *(v4.new_code_cell(code, outputs=[one]) for one in outputs)]
        )
        path = folder / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(node, path)
        entry = {"notebook": name, "title": title, "status": "executed"}
        path.with_suffix(".run.json").write_text(json.dumps(entry))
        path.with_suffix(".claims.json").write_text(json.dumps(report.claims_of(node)))
        report.write_page(folder, name, title)
    report.index(folder)
    return folder


# A4 less its margins
@pytest.mark.parametrize(("media", "width"), [("screen", 1280), ("screen", 390), ("print", 703)])
def test_nothing_is_cut_and_nothing_scrolls_but_tables(
    browser: "Browser", reports: Path, media: Literal["screen", "print"], width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.emulate_media(media=media)
    outside = asked(page)
    for path in sorted(reports.rglob("*.html")):
        page.goto(path.as_uri())
        for folded in page.locator("details").all():
            folded.evaluate("e => e.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert not page.evaluate(TOO_WIDE), path
    assert not outside


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_break_no_rule_of_access(
    browser: "Browser", reports: Path, scheme: Literal["light", "dark"]
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    for path in sorted(reports.rglob("*.html")):
        page.goto(path.as_uri())
        for folded in page.locator("details").all():
            folded.evaluate("e => e.open = true")
        assert not violations(page, "html"), path


def test_the_index_filters_and_searches(browser: "Browser", reports: Path) -> None:
    page = browser.new_page()
    page.goto((reports / "index.html").as_uri())
    said, articles = page.locator(".filter output"), page.locator("article:visible")
    assert said.inner_text() == "3 reports, 6 claims" and articles.count() == 3
    page.locator("[name=verdict]").select_option("fails")
    assert (
        said.inner_text() == "3 reports, 3 claims" and page.locator("tbody tr:visible").count() == 3
    )
    page.locator("[name=group]").select_option("In which layers? PPTP")
    assert (
        said.inner_text() == "2 reports, 2 claims"
        and page.locator("section.group:visible").count() == 1
    )
    page.locator("[name=words]").fill("wide EARLY")
    assert said.inner_text() == "1 report, 1 claim"
    page.locator("[name=words]").fill("nowhere")
    assert "Nothing has that" in said.inner_text() and not articles.count()
    page.get_by_role("button", name="All").click()
    page.wait_for_function(
        "document.querySelector('.filter output').textContent == '3 reports, 6 claims'"
    )
    page.locator("article h3 a").last.click()
    assert page.title() == "When? · Leak Atlas"
    page.get_by_role("link", name="Leak Atlas").first.click()
    assert page.url.endswith("quick/index.html")


def test_without_scripts_the_index_shows_all(browser: "Browser", reports: Path) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto((reports / "index.html").as_uri())
    assert page.locator("article:visible").count() == 3 and not page.locator("form:visible").count()
