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
    """Samples of a data set that an audit looks at, and a note on each number that was reduced."""

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


def audit_sizes(
    data: str,
    pixels: int | None,
    pool: int | None,
    test: int | None,
    population: int | None,
) -> Sizes:
    """The sizes of an audit of a model that was trained on the train part of the set `data`.

    None asks for all: images as they are, all of the train part, all of the test part, of which a
    share of `POPULATION` is the population. Where `data` is "", None asks for the example's size.
    Raises BadInput where the set has too few samples for an audit.
    """
    if not data:
        return _example_sizes(pixels, pool, test, population)
    facts = registry.find(data)
    side, notes = fitting_pixels(data, pixels)
    members, note = fitting_samples("pool", pool, facts.train, "train", data)
    notes += note
    looked_at, note = fitting_samples("test", test, facts.test, "test", data)
    notes += note
    rest, note = _fitting_population(population, looked_at)
    notes += note
    outside = looked_at - rest
    if min(members, outside) < FEWEST:
        raise BadInput(
            f"an audit of {data} needs {FEWEST} train samples, and {FEWEST} test samples beside "
            f"the population; it has {members} and {outside}: ask for more, or add samples"
        )
    return Sizes(data, side, members, looked_at, rest, tuple(notes))


def _example_sizes(
    pixels: int | None,
    pool: int | None,
    test: int | None,
    population: int | None,
) -> Sizes:
    """The example's sizes, where the user asks for no others."""
    own = EXAMPLE
    side = own.pixels if pixels is None else pixels
    members = own.pool if pool is None else pool
    looked_at = own.test if test is None else test
    rest = own.population if population is None and test is None else population
    return audit_sizes(own.data, side, members, looked_at, rest)


def fitting_pixels(data: str, pixels: int | None) -> tuple[int | None, list[str]]:
    """The side to which the images of a set are reduced, and a note where it is not `pixels`.

    None where nothing is resized: nobody asks for it, the images are smaller, or there are none.
    """
    facts = registry.find(data)
    if pixels is None:
        return None, []
    if facts.kind != "images":
        return None, [f"pixels: left out; {data} holds {facts.kind}."]
    if pixels > (side := facts.shape[0]):
        return None, [f"pixels: {side}, not {pixels}; images of {data} are not enlarged."]
    return pixels, []


def fitting_samples(
    name: str,
    wanted: int | None,
    there: int,
    part: str,
    data: str,
) -> tuple[int, list[str]]:
    """How many samples of a `part` of a set are looked at, and a note where fewer than `wanted`.

    None asks for all. `name` is the parameter that asks. Halves of the samples are compared, so
    that an odd number is reduced by one.
    """
    if wanted is not None and wanted < 0:
        raise BadInput(f"{name} takes 0 or more, not {wanted}")
    number = there if wanted is None else min(wanted, there)
    number -= number % 2
    if wanted is None or number == wanted:
        return number, []
    why = "two halves of it are compared"
    if wanted > there:
        why = f"the {part} part of {data} has {there:,} samples"
    return number, [f"{name}: {number:,}, not {wanted:,}; {why}."]


def _fitting_population(wanted: int | None, looked_at: int) -> tuple[int, list[str]]:
    """How many of the test samples are the population, and a note where it is not `wanted`.

    An even number, as a shadow model trains on one half of the members and non-members together.
    """
    usual = round(POPULATION * looked_at)
    number = usual if wanted is None else wanted
    why = "it is even"
    if not 0 <= number <= looked_at - FEWEST:
        number, why = usual, f"some of the {looked_at:,} test samples must be non-members"
    number -= number % 2
    if wanted is None or number == wanted:
        return number, []
    return number, [f"population: {number:,}, not {wanted:,}; {why}."]
