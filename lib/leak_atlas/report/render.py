"""From an executed notebook to what is read: a cleaned notebook, and a page that needs no network."""

from __future__ import annotations

import ast
import base64
import re
import shutil
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from leak_atlas.engine import files, paths
from leak_atlas.report import ledger, live, summary
from leak_atlas.report.markup import PAGE
from leak_atlas.report.papers import paper_of

if TYPE_CHECKING:
    from nbformat import NotebookNode

__all__ = ["clean", "html", "write_page"]

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}
WIDGET = "application/vnd.jupyter.widget-view+json"
TEXTS = {"text/plain", "text/html", "text/markdown", "text/latex", "image/svg+xml"}
LIVE = "(a live control: open this notebook in JupyterLab to use it)"
# title and the sizes below it, and what follows
HEAD = re.compile(r"(?s)([^\n]*\n(?:\n\*Profile [^\n]*\*\n)?)(.*)")
SHORT = re.compile(r"\A> (?:\*\*In short\.\*\*|<small>Words: ).*\n(?:>.*\n)*\n*")
# title, answer, and what follows them
ANSWER = re.compile(r"(?s)(# .*?\n> \*\*In short\.\*\*[^\n]*(?:\n>[^\n]*)*)\n*(.*)")
GLOSSARY = "glossary.html"  # beside the index
INJECTED = "injected-parameters"  # papermill's tag
SUMMARIES = {"parameters": "default parameters", INJECTED: "parameters that this run changes"}


# ---------------------------------------------------------------- clean


def clean(notebook: NotebookNode, glossary: str = "") -> NotebookNode:
    """The notebook as it is published: same cells, same figures, nothing of the machine, the clock
    or live widgets.

    Below its title stands in short what it found, with a link to the `glossary`, if any, and its
    claims stand in one table, that with the verdicts. What comes out validates, and is the same for
    two runs that computed the same.
    """
    import nbformat

    notebook = deepcopy(notebook)
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": LANGUAGE})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    runs = 0
    for index, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        cell.id = f"cell-{index}"
        if cell.cell_type == "code":
            runs += 1
            cell.execution_count = runs if cell.execution_count else None
            cell.outputs = [_clean_output(one, runs) for one in cell.outputs if not _noise(one)]
    rows = ledger.claims_of(notebook)
    if rows or glossary:
        _answer_first(notebook, rows, glossary)
    nbformat.validate(notebook)
    return notebook


def _answer_first(notebook: NotebookNode, rows: Sequence[Mapping[str, Any]], glossary: str) -> None:
    """Puts in short what claims say below the title, and leaves out the table of rules: each rule
    stands with its verdict.
    """
    first = next(cell for cell in notebook.cells if cell.cell_type == "markdown")
    head, rest = HEAD.match(first.source.strip() + "\n").groups()  # type: ignore[union-attr]
    link = f"> <small>Words: [glossary]({glossary}).</small>" if glossary else ""
    answer = "\n>\n".join(part for part in (summary.short(rows), link) if part)
    parts = [head.strip(), answer, SHORT.sub("", rest.lstrip("\n")).strip()]
    first.source = "\n\n".join(part for part in parts if part)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if not _only_rules(one)]
            for output in cell.outputs:
                data = output.get("data", {})
                if ledger.MIME in data:
                    data["text/html"] = ledger.page_of_claims(data[ledger.MIME])


def _only_rules(output: NotebookNode) -> bool:
    """The table of the rules before any verdict."""
    data = output.get("data", {})
    return ledger.MIME not in data and ledger.RULE in data.get("text/html", "")


def _noise(output: NotebookNode) -> bool:
    """Progress bars, warnings and the clock."""
    return output.output_type == "stream" and output.name == "stderr"


def _clean_output(output: NotebookNode, count: int) -> NotebookNode:
    """The output without what a static page cannot show."""
    if "execution_count" in output:
        output.execution_count = count
    if WIDGET in output.get("data", {}):
        picture = {kind: data for kind, data in output.data.items() if kind == "image/png"}
        output.data, output.metadata = {**picture, "text/plain": LIVE}, {}
    if "text" in output:
        output.text = _without_paths(output.text)
    for kind in TEXTS & output.get("data", {}).keys():
        output.data[kind] = _without_paths(output.data[kind])
    return output


