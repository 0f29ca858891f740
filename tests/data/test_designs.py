"""Role tables: who is never what, exact balance, and rows that do not depend on their number."""

import hashlib
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leak_atlas import BadInput
from leak_atlas.data import designs
from leak_atlas.data.designs import Role
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

KINDS = (Halves, RandomHalves, Subsets, Folds, VictimAttacker, SharedTest)
TRAIN = 400


def labelled(classes: int, skew: bool = False) -> np.ndarray:
    """400 train and 120 test labels; with `skew`, later classes are larger."""
    weights = np.arange(1, classes + 1) if skew else np.ones(classes)
    rng = np.random.default_rng(classes)
    return rng.choice(classes, TRAIN + 120, p=weights / weights.sum())


seeds = st.integers(0, 2**40)
pools = st.integers(10, 150).map(lambda half: 2 * half)
labellings = st.builds(labelled, st.integers(1, 12), st.booleans())


@st.composite
def any_design(draw: st.DrawFn) -> Design:
    base = draw(any_base())
    models = draw(st.integers(2, 5))
    return draw(st.sampled_from((base, LeftOut(base, models, draw(st.integers(1, models - 1))))))


@st.composite
def any_base(draw: st.DrawFn) -> Design:
    pool = draw(pools)
    test = draw(st.none() | st.integers(10, 120))
    seed = draw(seeds)
    kind = draw(st.sampled_from(KINDS))
    if kind is VictimAttacker:
        dev = draw(st.integers(0, pool // 4 - 1).map(lambda pairs: 2 * pairs + pool // 2 % 2))
        return VictimAttacker(
            pool, test, seed, dev=dev, reference=draw(st.integers(0, TRAIN - pool))
        )
    if kind is SharedTest:
        return SharedTest(
            pool, test, seed, dev=draw(st.integers(0, 9)), share=draw(st.floats(0.1, 1))
        )
    dev = draw(st.integers(0, TRAIN - pool))
    more = {Subsets: {"share": draw(st.floats(0.1, 0.9))}, Folds: {"folds": 2}}.get(kind, {})
    return kind(
        pool, test, seed, dev=dev, reference=draw(st.integers(0, TRAIN - pool - dev)), **more
    )


@settings(deadline=None)
@given(any_design(), labellings, st.integers(1, 9))
def test_what_holds_for_every_design(design: Design, labels: np.ndarray, rows: int) -> None:
    table = designs.roles(design, labels, TRAIN, rows)
    assert table.shape == (rows, len(labels))
    assert table.dtype == np.int8
    if not isinstance(design, LeftOut):
        members = [design.members(row) for row in range(rows)]
        assert (table == Role.MEMBER).sum(1).tolist() == members
    pool = designs.pool(design, labels, TRAIN)
    assert len(pool) == design.pool
    assert pool.max() < TRAIN
    assert (table[:, pool] != Role.TEST).all()
    assert not (table[:, pool] == Role.REFERENCE).any()
    outside = np.setdiff1d(np.arange(len(labels)), pool)
    assert not (table[:, outside] == Role.MEMBER).any()
    used = designs.used(design, labels, TRAIN)
    assert (np.diff(used) > 0).all()
    assert not np.delete(table, used, axis=1).any()
    assert ((table == Role.REFERENCE).sum(1) == design.reference).all()
    assert ((table == Role.DEV).sum(1) == design.dev).all()
    asked = len(labels) - TRAIN if design.test is None else design.test
    if isinstance(design.drawn, SharedTest):
        assert not (table == Role.TEST).any()
        assert set(np.unique(table[:, TRAIN:])) <= {
            0,
            Role.NONMEMBER,
            Role.DEV,
        }
        return
    # Test samples come from the test part and are never anything else; their number is the one
    # asked for.
    assert not np.isin(table[:, outside], (Role.MEMBER, Role.NONMEMBER)).any()
    assert ((table == Role.TEST).sum(1) == asked).all()
    assert not (table[:, :TRAIN] == Role.TEST).any()
    assert set(np.unique(table[:, TRAIN:])) <= {Role.UNUSED, Role.TEST}
    # What lies outside the pool is the same for all rows.
    assert (table[:, outside] == table[0, outside]).all()


@settings(deadline=None)
@given(any_design(), labellings, st.integers(1, 8), st.integers(0, 12))
def test_eight_shadows_are_the_first_of_sixty_four(
    design: Design, labels: np.ndarray, few: int, more: int
) -> None:
    long = designs.roles(design, labels, TRAIN, few + more)
    assert np.array_equal(designs.roles(design, labels, TRAIN, few), long[:few])
    chosen = list(range(few + more))[::-2]
    assert np.array_equal(designs.roles(design, labels, TRAIN, chosen), long[chosen])


@settings(deadline=None)
@given(seeds, pools, labellings, st.integers(1, 6))
def test_random_halves_are_complement_pairs(
    seed: int, pool: int, labels: np.ndarray, pairs: int
) -> None:
    design = RandomHalves(pool, 0, seed)
    member = designs.roles(design, labels, TRAIN, 2 * pairs) == Role.MEMBER
    assert (member.sum(1) == pool // 2).all()
    inside = designs.pool(design, labels, TRAIN)
    assert np.array_equal(member[1::2][:, inside], ~member[::2][:, inside])
    # Every even prefix holds each sample exactly as often as not.
    for rows in range(2, 2 * pairs + 1, 2):
        assert (member[:rows, inside].sum(0) == rows // 2).all()
    assert [design.pair(row) for row in range(6)] == [0, 0, 1, 1, 2, 2]


@settings(deadline=None)
@given(seeds, pools, labellings)
def test_halves_are_the_pool_and_half_of_each_class(
    seed: int, pool: int, labels: np.ndarray
) -> None:
    design = Halves(pool, 0, seed)
    table = designs.roles(design, labels, TRAIN, 6)
    inside = designs.pool(design, labels, TRAIN)
    assert (table[::2][:, inside] == Role.MEMBER).all()
    assert ((table[1::2] == Role.MEMBER).sum(1) == pool // 2).all()
    assert ((table[1::2] == Role.NONMEMBER).sum(1) == pool // 2).all()
    whole = np.bincount(labels[inside], minlength=12)
    for row in table[1::2]:
        half = np.bincount(labels[row == Role.MEMBER], minlength=12)
        assert (abs(2 * half - whole) <= 1).all()


@settings(deadline=None)
@given(seeds, pools, labellings, st.floats(0, 0.7), st.integers(1, 4))
def test_victims_and_attacker_share_nothing(
    seed: int, pool: int, labels: np.ndarray, share: float, victims: int
) -> None:
    dev = 2 * int(share * pool / 4) + pool // 2 % 2
    design = VictimAttacker(pool, None, seed, dev=dev, victims=victims)
    table = designs.roles(design, labels, TRAIN, victims + 5)
    train = table[:, :TRAIN] != Role.UNUSED
    assert (train.sum(1) == pool // 2).all()
    assert not (train[0] & train[victims:]).any()
    assert (train[:victims] == train[0]).all()
    assert (train[victims:] == train[victims]).all()
    members, others, held = (
        (table == role).sum(1) for role in (Role.MEMBER, Role.NONMEMBER, Role.DEV)
    )
    assert (members == others).all()
    assert (members > 0).all()
    assert (held == dev).all()


def test_the_first_victim_is_the_only_one_of_a_design_with_one() -> None:
    many, one = (
        designs.roles(VictimAttacker(200, 0, victims=n), labelled(5), TRAIN, 6) for n in (3, 1)
    )
    assert np.array_equal(many[0], one[0])
    assert np.array_equal(many[3:], one[3:])
    assert len({row.tobytes() for row in many}) == 6, "each row has a split of its own"


@settings(deadline=None)
@given(any_base(), labellings, st.integers(2, 9), st.data())
def test_each_member_is_left_out_by_exactly_so_many(
    base: Design, labels: np.ndarray, models: int, data: st.DataObject
) -> None:
    leave_out = data.draw(st.integers(1, models - 1))
    design = LeftOut(base, models, leave_out)
    own = designs.roles(base, labels, TRAIN, 3)
    table = designs.roles(design, labels, TRAIN, 3 * models).reshape(3, models, -1)
    member = own == Role.MEMBER
    assert ((table == Role.MEMBER).sum(1) == (models - leave_out) * member).all()
    for row in range(3):
        rest = ~member[row]
        assert (table[row][:, rest] == own[row][rest]).all(), "nobody else's role changes"
        assert set(np.unique(table[row][:, member[row]])) <= {Role.MEMBER, Role.NONMEMBER}


def test_who_is_left_out_is_drawn_for_each_row_and_evenly() -> None:
    design = LeftOut(Halves(400, 0), 5, 2)
    out = (
        designs.roles(design, labelled(10), TRAIN, 50).reshape(10, 5, -1)[::2, :, :TRAIN]
        == Role.NONMEMBER
    )
    assert len({row.tobytes() for row in out}) == 5
    # 2,000 draws of 2 in 5: each sub-model leaves out 800, give or take 22; each pair of them 200,
    # give or take 13.
    assert abs(out.sum(axis=(0, 2)) - 800).max() < 90
    for one, other in combinations(range(5), 2):
        together = out[:, one] & out[:, other]
        assert abs(together.sum() - 200) < 55
    assert abs(out.sum(axis=2).mean() - (400 - design.members(0))) < 10


def test_published_splits() -> None:
    """CIFAR-10. SAMIA: halves of 30,000 are 13,500 members, 3,000 dev, 13,500 non-members. WeMem:
    see its design.
    """
    samia = VictimAttacker(60_000, 0, dev=3_000)
    samia.check(60_000, 0)
    assert samia.members(0) == samia.members(3) == 13_500
    labels = np.arange(60_000) % 10
    row = designs.roles(SharedTest(50_000, dev=4_250), labels, 50_000, 1)[0]
    assert [(row == role).sum() for role in (Role.MEMBER, Role.NONMEMBER, Role.DEV)] == [
        22_500,
        8_250,
        4_250,
    ]
    assert (row[50_000:] != Role.UNUSED).all(), "the whole test part is shared"


def test_folds_part_the_pool_and_subsets_are_drawn_for_each_row() -> None:
    table = designs.roles(Folds(200, 0, folds=5), labelled(10), TRAIN, 10) == Role.MEMBER
    assert (table[:5].sum(0) <= 1).all()
    assert table[:5].sum() == 200
    assert not np.array_equal(table[:5], table[5:])
    drawn = designs.roles(Subsets(200, 0, share=0.7), labelled(10), TRAIN, 400) == Role.MEMBER
    counts = drawn[:, designs.pool(Subsets(200, 0), labelled(10), TRAIN)].sum(0)
    assert abs(counts - 280).max() < 4.2 * np.sqrt(400 * 0.7 * 0.3)


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_and_rows_differ(kind: type[Design]) -> None:
    labels = labelled(10)
    tables = [designs.roles(kind(100, 40, seed), labels, TRAIN, 8) for seed in range(4)]
    assert len({table[:, :TRAIN].tobytes() for table in tables}) == 4
    assert len({table[:, TRAIN:].tobytes() for table in tables}) == 4
    trained = {row.tobytes() for row in tables[0]}
    assert len(trained) == (5 if kind is Halves else 8)  # all whole-pool rows of Halves are one


def test_dev_and_reference_leave_the_pool_as_it_was() -> None:
    labels = labelled(10)
    plain = designs.roles(RandomHalves(200, 50), labels, TRAIN, 4)
    more = designs.roles(RandomHalves(200, 50, dev=30, reference=60), labels, TRAIN, 4)
    where = np.isin(more, (Role.DEV, Role.REFERENCE))
    assert np.array_equal(np.where(where, Role.UNUSED, more), plain)


def test_draws_are_balanced_by_class() -> None:
    labels = np.tile(np.arange(10), 52)
    design = RandomHalves(204, 35, dev=23, reference=50)
    table = designs.roles(design, labels, TRAIN, 1)[0]
    for chosen in (
        designs.pool(design, labels, TRAIN),
        *(np.flatnonzero(table == role) for role in (3, 4, 5)),
    ):
        counts = np.bincount(labels[chosen], minlength=10)
        assert counts.max() - counts.min() <= 1


def test_each_sample_is_a_member_equally_often() -> None:
    """Over many seeds the share of members does not depend on the sample: neither on its place nor
    on its class.
    """
    labels = np.arange(40) % 4
    for design in (RandomHalves(20, 0), VictimAttacker(20, 0)):
        kind = type(design)
        member = np.mean(
            [designs.roles(kind(20, 0, s), labels, 40, [0])[0] == Role.MEMBER for s in range(2000)],
            axis=0,
        )
        assert abs(member - member.mean()).max() < 4.2 * np.sqrt(member.mean() / 2000)


@pytest.mark.parametrize(
    "design, message",
    [
        (Halves(1001), "pool cannot be 1001: it is halved"),
        (
            RandomHalves(200, dev=150, reference=51),
            "pool of 200, dev 150 and reference 51 does not fit the 400",
        ),
        (RandomHalves(200, test=121), "121 of 120 test samples"),
        (VictimAttacker(200, dev=100), "100 of a half of 100 leave 0 samples"),
        (SharedTest(200, share=0.0), "leave no members"),
        (Subsets(200, share=1.0), "leaves members or non-members out"),
        (Folds(200, folds=3), "3 folds do not part a pool of 200"),
        (
            GivenSplit(200, test=100, population=100),
            "leaves no even number of 2 or more non-members",
        ),
    ],
)
def test_bad_designs(design: Design, message: str) -> None:
    with pytest.raises(BadInput, match=message) as error:
        designs.roles(design, labelled(10), TRAIN, 2)
    assert "\n" not in str(error.value)
    with pytest.raises(BadInput, match="counted from 0"):
        designs.roles(Halves(20), labelled(10), TRAIN, -1)


def test_a_given_split_is_the_parts_and_its_shadows_halve_both() -> None:
    design = GivenSplit(200, test=100, seed=3, population=40, dev=20)
    table = designs.roles(design, labelled(10), TRAIN, 5)
    members, outside = (np.flatnonzero(table[0] == role) for role in (Role.MEMBER, Role.NONMEMBER))
    assert (len(members), len(outside)) == (200, 60) == (design.members(0), 60)
    assert members.max() < TRAIN <= outside.min()
    assert ((table == Role.TEST).sum(axis=1) == 40).all()
    assert ((table == Role.DEV).sum(axis=1) == 20).all()
    for row in (1, 3):
        pair = table[row : row + 2] == Role.MEMBER
        assert (pair.sum(axis=1) == 130).all()
        assert (pair.sum(axis=0)[np.r_[members, outside]] == 1).all()
        assert 10 < (pair[0, outside]).sum() < 50
        assert design.members(row) == 130


@pytest.mark.parametrize(
    "design, digest",
    [
        (Halves(200, 50), "cb0b844d1f6dbd2c"),
        (RandomHalves(200, 50, 7, dev=20, reference=30), "55cd028909f9a3e1"),
        (VictimAttacker(200, 50, 3, dev=10), "dafb22e5ef16a74f"),
        (GivenSplit(200, 50, 7, population=20), "c5285c125bfd4c56"),
        (LeftOut(RandomHalves(200, 50, 7), 3, 1), "de2a39a430f08561"),
    ],
)
def test_roles_are_pinned(design: Design, digest: str) -> None:
    """Stored results were computed under these very tables: if this fails, raise the steps'
    revision, or keep them.
    """
    table = designs.roles(design, np.arange(520) % 10, TRAIN, 5)
    assert hashlib.sha256(table.tobytes()).hexdigest()[:16] == digest
