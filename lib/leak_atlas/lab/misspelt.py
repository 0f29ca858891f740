"""Parameters of a kernel's cells whose names are misspelt."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches

ALIKE = 0.8  # share of letters in common from which one name may be meant to be another


def misspelt(cells: Iterable[str]) -> Iterator[str]:
    """A line for each parameter that no cell has used so far and whose name is nearly that of one
    that is used.

    Parameters are what the last cell of nothing but literal assignments gives. A batch checks names
    against the notebook's own; in a kernel nobody knows which cell has which tag.
    """
    used: set[str] = set()
    parameters: list[str] = []
    for cell in cells:
        with suppress(SyntaxError, ValueError):  # a magic
            tree = ast.parse(cell)
            names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
            loaded = {name.id for name in names if isinstance(name.ctx, ast.Load)}
            used |= loaded
            assigned = all(isinstance(line, ast.Assign) for line in tree.body)
            if assigned and not loaded and len(names) > 1:
                parameters = [name.id for name in names]
    for name in parameters:
        others = [other for other in parameters if other in used and not other.startswith(name)]
        near = get_close_matches(name, others, 1, ALIKE)
        if name not in used and near:
            yield f"nothing uses '{name}' so far; did you mean '{near[0]}'?"
