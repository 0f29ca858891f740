"""Papermill over a profile: plan all notebooks, train the union once, execute each when it is due.

`leak-atlas reproduce 'layers/*'` calls `reproduce`.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from leak_atlas import BadInput, nearest, one_line
from leak_atlas.engine import files, paths
from leak_atlas.engine.processes import BAD, FAILED, ending, serve
from leak_atlas.lab import cluster
from leak_atlas.lab.declare import (
    Given,
    Notebook,
    declare,
    notebooks,
    parameters,
    run_name,
    setting,
)
from leak_atlas.lab.plans import Plan, absent, plan
from leak_atlas.lab.run import Lines, Outcome, run, width
from leak_atlas.recipe import Step
from leak_atlas.report import contents

EXECUTION = 5.0  # core-seconds of a notebook whose results are there
START = 2.0  # core-seconds until a worker does its first job
PYTHONPATH = os.environ.get("PYTHONPATH", "")  # of this process; each notebook adds its own folder
KILLED = (
    "a process that executes notebooks was killed, perhaps for its memory; start the batch again"
)


def reproduce(
    names: Sequence[str], profile: str, extra: Given, where: cluster.Where, run_it: bool
) -> int:
    """Executes the notebooks of a profile, or only shows the plan; the exit code.

    0: all were executed. FAILED: a notebook failed. BAD: some cannot be planned. The others are
    executed anyway. `names` are names of notebooks, their beginnings or patterns; none: all.
    `extra` replaces parameters. Notebooks run on this machine, wherever models are trained.
    """
    if not paths.CLONED:
        raise BadInput("reproduce needs the notebooks: run it in a clone of the repository")
    chosen = {one.name: one for one in notebooks(names or ["*"])}
    known = {name for one in chosen.values() for name in one.defaults}
    for name in extra:
        if name not in known:
            raise BadInput(f"no chosen notebook has a parameter '{name}'{nearest(name, known)}")
    given = {name: parameters(one, profile, extra) for name, one in chosen.items()}
    todo, needs, errors = planned(chosen, given, where, whole=not run_it)
    if needs:
        wide = width(todo, where)
        other_work = EXECUTION * len(needs) + START * wide * bool(todo.jobs)
        print(todo.preview(wide, other_work), flush=True)
    if not (run_it and needs):
        return _failures(errors, BAD)

    folder = paths.runs(run_name(profile, extra))
    files.make_folder(folder, "LEAK_ATLAS_OUTPUTS moves it")
    if todo.jobs:  # a store that has everything may be one that only others write
        files.make_folder(paths.store(), "LEAK_ATLAS_STORE moves it")
    with alone(folder), executing(where.workers or os.cpu_count() or 1) as pool:
        batch = Run(pool, folder, chosen, given, needs)
        for name, why in errors.items():
            batch.failed(name, why)
        batch.compute(todo, where)
        code = batch.close()
    return BAD if errors else code


@contextmanager
def executing(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that execute notebooks, and end with this one."""
    pool = ProcessPoolExecutor(processes, get_context("spawn"), serve)
    with ending(pool):
        yield pool


def audit(page: Path, given: Given) -> Any:
    """Executes the notebook that audits logits to `page`.ipynb, with its page; BadInput if it
    fails.
    """
    files.make_folder(page.parent, "LEAK_ATLAS_OUTPUTS moves it")
    notebook = Notebook(page.name, paths.NOTEBOOKS / "own" / "audit_my_logits.py")
    with executing(1) as pool:
        error = _error(pool.submit(execute, page.parent, notebook, given, True))
    if error:
        raise BadInput(f"{error}; {page}.ipynb has how far it came")
    contents.index(page.parent)
    return files.read_notebook(page.with_name(f"{page.name}.ipynb"))


def _error(execution: Future[str]) -> str:
    """Waits for an execution; why it failed, "" if it did not."""
    return str(execution.exception() or "") or execution.result()


