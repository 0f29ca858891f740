"""Who plays which role: designs, one row for each model."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from leak_atlas import BadInput
from leak_atlas.recipe.core import (
    Positive,
    Recipe,
    Record,
    Whole,
)

__all__ = [
    "Design",
    "Folds",
    "GivenSplit",
    "Halves",
    "LeftOut",
    "RandomHalves",
    "SharedTest",
    "Subsets",
    "VictimAttacker",
]


class Design(Recipe):
    """Which samples are members, non-members, test, dev or reference: one row a model. Row i never
    depends on the number of rows.

    The pool is a class-balanced draw from the data set's train part; test samples come from its
    test part and are never trained on by any row. `dev` and `reference` are numbers of samples, of
    every design: no row trains on them, and no attack is judged on them.
    `leak_atlas.data.designs.roles` draws.
    """

    # whether a row's members are members of some other rows, as online attacks need
    has_in_models: ClassVar[bool] = True
    halved: ClassVar[bool] = True  # whether the pool is divided into two halves

    pool: int = 1000  # samples from which members are drawn
    # held-out samples (accuracy, and RMIA's population); None: the whole test part
    test: int | None = None
    seed: Whole = 0
    dev: Whole = 0  # samples that a row's trainer looks at: early stopping
    reference: Whole = 0  # samples outside the pool that a defence may see

    @property
    def drawn(self) -> Design:
        """The design that draws the pool: equal pool, test and seed draw the same one."""
        return self

    def members(self, row: int) -> int:
        """How many samples row `row` trains on."""
        return self.pool // 2

    def pair(self, row: int) -> int:
        """Rows of the same pair must not be each other's shadows: their members are complements."""
        return row // 2

    def tests(self, available: int) -> int:
        """How many of the data set's test samples it keeps for accuracy."""
        return available if self.test is None else self.test

    def serve(self, kind: Recipe, roles: tuple[str, ...]) -> None:
        """Raises BadInput if the design has no samples of the roles that a kind looks at."""
        for role in roles:
            if not getattr(self, role):
                raise BadInput(
                    f"{type(kind).__name__} needs non-members to look at: give the design {role} "
                    "samples"
                )

    def check(self, train: int, test: int) -> None:
        """Raises BadInput if the design does not fit a data set of `train` and `test` samples."""
        name = type(self).__name__
        outside = self.dev * (not self.dev_inside) + self.reference
        more = f", dev {self.dev:,} and reference {self.reference:,}" if outside else ""
        tests = self.test or 0
        if self.pool < 2:
            raise BadInput(f"{name}.pool cannot be {self.pool}: give 2 or more")
        if self.halved and self.pool % 2:
            raise BadInput(
                f"{name}.pool cannot be {self.pool}: it is halved, so give an even number"
            )
        if self.pool + outside > train:
            raise BadInput(
                f"{name}: a pool of {self.pool:,}{more} does not fit the {train:,} train samples; "
                "ask for less"
            )
        if not 0 <= tests <= test:
            raise BadInput(
                f"{name}.test: {tests:,} of {test:,} test samples; ask for 0 or more, or None for "
                "all"
            )

    # whether dev samples are taken from each row's own part of the pool
    dev_inside: ClassVar[bool] = False


class Halves(Design):
    """PPTP, section 3.2. Row 2p trains on the whole pool (M_all), row 2p+1 on its half number p
    (M_h1).
    """

    def members(self, row: int) -> int:
        return self.pool // (1 + row % 2)


class RandomHalves(Design):
    """Random halves drawn as complement pairs: rows 2p and 2p+1 share no member and together hold
    the pool.

    Every even prefix is exactly balanced, so the shadows of a target whose pair leaves are balanced
    too.
    """


class Subsets(Design):
    """Random subsets of a share of the pool, each row's drawn for itself (Feldman & Zhang 2020:
    .7).
    """

    halved: ClassVar[bool] = False

    share: float = 0.7

    def members(self, row: int) -> int:
        return round(self.share * self.pool)

    def pair(self, row: int) -> int:
        return row  # independent draws: the others' counts say nothing of this row

    def check(self, train: int, test: int) -> None:
        super().check(train, test)
        if not 0 < self.members(0) < self.pool:
            raise BadInput(
                f"Subsets.share of {self.share} leaves members or non-members out: give one "
                "between 0 and 1"
            )


class Folds(Design):
    """The pool in `folds` equal parts: row `folds` * r + f trains on fold f of draw r, and on no
    other (WeMem's scores).
    """

    halved: ClassVar[bool] = False

    folds: int = 5

    def members(self, row: int) -> int:
        return self.pool // self.folds

    def pair(self, row: int) -> int:
        return row // self.folds

    def check(self, train: int, test: int) -> None:
        super().check(train, test)
        if self.folds < 2 or self.pool % self.folds:
            raise BadInput(
                f"Folds.folds: {self.folds} folds do not part a pool of {self.pool} evenly; give "
                "a divisor"
            )


