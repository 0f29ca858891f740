"""The code that a user writes for a recipe is in its key."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from leak_atlas import BadInput, lab
from leak_atlas.engine import store
from leak_atlas.lab import declare, run
from leak_atlas.lab.cluster import Where
from leak_atlas.lab.plans import plan
from leak_atlas.recipe import (
    Data,
    Model,
    Objective,
    Population,
    RandomHalves,
    Schedule,
    Setup,
)
from leak_atlas.recipe.core import KINDS

MINE = '''
from torch.nn import functional

from leak_atlas.attacks.case import Scored, infer
from leak_atlas.recipe import Attacker, Objective
from leak_atlas.training.objectives import loss


class Soft(Objective):
    """Smaller logits."""

    weight: float = 1.0


@loss.register(Soft)
def soft(objective, logits, labels, epoch):
    return functional.cross_entropy(logits, labels) + helped(objective, logits)


def helped(objective, logits):
    return objective.weight * logits.square().mean()


class Lead(Attacker):
    pass


@infer.register
def lead(attacker: Lead, case):
    mine, others = case.signals_on(lambda arrays, which: arrays["logits"][which].max(axis=1), case.pool)
    return Scored(mine - others.mean(axis=0))
'''


def pool(objective: Objective | None = None) -> Population:
    return Setup(
        Data(pixels=8), RandomHalves(40, test=20), Model("resnet10", width=2), Schedule(2, 20), 4
    ).trained(objective)


def logits(models: Population, **how: Any) -> np.ndarray:
    return lab.realize(models.signals(), **how)[models.signals()[0]]["logits"]


def test_an_edited_loss_changes_key_and_numbers_and_a_comment_neither(
    mine: Callable[[str], ModuleType],
) -> None:
    first = pool(mine(MINE).Soft())
    before = logits(first)
    told = MINE.replace(
        '"""Smaller logits."""', '"""Of other words."""\n\n    # a comment'
    ).replace("    return", "\n    return")
    again = pool(mine(told).Soft())
    assert first[0].key == again[0].key
    assert pool()[0].key not in (first[0].key, again[0].key)
    # in a helper of the loss
    edited = pool(mine(MINE.replace("logits.square()", "2 * logits.square()")).Soft())
    assert edited[0].key != first[0].key
    assert not np.array_equal(logits(edited), before)
    np.testing.assert_array_equal(logits(pool(mine(MINE).Soft())), before)


def test_workers_compute_what_this_process_does(
    mine: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = mine(MINE)
    models = pool(own.Soft())
    attack = models.attack(own.Lead())
    monkeypatch.setattr(run, "ENOUGH", 0.0)
    scores = lab.realize(attack, workers=2)[attack]["scores"]
    for step in (*models, *models.signals(), attack):
        store.discard(step.key)
    np.testing.assert_array_equal(lab.realize(attack, workers=1)[attack]["scores"], scores)


def test_a_recipe_from_before_an_edit_is_refused(mine: Callable[[str], ModuleType]) -> None:
    """Its class is the old one, and so is its key; what is registered for it since is not what the
    key tells.
    """
    own = mine(MINE)
    models = pool(own.Soft())
    assert models[0].key
    exec(
        compile(
            "from leak_atlas.training.objectives import loss\nloss.register(Soft)(soft)",
            __file__,
            "exec",
        ),
        vars(own),
    )
    with pytest.raises(lab.Failed, match="the code of Soft has changed"):
        lab.realize(models[0])
    assert not store.has(models[0].key)


def test_a_file_that_was_edited_and_not_imported_again_is_told(
    mine: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    models = pool(mine(MINE).Soft())
    lab.realize(models[0])
    (tmp_path / "mine.py").write_text(f"# a comment\n{MINE}")
    lab.realize(models[0])
    (tmp_path / "mine.py").write_text(MINE.replace("square", "abs"))
    with pytest.raises(
        BadInput,
        match=r"mine.py has been edited since Soft was imported from it: restart the kernel",
    ):
        lab.realize(models[0])


CELL = """
# %% [markdown]
# # Own

# %% tags=["parameters"]

# %%
BODY

# %%
from leak_atlas import lab
from tests.test_code import pool

lab.realize(pool(Soft()))
"""


def in_cells(tmp_path: Path, text: str) -> list[Any]:
    path = tmp_path / "own.py"
    path.write_text(CELL.replace("BODY", text))
    return declare.declare(declare.Notebook("own", path), {})


def test_a_kind_in_a_cell_is_known_by_its_cell_and_stays_in_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = in_cells(tmp_path, MINE)
    other = in_cells(tmp_path, MINE.replace("logits.square()", "logits.abs()"))
    told = in_cells(
        tmp_path, MINE.replace("    return objective", "    # words\n    return objective")
    )
    assert first[0].key == told[0].key != other[0].key
    monkeypatch.setattr(run, "ENOUGH", 0.0)
    monkeypatch.setattr(run, "connected", None)
    lab.realize(first[:1], workers=2)
    with pytest.raises(
        BadInput, match="Soft stands in a notebook's cell, which no worker can import"
    ):
        run.run(plan([other]), Where(scheduler="tcp://127.0.0.1:1"))


def test_a_module_may_lie_beside_its_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: Callable[[str], ModuleType]
) -> None:
    key = pool(mine(MINE).Soft())[0].key
    del sys.modules["mine"]
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(tmp_path)])
    monkeypatch.setattr(declare.paths, "NOTEBOOKS", tmp_path)
    assert in_cells(tmp_path, "from mine import Soft")[0].key == key
    assert [one.name for one in declare.notebooks()] == ["own"]


def test_a_name_of_the_library_is_refused(mine: Callable[[str], ModuleType]) -> None:
    with pytest.raises(BadInput, match="PPB exists in the library"):
        mine(MINE.replace("Soft", "PPB"))
    assert KINDS["PPB"].__module__ == "leak_atlas.recipe.objectives"


def test_what_cannot_be_read_has_no_key() -> None:
    space: dict[str, Any] = {"__name__": "nowhere"}
    exec("from leak_atlas.recipe import Objective\nclass Unread(Objective): pass", space)
    with pytest.raises(BadInput, match="the source of Unread cannot be read"):
        _ = pool(space["Unread"]())[0].key
