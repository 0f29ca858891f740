"""One side of a comparison: the probe of PPTP (section 3.2) at one value of each factor, and what
is stored of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
# what an architecture has to take, or the factor means nothing to it
TRIED = {
    "stage-4 stride": STRIDES,
    "patch": STRIDES,
    "stage-4 channels": (16,),
    "stage-3 channels": (16,),
}
ALONE = ("architecture", "training", "data set", "augmentation")  # their values name them


@dataclass(frozen=True)
class Setting(recipe.Setup):
    """Pairs of M_all and M_h1 at one value of each factor."""

    objective: Objective = field(default_factory=recipe.CrossEntropy)

    def __getitem__(self, factor: str) -> Any:
        """The factor's value; the pixels of a whole image are its side."""
        value = attrgetter(FACTORS[factor])(self)
        if factor == "pixels" and value is None:
            return _side(self.data.name)
        return value

    def but(self, factor: str, value: Any) -> Setting:
        """This setting with another value of one factor.

        What the new architecture does not take goes back to its default. Raises BadInput where the
        value cannot be.
        """
        if factor == "architecture":
            return replace(self, model=self._model(value))
        if factor == "data set":
            pixels = self.data.pixels
            if pixels and pixels >= _side(value):
                pixels = None
            return replace(self, data=Data(value, pixels))
        if factor == "pixels" and value == _side(self.data.name):
            value = None  # the whole image has one key, not two
        owner, _, name = FACTORS[factor].partition(".")
        if name:
            value = replace(getattr(self, owner), **{name: value})
        return replace(self, **{owner: value})

    def _model(self, architecture: Any) -> Model:
        """Another architecture, with what it takes of this one's options."""
        kept: dict[str, Any] = {}
        for option in fields(Model)[1:]:
            own = {option.name: getattr(self.model, option.name)}
            if _can(partial(Model, architecture, **own)):
                kept |= own
        return Model(architecture, **kept)

    def probe(self) -> tuple[recipe.Pair, ...]:
        return _pairs(self)

    def _at(self, moment: int | None) -> list[recipe.Pair]:
        """The pairs after epoch `moment`; None: at the end."""
        return [pair if moment is None else pair.at(moment) for pair in self.probe()]

    def distances(self, moment: int | None = None, parts: Parts = "stages") -> list[Distance]:
        """One a pair."""
        return [pair.distance(parts) for pair in self._at(moment)]

    def similarities(self, moment: int | None = None, parts: Parts = "stages") -> list[Similarity]:
        """Each pair's distances after the best rotation of the channels."""
        return [pair.similarity(parts) for pair in self._at(moment)]

    def memberships(self, moment: int | None = None) -> list[StageMembership]:
        """An attack on the features of each M_h1, stage by stage."""
        return [StageMembership(pair.half) for pair in self._at(moment)]

    def attacked(self) -> list[Step]:
        """The final outputs of each M_h1, and a threshold attack on each by the others."""
        halves = recipe.Population(tuple(pair.half for pair in self.probe()))
        attack = [halves.attack(ATTACKER)] if len(halves) > 1 else []
        return [*halves.signals(), *attack]

    def moments(self, wanted: Iterable[int]) -> list[int | None]:
        """Those of the epochs that come before the last, and the end."""
        earlier = {moment for moment in wanted if 0 < moment < self.schedule.epochs}
        return [*sorted(earlier), None]

    def steps(self, moments: Iterable[int] = ()) -> list[Step]:
        """Everything that can be looked at. Epochs are asked for at once: one that comes late
        trains again.
        """
        steps: list[Step] = []
        for moment in self.moments(moments):
            steps += self.memberships(moment)
            for parts in get_args(Parts):
                steps += self.distances(moment, parts)
                steps += self.similarities(moment, parts)
        return [*steps, *self.attacked()]


@lru_cache(maxsize=512)
def _pairs(setting: Setting) -> tuple[recipe.Pair, ...]:
    return setting.pairs(setting.objective)


def _can(make: Callable[[], Any]) -> bool:
    """Whether something can be made."""
    try:
        make()
    except BadInput:
        return False
    return True


def _side(data: str) -> int:
    """The pixels on a side of a whole image."""
    return registry.find(data).shape[0]


def takes(setting: Setting, factor: str) -> bool:
    """Whether a factor that is offered as a list has more than one value at this architecture."""
    return all(_can(partial(setting.but, factor, value)) for value in TRIED.get(factor, ()))


def choices(objectives: Mapping[str, Objective]) -> dict[str, dict[str, Any]]:
    """The values of each factor that are offered, by their words.

    Architectures and data sets are those that the recipes know.
    """
    architectures = get_args(get_type_hints(Model)["name"])
    channels = {"by width": None} | _by_word(2**power for power in range(4, 12))
    return {
        "architecture": _by_word(name for name in architectures if "images" in Model(name).reads),
        "width": _by_word((4, 8, 16, 32, 64)),
        "stage-4 stride": _by_word(STRIDES),
        "patch": _by_word(STRIDES),
        "stage-4 channels": channels,
        "stage-3 channels": channels,
        "training": dict(objectives),
        "data set": _by_word(
            name for name, entry in registry.ENTRIES.items() if entry.kind == "images"
        ),
        "pixels": _by_word((8, 16, 32)),
        "augmentation": {"none": None} | _by_word(Augment(padding) for padding in (1, 2, 4)),
        "pool": _by_word((300, 600, 1000, 2000)),
        "epochs": _by_word((6, 12, 20, 40)),
    }


def _by_word(values: Iterable[Any]) -> dict[str, Any]:
    return {word(value): value for value in values}


def word(value: Any) -> str:
    """A factor's value in a word or two."""
    if isinstance(value, Augment):
        return f"crop {value.crop}" + " and flip" * value.flip
    return type(value).__name__ if isinstance(value, Objective) else str(value)


def differing(first: Setting, second: Setting) -> list[str]:
    """The factors in which two settings differ."""
    return [factor for factor in FACTORS if first[factor] != second[factor]]


def names(first: Setting, second: Setting) -> list[str]:
    """What distinguishes two settings, in a few words each."""
    factors = (differing(first, second) or ["architecture"])[:3]
    return [_name(first, factors), _name(second, factors)]


def _name(setting: Setting, factors: Sequence[str]) -> str:
    """The values of some factors, as a name."""
    words = []
    for factor in factors:
        value = word(setting[factor])
        words.append(value if factor in ALONE else f"{factor} {value}")
    return ", ".join(words)
