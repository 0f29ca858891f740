"""Your own logits: arrays of a target and of its shadows, checked as they are read.

An .npz holds the arrays of `Logits`, by name. N samples, C classes, M shadow models, Z samples of a
population, and where several queries of a sample are brought A of them, the plain one first: `(N,
A, C)` in place of `(N, C)`.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from leak_atlas import BadInput, nearest, reason
from leak_atlas.attacks.case import Case
from leak_atlas.attacks.signals import scaled_confidence
from leak_atlas.audit import BoolArray
from leak_atlas.data.designs import Role
from leak_atlas.engine import files, paths
from leak_atlas.engine.compute import Arrays

LIMIT = 2**36  # bytes that an .npz unpacks to
ARRAYS = {
    "target": ("(N, C)", "logits of the model under audit, floating point"),
    "labels": ("(N,)", "true classes, whole numbers 0 .. C-1"),
    "member": ("(N,)", "Boolean: did the target train on the sample?"),
    "shadows": ("(M, N, C)", "logits of shadow models on the same samples"),
    "in_shadow": ("(M, N)", "Boolean: did that shadow train on the sample?"),
    "population": ("(Z, C)", "the target's logits on samples that no model trained on"),
    "population_labels": ("(Z,)", "true classes of these"),
    "population_shadows": ("(M, Z, C)", "the shadows' logits on these"),
}
NEEDED = ("target", "labels", "member")
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
        if self.target.ndim not in (2, 3) or self.target.shape[-1] < 2:
            raise BadInput(
                f"target has shape {self.target.shape}; it takes (N, C), two classes or more, or {QUERIES}"
            )
        n, classes = self.target.shape[0], self.target.shape[-1]
        self._logits("target", self.target.shape)
        self._labels("labels", n, classes)
        self._boolean("member", (n,))
        self._together("shadows", "in_shadow")
        self._together("population", "population_labels", "population_shadows")
        if self.shadows is not None:
            self._logits("shadows", ("M", *self.target.shape))
            self._boolean("in_shadow", (self.models, n))
            for own, shadow in enumerate(self.shadows):
                if np.array_equal(shadow, self.target):
                    raise BadInput(
                        f"shadows[{own}] is the target itself: leave it out, it would find all members"
                    )
        if self.population is not None:
            if self.shadows is None:
                raise BadInput(
                    "population serves RMIA, which needs shadows: give them too, or leave it out"
                )
            self._logits("population", ("Z", *self.target.shape[1:]))
            self._labels("population_labels", len(self.population), classes)
            self._logits("population_shadows", (self.models, *self.population.shape))

    def _together(self, *names: str) -> None:
        missing = [name for name in names if getattr(self, name) is None]
        if missing and len(missing) < len(names):
            there = next(name for name in names if name not in missing)
            raise BadInput(f"{missing[0]} is missing, which {there} needs: {_line(missing[0])}")

    def _logits(self, name: str, shape: tuple[int | str, ...]) -> None:
        """Finite logits of this shape, in which a letter stands for any size above 0."""
        z: np.ndarray = getattr(self, name)
        sizes = tuple(
            size if isinstance(size, int) else own
            for own, size in zip(z.shape, shape, strict=False)
        )
        if z.shape != sizes or z.ndim != len(shape) or not z.size:
            raise BadInput(
                f"{name} has shape {z.shape}; ({', '.join(map(str, shape))}) is expected"
            )
        if z.dtype.kind != "f":
            raise BadInput(f"{name} holds {z.dtype}; logits are floating point")
        # a model at a time: memory
        for own, part in enumerate(z if name.endswith("shadows") else [z]):
            where = f"{name}[{own}]" if name.endswith("shadows") else name
            if odd := int((~np.isfinite(part)).sum()):
                raise BadInput(f"{where} holds {odd:,} values that are NaN or infinite")
            rows = part[:1000].astype(float)
            if rows.min() >= 0 and np.allclose(rows.sum(axis=-1), 1, atol=0.01):
                raise BadInput(
                    f"{where} holds probabilities; logits are needed, or np.log(np.maximum(p, 1e-30))"
                )

    def _labels(self, name: str, n: int, classes: int) -> None:
        y: np.ndarray = getattr(self, name)
        if y.shape != (n,) or y.dtype.kind not in "iu":
            raise BadInput(
                f"{name} holds {y.dtype} of shape {y.shape}; {n:,} whole numbers fit the logits"
            )
        if y.min() < 0 or y.max() >= classes:
            raise BadInput(
                f"{name} reach from {y.min()} to {y.max()}; the logits have classes 0 to {classes - 1}"
            )

    def _boolean(self, name: str, shape: tuple[int, ...]) -> None:
        mask: np.ndarray = getattr(self, name)
        if mask.dtype != np.bool_:
            raise BadInput(f"{name} holds {mask.dtype}; it takes Booleans: {name}.astype(bool)")
        if mask.shape != shape:
            raise BadInput(f"{name} has shape {mask.shape}; {shape} fits the logits")

    def judged(self) -> Logits:
        """These arrays. BadInput where members or non-members are missing, without which nothing
        can be judged.
        """
        for side, empty in (
            ("members", not self.member.any()),
            ("non-members", bool(self.member.all())),
        ):
            if empty:
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
    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """How many shadows trained on each sample, and how many did not, `(N,)` each."""
        inside = np.zeros((0, len(self.member)), bool) if self.in_shadow is None else self.in_shadow
        return inside.sum(axis=0), (~inside).sum(axis=0)

    @cached_property
    def case(self) -> Case:
        """All samples as the library's attacks take them; those of the population are its test
        samples.
        """
        y, pool, rest = (
            self.labels,
            np.where(self.member, Role.MEMBER, Role.NONMEMBER),
            np.zeros(0, int),
        )
        if self.population_labels is not None:
            y = np.concatenate([y, self.population_labels])
            rest = np.full(len(self.population_labels), Role.TEST)
        seen = np.zeros((0, len(pool)), int) if self.in_shadow is None else self.in_shadow
        roles = [np.concatenate([np.where(own, Role.MEMBER, Role.NONMEMBER), rest]) for own in seen]

        def arrays(z: np.ndarray, more: np.ndarray | None, role: np.ndarray) -> Arrays:
            z = self.by_query(z if more is None else np.concatenate([z, more]))
            return {
                "logits": z[:, 0],
                "views": scaled_confidence(z, y[:, None]),
                "labels": y,
                "role": role,
            }

        target = arrays(self.target, self.population, np.concatenate([pool, rest]))
        shadows = () if self.shadows is None else self.shadows
        others = (
            [None] * self.models if self.population_shadows is None else self.population_shadows
        )
        each = zip(shadows, others, roles, strict=True)
        return Case(
            target, [arrays(*one) for one in each], np.reshape(roles, (self.models, len(y))), {}
        )

    def of(self, keep: BoolArray) -> Case:
        """The case of some samples `(N,)` alone, with the whole population."""
        if keep.all():
            return self.case
        which = np.concatenate([keep, np.ones(len(self.case.target["role"]) - len(keep), bool)])
        target, *others = (
            {name: one[which] for name, one in a.items()}
            for a in (self.case.target, *self.case.shadows)
        )
        return Case(target, others, self.case.roles[:, which], {})


def first_query(logits: np.ndarray) -> np.ndarray:
    """The first query of each sample: `(M, N, C)` of `(M, N, C)` or `(M, N, A, C)`."""
    return logits if logits.ndim == 3 else logits[:, :, 0]


def hits(logits: np.ndarray, labels: np.ndarray) -> BoolArray:
    """Whether each model classifies each sample correctly, `(M, N)`, by its first query."""
    return np.asarray(first_query(logits).argmax(axis=-1) == labels)


def _line(name: str) -> str:
    return f"{ARRAYS[name][0]} {ARRAYS[name][1]}"


def rows(arrays: Logits) -> list[dict[str, str]]:
    """A table of the arrays by name: shape, meaning, and the shape in an audit ("–": it has none)."""
    shapes = {name: getattr(getattr(arrays, name), "shape", "–") for name in ARRAYS}
    return [
        {"array": name, "shape": shape, "holds": what, "here": str(shapes[name])}
        for name, (shape, what) in ARRAYS.items()
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
    try:
        with zipfile.ZipFile(files.regular(path)) as packed:
            size = sum(file.file_size for file in packed.infolist())
        if size > LIMIT:
            raise BadInput(f"it unpacks to {size >> 30} GB; {LIMIT >> 30} are the most")
        with np.load(path, allow_pickle=False) as found:
            known(found.files)
            return Logits(**{name: _member(found, name) for name in found.files}).judged()
    except BadInput as error:
        raise BadInput(error if f"{path}" in f"{error}" else f"{path}: {error}") from error
    except zipfile.BadZipFile as error:
        raise BadInput(f"{path} is no .npz; numpy.savez_compressed makes one") from error
    except (
        OSError,
        ValueError,
        TypeError,
        EOFError,
        MemoryError,
        RuntimeError,
        zlib.error,
    ) as error:
        raise BadInput(f"{path} cannot be read ({reason(error)})") from error


def _member(found: Any, name: str) -> np.ndarray:
    try:
        array = found[name]
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise BadInput(
            f"{name} holds Python objects, which are never unpickled; save an array of numbers"
        ) from error
    if not isinstance(array, np.ndarray):
        raise BadInput(f"{name} is no array of numpy")
    return array


def save(path: Path, arrays: Logits) -> None:
    """Writes the arrays as an .npz, whole or not at all. OSError where the disk refuses."""
    with files.whole(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(
            file, **{name: each for name in ARRAYS if (each := getattr(arrays, name)) is not None}
        )


# ---------------------------------------------------------------- from the library's own networks


def brought(target: Arrays, shadows: Sequence[Arrays]) -> Logits:
    """What `Signals` say of a target and its shadows on the same samples, as a user would bring it.

    The target's members and non-members are the samples, those of the test part the population.
    """
    role = target["role"]
    pool, rest = np.isin(role, (Role.MEMBER, Role.NONMEMBER)), role == Role.TEST
    given = {
        "target": target["logits"][pool],
        "labels": target["labels"][pool],
        "member": role[pool] == Role.MEMBER,
    }
    given["index"] = target["index"][pool]
    if shadows:
        logits = np.stack([one["logits"] for one in shadows])
        given |= {"shadows": logits[:, pool]}
        given |= {"in_shadow": np.stack([one["role"][pool] == Role.MEMBER for one in shadows])}
        if rest.any():
            given |= {
                "population": target["logits"][rest],
                "population_labels": target["labels"][rest],
            }
            given |= {"population_shadows": logits[:, rest]}
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