class VictimAttacker(Design):
    """SAMIA's disjoint halves. The first `victims` rows split the victim's half, all later rows the
    attacker's.

    The paper has one victim. More are splits of one half, so they never help each other: an
    attacker has no model of the victim's samples. `dev` samples of a half are looked at, the rest
    is half member, half non-member: as published, a tenth of it. Its pool is train and test part
    joined (`Data.joined`).
    """

    has_in_models: ClassVar[bool] = False
    dev_inside: ClassVar[bool] = True

    victims: Positive = 1

    def members(self, row: int) -> int:
        return (self.pool // 2 - self.dev) // 2

    def pair(self, row: int) -> int:
        return 0 if row < self.victims else row

    def check(self, train: int, test: int) -> None:
        super().check(train, test)
        left = self.pool // 2 - self.dev
        if left < 2 or left % 2:
            raise BadInput(
                f"{type(self).__name__}.dev: {self.dev} of a half of {self.pool // 2} leave "
                f"{left} samples, which are "
                "halved: leave an even number from 2"
            )


class SharedTest(VictimAttacker):
    """WeMem's published split: members from halves of the pool, and one test part that is unseen by
    all.

    Row r trains on the `share` of its half, a victim of the one and the others of the attacker's.
    The rest of that half and all `test` samples are its outsiders: `dev` of them are looked at, the
    others are non-members. So an attacker learns from the very non-members on which it is judged;
    `VictimAttacker` is the clean form.
    """

    share: float = 0.9

    def members(self, row: int) -> int:
        return round(self.share * (self.pool // 2))

    def tests(self, available: int) -> int:
        return 0

    def check(self, train: int, test: int) -> None:
        Design.check(self, train, test)
        outside = self.pool // 2 - self.members(0) + super().tests(test)
        if not 0 < self.members(0) <= self.pool // 2 or self.dev >= outside:
            raise BadInput(
                f"SharedTest: a share of {self.share} and dev {self.dev} leave no members or no "
                "non-members"
            )


class GivenSplit(Design):
    """A split that is there already: row 0 was trained on the train part of its data set, and never
    saw the test part.

    Members of row 0 are the `pool`, drawn from the train part (all of it, if it is as large: then
    shadows are trained on as much as can be); its non-members are `test` samples of the test part,
    less `population` of them, on which no row trains. Later rows are its shadows: each trains on a
    random half of these members and non-members together, in complement pairs (rows 1 and 2, 3 and
    4, ...).
    """

    halved: ClassVar[bool] = False

    population: Whole = 0  # of the `test` samples: for accuracy, and RMIA's population

    @property
    def judged(self) -> int:
        """How many samples are members or non-members."""
        return self.pool + (self.test or 0) - self.population

    def members(self, row: int) -> int:
        return self.judged // 2 if row else self.pool

    def pair(self, row: int) -> int:
        return (row + 1) // 2

    def tests(self, available: int) -> int:
        return self.population

    def check(self, train: int, test: int) -> None:
        super().check(train, test)
        if self.test is None or self.judged % 2 or self.judged <= self.pool:
            raise BadInput(
                f"GivenSplit: of {self.test} test samples {self.population} are the population, "
                "which leaves no even "
                "number of 2 or more non-members: give test as a number, and another population"
            )


class LeftOut(Design):
    """SELENA's Split-AI (Tang et al. 2022): K sub-models for each row of a design, each without
    some of its members.

    Each member of row r is left out by exactly `leave_out` of the `models` sub-models, drawn anew
    for each member and each row. Row `models * r + k` is sub-model k of row r; what it leaves out
    is a non-member to it.
    """

    INHERITED: ClassVar = ("pool", "test", "seed", "dev", "reference")

    pool: int = field(init=False)  # these five are the base's
    test: int | None = field(init=False)
    seed: Whole = field(init=False)
    dev: Whole = field(init=False)
    reference: Whole = field(init=False)
    base: Design
    models: int = 25  # K; the SELENA and PPTP papers'
    leave_out: int = 10  # L; SELENA's for all data sets, PPTP searches 3 to 10

    def __post_init__(self) -> None:
        for name in self.INHERITED:
            object.__setattr__(self, name, getattr(self.base, name))
        super().__post_init__()
        if not 1 <= self.leave_out < self.models:
            raise BadInput(
                f"of {self.models} sub-models 1 to {self.models - 1} leave a sample out, not "
                f"{self.leave_out}"
            )

    def record(self) -> Record:
        return {
            name: value for name, value in super().record().items() if name not in self.INHERITED
        }

    @property
    def drawn(self) -> Design:
        return self.base.drawn

    def check(self, train: int, test: int) -> None:
        self.base.check(train, test)

    def members(self, row: int) -> int:
        """In expectation: sub-models differ by what the draw leaves out."""
        return self.base.members(row // self.models) * (self.models - self.leave_out) // self.models

    def pair(self, row: int) -> int:
        return self.base.pair(row // self.models)
