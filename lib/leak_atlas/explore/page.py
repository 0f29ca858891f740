"""An explorer on a page without a kernel: its stored states, in one packet that `player.js`
unfolds.

A packet lies in a file next to the executed notebook (`live.packet`). Rows that several states
share, as the pictures of samples, are in it once.
"""

from __future__ import annotations

import base64
import gzip
import json
from contextlib import suppress
from itertools import product
from typing import Any

from leak_atlas import BadInput
from leak_atlas.explore.description import Description, Rows, State, figure


def packet(of: Description, state: State) -> str:
    """The states that `of` publishes, from this one on, and its hint; those that are not stored are
    left out.
    """
    pool: dict[str, int] = {}  # the place of each row
    states = []
    for label, changed in of.published().items():
        with suppress(BadInput):
            if shown := _shown(of, state | changed, pool):
                states.append({"label": label} | shown)
    rows = ",".join(pool)
    hint = json.dumps(of.hint)
    text = f'{{"pool": [{rows}], "states": {json.dumps(states)}, "hint": {hint}}}'
    packed = gzip.compress(text.encode(), mtime=0)
    return base64.b64encode(packed).decode()


def _shown(of: Description, state: State, pool: dict[str, int]) -> dict[str, Any] | None:
    """What the page shows of a state, whose rows join the pool; None where nothing is stored."""
    rows = of.rows(state)
    if not rows:
        return None
    shown = figure(of, state, rows)
    sentences = _sentences(of, state, rows, shown)
    places: dict[str, list[int]] = {}
    for name, own in rows.items():
        texts = [json.dumps(row) for row in own]
        places[name] = [pool.setdefault(text, len(pool)) for text in texts]
    return {"figure": shown | {"rows": places}} | sentences


def _sentences(of: Description, state: State, rows: Rows, shown: dict[str, Any]) -> dict[str, Any]:
    """What is said wherever the visible pointers stand.

    `said` has the indices of `sentences` for each combination of the pointers' values; the last
    pointer changes first.
    """
    pointers = [each for each in shown["pointers"] if not each["hidden"]]
    names = [each["name"] for each in pointers]
    pool: dict[str, int] = {}  # the place of each sentence
    said = []
    for values in product(*(each["values"] for each in pointers)):
        at = shown["at"] | dict(zip(names, values, strict=True))
        said.append([pool.setdefault(text, len(pool)) for text in of.sentences(state | at, rows)])
    return {"sentences": list(pool), "said": said}
