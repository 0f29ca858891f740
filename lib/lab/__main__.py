"""python -m lib.lab plan|run|collect|why: a plan computed on another machine, its results brought home."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import deque
from itertools import chain
from pathlib import Path
from typing import Any

from lib import BadInput, files, one_line, store, typed
from lib.command import Parser, command
from lib.lab import cluster, exchange, plans
from lib.recipe import State, Step

PART = 15.0  # size of a packed part, in units of 2^20 bytes


@command
def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog=typed("lib.lab"), description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("plan", help="write what a profile's notebooks need and the store lacks")
    verb.add_argument("--profile", default="quick")
    verb.add_argument("--only", nargs="+", action="extend", default=[], metavar="PATTERN")
    verb.add_argument("--out", type=Path, default=Path("plan.json"))
    verb = verbs.add_parser("run", help="compute a plan where there is torch, and pack what `collect` needs")
    verb.add_argument("plan", type=Path)
    verb.add_argument("--pack", type=Path, default=Path("packed"), help="folder for the parts to bring home")
    verb.add_argument("--part-mb", type=float, default=PART, metavar="N", help="size of a part (%(default)s)")
    cluster.options(verb)
    verb = verbs.add_parser("collect", help="take packed parts into the store: all of them, or nothing")
    verb.add_argument("parts", nargs="+", type=Path)
    verb = verbs.add_parser("why", help="explain field by field why a step is not in the store")
    verb.add_argument("key", help="of a step, or its first digits; or a plan file")
    chosen = parser.parse_args(arguments)
    return {"plan": _plan, "run": _run, "collect": _collect, "why": _why}[chosen.verb](chosen)


def _plan(chosen: argparse.Namespace) -> int:
    from lib.lab.declare import declare, notebooks, parameters
    from lib.lab.run import width

    every = notebooks(chosen.only or ["*"])
    found = plans.plan([declare(one, parameters(one, chosen.profile)) for one in every])
    files.write(chosen.out, json.dumps(exchange.dump(found)))
    print(found.preview(width(found, cluster.Where())))
    print(f"written to {chosen.out}")
    return 0


def _read(path: Path) -> list[Step]:
    return exchange.undump(files.text(path, exchange.PLAN), path)


def _run(chosen: argparse.Namespace) -> int:
    from lib.lab.run import reasons, reporter, run, width

    if not 0 < chosen.part_mb < math.inf:
        raise BadInput(f"--part-mb takes more than 0, not {chosen.part_mb:g}")
    where, steps = cluster.chosen(chosen), _read(chosen.plan)
    todo = plans.plan([steps])
    print(todo.preview(width(todo, where)), flush=True)
    files.folder(chosen.pack, "--pack names another folder")  # rather now than after hours of training
    failed = run(todo, where, reporter(todo)).values()
    home = [step.key for step in steps if _light(step) and store.has(step.key)]
    parts = exchange.pack(home, chosen.pack, chosen.part_mb)
    print(f"{len(home)} results in {parts} part{'s' * (parts != 1)} in {chosen.pack}; bring them home and collect them")
    for why in reasons(failed):
        print(f"failed: {why}", file=sys.stderr)
    return 2 if failed else 0


def _light(step: Step) -> bool:
    """Whether a result comes home; weights stay where they were trained."""
    return not isinstance(step, State)


def _collect(chosen: argparse.Namespace) -> int:
    parts = [part for given in chosen.parts for part in (sorted(given.glob("*.zip")) if given.is_dir() else [given])]
    if not parts:
        raise BadInput(f"there are no parts (*.zip) in {', '.join(map(str, chosen.parts))}")
    for part in parts:  # all are looked at before the first is taken
        deque(exchange.unpack(part), 0)
    new = 0
    for key, found in chain.from_iterable(map(exchange.unpack, parts)):
        if not store.has(key):
            store.adopt(key, found)
            new += 1
    print(f"{new} new results in the store")
    return 0


def _why(chosen: argparse.Namespace) -> int:
    """Compares the recipe with the stored recipe of its kind that differs from it in the fewest fields."""
    if Path(chosen.key).exists():
        missing = [step for step in _read(Path(chosen.key)) if not store.has(step.key)]
        firsts = {type(step).__name__: step for step in reversed(missing)}
        lines = [line for _, step in sorted(firsts.items()) for line in _explain(step.key, step.record())]
        print("\n".join(lines or ["everything in this plan is in the store"]))
        return 0
    found = list(store.described(start=chosen.key))
    if not found:
        raise BadInput(
            f"no stored step begins with '{chosen.key}'; to explain a miss give a plan file ({typed('lib.lab plan')})"
        )
    for head in found:
        print(one_line(f"{head['key'][:12]} is in the store: {json.dumps(head['record'])}"))
    return 0


def _explain(key: str, record: dict[str, Any]) -> list[str]:
    head = f"{record['kind']} {key[:12]} is not in the store"
    others = ((_differences(record, other["record"]), other["key"]) for other in store.described(record["kind"]))
    lines, nearest = min(others, key=lambda found: len(found[0]), default=([], ""))
    if not nearest:
        return [f"{head}, nor any other {record['kind']}"]
    return [f"{head}; the nearest stored is {nearest[:12]}, which differs in", *lines]


def _differences(asked: Any, stored: Any, where: str = "") -> list[str]:
    if isinstance(asked, dict) and isinstance(stored, dict):
        if "step" in asked and "step" in stored and asked != stored:
            try:
                parents = [store.describe(one["step"])["record"] for one in (asked, stored)]
                return _differences(parents[0], parents[1], where)
            except (KeyError, store.Corrupt):
                return [f"  {where}: another parent ({asked['step'][:12]}, stored {stored['step'][:12]})"]
        names = list(dict.fromkeys([*asked, *stored]))
        parts = [(f"{where}.{n}".lstrip("."), asked.get(n, "default"), stored.get(n, "default")) for n in names]
        return [line for name, a, b in parts for line in _differences(a, b, name)]
    if asked == stored:
        return []
    return [f"  {one_line(f'{where}: asked {json.dumps(asked)}, stored {json.dumps(stored)}')}"]


if __name__ == "__main__":
    sys.exit(main())
