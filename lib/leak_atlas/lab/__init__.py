"""Recipes -> results: `realize` plans what the store lacks, runs it, and returns the results.

`compare` and `probe` declare what a comparison of variants needs, and call it. When everything is
stored, nothing here imports torch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from numpy.typing import NDArray

from leak_atlas import BadInput, line_of_cell
from leak_atlas.engine import store
from leak_atlas.engine.digests import check_files
from leak_atlas.lab.plans import kinds, plan, steps_of, trainings
from leak_atlas.recipe import Edit, Step, Train

_planning: ContextVar[bool] = ContextVar("planning", default=False)


class Planned(Exception):
    """Raised by `realize` while a batch only asks what would be needed."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(f"{len(steps)} steps")
        self.steps = steps


class Stopped(KeyboardInterrupt):
    """An interrupt has ended a run; what is finished is kept."""

    def _render_traceback_(self) -> list[str]:
        return [f"leak atlas: {self}"]


class Failed(RuntimeError):
    """A step could not be computed; the message names it and says why."""

    def _render_traceback_(self) -> list[str]:
        return [line_of_cell(self)]


@contextmanager
def planning() -> Iterator[None]:
    """Inside, `realize` raises `Planned` with what it was asked for."""
    token = _planning.set(True)
    try:
        yield
    finally:
        _planning.reset(token)


class Result(dict[str, NDArray]):
    """The arrays of a step, by name; `meta` says when, where and how long."""

    def __init__(self, arrays: dict[str, NDArray], meta: dict[str, Any]) -> None:
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
                _compute([step])
                entry = store.read(step.key)
            except store.Gone as error:
                kind = type(step).__name__
                raise BadInput(
                    f"there is no result of {kind} {step.key[:12]}: give the step to realize, or to "
                    "a comparison's `also`"
                ) from error
            self._read[step.key] = Result(entry.arrays, entry.meta)
        return self._read[step.key]

    def meta(self, step: Step) -> dict[str, Any]:
        """When, where and how long; empty where the step itself is not here (weights stay where
        they were trained).
        """
        try:
            return dict(store.describe(step.key)["meta"])
        except (store.Gone, store.Corrupt):
            return {}

    @property
    def trainings(self) -> list[Train]:
        """All trainings behind these results, parents first."""
        return trainings(self.steps)


def realize(*recipes: Any, workers: int | None = None) -> Results:
    """Looks every step up in the store, runs what is missing in dependency order, returns the
    results.

    Takes steps, populations and pairs, nested in lists and dicts as the notebook likes. Raises
    `Failed` if a step cannot be computed, BadInput if it cannot be asked or stored, and
    `Stopped`, a KeyboardInterrupt, where it is interrupted; what is finished is kept.
    """
    steps = steps_of(recipes)
    if _planning.get():
        raise Planned(steps)
    check_files(kinds(steps))
    _compute(steps, workers)
    return Results([step for step in steps if not isinstance(step, Edit)])


def _compute(steps: list[Step], workers: int | None = None) -> None:
    """Plans and runs what the store lacks of some steps."""
    try:
        todo = plan([steps])
        if not todo.jobs:
            return
        from leak_atlas.lab.run import progress, reasons, run

        with progress(todo) as report:
            failed = run(todo, workers, report)
    except KeyboardInterrupt:
        raise Stopped("stopped; what is finished is kept; run again to go on") from None
    if failed:
        raise Failed("; ".join(reasons(failed.values())))


from leak_atlas.lab.probes import probe  # noqa: E402  (it calls `realize`)
from leak_atlas.lab.variants import (  # noqa: E402  (it calls `realize`)
    Checkpoint,
    compare,
    member_losses,
    operations,
)

__all__ = [
    "Checkpoint",
    "Failed",
    "Planned",
    "Result",
    "Results",
    "Stopped",
    "compare",
    "member_losses",
    "operations",
    "planning",
    "probe",
    "realize",
    "trainings",
]
