"""kill -9 at random moments, each time run again: nothing lost, nothing twice, the same bits at the
end.

`LEAK_ATLAS_KILLS=50` asks for more moments than the ten of every day.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from leak_atlas import lab
from leak_atlas.engine import paths, store
from tests.faults import tiny
from tests.test_kernels import PROC, below

KILLS = int(os.environ.get("LEAK_ATLAS_KILLS", "10"))


def _life(place: Path, log: Path, ready: Connection) -> None:
    """One run of the experiment in a process group of its own; notes what it starts to compute."""
    import leak_atlas.lab.jobs as jobs

    os.setsid()
    os.environ["LEAK_ATLAS_STORE"] = str(place)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    really = jobs.run

    def noted(job):
        with open(log, "a") as file:
            file.write(f"{job.key}\n")
        return really(job)

    jobs.run = noted
    ready.send_bytes(b"!")
    lab.realize(tiny.asked())


def entries() -> dict[str, tuple[int, int]]:
    """Inode and time of change of both files of every entry: a step that is computed again has
    others.
    """
    found = {}
    for key in store.listing():
        facts = [(store.folder(key) / name).stat() for name in (store.ARRAYS, store.ENTRY)]
        found[key] = tuple(number for fact in facts for number in (fact.st_ino, fact.st_mtime_ns))
    return found


def test_killed_at_random_moments_nothing_is_lost_or_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.realize(tiny.asked())  # loads the data; the second is what a life takes
    undisturbed = tiny.fingerprint()
    monkeypatch.setenv("LEAK_ATLAS_STORE", str(tmp_path / "timed"))
    start = time.perf_counter()
    lab.realize(tiny.asked())
    length = time.perf_counter() - start
    dice = random.Random(2026)
    kills = lives = 0
    while kills < KILLS or lab.plans.plan([tiny.asked()]).jobs:
        # done in spite of us: begin a new store
        if kills == 0 or not lab.plans.plan([tiny.asked()]).jobs:
            lives += 1
            assert lives < 10 * KILLS, "the moments of killing never fall into a run"
            monkeypatch.setenv("LEAK_ATLAS_STORE", str(tmp_path / f"store-{lives}"))
        before = entries()
        log = tmp_path / "log"
        log.unlink(missing_ok=True)
        hear, ready = tiny.SERVER.Pipe(duplex=False)
        child = tiny.SERVER.Process(target=_life, args=(paths.store(), log, ready))
        child.start()
        ready.close()
        hear.recv_bytes()
        child.join(dice.uniform(0, length) if kills < KILLS else 60)
        if child.is_alive():
            os.killpg(child.pid, signal.SIGKILL)
            child.join()
            kills += 1
        assert child.exitcode in (0, -signal.SIGKILL)
        after = entries()
        started = log.read_text().split() if log.exists() else []
        assert before.items() <= after.items(), "a finished step was lost or written again"
        assert len(started) == len(set(started)) and not set(started) & set(before), (
            "a finished step was computed twice"
        )
        assert tiny.fingerprint().items() <= undisturbed.items()
        if after.keys() == undisturbed.keys():
            assert tiny.fingerprint() == undisturbed
    assert tiny.fingerprint() == undisturbed
    store.sweep()
    assert not list((paths.store() / ".partial").iterdir())


BATCH = textwrap.dedent("""
    import leak_atlas.lab.run
    from leak_atlas import lab
    from tests.faults import tiny
    if __name__ == "__main__":
        leak_atlas.lab.run.ENOUGH = 0.0
        lab.realize(tiny.asked(), workers=2)
""")


@PROC
@pytest.mark.parametrize("whom", ["everyone", "the batch alone", "one process below it"])
def test_killed_with_workers_the_next_run_goes_on(
    whom: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.realize(tiny.asked())
    undisturbed = tiny.fingerprint()
    monkeypatch.setenv("LEAK_ATLAS_STORE", str(tmp_path / "killed"))
    script = tmp_path / "batch.py"
    script.write_text(BATCH)
    environment = dict(os.environ) | {"PYTHONPATH": f"{paths.ROOT}:{paths.ROOT}/lib"}
    with open(tmp_path / "output", "wb") as output:
        batch = subprocess.Popen(
            [sys.executable, script],
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        while batch.poll() is None and not list(store.listing()):
            time.sleep(0.005)
        children = below(batch.pid)
        assert children, (tmp_path / "output").read_text()
        before = entries()
        if whom == "everyone":
            os.killpg(batch.pid, signal.SIGKILL)
        else:
            os.kill(batch.pid if whom == "the batch alone" else children[-1], signal.SIGKILL)
        batch.wait(60)
        assert (batch.returncode == 0) == (whom == "one process below it"), (
            tmp_path / "output"
        ).read_text()
        assert before.items() <= entries().items()
        assert tiny.fingerprint().items() <= undisturbed.items()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(batch.pid, signal.SIGKILL)  # who outlived the batch, if anybody
        batch.wait()
    before = entries()
    lab.realize(tiny.asked())
    assert before.items() <= entries().items()
    assert tiny.fingerprint() == undisturbed
