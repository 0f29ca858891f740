"""How soon an explorer shows what is stored: 200 ms over the processor time of an answer. 1 is just
enough.

Every notebook under `notebooks/explore` at profile `smoke`, in a store of its own. Each control
moves to each value that is stored: a new figure is drawn, or what moves on the one that is there.
Then it moves back, and once more. What a choice that is not stored would cost is counted in another
process, and is not waited for here.
"""

from __future__ import annotations

import ast
import time
from statistics import median
from typing import Any

from bench.ratios import Ratio, row
from bench.scale import fresh_store
from leak_atlas.engine import files, paths
from leak_atlas.explore import base, click

ENOUGH = 0.2  # seconds


def opened(name: str) -> base.Explorer:
    """The explorer of a notebook, whose results are computed if they are not there."""
    place = paths.NOTEBOOKS / "explore" / f"{name}.py"
    given = paths.PARAMS / "smoke" / "explore" / f"{name}.yaml"
    space: dict[str, Any] = {}
    statements = ast.parse(place.read_text()).body
    for i, statement in enumerate(statements):
        if isinstance(statement, ast.ImportFrom) and not isinstance(
            statements[i - 1], ast.ImportFrom
        ):
            # the parameters are behind us
            space |= files.from_yaml(given.read_text(), given, dict[str, Any])
        exec(compile(ast.Module([statement], []), str(place), "exec"), space)
        if isinstance(app := space.get("app"), base.Explorer):
            return app
    raise AssertionError(f"{place} has no app")


def answers(app: base.Explorer) -> dict[str, list[float]]:
    """Seconds of processor time of stored choices: where a figure is drawn anew, where it is there,
    all once more.
    """
    found: dict[str, list[float]] = {
        "a new figure": [],
        "a figure that is there": [],
        "once more": [],
    }

    def moved(name: str, value: Any) -> float:
        start = time.process_time()
        app.choose(**{name: value})
        return time.process_time() - start

    for name, start in app.state.items():
        options = getattr(app._named[name], "options", ())
        for value in [each[1] if isinstance(each, tuple) else each for each in options]:
            before, first = app.view.sheet, moved(name, value)
            if value != start and app.view.sheet and not app.view.missing:
                found[
                    "a figure that is there" if app.view.sheet is before else "a new figure"
                ].append(first)
                moved(name, start)
                found["once more"].append(moved(name, value))
            app.restart()
    return found


def main() -> dict[str, Ratio]:
    """Print and return the ratios."""
    found: dict[str, Ratio] = {}
    click.Offer.tell = lambda self, wrong="": None  # type: ignore[method-assign]  # done aside
    with fresh_store():
        for name in sorted(place.stem for place in (paths.NOTEBOOKS / "explore").glob("*.py")):
            for what, spent in answers(opened(name)).items():
                if spent:
                    print(f"{name}, {what}: {len(spent)} answers, {1000 * median(spent):.0f} ms")
                    found |= row(f"explore/{name}, {what}", [ENOUGH / each for each in spent], 1.0)
    return found
