"""From an executed notebook to what is read: a cleaned notebook, and a page that needs no network."""

from __future__ import annotations

import ast
import base64
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from leak_atlas.engine import files, paths
from leak_atlas.report import ledger, summary
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
# on a page: to the one before it, the index and the next
WAY = re.compile("(?s)<!--way-->.*?<!--/way-->")
RULES = '<p><small>{} here, before the results; each stands beside its <a href="#verdicts">verdict</a>, below.</small></p>'
INTERVAL = re.compile("(\\[[−\\d.]+,)\u00a0")
# title and the sizes below it, and what follows
HEAD = re.compile(r"(?s)([^\n]*\n(?:\n\*Profile [^\n]*\*\n)?)(.*)")
SHORT = re.compile(r"\A> \*\*In short\.\*\*.*\n(?:>.*\n)*\n*")
INJECTED = "injected-parameters"  # papermill's tag
SUMMARIES = {"parameters": "parameters", INJECTED: "parameters of this run"}


# ---------------------------------------------------------------- clean


def clean(notebook: NotebookNode) -> NotebookNode:
    """The notebook as it is published: same cells, same figures, nothing of the machine, the clock
    or live widgets.

    Below its title stands in short what it found, and its claims stand in one table, that with the
    verdicts. What comes out validates, and is the same for two runs that computed the same.
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
        cell.source = _without_paths(cell.source)
        if cell.cell_type == "code":
            runs += 1
            cell.execution_count = runs if cell.execution_count else None
            cell.outputs = [
                kept
                for output in cell.outputs
                if (kept := _clean_output(output, cell.execution_count))
            ]
    if rows := ledger.claims_of(notebook):
        _told_once(notebook, rows)
    nbformat.validate(notebook)
    return notebook


def _told_once(notebook: NotebookNode, rows: Sequence[Mapping[str, Any]]) -> None:
    """Puts in short what claims say below the title; of their two tables, that of the rules gives
    way to the other.
    """
    first = next((cell for cell in notebook.cells if cell.cell_type == "markdown"), None)
    if first:
        head, rest = HEAD.match(first.source.strip() + "\n").groups()  # type: ignore[union-attr]
        first.source = f"{head.rstrip()}\n\n{summary.short(rows)}\n\n{SHORT.sub('', rest.lstrip(chr(10)))}".rstrip()
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        data = output.get("data", {})
        if ledger.MIME in data:
            data["text/html"] = ledger.page_of_claims(data[ledger.MIME])
        elif ledger.RULE in data.get("text/html", ""):
            written = (
                "The rule was written" if len(rows) == 1 else f"{len(rows)} rules were written"
            )
            data.update(
                {
                    "text/html": RULES.format(written),
                    "text/plain": f"{written} here, before the results",
                }
            )


def _clean_output(output: NotebookNode, count: int | None) -> NotebookNode | None:
    """The output without what a static page cannot show; None where nothing is left."""
    if output.output_type == "stream":
        if output.name == "stderr":  # progress bars and the clock
            return None
        output.text = _without_paths(
            "".join(line.rsplit("\r", 1)[-1] for line in output.text.splitlines(True))
        )
        return output
    if output.output_type == "error":
        output.evalue = _without_paths(output.evalue)
        output.traceback = [_without_paths(line) for line in output.traceback]
        return output
    if "execution_count" in output:
        output.execution_count = count
    if output.data.pop(WIDGET, None) is not None:
        output.data = {key: value for key, value in output.data.items() if key == "image/png"} | {
            "text/plain": LIVE
        }
        output.metadata = {}
    for kind in TEXTS & output.data.keys():
        output.data[kind] = _without_paths(output.data[kind])
    return output


def _without_paths(text: str) -> str:
    """No absolute path: known folders by their name, anything else by its last part."""
    for folder, name in _folders().items():
        text = re.sub(rf"(?<![\w+]){re.escape(folder)}(?![\w.-])", name, text)
    return ABSOLUTE.sub(
        lambda found: f"…/{found[0].rstrip('/').replace(chr(92), '/').rsplit('/', 1)[-1]}", text
    )


ABSOLUTE = re.compile(
    r"(?<![\w/.:~…+-])/(?:home|root|Users|tmp|var|private|opt|usr|mnt|media|srv|scratch|etc|data)/[\w.@+~/-]+"
    r"|(?<!\w)[A-Z]:\\(?:[\w.@+~ -]+\\)*[\w.@+~-]+"
)


def _folders() -> dict[str, str]:
    """Longest first, so that a folder inside another keeps its own name."""
    inside = {
        paths.store(): "store",
        paths.data(): "data",
        paths.outputs(): "outputs",
        Path(sys.prefix): "env",
    }
    inside |= {paths.NOTEBOOKS: "notebooks", paths.ROOT / "lib": "lib", paths.ROOT: "."}
    known = {Path.home(): "~", Path(tempfile.gettempdir()): "…"} | inside
    named = {str(folder): name for folder, name in known.items() if len(folder.parts) > 1}
    return dict(sorted(named.items(), key=lambda item: -len(item[0])))


# ---------------------------------------------------------------- which version

EARLIER = "made by an earlier version of its notebook"


def earlier(report: NotebookNode, name: str) -> bool:
    """Whether the code of a report differs from that of its notebook in `notebooks/`, if it has one.

    Layout, comments and the values that a run injects do not count.
    """
    import jupytext

    source = paths.NOTEBOOKS / f"{name}.py"
    return source.exists() and _code(report) != _code(jupytext.read(source, fmt="py:percent"))


def _code(notebook: NotebookNode) -> list[str]:
    """The code of each cell in one layout."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    own = [cell for cell in cells if INJECTED not in cell.metadata.get("tags", [])]
    return [_laid_out(_without_paths(cell.source)) for cell in own]


