"""Recipes -> results: plan, deduplicate, run, collect. `realize` is the only place where heavy work happens.

When everything is stored, nothing here imports torch.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any

import numpy as np

from lib import code, store, told_in_a_cell
from lib.lab.plans import kinds, plan, steps_of, trainings
from lib.recipe import Edit, Step, Train

ALIKE = 0.8  # share of letters in common from which one name may be meant to be another

_planning: ContextVar[bool] = ContextVar("planning", default=False)


class Planned(Exception):
    """Raised by `realize` while a batch only asks what would be needed."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(f"{len(steps)} steps")
        self.steps = steps


class Failed(RuntimeError):
    """A step could not be computed; the message names it and says why."""

    def _render_traceback_(self) -> list[str]:
        return [told_in_a_cell(self)]


@contextmanager
def planning() -> Iterator[None]:
    """Inside, `realize` raises `Planned` with what it was asked for."""
    token = _planning.set(True)
    try:
        yield
    finally:
        _planning.reset(token)


class Result(dict[str, np.ndarray]):
    """The arrays of a step, by name; `meta` says when, where and how long."""

    def __init__(self, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        super().__init__(arrays)
        self.meta = meta

    @property
    def parts(self) -> list[str]:
        """Names of the parts of a network, where the step looks at parts."""
        return bytes(self["parts"]).decode().split("\n")


class Results:
    """What `realize` returns: the result of each step, read when it is looked at."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self._read: dict[str, Result] = {}

    def __getitem__(self, step: Step) -> Result:
        if step.key not in self._read:
            try:
                entry = store.read(step.key)
            except store.Corrupt as error:
                print(f"{error}: computed again", file=sys.stderr)
                store.discard(step.key)
                _run([step], None)
                entry = store.read(step.key)
            self._read[step.key] = Result(entry.arrays, entry.meta)
        return self._read[step.key]

    def meta(self, step: Step) -> dict[str, Any]:
        """When, where and how long; empty where the step itself is not here (weights stay where they were trained)."""
        try:
            return dict(store.describe(step.key)["meta"])
        except store.Gone:
            return {}
        except store.Corrupt as error:
            print(f"{error}: forgotten", file=sys.stderr)
            store.discard(step.key)
            return {}

    @property
    def trainings(self) -> list[Train]:
        """All trainings behind these results, parents first."""
        return trainings(self.steps)


def realize(*asked: Any, workers: int | None = None) -> Results:
    """Looks every step up in the store, runs what is missing in dependency order, returns the results.

    Takes steps, populations and pairs, nested in lists and dicts as the notebook likes. Raises `Failed` where a step
    cannot be computed and BadInput where it cannot be asked or stored; what is finished is kept.
    """
    steps = steps_of(asked)
    if _planning.get():
        raise Planned(steps)
    code.check_files(kinds(steps))
    if (kernel := sys.modules.get("IPython")) and (shell := kernel.get_ipython()):
        for why in misspelt(shell.user_ns.get("In", [])):
            print(f"leak atlas: {why}", file=sys.stderr)
    _run(steps, workers)
    return Results([step for step in steps if not isinstance(step, Edit)])


def misspelt(cells: Iterable[str]) -> Iterator[str]:
    """A line for each parameter that no cell has used so far and whose name is nearly that of one that is used.

    Parameters are what the last cell of nothing but literal assignments gives. A batch checks names against the
    notebook's own; in a kernel nobody knows which cell has which tag.
    """
    trees, given = list[ast.Module](), list[str]()
    for cell in cells:
        with suppress(SyntaxError, ValueError):  # a magic
            trees.append(ast.parse(cell))
    names = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)]
    used = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    for tree in reversed(trees):
        own = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        assigned = all(isinstance(line, ast.Assign) for line in tree.body)
        if assigned and len(own) > 1 and all(isinstance(name.ctx, ast.Store) for name in own):  # and no name is read
            given = [name.id for name in own]
            break
    for name in given:
        others = [other for other in given if other in used and not other.startswith(name)]
        if name not in used and (near := get_close_matches(name, others, 1, ALIKE)):
            yield f"nothing uses '{name}' so far; did you mean '{near[0]}'?"


def _run(steps: list[Step], workers: int | None) -> None:
    todo = plan([steps])
    if not todo.jobs:
        return
    from lib.lab.cluster import Where
    from lib.lab.run import present, reasons, reporter, run

    present(todo, Where(workers))  # before there is a bar
    if failed := run(todo, workers, reporter(todo)):
        raise Failed("; ".join(reasons(failed.values())))


__all__ = ["Failed", "Planned", "Result", "Results", "misspelt", "planning", "realize", "trainings"]
