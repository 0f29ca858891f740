"""Pages read offline, published notebooks hold nothing of the machine, the index names every
verdict.
"""

import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from PIL import Image

from leak_atlas import report
from leak_atlas.__main__ import main
from leak_atlas.audit import Estimate
from leak_atlas.engine import paths
from leak_atlas.report import contents, render
from leak_atlas.report.papers import ARXIV, PAPERS
from tests.report.parts import rows as rows_of

LOADS = re.compile(
    r"<link|@import|<script src|(?<!<a )(src|href)=.?(http|//)|url\(.?http", re.IGNORECASE
)
INJECTED = "injected-parameters"
VIEW = "application/vnd.jupyter.widget-view+json"
CLAIMS = report.claims(
    report.Claim(
        "a", "Stage 4 is loudest", "contrast", above=0.0, paper="Fig. 1", control="two seeds"
    ),
    report.Claim("b", "Early stages are | silent", "strength", below=0.1, paper="Fig. 1"),
    report.Claim("c", "It grows", "slope", above=0.0, paper="Tab. 2"),
    report.Claim("d", "At low FPR", "ratio", above=2.0, ours=True),
)
JUDGED = report.judge(
    CLAIMS,
    {"b": "directions"},
    a=Estimate(0.3, 0.2, 0.4, 5),
    b=Estimate(0.3, 0.2, 0.4, 5),
    c=Estimate(0.0, -0.1, 0.1, 5),
    d=Estimate(1, 0, 9, 1, resolved=False),
)


def executed(clock: str = "04:00", where: str = f"{Path.home()}/atlas") -> nbformat.NotebookNode:
    """What papermill leaves behind, with all that must not be published."""
    v4 = nbformat.v4
    fig = report.profile(
        rows_of(["stem", "head"], [Estimate(0.5, 0.4, 0.6)] * 2), title="Nothing to see"
    )
    data, about = fig._repr_mimebundle_()
    slider = {
        VIEW: {"model_id": clock},
        "text/plain": "IntSlider(value=3)",
        "text/html": "<i>x</i>",
    }
    outputs = [
        v4.new_output("stream", name="stderr", text=f"50 % {clock}"),
        v4.new_output(
            "stream",
            name="stdout",
            text=f"wrote {where}/a.parquet and {paths.ROOT}/lib/x.py\n",
        ),
        v4.new_output("display_data", slider),
        v4.new_output("display_data", data, metadata=about),
        v4.new_output("execute_result", JUDGED._repr_mimebundle_(), execution_count=7),
    ]
    cells = [
        v4.new_markdown_cell("# Which stage?\n\n*Profile quick: thin*\n\nThe *paper* says so."),
        v4.new_code_cell(
            "claims", outputs=[v4.new_output("execute_result", CLAIMS._repr_mimebundle_())]
        ),
        v4.new_code_cell(
            "epochs = 3", metadata={"tags": ["parameters"], "papermill": {"start_time": clock}}
        ),
        v4.new_code_cell(f"folder = '{where}/data'", execution_count=7, outputs=outputs),
    ]
    for cell in cells[2:]:
        cell.metadata["execution"] = {"iopub.execute_input": clock}
    node = v4.new_notebook(cells=cells)
    node.metadata = nbformat.from_dict(
        {
            "kernelspec": {"name": "python3", "display_name": "mine", "language": "python"},
            "language_info": {"name": "python", "version": clock},
            "papermill": {"input_path": f"{where}/x.ipynb", "start_time": clock},
            "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}},
        }
    )
    return node


@pytest.fixture
def run(own_outputs: Path) -> Path:
    """A run of two executed notebooks and a failed one."""
    folder = paths.runs("quick")
    for name, error in (
        ("time/plane", ""),
        ("layers/fig01", ""),
        ("weights/fig03", "Failed: too few samples"),
    ):
        page = folder / f"{name}.ipynb"
        page.parent.mkdir(parents=True, exist_ok=True)
        status = "failed" if error else "executed"
        entry = {
            "notebook": name,
            "title": f"Is <{name}> it?",
            "status": status,
            "error": error,
            "seconds": 3.2,
            "setting": "thin",
        }
        page.with_suffix(".run.json").write_text(json.dumps(entry))
        page.with_suffix(".claims.json").write_text(json.dumps(list(JUDGED)))
        if not error:
            nbformat.write(executed(), page)
    return folder


