"""The keys of all recipes that notebooks declare in any profile. No refactor may change them.

Results are stored by key: a key that changes is a result that nobody finds again.
`golden_keys.toml` has one line for each profile and notebook: how many recipes there are, a digest
of their keys, and number and digest for each kind of step. Notebooks are planned: nothing is
trained and no data set is read, because a key holds the pinned digest of a data set.

    python -m tests.golden

writes the file again where keys are meant to change.

    python -m tests.golden quick pruning/fig01_gaps

prints key and record of each recipe of one notebook, parents first. A `diff` of what this prints
before and after a change shows what has changed.

The key of a kind that stands in a notebook (`own/my_defence`, `own/audit_my_model`) holds a digest
of the notebook's source. The digests here leave it out: it changes, as it should, whenever somebody
edits the notebook, and says nothing of the library.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

from leak_atlas.engine import digests as code
from leak_atlas.engine import paths
from leak_atlas.lab import declare
from leak_atlas.lab.declare import Notebook
from leak_atlas.lab.plans import behind
from leak_atlas.recipe import Step

TABLE = Path(__file__).with_name("golden_keys.toml")
DEFAULTS = "defaults"  # in place of a profile: notebooks that are in none, as they are
LEFT_OUT = "left_out"
CLICKS = "its first view is planned; what a click asks for later is not"
SHOWN = 2  # recipes of a message

Row = dict[str, Any]
NEW: Row = {"recipes": 0, "kinds": {}}  # of a notebook that is not stored yet

# Tensors of this notebook's network: zeros stand for the user's, or it would train an example.
MY_MODEL = "own/audit_my_model"
WEIGHTS = {
    "features.1.weight": (128, 256),
    "features.1.bias": (128,),
    "hidden.0.weight": (64, 128),
    "hidden.0.bias": (64,),
    "out.weight": (10, 64),
    "out.bias": (10,),
}


def groups() -> list[str]:
    """Every profile, and the group of notebooks that are in none."""
    return [*declare.profiles(), DEFAULTS]


def notebooks(group: str) -> dict[str, Notebook]:
    """The notebooks of a group by name: a batch takes those outside of `own` in every profile."""
    own = [Notebook(f"own/{path.stem}", path) for path in paths.NOTEBOOKS.glob("own/*.py")]
    if group == DEFAULTS:
        return {one.name: one for one in own}
    folder = paths.PARAMS / group
    named = [one for one in own if (folder / f"{one.name}.yaml").exists()]
    return {one.name: one for one in [*declare.notebooks(), *named]}


def asks_later(notebook: Notebook) -> bool:
    """Whether a notebook asks for recipes after its first `realize` or `compare`, where planning it ends."""
    asks = r"(?:\.(?:realize|compare|explorer)|Instrument)\("
    return len(re.findall(asks, notebook.path.read_text())) > 1


def left_out() -> dict[str, str]:
    """What cannot be planned without training, by notebook."""
    every = {name: one for group in groups() for name, one in notebooks(group).items()}
    return {name: CLICKS for name in sorted(every) if asks_later(every[name])}


def recipes(group: str, notebook: Notebook) -> list[Step]:
    """What a notebook declares and what that rests on, each recipe once, parents first."""
    given = {} if group == DEFAULTS else declare.parameters(notebook, group)
    unsigned = mock.patch.object(code, "source_digest", _source_digest)
    with unsigned, tempfile.TemporaryDirectory() as folder:
        if notebook.name == MY_MODEL:
            given |= {"data": "fashion-mnist-small", "pixels": 16}
            given["weights"] = _zeros(Path(folder))
        return behind(declare.declare(notebook, given))


def _source_digest(kind: type, own: Callable[[type], str] = code.source_digest) -> str:
    """The digest of source in the keys of a kind; none where the kind stands in a notebook."""
    return "" if kind.__module__ == code.CELL else own(kind)


def _zeros(folder: Path) -> str:
    import numpy as np
    from safetensors.numpy import save_file

    path = str(folder / "zeros.safetensors")
    save_file({name: np.zeros(shape, np.float32) for name, shape in WEIGHTS.items()}, path)
    return path


def by_kind(steps: Iterable[Step]) -> dict[str, list[Step]]:
    """Recipes by the kind that their keys hold, in their order."""
    found: dict[str, list[Step]] = {}
    kinds: dict[type, str] = {}
    for step in steps:
        if type(step) not in kinds:
            kinds[type(step)] = step.record()["kind"]
        found.setdefault(kinds[type(step)], []).append(step)
    return found


def digest(steps: Iterable[Step], digits: int) -> str:
    """So many hexadecimal digits of the keys of some recipes, in whatever order they come."""
    keys = sorted(step.key for step in steps)
    return sha256(" ".join(keys).encode()).hexdigest()[:digits]


def row(steps: list[Step]) -> Row:
    """What is stored of the recipes of a notebook."""
    kinds = {kind: [len(some), digest(some, 8)] for kind, some in by_kind(steps).items()}
    return {"recipes": len(steps), "digest": digest(steps, 16), "kinds": kinds}


def difference(before: Row, steps: list[Step]) -> str:
    """How recipes differ from what is stored: a line for each kind, parents first. "" if equal."""
    now = row(steps)
    if now == before:
        return ""
    lines = [f"{before['recipes']} recipes before, {now['recipes']} now"]
    for kind, some in by_kind(steps).items():
        number, keys = before["kinds"].get(kind, [0, ""])
        if [number, keys] != now["kinds"][kind]:
            lines.append(f"{kind}: {number} before, {len(some)} now; the first now:")
            lines += [f"  {step.key[:10]} {_text(step)}" for step in some[:SHOWN]]
    lines += [f"{kind}: none now" for kind in before["kinds"] if kind not in now["kinds"]]
    return "\n    ".join(lines)


def _text(step: Step) -> str:
    return json.dumps(step.record(), sort_keys=True)


def held(group: str, name: str) -> Row:
    """What is stored of a notebook in a group."""
    row: Row = stored().get(group, {}).get(name, NEW)
    return row


@cache
def stored() -> dict[str, Any]:
    """The stored file: rows by group and notebook, and `left_out`."""
    return tomllib.loads(TABLE.read_text())


def written(rows: Mapping[str, Mapping[str, Row]]) -> str:
    """The text of the stored file, sorted, a line a notebook."""
    lines = ["# Digests of the keys of all declared recipes. `python -m tests.golden` writes it."]
    for group in sorted(rows):
        lines += ["", f"[{group}]"]
        lines += [_line(name, row) for name, row in sorted(rows[group].items())]
    lines += ["", f"[{LEFT_OUT}]"]
    lines += [f'"{name}" = "{why}"' for name, why in left_out().items()]
    return "\n".join(lines) + "\n"


def _line(name: str, row: Row) -> str:
    kinds = [f'{kind} = [{n}, "{keys}"]' for kind, (n, keys) in sorted(row["kinds"].items())]
    total = f'recipes = {row["recipes"]}, digest = "{row["digest"]}"'
    return f'"{name}" = {{{total}, kinds = {{{", ".join(kinds)}}}}}'


def main(arguments: list[str]) -> None:
    """Prints the recipes of one notebook, or writes the stored file."""
    if arguments:
        group, name = arguments
        for step in recipes(group, notebooks(group)[name]):
            print(step.key, _text(step))
        return
    rows: dict[str, dict[str, Row]] = {}
    for group in groups():
        rows[group] = {name: row(recipes(group, one)) for name, one in notebooks(group).items()}
        total = sum(each["recipes"] for each in rows[group].values())
        print(f"{group}: {total:,} recipes", flush=True)
    TABLE.write_text(written(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
