"""A quick real experiment to be disturbed, and processes to disturb."""

import hashlib
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from leak_atlas.engine import paths, store
from leak_atlas.recipe import Data, LiRA, Model, RandomHalves, RelaxLoss, Schedule, Setup

# Children start from a process that has torch in memory and no threads: a hundredth of a second
# instead of three.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["torch", "leak_atlas.lab.run", "tests.faults.tiny"])


def asked(models: int = 6, epochs: int = 1) -> list[Any]:
    """Trainings, one of their epochs, a second training on edits of the first, signals and an
    attack.
    """
    schedule = Schedule(epochs, 32)
    pool = Setup(
        Data(pixels=8), RandomHalves(40, test=20), Model("resnet10", width=2), schedule, models
    ).trained()
    private = pool.rewind("stage4").freeze("stage4").train(Schedule(1, 32), RelaxLoss(0.5))
    attack = private.attack(LiRA())
    return [attack, *attack.parents(), *private, *pool, pool.at("init"), pool.signals()]


def fingerprint() -> dict[str, str]:
    """SHA-256 of the arrays by key: stores that agree in these are the same, whenever they were
    made.
    """
    found = {}
    for key in store.listing():
        store.read(key)
        found[key] = hashlib.sha256((store.folder(key) / store.ARRAYS).read_bytes()).hexdigest()
    return found


NOTEBOOK = """# %% [markdown]
# # Title

# %% tags=["parameters"]
seed = 0  # seed

# %%
from leak_atlas import lab
from tests.faults import tiny
lab.realize(tiny.asked()[0])
"""


def page(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = NOTEBOOK) -> None:
    """Makes a profile `smoke` of one notebook, `one`, the only one there is."""
    for name, place in (("NOTEBOOKS", "notebooks"), ("PARAMS", "params/smoke")):
        (folder / place).mkdir(parents=True)
        monkeypatch.setattr(paths, name, folder / place.split("/")[0])
    (folder / "notebooks/one.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{paths.ROOT}:{paths.ROOT}/lib")  # its kernel's
