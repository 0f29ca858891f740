"""Your own logits: the arrays of a target and of its shadow models, checked as they are read.

An .npz holds the arrays of `Logits`, by name. N samples, C classes, M shadow models, Z samples of a
population. `(N, A, C)` of A queries a sample, the plain one first, may stand for `(N, C)`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leak_atlas import BadInput, nearest
from leak_atlas.attacks.case import Case
from leak_atlas.attacks.signals import scaled_confidence
from leak_atlas.audit import BoolArray
from leak_atlas.data import sources
from leak_atlas.data.designs import Role, in_pool
from leak_atlas.engine import files, paths
from leak_atlas.engine.compute import Arrays
from leak_atlas.own.weights import PICKLES


class Array(NamedTuple):
    """What one array is."""

    axes: str  # a letter each
    holds: str
    kind: Literal["logits", "labels", "flags"]
    needs: tuple[str, ...] = ()  # other arrays

    @property
    def shape(self) -> str:
        comma = "," if len(self.axes) == 1 else ""
        return f"({', '.join(self.axes)}{comma})"


ARRAYS = {
    "target": Array("NC", "logits of the model under audit, floating point", "logits"),
    "labels": Array("N", "true classes, whole numbers 0 .. C-1", "labels"),
    "member": Array("N", "Boolean: did the target train on the sample?", "flags"),
    "shadows": Array(
        "MNC",
        "logits of shadow models on the same samples",
        "logits",
        needs=("in_shadow",),
    ),
    "in_shadow": Array(
        "MN",
        "Boolean: did that shadow train on the sample?",
        "flags",
        needs=("shadows",),
    ),
    "population": Array(
        "ZC",
        "the target's logits on samples that no model trained on",
        "logits",
        needs=("population_labels", "population_shadows", "shadows"),
    ),
    "population_labels": Array(
        "Z",
        "true classes of these",
        "labels",
        needs=("population",),
    ),
    "population_shadows": Array(
        "MZC",
        "the shadows' logits on these",
        "logits",
        needs=("population",),
    ),
}
NEEDED = ("target", "labels", "member")
FROM_ONE_HOT = ".argmax(1) of one-hot rows"
# Of each kind of array: numpy's letters of the types that it may have, the type that most
# have, and what to do about others.
TYPES = {
    "logits": ("f", "float", "logits are floating point: .astype(float)"),
    "labels": ("iu", "int", f"labels are whole numbers: .astype(int), or {FROM_ONE_HOT}"),
    "flags": ("b", "bool", "it takes Booleans: .astype(bool)"),
}
SAVE = "np.savez('mine.npz', target=…, labels=…, member=…)"
NPY = b"\x93NUMPY"  # with which a file of one array begins
TAKEN = ("index", "glossary")  # pages that stand beside the reports
TAKEN_ENDS = (".run", ".claims")  # of files that stand beside a report


@dataclass(frozen=True, eq=False)
class Logits:
    """The arrays of one audit. Raises BadInput, which names the array, if they do not belong
    together.

    Shadow models are trained as the target was, each on a random part of the same samples. That
    part must say nothing about who is a member of the target.
    """

    target: NDArray
    labels: NDArray
    member: BoolArray
    shadows: NDArray | None = None
    in_shadow: BoolArray | None = None
    population: NDArray | None = None
    population_labels: NDArray | None = None
    population_shadows: NDArray | None = None
    index: NDArray | None = None  # where the samples lie in their data set, if they are of one

    def __post_init__(self) -> None:
        lengths = _lengths(self.given)
        for name, array in self.given.items():
            _check(name, array, lengths)
        for place, shadow in enumerate(self.given.get("shadows", ())):
            if np.array_equal(shadow, self.target):
                raise BadInput(f"shadows[{place}] is the target itself: leave it out")

    @property
    def given(self) -> dict[str, NDArray]:
        """The arrays that are there, by name."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        return {name: array for name, array in arrays.items() if array is not None}

    def judged(self) -> Logits:
        """These arrays. Raises BadInput if there are no members or no non-members."""
        for side, inside in (("members", self.member), ("non-members", ~self.member)):
            if not inside.any():
                raise BadInput(f"member has no {side}: an audit needs samples of either kind")
        return self

    @property
    def places(self) -> NDArray:
        """What reports call the samples `(N,)`: their places in their data set, or in these arrays."""
        return np.arange(len(self.labels)) if self.index is None else self.index

    @property
    def models(self) -> int:
        return 0 if self.shadows is None else len(self.shadows)

    @property
    def queries(self) -> int:
        return 1 if self.target.ndim == 2 else self.target.shape[1]

    def by_query(self, logits: NDArray) -> NDArray:
        """Logits with an axis of queries, `(n, A, C)`."""
        return logits.reshape(len(logits), self.queries, -1)

    @cached_property
    def trained(self) -> BoolArray:
        """Which shadow model trained on which sample, `(M, N)`."""
        nobody = np.zeros((0, len(self.member)), bool)
        return nobody if self.in_shadow is None else self.in_shadow

    @cached_property
    def counts(self) -> tuple[NDArray, NDArray]:
        """How many shadow models trained on each sample, and how many did not, `(N,)` each."""
        return self.trained.sum(axis=0), (~self.trained).sum(axis=0)

    @cached_property
    def _signals(self) -> list[Arrays]:
        """What the library's attacks read of the target and of each shadow model. The population
        stands behind the samples, as test samples.
        """
        logits = [self.target, *self.given.get("shadows", ())]
        labels = self.labels
        if self.population is not None:
            outside = [self.population, *self.given["population_shadows"]]
            logits = [np.concatenate(both) for both in zip(logits, outside, strict=True)]
            labels = np.concatenate([labels, self.given["population_labels"]])
        inside = np.vstack([self.member, self.trained])
        roles = np.full((len(logits), len(labels)), int(Role.TEST))
        roles[:, : len(self.member)] = np.where(inside, Role.MEMBER, Role.NONMEMBER)
        signals = []
        for of_model, role in zip(logits, roles, strict=True):
            queries = self.by_query(of_model)
            views = scaled_confidence(queries, labels[:, None])
            one = {"logits": queries[:, 0], "views": views, "labels": labels, "role": role}
            signals.append(one)
        return signals

    def of(self, keep: BoolArray) -> Case:
        """Some samples `(N,)`, with the whole population, as the library's attacks read them."""
        rest = len(self._signals[0]["role"]) - len(keep)
        which = np.concatenate([keep, np.ones(rest, bool)])
        models = []
        for signals in self._signals:
            models.append({name: array[which] for name, array in signals.items()})
        return Case(models[0], models[1:], {})


