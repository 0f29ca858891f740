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
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose, index)))
    )


def quotas(available: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """How many of `count` samples each class gives: as equal as the classes' sizes allow.

    `available` (C,) samples in each class, with `count` at most their sum. Every class gives the
    same number, or all it has where that is less; the remainder is one more from each of some
    classes, drawn at random. Returns (C,) int64.
    """
    levels = range(1, int(available.max(initial=0)) + 1)
    # The largest level that does not give more than `count`.
    level = bisect_right(levels, count, key=lambda size: np.minimum(available, size).sum())
    shares = np.minimum(available, level).astype(np.int64)
    can_give_more = np.flatnonzero(available > level)
    shares[rng.permutation(can_give_more)[: count - shares.sum()]] += 1
    return shares


def _take(label: np.ndarray, shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ascending places in `label` (n,) of `shares[c]` random samples of each class c, numbered from
    0.
    """
    order = np.lexsort((rng.random(len(label)), label))
    return np.sort(order[places(label[order]) < shares[label[order]]])


def _draw(
    indices: np.ndarray, labels: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """`count` of `indices`, class-balanced by their `labels`, ascending."""
    classes, label = np.unique(labels[indices], return_inverse=True)
    shares = quotas(np.bincount(label, minlength=len(classes)), count, rng)
    return indices[_take(label, shares, rng)]


class Sets(NamedTuple):
    """The samples of a design, each set ascending, and the labels `(N,)` of all samples."""

    pool: np.ndarray
    test: np.ndarray
    dev: np.ndarray
    reference: np.ndarray
    labels: np.ndarray


def _sets(design: Design, labels: np.ndarray, train: int) -> Sets:
    design, labels = design.drawn, np.asarray(labels)
    if labels.ndim != 1 or not 0 <= train <= len(labels):
        raise BadInput(f"{train} train samples do not fit labels of shape {labels.shape}")
    number = len(labels) - train
    design.check(train, number)

    def draw(indices: np.ndarray, count: int, purpose: _Purpose) -> np.ndarray:
        return _draw(indices, labels, count, _stream(design.seed, purpose))

    pool = draw(np.arange(train), design.pool, _Purpose.POOL)
    rest = np.setdiff1d(np.arange(train), pool, assume_unique=True)
    dev = draw(rest, 0 if design.dev_inside else design.dev, _Purpose.DEV)
    rest = np.setdiff1d(rest, dev, assume_unique=True)
    reference = draw(rest, design.reference, _Purpose.REFERENCE)
    wanted = Design.tests(design, number)
    test = draw(np.arange(train, len(labels)), wanted, _Purpose.TEST)
    return Sets(pool, test, dev, reference, labels)


@generic
def assign(design: Design, row: int, sets: Sets, out: np.ndarray) -> None:
    """Writes the roles that are a row's own into `out (N,)`, where dev, reference and test samples
    have theirs.
    """
    raise BadInput(
        f"{type(design).__name__} says nothing about roles; take Halves, RandomHalves, VictimAttacker"
    )


@assign.register(Halves)
def _(design: Halves, row: int, sets: Sets, out: np.ndarray) -> None:
    out[sets.pool] = MEMBER
    if row % 2 == 0:
        return
    rng = _stream(design.seed, _Purpose.HALF, row // 2)
    label = np.unique(sets.labels[sets.pool], return_inverse=True)[1]
    sizes = np.bincount(label)
    shares = sizes // 2
    odd = np.flatnonzero(sizes % 2)  # an even number of classes: the pool is even
    shares[rng.permutation(odd)[: len(odd) // 2]] += 1
    out[np.delete(sets.pool, _take(label, shares, rng))] = NONMEMBER


def _halve(indices: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two random halves of an even number of indices."""
    first, second = np.split(rng.permutation(len(indices)), 2)
    return indices[first], indices[second]


@assign.register(RandomHalves)
def _(design: RandomHalves, row: int, sets: Sets, out: np.ndarray) -> None:
    first, second = _halve(sets.pool, _stream(design.seed, _Purpose.RANDOM_HALF, row // 2))
    out[first] = NONMEMBER if row % 2 else MEMBER
    out[second] = MEMBER if row % 2 else NONMEMBER


@assign.register(Subsets)
def _(design: Subsets, row: int, sets: Sets, out: np.ndarray) -> None:
    order = _stream(design.seed, _Purpose.SUBSET, row).permutation(len(sets.pool))
    out[sets.pool] = NONMEMBER
    out[sets.pool[order[: design.members(row)]]] = MEMBER


@assign.register(Folds)
def _(design: Folds, row: int, sets: Sets, out: np.ndarray) -> None:
    draw, fold = divmod(row, design.folds)
    order = _stream(design.seed, _Purpose.FOLDS, draw).permutation(len(sets.pool))
    out[sets.pool] = NONMEMBER
    out[sets.pool[np.split(order, design.folds)[fold]]] = MEMBER


def _own_half(design: VictimAttacker, row: int, sets: Sets) -> np.ndarray:
    """The half that row `row` splits, in an order of its own."""
    half = len(sets.pool) // 2
    sides = _stream(design.seed, _Purpose.SIDES).permutation(len(sets.pool))
    chosen = np.sort(sides[:half] if row < design.victims else sides[half:])
    order = _stream(design.seed, _Purpose.SPLIT, row).permutation(half)
    return sets.pool[chosen[order]]


@assign.register(VictimAttacker)
def _(design: VictimAttacker, row: int, sets: Sets, out: np.ndarray) -> None:
    order, member = _own_half(design, row, sets), design.members(row)
    out[order[:member]] = MEMBER
    out[order[member : 2 * member]] = NONMEMBER
    out[order[2 * member :]] = DEV


@assign.register(SharedTest)
def _(design: SharedTest, row: int, sets: Sets, out: np.ndarray) -> None:
    order, member = _own_half(design, row, sets), design.members(row)
    outside = np.concatenate([np.sort(order[member:]), sets.test])
    outside = outside[_stream(design.seed, _Purpose.OUTSIDERS, row).permutation(len(outside))]
    out[order[:member]] = MEMBER
    out[outside[: design.dev]] = DEV
    out[outside[design.dev :]] = NONMEMBER


@assign.register(GivenSplit)
def _(design: GivenSplit, row: int, sets: Sets, out: np.ndarray) -> None:
    order = _stream(design.seed, _Purpose.OUTSIDERS).permutation(len(sets.test))
    outside = sets.test[order[design.population :]]
    out[sets.pool] = MEMBER
    out[outside] = NONMEMBER
    if row:
        judged = np.sort(np.concatenate([sets.pool, outside]))
        rng = _stream(design.seed, _Purpose.GIVEN_HALF, design.pair(row))
        first, second = _halve(judged, rng)
        out[first] = MEMBER if row % 2 else NONMEMBER
        out[second] = NONMEMBER if row % 2 else MEMBER


@assign.register(LeftOut)
def _(design: LeftOut, row: int, sets: Sets, out: np.ndarray) -> None:
    number, sub_model = divmod(row, design.models)
    assign(design.base, number, sets, out)
    members = np.flatnonzero(out == MEMBER)
    draws = _stream(design.seed, _Purpose.LEFT_OUT, number).random((len(members), design.models))
    left_out_by = draws.argsort(axis=1)[:, : design.leave_out]  # each member's sub-models
    out[members[(left_out_by == sub_model).any(axis=1)]] = NONMEMBER


def roles(design: Design, labels: np.ndarray, train: int, rows: Sequence[int] | int) -> np.ndarray:
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

    BadInput where the design does not fit.
    """
    chosen = range(rows) if isinstance(rows, int) else rows
    if (rows if isinstance(rows, int) else min(rows, default=0)) < 0:
        raise BadInput(f"rows of a design are counted from 0, not {rows}")
    sets = _sets(design, labels, train)
    out = np.full((len(chosen), len(sets.labels)), UNUSED, np.int8)
    out[:, sets.dev] = DEV
    out[:, sets.reference] = REFERENCE
    out[:, sets.test] = TEST
    for row, role in zip(chosen, out, strict=True):
        assign(design, row, sets, role)
    return out


def used(design: Design, labels: np.ndarray, train: int) -> np.ndarray:
    """Indices, ascending int64, of the samples that have a role in some row: pool, dev, reference
    and test.
    """
    sets = _sets(design, labels, train)
    return np.sort(np.concatenate([sets.pool, sets.dev, sets.reference, sets.test]))


def pool(design: Design, labels: np.ndarray, train: int) -> np.ndarray:
    """Indices, ascending int64, of the samples from which members are drawn."""
    return _sets(design, labels, train).pool
