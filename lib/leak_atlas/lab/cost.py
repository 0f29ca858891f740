"""What trainings cost on this machine, measured in rounds, in which they take turns."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import subprocess
import sys
from typing import Any

import numpy as np

from leak_atlas import BadInput
from leak_atlas.engine.compute import Arrays, Of, compute
from leak_atlas.recipe import Cost, Train

CHILD = "from leak_atlas.lab.cost import child; child()"


@compute.register(Cost)
def _(step: Cost, of: Of) -> Arrays:
    """As `leak_atlas.training.cost` gives them, and `epochs`, how many each training has at most."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input=pickle.dumps(step), capture_output=True, check=False
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        why = f"its cost could not be measured: {last[0]} (exit code {done.returncode})"
        raise BadInput(why) if last[0].startswith("leak_atlas.BadInput") else RuntimeError(why)
    found = json.loads(done.stdout.splitlines()[-1])
    arrays = {name: np.asarray(value) for name, value in found.items()}
    return arrays | {"epochs": np.array([one.schedule.epochs for one in step.of])}


def child() -> None:
    """Runs in the other process: reads the step from its parent, and answers with a line of JSON.

    It has loaded what its own children need and uses none of it, so that these start at once, and
    all alike.
    """
    import torch
    import torch._dynamo  # an optimizer's first step asks for it

    from leak_atlas.lab import training  # noqa: F401
    from leak_atlas.training import cost

    torch.set_num_threads(1)
    step: Cost = pickle.load(sys.stdin.buffer)
    way = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with way.Pool(1, maxtasksperchild=1) as anew:
        counts = [anew.apply(_ask, (cost.counted, one)) for one in step.of]
        times, peaks = [], []
        for _ in range(step.rounds):
            times.append(anew.apply(_time, (step,)))
            peaks.append([anew.apply(_ask, (cost.peak, one)) for one in step.of])
    measured: dict[str, Any] = {name: [each[name] for each in counts] for name in counts[0]}
    measured |= {name: [one[name] for one in times] for name in times[0]}
    measured["peak_bytes"] = [[each["peak_bytes"] for each in one] for one in peaks]
    print(json.dumps(measured))


def _ask(measure: Any, of: Train) -> dict[str, float]:
    import torch

    from leak_atlas.lab.training import prepared

    torch.set_num_threads(1)
    net, given = prepared(of)
    found: dict[str, float] = measure(net, **given)
    return found


def _time(step: Cost) -> dict[str, list[float]]:
    """All trainings in turn, in one process."""
    import torch

    from leak_atlas.lab.training import prepared
    from leak_atlas.training import cost

    torch.set_num_threads(1)
    return cost.timed([prepared(one) for one in step.of], step.epochs)
