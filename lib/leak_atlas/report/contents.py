"""What was executed, listed: the index of a run, published reports, a site of all profiles, and
docs/findings.md.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from markupsafe import Markup

from leak_atlas import BadInput
from leak_atlas.audit import Row, Rows
from leak_atlas.engine import files
from leak_atlas.report import ledger, live, summary
from leak_atlas.report.markup import PAGE, drawn
from leak_atlas.report.papers import GROUPS, PAPERS, Paper, paper_of
from leak_atlas.report.render import (
    EARLIER,
    GLOSSARY,
    clean,
    earlier,
    pictures,
    style,
    words,
    write_page,
)

__all__ = ["index", "publish", "published", "refresh", "results_table", "site"]

Entry = Mapping[str, Any]  # of a notebook: title, status, claims, ...
OWN = "own"  # notebooks on what users brought, and the run of their audits
SHOWN = "atlas/defences"  # the page whose first figure stands in the README
OVERVIEW = "defences.png"  # that figure, in the folder of a published profile
MARKS = ("<!-- results:begin -->", "<!-- results:end -->")
KEPT = ("notebook", "title", "setting", "status", "claims")  # of an entry, in `results.json`
LEGEND = {"icons": ledger.ICONS, "meaning": ledger.MEANING, "mark": EARLIER}
WORDS = {
    "answer": summary.answer,
    "finding": summary.finding,
    "headlines": summary.headlines,
    "networks": summary.networks,
}


# ---------------------------------------------------------------- a run, and its index


def entries(run_folder: Path) -> Rows:
    """What became of each notebook of a run, with its claims: its `*.run.json` and its
    `*.claims.json`.
    """
    all_entries = []
    for path in run_folder.rglob("*.run.json"):
        entry = files.read_json(path, Row)
        judged = path.with_name(path.name.replace(".run.json", ".claims.json"))
        entry["claims"] = []
        if entry["status"] == "executed" and judged.exists():
            entry["claims"] = files.read_json(judged, Rows)
        all_entries.append(entry)
    return sorted(all_entries, key=_order)


def _folder(entry: Entry) -> str:
    return str(entry["notebook"]).rpartition("/")[0]


def _group(entry: Entry, profile: str = "") -> str:
    """Where an entry stands in an index; audits of arrays, a run of their own, have names of their
    users' choice.
    """
    folder = OWN if profile == OWN else _folder(entry)
    return GROUPS.get(folder, folder)


def _order(entry: Entry) -> tuple[int, str, str]:
    group, known = _group(entry), list(GROUPS.values())
    return (known.index(group) if group in known else len(known), group, entry["notebook"])


def index(run_folder: Path) -> None:
    """Writes `index.html`, which needs nothing but the pages, and `index.md`, both whole or not at
    all, and the glossary of the pages.
    """
    shown = [_placed(entry, run_folder, run_folder.name) for entry in entries(run_folder)]
    for kind in ("html", "md"):
        files.write_text(run_folder / f"index.{kind}", _contents(shown, run_folder.name, kind))
    _write_glossary(run_folder)


def _write_glossary(place: Path) -> None:
    """docs/glossary.md, if it is there, as a page beside the index in `place`."""
    from nbconvert.filters import markdown2html

    if words().exists():
        text = Markup(markdown2html(words().read_text()))
        files.write_text(place / GLOSSARY, drawn("glossary.html", words=text, style=style()))


def _placed(entry: Entry, folder: Path, profile: str, inside: str = "") -> Row:
    """An entry with its profile and, seen from the index in `folder`, its page and its first
    figure.
    """
    name = f"{inside}{entry['notebook']}"
    figure = f"{name}.fig1.png"
    shown = figure if (folder / figure).exists() else ""
    return {"profile": profile, **entry, "page": f"{name}.html", "picture": shown}


def _contents(found: Sequence[Entry], profile: str, kind: str) -> str:
    """The index as "html" or as "md"; of all profiles where `profile` is ""."""
    executed = [entry for entry in found if entry["status"] == "executed"]
    failed = [entry for entry in found if entry["status"] != "executed"]
    questions = _questions(executed)
    groups = groupby(questions, lambda question: _group(question, profile))
    return drawn(
        f"contents.{kind}",
        profile=profile,
        profiles=list(dict.fromkeys(entry["profile"] for entry in executed)),
        executed=executed,
        questions=questions,
        groups={name: list(each) for name, each in groups},
        failed=failed,
        answers=_answers(questions),
        style=style(),
        glossary=GLOSSARY if words().exists() else "",
        script=Markup((PAGE / "filter.js").read_text()),
        drawn_claims=ledger.drawn_claims,
        **LEGEND,
        **WORDS,
    )


def _questions(executed: Sequence[Entry]) -> Rows:
    """One question a notebook, with its reports of all profiles; entries of a notebook stand
    together.
    """
    questions = []
    for notebook, each in groupby(executed, lambda entry: entry["notebook"]):
        reports = list(each)
        papers = [row["paper"] for row in reports[0]["claims"] if row["paper"]]
        questions.append(
            {
                "notebook": notebook,
                "paper": paper_of(notebook),
                "title": reports[0]["title"],
                "page": reports[0]["page"],
                "picture": reports[0]["picture"],
                "papers": ", ".join(dict.fromkeys(papers)),
                "reports": reports,
                "disagree": _disagreements(reports),
            }
        )
    return questions


def _disagreements(reports: Sequence[Entry]) -> list[str]:
    """The headline claims of the first report that hold in one profile and fail in another."""
    verdicts: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        for row in report["claims"]:
            verdicts[row["name"]].add(row["verdict"])
    texts = []
    for row in summary.headlines(reports[0]["claims"]):
        if {"holds", "fails"} <= verdicts[row["name"]]:
            texts.append(row["text"])
    return texts


def _answers(questions: Sequence[Entry]) -> list[tuple[Paper, str, Entry]]:
    """Each paper, its group, and the question that is shown for it: the chosen one, where that was
    executed, else the first.
    """
    answers = []
    for folder, paper in PAPERS.items():
        own = [question for question in questions if _folder(question) == folder]
        judged = [question for question in own if question["reports"][0]["claims"]]
        judged.sort(key=lambda question: question["notebook"] != paper.shown)
        if judged:
            answers.append((paper, GROUPS[folder], judged[0]))
    return answers


# ---------------------------------------------------------------- what is committed


def publish(run_folder: Path, reports_folder: Path) -> list[str]:
    """Cleaned notebooks, `results.json` and `index.md` of a run, in a folder of its profile;
    returns what it holds.

    What looks at users' own models is left out. Reports of notebooks that the run does not hold
    stay.
    """
    import nbformat

    place, profile = reports_folder / run_folder.name, run_folder.name
    known = {entry["notebook"]: entry for entry in _published(place)}
    published = []
    for entry in entries(run_folder):
        if entry["status"] != "executed" or _folder(entry) == OWN:
            continue
        name = entry["notebook"]
        glossary = "../" * (3 + name.count("/")) + "docs/glossary.md"
        node = clean(files.read_notebook(run_folder / f"{name}.ipynb"), glossary)
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        files.write_text(place / f"{name}.ipynb", nbformat.writes(node) + "\n")
        packet = live.packet(run_folder / f"{name}.ipynb")
        if packet.exists():
            shutil.copy(packet, live.packet(place / f"{name}.ipynb"))
        known[name] = {key: entry[key] for key in KEPT}
        published.append(name)
    if not published:
        raise BadInput(
            f"the run '{profile}' holds no executed notebook to publish; `make reproduce` executes "
            "them"
        )
    listed = sorted(known.values(), key=_order)
    files.write_text(
        place / "results.json", json.dumps(listed, indent=1, ensure_ascii=False) + "\n"
    )
    shown = []
    for entry in listed:
        node = files.read_notebook(place / f"{entry['notebook']}.ipynb")
        mark = {"earlier": earlier(node, entry["notebook"])}
        shown.append(_placed(entry, place, profile) | mark)
    files.write_text(place / "index.md", _contents(shown, profile, "md"))
    if picture := _overview(place):
        (place / OVERVIEW).write_bytes(picture)
    return published


def _overview(place: Path) -> bytes:
    """The first figure of the page that stands for the whole project, as PNG; empty where the page
    is not there.
    """
    report = place / f"{SHOWN}.ipynb"
    if not report.exists():
        return b""
    data, _ = pictures(files.read_notebook(report))[0]
    return base64.b64decode(data["image/png"])


def _published(place: Path) -> Rows:
    """One profile's published reports whose notebook is still there."""
    path = place / "results.json"
    if not path.exists():
        return []
    reports = files.read_json(path, Rows)
    return [entry for entry in reports if (place / f"{entry['notebook']}.ipynb").exists()]


