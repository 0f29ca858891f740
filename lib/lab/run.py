"""Doing the jobs of a plan: in this process, or on Dask workers of one thread each."""

from __future__ import annotations

import json
import logging
import os
import statistics
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from lib import BadInput, paths, store
from lib.lab.plans import Job, Plan, work
from lib.lab.plans import plan as make_plan

ENOUGH = 30.0  # core-seconds of work above which starting workers pays


@dataclass(frozen=True)
class Outcome:
    """How a job ended: `error` is empty, or one line that says why it failed."""

    key: str
    name: str
    error: str = ""
    seconds: float = 0.0
    operations: float = 0.0
    corrupt: bool = False  # an input did not match its digest; it is forgotten, so a second try makes it again


def do(job: Job, *parents: Outcome) -> Outcome:
    """One job. A failure is an outcome too: siblings go on, children say which parent failed."""
    name = f"{type(job.step).__name__} {job.key[:12]}"
    broken = next((parent for parent in parents if parent.error), None)
    if broken:
        return Outcome(job.key, name, f"its parent {broken.name} failed: {broken.error}", corrupt=broken.corrupt)
    from lib.lab.compute import run

    try:
        if any(not store.has(step.key) for step in job.yields):
            with one_thread():
                return Outcome(job.key, name, seconds=run(job), operations=work(job.step))
        return Outcome(job.key, name)
    except store.Corrupt as error:
        store.discard(error.key)
        return Outcome(job.key, name, f"{error}; computing it again", corrupt=True)
    except Exception as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        if not isinstance(error, BadInput):
            log = paths.store() / "failures" / f"{job.key[:12]}.txt"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(traceback.format_exc() + json.dumps(job.step.record(), indent=1))
            why += f" (trace and recipe in {log})"
        return Outcome(job.key, name, why)


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread: two that spin beside another busy process are many times slower, and results would differ."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run(
    plan: Plan,
    workers: int | None = None,
    on_done: Callable[[Outcome], None] | None = None,
    on_corrupt: bool = True,
) -> dict[str, Outcome]:
    """Does what a plan holds; outcomes by key, each told to `on_done` as it comes.

    Where a stored input turns out to be corrupt, it and what hangs on it are planned and done once more.
    """
    store.sweep()
    workers = workers or os.cpu_count() or 1
    outcomes: dict[str, Outcome] = {}

    def took(outcome: Outcome) -> None:
        outcomes[outcome.key] = outcome
        if on_done:
            on_done(outcome)

    if workers == 1 or plan.seconds < ENOUGH or not find_spec("distributed"):  # a machine may have torch and no Dask
        for job in plan.jobs.values():
            took(do(job, *(outcomes[key] for key in job.needs)))
    else:
        _on_cluster(plan, workers, took)
    _remember(outcomes)
    spoilt = [plan.jobs[key].yields for key, outcome in outcomes.items() if outcome.corrupt]
    if spoilt and on_corrupt:
        outcomes |= run(make_plan(spoilt), workers, on_done, on_corrupt=False)
    return outcomes


def _on_cluster(plan: Plan, workers: int, took: Callable[[Outcome], None]) -> None:
    import dask
    from distributed import Client, LocalCluster, as_completed

    environment = {
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    settings: dict[str, Any] = {
        "distributed.worker.daemon": False,  # a step may need child processes
        "distributed.nanny.pre-spawn-environ": environment | _own_environment(),
        "distributed.admin.tick.limit": "1h",  # a training holds its worker's loop now and then
        "distributed.scheduler.allowed-failures": 3,
        "distributed.worker.memory.terminate": False,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=min(workers, len(plan.jobs)),
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        futures: dict[str, Any] = {}
        for place, job in enumerate(plan.jobs.values()):
            parents = [futures[key] for key in job.needs]
            name = f"{type(job.step).__name__}-{job.key}" + "".join(f"-{at.when}" for at in job.asked)
            futures[job.key] = client.submit(do, job, *parents, key=name, priority=-place, pure=True)
        jobs = {future.key: plan.jobs[key] for key, future in futures.items()}
        for future in as_completed(futures.values()):
            if future.status == "error":  # no job raises: a worker died under it, and so did those that tried again
                job = jobs[future.key]
                why = f"its worker died ({future.exception()})".splitlines()[0]
                took(Outcome(job.key, f"{type(job.step).__name__} {job.key[:12]}", why))
            else:
                took(future.result())


def _own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("LEAK_ATLAS_")}


def _remember(outcomes: dict[str, Outcome]) -> None:
    """Keeps the measured speed for the next preview."""
    rates = [o.operations / o.seconds for o in outcomes.values() if o.operations and o.seconds > 0.2]
    if len(rates) < 3:
        return
    path = paths.store() / "rate.json"
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps({"rate": statistics.median(rates), "from": len(rates)}))
    partial.replace(path)


# ---------------------------------------------------------------- progress


def reporter(plan: Plan) -> Callable[[Outcome], None]:
    """A live bar in a kernel that somebody watches, a line per tenth of the work elsewhere."""
    total = plan.seconds or 1.0
    if sys.modules.get("ipykernel") and os.environ.get("LEAK_ATLAS_PROGRESS") != "log":
        from tqdm.auto import tqdm

        bar = tqdm(total=len(plan.jobs), unit="step", leave=False)
        bar.set_description(f"about {total / 60:.1f} core-minutes")

        def advance(outcome: Outcome) -> None:
            bar.update()
            if bar.n >= len(plan.jobs):
                bar.close()

        return advance

    done = {"seconds": 0.0, "tenth": 0, "jobs": 0}

    def line(outcome: Outcome) -> None:
        done["seconds"] += plan.jobs[outcome.key].seconds if outcome.key in plan.jobs else 0
        done["jobs"] += 1
        tenth = int(10 * done["seconds"] / total + 1e-9)
        if outcome.error:
            print(f"failed: {outcome.name}: {outcome.error}", file=sys.stderr, flush=True)
        if tenth > done["tenth"]:
            done["tenth"] = tenth
            print(f"  {done['jobs']} of {len(plan.jobs)} steps, {10 * tenth} % of the work", flush=True)

    return line
