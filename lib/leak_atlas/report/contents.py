"""What was executed, listed: the index of a run, published reports, a site of all profiles, the
table in docs/findings.md.
"""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup

from leak_atlas import BadInput
from leak_atlas.engine import files
from leak_atlas.report import ledger, summary
from leak_atlas.report.markup import PAGE, drawn, png
from leak_atlas.report.papers import GROUPS, PAPERS
from leak_atlas.report.render import EARLIER, WAY, clean, earlier, style, write_page

__all__ = [
    "index",
    "link_pages",
    "publish",
    "published",
    "refresh_findings",
    "results_table",
    "site",
]

OWN = "own"  # notebooks on what users brought, and the run of their audits
OVERVIEW = "answers.png"  # of a published profile; it stands in the README
LIMIT = 1_000_000  # bytes of a published notebook; GitHub stops drawing large ones
MARKS = ("<!-- results:begin -->", "<!-- results:end -->")


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


@dataclass(frozen=True)
class Published:
    """A report as `results.json` lists it."""

    notebook: str
    title: str
    setting: str
    status: Literal["executed"]
    claims: list[dict[str, Any]]


def entries(run_folder: Path) -> list[dict[str, Any]]:
    """What became of each notebook of a run, with its claims: its `*.run.json` and its
    `*.claims.json`.
    """
    found = []
    for path in sorted(run_folder.rglob("*.run.json")):
        entry = asdict(files.from_json(files.text(path), path, Ran))
        ledger_ = path.with_name(path.name.removesuffix(".run.json") + ".claims.json")
        judged = entry["status"] == "executed" and ledger_.exists()
        claims = (
            files.from_json(files.text(ledger_), ledger_, list[dict[str, Any]]) if judged else []
        )
        found.append(entry | {"claims": ledger.checked(claims, ledger_)})
    return _weighed(sorted(found, key=_order))