def planned(
    chosen: dict[str, Notebook], given: dict[str, Given], where: cluster.Where, whole: bool = False
) -> tuple[Plan, dict[str, set[str]], dict[str, str]]:
    """Returns the plan of all notebooks; for each notebook, the cheapest first, the keys of its
    jobs; and for each notebook with an error, why.

    A notebook is left out if it cannot be declared or planned, or if its data are missing. In a
    `whole` plan, which is only shown, notebooks without data stay.
    """
    asked: dict[str, list[Step]] = {}
    plans: dict[str, Plan] = {}
    errors: dict[str, str] = {}
    for name, one in chosen.items():
        try:
            steps = declare(one, given[name])
            own = plan([steps])
        except BadInput as error:
            errors[name] = str(error)
            continue
        missing = [] if where.elsewhere else absent(own.jobs.values())
        if missing:
            errors[name] = missing[0]
        if whole or not missing:
            asked[name], plans[name] = steps, own
    order = sorted(plans, key=lambda name: plans[name].seconds)
    todo = plan([asked[name] for name in order])
    # Another process may have finished some since.
    return todo, {name: plans[name].jobs.keys() & todo.jobs.keys() for name in order}, errors


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Inside, no other batch writes into a run's folder; raises BadInput if one does.

    A lock ends with the process that holds it.
    """
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout as error:
        raise BadInput(
            f"another batch writes into {paths.shown(folder)}: wait until it is done, or give this "
            "one a folder of its own by LEAK_ATLAS_OUTPUTS"
        ) from error


@dataclass
class Run:
    """The notebooks of one batch as they are executed: pages, claims and the index appear as each
    is done."""

    pool: ProcessPoolExecutor
    folder: Path
    chosen: dict[str, Notebook]
    given: dict[str, Given]
    needs: dict[str, set[str]]  # keys of the jobs that a notebook waits for
    running: dict[str, Future[str]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def compute(self, todo: Plan, where: cluster.Where) -> None:
        """Does the plan; executes a notebook when the last job that it needs is done."""
        say = Lines(todo)

        def done(outcome: Outcome) -> None:
            say(outcome)
            waiting = [name for name, missing in self.needs.items() if outcome.key in missing]
            for name in waiting:
                self.needs[name].discard(outcome.key)
                if outcome.error:
                    del self.needs[name]
                    self.failed(name, f"{outcome.name}: {outcome.error}")
            self.execute_ready()
            self.collect(wait=False)

        self.execute_ready()
        run(todo, where, done)
        for missing in self.needs.values():
            missing.clear()  # another process has finished them
        self.execute_ready()
        self.collect(wait=True)

    def execute_ready(self) -> None:
        """Executes the notebooks that wait for no job."""
        ready = [name for name, missing in self.needs.items() if not missing]
        for name in ready:
            del self.needs[name]
            self.execute(name)

    def execute(self, name: str) -> None:
        """Executes a notebook in a process of the pool."""
        work = self.folder, self.chosen[name], self.given[name]
        try:
            self.running[name] = self.pool.submit(execute, *work)
        except BrokenProcessPool:
            self.failed(name, KILLED)

    def collect(self, wait: bool) -> None:
        """Reports the executions that have ended; with `wait`, all of them."""
        for name, execution in list(self.running.items()):
            if wait or execution.done():
                del self.running[name]
                if isinstance(execution.exception(), BrokenProcessPool):
                    self.failed(name, KILLED)
                    continue
                if error := _error(execution):
                    self.report(name, error)  # `execute` has noted it
                    continue
                with suppress(OSError, BadInput):  # `close` reports it
                    contents.index(self.folder)
                print(f"  {name}: {paths.shown(self.folder / name)}.html", flush=True)

    def failed(self, name: str, why: str) -> None:
        """Notes why a notebook was not executed."""
        note(self.folder, self.chosen[name], self.given[name], error=one_line(why))
        self.report(name, why)

    def report(self, name: str, why: str) -> None:
        """Prints why a notebook failed."""
        self.errors[name] = one_line(why)
        print(f"  {name}: failed: {self.errors[name]}", flush=True)

    def close(self) -> int:
        """The page that lists all notebooks, and the exit code."""
        try:
            contents.index(self.folder)
        except (OSError, BadInput) as error:  # the disk is full; results are kept
            self.errors["index"] = str(error)
        executed = len(self.chosen.keys() - self.errors.keys())
        index = f"{paths.shown(self.folder)}/index.html"
        print(f"{executed} of {len(self.chosen)} notebooks executed; read {index}")
        return _failures(self.errors, FAILED)


def _failures(errors: dict[str, str], code: int) -> int:
    """Prints what failed and why, a reason once; `code`, or 0 where nothing failed."""
    names: dict[str, list[str]] = {}
    for name, why in errors.items():
        names.setdefault(why, []).append(name)
    for why, failed in names.items():
        more = f" and {len(failed) - 2} more" if len(failed) > 2 else ""
        print(f"failed: {', '.join(failed[:2])}{more}: {why}", file=sys.stderr)
    return code if errors else 0


def note(
    folder: Path, notebook: Notebook, given: Given, seconds: float = 0.0, error: str = ""
) -> None:
    """Writes NAME.run.json: what became of the notebook. A full disk is reported by `close`."""
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
        files.write_text(path, json.dumps(entry, indent=1))


def _sizes(notebook: Notebook, given: Given) -> str:
    """What `setting` says; "" of a user's own notebook, which fits its sizes to the data and prints
    them itself.
    """
    return "" if notebook.name.startswith("own/") else setting(notebook.defaults | given)


def _headed(notebook: Notebook, run: str, given: Given) -> Any:
    """The notebook with its sizes below the title, so that nobody takes a small network for the
    paper's."""
    text = copy.deepcopy(notebook.content)
    first = next(cell for cell in text.cells if cell.cell_type == "markdown")
    title, *rest = first.source.split("\n", 1)
    line = "Your own logits" if run == contents.OWN else f"Profile {run}"
    sizes = _sizes(notebook, given)
    if sizes:
        line = f"{line}: {sizes}"
    first.source = "\n".join([title, "", f"*{line}*", *rest])
    return text