def _without_paths(text: str) -> str:
    """No folder of this machine."""
    named = {paths.outputs(): "outputs", paths.ROOT: ".", Path.home(): "~"}
    for folder, name in named.items():
        text = text.replace(str(folder), name)
    return text


# ---------------------------------------------------------------- which version

KINDS = ("svg", "png", "pdf", "csv")  # of a figure's files; the first is its full size
EARLIER = "made by an earlier version of its notebook"


def earlier(report: NotebookNode, name: str) -> bool:
    """Whether a report's code or parameters differ from those that its notebook in `notebooks/`, if
    it has one, would run with now.

    Layout, comments and the values that a run injects do not count, nor the defaults in their
    place.
    """
    import jupytext

    source = paths.NOTEBOOKS / f"{name}.py"
    if not source.exists():
        return False
    notebook = jupytext.read(source, fmt="py:percent")
    injected = _given(report, INJECTED)
    then = _given(report, "parameters") | injected
    now = _given(notebook, "parameters") | injected
    return then != now or _code(report) != _code(notebook)


def _code(notebook: NotebookNode) -> list[str]:
    """The code of each cell in one layout, without parameters."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    own = [cell for cell in cells if not SUMMARIES.keys() & cell.metadata.get("tags", [])]
    return [_laid_out(cell.source) for cell in own]


def _given(notebook: NotebookNode, tag: str) -> dict[str, Any]:
    """The values that the cells with a tag assign."""
    from leak_atlas.lab.declare import assigned

    cells = [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]
    return assigned("\n".join(cell.source for cell in cells))


def _laid_out(source: str) -> str:
    try:
        return ast.unparse(ast.parse(source))
    except SyntaxError:  # a magic of IPython
        return source.strip()


# ---------------------------------------------------------------- one page


def words() -> Path:
    """The glossary as it is written; an installed library comes without it."""
    return paths.ROOT / "docs/glossary.md"


def html(notebook: NotebookNode, title: str, home: str = "../index.html", **more: Any) -> str:
    """The notebook as one page that needs no network: code folded, figures inside, a way back to
    the index.

    `more` is what `write_page` knows of its place.
    """
    page = {"title": title, "home": home, "style": style(), "names": SUMMARIES, "live": LIVE}
    page |= {"glossary": home.replace("index.html", GLOSSARY) if words().exists() else ""} | more
    shown = _as_read(clean(notebook))
    html = _exporter().from_notebook_node(shown, {"page": page})[0]
    # what scrolls on a page, keys scroll too
    return re.sub(r"<(table|pre)\b", r'<\1 tabindex="0"', html)


def _as_read(notebook: NotebookNode) -> NotebookNode:
    """The cells as a page shows them: the first figure below the answer, adjacent code in one fold."""
    _lift_first_figure(notebook)
    cells: list[NotebookNode] = []
    for cell in notebook.cells:
        if cells and _joins(cells[-1]) and _joins(cell, with_outputs=True):
            cells[-1].source += f"\n\n{cell.source}"
            cells[-1].outputs = cell.outputs
        else:
            cells.append(cell)
    notebook.cells = cells
    return notebook


def _joins(cell: NotebookNode, with_outputs: bool = False) -> bool:
    """Is it code that can stand in one fold with its neighbour? Parameters keep their own."""
    plain = cell.cell_type == "code" and cell.source and not cell.metadata.get("tags")
    return bool(plain and (with_outputs or not cell.outputs))


def _lift_first_figure(notebook: NotebookNode) -> None:
    """Moves the first figure below *In short*, with what its section says of it, so that a reader
    sees both without scrolling. A section of which nothing else remains is left out.
    """
    import nbformat

    cells = notebook.cells
    answered, found = ANSWER.match(cells[0].source), _first_figure(cells)
    if not (answered and found):
        return
    cell, output = found
    cell.outputs.remove(output)
    answer, rest = answered.groups()
    lifted = [
        nbformat.v4.new_markdown_cell(answer),
        nbformat.v4.new_code_cell("", outputs=[output]),
    ]
    text = _last_text(cells[1 : cells.index(cell)])
    if text is not None:
        heading, _, about = text.source.partition("\n")
        lifted.append(nbformat.v4.new_markdown_cell(about.strip()))
        text.source = heading
        start = cells.index(text) + 1
        if not any(one.get("outputs") for one in _section(cells[start:])):
            cells.remove(text)
    cells[:1] = [*lifted, nbformat.v4.new_markdown_cell(rest)]


def _first_figure(cells: Sequence[NotebookNode]) -> tuple[NotebookNode, NotebookNode] | None:
    """The first picture that a cell shows, after its cell."""
    for cell in cells:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                return cell, output
    return None


def _last_text(cells: Sequence[NotebookNode]) -> NotebookNode | None:
    """The last text cell, if it begins a section."""
    texts = [cell for cell in cells if cell.cell_type == "markdown"]
    return texts[-1] if texts and texts[-1].source.startswith("## ") else None


def _section(cells: Sequence[NotebookNode]) -> Sequence[NotebookNode]:
    """The cells up to the next text."""
    return list(takewhile(lambda cell: cell.cell_type != "markdown", cells))


def write_page(folder: Path, name: str, title: str, home: str = "index.html") -> bool:
    """Writes the page of `folder`/`name`.ipynb beside it, whole or not at all, its source and its
    figures in full size. Returns whether the page is marked as `earlier`. `home` is the
    index that it leads back to, as `folder` sees it.

    Figures are there as PNG and, where a batch left them, as SVG, PDF and CSV.
    """
    place = folder / f"{name}.html"
    node = files.read_notebook(place.with_suffix(".ipynb"))
    figures: dict[str, list[str]] = {}
    for number, (data, about) in enumerate(pictures(node), 1):
        figure = about.setdefault("figure", f"{place.stem}.fig{number}")
        place.with_name(f"{figure}.png").write_bytes(base64.b64decode(data["image/png"]))
        left = [kind for kind in KINDS if place.with_name(f"{figure}.{kind}").exists()]
        figures[figure] = left
    source = paths.NOTEBOOKS / f"{name}.py"
    if source.exists():
        shutil.copy(source, place.with_suffix(".py"))
    sources = [place.with_suffix(kind) for kind in (".py", ".ipynb")]
    known = (paths.PARAMS / folder.name).is_dir()  # not what users brought, or changed by -p
    mark = earlier(node, name)
    up = "../" * name.count("/") + home
    packet = files.read_text(live.packet(place)) if live.packet(place).exists() else ""
    script = f"{up.rpartition('/')[0] or '.'}/{live.SCRIPT}" if packet else ""
    if script:
        files.write_text(place.parent / script, live.script())
    page = html(
        node,
        title,
        up,
        script=script,
        packet=packet,
        name=name,
        paper=paper_of(name),
        command=f"make reproduce PROFILE={folder.name} ONLY={name}" if known else "",
        figures=figures,
        files=[path.name for path in sources if path.exists()],
        earlier=EARLIER if mark else "",
    )
    files.write_text(place, page)
    return mark


def pictures(notebook: NotebookNode) -> list[tuple[Any, Any]]:
    """The data of each output that is shown as a PNG, and what is known of that picture."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = [output for output in outputs if "image/png" in output.get("data", {})]
    return [(one.data, one.metadata.setdefault("image/png", {})) for one in shown]


@cache
def _exporter() -> Any:
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(template_name=PAGE.name, extra_template_basedirs=[str(PAGE.parent)])
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    exporter.log.setLevel("ERROR")  # it warns of every image that has no description
    return exporter


@cache
def style() -> Markup:
    """Our sheet, and the colours of code by day and by night."""
    from pygments.formatters import HtmlFormatter

    looks = [
        HtmlFormatter(style=name).get_token_style_defs(".highlight")
        for name in ("xcode", "github-dark")
    ]
    day, night = ("\n".join(lines) for lines in looks)
    return Markup(
        f"{(PAGE / 'style.css').read_text()}\n{live.style()}\n{day}\n@media (prefers-color-scheme: dark) {{\n{night}\n}}"
    )
