"""A second batch against the first: nothing is trained, and little time goes into planning and looking up."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def main() -> dict[str, dict[str, float]]:
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
    found = {
        "second batch": {"ratio": first / again, "low": first / again, "high": first / again, "required": 1.0},
        "planning and look-up": {
            "ratio": first / sorted(looks)[2],
            "low": first / max(looks),
            "high": first / min(looks),
            "required": 20.0,
        },
    }
    for name, row in found.items():
        print(
            f"{name:<28} {row['ratio']:6.2f}x  ({row['low']:.2f}-{row['high']:.2f}), required >= {row['required']:.2f}x"
        )
    print(f"{'':<28} first {first:.0f} s, second {again:.0f} s, of which planning and look-up {sorted(looks)[2]:.1f} s")
    return found


if __name__ == "__main__":
    main()