# ---------------------------------------------------------------- clean


def test_clean_leaves_the_same_for_two_runs():
    one, two = (nbformat.writes(render.clean(executed(clock))) for clock in ("04:00", "05:00"))
    assert one == two
    assert nbformat.writes(render.clean(render.clean(executed()))) == one


def test_clean_drops_the_machine_and_keeps_the_results():
    before = executed()
    node = render.clean(before)
    text = nbformat.writes(node)
    for word in ("papermill", "widget", "04:00", str(paths.ROOT), "50 %"):
        assert word not in text
    assert "~/atlas/a.parquet and ./lib/x.py" in text
    assert "a live control" in text and "IntSlider" not in text
    assert report.claims_of(node) == list(JUDGED)
    assert node.cells[2].metadata.tags == ["parameters"]
    assert "papermill" in before.metadata, "the notebook that was given stays as it is"
    nbformat.validate(node)


# ---------------------------------------------------------------- pages


def test_page_asks_nobody_and_folds_code():
    page = render.html(executed(), "Which <stage>?")
    assert not re.search(
        r"<script|<link|@import|src=\"http|url\(http|cdnjs|unpkg|mathjax|require",
        page,
        re.IGNORECASE,
    )
    assert "<title>Which &lt;stage&gt;? · Leak Atlas</title>" in page
    assert page.count('<details class="code">') == 3
    assert 'href="../index.html"' in page and 'alt="Nothing to see"' in page
    assert "✗\u00a0<b>fails</b>" in page and "prefers-color-scheme: dark" in page
    assert "In&nbsp;[" not in page and "Out[" not in page


def test_the_first_figure_stands_between_the_answer_and_the_code() -> None:
    page = render.html(executed(), "Which stage?")
    answer, figure = page.index("In short"), page.index('alt="Nothing to see"')
    assert answer < figure < page.index('<details class="code">')


def test_a_page_has_its_figures_and_its_paper(run):
    (run / "layers/fig01.fig1.svg").write_text("<svg/>")
    (run / "layers/fig01.fig1.csv").write_text("x,y")
    render.write_page(run, "layers/fig01", "Is <it> this?")
    page = (run / "layers/fig01.html").read_text()
    assert '<a href="fig01.fig1.svg" title="full size">' in page
    assert '<a href="fig01.fig1.csv">CSV</a>' in page
    assert '<a href="https://arxiv.org/abs/2602.02296">Read the paper</a>' in page
    assert not LOADS.search(page)
    assert "make reproduce PROFILE=quick ONLY=layers/fig01<" in page
    assert '<a href="fig01.ipynb">' in page


def test_papers_are_those_of_the_citation_file():
    import yaml

    cited = {
        each["title"]: each
        for each in yaml.safe_load((paths.ROOT / "CITATION.cff").read_text())["references"]
    }
    assert cited.keys() == {paper.title for paper in PAPERS.values()}
    for paper in PAPERS.values():
        known = [each["value"] for each in cited[paper.title].get("identifiers", ())]
        assert [f"arXiv:{paper.link.removeprefix(ARXIV)}"] * bool(paper.link) == known


def test_a_paper_is_represented_by_its_chosen_page() -> None:
    chosen = PAPERS["layers"].shown
    judged = {"reports": [{"claims": list(JUDGED)}]}
    questions = [judged | {"notebook": name} for name in ("layers/another", chosen)]
    ((_, _, question),) = contents._answers(questions)
    assert question["notebook"] == chosen


