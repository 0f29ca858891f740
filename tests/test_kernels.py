"""A kernel that is forked from a warm process is a kernel as any other: same outputs, same ends,
nothing left.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

from leak_atlas.engine import paths
from leak_atlas.engine.kernels import Warm

pytestmark = pytest.mark.notebook
PROC = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="looks for processes in Linux's /proc"
)


@pytest.fixture(autouse=True, scope="module")
def own_server() -> Iterator[None]:
    """Other tests fork from a server of theirs, and know no backend of matplotlib that a kernel
    wants.
    """
    forkserver._forkserver._stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "")
        del os.environ["MPLBACKEND"]
        yield
    forkserver._forkserver._stop()


def executed(manager: type, folder: Path, *cells: str) -> list[Any]:
    """What the cells put out."""
    text = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    text.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "Python 3"}
    path = folder / f"{manager.__name__}.ipynb"
    nbformat.write(text, path)
    done = papermill.execute_notebook(path, path, kernel_manager_class=manager, progress_bar=False)
    return [cell.outputs for cell in done.cells]


def printed(outputs: list[Any]) -> list[str]:
    return ["".join(output.get("text", "") for output in each).strip() for each in outputs]


def test_outputs_are_those_of_an_ordinary_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAK_ATLAS_SEEN", "smoke")
    cells = (
        "import multiprocessing, os, random, sys\nimport matplotlib.pyplot as plt, numpy as np, pandas as pd",
        "random.seed(0), np.random.seed(0)\nrandom.random(), np.random.random(), np.random.default_rng(0).random()",
        "plt.plot(np.arange(9) ** 2); plt.title('$x^2$')",
        "plt.get_backend(), dict(plt.rcParams)",
        "pd.DataFrame({'a': [1, 2]})",
        "from leak_atlas.engine import paths; from leak_atlas import report\nos.getcwd(), paths.outputs(), os.environ['LEAK_ATLAS_SEEN']",
        "'torch' in sys.modules, __name__, len(sys.argv), multiprocessing.parent_process()",
        "report.claims(report.Claim('one', 'It leaks less', 'AUC', above=0.0, ours=True, control='paired'))",
        "import subprocess; subprocess.run(['sh', '-c', 'echo below; echo aside >&2']); print('said', file=sys.stderr)",
    )
    warm, ordinary = (executed(kind, tmp_path, *cells) for kind in (Warm, AsyncKernelManager))
    assert json.dumps(warm, sort_keys=True) == json.dumps(ordinary, sort_keys=True)
    assert any("image/png" in output.get("data", ()) for output in warm[2])


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


def test_a_kernel_knows_nothing_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = "import numpy as np, os, matplotlib as mpl\nprint('mine' in dir(), mpl.rcParams['lines.linewidth'] == 7)"
    told = "print(np.random.random(), np.random.default_rng().random())\nprint(os.getpid(), os.environ['LEAK_ATLAS_SEEN'])"
    mark = "mine = np.mine = 1; mpl.rcParams['lines.linewidth'] = 7; import decimal; decimal.mine = 1; os.chdir('/')"
    seen = []
    for turn in ("first", "second"):
        monkeypatch.setenv("LEAK_ATLAS_SEEN", turn)
        seen.append(
            printed(
                executed(
                    Warm, tmp_path, look, "print(hasattr(np, 'mine'), os.getcwd())", told, mark
                )
            )
        )
    assert [each[:2] for each in seen] == 2 * [["False False", f"False {os.getcwd()}"]]
    first, second = (each[2].split() for each in seen)
    assert (first[-1], second[-1]) == ("first", "second")
    assert not set(first) & set(second), "one random state, or one process"


def test_a_kernel_that_dies_is_told_as_ever(tmp_path: Path) -> None:
    for kind in (Warm, AsyncKernelManager):
        for end in ("os._exit(9)", "os.kill(os.getpid(), 9)"):
            with pytest.raises(DeadKernelError, match="Kernel died"):
                executed(kind, tmp_path, f"import os\n{end}")


def test_what_a_kernel_leaves_to_its_end_is_done(tmp_path: Path) -> None:
    """`atexit`, and workers of its own."""
    file = tmp_path / "ended"
    work = (
        "from concurrent.futures import ProcessPoolExecutor as Pool\nimport multiprocessing as mp"
    )
    count = (
        "with Pool(2, mp.get_context('spawn')) as pool:\n    print(list(pool.map(abs, [-1, -2])))"
    )
    ends = f"import atexit, pathlib\natexit.register(pathlib.Path({str(file)!r}).touch)"
    assert printed(executed(Warm, tmp_path, work, count, ends))[1] == "[1, 2]"
    assert file.exists()


BATCH = textwrap.dedent("""
    import sys
    from pathlib import Path
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context
    from leak_atlas.engine.processes import end_with_parent
    from leak_atlas.engine.kernels import Warm
    from tests.test_kernels import executed
    if __name__ == "__main__":
        pool = ProcessPoolExecutor(1, get_context("spawn"), end_with_parent)
        cell = "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(300)"
        pool.submit(executed, Warm, Path("."), cell).result()
""")


def below(pid: int) -> list[int]:
    """All processes below one."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [
        each
        for task in tasks
        for child in task.read_text().split()
        for each in (int(child), *below(int(child)))
    ]


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
        assert batch.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    kernel, every = int((tmp_path / "pid").read_text()), below(batch.pid)
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