def published(reports_folder: Path) -> Rows:
    """The published reports of all profiles, each with its `profile`, notebook by notebook."""
    places = sorted(path for path in reports_folder.glob("*") if path.is_dir())
    reports = [entry | {"profile": place.name} for place in places for entry in _published(place)]
    # What a reader can repeat in minutes comes first.
    return sorted(reports, key=lambda entry: (*_order(entry), entry["profile"] != "quick"))


def site(reports_folder: Path, place: Path) -> list[str]:
    """Every published report of all profiles as a page, under one index that filters and searches,
    in `place`, which is replaced.

    It needs no server and no network. Returns the pages. Raises BadInput if nothing is published.
    """
    reports = published(reports_folder)
    if not reports:
        raise BadInput("no report is published yet; `make reproduce report` makes some")
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        shutil.copytree(reports_folder, draft)
        with ProcessPoolExecutor(min(os.cpu_count() or 1, 4), get_context("spawn")) as pool:
            pages = [pool.submit(_report_page, draft, entry) for entry in reports]
            shown = [page.result() for page in pages]
        files.write_text(draft / "index.html", _contents(shown, "", "html"))
        _write_glossary(draft)
        shutil.rmtree(place, ignore_errors=True)
        draft.replace(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return [entry["page"] for entry in shown]


def _report_page(place: Path, entry: Entry) -> Row:
    """Writes one page of the site; its entry in the index."""
    profile = entry["profile"]
    mark = write_page(place / profile, entry["notebook"], entry["title"], "../index.html")
    return _placed(entry, place, profile, f"{profile}/") | {"earlier": mark}


def results_table(reports_folder: Path) -> str:
    """What every published page answers, by paper and profile, as markdown for docs/findings.md.
    Runs with parameters that `-p` changed are left out.
    """
    entries_shown = [
        _placed(entry, reports_folder, entry["profile"])
        for entry in published(reports_folder)
        if entry["claims"] and "+" not in entry["profile"]
    ]
    groups = groupby(_questions(entries_shown), _group)
    text = drawn(
        "results.md",
        groups={name: list(each) for name, each in groups},
        profiles=list(dict.fromkeys(entry["profile"] for entry in entries_shown)),
        **LEGEND,
        **WORDS,
    )
    return text.rstrip()


def refresh(document: Path, table: str) -> None:
    """Puts `table` between the document's marks. Raises BadInput if a mark is missing."""
    begin, end = MARKS
    before, has_begin, rest = document.read_text().partition(begin)
    _, has_end, after = rest.partition(end)
    if not (has_begin and has_end):
        raise BadInput(f"{document} lacks the line {begin} or {end}: put it back")
    files.write_text(document, f"{before}{begin}\n{table}\n{end}{after}")
