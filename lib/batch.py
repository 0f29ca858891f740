"""Papermill over a profile: plan all notebooks, train the union once, execute each notebook when its results are there.

python -m lib.batch --profile quick --only 'layers/*'
"""

from __future__ import annotations

import copy
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lib import BadInput, files, nearest, one_line, paths, typed
from lib.command import Parser, command, end_with_parent
from lib.lab import cluster
from lib.lab.declare import Notebook, declare, notebooks, parameters, read_parameters, run_name, setting
from lib.lab.plans import Plan, absent, plan, steps_of
from lib.lab.run import Outcome, reporter, run, width
from lib.recipe import Step

EXECUTION = 4.0  # core-seconds of a notebook whose results are there; those of quick take 2 to 25, most of them 3
START = 6.0  # core-seconds until a worker does its first job

# nbformat's jsonschema would build a grammar of IRIs, which no notebook has: a second in each process that reads one.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


@command
def main(arguments: list[str] | None = None) -> int:
    """0 where every notebook was executed, 2 where one failed; the others are executed all the same.

    Notebooks are executed on this machine, wherever models are trained.
    """
    parser = Parser(prog=typed("lib.batch"), description="Execute the notebooks of a profile.")
    parser.add_argument("--profile", default="quick", help="folder of params/ (quick)")
    names = "names, their beginnings or patterns: fig12, 'layers/*' (all)"
    parser.add_argument("--only", nargs="+", action="extend", default=[], metavar="NAME", help=names)
    changed = "for all notebooks that have it; such a run has a folder of its own"
    parser.add_argument("-p", dest="extra", action="append", default=[], metavar="NAME=VALUE", help=changed)
    parser.add_argument("--plan", action="store_true", help="only say what would be done")
    cluster.options(parser)
    chosen = parser.parse_args(arguments)
    where, extra = cluster.chosen(chosen), read_parameters(chosen.extra)
    every = notebooks(chosen.only or ["*"])
    given = {one.name: parameters(one, chosen.profile, extra) for one in every}
    unknown = [name for name in extra if not any(name in one.defaults for one in every)]
    if unknown:
        known = {name for one in every for name in one.defaults}
        raise BadInput(f"no chosen notebook has a parameter '{unknown[0]}'{nearest(unknown[0], known)}")
    folder = paths.runs(run_name(chosen.profile, extra))
    asked: dict[str, list[Step]] = {}
    errors: dict[str, str] = {}
    for one in every:
        try:
            asked[one.name] = declare(one, given[one.name])
        except BadInput as error:
            errors[one.name] = str(error)
    todo, needs = planned(asked, errors, where, whole=chosen.plan)
    if needs:
        wide = width(todo, where)
        beside = EXECUTION * len(needs) + START * wide * bool(todo.jobs)
        print(todo.preview(wide, beside), flush=True)
    if chosen.plan or not needs:
        return _failures(errors)

    files.folder(folder, "LEAK_ATLAS_OUTPUTS moves it")
    files.folder(paths.store(), "LEAK_ATLAS_STORE moves it")
    cores = where.workers or os.cpu_count() or 1
    busy = bool(todo.jobs) and not where.elsewhere  # trainings need this machine's cores too
    size = max(1, cores // 2) if busy else cores
    with alone(folder), ProcessPoolExecutor(size, get_context("spawn"), end_with_parent) as pool:
        run_ = Run(pool, folder, {one.name: one for one in every}, given)
        for name, why in errors.items():
            run_.failed(name, why)
        say = reporter(todo)

        def done(outcome: Outcome) -> None:
            say(outcome)
            for name, open_ in needs.items():
                if outcome.key not in open_ or outcome.corrupt:  # what was corrupt comes again
                    continue
                open_.discard(outcome.key)
                if outcome.error:
                    open_.clear()
                    run_.failed(name, f"{outcome.name}: {outcome.error}")
                elif not open_:
                    run_.execute(name)

        for name in needs:
            if not needs[name]:
                run_.execute(name)
        failed = run(todo, where, done)
        for name, open_ in needs.items():  # what stayed corrupt; or another process has finished it, and nobody told
            if broken := next((outcome for key, outcome in failed.items() if key in open_), None):
                run_.failed(name, f"{broken.name}: {broken.error}")
            elif open_:
                run_.execute(name)
        pool.shutdown()
        return run_.close()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Inside, no other batch writes into a run's folder. BadInput where one does; a lock ends with who holds it."""
    with (folder / ".lock").open("a") as lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            why = f"another batch writes into {paths.told(folder)}: wait until it is done"
            raise BadInput(f"{why}, or give this one a folder of its own by LEAK_ATLAS_OUTPUTS") from error
        except OSError:  # a disk without locks: two batches at once are the user's to avoid
            pass
        yield


def planned(
    asked: dict[str, list[Step]], errors: dict[str, str], where: cluster.Where, whole: bool = False
) -> tuple[Plan, dict[str, set[str]]]:
    """The plan of all notebooks and the keys of the jobs behind each, cheapest first.

    So there is something to read early; longest job first would win a few seconds. A notebook that cannot be planned,
    or whose data are not there, is left out, and `errors` says why; of a `whole` plan missing data are no part less.
    """
    try:
        todo = plan(asked.values())
    except BadInput:  # of which of them?
        for name in list(asked):
            try:
                plan([asked[name]])
            except BadInput as error:
                errors[name] = str(error)
                del asked[name]
        todo = plan(asked.values())
    gone = {} if where.elsewhere else absent(todo.jobs.values())
    needs = {name: _jobs_behind(steps, todo) for name, steps in asked.items()}
    errors |= {name: gone[min(lost)] for name, keys in needs.items() if (lost := keys & gone.keys())}
    costs = {
        name: sum(todo.jobs[key].seconds for key in keys) for name, keys in needs.items() if whole or name not in errors
    }
    order = sorted(costs, key=lambda name: costs[name])
    last = plan([asked[name] for name in order])  # another process may have finished some of the first
    return last, {name: needs[name] & last.jobs.keys() for name in order}


def _jobs_behind(steps: list[Any], todo: Plan) -> set[str]:
    """Keys of all jobs that have to be done before `steps` are there."""
    makers = {step.key: job.key for job in todo.jobs.values() for step in job.yields}
    found: set[str] = set()
    open_ = [makers[step.key] for step in steps_of(steps) if step.key in makers]
    while open_:
        key = open_.pop()
        if key not in found:
            found.add(key)
            open_ += todo.jobs[key].needs
    return found


@dataclass
class Run:
    """The notebooks of one batch as they are executed: pages, claims and the index appear as each is done."""

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
        from lib import report

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
        from lib.report import contents, ledger

        verdicts = Counter[str]()
        try:
            contents.index(self.folder)
            contents.link_pages(self.folder)
            for entry in contents.entries(self.folder):
                if entry["notebook"] in self.chosen:
                    verdicts.update(claim["verdict"] for claim in entry["claims"])
        except (OSError, BadInput) as error:  # the results are kept; only the page that lists them found no room
            self.errors["index"] = one_line(f"{type(error).__name__}: {error}")
        executed = len(self.chosen.keys() - self.errors.keys())
        plural = {"holds": "hold", "fails": "fail"}
        told = [f"{verdicts[one]} {plural.get(one, one)}" for one in ledger.ICONS if verdicts[one]]
        claims = f"; of {verdicts.total()} claims {', '.join(told)}" if verdicts else ""
        print(f"{executed} of {len(self.chosen)} notebooks executed{claims}; read {paths.told(self.folder)}/index.html")
        return _failures(self.errors)


def _failures(errors: dict[str, str]) -> int:
    """Prints what failed and why, a reason once; the exit code."""
    for why in dict.fromkeys(errors.values()):
        names = [name for name, each in errors.items() if each == why]
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        print(f"failed: {', '.join(names[:2])}{more}: {why}", file=sys.stderr)
    return 2 if errors else 0


def note(folder: Path, notebook: Notebook, given: dict[str, Any], seconds: float = 0.0, error: str = "") -> None:
    """Keeps what became of a notebook beside it, whole or not at all; that a disk is full is told at the end."""
    entry = {
        "notebook": notebook.name,
        "title": notebook.title,
        "setting": setting(notebook.defaults | given),
        "status": "failed" if error else "executed",
        "error": error,
        "seconds": round(seconds, 1),
    }
    path = folder / f"{notebook.name}.run.json"
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, json.dumps(entry, indent=1))


