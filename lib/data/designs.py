"""Designs: who plays which role, one row of a table for each model.

A row's draw depends on the design's seed, on what is drawn and on the row's own number, never on how many rows are
asked for: eight shadows are the first eight of sixty-four, bit for bit. The pool, dev, reference and test samples are
drawn once and are the same for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from lib import BadInput, recipe


class Role(IntEnum):
    """What a sample is to one model."""

    UNUSED = 0
    MEMBER = 1  # trained on
    NONMEMBER = 2  # of the pool, not trained on: what an attack has to tell from members
    DEV = 3  # early stopping, choice of strength
    REFERENCE = 4  # seen by a defence, trained on by no model
    TEST = 5  # of the data set's test part: accuracy, RMIA's population


UNUSED, MEMBER, NONMEMBER, DEV, REFERENCE, TEST = Role


class _Purpose(IntEnum):
    """Each draw has its own stream. A purpose keeps its number for ever: roles, hence stored results, depend on it."""

    POOL = 0
    TEST = 1
    DEV = 2
    REFERENCE = 3
    HALF = 4  # Halves, by pair
    RANDOM_HALF = 5  # RandomHalves, by pair
    SIDES = 6  # VictimAttacker: the two halves
    SPLIT = 7  # VictimAttacker: a half's split, by row
    LEFT_OUT = 8  # LeftOut: which sub-models leave a member out, by the base's row


def _stream(seed: int, purpose: _Purpose, index: int = 0) -> np.random.Generator:
    # The spawn key keeps (seed, purpose, index) apart for every seed, which a list as entropy would not.
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose, index))))


def quotas(available: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """How many of `count` samples each class gives: as equal as the classes' sizes allow.

    `available` (C,) samples in each class, with `count` at most their sum. Every class gives the same number, or all it
    has where that is less; the remainder is one more from each of some classes, drawn at random. Returns (C,) int64.
    """
    low, high = 0, int(available.max(initial=0))
    while low < high:  # the largest level that does not give more than `count`
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(available, middle).sum() <= count else (low, middle - 1)
    given = np.minimum(available, low).astype(np.int64)
    can_give_more = np.flatnonzero(available > low)
    given[rng.permutation(can_give_more)[: count - given.sum()]] += 1
    return given


def _take(label: np.ndarray, given: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ascending places in `label` (n,) of `given[c]` random samples of each class c, numbered from 0."""
    sizes = np.bincount(label, minlength=len(given))
    order = np.lexsort((rng.random(len(label)), label))
    rank = np.arange(len(label)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[rank < given[label[order]]])


