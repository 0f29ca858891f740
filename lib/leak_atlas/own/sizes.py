"""How much of a data set a page of the user's own looks at: sizes are reduced to what is there.

No torch, no arrays: all of it follows from the registry.
"""

from __future__ import annotations

from dataclasses import dataclass

from leak_atlas import BadInput
from leak_atlas.recipe import registry

FEWEST = 4  # members, and non-members, that an audit needs: attackers know half of each side
POPULATION = 0.4  # of the test samples: RMIA's population, where the user does not say how many


@dataclass(frozen=True)
class Sizes:
    """Samples of a data set that a page looks at, and a note on each number that was reduced."""

    data: str
    pixels: int | None  # side of the images after resizing; None: as they are
    pool: int  # of the train part: members of the target
    test: int  # of the test part: non-members and population together
    population: int  # of the `test` samples: RMIA's population
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What is looked at, in words."""
        side = f" at {self.pixels} x {self.pixels} pixels" if self.pixels else ""
        outside = self.test - self.population
        return (
            f"Data: {self.data}{side}. {self.pool:,} members, {outside:,} non-members, and "
            f"{self.population:,} more test samples as RMIA's population."
        )


EXAMPLE = Sizes("fashion-mnist-small", 16, 600, 1000, 400)  # trained in a minute or two


def fitted_sizes(
    data: str,
    pixels: int | None = None,
    pool: int | None = None,
    test: int | None = None,
    population: int | None = None,
) -> Sizes:
    """The sizes that the user asks for, reduced where the set `data` has less.

    None asks for all: images as they are, all of the train part, all of the test part, of which a
    share of `POPULATION` is the population. Where `data` is "", None asks for the example's size.
    Numbers of samples are even, because halves are compared. Raises BadInput if there is no such
    set, or where it has too few samples.
    """
    if not data:
        data = EXAMPLE.data
        pixels = EXAMPLE.pixels if pixels is None else pixels
        pool = EXAMPLE.pool if pool is None else pool
        population = EXAMPLE.population if population is None and test is None else population
        test = EXAMPLE.test if test is None else test
    entry = registry.find(data)
    side = None
    if entry.kind == "images" and pixels is not None and pixels < entry.shape[0]:
        side = pixels
    members = _even(entry.train if pool is None else min(pool, entry.train))
    tested = _even(entry.test if test is None else min(test, entry.test))
    others = population
    if others is None or others > tested - FEWEST:
        others = round(POPULATION * tested)
    others = _even(others)
    if min(members, tested - others) < FEWEST:
        raise BadInput(
            f"{FEWEST} train samples of {data} are needed, and {FEWEST} test samples beside the "
            f"population; there are {members} and {tested - others}: ask for more, or add samples"
        )
    notes = []
    own = entry.shape[0] if entry.kind == "images" else None
    for name, size, wanted in (
        ("pixels", side or own, pixels),
        ("pool", members, pool),
        ("test", tested, test),
        ("population", others, population),
    ):
        if wanted not in (None, size):
            notes.append(f"{name}: {'left out' if size is None else size}, not {wanted}.")
    return Sizes(data, side, members, tested, others, tuple(notes))


def _even(number: int) -> int:
    return number - number % 2