# ---------------------------------------------------------------- checks


def checked(arrays: Mapping[str, ArrayLike]) -> Logits:
    """Arrays by their names. Raises BadInput, which names the array, if one is unknown, missing or
    wrong, and where there are no members or no non-members.
    """
    _check_names(arrays.keys())
    given = {name: np.asarray(array) for name, array in arrays.items()}
    return Logits(**given).judged()


def _check_names(names: Collection[str]) -> None:
    for name in NEEDED:
        _check_there(name, "every audit", names)
    for name in names:
        if name not in ARRAYS:
            raise BadInput(f"unknown array '{name}'{nearest(name, list(ARRAYS))}")
        for needed in ARRAYS[name].needs:
            _check_there(needed, name, names)


def _check_there(name: str, by: str, names: Collection[str]) -> None:
    if name not in names:
        unknown = [other for other in names if other not in ARRAYS]
        close = get_close_matches(name, unknown, n=1)
        hint = f"; did you mean it by '{close[0]}'?" if close else ""
        raise BadInput(
            f"{name} is missing, which {by} needs: {ARRAYS[name].shape} {ARRAYS[name].holds}{hint}"
        )


def _lengths(given: Mapping[str, NDArray]) -> dict[str, tuple[int, ...]]:
    """The lengths of the axes by their letters: C stands for (classes) or (queries, classes)."""
    target = given["target"]
    if target.ndim not in (2, 3) or target.shape[-1] < 2:
        raise BadInput(
            f"target has shape {target.shape}; it takes (N, C), two classes or more, or (N, A, C) "
            "of A queries a sample"
        )
    lengths = {"N": target.shape[:1], "C": target.shape[1:]}
    for axis, name in (("M", "shadows"), ("Z", "population")):
        if name in given:
            lengths[axis] = given[name].shape[:1]
    return lengths


def _check(name: str, array: NDArray, lengths: Mapping[str, tuple[int, ...]]) -> None:
    """Raises BadInput if an array is of another type, shape or range than `ARRAYS` says."""
    axes, _, kind, _ = ARRAYS[name]
    letters, _, _ = TYPES[kind]
    if array.dtype.kind not in letters:
        raise BadInput(_of_another_type(name, array))
    shape = tuple(length for axis in axes for length in lengths[axis])
    if array.shape != shape:
        one_hot = kind == "labels" and array.shape == shape + lengths["C"][-1:]
        remedy = f": {FROM_ONE_HOT}" if one_hot else ""
        raise BadInput(f"{name} has shape {array.shape}; {shape} is expected{remedy}")
    if not array.size:
        raise BadInput(f"{name} has shape {array.shape}: it is empty")
    classes = lengths["C"][-1]
    if kind == "labels" and not 0 <= array.min() <= array.max() < classes:
        raise BadInput(
            f"{name} reach from {array.min()} to {array.max()}; the logits have classes 0 to "
            f"{classes - 1}"
        )
    if kind == "logits":
        _check_logits(name, array)


def _of_another_type(name: str, array: NDArray) -> str:
    """What is wrong with an array whose type is not that of its kind, and what to do."""
    axes, _, kind, _ = ARRAYS[name]
    _, usual, remedy = TYPES[kind]
    if array.dtype.kind == "O":
        return f"{name} is an array of objects: np.asarray({name}, {usual})"
    is_binary = array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all()
    if kind == "flags" and not is_binary:  # indices, or 1 and 2: .astype(bool) would be wrong
        models = " and each of the M models" if "M" in axes else ""
        remedy = f"it takes True or False for each of the N samples{models}"
    return f"{name} holds {array.dtype}; {remedy}"


