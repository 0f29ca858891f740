"""Jobs beyond this process: Dask workers, running schedulers, a queue, and what may happen to them."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import pytest
from distributed import LocalCluster

from lib import BadInput, batch, lab, paths, store
from lib.lab import __main__ as cli
from lib.lab import cluster
from lib.lab.cluster import Where
from lib.lab.exchange import dump
from lib.lab.plans import Job, plan
from lib.lab.prices import factors, pricing, remember
from lib.lab.run import Dispatch, Frontier, Outcome, reasons, run, width
from lib.recipe import Model, RandomHalves, Schedule, Setup, Signals, Step, Train
from tests.lab.test_lab import DATA, MODEL, fingerprint, pool

PRELOAD = {"distributed.worker.preload": ["tests.lab.watched"]}
HERE = {"cwd": paths.ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "never happened"
        time.sleep(0.02)


class Watch:
    """The log and the hold of `tests.lab.watched`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.log, self.hold = folder / "log", folder / "hold"
        self.log.touch()
        self.environment = {"WATCHED_LOG": str(self.log), "WATCHED_HOLD": str(self.hold)}

    def trained(self) -> list[tuple[str, int]]:
        """Key and process of each training that was begun."""
        return [(line.split()[0], int(line.split()[1])) for line in self.log.read_text().splitlines()]


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
        dask.config.set(PRELOAD),
        LocalCluster(
            n_workers=workers, threads_per_worker=threads, host="127.0.0.1", dashboard_address="127.0.0.1:0", **options
        ) as found,
    ):
        yield found


def plan_file(path: Path, *asked) -> str:
    path.write_text(json.dumps(dump(plan([asked]))))
    return str(path)


def command(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "lib.lab", "run", *arguments], **HERE)


