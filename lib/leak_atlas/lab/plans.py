"""From recipes to jobs: what is asked for, what is there, what has to be done and how long it
takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any

from leak_atlas import BadInput, duration
from leak_atlas.engine import store
from leak_atlas.engine.processes import uninterrupted
from leak_atlas.lab.prices import pricing, training
from leak_atlas.recipe import At, Edit, Pair, Population, Signals, Step, Train


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
            raise BadInput(
                f"realize takes steps, populations and collections of them, not {item!r}"
            )

    walk(asked)
    return list(found.values())


def behind(steps: Iterable[Step]) -> list[Step]:
    """Some steps and all that they rest on, each once, parents first."""
    found: dict[str, Step] = {}

    def walk(step: Step) -> None:
        if step.key not in found:
            for parent in step.parents():
                walk(parent)
            found[step.key] = step

    for step in steps:
        walk(step)
    return list(found.values())


def kinds(steps: Iterable[Step]) -> Iterator[type]:
    """The kinds of recipe in some steps and in all that they rest on; looked for when the first is
    asked for."""
    for step in behind(steps):
        yield from map(type, step.within())


def trainings(steps: Iterable[Step]) -> list[Train]:
    """All trainings behind some steps, parents first."""
    return [step for step in behind(steps) if isinstance(step, Train)]


@dataclass
class Job:
    """One unit of work: a step, and for a training what is asked of its epochs."""

    step: Step
    states: list[At] = field(default_factory=list)  # epochs whose weights are stored
    # computed while the network trains; the weights of these epochs are not stored
    signals: list[Signals] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)  # keys of jobs that come first
    seconds: float = 0.0  # expected, on one core

    @property
    def key(self) -> str:
        return self.step.key

    @property
    def computed(self) -> list[Step]:
        """What takes time: an epoch's weights are there anyway."""
        return [self.step, *self.signals]

    @property
    def yields(self) -> list[Step]:
        return [self.step, *self.states, *self.signals]


@dataclass
class Plan:
    """Jobs in an order in which they can be done, and what the preview says."""

    jobs: dict[str, Job]
    models_asked: int
    models_distinct: int
    models_there: int

    @property
    def seconds(self) -> float:
        """Expected core-seconds."""
        return sum(job.seconds for job in self.jobs.values())

    @property
    def trainings(self) -> int:
        """How many networks are to be trained."""
        return sum(isinstance(job.step, Train) for job in self.jobs.values())

    def offer(self, workers: int) -> str:
        """What a click would do and how long it takes, in a few words; "" where nothing is
        missing."""
        if not self.jobs:
            return ""
        count, verb, noun = len(self.jobs), "compute", "step"
        if self.trainings:
            count, verb, noun = self.trainings, "train", "network"
        plural = "s" * (count != 1)
        return f"{verb} {count:,} {noun}{plural}, about {duration(self.seconds / workers)}"

    def preview(self, workers: int, other_work: float = 0.0) -> str:
        """One line: the models that are asked for, the steps to compute, and the time.

        `other_work`: core-seconds of what is no job, such as executing notebooks.
        """
        models = (
            f"models: {self.models_asked} asked for, {self.models_distinct} distinct, "
            f"{self.models_there} already there"
        )
        expected = f"about {duration((self.seconds + other_work) / workers)}"
        if not self.jobs:
            return f"{models}, nothing to compute; {expected} to execute"
        steps = f"{self.trainings} to train; with all that follows {len(self.jobs)} steps"
        return f"{models}, {steps}, {expected} on {workers} worker{'s' * (workers != 1)}"


def plan(asked: Iterable[Any]) -> Plan:
    """The union of everything asked for, less what the store has. `asked`: one collection of steps
    for each asker."""
    wanted = [steps_of(each) for each in asked]
    jobs: dict[str, Job] = {}  # a job comes after those that it needs

    @cache
    def is_there(step: Step) -> bool:
        return step.stored and store.has(step.key)

    def needs(step: Step) -> list[str]:
        """Keys of the jobs behind a step's parents."""
        keys = [key for parent in step.parents() for key in visit(parent)]
        return list(dict.fromkeys(keys))

    def job(step: Step) -> Job:
        if step.key not in jobs:
            jobs[step.key] = Job(step, needs=needs(step))
        return jobs[step.key]

    def visit(step: Step) -> list[str]:
        """Keys of the jobs that `step` waits for, itself included."""
        if is_there(step):
            return []
        if isinstance(step, Edit):  # is computed where it is needed
            return needs(step)
        if isinstance(step, At):
            needed = job(step.of)
            if step not in needed.states:
                needed.states.append(step)
        elif isinstance(step, Signals) and isinstance(step.of, At) and not is_there(step.of):
            needed = job(step.of.of)
            if step not in needed.signals:
                needed.signals.append(step)
        else:
            needed = job(step)
        return [needed.key]

    for step in chain(*wanted):
        visit(step)
    price = pricing()
    with uninterrupted():  # the first price imports torch
        for one in jobs.values():
            one.seconds = sum(map(price, one.computed))
    models = [{step.key for step in trainings(each)} for each in wanted]
    distinct = set().union(*models)
    return Plan(
        jobs=jobs,
        models_asked=sum(map(len, models)),
        models_distinct=len(distinct),
        models_there=sum(key not in jobs for key in distinct),
    )


def absent(jobs: Iterable[Job]) -> list[str]:
    """How to get each data set that jobs need and that is not on this machine, a text for each."""
    from leak_atlas.data import readers

    names: dict[str, None] = {}  # each once, in order
    for job in jobs:
        if job.step.place != "device":
            continue
        source = training(job.step) or job.step  # a step without a network may have data itself
        data = getattr(source, "data", None)
        if data:
            names[data.name] = None
    reasons = map(readers.absent, names)
    return [reason for reason in reasons if reason]
