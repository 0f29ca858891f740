"""Designs: who plays which role, one row of a table for each model.

A row's draw depends on the design's seed, on what is drawn and on the row's own number, never on
how many rows are asked for: eight shadows are the first eight of sixty-four, bit for bit. The pool,
dev, reference and test samples are drawn once and are the same for all rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leak_atlas import BadInput
from leak_atlas.data.formats import places
from leak_atlas.engine.digests import generic
from leak_atlas.recipe import (
    Design,
    Folds,
    GivenSplit,
    Halves,
    LeftOut,
    RandomHalves,
    SharedTest,
    Subsets,
    VictimAttacker,
)


class Role(IntEnum):
    """What a sample is to one model."""

    UNUSED = 0
    MEMBER = 1  # trained on
    NONMEMBER = 2  # not trained on: what an attack has to tell from members
    DEV = 3  # early stopping
    REFERENCE = 4  # seen by a defence, trained on by no model
    TEST = 5  # of the data set's test part: accuracy, RMIA's population


UNUSED, MEMBER, NONMEMBER, DEV, REFERENCE, TEST = Role


def in_pool(role: NDArray) -> NDArray:
    """Which samples are members or non-members."""
    return np.isin(role, (MEMBER, NONMEMBER))


class _Purpose(IntEnum):
    """Each draw has its own stream. A purpose keeps its number for ever: roles, hence stored
    results, depend on it.
    """

    POOL = 0
    TEST = 1
    DEV = 2
    REFERENCE = 3
    HALF = 4  # Halves, by pair
    RANDOM_HALF = 5  # RandomHalves, by pair
    SIDES = 6  # VictimAttacker: the two halves
    SPLIT = 7  # VictimAttacker: a half's split, by row
    LEFT_OUT = 8  # LeftOut: which sub-models leave a member out, by the base's row
    SUBSET = 9  # Subsets, by row
    FOLDS = 10  # Folds, by draw
    OUTSIDERS = 11  # SharedTest: dev and non-members, by row; GivenSplit: non-members, once
    GIVEN_HALF = 12  # GivenSplit: a shadow's half, by pair


def _stream(seed: int, purpose: _Purpose, index: int = 0) -> np.random.Generator:
    # The spawn key keeps (seed, purpose, index) apart for every seed, which a list as entropy would
    # not.
    source = np.random.SeedSequence(seed, spawn_key=(purpose, index))
    return np.random.Generator(np.random.PCG64(source))


def quotas(available: NDArray, count: int, rng: np.random.Generator) -> NDArray:
    """How many of `count` samples each class gives: as equal as the classes' sizes allow.

    `available` (C,) samples in each class, with `count` at most their sum. Every class gives the
    same number, or all it has where that is less; the remainder is one more from each of some
    classes, drawn at random. Returns (C,) int64.
    """

    def given(level: int) -> int:
        """Samples that all classes give, each at most `level`."""
        return np.minimum(available, level).sum()

    levels = range(1, int(available.max(initial=0)) + 1)
    # The largest level that does not give more than `count`.
    level = bisect_right(levels, count, key=given)
    shares = np.minimum(available, level).astype(np.int64)
    can_give_more = np.flatnonzero(available > level)
    missing = count - shares.sum()
    one_more = rng.permutation(can_give_more)[:missing]
    shares[one_more] += 1
    return shares


def _take(label: NDArray, shares: NDArray, rng: np.random.Generator) -> NDArray:
    """Ascending places in `label` (n,) of `shares[c]` random samples of each class c, numbered from
    0.
    """
    random = rng.random(len(label))
    order = np.lexsort((random, label))  # by class, at random within each
    label_in_order = label[order]
    place = places(label_in_order)
    taken = order[place < shares[label_in_order]]
    return np.sort(taken)


def _draw(indices: NDArray, labels: NDArray, count: int, rng: np.random.Generator) -> NDArray:
    """`count` of `indices`, class-balanced by their `labels`, ascending."""
    classes, label = np.unique(labels[indices], return_inverse=True)
    available = np.bincount(label, minlength=len(classes))
    shares = quotas(available, count, rng)
    return indices[_take(label, shares, rng)]


class Sets(NamedTuple):
    """The samples of a design, each set ascending, and the labels `(N,)` of all samples."""

    pool: NDArray
    test: NDArray
    dev: NDArray
    reference: NDArray
    labels: NDArray


def _sets(design: Design, labels: NDArray, train: int) -> Sets:
    design = design.drawn
    labels = np.asarray(labels)
    if labels.ndim != 1 or not 0 <= train <= len(labels):
        raise BadInput(f"{train} train samples do not fit labels of shape {labels.shape}")
    number = len(labels) - train
    design.check(train, number)

    def draw(indices: NDArray, count: int, purpose: _Purpose) -> NDArray:
        rng = _stream(design.seed, purpose)
        return _draw(indices, labels, count, rng)

    train_part = np.arange(train)
    test_part = np.arange(train, len(labels))
    dev_count = 0 if design.dev_inside else design.dev
    test_count = Design.tests(design, number)

    pool = draw(train_part, design.pool, _Purpose.POOL)
    rest = np.setdiff1d(train_part, pool, assume_unique=True)
    dev = draw(rest, dev_count, _Purpose.DEV)
    rest = np.setdiff1d(rest, dev, assume_unique=True)
    reference = draw(rest, design.reference, _Purpose.REFERENCE)
    test = draw(test_part, test_count, _Purpose.TEST)
    return Sets(pool, test, dev, reference, labels)


@generic
def assign(design: Design, row: int, sets: Sets, out: NDArray) -> None:
    """Writes the roles that are a row's own into `out (N,)`, where dev, reference and test samples
    have theirs.
    """
    kind = type(design).__name__
    raise BadInput(f"{kind} says nothing about roles; take Halves, RandomHalves, VictimAttacker")


@assign.register(Halves)
def _(design: Halves, row: int, sets: Sets, out: NDArray) -> None:
    out[sets.pool] = MEMBER
    if row % 2 == 0:
        return
    rng = _stream(design.seed, _Purpose.HALF, row // 2)
    _, label = np.unique(sets.labels[sets.pool], return_inverse=True)
    sizes = np.bincount(label)
    shares = sizes // 2
    odd = np.flatnonzero(sizes % 2)  # an even number of classes: the pool is even
    one_more = rng.permutation(odd)[: len(odd) // 2]
    shares[one_more] += 1
    members = _take(label, shares, rng)
    out[np.delete(sets.pool, members)] = NONMEMBER


def _halve(indices: NDArray, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Two random halves of an even number of indices."""
    order = rng.permutation(len(indices))
    first, second = np.split(order, 2)
    return indices[first], indices[second]


