"""Papermill over a profile: plan all notebooks, train the union once, execute each when it is due.

python -m leak_atlas.report.batch --profile quick --only 'layers/*'
"""

from __future__ import annotations

import copy
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from leak_atlas import BadInput, nearest, one_line, typed
from leak_atlas.engine import files, paths
from leak_atlas.engine.command import Parser, command, end_with_parent
from leak_atlas.lab import cluster
from leak_atlas.lab.declare import (
    Notebook,
    declare,
    notebooks,
    parameters,
    read_parameters,
    run_name,
    setting,
)
from leak_atlas.lab.plans import Plan, absent, plan
from leak_atlas.lab.run import Lines, Outcome, run, width
from leak_atlas.recipe import Step

EXECUTION = 4.0  # core-seconds of a notebook whose results are there; quick's take 2 to 25
OWN = "own"  # the run of audits of users' logits, which belong to no profile and make no claims
START = 2.0  # core-seconds until a worker does its first job

# nbformat's jsonschema would build a grammar of IRIs, which no notebook has: a second in each
# process that reads one.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


@command
def main(arguments: list[str] | None = None) -> int:
    """0 where every notebook was executed, 2 where one failed; the others are executed anyway.

    Notebooks are executed on this machine, wherever models are trained.
    """
    parser = Parser(
        prog=typed("leak_atlas.report.batch"), description="Execute the notebooks of a profile."
    )
    parser.add_argument("--profile", default="quick", help="folder of params/ (quick)")
    names = "names, their beginnings or patterns: fig12, 'layers/*' (all)"
    parser.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="NAME", help=names
    )
    changed = "for all notebooks that have it; such a run has a folder of its own"
    parser.add_argument(
        "-p", dest="extra", action="append", default=[], metavar="NAME=VALUE", help=changed
    )
    parser.add_argument("--plan", action="store_true", help="only say what would be done")
    cluster.options(parser)
    chosen = parser.parse_args(arguments)
    where, extra = cluster.chosen(chosen), read_parameters(chosen.extra)
    every = {one.name: one for one in notebooks(chosen.only or ["*"])}
    given = {name: parameters(one, chosen.profile, extra) for name, one in every.items()}
    _known(extra, every.values())
    asked, errors = declared(every, given)
    todo, needs = planned(asked, errors, where, whole=chosen.plan)
    if needs:
        wide = width(todo, where)
        beside = EXECUTION * len(needs) + START * wide * bool(todo.jobs)
        print(todo.preview(wide, beside), flush=True)
    if chosen.plan or not needs:
        return _failures(errors)

    folder = paths.runs(run_name(chosen.profile, extra))
    files.folder(folder, "LEAK_ATLAS_OUTPUTS moves it")
    if todo.jobs:  # a store that has everything may be one that only others write
        files.folder(paths.store(), "LEAK_ATLAS_STORE moves it")
    size = where.workers or os.cpu_count() or 1
    if todo.jobs and not where.elsewhere:  # trainings need this machine's cores too
        size = max(1, size // 2)
    with alone(folder), ProcessPoolExecutor(size, get_context("spawn"), end_with_parent) as pool:
        batch = Run(pool, folder, every, given)
        for name, why in errors.items():
            batch.failed(name, why)
        _compute(todo, needs, where, batch)
        pool.shutdown()
        return batch.close()


def _known(extra: dict[str, Any], every: Iterable[Notebook]) -> None:
    """BadInput where no notebook has a parameter that `-p` gives."""
    known = {name for one in every for name in one.defaults}
    for name in extra:
        if name not in known:
            raise BadInput(f"no chosen notebook has a parameter '{name}'{nearest(name, known)}")


def declared(
    every: dict[str, Notebook], given: dict[str, dict[str, Any]]
) -> tuple[dict[str, list[Step]], dict[str, str]]:
    """The steps that each notebook asks for; and of those that cannot be declared, why."""
    asked: dict[str, list[Step]] = {}
    errors: dict[str, str] = {}
    for name, one in every.items():
        try:
            asked[name] = declare(one, given[name])
        except BadInput as error:
            errors[name] = str(error)
    return asked, errors


def planned(
    asked: dict[str, list[Step]], errors: dict[str, str], where: cluster.Where, whole: bool = False
) -> tuple[Plan, dict[str, set[str]]]:
    """The plan of all notebooks and the keys of the jobs behind each, cheapest first, so that there
    is something to read early.

    A notebook that cannot be planned, or whose data are not there, is left out, and `errors` says
    why; in a `whole` plan, which is only shown, missing data leave out nothing.
    """
    alone: dict[str, Plan] = {}
    for name, steps in asked.items():
        try:
            own = plan([steps])
        except BadInput as error:
            errors[name] = str(error)
            continue
        missing = {} if where.elsewhere else absent(own.jobs.values())
        if missing:
            errors[name] = missing[min(missing)]
        if whole or not missing:
            alone[name] = own
    order = sorted(alone, key=lambda name: alone[name].seconds)
    todo = plan([asked[name] for name in order])
    # Another process may have finished some since.
    return todo, {name: alone[name].jobs.keys() & todo.jobs.keys() for name in order}


def _compute(todo: Plan, needs: dict[str, set[str]], where: cluster.Where, batch: Run) -> None:
    """Does the plan; executes a notebook when the last job that it needs is done."""
    say = Lines(todo)

    def done(outcome: Outcome) -> None:
        say(outcome)
        if outcome.corrupt:  # it comes again
            return
        for name, missing in needs.items():
            if outcome.key not in missing:
                continue
            missing.discard(outcome.key)
            if outcome.error:
                missing.clear()
                batch.failed(name, f"{outcome.name}: {outcome.error}")
            elif not missing:
                batch.execute(name)

    for name, missing in needs.items():
        if not missing:
            batch.execute(name)
    failed = run(todo, where, done)
    for name, missing in needs.items():
        broken = [outcome for key, outcome in failed.items() if key in missing]
        if broken:  # it stayed corrupt
            batch.failed(name, f"{broken[0].name}: {broken[0].error}")
        elif missing:  # another process has finished it, and nobody told
            batch.execute(name)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Inside, no other batch writes into a run's folder; BadInput where one does.

    A lock ends with the process that holds it.
    """
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        why = f"another batch writes into {paths.told(folder)}: wait until it is done"
        raise BadInput(
            f"{why}, or give this one a folder of its own by LEAK_ATLAS_OUTPUTS"
        ) from error
    except (
        NotImplementedError,
        OSError,
    ):  # a disk without locks: two batches are the user's to avoid
        pass
    try:
        yield
    finally:
        lock.release()


@dataclass
class Run:
    """The notebooks of one batch as they are executed: pages, claims and the index appear as each
    is done."""

    pool: ProcessPoolExecutor
    folder: Path
    chosen: dict[str, Notebook]
    given: dict[str, dict[str, Any]]
    errors: dict[str, str] = field(default_factory=dict)

    def execute(self, name: str) -> None:
        try:
            future = self.pool.submit(execute, self.folder, self.chosen[name], self.given[name])
        except BrokenExecutor as error:
            self.failed(name, str(error))
        else:
            future.add_done_callback(partial(self._told, name))

    def _told(self, name: str, done: Future[str]) -> None:
        from leak_atlas import report

        error = str(done.exception() or "") or done.result()
        with suppress(BrokenPipeError):  # the batch ends where it prints next
            if error:
                self.failed(name, error)
            else:
                with suppress(OSError, BadInput):  # `close` tells of it
                    report.index(self.folder)
                print(f"  {name}: {paths.told(self.folder / name)}.html", flush=True)

    def failed(self, name: str, why: str) -> None:
        self.errors[name] = why = one_line(why)
        note(self.folder, self.chosen[name], self.given[name], error=why)
        print(f"  {name}: failed: {why}", flush=True)

    def close(self) -> int:
        """The page that lists all notebooks, and the exit code."""
        from leak_atlas.report import contents, ledger

        verdicts = Counter[str]()
        try:
            contents.index(self.folder)
            contents.link_pages(self.folder)
            for entry in contents.entries(self.folder):
                if entry["notebook"] in self.chosen:
                    verdicts.update(claim["verdict"] for claim in entry["claims"])
        except (
            OSError,
            BadInput,
        ) as error:  # the results are kept; only the page that lists them found no room
            self.errors["index"] = one_line(f"{type(error).__name__}: {error}")
        executed = len(self.chosen.keys() - self.errors.keys())
        plural = {"holds": "hold", "fails": "fail"}
        told = [f"{verdicts[one]} {plural.get(one, one)}" for one in ledger.ICONS if verdicts[one]]
        claims = f"; of {verdicts.total()} claims {', '.join(told)}" if verdicts else ""
        print(
            f"{executed} of {len(self.chosen)} notebooks executed{claims}; read {paths.told(self.folder)}/index.html"
        )
        return _failures(self.errors)


def _failures(errors: dict[str, str]) -> int:
    """Prints what failed and why, a reason once; the exit code."""
    for why in dict.fromkeys(errors.values()):
        names = [name for name, each in errors.items() if each == why]
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        print(f"failed: {', '.join(names[:2])}{more}: {why}", file=sys.stderr)
    return 2 if errors else 0


def note(
    folder: Path, notebook: Notebook, given: dict[str, Any], seconds: float = 0.0, error: str = ""
) -> None:
    """Keeps what became of a notebook beside it, whole or not at all; that a disk is full is told
    at the end.
    """
    entry = {
        "notebook": notebook.name,
        "title": notebook.title,
        "setting": _sizes(notebook, given),
        "status": "failed" if error else "executed",
        "error": error,
        "seconds": round(seconds, 1),
    }
    path = folder / f"{notebook.name}.run.json"
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, json.dumps(entry, indent=1))


def _sizes(notebook: Notebook, given: dict[str, Any]) -> str:
    """What `setting` says; "" of a user's own notebook, which fits its sizes to the data and prints
    them itself.
    """
    return "" if notebook.name.startswith("own/") else setting(notebook.defaults | given)


def _headed(notebook: Notebook, run: str, given: dict[str, Any]) -> Any:
    """The notebook's text with its sizes below the title: a thin net is never taken for the
    paper's."""
    text = copy.deepcopy(notebook.text)
    first = next(cell for cell in text.cells if cell.cell_type == "markdown")
    title, *rest = first.source.split("\n", 1)
    sizes = _sizes(notebook, given)
    of = "Your own logits" if run == OWN else f"Profile {run}"
    first.source = "\n".join([title, "", f"*{of}{': ' if sizes else ''}{sizes}*", *rest])
    return text


def execute(folder: Path, notebook: Notebook, given: dict[str, Any], aloud: bool = False) -> str:
    """Executes one notebook into the run folder and renders its page; why it failed, if it did.

    Runs in a process of its own. `aloud`: what the notebook writes to stderr, its progress, is
    printed as it comes.
    """
    import nbformat
    import papermill

    from leak_atlas import report
    from leak_atlas.engine.kernels import Warm

    log = os.open(folder / "kernels.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)  # what kernels say to nobody in particular
    os.environ |= {"LEAK_ATLAS_PROGRESS": "log", "OMP_NUM_THREADS": "1"}
    known = [
        *os.environ.get("PYTHONPATH", "").split(os.pathsep),
        str(notebook.path.parent),
    ]  # for modules beside it
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, known)))
    start = time.perf_counter()
    final = folder / f"{notebook.name}.ipynb"
    final.parent.mkdir(parents=True, exist_ok=True)
    draft = final.with_name(f".{final.name}.{os.getpid()}")
    # figures lie beside their page too
    os.environ["LEAK_ATLAS_FIGURES"] = f"{final.with_suffix('')}"
    error = ""
    try:
        nbformat.write(_headed(notebook, folder.name, given), draft)
        papermill.execute_notebook(
            draft,
            draft,
            given,
            kernel_name="python3",
            kernel_manager_class=Warm,
            progress_bar=False,
            start_timeout=180,
            stderr_file=sys.stdout if aloud else None,
        )
        draft.replace(final)
        node = files.notebook(final)
        if folder.name != OWN:
            files.write(
                final.with_suffix(".claims.json"), json.dumps(report.claims_of(node), indent=1)
            )
        report.write_page(folder, notebook.name, notebook.title)
    except papermill.PapermillExecutionError as failure:
        error = one_line(f"{failure.ename}: {failure.evalue}")
    except Exception as failure:  # a kernel that dies, a disk that is full
        error = one_line(f"{type(failure).__name__}: {failure}")
    if draft.exists():  # what a failing notebook got to is worth reading
        draft.replace(final)
    note(folder, notebook, given, time.perf_counter() - start, error)
    return error


if __name__ == "__main__":
    sys.exit(main())
