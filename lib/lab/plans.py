"""From recipes to jobs: what is asked for, what is there, what has to be done and how long it takes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from lib import BadInput, paths, registry, store
from lib.recipe import (
    DPSGD,
    PAST,
    SNIP,
    AdversarialRegularization,
    At,
    Attack,
    Choose,
    Cost,
    Data,
    Distance,
    Edit,
    Hold,
    Model,
    Network,
    Pair,
    Population,
    Score,
    Shuffled,
    Signals,
    Similarity,
    StageMembership,
    State,
    Step,
    Taylor,
    Train,
    Vulnerability,
    load,
)


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
    """One unit of work: a step, and for a training the epochs that are asked of it."""

    step: Step
    asked: list[At] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)  # keys of jobs that come first
    seconds: float = 0.0  # expected, on one core

    @property
    def key(self) -> str:
        return self.step.key

    @property
    def yields(self) -> list[Step]:
        return [self.step, *self.asked]


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
            stored[step.key] = not isinstance(step, Edit) and store.has(step.key)
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
            job = training(step.of)
            if step.key not in {at.key for at in job.asked}:
                job.asked.append(step)
            return [job.key]
        if isinstance(step, Train):
            return [training(step).key]
        if not known:
            needs = list(dict.fromkeys(key for parent in step.parents() for key in visit(parent)))
            jobs[step.key] = Job(step, needs=needs)
        return [step.key, *weights]

    def training(step: Train) -> Job:
        if step.key not in jobs:
            needs = list(dict.fromkeys(key for parent in step.parents() for key in visit(parent)))
            jobs[step.key] = Job(step, needs=needs)
        return jobs[step.key]

    for one in wanted:
        for step in one:
            visit(step, used=False)
    operations = {key: work(job.step) for key, job in jobs.items()}
    speed = rate(_device()) if any(operations.values()) else CORE
    for key, job in jobs.items():
        job.seconds = operations[key] / speed + ANYWAY
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


def taken(choice: Choose) -> State:
    """The candidate that a choice has taken; errors as `store.read`."""
    return choice.candidates[int(store.read(choice.key).arrays["chosen"])]


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


# ---------------------------------------------------------------- cost


# What a counted operation takes, of a small ResNet's, on one core: an Active Token Mixer's interpolation between tokens
# is not counted, nor are norms and softmax, and at a few channels they are most of the time.
PACES = {"atm": 6.0, "vit": 2.0, "transformer": 2.0}


@cache
def counted(what: str, data: Data, model: Model, start: str | None = None) -> float:
    """`parameters`, `activations` or forward `flops` of one sample, from part `start` on."""
    from lib.training.cost import anatomy

    counts = anatomy(model, data.channels, data.classes, data.size)
    parts = [str(part).split(".")[0] for part in counts["parts"]]
    return float(sum(counts[what][parts.index(start.split(".")[0]) if start else 0 :]))


def flops(data: Data, model: Model, start: str | None = None) -> float:
    """Forward FLOPs of one sample, from part `start` on, in operations of a small ResNet's pace."""
    return PACES.get(model.name.partition("-")[0], 1.0) * counted("flops", data, model, start)


def work(step: Step) -> float:
    """Floating point operations of a step, forward and backward; what is cheap counts as nothing."""
    if isinstance(step, Train):
        return _training_work(step)
    if isinstance(step, Cost):
        return _training_work(step.of) * (step.epochs + 2) / step.of.schedule.epochs  # two more are counted
    if isinstance(step, StageMembership):
        return flops(step.of.training.data, step.of.training.model) * step.of.training.design.pool
    if isinstance(step, Score):
        return 0.0 if isinstance(step, Shuffled) else _scoring_work(step)
    if isinstance(step, Signals | Distance | Similarity):
        own = (step.of if isinstance(step, Signals) else step.a).training
        held_out = own.design.test if own.design.test is not None else registry.find(own.data.name).test
        samples = own.design.pool + held_out * isinstance(step, Signals)
        passes = step.views if isinstance(step, Signals) else 2
        return flops(own.data, own.model) * samples * passes
    if isinstance(step, Attack) and isinstance(step.attacker, Network):
        net, own = step.attacker, step.targets[0].training
        inputs = len(registry.find(own.data.name).classes) * (1 + (net.inputs == "posterior_label"))
        weights = sum(a * b for a, b in pairwise((inputs, *net.hidden, 1)))
        samples = len(step.shadows or step.targets) * own.design.pool
        return 6.0 * weights * samples * net.epochs * len(step.targets)
    return 0.0


