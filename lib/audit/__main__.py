"""`python -m lib.audit mine.npz`: logits of your own target, and of its shadows, to the full report."""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from shlex import quote
from typing import Any

from lib import BadInput, files, paths, report, typed
from lib.batch import execute
from lib.command import Parser, command, end_with_parent
from lib.lab.declare import Notebook
from lib.own import logits

HELP = f"""The arrays, by name (N samples, C classes, M shadow models, Z samples of a population):

{logits.described()}

target, labels and member are needed. With shadows and in_shadow come LiRA, BASE and an attack network, with the
population RMIA too. In place of (N, C) stands {logits.QUERIES}.
"""


@command
def main(arguments: list[str] | None = None) -> int:
    how = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog=typed("lib.audit"), description=__doc__, epilog=HELP, formatter_class=how)
    parser.add_argument("file", type=Path, help="an .npz of the arrays below")
    parser.add_argument("--name", default="", help="name of the report (the file's)")
    parser.add_argument("--example", action="store_true", help="write the file instead: networks trained in seconds")
    chosen = parser.parse_args(arguments)
    if chosen.example:
        if chosen.file.exists() or chosen.file.suffix != ".npz":
            raise BadInput(f"--example makes a new .npz, and {chosen.file} is there already or no .npz; name another")
        logits.save(chosen.file, logits.example())
        print(f"{chosen.file} is ready; audit it: {typed(f'lib.audit {quote(str(chosen.file))}')}")
        return 0
    scores = logits.place(chosen.name or chosen.file.stem)
    place = scores.parent / scores.name.removesuffix(".csv")
    arrays = logits.read(chosen.file)  # what is wrong is told before anything is written
    samples = f"{arrays.member.sum():,} members, {(~arrays.member).sum():,} non-members"
    print(f"{chosen.file}: {samples}, {arrays.models} shadows", flush=True)
    files.folder(place.parent, "LEAK_ATLAS_OUTPUTS moves it")
    notebook = Notebook(place.name, paths.NOTEBOOKS / "own" / "audit_my_logits.py")
    given = {"file": str(chosen.file.resolve()), "name": place.name}
    with ProcessPoolExecutor(1, get_context("spawn"), end_with_parent) as pool:
        done = pool.submit(execute, place.parent, notebook, given)
    if error := str(done.exception() or "") or done.result():
        raise BadInput(f"{error}; {place}.ipynb has how far it came")
    report.index(place.parent)
    print(said(files.notebook(place.with_name(f"{place.name}.ipynb"))))
    for what, suffix in (("page", "html"), ("notebook", "ipynb"), ("scores", "csv")):
        print(f"  {what:<9} {place}.{suffix}")
    return 0


def said(notebook: Any) -> str:
    """What the report says in short: its first output in words."""
    outputs = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())]
    return next(str(data["text/plain"]) for data in outputs if "text/markdown" in data)


if __name__ == "__main__":
    sys.exit(main())