def _laid_out(source: str) -> str:
    try:
        return ast.unparse(ast.parse(source))
    except SyntaxError:  # a magic of IPython
        return source.strip()


# ---------------------------------------------------------------- one page


def html(notebook: NotebookNode, title: str, home: str = "../index.html", **more: Any) -> str:
    """The notebook as one page that needs no network: code folded, figures inside, a way back to
    the index.

    `more` is what `write_page` knows of its place.
    """
    page = {"title": title, "home": home, "style": style(), "names": SUMMARIES} | more
    made = _exporter().from_notebook_node(clean(notebook), {"page": page})[0]
    # what scrolls on a page, keys scroll too
    made = re.sub(r"<(table|pre)\b", r'<\1 tabindex="0"', made)
    return INTERVAL.sub(r"\1 ", made)  # on paper a column may be no wider than one of its ends


def write_page(folder: Path, name: str, title: str) -> bool:
    """Writes the page of `folder`/`name`.ipynb beside it, whole or not at all, its source and its
    figures in full size. Returns whether the page is marked as `earlier`.

    Figures are there as SVG, PDF and CSV where a batch left them; else the page's own pictures are
    written as PNG.
    """
    place = folder / f"{name}.html"
    node = files.notebook(place.with_suffix(".ipynb"))
    figures: dict[str, list[str]] = {}
    for number, (data, about) in enumerate(_pictures(node), 1):
        figure = about.setdefault("figure", f"{place.stem}.fig{number}")
        kinds = [
            kind for kind in ("svg", "pdf", "csv") if place.with_name(f"{figure}.{kind}").exists()
        ]
        if "svg" not in kinds:
            place.with_name(f"{figure}.png").write_bytes(base64.b64decode(data["image/png"]))
        figures[figure] = ["svg", *kinds[1:]] if "svg" in kinds else ["png", *kinds]
    source = paths.NOTEBOOKS / f"{name}.py"
    if source.exists():
        shutil.copy(source, place.with_suffix(".py"))
    profile = folder.name
    known = (paths.PARAMS / profile).is_dir()  # not what users brought, or changed by -p
    command = f"make reproduce PROFILE={profile} ONLY={name}" if known else ""
    values: dict[str, Any] = {
        "name": name,
        "profile": profile,
        "paper": paper_of(name),
        "command": command,
    }
    beside = [place.with_suffix(kind) for kind in (".py", ".ipynb")]
    values |= {"figures": figures, "files": [path.name for path in beside if path.exists()]}
    values["earlier"] = EARLIER if earlier(node, name) else ""
    files.write(place, html(node, title, "../" * name.count("/") + "index.html", **values))
    return bool(values["earlier"])


def _pictures(notebook: NotebookNode) -> Iterator[tuple[Any, Any]]:
    """The data of each output that is shown as a PNG, and what is known of that picture."""
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        if "image/png" in output.get("data", {}):
            yield output.data, output.metadata.setdefault("image/png", {})


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
        f"{(PAGE / 'style.css').read_text()}\n{day}\n@media (prefers-color-scheme: dark) {{\n{night}\n}}"
    )
