"""The self-audit: silent under a fair design, loud under a rigged one."""

from typing import Any

import numpy as np
import pytest

from leak_atlas import BadInput
from leak_atlas.audit import Estimate, auc_interval
from leak_atlas.data import designs, honesty, readers
from leak_atlas.data.designs import Role
from leak_atlas.recipe import Halves, RandomHalves


def blind(*arguments: Any) -> Estimate:
    """The AUC of the blind classifier, as the self-audit reports it."""
    return auc_interval(*honesty.blind(*arguments))


ROLES = np.array([Role.MEMBER] * 4 + [Role.NONMEMBER] * 3 + [Role.TEST, Role.DEV, Role.UNUSED])


@pytest.mark.parametrize(
    "shape, kind",
    [
        ((10, 5, 5, 3), np.uint8),
        ((10, 7), np.uint8),
        ((10, 1), np.float32),
        ((10,), np.dtypes.StringDType()),
    ],
)
def test_duplicates(shape: tuple[int, ...], kind: type) -> None:
    x = np.random.default_rng(0).integers(0, 200, shape).astype(kind)
    x.reshape(10, -1)[:, 0] = np.arange(10).astype(kind)
    assert honesty.duplicates(x, ROLES) == 0
    x[1] = x[0]  # two members
    x[8], x[9] = x[2], x[2]  # a member among dev and unused
    assert honesty.duplicates(x, ROLES) == 0
    x[7] = x[3]  # a member in the test part
    assert honesty.duplicates(x, ROLES) == 2
    x[4] = x[0]  # a non-member equals two members
    assert honesty.duplicates(x, ROLES) == 5


def test_duplicates_of_a_row_without_two_sides() -> None:
    x = np.zeros((10, 3), np.uint8)
    assert honesty.duplicates(x, np.full(10, Role.MEMBER)) == 0
    with pytest.raises(BadInput, match="10 samples and 9 roles"):
        honesty.duplicates(x, ROLES[:9])


def test_samples_in_several_groups() -> None:
    x = np.arange(12, dtype=np.uint8).repeat(4).reshape(12, 2, 2)
    groups = np.arange(12) % 3
    assert honesty.in_several_groups(x, groups) == 0
    x[3] = x[0]  # of the same group
    assert honesty.in_several_groups(x, groups) == 0
    x[1] = x[0]
    x[5] = x[7]
    assert honesty.in_several_groups(x, groups) == 5


def _fair(
    name: str, pixels: int | None, pool: int, seeds: int, stratified: bool = False
) -> list[Estimate]:
    samples = readers.load(name, pixels)
    out = []
    for seed in range(seeds):
        design = (Halves if stratified else RandomHalves)(pool, 0, seed)
        index = designs.pool(design, samples.labels, samples.train)
        role = designs.roles(design, samples.labels, samples.train, [1])[0, index]
        out.append(blind(samples.x[index], role == Role.MEMBER, samples.labels[index], seed))
    return out


@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize(
    "name, pixels, seeds", [("fashion-mnist-small", 14, 100), ("digits-bits", None, 100)]
)
def test_a_fair_design_looks_fair(
    name: str, pixels: int | None, seeds: int, stratified: bool
) -> None:
    found = _fair(name, pixels, 600, seeds, stratified)
    values = np.array([one.value for one in found])
    assert abs(values.mean() - 0.5) < 3 * values.std() / np.sqrt(seeds), "no bias to either side"
    assert np.mean([one.low > 0.5 for one in found]) <= 0.07, "judged one-sided"
    assert np.mean([one.low <= 0.5 <= one.high for one in found]) >= 0.90
    assert np.mean([one.high - one.low for one in found]) < 0.14


def test_fair_text_looks_fair() -> None:
    assert sum(one.low <= 0.5 for one in _fair("wordnet-glosses", None, 400, 12)) >= 11


@pytest.mark.parametrize("pixels", [16, None])
def test_rigged_designs_are_caught(pixels: int | None) -> None:
    samples = readers.load("fashion-mnist-small", pixels)
    x = samples.x[:2000]
    labels = samples.labels[:2000]
    rng = np.random.default_rng(0)
    member = rng.permutation(2000) < 1000
    assert blind(x, labels < 5, labels).low > 0.5, "members of some classes only"
    more = rng.random(2000) < np.where(labels < 3, 0.75, 0.4)
    assert blind(x, more, labels).low > 0.5, "more of some classes"
    marked = x.copy()
    marked[member, 0, 0, 0] = rng.integers(0, 3, member.sum())
    assert blind(marked, member, labels).low > 0.5, "a mark in one pixel"
    bright = np.where(member[:, None, None, None], np.minimum(x, 250) + 3, x).astype(np.uint8)
    assert blind(bright, member, labels).low > 0.5, "members a little brighter"


def test_wide_inputs_are_projected() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (400, 32, 32, 3), np.uint8)
    member = np.arange(400) % 2 == 0
    labels = np.arange(400) // 2 % 10
    assert blind(x, member, labels).low < 0.5
    x[member] = x[member] // 2 + 64
    x[member, :16] = np.minimum(x[member, :16], 150)
    assert blind(x, member, labels).low > 0.5


def test_blind_is_deterministic_and_constant_inputs_say_nothing() -> None:
    samples = readers.load("digits-bits")
    given = samples.x[:500], np.arange(500) % 2 == 0, samples.labels[:500]
    assert blind(*given, 3) == blind(*given, 3)
    assert blind(np.zeros((100, 8), np.uint8), np.arange(100) < 50, np.zeros(100)).value == 0.5


def test_too_few() -> None:
    with pytest.raises(BadInput, match="needs 10 members"):
        blind(np.zeros((30, 4), np.uint8), np.arange(30) < 9, np.zeros(30))
