"""python -m bench [NAME ...]: all benchmarks, or some by name; ratios in one run, since machines
are noisy.
"""

import importlib
import json
import pkgutil
import sys
from pathlib import Path

import bench


def main(names: list[str]) -> int:
    here = (m.name for m in pkgutil.iter_modules(bench.__path__) if not m.name.startswith("_"))
    every = sorted(
        name for name in here if hasattr(importlib.import_module(f"bench.{name}"), "main")
    )
    unknown = sorted(set(names) - set(every))
    if unknown:
        print(
            f"leak atlas: there is no benchmark '{unknown[0]}'; there is: {', '.join(every)}",
            file=sys.stderr,
        )
        return 2
    found: dict[str, dict] = {}
    for name in names or every:
        print(f"{name}:", flush=True)
        found |= importlib.import_module(f"bench.{name}").main()
    missed = [
        name for name, row in found.items() if not row.get("met", row["ratio"] >= row["required"])
    ]
    Path("outputs").mkdir(exist_ok=True)
    Path("outputs/bench.json").write_text(json.dumps(found, indent=1))
    print(f"{len(found) - len(missed)} of {len(found)} ratios meet what is required")
    for name in missed:
        print(f"  not met: {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
