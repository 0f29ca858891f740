"""A cell that trains says at once what it costs, and is interrupted in one line; what is finished
is kept.
"""

import os
import re
import signal
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

from leak_atlas.engine import paths, store
from leak_atlas.engine.processes import uninterrupted
from leak_atlas.recipe import Data, Model, RandomHalves, Schedule, Setup
from tests.test_kernels import PROC, below

pytestmark = pytest.mark.notebook


class Kernel:
    """A kernel of JupyterLab's kind, and what its cells put out."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.client = client
        self.pid = manager.provisioner.pid

    def run(self, code: str, interrupt_at: str = "", after: float = 0.0) -> "Cell":
        """Runs a cell, and interrupts it once, so many seconds after its progress is as that
        pattern.
        """
        cell = Cell()
        asked = self.client.execute(textwrap.dedent(code))
        # as JupyterLab's button
        interrupt = threading.Timer(after, os.killpg, (self.pid, signal.SIGINT))
        while True:
            message = self.client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") == asked:
                if message["content"].get("execution_state") == "idle":
                    return cell
                cell.take(message["msg_type"], message["content"])
            now = cell.progress[-1].strip() if cell.progress else ""
            if interrupt_at and re.match(interrupt_at, now) and interrupt.ident is None:
                interrupt.start()


class Cell:
    """What a cell puts out: what it prints, what its bars say, lines of its error."""

    def __init__(self) -> None:
        self.printed = ""
        self.error = list[str]()
        self.progress = list[str]()

    def take(self, kind: str, content: dict[str, Any]) -> None:
        if kind == "stream":
            self.printed += content["text"]
        elif kind == "error":
            self.error += "\n".join(content["traceback"]).splitlines()
        elif kind == "display_data":
            self.progress.append(content["data"]["text/plain"])
        elif kind == "comm_msg" and isinstance(
            shown := content["data"].get("state", {}).get("value"), str
        ):
            self.progress.append(shown.replace("\u2007", " "))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    monkeypatch.setenv("PYTHONPATH", f"{paths.ROOT}:{paths.ROOT}/lib")
    manager, client = start_new_kernel()
    yield Kernel(manager, client)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


TRAINED = """
    import leak_atlas.lab.run
    from leak_atlas import lab
    from leak_atlas.recipe import Data, Model, RandomHalves, Schedule, Setup

    leak_atlas.lab.run.ENOUGH = {enough}  # seconds of work from which Dask's workers do it
    design = RandomHalves({pool}, test=20)
    setup = Setup(Data("fashion-mnist-small", 8), design, Model("resnet10", 4), Schedule({epochs}, 20), {networks})
    results = lab.realize(setup.trained(), workers={workers})
"""


SOME, NONE = r"[1-9]\d* of \d+ s of work", r".*\b0 of \d+ s of work"  # are done


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_cell_says_in_one_line_what_is_kept(workers: int, kernel: Kernel) -> None:
    code = TRAINED.format(pool=400, epochs=20, networks=12, workers=workers, enough=0)
    cell = kernel.run(code, SOME)
    (line,) = cell.error
    assert "stopped; what is finished is kept; run again to go on" in line
    design = RandomHalves(400, test=20)
    schedule = Schedule(20, 20)
    trained = Setup(
        Data("fashion-mnist-small", 8), design, Model("resnet10", 4), schedule, 12
    ).trained()
    assert 0 < sum(store.has(each.key) for each in trained) < 12
    assert not cell.printed


@PROC
def test_an_interrupt_while_workers_start_prints_nothing_and_leaves_none(kernel: Kernel) -> None:
    code = TRAINED.format(pool=400, epochs=20, networks=12, workers=2, enough=0)
    cell = kernel.run(code, NONE, after=1)
    (line,) = cell.error
    assert "stopped; " in line
    assert not cell.printed
    deadline = time.monotonic() + 30
    while b"spawn_main" in b"".join(
        Path(f"/proc/{pid}/cmdline").read_bytes() for pid in below(kernel.pid)
    ):
        assert time.monotonic() < deadline, "a worker lives on"
        time.sleep(0.1)


def test_an_interrupt_while_torch_is_imported_breaks_nothing(kernel: Kernel) -> None:
    kernel.run("""
        import os, signal, sys

        class Interrupt:
            def find_spec(self, name, *_):
                if name == "torch.nn.functional":
                    sys.meta_path.remove(self)
                    os.kill(os.getpid(), signal.SIGINT)

        sys.meta_path.insert(0, Interrupt())
    """)
    code = TRAINED.format(pool=40, epochs=1, networks=2, workers=1, enough=30)
    stopped = kernel.run(code)
    again = kernel.run(code)
    assert [line[:19] for line in stopped.error] == ["leak atlas: stopped"]
    assert not again.error


def test_an_interrupt_waits_for_what_must_not_be_cut(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        done.append("imported")
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with uninterrupted():
        done.append("nothing came")
    # where signals cannot be handled
    aside = threading.Thread(target=lambda: uninterrupted().__enter__())
    aside.start()
    aside.join()
    signal.signal(signal.SIGINT, before)