def _weighed(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each claim with its q: the false discovery rate among all claims of the profile at its p
    (Benjamini-Hochberg).
    """
    rows = [row for entry in found for row in entry["claims"] if row.get("p") is not None]
    if rows:
        from scipy.stats import false_discovery_control

        for row, q in zip(rows, false_discovery_control([row["p"] for row in rows]), strict=True):
            row["q"] = float(q)
    return found


def _folder(entry: Mapping[str, Any]) -> str:
    return str(entry["notebook"]).rpartition("/")[0]


def _group(entry: Mapping[str, Any], profile: str = "") -> str:
    """Where an entry stands in an index; audits of arrays, a run of their own, have names of their
    users' choice.
    """
    folder = OWN if profile == OWN else _folder(entry)
    return GROUPS.get(folder, folder)


def _order(entry: Mapping[str, Any]) -> tuple[int, str, str]:
    group, known = _group(entry), list(GROUPS.values())
    return (known.index(group) if group in known else len(known), group, entry["notebook"])


def index(run_folder: Path) -> None:
    """Writes `index.html`, which needs nothing but itself and the pages, and `index.md`, both whole
    or not at all.
    """
    found = entries(run_folder)
    pictured = [
        entry | {"profile": run_folder.name, "thumbnail": _thumbnail(run_folder, entry)}
        for entry in found
    ]
    files.write(run_folder / "index.html", _contents(pictured, run_folder.name, "html"))
    files.write(run_folder / "index.md", _contents(found, run_folder.name, "md"))


def link_pages(folder: Path, found: Sequence[Mapping[str, Any]] | None = None) -> None:
    """Puts into each page of a run the way to the one before it, to the index and to the next.

    Not while a page is being written: what this reads it writes again. `found` has the pages of
    another folder, each with the place of its `page`.
    """
    listed = [e for e in (entries(folder) if found is None else found) if e["status"] == "executed"]
    places = [(entry, folder / entry.get("page", f"{entry['notebook']}.html")) for entry in listed]
    pages = [(entry, place) for entry, place in places if place.exists()]
    for before, (_, place), after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
        ways = [(one[0]["title"], _link(one[1], place)) if one else None for one in (before, after)]
        home = _link(folder / "index.html", place)
        way = f"<!--way-->{drawn('way.html', before=ways[0], after=ways[1], home=home)}<!--/way-->"
        text = files.text(place)
        fresh = way.join(WAY.split(text))
        if fresh != text:
            files.write(place, fresh)


def _link(place: Path, page: Path) -> str:
    """How a page links to a place."""
    return Path(os.path.relpath(place, page.parent)).as_posix()


def _contents(found: Sequence[Mapping[str, Any]], profile: str, kind: str) -> str:
    """The index as "html" or as "md"; of all profiles where `profile` is ""."""
    executed = [entry for entry in found if entry["status"] == "executed"]
    failed = [entry for entry in found if entry["status"] != "executed"]
    groups = {
        name: list(each) for name, each in groupby(executed, lambda entry: _group(entry, profile))
    }
    values = {
        "profile": profile,
        "executed": executed,
        "groups": groups,
        "failed": failed,
        "style": style(),
    }
    values |= {
        "answers": _answers(executed),
        "profiles": list(dict.fromkeys(e.get("profile", profile) for e in executed)),
    }
    words = {"icons": ledger.ICONS, "meaning": ledger.MEANING, "drawn_claims": ledger.drawn_claims}
    words |= {"headlines": summary.headlines, "networks": summary.networks, "mark": EARLIER}
    return drawn(
        f"contents.{kind}", **values, **words, script=Markup((PAGE / "filter.js").read_text())
    )


def _answers(executed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each paper with the report that is shown for it.

    Shown is the paper's chosen one, where that was executed, else its first with a figure.
    """
    answers = []
    for folder, paper in PAPERS.items():
        own = [entry for entry in executed if _folder(entry) == folder and entry["claims"]]
        chosen = [entry for entry in own if entry["notebook"] == paper.shown]
        pictured = [entry for entry in own if entry.get("thumbnail")]
        if own:
            shown = [*chosen, *pictured, *own][0]
            answers.append({"paper": paper, "group": GROUPS[folder], "shown": shown})
    return answers


def _first_figure(notebook: Mapping[str, Any]) -> bytes:
    """The first picture of an executed notebook as PNG; empty where it has none."""
    outputs = (
        output.get("data", {}) for cell in notebook["cells"] for output in cell.get("outputs", ())
    )
    return base64.b64decode(
        "".join(next((data["image/png"] for data in outputs if data.get("image/png")), ""))
    )


def _thumbnail(folder: Path, entry: Mapping[str, Any]) -> str:
    """A report's first figure, small, as base64; "" where it has none."""
    notebook = folder / f"{entry['notebook']}.ipynb"
    return _small(notebook, notebook.stat().st_mtime_ns) if notebook.exists() else ""


@cache
def _small(notebook: Path, written: int, width: int = 480) -> str:
    """Made once for each time the notebook was `written`, as the index is written often."""
    from PIL import Image

    figure = _first_figure(files.notebook(notebook))
    if not figure:
        return ""
    image = Image.open(io.BytesIO(figure)).convert("RGB")
    image.thumbnail((width, width * 2), Image.Resampling.LANCZOS)
    return png(image.quantize(64, dither=Image.Dither.NONE), optimize=True)


# ---------------------------------------------------------------- what is committed


def publish(run_folder: Path, reports_folder: Path) -> list[str]:
    """Cleaned notebooks, `results.json` and `index.md` of a run, in a folder of its profile;
    returns what it holds.

    What looks at users' own models is left out. Reports of notebooks that the run does not hold
    stay. Nothing is written unless every notebook is small enough.
    """
    import nbformat

    place = reports_folder / run_folder.name
    ours = [
        entry
        for entry in entries(run_folder)
        if entry["status"] == "executed" and _folder(entry) != OWN
    ]
    executed = {entry["notebook"]: entry for entry in ours}
    if not executed:
        raise BadInput(
            f"the run '{run_folder.name}' holds no executed notebook to publish; `make reproduce` executes them"
        )
    texts = {
        name: nbformat.writes(clean(files.notebook(run_folder / f"{name}.ipynb"))) + "\n"
        for name in executed
    }
    for name, text in texts.items():
        if (size := len(text.encode())) > LIMIT:
            raise BadInput(
                f"{name} would be {size / 1e6:.1f} MB, more than 1 MB; draw fewer or smaller figures"
            )
    fields = ("notebook", "title", "setting", "status", "claims")
    new = {name: {key: entry[key] for key in fields} for name, entry in executed.items()}
    kept = {entry["notebook"]: entry for entry in _published(place)}
    both = _weighed(sorted((kept | new).values(), key=_order))
    for name, text in texts.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        files.write(place / f"{name}.ipynb", text)
    if picture := _overview(place):
        (place / OVERVIEW).write_bytes(picture)
    files.write(place / "results.json", json.dumps(both, indent=1, ensure_ascii=False) + "\n")
    for entry in both:
        name = entry["notebook"]
        entry["earlier"] = earlier(files.notebook(place / f"{name}.ipynb"), name)
    files.write(place / "index.md", _contents(both, run_folder.name, "md"))
    return sorted(new)


def _overview(place: Path) -> bytes:
    """The papers' questions, each above the figure that is shown for it, as one PNG; empty where
    one is not there.
    """
    shown = {paper: place / f"{paper.shown}.ipynb" for paper in PAPERS.values()}
    pictures = [
        _first_figure(files.notebook(path)) if path.exists() else b"" for path in shown.values()
    ]
    if not all(pictures):
        return b""
    from matplotlib.image import imread

    from leak_atlas.report.sheet import Sheet

    figure = Sheet(figsize=(12, 10.5), dpi=65, layout="constrained")
    grid = figure.subplots(3, 2).flat
    for ax, paper, picture in zip(grid, shown, pictures, strict=False):
        ax.imshow(imread(io.BytesIO(picture)), interpolation="lanczos")
        ax.set_anchor("NW")
        ax.set_title(f"{paper.question} {paper.short}", fontsize=15)
    for ax in figure.axes:
        ax.set_axis_off()
    return base64.b64decode(figure.png())


def _published(place: Path) -> list[dict[str, Any]]:
    """One profile's published reports whose notebook is still there."""
    path = place / "results.json"
    found = files.from_json(files.text(path), path, list[Published]) if path.exists() else []
    for entry in found:
        ledger.checked(entry.claims, path)
    return [asdict(entry) for entry in found if (place / f"{entry.notebook}.ipynb").exists()]


def published(reports_folder: Path) -> list[dict[str, Any]]:
    """The published reports of all profiles, each with its `profile`, notebook by notebook."""
    places = sorted(path for path in reports_folder.glob("*") if path.is_dir())
    found = [entry | {"profile": place.name} for place in places for entry in _published(place)]
    # What a reader can repeat in minutes comes first.
    return sorted(found, key=lambda entry: (*_order(entry), entry["profile"] != "quick"))


def site(reports_folder: Path, runs_folder: Path, place: Path) -> list[str]:
    """Every published report of all profiles as a page, under one index that filters and searches,
    in a new `place`.

    It needs no server and no network. Figures as SVG, PDF and CSV come with those reports that are
    still as the run in `runs_folder` left them. Returns the pages. BadInput where nothing is
    published.
    """
    found = published(reports_folder)
    if not found:
        raise BadInput("no report is published yet; `make reproduce report` makes some")
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        jobs = [(reports_folder, runs_folder, draft, entry) for entry in found]
        with ProcessPoolExecutor(min(os.cpu_count() or 1, 4), get_context("spawn")) as pool:
            marks = list(pool.map(_report_page, *zip(*jobs, strict=True)))
        for entry, mark in zip(found, marks, strict=True):
            entry |= {"page": f"{entry['profile']}/{entry['notebook']}.html", "earlier": mark}
            entry["thumbnail"] = _thumbnail(draft / entry["profile"], entry)
        files.write(draft / "index.html", _contents(found, "", "html"))
        link_pages(draft, found)
        shutil.rmtree(place, ignore_errors=True)
        draft.replace(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return [entry["page"] for entry in found]


def _report_page(reports: Path, runs: Path, place: Path, entry: Mapping[str, Any]) -> bool:
    """One page of the site, with its notebook, its source and, where they are known to be its own,
    its figures; whether an `earlier` version of its notebook made it.
    """
    import nbformat

    profile, name = entry["profile"], entry["notebook"]
    own, left = reports / profile / f"{name}.ipynb", runs / profile / f"{name}.ipynb"
    page = place / profile / f"{name}.ipynb"
    page.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(own, page)
    if left.exists() and nbformat.writes(clean(files.notebook(left))) + "\n" == files.text(own):
        for kind in ("svg", "pdf", "csv"):
            for figure in left.parent.glob(f"{left.stem}.fig*.{kind}"):
                shutil.copy(figure, page.parent)
    return write_page(place / profile, name, entry["title"])


def results_table(reports_folder: Path) -> str:
    """What the chosen report of each paper answers, by profile; links to the indexes of all
    claims.
    """
    found = [entry for entry in published(reports_folder) if entry["claims"]]
    profiles = list(dict.fromkeys(entry["profile"] for entry in found))
    answers = []
    for profile in profiles:
        answers += _answers([entry for entry in found if entry["profile"] == profile])
    papers = list(PAPERS.values())
    answers.sort(key=lambda answer: papers.index(answer["paper"]))
    return drawn(
        "results.md",
        answers=answers,
        profiles=profiles,
        numeric=(),
        icons=ledger.ICONS,
        measured=ledger.measured,
        headlines=summary.headlines,
        networks=summary.networks,
    )


def refresh_findings(document: Path, table: str) -> bool:
    """Puts `table` between the document's marks; True where that changed it."""
    text = document.read_text()
    begin, end = MARKS
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise BadInput(
            f"{document.name} has no place for the results: a line {begin} and, below, a line {end}"
        )
    fresh = f"{before}{begin}\n{table}\n{end}{after}"
    if fresh != text:
        files.write(document, fresh)
    return fresh != text
