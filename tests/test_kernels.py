"""Kernels of a batch: a user's error is one line, and nothing is left of a batch that ends early."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import nbformat
import papermill
import pytest
from nbclient import NotebookClient

from leak_atlas.engine import paths

pytestmark = pytest.mark.notebook
PROC = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="looks for processes in Linux's /proc"
)


def executed(folder: Path, cell: str) -> None:
    text = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    text.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "Python 3"}
    nbformat.write(text, folder / "one.ipynb")
    papermill.execute_notebook(folder / "one.ipynb", folder / "one.ipynb", progress_bar=False)


def test_what_a_user_got_wrong_is_one_line(tmp_path: Path) -> None:
    """Where an error of Python's is pages long."""
    text = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(
                "from leak_atlas.recipe import Model\n\nmodel = Model('resnet11')"
            ),
            nbformat.v4.new_code_cell(
                "from leak_atlas import lab\nraise lab.Failed('Train 0123: its disk is full')"
            ),
        ]
    )
    done = NotebookClient(text, kernel_name="python3", allow_errors=True).execute()
    shown = [cell.outputs[-1].traceback for cell in done.cells]
    wrong = "leak atlas: Model.name cannot be 'resnet11'; did you mean 'resnet101'? (line 3 of this cell)"
    assert shown == [[wrong], ["leak atlas: Train 0123: its disk is full (line 2 of this cell)"]]


BATCH = textwrap.dedent("""
    import sys
    from pathlib import Path
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context
    from leak_atlas.engine.processes import end_with_parent
    from tests.test_kernels import executed
    if __name__ == "__main__":
        pool = ProcessPoolExecutor(1, get_context("spawn"), end_with_parent)
        cell = "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(300)"
        pool.submit(executed, Path("."), cell).result()
""")


def below(pid: int) -> list[int]:
    """All processes below one."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *below(child)]
    return found


@PROC
@pytest.mark.parametrize("how", ["killed", "interrupted", "its worker is killed"])
def test_nothing_is_left_of_a_batch_that_ends_early(how: str, tmp_path: Path) -> None:
    (tmp_path / "batch.py").write_text(BATCH)
    environment = dict(os.environ) | {
        "PYTHONPATH": f"{paths.ROOT}:{paths.ROOT}/lib",
        "JUPYTER_RUNTIME_DIR": str(tmp_path),
    }
    command = [sys.executable, "batch.py"]
    said = subprocess.DEVNULL
    batch = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=said, start_new_session=True
    )
    deadline = time.monotonic() + 90
    while not (tmp_path / "pid").exists():
        assert batch.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    kernel = int((tmp_path / "pid").read_text())
    every = below(batch.pid)
    assert kernel in every
    if how == "killed":
        batch.kill()
    elif how == "interrupted":
        os.killpg(batch.pid, signal.SIGINT)  # as Ctrl-C at a terminal
    else:
        worker = next(pid for pid in every if kernel in below(pid))
        os.kill(worker, signal.SIGKILL)
    batch.wait(30)
    while alive := [pid for pid in every if Path(f"/proc/{pid}/exe").exists()]:
        assert time.monotonic() < deadline, f"{alive} live on"
        time.sleep(0.05)
