"""From executed notebooks to what is read: cleaned notebooks, offline pages, the index, the table in the README."""

from __future__ import annotations

import base64
import io
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from lib import BadInput, files, paths
from lib.report import ledger
from lib.report.markup import PAGE, drawn, png

if TYPE_CHECKING:
    from nbformat import NotebookNode

__all__ = ["clean", "html", "index", "publish", "published", "refresh_readme", "results_table"]

HIGHLIGHT = "layers/own01_direction_or_length"  # whose first figure stands in the README
LIMIT = 1_000_000  # bytes of a published notebook; GitHub stops drawing large ones
GROUPS = {
    "layers": "In which layers? PPTP",
    "weights": "In which weights? CWRF",
    "pruning": "What does pruning do? SAMIA and PPB",
    "samples": "In which samples? WeMem",
    "time": "When in training? Dynamics",
    "atlas": "Across the papers",
    "explore": "Explorers",
}
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}
WIDGET = "application/vnd.jupyter.widget-view+json"
TEXTS = {"text/plain", "text/html", "text/markdown", "text/latex", "image/svg+xml"}
LIVE = "(a live control: open this notebook in JupyterLab to use it)"
SUMMARIES = {"parameters": "parameters", "injected-parameters": "parameters of this run"}
MARKS = ("<!-- results:begin -->", "<!-- results:end -->")


# ---------------------------------------------------------------- clean


def clean(notebook: NotebookNode) -> NotebookNode:
    """The notebook as it is published: same cells, same figures, nothing of the machine, the clock or live widgets.

    What comes out validates, and is the same for two runs that computed the same.
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
            cell.outputs = [kept for output in cell.outputs if (kept := _clean_output(output, cell.execution_count))]
    nbformat.validate(notebook)
    return notebook


def _clean_output(output: NotebookNode, count: int | None) -> NotebookNode | None:
    """The output without what a static page cannot show; None where nothing is left."""
    if output.output_type == "stream":
        if output.name == "stderr":  # progress bars and the clock
            return None
        output.text = _without_paths("".join(line.rsplit("\r", 1)[-1] for line in output.text.splitlines(True)))
        return output
    if output.output_type == "error":
        output.evalue = _without_paths(output.evalue)
        output.traceback = [_without_paths(line) for line in output.traceback]
        return output
    if "execution_count" in output:
        output.execution_count = count
    if output.data.pop(WIDGET, None) is not None:
        output.data = {key: value for key, value in output.data.items() if key == "image/png"} | {"text/plain": LIVE}
        output.metadata = {}
    for kind in TEXTS & output.data.keys():
        output.data[kind] = _without_paths(output.data[kind])
    return output


def _without_paths(text: str) -> str:
    """No absolute path: known folders by their name, anything else by its last part."""
    for folder, name in _folders().items():
        text = re.sub(rf"(?<![\w+]){re.escape(folder)}(?![\w.-])", name, text)
    return ABSOLUTE.sub(lambda found: f"…/{found[0].rstrip('/').replace(chr(92), '/').rsplit('/', 1)[-1]}", text)


ABSOLUTE = re.compile(
    r"(?<![\w/.:~…+-])/(?:home|root|Users|tmp|var|private|opt|usr|mnt|media|srv|scratch|etc|data)/[\w.@+~/-]+"
    r"|(?<!\w)[A-Z]:\\(?:[\w.@+~ -]+\\)*[\w.@+~-]+"
)


def _folders() -> dict[str, str]:
    """Longest first, so that a folder inside another keeps its own name."""
    inside = {paths.store(): "store", paths.data(): "data", paths.outputs(): "outputs", Path(sys.prefix): "env"}
    inside |= {paths.NOTEBOOKS: "notebooks", paths.ROOT / "lib": "lib", paths.ROOT: "."}
    known = {Path.home(): "~", Path(tempfile.gettempdir()): "…"} | inside
    named = {str(folder): name for folder, name in known.items() if len(folder.parts) > 1}
    return dict(sorted(named.items(), key=lambda item: -len(item[0])))


# ---------------------------------------------------------------- one page


def html(notebook: NotebookNode, title: str, home: str = "../index.html") -> str:
    """The notebook as one page that needs no network: code folded, figures inside, a way back to the index."""
    page = {"title": title, "home": home, "style": _style(), "names": SUMMARIES}
    return _exporter().from_notebook_node(clean(notebook), {"page": page})[0]


@cache
def _exporter() -> Any:
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(template_name=PAGE.name, extra_template_basedirs=[str(PAGE.parent)])
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    exporter.log.setLevel("ERROR")  # it warns of every image that has no description
    return exporter


@cache
def _style() -> Markup:
    """Our sheet, and the colours of code by day and by night."""
    from pygments.formatters import HtmlFormatter

    looks = [HtmlFormatter(style=name).get_token_style_defs(".highlight") for name in ("tango", "github-dark")]
    day, night = ("\n".join(lines) for lines in looks)
    return Markup(f"{(PAGE / 'style.css').read_text()}\n{day}\n@media (prefers-color-scheme: dark) {{\n{night}\n}}")


# ---------------------------------------------------------------- a run, and its index


@dataclass(frozen=True)
class Ran:
    """What became of a notebook."""

    notebook: str
    title: str
    status: Literal["executed", "failed"]
    error: str = ""
    seconds: float = 0.0
    setting: str = ""


def entries(run_folder: Path) -> list[dict[str, Any]]:
    """What became of each notebook of a run, with its claims: its `*.run.json` and its `*.claims.json`."""
    found = []
    for path in sorted(run_folder.rglob("*.run.json")):
        entry = asdict(files.from_json(files.text(path), path, Ran))
        ledger_ = path.with_name(path.name.removesuffix(".run.json") + ".claims.json")
        judged = entry["status"] == "executed" and ledger_.exists()
        claims = files.from_json(files.text(ledger_), ledger_, list[dict[str, Any]]) if judged else []
        found.append(entry | {"claims": claims})
    return _weighed(sorted(found, key=_order))


def _weighed(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each claim with its q: the false discovery rate among all claims of the profile at its p (Benjamini-Hochberg)."""
    rows = [row for entry in found for row in entry["claims"] if row.get("p") is not None]
    if rows:
        from scipy.stats import false_discovery_control

        for row, q in zip(rows, false_discovery_control([row["p"] for row in rows]), strict=True):
            row["q"] = float(q)
    return found


