"""Planted results: what `lab.realize` would give if effects were as large, and of the sign, that a
plant says.

Every step gets arrays of the names and shapes that its kind stores, drawn at random around an
effect of its *way*: the step less seeds and rows, so that the models of one population share their
effects. Nothing is trained.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import sys
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache, lru_cache, singledispatchmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leak_atlas import lab, recipe, report
from leak_atlas.data import designs, readers
from leak_atlas.data.designs import Role
from leak_atlas.lab import Result, trainings
from leak_atlas.lab.declare import Notebook, parameters
from leak_atlas.lab.plans import steps_of
from leak_atlas.localization import over_time
from leak_atlas.recipe import Recipe, Step
from leak_atlas.recipe.core import fields_of

# Plants by number. Odd ones turn the effects of the even one before around, up to `LINE`.
PLANTS = range(141)
LEVEL = range(24, 141)  # one level for all parts of a network, so that one is louder in each
CLASSES = range(24, 40)  # classes differ
ALIKE = range(40, 56)  # ways hardly differ, or are of two kinds that are equal inside
LINE = range(56, 80)  # more accurate where they leak more; the same samples are exposed
LUCK = range(60, 68)  # all epochs of a training, or none, share their exposed samples
BEGUN = range(64, 71)  # with a permutation null: nothing before training, then little or much
TENTH = range(74, 76)  # a tenth of the samples alone is exposed
EASE = range(76, 105)  # easy samples for one kind of attack, exposed ones for the other
AMID = range(80, 105)  # what freezes a part lies amid the others
UPPER_END = range(105, 141)  # `LINE` again, with ordinary training at its upper end
REMEMBERED = range(131, 139)  # samples differ in features and attacks, stages in scores
RISING = range(133, 139)  # the remembered are exposed before the rest, or after it
NOT_HARD = range(135, 139)  # what is remembered is not what is hard
BETTER = 138  # rewinding before pruning helps, and so does pruning the largest scores
SHORTER = 140  # ordinary training of fewer epochs leaks least and is accurate
FEW = 6  # epochs

NOISE = 0.002  # of one model around its way
OWN = (1.0, 0.15, 0.01)
LEAST = {Role.MEMBER: 0.4, Role.NONMEMBER: 0.1}  # accuracy on a role, and .1 on others
# Options that recipes no longer have, each after the field before it: plants are drawn as with them.
FORMER = {
    "CrossEntropy": [("", "smoothing=0.0")],
    "RelaxLoss": [("alpha", "upper=1.0"), ("upper", "form='paper'")],
    "CCL": [("beta", "form='exponential'")],
    "RMR": [("general", "tau=None")],
    "Schedule": [
        ("decay", "milestones=()"),
        ("milestones", "factor=0.1"),
        ("factor", "warmup=0"),
    ],
    "HAMP": [("weight", "form='paper'")],
    "DPSGD": [("delta", "group=1")],
    "Window": [("order", "form='paper'")],
    "Learnability": [("batch", "form='absolute'")],
    "Vulnerability": [("batch", "form='absolute'"), ("weight", "divergence='model||init'")],
    "Model": [("init", "hidden=None")],
}
# in plants on one line
LINED = {"alike": 1.0, "exposes": 1.0, "hard MEMBER": 0.8, "hard NONMEMBER": 1.0}


def way(value: Any) -> str:
    """What a recipe is, without the seeds and rows in which models of one population differ."""
    if isinstance(value, tuple):
        return f"({','.join(map(way, value))})"
    return _way(value) if isinstance(value, Recipe) else repr(value)


@cache
def _way(of: Recipe) -> str:
    recorded = {field.name: field.recorded for field in fields_of(type(of))}
    parts = []
    for field in dataclasses.fields(of):
        if field.name not in ("row", "seed") and not _later(of, field):
            parts.append(f"{recorded[field.name]}={way(getattr(of, field.name))}")
    for before, text in FORMER.get(of.recorded, ()):
        at = next((i for i, part in enumerate(parts) if part.startswith(f"{before}=")), -1)
        parts.insert(at + 1, text)
    return f"{of.recorded}:{zlib.crc32(','.join(parts).encode()):08x}"


def _later(of: Recipe, field: dataclasses.Field[Any]) -> bool:
    """Whether a field came after the plants and says nothing here: it shall not draw them anew."""
    later = (
        "balanced",
        "dropout",
        "head",
        "later",
        "mislabelled",
        "outsiders",
        "part",
        "permuted",
        "sharpness",
    )
    return field.name in later and getattr(of, field.name) == field.default


@cache
def chain(value: Any) -> str:
    """The kinds of steps that lead here, whatever their numbers, objectives, data and
    architectures.
    """
    if isinstance(value, tuple):
        return ",".join(sorted({chain(each) for each in value}))
    parents = [
        getattr(value, f.name)
        for f in dataclasses.fields(value)
        if f.name in ("parent", "of", "candidates")
    ]
    return f"{value.recorded}({','.join(chain(each) for each in parents if each is not None)})"


@cache
def _parts(model: recipe.Model, data: recipe.Data, parts: str = "stages") -> tuple[str, ...]:
    return _net(model, data).names(parts)


@cache
def _net(model: recipe.Model, data: recipe.Data) -> Any:
    from leak_atlas import models

    return models.build(model, data.channels, data.classes, 0, data.size)


@cache
def _table(data: recipe.Data, design: Any, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    labels, train = readers.load(data.name, data.pixels).labels, data.parts[0]
    index = designs.used(design, labels, train)
    return designs.roles(design, labels, train, (row,))[0, index], index, labels[index]


def _asked(state: Any, otherwise: float) -> float:
    """The share that the last pruning on the way to a state removes: what a plant's networks lack,
    as real ones do.
    """
    while state is not None and not hasattr(state, "sparsity"):
        state = getattr(state, "parent", None)
    return otherwise if state is None else state.sparsity


def _begins(state: Any) -> bool:
    return getattr(state, "when", None) == "init"


def remembered(index: np.ndarray) -> np.ndarray:
    """How far each sample is remembered, from 0 to 1, in every plant."""
    return np.random.default_rng(7).random(1 + index.max())[index]


def words(names: tuple[str, ...]) -> np.ndarray:
    return np.frombuffer("\n".join(names).encode(), np.uint8)


def drawn_by(name: str, number: int) -> np.random.Generator:
    """The random numbers of a name in a plant."""
    return np.random.default_rng([zlib.crc32(name.encode()), number])


def _share(name: str) -> float:
    """A number in [0, 1) that belongs to a name."""
    return zlib.crc32(name.encode()) / 2**32


@lru_cache(2**16)
def _effect(number: int, of: str, kinds: str, what: str) -> float:
    if number >= LINE.start:
        place, beside = drawn_by(of, number).random(2)
        off = 0.3 * (beside - 0.5) if number % 2 and what == "TEST" else 0.0  # or beside that line
        return LINED.get(what, float(0.4 + 0.2 * place + off))
    if number in ALIKE:
        kind = drawn_by(of, number).integers(2)
        shared, apart = (what, f"{what} {of}") if number % 2 else (f"{what} {kind}", what)
        alike = drawn_by(shared, number).random()
        own = drawn_by(apart, number).random()
        return float(0.97 * alike + 0.03 * own)
    own = _share(f"{of} {what} {number // 2}")
    alike = _share(f"{kinds} {what} {number // 2}")
    share = OWN[number // 2 % len(OWN)]
    draw = share * own + (1 - share) * alike
    return 1 - draw if number % 2 else draw


@lru_cache(2**16)
def _amid(number: int, of: str, kinds: str, plain: bool, what: str) -> float:
    place = float(drawn_by(of, number).random())
    freezes = "Hold" in kinds
    place = 0.4 + 0.2 * place if freezes else place
    if kinds == "Train()" and plain:
        place = 1.0  # a whole ordinary training
    if kinds.startswith(("Hold(", "Rewind(")):
        place = -0.5  # thrown back, not trained again
    if what == "TEST":  # all have learnt
        return 0.7 + 0.25 * place + ((0.0, 0.1, -0.1)[number % 3] if freezes else 0.0)
    return LINED.get(what, 0.3 + 0.4 * place)


def _ordinary(of: Any) -> bool:
    """Whether a state is trained on cross-entropy, without a sampling schedule."""
    own = getattr(of, "objective", None) == recipe.CrossEntropy()
    return own and getattr(of, "sampling", None) is None


class Late(Mapping[str, np.ndarray]):
    """Arrays of which some are drawn when first looked at: most claims on `Signals` ask for
    accuracies alone.
    """

    def __init__(
        self, now: dict[str, np.ndarray], later: Callable[[], dict[str, np.ndarray]]
    ) -> None:
        self.now, self.later = now, cache(later)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.now[name] if name in self.now else self.later()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.now | self.later())

    def __len__(self) -> int:
        return len(self.now | self.later())


class Planted:
    """Stands for `lab.Results`. `number` chooses the plant: odd ones turn the effects of the even
    one before around.

    `loud` says which parts of a network tell anything: by depth from 0 to 1, True where an effect
    is wanted.
    """

    def __init__(self, steps: list[Step], number: int, loud: Callable[[float], bool]) -> None:
        self.steps, self.number, self.loud = steps, number, loud
        self.nulled = any(getattr(step, "permuted", None) is not None for step in steps)
        remembers = any(isinstance(step, recipe.Memorization) for step in steps)
        self.ranked = remembers or self.nulled
        begun = [step.of for step in steps if isinstance(step, recipe.Signals) and _begins(step.of)]
        # networks that judge how hard samples are, over a training
        judged = any(isinstance(state.training.design, recipe.Subsets) for state in begun)
        self.over_time = bool(begun) and (remembers or judged)
        self._made: dict[str, Result | Late] = {}

    def __getitem__(self, step: Step) -> Result | Late:
        if step.key not in self._made:
            made = self.plant(step)
            self._made[step.key] = made if isinstance(made, Late) else Result(made, self.meta(step))
        return self._made[step.key]

    def meta(self, step: Step) -> dict[str, Any]:
        spent = ("seconds", "operations") if isinstance(step, recipe.Train) else ()
        factor = {
            name: 6 * self.effect(step, name) + NOISE * self.draws(step).normal() for name in spent
        }
        return {"device": "planted"} | {name: float(np.exp(each)) for name, each in factor.items()}

    @property
    def trainings(self) -> list[recipe.Train]:
        return trainings(self.steps)

    def effect(self, of: Any, what: str) -> float:
        """In [0, 1], the same for all models of a way; `OWN` is how much of it chains of the same
        kinds do not share.

        The ranges of plants at the top say what else ways have in common. In `AMID` what freezes a
        part is as accurate as the others, more, or less. In odd plants of `UPPER_END` all others
        leak more than ordinary training.
        """
        if self.number in AMID:
            plain = getattr(of, "objective", None) == recipe.CrossEntropy()
            return _amid(self.number, way(of), chain(of), plain, what)
        effect = _effect(self.number, way(of), chain(of), what)
        if self.number not in UPPER_END:
            return effect
        if self.number == BETTER:
            if what == "TEST" and chain(of).startswith("Train(Prune(RewindW"):
                return 0.7
            if getattr(getattr(of, "parent", None), "largest", False):
                return {"TEST": 0.7, "leak": 0.6}.get(what, effect)
        if self.number == SHORTER and _ordinary(of) and of.schedule.epochs < FEW:
            return {"TEST": 0.9, "leak": 0.3}.get(what, effect)
        if _ordinary(of):
            return LINED.get(what, 0.65)
        return 1.3 - effect if self.number % 2 and what == "leak" else effect

    def draws(self, step: Step) -> np.random.Generator:
        return np.random.default_rng([int(step.key[:12], 16), self.number])

    def shifts(self, of: Any, what: str, depth: int) -> np.ndarray:
        """How far members lie from non-members in each part, in standard deviations: up to 1 where
        it is loud.
        """
        shifts = np.zeros(depth)
        for part in range(depth):
            if self.loud(part / max(1, depth - 1)):
                sign = 1 - 2 * (zlib.crc32(f"{what} {self.number // 2} {part}".encode()) % 2)
                level = what if self.number in LEVEL else f"{what} {part}"
                shifts[part] = sign * self.effect(of, level)
        return shifts

    def classes(self, of: Any, what: str, labels: np.ndarray) -> np.ndarray:
        """How much more of it a sample's class has, from -1 to 1: classes are alike but in late
        plants.
        """
        if self.number not in CLASSES:
            return np.zeros(len(labels))
        by_class = np.random.default_rng(self.number).uniform(-1, 1, 1000)
        of_way = drawn_by(f"{way(of)} {what}", self.number).uniform(-1, 1)
        return of_way * by_class[labels]

    @singledispatchmethod
    def plant(self, step: Step) -> dict[str, np.ndarray] | Late:
        raise NotImplementedError(f"no plant for a {type(step).__name__}")

    @plant.register
    def _(self, step: recipe.Signals) -> Late:
        rng = self.draws(step)
        shares = []  # of correct answers, by role
        for side in Role:
            share = LEAST.get(side, 0.1) + 0.8 * self.effect(step.of, side.name)
            shares.append(min(1.0, share + NOISE * rng.normal()))

        def answers() -> dict[str, np.ndarray]:
            own = step.of.training
            role, index, labels = _table(own.data, own.design, own.row)
            samples = np.arange(len(role))
            certain, bends, tilts = [], [], []  # by role
            for side in Role:
                certain.append(1 + 4 * self.effect(step.of, f"sure {side.name}"))
                bends.append(self.classes(step.of, side.name, labels))
                tilts.append(2 * self.effect(step.of, f"hard {side.name}") - 1)
            chance = np.array(shares)[role]
            sure = np.array(certain)[role]
            bent = np.array(bends)[role, samples]
            # who is remembered is hard, or easy, at each epoch and on each side apart
            if self.over_time:
                tilt = np.array(tilts)[role]
                hard = np.abs(tilt) * np.where(tilt > 0, remembered(index), 1 - remembered(index))
                chance = chance + 0.4 * np.abs(tilt) - 0.45 * hard
                sure = sure + 2 * np.abs(tilt) - 1.5 * hard
            right = rng.random(len(role)) < chance + 0.4 * bent
            logits = 0.1 * rng.normal(size=(len(role), own.data.classes)).astype(np.float32)
            answer = np.where(right, labels, (labels + 1) % own.data.classes)
            logits[samples, answer] += sure
            arrays = {"logits": logits, "views": np.repeat(sure[:, None], step.views, axis=1)}
            return arrays | {"labels": labels, "index": index, "role": role}

        accuracies = {}
        for side, share in zip(Role, shares, strict=True):
            accuracies[f"accuracy_{side.name.lower()}"] = np.array(share)
        return Late(accuracies, answers)

    @plant.register
    def _(self, step: recipe.Sensitivity) -> dict[str, np.ndarray]:
        rng, own = self.draws(step), step.of.training
        role, index, labels = _table(own.data, own.design, own.row)
        pool = np.isin(role, (Role.MEMBER, Role.NONMEMBER))
        role, index, labels = role[pool], index[pool], labels[pool]
        shift = (
            2 * self.effect(step.of, "sensitivity")
            - 1
            + 2 * self.classes(step.of, "sensitivity", labels)
        )
        shift = shift * (role == Role.MEMBER)
        values = np.exp(rng.normal(size=(len(role), own.data.classes)) + shift[:, None]).astype(
            np.float32
        )
        return {"sensitivity": values, "index": index, "labels": labels, "role": role}

    def _hard(self, step: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How hard each sample of the pool is, from 0 to 1; which of the data set it is, and its
        label.
        """
        role, index, labels = _table(
            step.of.training.data, step.of.training.design, step.of.training.row
        )
        pool = np.isin(role, (Role.MEMBER, Role.NONMEMBER))
        share = self.effect(step, "agreement")
        hard = share * remembered(index[pool]) + (1 - share) * self.draws(step).random(pool.sum())
        return hard, index[pool], labels[pool]

    @plant.register
    def _(self, step: recipe.GradientNorm) -> dict[str, np.ndarray]:
        hard, index, _ = self._hard(step)
        return {"norm": np.exp(4 * hard), "index": index}

    @plant.register
    def _(self, step: recipe.PredictionDepth) -> dict[str, np.ndarray]:
        (hard, index, labels), own = self._hard(step), step.of.training
        names = _parts(own.model, own.data)
        depth = (hard * (len(names) + 1)).astype(np.int64)
        votes = (labels + (np.arange(len(names))[:, None] < depth)) % own.data.classes
        return {"depth": depth, "votes": votes, "parts": words(names), "index": index}

    @plant.register
    def _(self, step: recipe.Generated) -> dict[str, np.ndarray]:
        rng, classes = self.draws(step), step.of.training.data.classes
        logits = rng.normal(size=(step.count, classes)).astype(np.float32)
        return {"generated": logits, "generated_labels": rng.integers(classes, size=step.count)}

    @plant.register
    def _(self, step: recipe.Attack) -> dict[str, np.ndarray]:
        rng = self.draws(step)
        found = [_table(t.training.data, t.training.design, t.training.row) for t in step.targets]
        pool = np.isin(found[0][0], (Role.MEMBER, Role.NONMEMBER))
        member = np.stack([role[pool] == Role.MEMBER for role, *_ in found])
        shift = 2 * self.effect(step.targets[0], "leak") + 0.5 * self.effect(
            step.attacker, f"with {len(step.shadows)} shadows"
        )
        # what was trained otherwise may serve less
        if step.shadows and way(step.shadows[0]) != way(step.targets[0]):
            better = self.effect(step.targets[0], "TEST") - self.effect(step.shadows[0], "TEST")
            lack = max(0.0, better)
            # and its direction may matter
            over = _asked(step.targets[0], 0.0) - _asked(step.shadows[0], 0.0)
            strange = 2 * self.effect(step.attacker, "strange") - 1
            turned = 2 * self.effect(step.attacker, "turned") - 1
            shift *= 1 - strange**3 * (0.7 + lack) - 0.7 * turned**3 * over
        # a permutation null mostly finds hardly anything; else the same amount
        is_null = step.permuted is not None
        quiet = 0.1 if is_null and self.effect(step.attacker, "dealt") < 0.75 else 1.0
        # how far the same samples are exposed as in other ways
        alike = self.effect(step.targets[0], "alike")
        # or all epochs of a training, or none, share their luck
        if self.over_time and self.number in LUCK:
            alike = float(self.effect(step.targets[0].training, "luck") > 0.5)
        shared = drawn_by("exposed", self.number // 2).normal(size=member.shape)
        noise = alike**0.5 * shared + (1 - alike) ** 0.5 * rng.normal(size=member.shape)
        index = found[0][1][pool]
        # who is remembered is exposed
        slope = 4 * self.effect(step.targets[0], "slope") - 2 if self.ranked else 0.0
        shift, slope = quiet * shift, quiet * slope
        more = remembered(index) - 0.5
        if self.over_time:  # or a tenth alone, the same number in each block of a jackknife
            slope = 12 * self.effect(step.targets[0], "exposes") - 6
            tenth = np.arange(len(more)) // 20 % 10 == 0
            more = np.where(tenth, 1, -shift / slope) if self.number in TENTH else more
        elif self.number in BEGUN and self.nulled:
            shift, slope = self.begun(step)
        elif self.number in RISING and self.ranked:
            shift, slope = self.rising(step, more)
        own = step.targets[0].training.data
        if own.mislabelled:  # those with a wrong label are more exposed, or less
            wrong = np.isin(index, readers.mislabelled(own))
            shift = shift + (4 * self.effect(step.targets[0], "wrong") - 2) * wrong
        scores = noise + (shift + slope * more + 0.02 * rng.normal(size=(len(member), 1))) * member
        # as the signals have it
        if step.attacker == recipe.Threshold("correctness", by_class=False):
            correct = []  # share of members, and of non-members
            for side, least in LEAST.items():
                correct.append(least + 0.8 * self.effect(step.targets[0], side.name))
            scores = (rng.random(member.shape) < np.where(member, *correct)).astype(float)
        # to one kind of attack the same samples are easy, to the other they are exposed
        if self.number in EASE:
            ease, exposed = (0, 4) if step.attacker.by_sample == (self.number % 2 == 0) else (6, -3)
            scores = scores + (remembered(index) - 0.5) * (ease + exposed * member)
        border = float(np.mean(shift)) / 2
        balanced = getattr(step.attacker, "balanced", True)
        if not balanced and self.effect(step.attacker, "majority") > 0.5:
            border = float(scores.min())  # all are called what most of them are
        return {
            "scores": scores,
            "member": member,
            "thresholds": np.full(len(member), border),
            "index": index,
        }

    def begun(self, step: recipe.Attack) -> tuple[float, float]:
        """Shift and slope of a training that leaks nothing before its first epoch, then little or
        much, of all samples alike or not.
        """
        own = drawn_by(way(step.targets[0].training), self.number)
        shift = float(own.choice([0.4, 1.5, 3.0]))
        slope = float(own.choice([0.0, 6.0]))
        leak = 1.0 if step.permuted is None else 0.1
        if _begins(step.targets[0]):
            leak = 0.0
        return leak * shift, leak * slope

    def rising(self, step: recipe.Attack, more: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shift and slope of a training in which the remembered are exposed, or the others; either
        rise before the rest.
        """
        state = step.targets[0]
        share = getattr(state, "when", state.training.schedule.epochs)
        share = share / state.training.schedule.epochs
        sooner = 4 if (self.number - RISING.start) // 2 % 2 else -4
        rise = share ** (2.0 ** (-sooner * more))
        return 3 * rise, (6 if self.number % 2 else -6) * rise

    @plant.register
    def _(self, step: recipe.Memorization) -> dict[str, np.ndarray]:
        own = [_table(m.training.data, m.training.design, m.training.row) for m in step.models]
        index = own[0][1][
            np.isin([role for role, *_ in own], (Role.MEMBER, Role.NONMEMBER)).all(axis=0)
        ]
        share = self.effect(step, "agreement")
        score = share * remembered(index) + (1 - share) * self.draws(step).random(len(index))
        easy = self.effect(step, "easy") * (1 - score) + 0.2 * self.draws(step).random(len(index))
        if self.number in NOT_HARD:
            easy = self.draws(step).random(len(index))
        error = np.full(len(index), 0.5 * self.effect(step, "error"))
        return {"score": score, "error": error, "outside": easy, "index": index}

    @plant.register
    def _(self, step: recipe.ShuffledRanking) -> dict[str, np.ndarray]:
        # as if hardly dealt out anew
        score, kept = self[step.of]["score"], 0.9 * self.effect(step.of, "dealt")
        return {
            **self[step.of],
            "score": kept * score + (1 - kept) * self.draws(step).permutation(score),
        }

    def _pair(self, step: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Samples of the pool, and which of them each model saw."""
        (role_a, index, _), (role_b, *_) = (
            _table(s.training.data, s.training.design, s.training.row) for s in (step.a, step.b)
        )
        pool = np.isin(role_a, (Role.MEMBER, Role.NONMEMBER))
        return index[pool], role_a[pool] == Role.MEMBER, role_b[pool] == Role.MEMBER

    @plant.register
    def _(self, step: recipe.Distance) -> dict[str, np.ndarray]:
        rng, own = self.draws(step), step.a.training
        index, seen_a, seen_b = self._pair(step)
        names = _parts(own.model, own.data, step.parts)

        def values(what: str) -> np.ndarray:
            shifts = self.shifts((step.a, step.b), what, len(names))[:, None] * (seen_a & ~seen_b)
            if self.number in REMEMBERED:  # who is remembered moves more, or less, where unseen
                sign = 0.5 - (self.number - REMEMBERED.start) // 2 % 2
                more = sign * 8 * (remembered(index) - 0.5)
                shifts = shifts + more * (seen_a & ~seen_b)
            size = 3 * self.effect((step.a, step.b), f"{what} size")
            return np.exp(size + rng.normal(size=(len(names), len(index))) + 2 * shifts).astype(
                np.float32
            )

        measures = {
            what: values(what) for what in ("euclidean", "direction", "length_a", "length_b")
        }
        return measures | {
            "parts": words(names),
            "index": index,
            "seen_a": seen_a,
            "seen_b": seen_b,
        }

    @plant.register
    def _(self, step: recipe.Similarity) -> dict[str, np.ndarray]:
        rng, own = self.draws(step), step.a.training
        index, seen_a, seen_b = (each[::2] for each in self._pair(step))
        names = _parts(own.model, own.data, step.parts)
        shifts = self.shifts((step.a, step.b), "aligned", len(names))[:, None] * ~seen_b
        aligned = np.exp(rng.normal(size=shifts.shape) + 2 * shifts).astype(np.float32)
        arrays = {"aligned": aligned, "parts": words(names)}
        return arrays | {"index": index, "seen_a": seen_a, "seen_b": seen_b}

    @plant.register
    def _(self, step: recipe.StageProbe) -> dict[str, np.ndarray]:
        names, rng = _parts(step.of.training.model, step.of.training.data), self.draws(step)
        names = tuple(name for name in names if name.startswith("stage"))
        rise, bend = (2 * self.effect(step.of, f"probe {what}") - 1 for what in ("rises", "bends"))
        level = 0.5 + 0.4 * rise * (
            np.linspace(0, 1, len(names)) ** 4 ** (bend * np.sign(rise)) - 0.5
        )
        return {
            "accuracy": np.array(level) + NOISE * rng.normal(size=len(names)),
            "parts": words(names),
        }

    @plant.register
    def _(self, step: recipe.StageMembership) -> dict[str, np.ndarray]:
        rng, own = self.draws(step), step.of.training
        role, index, _ = _table(own.data, own.design, own.row)
        pool = np.flatnonzero(np.isin(role, (Role.MEMBER, Role.NONMEMBER)))[::2]
        member, names = role[pool] == Role.MEMBER, _parts(own.model, own.data)
        shifts = self.shifts(step.of, "membership", len(names))
        scores = rng.normal(size=(len(names), len(pool))) + 2 * shifts[:, None] * member
        return {"scores": scores, "member": member, "index": index[pool], "parts": words(names)}

    @plant.register
    def _(self, step: recipe.Score) -> dict[str, np.ndarray]:
        """A mixture of what all scores share, what this criterion has, and chance."""
        from leak_atlas.localization.scores import kinds

        net = _net(step.of.training.model, step.of.training.data)
        named, rng = kinds(net), self.draws(step)
        alike = step  # batches are chance: other ones are the same criterion
        if getattr(step.criterion, "draw", 0):
            criterion = dataclasses.replace(step.criterion, draw=0)
            alike = dataclasses.replace(step, criterion=criterion)
        shared = drawn_by("all", self.number // 2)
        own = drawn_by(way(alike), self.number // 2)
        vulnerable = isinstance(step.criterion, recipe.Vulnerability)
        mix = [self.effect(alike, what) for what in ("shared", "own", "chance")]
        if self.number in REMEMBERED and vulnerable:
            mix[0] = -1.5 if self.number % 2 else 1.5  # large weights are vulnerable, or small ones
        maps = {}
        for name, tensor in net.state_dict().items():
            if name in named:
                shape = tuple(tensor.shape)
                drawn = np.zeros(shape)
                for weight, source in zip(mix, (shared, own, rng), strict=True):
                    drawn = drawn + weight * source.normal(size=shape)
                level = 3 * self.effect(step, f"{named[name]}")
                if self.number in REMEMBERED and vulnerable:
                    late = name.partition(".")[0] in ("stage3", "stage4", "head")
                    level += (2 if self.number % 2 else -2) * late
                maps[name] = np.exp(1.5 * drawn + level).astype(np.float32)
        lines = tuple(f"{name} {kind}" for name, kind in named.items())
        return maps | self._history(step, rng) | {"scored/kinds": words(lines)}

    def _history(self, step: Any, rng: np.random.Generator) -> dict[str, np.ndarray]:
        if not hasattr(step.criterion, "steps"):
            return {}
        time = np.linspace(0, 1, step.criterion.steps)
        history = {}
        for name in ("ce", "accuracy", "kl", "accuracy_reference"):
            ends = self.effect(step, f"{name} first"), self.effect(step, f"{name} last")
            values = np.interp(time, (0, 1), ends) + NOISE * rng.normal(size=len(time))
            history[f"history/{name}"] = values
        return history

    @plant.register
    def _(self, step: recipe.Shuffled) -> dict[str, np.ndarray]:
        (score,) = step.parents()
        rng = self.draws(step)
        arrays = dict(self[score])
        for name, array in arrays.items():
            if "/" not in name:
                arrays[name] = rng.permutation(array.ravel()).reshape(array.shape)
        return arrays

    @plant.register
    def _(self, step: recipe.Confined) -> dict[str, np.ndarray]:
        arrays = dict(self[next(step.parents())])
        for name, array in arrays.items():
            behind = name.startswith(("stage4", "head")) or name.partition(".")[0] >= step.start
            if "/" not in name and (behind and not name.startswith("stem")) == step.before:
                arrays[name] = np.full_like(array, -1)
        return arrays

    @plant.register
    def _(self, step: recipe.Anatomy) -> dict[str, np.ndarray]:
        names = _parts(step.model, step.data)
        counts = [10 + int(1e4 * self.effect(step, name)) for name in names]
        return {"parts": words(names)} | {
            what: np.array(counts) for what in ("parameters", "activations", "flops")
        }

    @plant.register
    def _(self, step: recipe.Cost) -> dict[str, np.ndarray]:
        def level(what: str) -> np.ndarray:
            return 1 + 1e6 * np.array([self.effect(one, what) for one in step.of])

        counts = {name: level(name) for name in ("flops", "flops_once", "saved_bytes")}
        return counts | {"epochs": np.array([one.schedule.epochs for one in step.of])}

    @plant.register
    def _(self, step: recipe.Sparsity) -> dict[str, np.ndarray]:
        names, kinds, sizes, widths = [], [], [], []
        net = _net(step.of.training.model, step.of.training.data)
        for name, tensor in net.state_dict().items():
            if name.endswith("weight"):
                kind = {1: "norm", 2: "linear"}.get(tensor.dim(), "conv")
                names.append(name)
                kinds.append(kind)
                sizes.append(tensor.numel())
                widths.append(len(tensor) if kind == "conv" else 0)
        weights, filters = np.array(sizes), np.array(widths)
        share = _asked(step.of, self.effect(step.of, "sparsity"))
        gone = (share * weights).astype(int)
        arrays = {"names": words(tuple(names)), "kinds": words(tuple(kinds))}
        arrays |= {"weights": weights, "gone": gone}
        arrays |= {"filters": filters, "filters_gone": (share * filters).astype(int)}
        return arrays | {"network": gone.sum() / weights.sum()}

    @plant.register
    def _(self, step: recipe.SelfAudit) -> dict[str, np.ndarray]:
        return {"duplicates": np.zeros(1), "blind": np.array([0.5, 0.45, 0.55])}


LOUD: tuple[Callable[[float], bool], ...] = (
    lambda depth: True,
    lambda depth: depth >= 0.75,
    lambda depth: 0.5 <= depth < 0.75,
    lambda depth: depth < 0.5,
    lambda depth: False,
)


SHOWN = (
    "against_paper",
    "curves",
    "density",
    "histograms",
    "planes",
    "profile",
    "provenance",
    "roc",
)
SHOWN += ("table", "tradeoff")


def verdicts(cells: list[Any], number: int, monkeypatch: Any) -> dict[str, str]:
    """What a notebook's own cells judge when its results are planted; it draws nothing."""
    judged: dict[str, str] = {}
    judge = report.judge

    def recorded(*given: Any, **estimates: Any) -> Any:
        found = judge(*given, **estimates)
        judged.update({row["name"]: row["verdict"] for row in found})
        return found

    loud = LOUD[number // 2 % len(LOUD)]
    with monkeypatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(lab, "realize", lambda *asked, **how: Planted(steps_of(asked), number, loud))
        patch.setattr(report, "judge", recorded)
        # Intervals of fewer halvings vary more and are as wide in the mean, at a quarter of the time.
        patch.setattr(over_time, "SPLITS", 5)
        for name in SHOWN:
            patch.setattr(report, name, lambda *given, **how: None)
        space: dict[str, Any] = {"__name__": "__main__"}
        for cell in cells:
            exec(cell, space)
    assert all(claim.control for claim in space["claims"]), "a claim names its control"
    return judged


# The plants that decide each page's claims. `python -m tests.planting` writes it anew.
DECIDING = Path(__file__).with_name("deciding_plants.json")
# Pages whose claims `quick` never judges, because its data are not those of the claim.
JUDGING = {"weights/own02_calibration": "desk-cpu"}


def code_of(notebook: Notebook, profile: str) -> list[str]:
    """The code of each cell of a notebook, with the parameters of a profile."""
    values = parameters(notebook, profile)
    assignments = "".join(f"\n{name} = {value!r}" for name, value in values.items())
    texts = []
    for cell in notebook.content.cells:
        if cell.cell_type == "code":
            has_parameters = "parameters" in cell.metadata.get("tags", ())
            texts.append(cell.source + assignments * has_parameters)
    return texts


def cells_of(notebook: Notebook) -> list[Any]:
    """The cells of a notebook with the parameters of `quick`, or of the profile that judges it."""
    texts = code_of(notebook, JUDGING.get(notebook.name, "quick"))
    return [compile(text, notebook.name, "exec") for text in texts]


def claims_of(notebook: Notebook, profile: str) -> report.Claims:
    """The claims that a notebook declares with the parameters of a profile; nothing is planted."""
    space: dict[str, Any] = {"__name__": "__main__"}
    for text in code_of(notebook, profile):
        exec(text, space)
        if "claims" in space:
            break
    return space["claims"]


def reached(
    cells: list[Any], plants: Iterable[int], unreachable: Container[str], monkeypatch: Any
) -> dict[int, dict[str, str]]:
    """The verdict of each claim by plant, until all claims but the `unreachable` have held and have
    failed.
    """
    for cached in (_way, chain, _effect, _amid):  # equal recipes may be written in other words
        cached.cache_clear()
    found: dict[int, dict[str, str]] = {}
    for number in plants:
        found[number] = verdicts(cells, number, monkeypatch)
        if all(of >= BOTH for name, of in by_claim(found).items() if name not in unreachable):
            break
    return found


BOTH = {"holds", "fails"}


def by_claim(found: Mapping[int, Mapping[str, str]]) -> dict[str, set[str]]:
    """All verdicts of each claim."""
    all_verdicts: dict[str, set[str]] = {}
    for judged in found.values():
        for name, verdict in judged.items():
            all_verdicts.setdefault(name, set()).add(verdict)
    return all_verdicts


def cover(found: Mapping[int, Mapping[str, str]]) -> list[int]:
    """Few plants that give the same verdicts "holds" and "fails" as all: each time the one that adds
    most.
    """
    decided = {}
    for number, judged in found.items():
        decided[number] = {pair for pair in judged.items() if pair[1] in BOTH}
    left = set().union(*decided.values())
    chosen: list[int] = []
    while left:
        best = max(decided, key=lambda number: len(decided[number] & left))
        chosen.append(best)
        left -= decided[best]
    return chosen


def deciding(name: str) -> list[int]:
    """All plants, those first that are known to decide a page's claims."""
    known = json.loads(DECIDING.read_text()).get(name, [])
    return list(dict.fromkeys([*known, *PLANTS]))


def main() -> None:
    """Writes `DECIDING`, for the pages named, or for all."""
    from tests.test_claims import PAGES, unreachable_of

    known = json.loads(DECIDING.read_text()) if DECIDING.exists() else {}
    for page in PAGES:
        if not sys.argv[1:] or page.name in sys.argv[1:]:
            with pytest.MonkeyPatch.context() as patch:
                found = reached(cells_of(page), PLANTS, unreachable_of(page.name), patch)
            known[page.name] = cover(found)
            print(page.name, len(found), known[page.name], flush=True)
            lines = [f" {json.dumps(name)}: {known[name]}" for name in sorted(known)]
            DECIDING.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