def execute(folder: Path, notebook: Notebook, given: Given, aloud: bool = False) -> str:
    """Executes one notebook into the run folder and renders its page; why it failed, if it did.

    Runs in a process of the pool. `aloud`: what the notebook writes to stderr, its progress, is
    printed as it comes.
    """
    import papermill

    start = time.perf_counter()
    final = folder / f"{notebook.name}.ipynb"
    final.parent.mkdir(parents=True, exist_ok=True)
    _prepare(folder, notebook, final)
    draft = final.with_name(f".{final.name}.{os.getpid()}")
    error = ""
    try:
        _execute(folder, notebook, given, draft, aloud)
        draft.replace(final)
        _publish(folder, notebook, final)
    except papermill.PapermillExecutionError as failure:
        error = one_line(f"{failure.ename}: {failure.evalue}")
    except Exception as failure:  # a kernel that dies, a disk that is full
        error = one_line(f"{type(failure).__name__}: {failure}")
    if draft.exists():  # what a failing notebook got to is worth reading
        draft.replace(final)
    note(folder, notebook, given, time.perf_counter() - start, error)
    return error


def _prepare(folder: Path, notebook: Notebook, final: Path) -> None:
    """Sets the environment of the notebook's kernel; stderr goes to kernels.log."""
    log = os.open(folder / "kernels.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    os.close(log)
    beside = str(notebook.path.parent)  # modules of the notebook
    os.environ |= {
        "PYTHONPATH": f"{PYTHONPATH}{os.pathsep}{beside}" if PYTHONPATH else beside,
        "LEAK_ATLAS_PROGRESS": "log",
        "OMP_NUM_THREADS": "1",
        "LEAK_ATLAS_FIGURES": str(final.with_suffix("")),  # figures lie beside their page
    }


def _execute(folder: Path, notebook: Notebook, given: Given, draft: Path, aloud: bool) -> None:
    import nbformat
    import papermill

    nbformat.write(_headed(notebook, folder.name, given), draft)
    papermill.execute_notebook(
        draft,
        draft,
        given,
        kernel_name="python3",
        progress_bar=False,
        start_timeout=180,
        stderr_file=sys.stdout if aloud else None,
    )


def _publish(folder: Path, notebook: Notebook, final: Path) -> None:
    """Writes the claims and the page of an executed notebook."""
    from leak_atlas import report

    if folder.name != contents.OWN:
        claims = report.claims_of(files.read_notebook(final))
        files.write_text(final.with_suffix(".claims.json"), json.dumps(claims, indent=1))
    report.write_page(folder, notebook.name, notebook.title)
