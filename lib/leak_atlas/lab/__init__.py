"""Recipes -> results: plan, run, read. `realize` is the only place where heavy work
happens; `compare` declares what a comparison of variants needs, and calls it.

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

from leak_atlas import told_in_a_cell
from leak_atlas.engine import digests as code
from leak_atlas.engine import store
from leak_atlas.lab.plans import Plan, kinds, plan, steps_of, trainings
from leak_atlas.recipe import Edit, Step, Train

ALIKE = 0.8  # share of letters in common from which one name may be meant to be another

_planning: ContextVar[bool] = ContextVar("planning", default=False)


class Planned(Exception):
    """Raised by `realize` while a batch only asks what would be needed."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(f"{len(steps)} steps")
        self.steps = steps


class Stopped(KeyboardInterrupt):
    """An interrupt has ended a run; the message says what of its work is kept."""

    def _render_traceback_(self) -> list[str]:
        return [f"leak atlas: {self}"]


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
        """When, where and how long; empty where the step itself is not here (weights stay where
        they were trained).
        """
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
    """Looks every step up in the store, runs what is missing in dependency order, returns the
    results.

    Takes steps, populations and pairs, nested in lists and dicts as the notebook likes. Raises
    `Failed` where a step cannot be computed, BadInput where it cannot be asked or stored, and
    `Stopped`, a KeyboardInterrupt, where it is interrupted; what is finished is kept.
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
    """A line for each parameter that no cell has used so far and whose name is nearly that of one
    that is used.

    Parameters are what the last cell of nothing but literal assignments gives. A batch checks names
    against the notebook's own; in a kernel nobody knows which cell has which tag.
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
        # and no name is read
        if assigned and len(own) > 1 and all(isinstance(name.ctx, ast.Store) for name in own):
            given = [name.id for name in own]
            break
    for name in given:
        others = [other for other in given if other in used and not other.startswith(name)]
        if name not in used and (near := get_close_matches(name, others, 1, ALIKE)):
            yield f"nothing uses '{name}' so far; did you mean '{near[0]}'?"


def _run(steps: list[Step], workers: int | None) -> None:
    """Computes what is missing of some steps. Raises Failed, BadInput, and Stopped where it is
    interrupted.
    """
    todo = None
    try:
        todo = _planned(steps)
        failed = _done(todo, workers) if todo.jobs else []
    except KeyboardInterrupt:
        raise Stopped(_kept(todo)) from None
    if failed:
        raise Failed("; ".join(failed))


def _planned(steps: list[Step]) -> Plan:
    """What is missing of some steps. Pricing it takes seconds the first time, and a kernel says so
    meanwhile.
    """
    if all(step.stored and store.has(step.key) for step in steps):
        return plan([steps])
    from leak_atlas.lab.run import counting

    with counting():
        return plan([steps])


def _done(todo: Plan, workers: int | None) -> list[str]:
    """Does what a plan holds and shows how it gets on. Returns what went wrong."""
    from leak_atlas.lab.cluster import Where
    from leak_atlas.lab.run import present, progress, reasons, run, width

    where = Where(workers)
    present(todo, where)  # before there is a bar
    with progress(todo, width(todo, where)) as took:
        return reasons(run(todo, where, took).values())


def _kept(todo: Plan | None) -> str:
    """What a run that was stopped leaves: the price of its finished jobs, of the price of all."""
    if todo is None:
        return "stopped before anything was begun; run again to begin"
    done = [
        job.seconds for job in todo.jobs.values() if all(store.has(step.key) for step in job.yields)
    ]
    return f"stopped; {sum(done):.0f} of {todo.seconds:.0f} s kept; run again to go on"


from leak_atlas.lab.variants import Checkpoint, compare  # noqa: E402  (it calls `realize`)

__all__ = [
    "Checkpoint",
    "Failed",
    "Planned",
    "Result",
    "Results",
    "Stopped",
    "compare",
    "misspelt",
    "planning",
    "realize",
    "trainings",
]
