"""What every recipe is: plain data with a content key."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, dataclass_transform

from leak_atlas import BadInput
from leak_atlas.engine import digests as code
from leak_atlas.engine.shapes import MOST, Within, is_number, shaped

__all__ = [
    "KINDS",
    "Amount",
    "Count",
    "Positive",
    "Recipe",
    "Share",
    "Step",
    "Whole",
    "Within",
]

Record = dict[str, Any]  # of a recipe, as JSON holds it
KINDS: dict[str, type[Recipe]] = {}
CODE = "own code"  # in a record; no field can have this name

# Counts "parameters", or "flops" of the forward pass of one sample, of a network (its data, its
# model) from a part on.
Count = Callable[..., float]

Whole = Annotated[int, Within(0)]
Positive = Annotated[int, Within(1)]
Amount = Annotated[float, Within(0)]
Share = Annotated[float, Within(0, 1)]


class Field(NamedTuple):
    """A declared field of a kind."""

    name: str
    kind: Any  # its type, as declared
    default: Any
    recorded: str  # its name in records
    owners: tuple[str, ...]  # what it belongs to; (): all


_FIELDS: dict[type, tuple[Field, ...]] = {}


def fields_of(cls: type[Recipe]) -> tuple[Field, ...]:
    """The fields of a kind. Looked up once: plans make recipes by the 100,000."""
    if cls not in _FIELDS:
        kinds = typing.get_type_hints(cls, include_extras=True)
        declared = dataclasses.fields(cls)  # type: ignore[arg-type]
        _FIELDS[cls] = tuple(_field(field, kinds[field.name]) for field in declared)
    return _FIELDS[cls]


def _field(field: dataclasses.Field[Any], kind: Any) -> Field:
    factory = field.default_factory
    default = factory() if callable(factory) else field.default
    recorded = field.metadata.get("recorded", field.name)
    return Field(field.name, kind, default, recorded, field.metadata.get("owners", ()))


def only_of(*owners: str, default: Any) -> Any:
    """A field that belongs to some kinds of data or families of architectures alone."""
    return dataclasses.field(default=default, metadata={"owners": owners})


def misplaced(recipe: Recipe, owner: str) -> Field | None:
    """The first field that is given, but belongs to other owners than this one, or None."""
    for field in fields_of(type(recipe)):
        given = getattr(recipe, field.name) != field.default
        if field.owners and given and not owner.startswith(field.owners):
            return field
    return None


def refuse(*checks: tuple[object, str]) -> None:
    """BadInput with the text of the first check that is true. A check is a condition and a text."""
    for wrong, text in checks:
        if wrong:
            raise BadInput(text)


@dataclass_transform(
    frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field, only_of)
)
class Recipe:
    """Plain data with a content key; see the module's text. Every kind is a frozen dataclass,
    without saying so.

    A kind or a field that has been renamed keeps its first name in records, so that keys stay:
    `class Freeze(Edit, recorded="Hold")`, `field(metadata={"recorded": "first name"})`.
    """

    revision: ClassVar[int] = 1  # raised when the code of this kind changes what it computes
    recorded: ClassVar[str]  # the kind's name in records

    def __init_subclass__(cls, recorded: str | None = None) -> None:
        cls.recorded = recorded or cls.__name__
        taken = KINDS.get(cls.recorded)
        if taken and code.in_library(taken.__module__) and not code.in_library(cls.__module__):
            raise BadInput(
                f"{cls.__name__} is the name of a kind of the library: give yours another name"
            )
        code.record_class(cls)
        dataclasses.dataclass(frozen=True, eq=False)(cls)
        KINDS[cls.recorded] = cls

    def __post_init__(self) -> None:
        for name, kind, *_ in fields_of(type(self)):
            value = getattr(self, name)
            fits = type(value) is kind and (kind not in MOST or is_number(value, kind))
            if not fits:
                owner = f"{type(self).__name__}.{name}"
                object.__setattr__(self, name, shaped(value, kind, owner))
        self.verify()

    def verify(self) -> None:
        """BadInput where fields contradict each other; asked whenever one is made."""

    def record(self) -> Record:
        """Kind, revision and the fields that differ from their defaults; steps as their keys."""
        out: Record = {"kind": self.recorded}
        if self.revision != 1:
            out["revision"] = self.revision
        for name, _, default, recorded, _ in fields_of(type(self)):
            value = getattr(self, name)
            if value is not default and (default is dataclasses.MISSING or value != default):
                out[recorded] = _plain(value)
        if own := code.source_digest(type(self)):
            out[CODE] = own
        return out

    def _held(self) -> Iterator[Recipe]:
        """The recipes in its fields."""
        for field in fields_of(type(self)):
            value = getattr(self, field.name)
            parts = value if isinstance(value, tuple) else (value,)
            yield from (part for part in parts if isinstance(part, Recipe))

    def within(self) -> Iterator[Recipe]:
        """This recipe and all that stand in its fields, steps apart."""
        yield self
        for part in self._held():
            if not isinstance(part, Step):
                yield from part.within()

    def check_code(self) -> None:
        """BadInput where what a user wrote for this recipe's kinds is not, in this process, what
        its key holds.
        """
        if digest(self.record()) == self.key:
            return
        own = [type(part).__name__ for part in self.within() if code.source_digest(type(part))]
        raise BadInput(
            f"{', '.join(own)}: its code is not the one that this recipe was made with: make the "
            "recipe again; "
            "class and functions stand in one file, or in cells above the recipe"
        )

    @cached_property
    def key(self) -> str:
        return digest(self.record())

    def __hash__(self) -> int:
        return int(self.key[:16], 16)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.key == other.key


Place = Literal["device", "host"]


class Step(Recipe):
    """Something that is computed and stored by its key."""

    stored: ClassVar[bool] = True  # False: it is made anew whenever it is needed
    # "host": it runs on the CPU, wherever models are trained
    place: ClassVar[Place] = "device"

    def parents(self) -> Iterator[Step]:
        """The steps that must be there first."""
        yield from (part for part in self._held() if isinstance(part, Step))

    def operations(self, count: Count) -> float:
        """Floating point operations, forward and backward; what is cheap counts as nothing."""
        return 0.0


def _plain(value: Any) -> Any:
    if isinstance(value, Step):
        return {"step": value.key}
    if isinstance(value, Recipe):
        return value.record()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def digest(record: Record) -> str:
    """The key of a recipe with this record: SHA-256 of its canonical JSON."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
