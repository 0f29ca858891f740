"""From recipes to jobs: what is asked for, what is there, what has to be done and how long it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lib import BadInput, store
from lib.compute import taken
from lib.lab.prices import JOB_OVERHEAD_S, rate, work
from lib.recipe import At, Choose, Edit, Pair, Population, Signals, State, Step, Train


def steps_of(asked: Any) -> list[Step]:
    """All steps in nested dicts, lists, populations and pairs, each once, in order."""
    found: dict[str, Step] = {}

    def walk(item: Any) -> None:
        if isinstance(item, Step):
            found.setdefault(item.key, item)
        elif isinstance(item, Mapping):
            walk(list(item.values()))
        elif isinstance(item, Pair):
            walk([item.whole, item.half])
        elif isinstance(item, list | tuple | set | Population):
            for part in item:
                walk(part)
        else:
            raise BadInput(f"realize takes steps, populations and collections of them, not {item!r}")

    walk(asked)
    return list(found.values())


@dataclass
class Job:
    """One unit of work: a step, and for a training what is asked of its epochs."""

    step: Step
    asked: list[At] = field(default_factory=list)  # epochs whose weights are kept
    read: list[Signals] = field(default_factory=list)  # read off the network as it trains; no weights are kept
    needs: list[str] = field(default_factory=list)  # keys of jobs that come first
    seconds: float = 0.0  # expected, on one core

    @property
    def key(self) -> str:
        return self.step.key

    @property
    def yields(self) -> list[Step]:
        return [self.step, *self.asked, *self.read]


@dataclass
class Plan:
    """Jobs in an order in which they can be done, and what the preview says."""

    jobs: dict[str, Job]
    asked: int  # steps asked for, counted as often as they are asked
    distinct: int
    models_asked: int
    models_distinct: int
    models_there: int

    @property
    def seconds(self) -> float:
        """Expected core-seconds."""
        return sum(job.seconds for job in self.jobs.values())

    def preview(self, workers: int) -> str:
        """What would be trained and how long it takes, before anything is."""
        trainings = sum(isinstance(job.step, Train) for job in self.jobs.values())
        return (
            f"models: {self.models_asked} asked for, {self.models_distinct} distinct, "
            f"{self.models_there} already there, {trainings} to train; with all that follows {len(self.jobs)} steps, "
            f"about {self.seconds / 60 / max(workers, 1):.1f} minutes on {workers} worker{'s' * (workers != 1)}"
        )


def plan(asked: Iterable[Any]) -> Plan:
    """The union of everything asked for, less what the store has. `asked`: one collection of steps for each asker."""
    wanted = [steps_of(one) for one in asked]
    jobs: dict[str, Job] = {}
    seen: dict[str, Step] = {}
    there: set[str] = set()
    stored: dict[str, bool] = {}

    def is_there(step: Step) -> bool:
        if step.key not in stored:
            stored[step.key] = step.stored and store.has(step.key)
        return stored[step.key]

    def visit(step: Step, used: bool = True) -> list[str]:
        """Keys of the jobs that `step` waits for, itself included; who goes on from a choice needs weights as well."""
        known = step.key in seen
        seen[step.key] = step
        behind = _behind(step) if used and isinstance(step, Choose) else ()
        weights = [key for state in behind for key in visit(state)]
        if is_there(step):
            there.add(step.key)
            return weights
        if isinstance(step, Edit):
            return [key for parent in step.parents() for key in visit(parent)]
        if isinstance(step, At):
            return [training(step.of, keep=step).key]
        if isinstance(step, Signals) and isinstance(step.of, At) and not is_there(step.of):
            return [training(step.of.of, read=step).key]
        if isinstance(step, Train):
            return [training(step).key]
        if not known:
            needs = list(dict.fromkeys(key for parent in step.parents() for key in visit(parent)))
            jobs[step.key] = Job(step, needs=needs)
        return [step.key, *weights]

    def training(step: Train, keep: At | None = None, read: Signals | None = None) -> Job:
        if step.key not in jobs:
            needs = list(dict.fromkeys(key for parent in step.parents() for key in visit(parent)))
            jobs[step.key] = Job(step, needs=needs)
        job = jobs[step.key]
        if keep and keep not in job.asked:
            job.asked.append(keep)
        if read and read not in job.read:
            job.read.append(read)
        return job

    for one in wanted:
        for step in one:
            visit(step, used=False)
    operations = {key: sum(map(work, (job.step, *job.read))) for key, job in jobs.items()}
    speed = rate() if any(operations.values()) else 1.0
    for key, job in jobs.items():
        job.seconds = operations[key] / speed + JOB_OVERHEAD_S
    models = [_models(one) for one in wanted]
    distinct = set().union(*models) if models else set()
    return Plan(
        jobs=_ordered(jobs),
        asked=sum(len(one) for one in wanted),
        distinct=len({step.key for one in wanted for step in one}),
        models_asked=sum(len(one) for one in models),
        models_distinct=len(distinct),
        models_there=sum(key not in jobs for key in distinct),
    )


def _behind(choice: Choose) -> tuple[State, ...]:
    """Whose weights a choice may stand for: while it is open, or cannot be read, all candidates'."""
    try:
        return (taken(choice),)
    except (KeyError, store.Corrupt):
        return choice.candidates


def _models(steps: Iterable[Step]) -> set[str]:
    """Keys of all trainings behind some steps, stored ones too."""
    found: set[str] = set()
    seen: set[str] = set()
    todo = list(steps)
    while todo:
        step = todo.pop()
        if step.key in seen:
            continue
        seen.add(step.key)
        if isinstance(step, Train):
            found.add(step.key)
        todo.extend(step.parents())
    return found


def _ordered(jobs: dict[str, Job]) -> dict[str, Job]:
    """Parents before children, in the order of asking."""
    out: dict[str, Job] = {}

    def put(job: Job) -> None:
        if job.key not in out:
            for key in job.needs:
                put(jobs[key])
            out[job.key] = job

    for job in jobs.values():
        put(job)
    return out