def test_index_names_every_verdict_and_every_failure(run):
    render.write_page(run, "layers/fig01", "Where?")
    contents.index(run)
    page = (run / "index.html").read_text()
    assert not LOADS.search(page)
    assert "2 notebooks, 8 claims." in page
    assert "<b>weights/fig03</b>: Failed: too few samples" in page
    assert 'href="layers/fig01.html">Is &lt;layers/fig01&gt; it?' in page
    lines = (run / "index.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ✗")]
    assert len(rows) == 2 and "silent (Fig. 1). *directions*" in rows[0] and r"\|" in rows[0]
    assert any("weights/fig03" in line and "too few" in line for line in lines)
    assert not list(run.rglob(".index*")), "nothing half-written stays"


# ---------------------------------------------------------------- what is committed


def test_publish_writes_clean_notebooks_and_their_claims(run):
    reports = paths.reports()
    assert contents.publish(run, reports) == ["layers/fig01", "time/plane"]
    node = nbformat.read(reports / "quick/layers/fig01.ipynb", as_version=4)
    assert "papermill" not in node.metadata and report.claims_of(node) == list(JUDGED)
    assert sorted(p.name for p in reports.rglob("*") if p.is_file()) == [
        "fig01.ipynb",
        "index.md",
        "plane.ipynb",
        "results.json",
    ]
    first = {p: p.read_bytes() for p in reports.rglob("*") if p.is_file()}
    contents.publish(run, reports)
    assert first == {p: p.read_bytes() for p in reports.rglob("*") if p.is_file()}
    assert "✓ Yes. Stage 4 is loudest: 0.300" in contents.results_table(reports)


def test_the_first_figure_of_one_page_is_the_picture_of_a_profile(run):
    place = paths.reports() / "quick"
    contents.publish(run, paths.reports())
    assert not (place / contents.OVERVIEW).exists()
    (page := place / f"{contents.SHOWN}.ipynb").parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(executed(), page)
    contents.publish(run, paths.reports())
    drawn = Image.open(place / contents.OVERVIEW).convert("L")
    assert drawn.getextrema()[0] < 100


def test_publishing_a_part_keeps_the_rest(run):
    reports = paths.reports()
    contents.publish(run, reports)
    for path in (run / "time").iterdir():
        path.unlink()
    assert contents.publish(run, reports) == ["layers/fig01"]
    assert [entry["notebook"] for entry in contents.published(reports)] == [
        "layers/fig01",
        "time/plane",
    ]
    (reports / "quick/time/plane.ipynb").unlink()
    assert "time/plane" not in contents.results_table(reports)


def test_what_looks_at_ones_own_model_is_not_published(run):
    (run / "time").rename(run / "own")
    path = run / "own/plane.run.json"
    path.write_text(path.read_text().replace("time/plane", "own/plane"))
    assert contents.publish(run, paths.reports()) == ["layers/fig01"]
    assert not list(paths.reports().rglob("*plane*"))


