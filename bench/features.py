"""Feature distances: reducing each part's maps at once, against storing the maps of both networks
and comparing then.

2,000 random 32 x 32 images through two ResNet-18 of width 16, one thread. Each measurement runs in
a process of its own, in turn: the operating system keeps the peak of a process's resident memory,
which cannot be reset. "Extra" is that peak above what was resident before the first image, so that
libraries, weights and images do not count, and everything that the computation allocates does,
inside torch and outside. Time is processor time, imports left out.

Ratios are the storing way over ours: memory at least 8; time at least 1 / 1.1, so that ours takes
at most 1.1 times as long.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.ratios import Ratio, row

IMAGES, REPEATS = 2000, 5
REQUIRED = {"feature distance: memory": 8.0, "feature distance: time": 1 / 1.1}


def _storing(a: Any, b: Any, data: Any, index: Any) -> dict[str, Any]:
    """Hooks keep the output of every part for every image; the comparison is ours, after all maps
    are stored.
    """
    import torch

    from leak_atlas.data import augmentation
    from leak_atlas.localization import layers
    from leak_atlas.training.answers import scoring

    names = a.names()
    kept: list[list[Any]] = []
    for net in (a, b):
        maps: dict[str, list[Any]] = {name: [] for name in names}
        hooks = [
            part.register_forward_hook(lambda _, __, out, into=maps[name]: into.append(out))
            for name, part in net.named_children()
        ]
        with scoring(net):
            for rows in index.split(layers.BATCH):
                net(augmentation.plain(data, rows))
        for hook in hooks:
            hook.remove()
        kept.append([maps[name] for name in names])
    with torch.inference_mode():
        pairs = zip(*kept, strict=True)
        batches = [[layers.compare_maps(p, q) for p, q in zip(*two, strict=True)] for two in pairs]
        table = torch.stack([torch.cat(each, 1) for each in batches])
    return dict(
        zip(
            ("euclidean", "direction", "length_a", "length_b"),
            table.float().numpy().swapaxes(0, 1),
            strict=True,
        )
    )


def _memory(which: str) -> int:
    """Bytes of this process in memory: "VmRSS" now, "VmHWM" at the most.

    From /proc: the peak of getrusage is that of the parent process where that was larger before the
    exec.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{which}:")) * 1024


def measure(way: str) -> dict[str, float]:
    """Seconds and extra peak bytes of one way, and a checksum, in this process."""
    import torch

    from leak_atlas.data.resident import Resident
    from leak_atlas.localization import layers
    from leak_atlas.models import build
    from leak_atlas.recipe import Model

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (IMAGES, 32, 32, 3), generator=generator, dtype=torch.uint8)
    half = torch.full((3,), 0.5)
    data = Resident(images, torch.zeros(IMAGES, dtype=torch.int64), half, half / 2, IMAGES, 10)
    nets = [build(Model("resnet18", width=16), 3, 10, seed) for seed in (0, 1)]
    compute: Any = {"storing": _storing, "streaming": layers.distances}[way]
    before, start = _memory("VmRSS"), time.process_time()
    found = compute(*nets, data, torch.arange(IMAGES))
    seconds = time.process_time() - start
    return {
        "seconds": seconds,
        "extra": _memory("VmHWM") - before,
        "sum": float(sum(values.sum() for values in found.values())),
    }


def main() -> dict[str, Ratio]:
    """Prints a line for each ratio and returns `{name: {ratio, low, high, required}}`: median,
    least and greatest.
    """
    runs: dict[str, list[dict[str, float]]] = {"storing": [], "streaming": []}
    for repeat in range(REPEATS):
        for way in sorted(runs, reverse=bool(repeat % 2)):
            command = [sys.executable, "-m", "bench.features", way]
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
            )
            runs[way].append(json.loads(done.stdout))
    totals = {run["sum"] for each in runs.values() for run in each}
    assert max(totals) - min(totals) <= 1e-6 * max(totals), f"the two ways differ: {totals}"
    found: dict[str, Ratio] = {}
    for (name, required), what in zip(REQUIRED.items(), ("extra", "seconds"), strict=True):
        ratios = [
            s[what] / o[what] for s, o in zip(runs["storing"], runs["streaming"], strict=True)
        ]
        found |= row(name, ratios, required)
        scale, unit = (2**20, "MiB") if what == "extra" else (1, "s")
        ours, theirs = (
            median(run[what] for run in runs[way]) / scale for way in ("streaming", "storing")
        )
        print(f"  streaming {ours:.1f} {unit}, storing {theirs:.1f} {unit}")
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