def _group(entry: Mapping[str, Any]) -> str:
    folder = entry["notebook"].rpartition("/")[0]
    return GROUPS.get(folder, folder or "More")


def _order(entry: Mapping[str, Any]) -> tuple[int, str, str]:
    group, known = _group(entry), list(GROUPS.values())
    return (known.index(group) if group in known else len(known), group, entry["notebook"])


def index(run_folder: Path) -> None:
    """Writes `index.html`, which needs nothing but itself and the pages, and `index.md`, both whole or not at all."""
    found = entries(run_folder)
    for entry in found:
        page = run_folder / f"{entry['notebook']}.ipynb"
        entry["thumbnail"] = _thumbnail(page, page.stat().st_mtime_ns) if page.exists() else ""
    for kind in ("html", "md"):
        files.write(run_folder / f"index.{kind}", _contents(found, run_folder.name, kind))


def _contents(found: Sequence[Mapping[str, Any]], profile: str, kind: str) -> str:
    """The index as "html" or as "md"."""
    executed = [entry for entry in found if entry["status"] == "executed"]
    failed = [entry for entry in found if entry["status"] != "executed"]
    groups = {name: list(each) for name, each in groupby(executed, _group)}
    told = {"profile": profile, "executed": executed, "groups": groups, "failed": failed, "style": _style()}
    words = {"icons": ledger.ICONS, "meaning": ledger.MEANING, "drawn_claims": ledger.drawn_claims}
    return drawn(f"contents.{kind}", **told, **words)