def _scoring_work(step: Score) -> float:
    """Forward and backward on members, and on as many reference samples, which the initial net has all seen once."""
    own, criterion = step.of.training, step.criterion
    members, reference = own.design.members(own.row), getattr(own.design, "reference", 0)
    passes = 0
    if isinstance(criterion, Taylor):
        passes += 3 * criterion.steps * min(criterion.batch, members)
    if isinstance(criterion, Vulnerability):
        passes += 3 * criterion.steps * min(criterion.batch, reference) + reference
    if isinstance(criterion, SNIP):
        passes += 3 * min(criterion.batch, members)
    return passes * flops(own.data, own.model)


# What it takes, in operations, to write a sample's gradient of one weight, measure it and add it up: measured on one
# core, 240 to 740 for ViTs of 40,000 to 2.4 million weights, which memory is too slow for.
PRIVATE = 500.0

# What an operation of wide linear layers takes, of a small net's convolutions' time: measured on one core.
LINEAR = 1 / 3


def _training_work(step: Train) -> float:
    samples, epochs = step.design.members(step.row), step.schedule.epochs
    start = _held_until(step)
    whole, trained = flops(step.data, step.model), flops(step.data, step.model, start)
    batches = step.objective.batches
    learnt = samples if batches is None else min(samples, batches * step.schedule.batch)  # of an epoch
    looks = step.objective.looks
    operations = epochs * learnt * (3 + looks) * trained  # forward and backward; forward alone for what is looked at
    if isinstance(step.objective, PAST):
        operations += epochs * learnt * 2 * trained  # backward for what is looked at, too
    if isinstance(step.objective, DPSGD):  # the weights' gradients are made twice: summed, and sample by sample
        operations += epochs * learnt * (trained + PRIVATE * counted("parameters", step.data, step.model, start))
    held = whole - trained  # runs once, or every epoch where augmentation changes what it sees
    if step.schedule.augment:
        operations += epochs * learnt * (1 + looks) * held
    else:
        operations += samples * held
        if isinstance(step.objective, AdversarialRegularization | PAST):
            operations += getattr(step.design, "reference", 0) * held
    if isinstance(step.objective, AdversarialRegularization):
        from lib.models.inference import widths

        layers = widths(len(registry.find(step.data.name).classes), step.objective.width)
        weights = sum(a * b for units in layers for a, b in pairwise(units))
        # Forward and backward of h on what is looked at; forward, and backward to its inputs, on what is learnt.
        operations += epochs * learnt * (6 * looks + 4) * weights * LINEAR
    for teacher in step.teachers:
        unseen = samples - teacher.training.design.members(teacher.training.row)
        operations += flops(step.data, teacher.training.model) * max(unseen, 0)
    return operations


def _held_until(step: Train) -> str | None:
    """The first part that a training may change; None: it may change all."""
    state = step.parent
    while state is not None:
        if isinstance(state, Hold):
            return state.until
        state = state.parent if isinstance(state, Edit | Train) else None
    return None


# Operations per second before the store knows better: of one core on small nets, and a guess for a stream of a GPU;
# seconds that any job costs.
CORE, STREAM, ANYWAY = 3.5e10, 1e13, 0.1

# Operations below which a training tells what a job costs anyway, not how fast a device is.
TELLING = 1e10


def rate(device: str) -> float:
    """Operations per second of one training on a device of this name, as the last runs measured it."""
    return _rates().get(device, CORE if device == "cpu" else STREAM)


def _device() -> str:
    """The name of the device that would train here."""
    from lib.lab.compute.states import device_name  # asks torch, which is here if operations can be counted

    return device_name()


def _rates() -> dict[str, float]:
    try:
        return {
            name: float(one) for name, one in json.loads((paths.store() / "rate.json").read_text())["rates"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


@dataclass
class Pace:
    """Trainings done on one device, summed: nearly all of the work."""

    trainings: int = 0
    operations: float = 0.0
    seconds: float = 0.0

    def count(self, operations: float, seconds: float) -> None:
        if operations < TELLING:
            return
        self.trainings += 1
        self.operations += operations
        self.seconds += seconds


def remember(paces: Mapping[str, Pace]) -> None:
    """Keeps how fast trainings were, by name of the device, for the next preview; two of them say little."""
    new = {device: pace.operations / pace.seconds for device, pace in paces.items() if pace.trainings >= 3}
    if not new:
        return
    path = paths.store() / "rate.json"
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        partial.write_text(json.dumps({"rates": _rates() | new}))
        partial.replace(path)
    except OSError:  # a full disk has been told of by those who could not store their results
        partial.unlink(missing_ok=True)


# ---------------------------------------------------------------- plans as files


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
