"""A second batch against the first: nothing is trained, and little time goes into planning and looking up."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.ratios import Ratio, row

ONLY = ["layers/own01*", "layers/fig12*"]


def _batch(outputs: Path, *more: str) -> float:
    """Seconds of one run, as a process of its own."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "lib.batch", "--profile", "quick", "--only", *ONLY, *more]
    subprocess.run(
        command, env=os.environ | {"LEAK_ATLAS_OUTPUTS": str(outputs)}, stdout=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - start


def _store(outputs: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (outputs / "store").glob("??/*/*")}


def main() -> dict[str, Ratio]:
    """Prints a line for each ratio and returns `{name: {ratio, low, high, required}}`."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = Path(folder)
        first = _batch(outputs)
        stored = _store(outputs)
        again = _batch(outputs)
        looks = [_batch(outputs, "--plan") for _ in range(5)]
        assert _store(outputs) == stored, "the second run wrote to the store"
        claims = [json.loads(path.read_text()) for path in outputs.glob("runs/quick/*/*.claims.json")]
        assert len(claims) == len(ONLY) and all(claims)
    print(f"first {first:.0f} s, second {again:.0f} s, of which planning and look-up {sorted(looks)[2]:.1f} s")
    found = row("second batch", [first / again], 1.0)
    return found | row("planning and look-up", [first / look for look in looks], 20.0)


if __name__ == "__main__":
    main()
