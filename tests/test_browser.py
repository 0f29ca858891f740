"""What a reader sees, in a headless browser: a .py opens in JupyterLab, runs, answers a key.

Pages and their index lie on a disk: they filter, fit a phone, and lose nothing on paper.
"""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import nbformat
import pytest

from leak_atlas import audit, report
from leak_atlas.engine import paths
from tests.browsing import TOO_WIDE, asked, browser, needs_browser, served, violations
from tests.report.parts import rows as rows_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser"]  # a fixture
pytestmark = needs_browser


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
    """Runs all cells, until the explorer says something."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-itemLabel", has_text="Run All Cells").first.click()
    page.locator(".leak-atlas-says").wait_for(state="attached", timeout=180_000)


LAYERS = (
    "pool = 120\nepochs = 2\npairs = 2\nwidth = 4\npixels = 8\nmoments = [1]\nmodels = ['resnet10']"
)


def test_a_notebook_that_is_run_answers_a_key_and_leaves_nothing_to_commit(
    page: "Page", clone: Path
) -> None:
    path = clone / "notebooks/explore/layers.py"
    path.write_text(re.sub(r"(?m)^(precision = .*)$", rf"\1\n{LAYERS}", path.read_text()))
    git(clone, "commit", "--all", "--message", "smaller")
    committed = path.stat().st_mtime_ns
    opened(page, "explore/layers.py")
    run_all(page)
    tile = page.locator(".leak-atlas-figure[data-ready] [aria-label*='stage2, epoch 2']").first
    tile.click(timeout=60_000)
    page.keyboard.press("ArrowLeft")
    page.locator("[data-pointer=epoch] output", has_text="1").wait_for()
    page.get_by_text("| Idle").first.wait_for(timeout=90_000)
    page.keyboard.press("Control+s")
    deadline = time.monotonic() + 30
    while path.stat().st_mtime_ns == committed:  # the .py is written last
        assert time.monotonic() < deadline, "not saved"
        time.sleep(0.1)
    assert any(cell.get("outputs") for cell in nbformat.read(path.with_suffix(".ipynb"), 4).cells)
    assert git(clone, "status", "--porcelain") == ""


# ---------------------------------------------------------------- reports on a screen, on a phone, on paper


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
