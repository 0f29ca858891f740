"""Plans as files: what another machine is to compute."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lib import BadInput
from lib.recipe import Step, load

if TYPE_CHECKING:
    from lib.lab.plans import Plan


def dump(asked: Plan) -> dict[str, Any]:
    """A plan as JSON: a flat table of records by key, and what each job has to yield.

    Attacks and self-audits stay at home: they are cheap (an attack net takes a second), and need more than torch.
    """
    table: dict[str, Any] = {}

    def put(step: Step) -> None:
        if step.key not in table:
            table[step.key] = step.record()
            for value in vars(step).values():
                for part in value if isinstance(value, tuple) else (value,):
                    if isinstance(part, Step):
                        put(part)

    travelling = (job for job in asked.jobs.values() if job.step.travels)
    wanted = [step for job in travelling for step in job.yields]
    for step in wanted:
        put(step)
    return {"format": 1, "wanted": [step.key for step in wanted], "recipes": table}


def undump(text: str) -> list[Step]:
    """The steps of a plan file; BadInput where it is not one, or was made by another version of lib."""
    try:
        raw = json.loads(text)
        table, wanted = raw["recipes"], raw["wanted"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"this is not a plan of 'python -m lib.lab plan': {error}") from error
    made: dict[str, Step] = {}

    def step(key: str) -> Step:
        if key not in made:
            recipe = load(table[key], step)
            if not isinstance(recipe, Step) or recipe.key != key:
                raise BadInput(f"recipe {key[:12]} of the plan has another key here: plan and lib differ in version")
            made[key] = recipe
        return made[key]

    return [step(key) for key in wanted]
