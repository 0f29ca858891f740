"""A second batch against the first: nothing is trained, and little time goes into planning, looking
up and kernels.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.ratios import Ratio, row

ONLY = ["layers/own01*", "layers/fig12*"]
SMALL = ["reproduce", "layers/fig0*", "--profile", "smoke", "--workers", "1"]
# Prints what a command takes. Who outlives its parent becomes our child (PR_SET_CHILD_SUBREAPER),
# and is waited for.
COUNTED = """
import ctypes, os, resource, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
try:
    while os.wait():
        pass
except ChildProcessError:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime)
"""


def _batch(outputs: Path, command: str = "reproduce") -> float:
    """Seconds of one run, as a process of its own."""
    start = time.perf_counter()
    line = [sys.executable, "-m", "leak_atlas", command, *ONLY]
    subprocess.run(
        line,
        env=os.environ | {"LEAK_ATLAS_OUTPUTS": str(outputs)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - start


def _store(outputs: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (outputs / "store").glob("??/*/*")}


def _core_seconds(outputs: Path, *module: str | Path) -> float:
    """User and system time of a module's command and of all processes below it. Linux only."""
    command = [sys.executable, "-c", COUNTED, sys.executable, "-m", *module]
    environment = os.environ | {"LEAK_ATLAS_OUTPUTS": str(outputs), "OMP_NUM_THREADS": "1"}
    return float(
        subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    )


def _notebooks(outputs: Path, rounds: int = 3) -> list[float]:
    """Core-seconds of executing notebooks whose results are stored: stock papermill, one by one,
    over a batch.
    """
    _core_seconds(outputs, "leak_atlas", *SMALL)
    found = []
    for _ in range(rounds):
        batch = _core_seconds(outputs, "leak_atlas", *SMALL)
        executed = sorted(outputs.glob("runs/smoke/*/*.ipynb"))
        stock = sum(
            _core_seconds(outputs, "papermill", one, outputs / "again.ipynb") for one in executed
        )
        print(
            f"  {len(executed)} notebooks: papermill {stock:.1f} core-seconds, a batch with its pages {batch:.1f}"
        )
        found.append(stock / batch)
    return found


def main() -> dict[str, Ratio]:
    """Prints a line for each ratio and returns `{name: {ratio, low, high, required}}`."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = Path(folder)
        first = _batch(outputs)
        stored = _store(outputs)
        again = _batch(outputs)
        looks = [_batch(outputs, "plan") for _ in range(5)]
        assert _store(outputs) == stored, "the second run wrote to the store"
        claims = [
            json.loads(path.read_text()) for path in outputs.glob("runs/quick/*/*.claims.json")
        ]
        assert len(claims) == len(ONLY) and all(claims)
        notebooks = _notebooks(outputs)
    print(
        f"first {first:.0f} s, second {again:.0f} s, of which planning and look-up {sorted(looks)[2]:.1f} s"
    )
    found = row("second batch", [first / again], 1.0)
    found |= row("planning and look-up", [first / look for look in looks], 20.0)
    return found | row("notebooks", notebooks, 1.5)


if __name__ == "__main__":
    main()
