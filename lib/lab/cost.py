"""What a training costs on this machine, measured in a process of its own."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np

from lib import BadInput
from lib.compute import Arrays, Of, compute
from lib.recipe import Cost

CHILD = "from lib.lab.cost import child; child()"


@compute.register(Cost)
def _(step: Cost, of: Of) -> Arrays:
    """As `lib.training.cost.measure` gives them, and `epochs`, how many the training has at most."""
    done = subprocess.run([sys.executable, "-c", CHILD], input=pickle.dumps(step), capture_output=True, check=False)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        why = f"its cost could not be measured: {last[0]} (exit code {done.returncode})"
        raise BadInput(why) if last[0].startswith("lib.BadInput") else RuntimeError(why)
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: np.asarray(value) for name, value in found.items()} | {"epochs": np.asarray(step.of.schedule.epochs)}


def child() -> None:
    """Runs in the other process: reads the step from its parent, and answers with a line of JSON."""
    import torch

    from lib.lab.training import prepared
    from lib.training.cost import measure

    torch.set_num_threads(1)
    step: Cost = pickle.load(sys.stdin.buffer)
    net, given = prepared(step.of)
    print(json.dumps({name: value.item() for name, value in measure(net, step.epochs, **given).items()}))
