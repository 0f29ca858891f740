"""Do this processor's digits equal those of others? Digests of everything that small notebooks
train and attack.

    python -m bench.portable                      # compares with bench/portable.json: a minute
    python -m bench.portable --write              # writes that file
    qemu-x86_64 -cpu Haswell-noTSX .venv/bin/python -m bench.portable layers/fig01    # emulated

The notebooks have the profile `smoke`. Together they hold every architecture but one of each kind,
all optimizers, most defences and attacks. All steps run in this process, so that an emulator that
runs one process is enough. `docs/processors.md` says where this was run.
"""

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from leak_atlas.engine import store
from leak_atlas.lab import jobs
from leak_atlas.lab.declare import declare, notebooks, parameters
from leak_atlas.lab.plans import plan

TABLE = Path(__file__).with_suffix(".json")
NOTEBOOKS = (
    "layers/fig01_stage_and_block_disparity",  # ResNet
    "layers/fig09_vgg_depth",
    "layers/fig11_atm_depth",
    "weights/tab03_vit",
    "weights/fig07_text",  # transformer
    "pruning/fig11_attacks_by_data",  # fully connected networks, SAMIA, BlindMI
    "time/optimizer",  # SGD, Adam, SAM
)


def digests(name: str) -> dict[str, str]:
    """Computes all steps of a notebook in this process; the digest of each kind of step's arrays."""
    (notebook,) = notebooks([name])
    planned = plan(declare(notebook, parameters(notebook, "smoke")))
    for outcome in jobs.do(planned.jobs.values()):
        if outcome.error:
            raise SystemExit(f"{name}: {outcome.name}: {outcome.error}")
    kinds: dict[str, hashlib._Hash] = {}
    for job in planned.jobs.values():
        for step in job.yields:
            kind = kinds.setdefault(type(step).__name__, hashlib.sha256())
            for array in store.read(step.key).arrays.values():
                kind.update(array.tobytes())
    return {kind: digest.hexdigest()[:16] for kind, digest in kinds.items()}


def compared(names: Iterable[str], write: bool) -> bool:
    """Prints each notebook's kinds that differ; whether all are equal."""
    expected = {} if write else json.loads(TABLE.read_text())
    measured = {}
    for name in names or NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["LEAK_ATLAS_STORE"] = folder
            measured[name] = digests(name)
        different = [k for k, d in measured[name].items() if expected.get(name, {}).get(k) != d]
        print(f"{name}: {', '.join(different) or 'equal'}", flush=True)
    if write:
        TABLE.write_text(json.dumps(measured, indent=1) + "\n")
    return measured == {name: expected.get(name) for name in measured}


if __name__ == "__main__":
    chosen = [word for word in sys.argv[1:] if word != "--write"]
    sys.exit(0 if compared(chosen, "--write" in sys.argv) or "--write" in sys.argv else 1)