def _headed(notebook: Notebook, run: str, given: dict[str, Any]) -> Any:
    """The notebook's text with its sizes below the title: a thin net is never taken for the paper's."""
    text = copy.deepcopy(notebook.text)
    first = next(cell for cell in text.cells if cell.cell_type == "markdown")
    title, *rest = first.source.split("\n", 1)
    sizes = setting(notebook.defaults | given)
    first.source = "\n".join([title, "", f"*Profile {run}{': ' if sizes else ''}{sizes}*", *rest])
    return text


def execute(folder: Path, notebook: Notebook, given: dict[str, Any]) -> str:
    """Executes one notebook into the run folder and renders its page; why it failed, if it did.

    Runs in a process of its own.
    """
    import nbformat
    import papermill

    from lib import report
    from lib.kernels import Warm

    log = os.open(folder / "kernels.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)  # what kernels say to nobody in particular
    os.environ |= {"LEAK_ATLAS_PROGRESS": "log", "OMP_NUM_THREADS": "1"}
    known = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), str(notebook.path.parent)]  # for modules beside it
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, known)))
    start = time.perf_counter()
    final = folder / f"{notebook.name}.ipynb"
    final.parent.mkdir(parents=True, exist_ok=True)
    draft = final.with_name(f".{final.name}.{os.getpid()}")
    os.environ["LEAK_ATLAS_FIGURES"] = f"{final.with_suffix('')}"  # figures lie beside their page too
    error = ""
    try:
        nbformat.write(_headed(notebook, folder.name, given), draft)
        papermill.execute_notebook(
            draft, draft, given, kernel_name="python3", kernel_manager_class=Warm, progress_bar=False, start_timeout=180
        )
        draft.replace(final)
        node = files.notebook(final)
        files.write(final.with_suffix(".claims.json"), json.dumps(report.claims_of(node), indent=1))
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
