"""Kernels of a batch: each is forked from a process that has imported what notebooks use, once for
many of them.

To Jupyter this is a provisioner, one of several ways to start a kernel; what runs in it is
IPython's kernel as ever.
"""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
import os
import sys
from contextlib import suppress
from multiprocessing import process
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

from leak_atlas.engine.processes import end_with_parent

# No torch: most notebooks only look things up, and its threads would not survive a fork. No
# `leak_atlas.report.figures`: its style is the style of every figure once it is imported.
WARM = [
    "ipykernel.kernelapp",
    "jinja2",
    "leak_atlas.audit",
    "leak_atlas.engine.kernels",
    "leak_atlas.lab.run",
    "leak_atlas.report.lineage",
    "leak_atlas.localization.disparity",
    "matplotlib.backends.backend_agg",
    "seaborn",
]
# of matplotlib, which asks when it is imported
INLINE = "module://matplotlib_inline.backend_inline"


class Warm(AsyncKernelManager):
    """Starts its kernel by a fork where that is safe: not on macOS once numpy is imported, and not
    on Windows.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if sys.platform == "linux":
            self.provisioner = Forked(kernel_spec=self.kernel_spec, parent=self)


class Forked(LocalProvisioner):
    """A kernel as a child of this process' fork server (of `multiprocessing`), which starts with
    the first.
    """

    process: Any = None
    pgid: Any = None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        os.environ.setdefault("MPLBACKEND", INLINE)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(WARM)
        fork = context.Process(target=kernel, args=(cmd[cmd.index("-f") :], kwargs["env"]))
        fork.start()
        self.process, self.pid, self.pgid = fork, fork.pid, fork.pid
        return self.connection_info

    async def poll(self) -> int | None:
        return self.process.exitcode if self.process else 0

    async def wait(self) -> int | None:
        while (code := await self.poll()) is None:
            await asyncio.sleep(0.02)
        self.process = None
        return code

    async def send_signal(self, signum: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pgid, signum)


def kernel(arguments: list[str], environment: dict[str, str]) -> None:
    """Runs in the fork: a kernel in a session of its own, with the environment that it was given."""
    import numpy as np
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()  # Ctrl-C is for the batch, which ends its kernels
    os.environ.clear()
    os.environ.update(environment)
    sys.path += [
        each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each not in sys.path
    ]
    end_with_parent()
    process._parent_process = None  # type: ignore[attr-defined]  # what runs here may start workers of its own
    np.random.seed()  # noqa: NPY002 (a state that all forks would share)
    sys.argv = ["ipykernel_launcher", *arguments]
    IPKernelApp.launch_instance(arguments, parent_handle=os.getppid())
    atexit._run_exitfuncs()  # a fork ends without them
