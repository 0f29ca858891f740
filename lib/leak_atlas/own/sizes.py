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
    Raises BadInput where there is no such set, or where it has too few samples.
    """
    if not data:
        data = EXAMPLE.data
        pixels = EXAMPLE.pixels if pixels is None else pixels
        pool = EXAMPLE.pool if pool is None else pool
        if test is None:
            test = EXAMPLE.test
            population = EXAMPLE.population if population is None else population
    entry = registry.find(data)
    notes: list[str] = []
    side = _fitted_side(entry, pixels, notes)
    members = _fitted("pool", pool, entry.train, f"the train part of {data}", notes)
    tested = _fitted("test", test, entry.test, f"the test part of {data}", notes)
    rest = _fitted_population(population, tested, notes)
    if min(members, tested - rest) < FEWEST:
        raise BadInput(
            f"{FEWEST} train samples of {data} are needed, and {FEWEST} test samples beside the "
            f"population; there are {members} and {tested - rest}: ask for more, or add samples"
        )
    return Sizes(data, side, members, tested, rest, tuple(notes))


def _fitted_side(entry: registry.Entry, pixels: int | None, notes: list[str]) -> int | None:
    """The side to which images are reduced; None where nothing is resized: nobody asks for it, the
    images are no larger, or there are none.
    """
    if pixels is None:
        return None
    if entry.kind != "images":
        notes.append(f"pixels: left out; {entry.name} holds {entry.kind}.")
        return None
    side = entry.shape[0]
    if pixels > side:
        notes.append(f"pixels: {side}, not {pixels}; images of {entry.name} are not enlarged.")
    return pixels if pixels < side else None


def _fitted(name: str, wanted: int | None, there: int, where: str, notes: list[str]) -> int:
    """How many samples are looked at for the parameter `name`: an even number, since halves of them
    are compared.
    """
    if wanted is not None and wanted < 0:
        raise BadInput(f"{name} takes 0 or more, not {wanted}")
    number = there if wanted is None else min(wanted, there)
    number -= number % 2
    if wanted is not None and number != wanted:
        less = f"{where} has {there:,} samples"
        why = less if wanted > there else "two halves of it are compared"
        notes.append(f"{name}: {number:,}, not {wanted:,}; {why}.")
    return number


def _fitted_population(wanted: int | None, tested: int, notes: list[str]) -> int:
    """How many of the test samples are the population.

    An even number, as a shadow model trains on one half of the members and non-members together.
    """
    usual = round(POPULATION * tested)
    number = usual if wanted is None else wanted
    why = "it is even"
    if not 0 <= number <= tested - FEWEST:
        number, why = usual, f"some of the {tested:,} test samples must be non-members"
    number -= number % 2
    if wanted is not None and number != wanted:
        notes.append(f"population: {number:,}, not {wanted:,}; {why}.")
    return number