def undisturbed(monkeypatch: pytest.MonkeyPatch, folder: Path, *asked) -> dict[str, str]:
    with monkeypatch.context() as patch:
        patch.setenv("LEAK_ATLAS_STORE", str(folder))
        run(plan([asked]), 1)
        return fingerprint()


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip says of torch, here and in processes that start: a build with CUDA."""
    told = tmp_path / "site/torch-9.9.dist-info/METADATA"
    told.parent.mkdir(parents=True)
    told.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9+cu999\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    inherited = filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(inherited))


# ---------------------------------------------------------------- where


@pytest.mark.usefixtures("cuda")
def test_a_queue_goes_before_a_scheduler_and_a_scheduler_before_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not Where().elsewhere and Where(3).local == 3
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://127.0.0.1:1")
    assert Where().scheduler == "tcp://127.0.0.1:1" and Where().elsewhere
    assert Where(queue="slurm", jobs=4, gpus=2).width() == 8
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert cluster.gpus() == ["3", "5"] and Where().local == 2
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert cluster.gpus() == []


@pytest.mark.parametrize(("build", "found"), [("2.13.0", 2), ("2.13.0+cu130", 2), ("2.13.0+cpu", 0)])
def test_a_cpu_build_of_torch_has_no_gpus(build: str, found: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever cards the machine has: all its cores work, and the preview counts them."""
    monkeypatch.setattr(cluster, "version", {"torch": build}.__getitem__)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert len(cluster.gpus()) == found and Where().local == (found or 16)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(Path, "glob", lambda *_: iter(["nvidia0", "nvidia1"]))
    assert len(cluster.gpus()) == found and width(plan([pool(1)]), Where()) == (4 if found else 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "0"], "--workers takes at least 1"),
        (["--slurm", "--jobs", "0"], "--jobs takes at least 1"),
        (["--slurm"], "no command 'sbatch' here"),
        (["--scheduler", "tcp://127.0.0.1:1"], "no Dask scheduler answers at tcp://127.0.0.1:1"),
        (["--scheduler", "nonsense://"], "no Dask scheduler answers at nonsense://"),
        (["--part-mb", "0"], "--part-mb takes more than 0"),
    ],
)
def test_a_place_that_is_not_there_is_one_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    assert cli.main(["run", plan_file(tmp_path / "plan.json", pool(2)), *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert words in error and len(error.splitlines()) == 1 and error.startswith("leak atlas: ")


def test_a_missing_jobqueue_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="-m pip install dask-jobqueue"):
        cluster.queued(Where(queue="pbs"))


@pytest.mark.parametrize("queue", cluster.QUEUES)
def test_the_script_of_a_job_is_what_jobqueue_makes_of_the_sites_configuration(queue: str, tmp_path: Path) -> None:
    import dask_jobqueue

    own = {f"jobqueue.{queue}.cores": 3, f"jobqueue.{queue}.memory": "6GB", f"jobqueue.{queue}.walltime": "02:00"}
    own |= {f"jobqueue.{queue}.job-script-prologue": ["module load cuda"]}
    kind = getattr(dask_jobqueue, cluster.QUEUES[queue])
    local = {"host": "127.0.0.1"}
    with dask.config.set(own | {f"jobqueue.{queue}.scheduler-options": local}):
        for where, workers in ((Where(queue=queue, jobs=2), 3), (Where(queue=queue, jobs=2, gpus=2), 2)):
            with kind(**cluster.request(where)) as made:
                script = made.job_script()
            assert where.width() == 2 * workers
            assert (
                f"--nthreads 1 --memory-limit {6e9 / workers / 2**30:.2f}GiB" in script
                and f"--nworkers {workers}" in script
            )
            assert ("--resources GPU=1 --preload lib.lab.cluster" in script) == bool(where.gpus)
            assert f"export LEAK_ATLAS_STORE={paths.store()}" in script and "export OMP_NUM_THREADS=1" in script
            assert "module load cuda" in script and "02:00" in script
            if queue == "slurm":
                assert f"--cpus-per-task={workers}" in script
                assert ("#SBATCH --gres=gpu:2" in script) == bool(where.gpus)
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_queue_starts_workers_and_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Slurm of two shell scripts."""
    alone = undisturbed(monkeypatch, tmp_path / "alone", pool(4).signals())
    commands, jobs = tmp_path / "bin", tmp_path / "jobs"
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
    plan_ = plan_file(tmp_path / "plan.json", pool(4).signals())
    with dask.config.set({"jobqueue.slurm.scheduler-options": {"host": "127.0.0.1"}}):
        assert cli.main(["run", plan_, "--slurm", "--jobs", "2", "--pack", str(tmp_path / "packed")]) == 0
    assert "on 2 workers" in capsys.readouterr().out
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


# ---------------------------------------------------------------- one scheduler, several plans


def test_two_plans_on_one_scheduler_train_a_model_once(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = [pool(6).signals(), Signals(pool()[0].at(1))]
    alone = undisturbed(monkeypatch, tmp_path / "alone", more)
    plans = [plan_file(tmp_path / "a.json", pool(4).signals()), plan_file(tmp_path / "b.json", more)]
    watch.hold.touch()
    with site() as found:
        both = [command(one, "--scheduler", found.scheduler_address, "--pack", f"{one}.packed") for one in plans]
        until(lambda: sum(bool(one.wants_what) for one in list(found.scheduler.clients.values())) >= 2)
        watch.hold.unlink()
        said = [one.communicate(timeout=60) for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert fingerprint() == alone
    times = Counter(key for key, _ in watch.trained())
    again = times.pop(pool()[0].key)  # twice where the plan that does not ask for its epoch came first
    assert again <= 2 and set(times.values()) == {1} and len(times) == 5


def test_two_plans_without_a_common_scheduler_both_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = undisturbed(monkeypatch, tmp_path / "alone", pool().signals())
    plan_ = plan_file(tmp_path / "plan.json", pool().signals())
    both = [command(plan_, "--workers", "1", "--pack", str(tmp_path / f"packed{n}")) for n in range(2)]
    said = [one.communicate(timeout=60) for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert fingerprint() == alone and not list((paths.store() / ".partial").glob("*"))


def test_workers_that_cannot_do_our_jobs_are_named_before_anything_is_sent(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with site(1, resources={"GPU": 1}) as found:
        where, todo = Where(scheduler=found.scheduler_address), plan([pool(1)])
        with pytest.raises(BadInput, match="declares a GPU that torch does not see"):
            run(todo, where)
        with monkeypatch.context() as patch, pytest.raises(BadInput, match=r"keeps its results in .*LEAK_ATLAS_STORE"):
            patch.setenv("LEAK_ATLAS_STORE", str(tmp_path / "elsewhere"))
            run(todo, where)
        with monkeypatch.context() as patch, pytest.raises(BadInput, match="another version of lib"):
            patch.setattr(cluster, "revisions", lambda: {})
            run(todo, where)
        found.scale(0)
        until(lambda: not found.scheduler.workers)
        monkeypatch.setattr(cluster, "PATIENCE", 0.5)
        with pytest.raises(BadInput, match=r"has no workers: .* -m dask worker tcp"):
            run(todo, where)
    with site(1, threads=2) as found, pytest.raises(BadInput, match="--nthreads 1"):
        run(todo, Where(scheduler=found.scheduler_address))
    assert not watch.trained() and not list(paths.store().glob(".seen*"))


@pytest.mark.usefixtures("cuda")
def test_workers_of_a_machine_with_gpus_have_one_each(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    monkeypatch.setattr("lib.lab.run.ENOUGH", 0.0)
    before = {name: os.environ.get(name) for name in (*cluster.environment(), "PYTHONHASHSEED")}
    with dask.config.set(PRELOAD):
        failed = run(plan([pool(4).signals()]))
    assert {name: os.environ.get(name) for name in before} == before
    assert not failed
    assert {line.split()[2] for line in watch.log.read_text().splitlines()} == {"4", "7"}


@pytest.mark.usefixtures("cuda")
def test_workers_that_readme_starts_have_a_gpu_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pretended devices."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    line = next(line for line in (paths.ROOT / "README.md").read_text().splitlines() if "dask worker tcp:" in line)
    given = line.replace("--nworkers 4", "--nworkers 2").rstrip(" &").split()[3:]

    def chosen(dask_worker: Any) -> str:
        return os.environ["CUDA_VISIBLE_DEVICES"]

    with site(0) as found, found.get_client() as client:
        start = [sys.executable, "-m", "dask", "worker", found.scheduler_address, *given]
        workers = subprocess.Popen(start, cwd=paths.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            client.wait_for_workers(2, timeout=60)
            assert sorted(client.run(chosen).values()) == ["0", "1"]
        finally:
            workers.terminate()
            workers.wait()


@pytest.mark.usefixtures("cuda")
def test_a_worker_without_a_number_says_that_it_shares_a_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for devices, says in (("0", ""), ("0,1", "takes the first of 2 GPUs, as all others like it")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
        cluster.dask_setup(SimpleNamespace(name="tcp://127.0.0.1:41234"))
        said = capsys.readouterr().err
        assert says in said and said.count("\n") == bool(says) and os.environ["CUDA_VISIBLE_DEVICES"] == devices


# ---------------------------------------------------------------- faults


def test_a_training_whose_worker_is_killed_is_done_elsewhere(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = undisturbed(monkeypatch, tmp_path / "alone", pool(4).signals())
    watch.hold.touch()
    with site() as found:
        plan_ = plan_file(tmp_path / "plan.json", pool(4).signals())
        client = command(plan_, "--scheduler", found.scheduler_address, "--pack", str(tmp_path / "packed"))
        until(lambda: len(watch.trained()) == 2)
        victim, process = watch.trained()[0]
        os.kill(process, signal.SIGKILL)
        watch.hold.unlink()
        said = client.communicate(timeout=60)
    assert client.returncode == 0, said
    assert fingerprint() == alone
    times = Counter(key for key, _ in watch.trained())
    assert times.pop(victim) == 2 and set(times.values()) == {1}


def test_a_lost_scheduler_is_one_line_and_the_rerun_goes_on(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = undisturbed(monkeypatch, tmp_path / "alone", pool(4).signals())
    address = tmp_path / "scheduler.json"
    options = ["--scheduler-file", str(address), "--no-dashboard"]
    dask_ = [sys.executable, "-m", "distributed.cli"]
    quiet = {"cwd": paths.ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [f"{part}{'.dask_scheduler' * (part == 'distributed.cli')}" for part in dask_]
        + ["--host", "127.0.0.1", "--port", "0", *options],
        **quiet,
    )
    worker = None
    try:
        until(lambda: address.exists() and address.read_text().endswith("}"))  # whole, not only there
        worker = subprocess.Popen(
            [f"{part}{'.dask_worker' * (part == 'distributed.cli')}" for part in dask_]
            + ["--nthreads", "1", "--host", "127.0.0.1", "--death-timeout", "60", "--preload", "tests.lab.watched"]
            + options,
            **quiet,
        )
        plan_ = plan_file(tmp_path / "plan.json", pool(4).signals())
        where = json.loads(address.read_text())["address"]
        client = command(plan_, "--scheduler", where, "--pack", str(tmp_path / "packed"))
        until(lambda: len(watch.trained()) > 1)
        watch.hold.touch()
        until(lambda: len(list(store.listing())) > 0)
        scheduler.kill()
        error = client.communicate(timeout=60)[1].strip()
    finally:
        watch.hold.unlink(missing_ok=True)
        for process in (scheduler, worker):
            if process:
                process.kill()
                process.wait()
    assert client.returncode == 2 and error.startswith("leak atlas: lost the scheduler"), error
    assert len(error.splitlines()) == 1
    assert fingerprint().items() <= alone.items()
    run(plan([pool(4).signals()]), 1)
    assert fingerprint() == alone


def test_a_job_that_kills_its_workers_or_starves_is_named_and_its_siblings_go_on(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lib.lab.run.ENOUGH", 0.0)
    killer, starving, *fine = pool(6)
    diverging = Setup(DATA, RandomHalves(80, test=40), MODEL, Schedule(2, 32, lr=1e30, weight_decay=1e30), 1).trained()
    monkeypatch.setenv("WATCHED_KILL", killer.key)
    monkeypatch.setenv("WATCHED_STARVE", starving.key)
    with dask.config.set(PRELOAD):
        failed = run(plan([[Signals(state) for state in (starving, *fine)], diverging.signals()]), 2)
        assert set(Counter(key for key, _ in watch.trained()).values()) == {1}, "what fails is not tried again"
        failed |= run(plan([pool(10).signals()]), 2)
    assert f"Train {killer.key[:12]}" in failed[killer.key].name and "out of memory" in failed[killer.key].error
    assert "MemoryError" in failed[starving.key].error and "Diverged" in failed[diverging[0].key].error
    for bad in (killer, starving, diverging[0]):
        assert f"its parent Train {bad.key[:12]} failed" in failed[Signals(bad).key].error
        recipe = (paths.store() / "failures" / f"{bad.key[:12]}.txt").read_text()
        assert '"kind": "Train"' in recipe
    assert all(store.has(Signals(state).key) for state in pool(10) if state not in (killer, starving))
    assert 1 < Counter(key for key, _ in watch.trained())[killer.key] <= 4


def test_short_jobs_share_a_task_and_a_training_ends_it() -> None:
    trainings, signals = pool(4), pool(4, Schedule(1, 32)).signals()
    lab.realize([one.of for one in signals])
    steps = plan([signals, trainings])
    assert [type(job.step) for job in steps.jobs.values()] == 4 * [Signals] + 4 * [Train]

    def bundles(workers: int, seconds: float) -> list[int]:
        for job in steps.jobs.values():
            job.seconds = seconds
        frontier, found = Frontier(steps, lambda _: None), []
        while frontier.ready:
            found.append(len(frontier.bundle(workers)))
        return found

    assert bundles(1, 0.01) == [5, 1, 1, 1], "a training is the last of its task"
    assert bundles(1, 0.2) == [2, 2, 1, 1, 1, 1], "short ones until they are no longer short together"
    assert bundles(3, 0.01) == [3, 2, 1, 1, 1], "nobody waits while another has many"
    assert bundles(8, 0.01) == 8 * [1]


def test_a_job_of_a_bundle_that_kills_its_workers_is_found_out_and_the_others_are_done(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lib.lab.run.ENOUGH", 0.0)
    monkeypatch.setattr("lib.lab.run.BUNDLE", 100.0)
    signals = pool(8).signals()
    lab.realize(list(pool(8)))
    killer = signals[3]
    monkeypatch.setenv("WATCHED_KILL", killer.key)
    with dask.config.set(PRELOAD):
        failed = run(plan([signals]), 2)
    assert list(failed) == [killer.key] and "out of memory" in failed[killer.key].error
    assert all(store.has(one.key) for one in signals if one != killer)


def test_what_another_plans_task_of_a_key_has_not_done_is_sent_again() -> None:
    """The task is known by its last job; the answer holds what the other plan had in it."""
    sent: list[list[str]] = []

    class Foreign:
        def submit(self, do: object, jobs: list[Job], **given: Any) -> Future[list[Outcome]]:
            sent.append([job.key for job in jobs])
            future = Future[list[Outcome]]()
            future.key, future.status = given["key"], "finished"
            put(jobs[-1].step)
            future.set_result([Outcome(jobs[-1].key, "", there=(jobs[-1].key,))])
            return future

        def nthreads(self) -> dict[str, int]:
            return {"one": 1}

    def put(step: Step) -> None:
        store.write(step.key, step.record(), {}, {})

    states = pool(8)
    for state in states:
        put(state)
    told: list[str] = []
    engine = cluster.Engine(Foreign(), False, "here")
    Dispatch(Frontier(plan([states.signals()]), lambda outcome: told.append(outcome.key)), engine).run()
    assert len(sent[0]) > 1 and sorted(told) == sorted(one.key for one in states.signals())


def test_a_machine_whose_workers_do_not_come_back_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody ever answers; jobs of a queue may yet begin, so they are waited for until the scheduler is lost."""

    class Deserted:
        def __init__(self, looks: int) -> None:
            self.looks = looks

        def submit(self, *_: object, **__: object) -> Future[None]:
            return Future()

        def nthreads(self) -> dict[str, int]:
            self.looks -= 1
            if not self.looks:
                raise CancelledError
            return {}

    monkeypatch.setattr("lib.lab.run.SILENCE", 0.01)
    monkeypatch.setattr("lib.lab.run.DESERTED", 0.1)
    for local, words in ((True, "all workers of here died and none came back"), (False, "lost the scheduler")):
        engine = cluster.Engine(Deserted(200), False, "here", local)
        with pytest.raises(BadInput, match=words):
            Dispatch(Frontier(plan([pool(2)]), lambda _: None), engine).run()
        assert "waiting: here has no workers left" in capsys.readouterr().err


def test_one_reason_is_told_once_however_many_jobs_it_stops() -> None:
    lacking = [Outcome(f"k{i}", f"Train k{i}", "BadInput: no data") for i in range(3)]
    orphans = [Outcome("s", "Signals s", "its parent Train k0 failed: BadInput: no data", orphan=True)]
    alone = Outcome("d", "Train d", "Diverged: loss is nan")
    assert reasons([*lacking, *orphans, alone]) == [
        "Train k0: BadInput: no data (and 2 more)",
        "Train d: Diverged: loss is nan",
    ]
    assert reasons(orphans) == [f"Signals s: {orphans[0].error}"] and reasons([]) == []


def test_the_report_shows_a_notebook_as_missing_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """\
    # %% [markdown]
    # # {title}

    # %% tags=["parameters"]
    seed = 0  # seed

    # %%
    from lib import lab
    from lib.recipe import Data, Model, RandomHalves, Schedule, Setup
    schedule = Schedule(2, 32, lr={lr}, weight_decay={lr})
    design = RandomHalves(80, test=40)
    lab.realize(Setup(Data(pixels=8), design, Model("resnet10", width=2), schedule, 2).trained().signals())
    """
    head = next(iter(paths.NOTEBOOKS.glob("*/*.py"))).read_text().split("# %%")[0]
    (tmp_path / "notebooks").mkdir()
    for title, lr in (("fine", 1e-3), ("diverges", 1e30)):
        body = textwrap.dedent(text).format(title=title, lr=lr)
        (tmp_path / "notebooks" / f"{title}.py").write_text(head + body)
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    (tmp_path / "params/smoke").mkdir(parents=True)
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    assert batch.main(["--profile", "smoke", "--workers", "1"]) == 2
    said = capsys.readouterr()
    assert "1 of 2 notebooks executed" in said.out and "failed: diverges: Train " in said.err
    index = (paths.runs("smoke") / "index.html").read_text()
    assert "diverges" in index and "Diverged" in index and (paths.runs("smoke") / "fine.html").exists()


def test_a_script_without_a_guard_is_told_so_in_one_line(tmp_path: Path) -> None:
    """Its worker processes read it again, and would start workers of their own."""
    script = tmp_path / "unguarded.py"
    script.write_text(
        textwrap.dedent("""
        import lib.lab.run
        from lib import lab
        from lib.recipe import Data, Model, RandomHalves, Schedule, Setup
        lib.lab.run.ENOUGH = 0.0
        subject = Data("fashion-mnist-small", 8), RandomHalves(40), Model("resnet10", 2), Schedule(1, 20)
        lab.realize(Setup(*subject, 2).trained().signals(), workers=2)
        """)
    )
    own = os.environ | {"PYTHONPATH": str(paths.ROOT)}
    done = subprocess.run([sys.executable, str(script)], env=own, capture_output=True, text=True, timeout=120)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and "if __name__ == '__main__':" in line, done.stderr


def test_an_interrupt_leaves_no_process_behind(watch: Watch, tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        import lib.lab.run
        from lib import batch
        if __name__ == "__main__":
            lib.lab.run.ENOUGH = 0.0
            sys.exit(batch.main(["--profile", "smoke", "--only", "layers/*", "--workers", "2"]))
        """)
    )
    watch.hold.touch()
    mark = {"WATCHED_MARK": str(tmp_path), "DASK_DISTRIBUTED__WORKER__PRELOAD": '["tests.lab.watched"]'}
    own = os.environ | mark | {"PYTHONPATH": str(paths.ROOT)}
    child = subprocess.Popen([sys.executable, str(script)], env=own, start_new_session=True, **HERE)
    until(lambda: len(watch.trained()) == 2)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    watch.hold.unlink()
    error = child.communicate(timeout=60)[1].strip()
    assert child.returncode == 130 and error.splitlines()[-1].startswith("leak atlas: interrupted"), error
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


def test_parts_have_the_size_that_was_asked(tmp_path: Path) -> None:
    plan_ = plan_file(tmp_path / "plan.json", pool(4).signals())
    for size, parts in (("0.001", 4), ("15", 1)):
        assert cli.main(["run", plan_, "--workers", "1", "--part-mb", size, "--pack", str(tmp_path / size)]) == 0
        assert len(list((tmp_path / size).glob("*.zip"))) == parts


def test_the_next_preview_knows_how_long_steps_of_a_sort_took_on_this_device() -> None:
    paths.store().mkdir(parents=True)
    train, wider = pool(1)[0], Model("resnet10", width=4)
    other = Setup(DATA, RandomHalves(80, test=40), wider, Schedule(2, 32), 1).trained()[0]
    cold, cold_other = pricing()(train), pricing()(other)
    remember([([train], "cpu", 9.0)] * 2)
    assert pricing()(train) == cold, "two of a sort say little"
    remember([([train], "cpu", 3 * cold)] * 3 + [([train], "cpu", 90 * cold)])
    assert pricing()(train) == pytest.approx(3 * cold), "the first one loads torch"
    remember([([train], "cpu", 18 * cold)] * 3)
    assert pricing()(train) == pytest.approx(3 * cold), "a run on a busy machine"
    assert pricing()(other) == pytest.approx(3 * cold_other), "what was never seen errs as the others do"
    remember([([other], "cpu", cold_other)] * 3 + [([train], "NVIDIA H200", 1e-3)] * 3)
    assert pricing()(train) == pytest.approx(3 * cold) and pricing()(other) == pytest.approx(cold_other)
    assert set(factors()) == {"cpu", "NVIDIA H200"}
    assert width(plan([pool(2)]), Where(8)) == 1, "so little work stays in this process"


def test_a_run_tells_how_long_its_jobs_took_with_what_is_read_off_them() -> None:
    jobs = [plan([[Signals(state.at(1))]]).jobs[state.key] for state in pool(4)]
    cold = jobs[0].seconds
    run(plan([[Signals(state.at(1)) for state in pool(4)]]), 1)
    assert list(factors()["cpu"]) == ["Train resnet10-2 fp32 32"]
    spent = [store.describe(job.key)["meta"]["seconds"] for job in jobs]
    store.discard(jobs[0].key)
    store.discard(jobs[0].read[0].key)
    (again,) = plan([jobs[0].yields]).jobs.values()
    assert again.seconds == pytest.approx(sorted(spent)[1]) and again.seconds != cold


def test_a_preview_says_what_a_busy_machine_makes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = plan([pool(2)])
    found.jobs[pool(2)[0].key].seconds = 240.0
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    for load, words in (
        (0.0, "about 2.0 minutes on 2 workers"),
        (6.0, "2 workers, 8.0 minutes if this machine stays as busy"),
    ):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert words in found.preview(2) and ("busy" in found.preview(2)) == (load > 0)
