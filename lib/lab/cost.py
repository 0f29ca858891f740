"""What trainings cost on this machine, measured in turn, each time in a process of its own."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import subprocess
import sys
from typing import Any

import numpy as np

from lib import BadInput
from lib.compute import Arrays, Of, compute
from lib.recipe import Cost, Train

CHILD = "from lib.lab.cost import child; child()"


@compute.register(Cost)
def _(step: Cost, of: Of) -> Arrays:
    """As `lib.training.cost` gives them, and `epochs`, how many each training has at most."""
    done = subprocess.run([sys.executable, "-c", CHILD], input=pickle.dumps(step), capture_output=True, check=False)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        why = f"its cost could not be measured: {last[0]} (exit code {done.returncode})"
        raise BadInput(why) if last[0].startswith("lib.BadInput") else RuntimeError(why)
    found = json.loads(done.stdout.splitlines()[-1])
    arrays = {name: np.asarray(value) for name, value in found.items()}
    return arrays | {"epochs": np.array([one.schedule.epochs for one in step.of])}


def child() -> None:
    """Runs in the other process: reads the step from its parent, and answers with a line of JSON.

    It has loaded what its own children need and uses none of it, so that these start at once, and all alike.
    """
    import torch
    import torch._dynamo  # an optimizer's first step asks for it

    from lib.lab import training  # noqa: F401
    from lib.training import cost

    torch.set_num_threads(1)
    step: Cost = pickle.load(sys.stdin.buffer)
    way = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with way.Pool(1, maxtasksperchild=1) as anew:
        counts = [anew.apply(_ask, (cost.counted, one)) for one in step.of]
        rounds = [[anew.apply(_ask, (cost.timed, one, step.epochs)) for one in step.of] for _ in range(step.rounds)]
    told: dict[str, Any] = {name: [each[name] for each in counts] for name in counts[0]}
    told |= {name: [[each[name] for each in one] for one in rounds] for name in rounds[0][0]}
    print(json.dumps(told))


def _ask(measure: Any, of: Train, *more: int) -> dict[str, float]:
    import torch

    from lib.lab.training import prepared

    torch.set_num_threads(1)
    net, given = prepared(of)
    found: dict[str, float] = measure(net, *more, **given)
    return found
