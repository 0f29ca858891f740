"""One side of a comparison: the probe of PPTP (section 3.2) at one value of each factor, and what
is stored of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, Literal, get_args, get_type_hints

from leak_atlas import BadInput, recipe
from leak_atlas.recipe import (
    Augment,
    Data,
    Distance,
    Model,
    Objective,
    Similarity,
    StageMembership,
    Step,
    registry,
)

Parts = Literal["stages", "blocks"]

# What a factor is called, and the recipe's field that it is. Depth is in the architecture's name.
FACTORS: dict[str, str] = {
    "architecture": "model.name",
    "width": "model.width",
    "stage-4 stride": "model.stage4_stride",
    "patch": "model.patch",
    "stage-4 channels": "model.stage4_channels",
    "stage-3 channels": "model.stage3_channels",
    "training": "objective",
    "data set": "data.name",
    "pixels": "data.pixels",
    "augmentation": "schedule.augment",
    "pool": "design.pool",
    "epochs": "schedule.epochs",
}
# it needs no shadows that share the target's samples
ATTACKER = recipe.Threshold("confidence", by_class=False)
STRIDES = (1, 2, 4)  # of stage 4, and sides of a patch


@dataclass(frozen=True)
class Setting(recipe.Setup):
    """Pairs of M_all and M_h1 at one value of each factor."""

    objective: Objective = field(default_factory=recipe.CrossEntropy)

    def __getitem__(self, factor: str) -> Any:
        """The factor's value; the pixels of a whole image are its side."""
        value = attrgetter(FACTORS[factor])(self)
        return (
            registry.find(self.data.name).shape[0]
            if factor == "pixels" and value is None
            else value
        )

    def but(self, factor: str, value: Any) -> Setting:
        """This setting with another value of one factor.

        What the new architecture does not take goes back to its default. Raises BadInput where the
        value cannot be.
        """
        owner, _, name = FACTORS[factor].partition(".")
        if factor == "architecture":
            given = {each.name: getattr(self.model, each.name) for each in fields(Model)[1:]}
            kept = {
                name: own
                for name, own in given.items()
                if _can(partial(Model, value, **{name: own}))
            }
            return replace(self, model=Model(value, **kept))
        if factor == "data set":
            side, pixels = registry.find(value).shape[0], self.data.pixels
            return replace(
                self, data=Data(value, pixels if pixels is None or pixels < side else None)
            )
        if factor == "pixels" and value == registry.find(self.data.name).shape[0]:
            value = None  # the whole image has one key, not two
        return replace(
            self, **{owner: replace(getattr(self, owner), **{name: value}) if name else value}
        )

    def probe(self) -> tuple[recipe.Pair, ...]:
        return _pairs(self)

    def _at(self, moment: int | None) -> list[recipe.Pair]:
        """The pairs after epoch `moment`; None: at the end."""
        return [pair if moment is None else pair.at(moment) for pair in self.probe()]

    def distances(self, moment: int | None = None, parts: Parts = "stages") -> list[Distance]:
        """One a pair."""
        return [pair.distance(parts) for pair in self._at(moment)]

    def similarities(self, moment: int | None = None, parts: Parts = "stages") -> list[Similarity]:
        """What the best rotation of channels leaves of each pair's distances."""
        return [pair.similarity(parts) for pair in self._at(moment)]

    def memberships(self, moment: int | None = None) -> list[StageMembership]:
        """An attack on the features of each M_h1, stage by stage."""
        return [StageMembership(pair.half) for pair in self._at(moment)]

    def attacked(self) -> list[Step]:
        """What the networks that know half of the pool say in the end, and a threshold attack on
        each by the others.
        """
        halves = recipe.Population(tuple(pair.half for pair in self.probe()))
        attack = [halves.attack(ATTACKER)] if len(halves) > 1 else []
        return [*halves.signals(), *attack]

    def moments(self, wanted: Iterable[int]) -> list[int | None]:
        """Those of the epochs that come before the last, and the end."""
        return [*sorted({moment for moment in wanted if 0 < moment < self.schedule.epochs}), None]

    def steps(self, moments: Iterable[int] = ()) -> list[Step]:
        """Everything that can be looked at. Epochs are asked for at once: one that comes late
        trains again.
        """
        made: list[Step] = []
        for moment in self.moments(moments):
            made += self.memberships(moment)
            for parts in get_args(Parts):
                made += [*self.distances(moment, parts), *self.similarities(moment, parts)]
        return [*made, *self.attacked()]


@lru_cache(maxsize=512)
def _pairs(setting: Setting) -> tuple[recipe.Pair, ...]:
    return setting.pairs(setting.objective)


def _can(make: Callable[[], Any]) -> bool:
    try:
        make()
    except BadInput:
        return False
    return True


def takes(setting: Setting, factor: str) -> bool:
    """Whether a factor that is offered as a list has more than one value at this architecture."""
    tried = (
        STRIDES
        if factor in ("stage-4 stride", "patch")
        else (16,)
        if factor.endswith("channels")
        else ()
    )
    return all(_can(partial(setting.but, factor, value)) for value in tried)


def choices(objectives: Mapping[str, Objective]) -> dict[str, dict[str, Any]]:
    """Words and values of each factor that is chosen from a list; all others are numbers.

    Architectures and data sets are those that the recipes know.
    """
    names = [
        name for name in get_args(get_type_hints(Model)["name"]) if "images" in Model(name).reads
    ]
    strides = {str(stride): stride for stride in STRIDES}
    channels = {"by width": None, **{str(2**power): 2**power for power in range(4, 12)}}
    return {
        "architecture": {name: name for name in names},
        "data set": {
            name: name for name, entry in registry.ENTRIES.items() if entry.kind == "images"
        },
        **dict.fromkeys(("stage-4 stride", "patch"), strides),
        **dict.fromkeys(("stage-3 channels", "stage-4 channels"), channels),
        "augmentation": {
            "none": None,
            **{word(Augment(padding)): Augment(padding) for padding in (1, 2, 4)},
        },
        "training": dict(objectives),
    }


def word(value: Any) -> str:
    """A factor's value in a word or two."""
    if isinstance(value, Augment):
        return f"crop {value.crop}" + " and flip" * value.flip
    return type(value).__name__ if isinstance(value, Objective) else str(value)


def differing(first: Setting, second: Setting) -> list[str]:
    """The factors in which two settings differ."""
    return [factor for factor in FACTORS if first[factor] != second[factor]]


def names(*settings: Setting) -> list[str]:
    """What tells two settings apart, in a few words each."""
    factors = (differing(*settings) or ["architecture"])[:3]
    alone = ("architecture", "training", "data set", "augmentation")
    return [
        ", ".join(word(s[f]) if f in alone else f"{f} {word(s[f])}" for f in factors)
        for s in settings
    ]
