"""How soon an explorer shows what is stored: 200 ms over the processor time of an answer. 1 is just
enough.

Every notebook under `notebooks/explore` at profile `smoke`, in a store of its own. Each choice takes
each value that is stored, goes back, and takes it once more. What a browser then does is not in
here (tests/explore/test_browser.py measures it), nor the cost of a choice that is not stored, which
is counted in another process.
"""

from __future__ import annotations

import ast
import time
from statistics import median
from typing import Any

from bench.ratios import Ratio, row
from bench.scale import fresh_store
from leak_atlas.engine import files, paths
from leak_atlas.explore import click
from leak_atlas.explore.instrument import Instrument

ENOUGH = 0.2  # seconds


def opened(name: str) -> Instrument:
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
        if isinstance(app := space.get("app"), Instrument):
            return app
    raise AssertionError(f"{place} has no app")


def answers(app: Instrument) -> dict[str, list[float]]:
    """Seconds of processor time until a stored choice is sent to a browser: at first, and once more."""
    found: dict[str, list[float]] = {"at first": [], "once more": []}

    def moved(name: str, value: Any) -> float:
        start = time.process_time()
        app.choose(**{name: value})
        return time.process_time() - start

    app._text.value = '{"ask": "script"}'  # as a browser does
    for choice in app.of.choices:
        for label in choice.options:
            if label != choice.start and app.stored(choice, label):
                found["at first"].append(moved(choice.name, label))
                moved(choice.name, choice.start)
                found["once more"].append(moved(choice.name, label))
                moved(choice.name, choice.start)
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