@assign.register(RandomHalves)
def _(design: RandomHalves, row: int, sets: Sets, out: NDArray) -> None:
    pair, side = divmod(row, 2)
    rng = _stream(design.seed, _Purpose.RANDOM_HALF, pair)
    halves = _halve(sets.pool, rng)
    out[halves[side]] = MEMBER
    out[halves[1 - side]] = NONMEMBER


@assign.register(Subsets)
def _(design: Subsets, row: int, sets: Sets, out: NDArray) -> None:
    rng = _stream(design.seed, _Purpose.SUBSET, row)
    order = rng.permutation(len(sets.pool))
    members = order[: design.members(row)]
    out[sets.pool] = NONMEMBER
    out[sets.pool[members]] = MEMBER


@assign.register(Folds)
def _(design: Folds, row: int, sets: Sets, out: NDArray) -> None:
    draw, fold = divmod(row, design.folds)
    rng = _stream(design.seed, _Purpose.FOLDS, draw)
    order = rng.permutation(len(sets.pool))
    members = np.split(order, design.folds)[fold]
    out[sets.pool] = NONMEMBER
    out[sets.pool[members]] = MEMBER


def _own_half(design: VictimAttacker, row: int, sets: Sets) -> NDArray:
    """The half that row `row` splits, in an order of its own."""
    size = len(sets.pool) // 2
    of_sides = _stream(design.seed, _Purpose.SIDES)
    of_split = _stream(design.seed, _Purpose.SPLIT, row)
    places = of_sides.permutation(len(sets.pool))
    side = places[:size] if row < design.victims else places[size:]
    half = sets.pool[np.sort(side)]
    return half[of_split.permutation(size)]


@assign.register(VictimAttacker)
def _(design: VictimAttacker, row: int, sets: Sets, out: NDArray) -> None:
    half = _own_half(design, row, sets)
    number = design.members(row)
    out[half[:number]] = MEMBER
    out[half[number : 2 * number]] = NONMEMBER
    out[half[2 * number :]] = DEV