def _first_figure(notebook: Mapping[str, Any]) -> bytes:
    """The first picture of an executed notebook as PNG; empty where it has none."""
    outputs = (output.get("data", {}) for cell in notebook["cells"] for output in cell.get("outputs", ()))
    return base64.b64decode("".join(next((data["image/png"] for data in outputs if data.get("image/png")), "")))


@cache
def _thumbnail(notebook: Path, written: int, width: int = 480) -> str:
    """Its first figure, small, as base64; made once for each time it was `written`, as the index is written often."""
    from PIL import Image

    figure = _first_figure(files.notebook(notebook))
    if not figure:
        return ""
    image = Image.open(io.BytesIO(figure)).convert("RGB")
    image.thumbnail((width, width * 2), Image.Resampling.LANCZOS)
    return png(image.quantize(64, dither=Image.Dither.NONE), optimize=True)


# ---------------------------------------------------------------- what is committed


def publish(run_folder: Path, reports_folder: Path) -> list[str]:
    """Cleaned notebooks, `results.json` and `index.md` of a run, in a folder of its profile; returns what it holds.

    Reports of notebooks that the run does not hold stay. Nothing is written unless every notebook is small enough.
    """
    import nbformat

    place = reports_folder / run_folder.name
    executed = {entry["notebook"]: entry for entry in entries(run_folder) if entry["status"] == "executed"}
    if not executed:
        raise BadInput(f"the run '{run_folder.name}' holds no executed notebook; `make reproduce` executes them")
    texts = {name: nbformat.writes(clean(files.notebook(run_folder / f"{name}.ipynb"))) + "\n" for name in executed}
    for name, text in texts.items():
        if (size := len(text.encode())) > LIMIT:
            raise BadInput(f"{name} would be {size / 1e6:.1f} MB, more than 1 MB; draw fewer or smaller figures")
    told = ("notebook", "title", "setting", "status", "claims")
    new = {name: {key: entry[key] for key in told} for name, entry in executed.items()}
    kept = {entry["notebook"]: entry for entry in _published(place)}
    both = _weighed(sorted((kept | new).values(), key=_order))
    for name, text in texts.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        files.write(place / f"{name}.ipynb", text)
        if name == HIGHLIGHT:
            (place / "highlight.png").write_bytes(_first_figure(json.loads(text)))
    files.write(place / "results.json", json.dumps(both, indent=1, ensure_ascii=False) + "\n")
    files.write(place / "index.md", _contents(both, run_folder.name, "md"))
    return sorted(new)


def _published(place: Path) -> list[dict[str, Any]]:
    """One profile's published reports whose notebook is still there."""
    path = place / "results.json"
    found = files.from_json(files.text(path), path, list[dict[str, Any]]) if path.exists() else []
    return [entry for entry in found if (place / f"{entry['notebook']}.ipynb").exists()]


def published(reports_folder: Path) -> list[dict[str, Any]]:
    """The published reports of all profiles, each with its `profile`, notebook by notebook."""
    places = sorted(path for path in reports_folder.glob("*") if path.is_dir())
    found = [entry | {"profile": place.name} for place in places for entry in _published(place)]
    # What a reader can repeat in minutes comes first.
    return sorted(found, key=lambda entry: (*_order(entry), entry["profile"] != "quick"))


def results_table(reports_folder: Path) -> str:
    """One line for each published report: its first claim with what was measured, and how many claims held."""
    found = [entry for entry in published(reports_folder) if entry["claims"]]
    return drawn("results.md", found=found, icons=ledger.ICONS, measured=ledger.measured, numeric=())


def refresh_readme(readme: Path, table: str) -> bool:
    """Puts `table` between the README's marks; True where that changed it."""
    text = readme.read_text()
    begin, end = map(re.escape, MARKS)
    fresh, places = re.subn(f"(?s)({begin}).*?({end})", lambda marks: f"{marks[1]}\n{table}\n{marks[2]}", text)
    if not places:
        raise BadInput(f"{readme.name} has no place for the results: a line {MARKS[0]} and, below, a line {MARKS[1]}")
    if fresh != text:
        files.write(readme, fresh)
    return fresh != text
