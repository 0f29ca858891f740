"""Your own logits: arrays of a target and of its shadows, checked as they are read.

An .npz holds the arrays of `Logits`, by name. N samples, C classes, M shadow models, Z samples of a
population, and where several queries of a sample are brought A of them, the plain one first: `(N,
A, C)` in place of `(N, C)`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from leak_atlas import BadInput, nearest
from leak_atlas.attacks.case import Case
from leak_atlas.attacks.signals import scaled_confidence
from leak_atlas.audit import BoolArray
from leak_atlas.data import sources
from leak_atlas.data.designs import Role
from leak_atlas.engine import files, paths
from leak_atlas.engine.compute import Arrays


def _tuple(parts: Sequence[object]) -> str:
    """`(N, C)`, `(N,)`."""
    return f"({', '.join(map(str, parts))}{',' * (len(parts) == 1)})"


class Array(NamedTuple):
    """What one array is."""

    axes: str  # a letter each
    holds: str
    kind: Literal["logits", "labels", "flags"]

    @property
    def shape(self) -> str:
        return _tuple(self.axes)


ARRAYS = {
    "target": Array("NC", "logits of the model under audit, floating point", "logits"),
    "labels": Array("N", "true classes, whole numbers 0 .. C-1", "labels"),
    "member": Array("N", "Boolean: did the target train on the sample?", "flags"),
    "shadows": Array("MNC", "logits of shadow models on the same samples", "logits"),
    "in_shadow": Array("MN", "Boolean: did that shadow train on the sample?", "flags"),
    "population": Array("ZC", "the target's logits on samples that no model trained on", "logits"),
    "population_labels": Array("Z", "true classes of these", "labels"),
    "population_shadows": Array("MZC", "the shadows' logits on these", "logits"),
}
NEEDED = ("target", "labels", "member")
TOGETHER = ("shadows", "in_shadow"), ("population", "population_labels", "population_shadows")
TYPES = {  # of numpy by kind of array, and what to do about another
    "logits": ("f", "logits are floating point"),
    "labels": ("iu", "labels are whole numbers"),
    "flags": ("b", "it takes Booleans: .astype(bool)"),
}
QUERIES = "(N, A, C) of A queries a sample, the plain one first"


@dataclass(frozen=True, eq=False)
class Logits:
    """The arrays of one audit. BadInput, which names the array, where they do not belong together.

    Shadows are trained as the target was, each on a random part of the same samples; that part must
    say nothing about who is a member of the target.
    """

    target: np.ndarray
    labels: np.ndarray
    member: BoolArray
    shadows: np.ndarray | None = None
    in_shadow: BoolArray | None = None
    population: np.ndarray | None = None
    population_labels: np.ndarray | None = None
    population_shadows: np.ndarray | None = None
    index: np.ndarray | None = None  # where the samples lie in their data set, if they are of one

    @property
    def places(self) -> np.ndarray:
        """What reports call the samples `(N,)`: their places in their data set, or in these arrays."""
        return np.arange(len(self.labels)) if self.index is None else self.index

    def __post_init__(self) -> None:
        shape = self.target.shape
        if len(shape) not in (2, 3) or shape[-1] < 2:
            takes = f"it takes (N, C), two classes or more, or {QUERIES}"
            raise BadInput(f"target has shape {shape}; {takes}")
        values = {name: getattr(self, name) for name in ARRAYS}
        given = {name: value for name, value in values.items() if value is not None}
        _complete(given)
        sizes: dict[str, int] = {}
        for name, value in given.items():
            _check(name, value, "AC" if len(shape) == 3 else "C", sizes)
        for place, shadow in enumerate(given.get("shadows", ())):
            if np.array_equal(shadow, self.target):
                remedy = "leave it out, it would find all members"
                raise BadInput(f"shadows[{place}] is the target itself: {remedy}")

    def judged(self) -> Logits:
        """These arrays. BadInput where members or non-members are missing, without which nothing
        can be judged.
        """
        for side, inside in (("members", self.member), ("non-members", ~self.member)):
            if not inside.any():
                raise BadInput(f"member has no {side}: an audit needs samples of either kind")
        return self

    @property
    def models(self) -> int:
        return 0 if self.shadows is None else len(self.shadows)

    @property
    def queries(self) -> int:
        return 1 if self.target.ndim == 2 else self.target.shape[1]

    def by_query(self, z: np.ndarray) -> np.ndarray:
        """Logits with an axis of queries, `(n, A, C)`."""
        return z.reshape(len(z), self.queries, -1)

    @cached_property
    def trained(self) -> BoolArray:
        """Which shadow model trained on which sample, `(M, N)`."""
        none = np.zeros((0, len(self.member)), bool)
        return none if self.in_shadow is None else self.in_shadow

    @cached_property
    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """How many shadows trained on each sample, and how many did not, `(N,)` each."""
        return self.trained.sum(axis=0), (~self.trained).sum(axis=0)

    @cached_property
    def case(self) -> Case:
        """All samples as the library's attacks take them; those of the population are its test
        samples.
        """
        models = [self.target, *(() if self.shadows is None else self.shadows)]
        y = self.labels
        if self.population is not None:
            assert self.population_labels is not None and self.population_shadows is not None
            y = np.concatenate([y, self.population_labels])
            more = [self.population, *self.population_shadows]
            models = [np.concatenate(both) for both in zip(models, more, strict=False)]
        roles = np.full((1 + self.models, len(y)), Role.TEST, int)
        inside = np.vstack([self.member, self.trained])
        roles[:, : len(self.member)] = np.where(inside, Role.MEMBER, Role.NONMEMBER)
        target, *shadows = map(self._signals, models, [y] * len(models), roles)
        return Case(target, shadows, {})

    def _signals(self, z: np.ndarray, y: np.ndarray, role: np.ndarray) -> Arrays:
        """What `Signals` would say of one model."""
        z = self.by_query(z)
        views = scaled_confidence(z, y[:, None])
        return {"logits": z[:, 0], "views": views, "labels": y, "role": role}

    def of(self, keep: BoolArray) -> Case:
        """The case of some samples `(N,)` alone, with the whole population."""
        if keep.all():
            return self.case
        which = np.concatenate([keep, np.ones(len(self.case.target["role"]) - len(keep), bool)])
        target, *shadows = (
            {name: array[which] for name, array in model.items()}
            for model in (self.case.target, *self.case.shadows)
        )
        return Case(target, shadows, {})


# ---------------------------------------------------------------- checks


def _complete(given: Collection[str]) -> None:
    """BadInput where an array is given without another that it needs."""
    for names in TOGETHER:
        missing = [name for name in names if name not in given]
        if 0 < len(missing) < len(names):
            there = next(name for name in names if name in given)
            raise BadInput(f"{missing[0]} is missing, which {there} needs: {_line(missing[0])}")
    if "population" in given and "shadows" not in given:
        raise BadInput(
            "population serves RMIA, which needs shadows: give them too, or leave it out"
        )


def _check(name: str, value: np.ndarray, last: str, sizes: dict[str, int]) -> None:
    """Compares an array's type, shape and values with what `ARRAYS` says of it.

    `last` are the axes of logits that follow the samples, `sizes` the lengths of the axes of
    earlier arrays, to which its own are added.
    """
    axes, _, kind = ARRAYS[name]
    types, remedy = TYPES[kind]
    if value.dtype.kind not in types:
        raise BadInput(f"{name} holds {value.dtype}; {remedy}")
    axes = axes.replace("C", last)
    expected = _tuple([sizes.get(axis, axis) for axis in axes])
    lengths = dict(zip(axes, value.shape, strict=False))
    fits = all(sizes.setdefault(axis, length) == length for axis, length in lengths.items())
    if not fits or value.ndim != len(axes) or not value.size:
        raise BadInput(f"{name} has shape {value.shape}; {expected} is expected")
    if kind == "labels" and not 0 <= value.min() <= value.max() < sizes["C"]:
        why = f"the logits have classes 0 to {sizes['C'] - 1}"
        raise BadInput(f"{name} reach from {value.min()} to {value.max()}; {why}")
    if kind == "logits" and axes.startswith("M"):
        for place, model in enumerate(value):  # one at a time: memory
            _check_logits(f"{name}[{place}]", model)
    elif kind == "logits":
        _check_logits(name, value)


def _check_logits(name: str, z: np.ndarray) -> None:
    """BadInput where logits of one model are not finite, or probabilities."""
    if odd := int((~np.isfinite(z)).sum()):
        raise BadInput(f"{name} holds {odd:,} values that are NaN or infinite")
    some = z[:1000].astype(float)
    if some.min() >= 0 and np.allclose(some.sum(axis=-1), 1, atol=0.01):
        remedy = "logits are needed, or np.log(np.maximum(p, 1e-30))"
        raise BadInput(f"{name} holds probabilities; {remedy}")


def first_query(logits: np.ndarray) -> np.ndarray:
    """The first query of each sample: `(M, N, C)` of `(M, N, C)` or `(M, N, A, C)`."""
    return logits if logits.ndim == 3 else logits[:, :, 0]


def hits(logits: np.ndarray, labels: np.ndarray) -> BoolArray:
    """Whether each model classifies each sample correctly, `(M, N)`, by its first query."""
    return np.asarray(first_query(logits).argmax(axis=-1) == labels)


# ---------------------------------------------------------------- files


def _line(name: str) -> str:
    return f"{ARRAYS[name].shape} {ARRAYS[name].holds}"


def rows(arrays: Logits) -> list[dict[str, str]]:
    """A table of the arrays by name: shape, meaning, and the shape in an audit ("–": it has none)."""
    shapes = {name: getattr(getattr(arrays, name), "shape", "–") for name in ARRAYS}
    return [
        {"array": name, "shape": array.shape, "holds": array.holds, "here": str(shapes[name])}
        for name, array in ARRAYS.items()
    ]


def known(names: Collection[str]) -> None:
    """BadInput where one of the names is not of `ARRAYS`, or one that every audit needs is missing."""
    for name in names:
        if name not in ARRAYS:
            raise BadInput(f"unknown array '{name}'{nearest(name, list(ARRAYS))}")
    for name in NEEDED:
        if name not in names:
            raise BadInput(f"{name} is missing: {_line(name)}")


def read(path: Path) -> Logits:
    """The arrays of an .npz. BadInput, one line that names the file, where they are not right;
    nothing unpickles.
    """
    arrays = sources.npz(path)
    try:
        known(arrays)
        return Logits(**arrays).judged()
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def save(path: Path, arrays: Logits) -> None:
    """Writes the arrays as an .npz, whole or not at all. OSError where the disk refuses."""
    values = {name: getattr(arrays, name) for name in ARRAYS}
    given = {name: value for name, value in values.items() if value is not None}
    with files.whole(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(file, **given)


# ---------------------------------------------------------------- from the library's own networks


def brought(target: Arrays, shadows: Sequence[Arrays]) -> Logits:
    """What `Signals` say of a target and its shadows on the same samples, as a user would bring it.

    The target's members and non-members are the samples, those of the test part the population.
    """
    role = target["role"]
    pool, rest = np.isin(role, (Role.MEMBER, Role.NONMEMBER)), role == Role.TEST
    given = {name: array[pool] for name, array in target.items() if name in ("labels", "index")}
    given |= {"target": target["logits"][pool], "member": role[pool] == Role.MEMBER}
    if shadows:
        logits = np.stack([model["logits"] for model in shadows])
        given["shadows"] = logits[:, pool]
        given["in_shadow"] = np.stack([model["role"][pool] == Role.MEMBER for model in shadows])
        if rest.any():
            given["population"] = target["logits"][rest]
            given["population_labels"] = target["labels"][rest]
            given["population_shadows"] = logits[:, rest]
    return Logits(**given)


def example() -> Logits:
    """A target, 16 shadows: small networks really trained on 8 x 8 pixel clothes, in some twenty
    seconds, and stored.

    The target's complement pair is trained too and left out: it would tell who is a member.
    """
    from leak_atlas import lab
    from leak_atlas.recipe import Data, Model, RandomHalves, Schedule, Setup

    what = (
        Data("fashion-mnist-small", 8),
        RandomHalves(1000, test=400),
        Model("cnn2", 16),
        Schedule(30, 50, lr=0.05),
    )
    signals = Setup(*what, models=18).trained().signals()
    results = lab.realize(signals)
    return brought(results[signals[0]], [results[step] for step in signals[2:]])


def place(name: str) -> Path:
    """The scores of the report of this name; page and notebook lie beside them. BadInput where it
    is none.
    """
    if not name or name.startswith(".") or "/" in name or name == "index":
        raise BadInput(f"a report cannot be named '{name}': give another --name")
    return paths.runs("own") / f"{name}.csv"