def _check_logits(name: str, logits: NDArray) -> None:
    """Raises BadInput if logits are not finite, or probabilities."""
    if odd := int((~np.isfinite(logits)).sum()):
        raise BadInput(f"{name} holds {odd:,} values that are NaN or infinite")
    some = logits.reshape(-1, logits.shape[-1])[:1000].astype(float)
    if some.min() >= 0 and np.allclose(some.sum(axis=1), 1, atol=0.01):
        raise BadInput(
            f"{name} holds probabilities; logits are needed, or np.log(np.maximum(p, 1e-30))"
        )


# ---------------------------------------------------------------- files


def rows(arrays: Logits) -> list[dict[str, str]]:
    """A table of the arrays: shape, meaning, and the shape in this audit ("–": it is not given)."""
    shapes = {name: str(array.shape) for name, array in arrays.given.items()}
    table = []
    for name, array in ARRAYS.items():
        row = {"array": name, "shape": array.shape, "holds": array.holds}
        table.append(row | {"here": shapes.get(name, "–")})
    return table


def read(path: Path) -> Logits:
    """The arrays of an .npz, of which none is unpickled. Raises BadInput, which names the file."""
    _check_file(files.require_file(path))
    arrays = sources.npz(path)
    try:
        return checked(arrays)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def _check_file(path: Path) -> None:
    """Raises BadInput if a file is of another kind that users save arrays in."""
    with path.open("rb") as file:
        if file.read(len(NPY)) == NPY:
            raise BadInput(f"{path} holds one array; save all by name: {SAVE}")
    names = []
    if zipfile.is_zipfile(path):
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as packed:
            names = packed.namelist()
    if path.suffix in PICKLES or any(name.endswith("/data.pkl") for name in names):
        raise BadInput(f"{path} is a PyTorch file or a pickle; save the arrays by name: {SAVE}")


def save(path: Path, arrays: Logits) -> None:
    """Writes the arrays as an .npz, whole or not at all. Raises OSError if the disk refuses."""
    with files.atomic_write(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays.given)


def place(name: str, file: str | Path = "") -> Path:
    """The CSV of the report of this name; its page and notebook lie beside it. Raises BadInput if
    no report can have the name, or if the report of this name is of another file than `file`.
    """
    if (
        not name
        or name.startswith(".")
        or "/" in name
        or name in TAKEN
        or name.endswith(TAKEN_ENDS)
    ):
        raise BadInput(f"a report cannot be named '{name}': give another name")
    page = paths.runs("own") / name
    numbers = page.with_name(f"{name}.json")
    if file and numbers.exists():
        known = files.read_json(numbers, dict[str, Any]).get("settings", {}).get("file", "")
        # A file that was moved is the same one. An earlier version wrote its name without folder.
        previous = Path(known)
        is_there = previous.is_absolute() and previous.exists()
        if is_there and previous.resolve() != Path(file).expanduser().resolve():
            raise BadInput(f"{paths.shown(page)} is the report of {known}: give another name")
    return page.with_name(f"{name}.csv")


# ---------------------------------------------------------------- from the library's own networks


def brought(target: Arrays, shadows: Sequence[Arrays]) -> Logits:
    """What `Signals` gives of a target and its shadow models, in the form that a user brings.

    The target's members and non-members are the samples; its test samples are the population.
    """
    role = target["role"]
    pool = in_pool(role)
    test = role == Role.TEST
    arrays = {
        "target": target["logits"][pool],
        "labels": target["labels"][pool],
        "member": role[pool] == Role.MEMBER,
        "index": target["index"][pool],
    }
    if shadows:
        logits = np.stack([shadow["logits"] for shadow in shadows])
        roles = np.stack([shadow["role"] for shadow in shadows])
        arrays["shadows"] = logits[:, pool]
        arrays["in_shadow"] = roles[:, pool] == Role.MEMBER
        if test.any():
            arrays["population"] = target["logits"][test]
            arrays["population_labels"] = target["labels"][test]
            arrays["population_shadows"] = logits[:, test]
    return Logits(**arrays)


def example() -> Logits:
    """A target and 16 shadow models: small networks that are trained on 8 x 8 pixel clothes in some
    twenty seconds, and stored.

    The target's complement pair is trained too and left out: it would identify the members.
    """
    from leak_atlas import lab
    from leak_atlas.recipe import Data, Model, RandomHalves, Schedule, Setup

    data, design = Data("fashion-mnist-small", 8), RandomHalves(1000, test=400)
    setup = Setup(data, design, Model("cnn2", 16), Schedule(30, 50, lr=0.05), models=18)
    signals = setup.trained().signals()
    results = lab.realize(signals)
    return brought(results[signals[0]], [results[step] for step in signals[2:]])
