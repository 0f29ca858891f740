"""python -m bench.where [STORE]: where the core-seconds of a store went, by kind of step, by
network and by notebook.

Seconds are those of a core that each step took when it was computed, as its entry says. `priced` is
what a plan of `quick` expects of the same steps over them: on a machine of which nothing is known,
and once this store has seen a run (`warm`). GFLOP/s are counted operations over these seconds; the
share of the peak is what that is of one core's matrix product in float32, measured here: the rest
is overhead of small operations, memory and Python.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from typing import Any

import pandas as pd

from bench.scale import fresh_store
from leak_atlas.engine import paths, store
from leak_atlas.lab import prices
from leak_atlas.lab.declare import declare, notebooks, parameters
from leak_atlas.lab.plans import behind, plan, steps_of
from leak_atlas.recipe import Schedule
from leak_atlas.recipe.core import digest


def peak(rounds: int = 20) -> float:
    """GFLOP/s of one core on a product of two matrices of 1,024 x 1,024 in float32."""
    import torch

    torch.set_num_threads(1)
    a = torch.rand(1024, 1024)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return 2 * 1024**3 / best / 1e9


def network(key: str, records: dict[str, dict[str, Any]]) -> str:
    """The architecture and width behind a step, found through its parents; "" where there is none."""
    seen, todo = set[str](), [records.get(key, {})]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            if item.get("kind") == "Model":
                return f"{item.get('name', 'resnet18')} {item.get('width', 64)}"
            if (parent := item.get("step")) and parent not in seen:
                seen.add(parent)
                todo.append(records.get(parent, {}))
            todo += item.values()
        elif isinstance(item, list):
            todo += item
    return ""


def epochs(records: dict[str, dict[str, Any]]) -> dict[str, str]:
    """By the keys of all epochs of trainings, stored or not, those of the trainings."""
    found = dict[str, str]()
    for key, record in records.items():
        if record["kind"] == "Train":
            at = {"kind": "At", "of": {"step": key}}
            last = record["schedule"].get("epochs", Schedule().epochs)
            found |= {digest(at): key} | {
                digest(at | {"when": when}): key for when in range(1, last + 1)
            }
    return found


def spent() -> pd.DataFrame:
    """A row for each job whose entries the store has: kind, network, core-seconds and counted
    operations.
    """
    heads = {key: store.describe(key) for key in store.listing()}
    records = {key: head["record"] for key, head in heads.items()}
    trained, shared = epochs(records), defaultdict(list)
    # a training writes epochs and their signals too, all with the seconds of the whole
    for key, head in heads.items():
        kind, meta = head["record"]["kind"], head["meta"]
        job = (
            trained.get(head["record"]["of"]["step"], key)
            if kind == "Signals"
            else trained.get(key, key)
        )
        shared[job, meta.get("finished"), meta["seconds"]].append(key)
    rows = []
    for (_, _, seconds), keys in shared.items():
        key = next((key for key in keys if records[key]["kind"] == "Train"), keys[0])
        kind, operations = records[key]["kind"], heads[key]["meta"].get("operations", 0.0)
        rows.append(
            {
                "key": key,
                "kind": kind,
                "network": network(key, records),
                "core_s": seconds,
                "operations": operations,
            }
        )
    found = pd.DataFrame(rows)
    known = paths.store() / prices.FILE
    for name, kept in (("priced", "{}"), ("warm", known.read_text() if known.exists() else "{}")):
        found[name] = found.key.map(priced(kept))
    return found


def priced(kept: str, profile: str = "quick") -> dict[str, float]:
    """Core-seconds that a plan of a whole profile expects of each job; `kept` is what a store knows
    of prices.
    """
    with fresh_store() as empty:
        (empty / prices.FILE).write_text(kept)
        jobs = plan([declare(one, parameters(one, profile)) for one in notebooks()]).jobs
    return {key: job.seconds for key, job in jobs.items()}


def table(found: pd.DataFrame, by: list[str], fastest: float) -> pd.DataFrame:
    """Core-seconds, share, GFLOP/s and share of the peak of each group, dearest first."""
    out = found.groupby(by).agg(
        steps=("key", "size"), core_s=("core_s", "sum"), operations=("operations", "sum")
    )
    # what the profile asks for
    shared = found.dropna(subset="priced").groupby(by)[["core_s", "priced", "warm"]].sum()
    out = out.join(shared[["priced", "warm"]].div(shared.core_s, axis="index"))
    out["share"] = 100 * out.core_s / found.core_s.sum()
    out["GFLOP/s"] = out.operations / out.core_s / 1e9
    out["% of peak"] = 100 * out["GFLOP/s"] / fastest
    return out.drop(columns="operations").sort_values("core_s", ascending=False)


def by_notebook(found: pd.DataFrame, profile: str = "quick") -> pd.DataFrame:
    """Core-seconds behind each notebook: all, and those that no other notebook of the profile
    needs.
    """
    asked = {one.name: steps_of(declare(one, parameters(one, profile))) for one in notebooks()}
    needs = {name: {step.key for step in behind(steps)} for name, steps in asked.items()}
    cost, expected, warm = (
        dict(zip(found.key, found[name], strict=True)) for name in ("core_s", "priced", "warm")
    )
    askers = defaultdict[str, int](int)
    for keys in needs.values():
        for key in keys:
            askers[key] += 1
    rows = {
        name: {
            "core_s": sum(cost.get(key, 0.0) for key in keys),
            "alone_s": sum(cost.get(key, 0.0) for key in keys if askers[key] == 1),
            "priced": sum(expected.get(key, 0.0) for key in keys)
            / max(sum(cost.get(key, 0.0) for key in keys), 1e-9),
            "warm": sum(warm.get(key, 0.0) for key in keys)
            / max(sum(cost.get(key, 0.0) for key in keys), 1e-9),
        }
        for name, keys in needs.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").sort_values("alone_s", ascending=False)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        os.environ["LEAK_ATLAS_STORE"] = sys.argv[1]
    pd.set_option(
        "display.width", 120, "display.max_rows", 200, "display.float_format", "{:,.2f}".format
    )
    entries, top = spent(), peak()
    print(
        f"{len(entries)} steps, {entries.core_s.sum():,.0f} core-seconds; peak of one core {top:.0f} GFLOP/s\n"
    )
    print(table(entries, ["kind"], top), "\n")
    print(table(entries, ["kind", "network"], top).head(30), "\n")
    print(by_notebook(entries))
