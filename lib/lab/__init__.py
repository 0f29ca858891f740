"""Recipes -> results: plan, deduplicate, run, collect. `realize` is the only place where heavy work happens.

When everything is stored, nothing here imports torch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from lib import BadInput, code, store
from lib.lab.plans import kinds, plan, steps_of, trainings
from lib.recipe import At, Edit, Step, Train

_planning: ContextVar[bool] = ContextVar("planning", default=False)


class Planned(Exception):
    """Raised by `realize` while a batch only asks what would be needed."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(f"{len(steps)} steps")
        self.steps = steps


class Failed(RuntimeError):
    """A step could not be computed; the message names it and says why."""


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
        return store.describe(step.key)["meta"] if store.has(step.key) else {}

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
    _run(steps, workers)
    return Results([step for step in steps if not isinstance(step, Edit)])


def _run(steps: list[Step], workers: int | None) -> None:
    todo = plan([steps])
    if not todo.jobs:
        return
    from lib.lab.run import reasons, reporter, run

    if failed := run(todo, workers, reporter(todo)):
        raise Failed("; ".join(reasons(failed.values())))


__all__ = ["At", "BadInput", "Failed", "Planned", "Result", "Results", "planning", "realize", "trainings"]
