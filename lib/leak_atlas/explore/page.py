"""An explorer on a page without a kernel: its stored states, in one packet that `player.js` unfolds.

A packet lies in a file next to the executed notebook (`live.packet`). Rows that several states share,
as the pictures of samples, are in it once.
"""

from __future__ import annotations

import base64
import gzip
import json
from contextlib import suppress
from typing import Any

from leak_atlas import BadInput
from leak_atlas.explore.description import Description, State, figure


def packet(of: Description, state: State) -> str:
    """The states that `of` publishes, from this one on; those that are not stored are left out."""
    pool: dict[str, int] = {}

    def place(row: dict[str, Any]) -> int:
        return pool.setdefault(json.dumps(row), len(pool))

    states = []
    for label, changed in of.published().items():
        chosen = state | changed
        with suppress(BadInput):
            if rows := of.rows(chosen):
                shown = figure(of, chosen, rows)
                shown["rows"] = {name: [place(row) for row in own] for name, own in rows.items()}
                said = of.sentences(chosen | shown["at"], rows)
                states.append({"label": label, "figure": shown, "sentences": said})
    text = f'{{"pool": [{",".join(pool)}], "states": {json.dumps(states)}}}'
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