def test_command(run, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    for document in ("findings.md", "printed_numbers.md"):
        (tmp_path / "docs" / document).write_text("\n".join(contents.MARKS))
    assert main(["report", "quick"]) == 0
    assert "2 reports published" in capsys.readouterr().out
    assert "Stage 4 is loudest" in (tmp_path / "docs/findings.md").read_text()
    for wrong, hint in (("quik", "did you mean 'quick'"), ("../runs", "no run of profile")):
        assert main(["report", wrong]) == 2
        error = capsys.readouterr().err
        assert hint in error and error.count("\n") == 1


def test_the_repositorys_documents_list_its_own_reports_alone(run, monkeypatch, tmp_path):
    """Neither a run with changed parameters, nor reports that lie elsewhere."""
    elsewhere = tmp_path / "clone"
    for root in (tmp_path, elsewhere):
        (root / "docs").mkdir(parents=True)
        for document in ("findings.md", "printed_numbers.md"):
            (root / "docs" / document).write_text("\n".join(contents.MARKS))
    before = (tmp_path / "docs/findings.md").read_text()
    monkeypatch.setattr(paths, "ROOT", elsewhere)
    assert main(["report", "quick"]) == 0
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    shutil.copytree(run, run.with_name("quick+seed=1"))
    assert main(["report", "quick+seed=1"]) == 0
    for root in (tmp_path, elsewhere):
        assert (root / "docs/findings.md").read_text() == before
    assert main(["report", "quick"]) == 0
    assert "seed=1" not in (tmp_path / "docs/findings.md").read_text()


def test_the_site_has_all_profiles_and_asks_nobody(run):
    contents.publish(run, paths.reports())
    shutil.copytree(paths.reports() / "quick", paths.reports() / "desk")
    (place := paths.outputs() / "site").mkdir()
    assert main(["site"]) == 0
    pages = {path.relative_to(place).as_posix() for path in place.rglob("*.html")}
    assert pages == {"index.html", "glossary.html"} | {
        f"{p}/{n}.html" for p in ("quick", "desk") for n in ("layers/fig01", "time/plane")
    }
    text = {page: (place / page).read_text() for page in pages}
    assert not any(LOADS.search(each) for each in text.values())
    assert "2 profiles: quick, desk" in text["index.html"]
    for page in pages:
        for link in re.findall(r'href="([^"#:]+)"', text[page]):
            assert (place / page).parent.joinpath(link).exists(), (page, link)


def test_a_report_of_an_earlier_notebook_is_marked_on_its_page_and_in_the_index(run, monkeypatch):
    sources = paths.outputs() / "sources"
    monkeypatch.setattr(paths, "NOTEBOOKS", sources)
    node = executed()
    node.cells.insert(2, nbformat.v4.new_code_cell("epochs = 9", metadata={"tags": [INJECTED]}))
    for name, last in (("layers/fig01", "f( 1,2 )  # the same"), ("time/plane", "f(1, 3)")):
        node.cells[-1].source = "f(1, 2)"
        nbformat.write(node, run / f"{name}.ipynb")
        source = sources / f"{name}.py"
        source.parent.mkdir(parents=True)
        given = '# %% tags=["parameters"]\nepochs = 3'
        cells = ["# %% [markdown]\n# # Which?", "# %%\nclaims", given, f"# %%\n{last}"]
        source.write_text("\n\n".join(cells))
    contents.publish(run, paths.reports())
    assert main(["site"]) == 0
    place, mark = paths.outputs() / "site", render.EARLIER.capitalize()
    assert mark not in (place / "quick/layers/fig01.html").read_text()
    assert mark in (place / "quick/time/plane.html").read_text()
    for index in (place / "index.html", paths.reports() / "quick/index.md"):
        *_, before, after = index.read_text().split(mark)
        assert "time/plane" in before[before.index("layers/fig01") :] and "Fig. 1" in after


@pytest.mark.parametrize(
    ("parameters", "earlier"),
    [
        ("epochs = 4\nwidth = 8", False),  # the run injected its own epochs
        ("epochs = 3\nwidth = 16", True),
        ("epochs = 3", True),
        ("epochs = 3\nwidth = 8\nlr = 0.1", True),
    ],
)
def test_a_report_is_earlier_if_its_notebook_would_run_with_other_values(
    parameters, earlier, tmp_path, monkeypatch
):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)
    node = nbformat.v4.new_notebook()
    for tag, source in (("parameters", "epochs = 3\nwidth = 8"), (INJECTED, "epochs = 9")):
        node.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": [tag]}))
    (tmp_path / "page.py").write_text(f'# %% tags=["parameters"]\n{parameters}\n')
    assert render.earlier(node, "page") is earlier


@pytest.mark.parametrize(
    ("command", "why"),
    [("site", "no report is published yet"), ("report quick", "reproduce` makes one")],
)
def test_nothing_is_written_where_nothing_was_run(command, why, own_outputs, capsys):
    assert main(command.split()) == 2 and why in capsys.readouterr().err
    assert not (own_outputs / "site").exists()