@assign.register(SharedTest)
def _(design: SharedTest, row: int, sets: Sets, out: NDArray) -> None:
    half = _own_half(design, row, sets)
    number = design.members(row)
    left_over = np.sort(half[number:])
    outside = np.concatenate([left_over, sets.test])
    rng = _stream(design.seed, _Purpose.OUTSIDERS, row)
    outside = outside[rng.permutation(len(outside))]
    out[half[:number]] = MEMBER
    out[outside[: design.dev]] = DEV
    out[outside[design.dev :]] = NONMEMBER


@assign.register(GivenSplit)
def _(design: GivenSplit, row: int, sets: Sets, out: NDArray) -> None:
    order = _stream(design.seed, _Purpose.OUTSIDERS).permutation(len(sets.test))
    outside = sets.test[order[design.population :]]
    if row == 0:
        out[sets.pool] = MEMBER
        out[outside] = NONMEMBER
        return
    judged = np.sort(np.concatenate([sets.pool, outside]))
    rng = _stream(design.seed, _Purpose.GIVEN_HALF, design.pair(row))
    first, second = _halve(judged, rng)
    out[first] = MEMBER if row % 2 else NONMEMBER
    out[second] = NONMEMBER if row % 2 else MEMBER


@assign.register(LeftOut)
def _(design: LeftOut, row: int, sets: Sets, out: NDArray) -> None:
    number, sub_model = divmod(row, design.models)
    assign(design.base, number, sets, out)
    members = np.flatnonzero(out == MEMBER)
    rng = _stream(design.seed, _Purpose.LEFT_OUT, number)
    draws = rng.random((len(members), design.models))
    order = draws.argsort(axis=1)
    left_out_by = order[:, : design.leave_out]  # each member's sub-models
    left_out = (left_out_by == sub_model).any(axis=1)
    out[members[left_out]] = NONMEMBER


def roles(design: Design, labels: NDArray, train: int, rows: Sequence[int] | int) -> NDArray:
    """The role of every sample in each of `rows` (an int: the first so many): (len(rows), N) int8
    of `Role`.

    `labels` (N,) of the train part and then the test part, `train` samples in the former. Pool, dev
    and reference are disjoint class-balanced draws from the train part, test is one from the test
    part; where a class is too small for an equal share it gives all it has. A pool may be as large
    as the train part. Within the pool:

    - `Halves`: row 2p has the whole pool as members, row 2p + 1 its random half number p: half of
      each class, and of a class of odd size one more or one less. So the two sides of the feature
      distance hold the same mix of classes.
    - `RandomHalves`: row 2p has a random half of exactly pool / 2 and row 2p + 1 the other. Not
      stratified: this is the membership game as LiRA and RMIA play it, each half as likely as any
      other.
    - `Subsets`, `Folds`: a random share of the pool, or one of k equal parts of it; not stratified
      either.
    - `VictimAttacker`, `SharedTest`: the pool is cut into two random halves. The first `victims`
      rows split the one, each later row the other, all with seeds of their own; the half that is
      not the row's own is unused.
    - `GivenSplit`: row 0 has the pool as members and a part of the test samples as non-members;
      later rows have halves of both together as `RandomHalves` has of a pool.
    - `LeftOut`: row K r + k is row r of its base, whose members are left out by L random ones of
      the K rows K r .. K r + K - 1, and are non-members there. Each member draws for itself, so
      that sizes vary a little.

    Raises BadInput if the design does not fit.
    """
    chosen = range(rows) if isinstance(rows, int) else rows
    lowest = rows if isinstance(rows, int) else min(rows, default=0)
    if lowest < 0:
        raise BadInput(f"rows of a design are counted from 0, not {rows}")
    sets = _sets(design, labels, train)
    out = np.full((len(chosen), len(sets.labels)), UNUSED, np.int8)
    out[:, sets.dev] = DEV
    out[:, sets.reference] = REFERENCE
    out[:, sets.test] = TEST
    for row, role in zip(chosen, out, strict=True):
        assign(design, row, sets, role)
    return out


def used(design: Design, labels: NDArray, train: int) -> NDArray:
    """Indices, ascending int64, of the samples that have a role in some row: pool, dev, reference
    and test.
    """
    sets = _sets(design, labels, train)
    parts = sets.pool, sets.dev, sets.reference, sets.test
    return np.sort(np.concatenate(parts))


def pool(design: Design, labels: NDArray, train: int) -> NDArray:
    """Indices, ascending int64, of the samples from which members are drawn."""
    return _sets(design, labels, train).pool
