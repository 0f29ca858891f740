"""Papermill over a profile: plan all notebooks, train the union once, execute each when it is due.

`leak-atlas reproduce 'layers/*'` calls `reproduce`.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from leak_atlas import BadInput, nearest, one_line
from leak_atlas.engine import files, paths
from leak_atlas.engine.processes import BAD, FAILED, ending, serve
from leak_atlas.lab import cluster
from leak_atlas.lab.declare import (
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
from leak_atlas.report import contents, ledger

EXECUTION = 4.0  # core-seconds of a notebook whose results are there; quick's take 2 to 25
START = 2.0  # core-seconds until a worker does its first job

# nbformat's jsonschema would build a grammar of IRIs, which no notebook has: a second in each
# process that reads one.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def reproduce(
    names: Sequence[str], profile: str, extra: dict[str, Any], where: cluster.Where, run_it: bool
) -> int:
    """Executes the notebooks of a profile, or only shows the plan; the exit code.

    0: all were executed. FAILED: a notebook failed. BAD: some cannot be planned. The others are
    executed anyway. `names` are names of notebooks, their beginnings or patterns; none: all. `extra`
    replaces parameters. Notebooks run on this machine, wherever models are trained.
    """
    if not paths.CLONED:
        raise BadInput("reproduce needs the notebooks: run it in a clone of the repository")
    every = {one.name: one for one in notebooks(names or ["*"])}
    given = {name: parameters(one, profile, extra) for name, one in every.items()}
    _known(extra, every.values())
    asked, errors = declared(every, given)
    todo, needs = planned(asked, errors, where, whole=not run_it)
    if needs:
        wide = width(todo, where)
        other_work = EXECUTION * len(needs) + START * wide * bool(todo.jobs)
        print(todo.preview(wide, other_work), flush=True)
    if not (run_it and needs):
        return _failures(errors, BAD)

    folder = paths.runs(run_name(profile, extra))
    files.folder(folder, "LEAK_ATLAS_OUTPUTS moves it")
    if todo.jobs:  # a store that has everything may be one that only others write
        files.folder(paths.store(), "LEAK_ATLAS_STORE moves it")
    size = where.workers or os.cpu_count() or 1
    if todo.jobs and not where.elsewhere:  # trainings need this machine's cores too
        size = max(1, size // 2)
    pool = executing(size)
    batch = Run(pool, folder, every, given)
    with alone(folder):
        with ending(pool), batch:
            for name, why in errors.items():
                batch.failed(name, why)
            _compute(todo, needs, where, batch)
        code = batch.close()
    return BAD if errors else code


def executing(processes: int) -> ProcessPoolExecutor:
    """Processes that execute notebooks, and end with this one."""
    return ProcessPoolExecutor(processes, get_context("spawn"), serve)


def audit(page: Path, given: dict[str, Any]) -> Any:
    """Executes the notebook that audits logits to `page`.ipynb, with its page; BadInput if it fails."""
    files.folder(page.parent, "LEAK_ATLAS_OUTPUTS moves it")
    notebook = Notebook(page.name, paths.NOTEBOOKS / "own" / "audit_my_logits.py")
    pool = executing(1)
    with ending(pool):
        done = pool.submit(execute, page.parent, notebook, given, True)
    if error := str(done.exception() or "") or done.result():
        raise BadInput(f"{error}; {page}.ipynb has how far it came")
    contents.index(page.parent)
    return files.notebook(page.with_name(f"{page.name}.ipynb"))


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
    run(todo, where, done)
    for name, missing in needs.items():
        if missing:  # another process has finished it
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
        why = f"another batch writes into {paths.shown(folder)}: wait until it is done"
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
    stopped: bool = False  # by an error or Ctrl-C: what becomes of notebooks is not told

    def __enter__(self) -> None: ...

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self.stopped = error is not None

    def execute(self, name: str) -> None:
        try:
            future = self.pool.submit(execute, self.folder, self.chosen[name], self.given[name])
        except BrokenExecutor as error:
            self.failed(name, str(error))
        else:
            future.add_done_callback(partial(self._told, name))

    def _told(self, name: str, done: Future[str]) -> None:
        if self.stopped or done.cancelled():
            return
        error = str(done.exception() or "") or done.result()
        with suppress(BrokenPipeError):  # the batch ends where it prints next
            if error:
                self.failed(name, error)
            else:
                with suppress(OSError, BadInput):  # `close` tells of it
                    contents.index(self.folder)
                print(f"  {name}: {paths.shown(self.folder / name)}.html", flush=True)

    def failed(self, name: str, why: str) -> None:
        self.errors[name] = why = one_line(why)
        note(self.folder, self.chosen[name], self.given[name], error=why)
        print(f"  {name}: failed: {why}", flush=True)

    def close(self) -> int:
        """The page that lists all notebooks, and the exit code."""
        verdicts = Counter[str]()
        try:
            contents.index(self.folder)
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
        counts = [
            f"{verdicts[one]} {plural.get(one, one)}" for one in ledger.ICONS if verdicts[one]
        ]
        claims = f"; of {verdicts.total()} claims {', '.join(counts)}" if verdicts else ""
        print(
            f"{executed} of {len(self.chosen)} notebooks executed{claims}; read {paths.shown(self.folder)}/index.html"
        )
        return _failures(self.errors, FAILED)


def _failures(errors: dict[str, str], code: int) -> int:
    """Prints what failed and why, a reason once; `code`, or 0 where nothing failed."""
    for why in dict.fromkeys(errors.values()):
        names = [name for name, each in errors.items() if each == why]
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        print(f"failed: {', '.join(names[:2])}{more}: {why}", file=sys.stderr)
    return code if errors else 0


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
    of = "Your own logits" if run == contents.OWN else f"Profile {run}"
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
        if folder.name != contents.OWN:
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