def _draw(indices: np.ndarray, labels: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` of `indices`, class-balanced by their `labels`, ascending."""
    classes, label = np.unique(labels[indices], return_inverse=True)
    given = quotas(np.bincount(label, minlength=len(classes)), count, rng)
    return indices[_take(label, given, rng)]


@dataclass(frozen=True)
class _Sets:
    """The samples of a design, each set ascending."""

    pool: np.ndarray
    test: np.ndarray
    dev: np.ndarray
    reference: np.ndarray


def _natural(owner: str, **values: int) -> None:
    for name, value in values.items():
        if value < 0:
            raise BadInput(f"{owner}.{name} cannot be {value}; give 0 or more")


def _sets(design: recipe.Design, labels: np.ndarray, train: int) -> _Sets:
    if isinstance(design, recipe.LeftOut):
        return _sets(design.base, labels, train)
    owner = type(design).__name__
    labels = np.asarray(labels)
    if labels.ndim != 1 or not 0 <= train <= len(labels):
        raise BadInput(f"{train} train samples do not fit labels of shape {labels.shape}")
    wanted_dev, wanted_reference = 0, 0
    if isinstance(design, recipe.RandomHalves):
        wanted_dev, wanted_reference = design.dev, design.reference
    left = len(labels) - train
    wanted_test = left if design.test is None else design.test
    _natural(owner, seed=design.seed, test=wanted_test, dev=wanted_dev, reference=wanted_reference)
    if design.pool < 2 or design.pool % 2:
        raise BadInput(f"{owner}.pool cannot be {design.pool}: it is halved, so give an even number from 2")
    if design.pool + wanted_dev + wanted_reference > train:
        outside = f", dev {wanted_dev:,} and reference {wanted_reference:,}" if wanted_dev or wanted_reference else ""
        raise BadInput(
            f"{owner}: a pool of {design.pool:,}{outside} does not fit the {train:,} train samples; ask for less"
        )
    if wanted_test > left:
        raise BadInput(f"{owner}.test: {wanted_test:,} of {left:,} test samples; ask for fewer, or None for all")

    pool = _draw(np.arange(train), labels, design.pool, _stream(design.seed, _Purpose.POOL))
    rest = np.setdiff1d(np.arange(train), pool, assume_unique=True)
    dev = _draw(rest, labels, wanted_dev, _stream(design.seed, _Purpose.DEV))
    rest = np.setdiff1d(rest, dev, assume_unique=True)
    reference = _draw(rest, labels, wanted_reference, _stream(design.seed, _Purpose.REFERENCE))
    test = _draw(np.arange(train, len(labels)), labels, wanted_test, _stream(design.seed, _Purpose.TEST))
    return _Sets(pool, test, dev, reference)


def _halves(row: int, design: recipe.Halves, pool: np.ndarray, labels: np.ndarray) -> np.ndarray:
    if row % 2 == 0:
        return np.full(len(pool), MEMBER, np.int8)
    rng = _stream(design.seed, _Purpose.HALF, row // 2)
    label = np.unique(labels[pool], return_inverse=True)[1]
    sizes = np.bincount(label)
    given, odd = sizes // 2, np.flatnonzero(sizes % 2)  # an even number of odd classes: the pool is even
    given[rng.permutation(odd)[: len(odd) // 2]] += 1
    out = np.full(len(pool), NONMEMBER, np.int8)
    out[_take(label, given, rng)] = MEMBER
    return out


def _random_halves(row: int, design: recipe.RandomHalves, pool: np.ndarray) -> np.ndarray:
    order = _stream(design.seed, _Purpose.RANDOM_HALF, row // 2).permutation(len(pool))
    inside = np.zeros(len(pool), bool)
    inside[order[: len(pool) // 2]] = True
    return np.where(inside ^ (row % 2 == 1), MEMBER, NONMEMBER).astype(np.int8)


def _victim_attacker(row: int, design: recipe.VictimAttacker, pool: np.ndarray) -> np.ndarray:
    half = len(pool) // 2
    sides = _stream(design.seed, _Purpose.SIDES).permutation(len(pool))
    own = np.sort(sides[:half] if row == 0 else sides[half:])
    order = own[_stream(design.seed, _Purpose.SPLIT, row).permutation(half)]
    _, member = split_of_half(half, design.dev)
    out = np.full(len(pool), UNUSED, np.int8)
    out[order[:member]] = MEMBER
    out[order[member : 2 * member]] = NONMEMBER
    out[order[2 * member :]] = DEV
    return out


def split_of_half(half: int, share: float) -> tuple[int, int]:
    """(dev, members) of a half: dev is `share` of it, or one more, so that what is left halves exactly."""
    dev = round(half * share)
    dev += (half - dev) % 2
    return dev, (half - dev) // 2


def _left_out(row: int, design: recipe.LeftOut, base: np.ndarray) -> np.ndarray:
    """Roles in `base (N,)` with the members that sub-model `row` leaves out as non-members."""
    number, sub_model = divmod(row, design.models)
    members = np.flatnonzero(base == MEMBER)
    draws = _stream(design.seed, _Purpose.LEFT_OUT, number).random((len(members), design.models))
    out = base.copy()
    out[members[(draws.argsort(axis=1)[:, : design.leave_out] == sub_model).any(axis=1)]] = NONMEMBER
    return out


def roles(design: recipe.Design, labels: np.ndarray, train: int, rows: Sequence[int] | int) -> np.ndarray:
    """The role of every sample in each of `rows` (an int: the first so many): (len(rows), N) int8 of `Role`.

    `labels` (N,) of the train part and then the test part, `train` samples in the former. Pool, dev and reference are
    disjoint class-balanced draws from the train part, test is one from the test part; where a class is too small for
    an equal share it gives all it has. A pool may be as large as the train part. Within the pool:

    - `Halves`: row 2p has the whole pool as members, row 2p + 1 its random half number p: half of each class, and of a
      class of odd size one more or one less. So the two sides of the feature distance hold the same mix of classes.
    - `RandomHalves`: row 2p has a random half of exactly pool / 2 and row 2p + 1 the other. Not stratified: this is the
      membership game as LiRA and RMIA play it, each half as likely as any other.
    - `VictimAttacker`: the pool is cut into two random halves. Row 0 splits the one, each later row re-splits the other
      with its own seed; the samples of the half that is not the row's own are unused. SAMIA joins train and test files
      first; here its halves come from the pool, and the test part stays a common measure of accuracy.
    - `LeftOut`: row K r + k is row r of its base, whose members are left out by L random ones of the K rows K r ..
      K r + K - 1, and are non-members there. Each member draws for itself, so that sizes vary a little.

    BadInput where the pool is odd or does not fit.
    """
    if min([rows] if isinstance(rows, int) else rows, default=0) < 0:
        raise BadInput(f"rows of a design are counted from 0, so {rows} asks for none that there is")
    chosen = range(rows) if isinstance(rows, int) else rows
    labels = np.asarray(labels)
    if isinstance(design, recipe.LeftOut):
        bases = roles(design.base, labels, train, [row // design.models for row in chosen])
        subs = [_left_out(row, design, base) for row, base in zip(chosen, bases, strict=True)]
        return np.stack(subs) if subs else bases
    sets = _sets(design, labels, train)
    out = np.full((len(chosen), len(labels)), UNUSED, np.int8)
    out[:, sets.dev], out[:, sets.reference], out[:, sets.test] = DEV, REFERENCE, TEST
    if isinstance(design, recipe.VictimAttacker) and (
        not 0 <= design.dev < 1 or split_of_half(design.pool // 2, design.dev)[1] < 1
    ):
        raise BadInput(f"VictimAttacker: dev {design.dev} of halves of {design.pool // 2} leaves no member; lower it")
    for i, row in enumerate(chosen):
        match design:
            case recipe.Halves():
                out[i, sets.pool] = _halves(row, design, sets.pool, labels)
            case recipe.RandomHalves():
                out[i, sets.pool] = _random_halves(row, design, sets.pool)
            case recipe.VictimAttacker():
                out[i, sets.pool] = _victim_attacker(row, design, sets.pool)
            case _:
                raise BadInput(
                    f"{type(design).__name__} says nothing about roles; take Halves, RandomHalves, VictimAttacker"
                )
    return out


def used(design: recipe.Design, labels: np.ndarray, train: int) -> np.ndarray:
    """Indices, ascending int64, of the samples that have a role in some row: pool, dev, reference and test."""
    sets = _sets(design, labels, train)
    return np.sort(np.concatenate([sets.pool, sets.dev, sets.reference, sets.test]))


def pool(design: recipe.Design, labels: np.ndarray, train: int) -> np.ndarray:
    """Indices, ascending int64, of the samples from which members are drawn."""
    return _sets(design, labels, train).pool


def pair(design: recipe.Design, row: int) -> int:
    """Rows of the same pair must not be each other's shadows: together they tell who is missing."""
    if isinstance(design, recipe.LeftOut):
        return pair(design.base, row // design.models)
    return row if isinstance(design, recipe.VictimAttacker) else row // 2
