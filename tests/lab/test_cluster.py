"""Jobs beyond this process: worker processes, running schedulers, a queue, and what may happen to
them.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing import forkserver
from pathlib import Path

import dask
import dask_jobqueue
import pytest
from distributed import LocalCluster

from leak_atlas import BadInput
from leak_atlas.engine import paths, store
from leak_atlas.lab import cluster
from leak_atlas.lab.cluster import Where
from leak_atlas.lab.jobs import Outcome
from leak_atlas.lab.plans import plan
from leak_atlas.lab.prices import JOB, pricing, remember, work
from leak_atlas.lab.run import run
from leak_atlas.recipe import Model, RandomHalves, Schedule, Setup, Signals
from tests.lab.test_lab import DATA, MODEL, fingerprint, pool

SITE = {
    "distributed.worker.preload": ["tests.lab.watched"],
    "distributed.scheduler.allowed-failures": 0,
}
HERE = {"cwd": paths.ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def until(condition: Callable[[], object], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "never happened"
        time.sleep(0.02)


class Watch:
    """The log and the hold of `tests.lab.watched`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.log = folder / "log"
        self.freeze = folder / "hold"
        self.log.touch()
        self.environment = {"WATCHED_LOG": str(self.log), "WATCHED_HOLD": str(self.freeze)}

    def trained(self) -> list[tuple[str, int]]:
        """Key and process of each training that was begun."""
        return [
            (line.split()[0], int(line.split()[1])) for line in self.log.read_text().splitlines()
        ]


@pytest.fixture(scope="module", autouse=True)
def workers_are_watched() -> Iterator[None]:
    """Workers of this module are forked from a process that has imported `tests.lab.watched`."""
    forkserver._forkserver._stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "PRELOAD", [*cluster.PRELOAD, "tests.lab.watched"])
        yield
    forkserver._forkserver._stop()


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little work there is, workers do it."""
    monkeypatch.setattr("leak_atlas.lab.run.ENOUGH", 0.0)


CLIENT = """
import sys
import leak_atlas.lab.run
from leak_atlas import lab
from leak_atlas.__main__ import exit_code
from tests.lab.test_lab import pool

leak_atlas.lab.run.ENOUGH = 0.0
leak_atlas.lab.cluster.PRELOAD.append("tests.lab.watched")


def main():
    lab.realize(pool(4).signals(), workers=2)


if __name__ == "__main__":
    sys.exit(exit_code(main))
"""


def client(folder: Path, text: str = CLIENT, **environment: str) -> subprocess.Popen[str]:
    """A process that asks for four models and their signals."""
    script = folder / "client.py"
    script.write_text(text)
    own = os.environ | {"PYTHONPATH": f"{paths.ROOT}:{paths.ROOT}/lib"} | environment
    return subprocess.Popen([sys.executable, str(script)], env=own, start_new_session=True, **HERE)


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    found = Watch(tmp_path / "watch")
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    return found


@contextmanager
def site(workers: int = 2, threads: int = 1, **options) -> Iterator[LocalCluster]:
    """A running scheduler that somebody else has started."""
    with (
        dask.config.set(SITE),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            **options,
        ) as found,
    ):
        yield found


def undisturbed(monkeypatch: pytest.MonkeyPatch, folder: Path, *asked) -> dict[str, str]:
    with monkeypatch.context() as patch:
        patch.setenv("LEAK_ATLAS_STORE", str(folder))
        run(plan([asked]), 1)
        return fingerprint()


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip says of torch, here and in processes that start: a build with CUDA."""
    metadata = tmp_path / "site/torch-9.9.dist-info/METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9+cu999\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    inherited = filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(inherited))


# ---------------------------------------------------------------- where


def test_workers_are_as_many_as_gpus_or_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU build of torch has no GPUs, whatever cards the machine has."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    for build, visible, gpus in (
        ("2.13.0+cu130", "3,5", ["3", "5"]),
        ("2.13.0+cu130", "", []),
        ("2.13.0+cpu", "3,5", []),
    ):
        monkeypatch.setattr(cluster, "version", {"torch": build}.__getitem__)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert cluster.gpus() == gpus
        assert Where().local == (len(gpus) or 16)
    assert Where(3).local == 3
    assert not Where().elsewhere
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://127.0.0.1:1")
    assert Where().elsewhere


