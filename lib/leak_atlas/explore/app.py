"""The explorers in a browser without code: their notebooks, and a first page of cards, for Voila."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from leak_atlas.engine import files, paths
from leak_atlas.report import render

TEMPLATE = Path(__file__).with_name("voila")


def prepare(place: Path) -> dict[str, str]:
    """Writes the app's notebooks and its first page into a folder; the environment for Voila."""
    import jupytext
    import nbformat
    from jinja2 import Environment

    template = place / ".jupyter/voila/templates/atlas"
    shutil.copytree(TEMPLATE, template, dirs_exist_ok=True)
    cards = []
    for source in sorted((paths.NOTEBOOKS / "explore").glob("*.py")):
        notebook = place / f"{source.stem}.ipynb"
        nbformat.write(jupytext.read(source), notebook)
        cards.append(_card(notebook))
    layout = files.read_text(TEMPLATE / "cards.html.j2")
    first = Environment(autoescape=True).from_string(layout)
    files.write_text(template / "tree-lab.html", first.render(cards=cards, style=render.style()))
    known = [str(place / ".jupyter"), os.environ.get("JUPYTER_PATH", "")]
    return {
        "JUPYTER_PATH": os.pathsep.join(filter(None, known)),
        "JUPYTER_CONFIG_PATH": str(paths.NOTEBOOKS / ".jupyter"),
    }


def _card(path: Path) -> dict[str, Any]:
    """Title and first paragraph of a notebook, and what its last executed version showed."""
    first = files.read_notebook(path).cells[0].source.removeprefix("# Explore: ")
    title, _, text = first.partition("\n")
    question = re.sub("[*`]", "", text.strip().partition("\n\n")[0])
    return {
        "name": path.stem,
        "title": title[:1].upper() + title[1:],
        "question": question,
        "picture": _picture(path.stem),
    }


def _picture(name: str) -> str:
    """The first figure of a run, or of a published report; "" where there is none."""
    for folder in (paths.outputs() / "runs", paths.reports()):
        for report in sorted(folder.glob(f"*/explore/{name}.ipynb")):
            for data, _ in render.pictures(files.read_notebook(report)):
                return str(data["image/png"])
    return ""