QUEUE = Where(queue="slurm")


def test_a_place_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with pytest.raises(BadInput, match="no Dask scheduler answers at tcp"):
        run(plan([pool(2)]), Where(scheduler="tcp://127.0.0.1:1"))
    with pytest.raises(BadInput, match="no command 'sbatch' here"):
        run(plan([pool(2)]), QUEUE)
    monkeypatch.setattr(cluster, "which", lambda command: command)
    with pytest.raises(BadInput, match=r"lacks cores or memory of jobqueue\.slurm"):
        run(plan([pool(2)]), QUEUE)
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="pip install dask-jobqueue"):
        run(plan([pool(2)]), QUEUE)


@pytest.mark.parametrize("queue", cluster.QUEUES)
def test_a_job_of_a_queue_is_what_the_site_configures_with_our_folders(
    queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = getattr(dask_jobqueue, cluster.QUEUES[queue])
    own = {"cores": 3, "memory": "6GB", "walltime": "02:00"}
    own |= {"job-script-prologue": ["module load cuda"], "scheduler-options": {"host": "127.0.0.1"}}
    scripts: list[str] = []
    monkeypatch.setattr(kind, "adapt", lambda self, **_: scripts.append(self.job_script()))
    monkeypatch.setattr(cluster, "which", lambda command: command)
    with dask.config.set({f"jobqueue.{queue}.{name}": value for name, value in own.items()}):
        assert Where(queue=queue, jobs=2).width() == 6
        with cluster.queued(Where(queue=queue)):
            (script,) = scripts
    assert "--nthreads 1" in script
    assert "--nworkers 3" in script
    assert "module load cuda" in script
    assert "02:00" in script
    assert f"export LEAK_ATLAS_STORE={paths.store()}" in script
    assert "export OMP_NUM_THREADS=1" in script
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_queue_starts_workers_and_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Slurm of two shell scripts."""
    alone = undisturbed(monkeypatch, tmp_path / "alone", pool(4).signals())
    commands = tmp_path / "bin"
    jobs = tmp_path / "jobs"
    commands.mkdir()
    submit = textwrap.dedent(f"""\
        #!/bin/sh
        cp "$1" {commands}/$$.job  # sbatch keeps a copy too: the script is gone when it returns
        setsid sh {commands}/$$.job </dev/null >/dev/null 2>&1 &
        echo $! >>{jobs}
        echo "Submitted batch job $!"
        """)
    for name, text in (("sbatch", submit), ("scancel", '#!/bin/sh\nkill -TERM -- "-$1"\n')):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    site_ = {"cores": 1, "memory": "4GB", "scheduler-options": {"host": "127.0.0.1"}}
    with dask.config.set({f"jobqueue.slurm.{name}": value for name, value in site_.items()}):
        assert not run(plan([pool(4).signals()]), Where(queue="slurm", jobs=2))
    assert fingerprint() == alone
    started = [int(line) for line in jobs.read_text().split()]
    assert len(started) >= 2
    until(lambda: not any(_alive_group(group) for group in started))


def _alive_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


# ---------------------------------------------------------------- workers


def test_workers_that_cannot_do_our_jobs_are_refused(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    todo = plan([pool(1)])
    with site(1) as found:
        where = Where(scheduler=found.scheduler_address)
        with monkeypatch.context() as patch:
            patch.setenv("LEAK_ATLAS_STORE", str(tmp_path / "elsewhere"))
            with pytest.raises(BadInput, match=r"keeps its results in .*LEAK_ATLAS_STORE"):
                run(todo, where)
        with monkeypatch.context() as patch:
            patch.setattr(cluster, "revisions", lambda: {})
            with pytest.raises(BadInput, match="another version of leak_atlas"):
                run(todo, where)
        found.scale(0)
        until(lambda: not found.scheduler.workers)
        monkeypatch.setattr(cluster, "PATIENCE", 0.5)
        with pytest.raises(BadInput, match=r"has no workers: .*dask worker tcp"):
            run(todo, where)
    with site(1, threads=2) as found, pytest.raises(BadInput, match="--nthreads 1"):
        run(todo, Where(scheduler=found.scheduler_address))
    assert not watch.trained()


@pytest.mark.usefixtures("cuda", "workers")
def test_workers_of_a_machine_with_gpus_have_one_each(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    before = dict(os.environ)
    assert not run(plan([pool(4).signals()]))
    assert dict(os.environ) == before
    assert {line.split()[2] for line in watch.log.read_text().splitlines()} == {"4", "7"}


# ---------------------------------------------------------------- faults


@pytest.mark.usefixtures("workers")
def test_a_worker_that_is_killed_once_costs_no_result(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The pool breaks; a new one does what was under way, and all that follows."""
    alone = undisturbed(monkeypatch, tmp_path / "alone", pool(4).signals())
    watch.freeze.touch()
    asking = client(tmp_path)
    until(lambda: len(watch.trained()) == 2)
    os.kill(watch.trained()[0][1], signal.SIGKILL)
    until(lambda: len(watch.trained()) == 3)
    watch.freeze.unlink()
    output = asking.communicate(timeout=300)
    assert asking.returncode == 0 and not output[1], output
    assert fingerprint() == alone
    assert Counter(key for key, _ in watch.trained()).most_common()[0][1] == 2


def test_a_lost_scheduler_is_one_line_and_the_rerun_goes_on(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = undisturbed(monkeypatch, tmp_path / "alone", pool(4).signals())
    address = tmp_path / "scheduler.json"
    options = ["--scheduler-file", str(address), "--host", "127.0.0.1"]
    quiet = {"cwd": paths.ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask_ = [sys.executable, "-m", "dask"]
    here = [*dask_, "scheduler", "--port", "0", "--no-dashboard", *options]
    scheduler = subprocess.Popen(here, **quiet)
    worker = None
    try:
        # whole, not only there
        until(lambda: address.exists() and address.read_text().endswith("}"))
        one = ["--nthreads", "1", "--death-timeout", "60", "--preload", "tests.lab.watched"]
        worker = subprocess.Popen([*dask_, "worker", "--no-dashboard", *one, *options], **quiet)
        asking = client(tmp_path, DASK_SCHEDULER_ADDRESS=json.loads(address.read_text())["address"])
        until(lambda: len(watch.trained()) > 1)
        watch.freeze.touch()
        until(lambda: len(list(store.listing())) > 0)
        scheduler.kill()
        error = asking.communicate(timeout=300)[1].strip()
    finally:
        watch.freeze.unlink(missing_ok=True)
        for process in (scheduler, worker):
            if process:
                process.kill()
                process.wait()
    assert asking.returncode == 2 and error.startswith("leak atlas: lost the scheduler"), error
    assert len(error.splitlines()) == 1
    assert fingerprint().items() <= alone.items()
    run(plan([pool(4).signals()]), 1)
    assert fingerprint() == alone


def test_what_a_worker_of_this_machine_cannot_read_is_said() -> None:
    """It is no lost scheduler, and other jobs go on."""

    def submit(*_: object) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        future.set_exception(OSError("libcudart is missing"))
        return future

    jobs = plan([pool(2).signals()]).jobs.values()
    outcomes = list(cluster.Workers(submit, lambda: 1, "this machine").do(iter(jobs)))
    assert len(outcomes) == len(jobs)
    assert all("OSError: libcudart is missing" in outcome.error for outcome in outcomes)


@pytest.mark.parametrize("place", ["this machine", "a scheduler"])
@pytest.mark.usefixtures("workers")
def test_a_job_that_kills_its_workers_or_starves_is_named_and_its_siblings_go_on(
    place: str, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer, starving, *fine = pool(6)
    schedule = Schedule(2, 32, lr=1e30, weight_decay=1e30)
    diverging = Setup(DATA, RandomHalves(80, test=40), MODEL, schedule, 1).trained()
    monkeypatch.setenv("WATCHED_KILL", killer.key)
    monkeypatch.setenv("WATCHED_STARVE", starving.key)
    asked = [pool(6).signals(), diverging.signals()]
    if place == "this machine":
        failed = run(plan(asked), 2)
    else:
        with site() as found:
            failed = run(plan(asked), Where(scheduler=found.scheduler_address))
    times = Counter(key for key, _ in watch.trained())
    assert times[killer.key] == 2, "by two workers"
    assert times[diverging[0].key] <= 2
    assert max(times[state.key] for state in fine) <= 2
    assert f"Train {killer.key[:12]}" in failed[killer.key].name
    assert "out of memory" in failed[killer.key].error
    assert "MemoryError" in failed[starving.key].error
    assert "Diverged" in failed[diverging[0].key].error
    for bad in (killer, starving, diverging[0]):
        assert f"its parent Train {bad.key[:12]} failed" in failed[Signals(bad).key].error
        recipe = (paths.store() / "failures" / f"{bad.key[:12]}.txt").read_text()
        assert '"kind": "Train"' in recipe
    assert all(store.has(Signals(state).key) for state in fine)


def test_an_interrupt_leaves_no_process_behind(watch: Watch, tmp_path: Path) -> None:
    watch.freeze.touch()
    asking = client(tmp_path, WATCHED_MARK=str(tmp_path))
    until(lambda: len(watch.trained()) == 2)
    os.killpg(asking.pid, signal.SIGINT)  # as a terminal does
    error = asking.communicate(timeout=300)[1].strip()
    assert asking.returncode == 130 and error.startswith("leak atlas: interrupted"), error
    assert len(error.splitlines()) == 1, error
    until(lambda: not _marked(str(tmp_path)))


def _marked(mark: str) -> list[int]:
    """Processes other than this one with a mark in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"WATCHED_MARK={mark}".encode() in (place / "environ").read_bytes():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def test_a_script_without_a_guard_ends_with_an_error_that_names_it(tmp_path: Path) -> None:
    """Its worker processes read it again, and would start workers of their own."""
    script = CLIENT.split("if __name__")[0] + "main()\n"
    error = client(tmp_path, script).communicate(timeout=300)[1]
    assert "if __name__ == '__main__':" in error.splitlines()[-1]
    assert error.count("Traceback") <= 2, "of the script itself"


# ---------------------------------------------------------------- prices


def test_the_next_preview_knows_how_long_such_steps_took_on_this_device() -> None:
    paths.store().mkdir(parents=True)
    train = pool(1)[0]
    wider = Model("resnet10", width=4)
    other = Setup(DATA, RandomHalves(80, test=40), wider, Schedule(2, 32), 1).trained()[0]
    remember([([train], "cpu", 3.0)] * 3 + [([train], "cpu", 90.0)])
    assert pricing()(train) == pytest.approx(3.0, abs=0.05), "the first one loads torch"
    remember([([other], "cpu", 2.0)] * 3 + [([train], "NVIDIA H200", 1.5)] * 3)
    assert pricing()(train) == pytest.approx(3.0, abs=0.05)
    assert pricing()(other) == pytest.approx(2.0, abs=0.05)


def test_a_step_without_a_pace_of_its_own_has_that_of_long_jobs() -> None:
    paths.store().mkdir(parents=True)
    train = pool(1)[0]
    wider = Model("resnet10", width=4)
    other = Setup(DATA, RandomHalves(80, test=40), wider, Schedule(2, 32), 1).trained()[0]
    before = pricing()(train)
    remember([([train], "cpu", 90.0)] * 2)
    assert pricing()(train) == before, "two jobs are too few"
    remember([([train], "cpu", 3.0)] * 3)
    assert pricing()(other) == pytest.approx(JOB + 3.0 * work(other) / work(train))


def test_short_jobs_are_the_price_of_such_steps_alone() -> None:
    paths.store().mkdir(parents=True)
    train = pool(1)[0]
    other = Setup(DATA, RandomHalves(80, test=40), Model("resnet10", width=4), Schedule(2, 32), 1)
    before = pricing()(other.trained()[0])
    remember([([train], "cpu", 0.9)] * 5)
    assert pricing()(train) == pytest.approx(0.9, abs=0.05)
    assert pricing()(other.trained()[0]) == before
