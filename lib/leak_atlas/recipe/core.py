"""Base classes of all recipes.

A recipe describes a part of an experiment: plain data, whose key is the hash of its fields. A
`Step` is a recipe whose result is stored under that key.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, dataclass_transform

from leak_atlas import BadInput
from leak_atlas.engine import digests
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

Record = dict[str, Any]  # the JSON object whose hash is a recipe's key
KINDS: dict[str, type[Recipe]] = {}  # all recipe classes, by their names in records
USER_CODE = "own code"  # entry of a record; no field can have this name

# count(quantity, data, model, part): the number of "parameters", or of "flops" of the forward pass
# of one sample, of a network from a part to its end.
Count = Callable[..., float]

Whole = Annotated[int, Within(0)]
Positive = Annotated[int, Within(1)]
Amount = Annotated[float, Within(0)]
Share = Annotated[float, Within(0, 1)]


class Field(NamedTuple):
    """A declared field of a recipe class."""

    name: str
    type: Any
    default: Any  # `dataclasses.MISSING`: none
    recorded: str  # its name in records
    applies_to: tuple[str, ...]  # kinds of data or architectures that have it; (): all

    def has_default(self, value: Any) -> bool:
        """Whether a value is the default."""
        if self.default is dataclasses.MISSING:
            return False
        return value is self.default or bool(value == self.default)


_FIELDS: dict[type, tuple[Field, ...]] = {}


def fields_of(cls: type[Recipe]) -> tuple[Field, ...]:
    """The fields of a recipe class. Cached, because a plan makes about 100,000 recipes."""
    if cls not in _FIELDS:
        types = typing.get_type_hints(cls, include_extras=True)
        declared = dataclasses.fields(cls)  # type: ignore[arg-type]
        _FIELDS[cls] = tuple(_field(field, types[field.name]) for field in declared)
    return _FIELDS[cls]


def _field(field: dataclasses.Field[Any], declared_type: Any) -> Field:
    factory = field.default_factory
    default = factory() if callable(factory) else field.default
    recorded = field.metadata.get("recorded", field.name)
    applies_to = field.metadata.get("applies_to", ())
    return Field(field.name, declared_type, default, recorded, applies_to)


def field_for(*applies_to: str, default: Any) -> Any:
    """A field that only some kinds of data, or some families of architectures, have."""
    return dataclasses.field(default=default, metadata={"applies_to": applies_to})


def first_inapplicable(recipe: Recipe, name: str) -> Field | None:
    """The first field that differs from its default but does not apply to the data or the
    architecture `name`. None if there is none.
    """
    for field in fields_of(type(recipe)):
        applies = not field.applies_to or name.startswith(field.applies_to)  # "resnet": "resnet18"
        if not applies and not field.has_default(getattr(recipe, field.name)):
            return field
    return None


@dataclass_transform(
    frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field, field_for)
)
class Recipe:
    """Base class of recipes: plain data with a key. Each subclass becomes a frozen dataclass,
    without a decorator.

    A class or a field that is renamed keeps its old name in records, so that stored results stay
    valid: `class Freeze(Edit, recorded="Hold")`, `field(metadata={"recorded": "first name"})`.
    """

    revision: ClassVar[int] = 1  # raise it when the code of this class computes other results
    recorded: ClassVar[str]  # the name of the class in records

    def __init_subclass__(cls, recorded: str | None = None) -> None:
        cls.recorded = recorded or cls.__name__
        # a user's class must not take the name of a class of the library
        registered = KINDS.get(cls.recorded)
        of_library = registered and digests.in_library(registered.__module__)
        if of_library and not digests.in_library(cls.__module__):
            raise BadInput(f"{cls.__name__} exists in the library: give your class another name")
        digests.record_class(cls)
        dataclasses.dataclass(frozen=True, eq=False)(cls)
        KINDS[cls.recorded] = cls

    def __post_init__(self) -> None:
        for field in fields_of(type(self)):
            value = getattr(self, field.name)
            # checking and converting is slow, and most values have the declared type already
            fits = type(value) is field.type and (
                field.type not in MOST or is_number(value, field.type)
            )
            if not fits:
                name = f"{type(self).__name__}.{field.name}"
                object.__setattr__(self, field.name, shaped(value, field.type, name))
        self.verify()

    def verify(self) -> None:
        """For subclasses: raises BadInput if fields contradict each other. Called on creation."""

    def record(self) -> Record:
        """The JSON object that is hashed: class, revision, and the fields that differ from their
        defaults. Steps are replaced by their keys.
        """
        out: Record = {"kind": self.recorded}
        if self.revision != 1:
            out["revision"] = self.revision
        for field in fields_of(type(self)):
            value = getattr(self, field.name)
            if not field.has_default(value):
                out[field.recorded] = _as_json(value)
        if user_code := digests.source_digest(type(self)):
            out[USER_CODE] = user_code
        return out

    def _children(self) -> Iterator[Recipe]:
        """The recipes in its fields."""
        for field in fields_of(type(self)):
            value = getattr(self, field.name)
            values = value if isinstance(value, tuple) else (value,)
            yield from (one for one in values if isinstance(one, Recipe))

    def within(self) -> Iterator[Recipe]:
        """This recipe, the recipes in its fields, in their fields, and so on; without steps."""
        yield self
        for child in self._children():
            if not isinstance(child, Step):
                yield from child.within()

    def check_code(self) -> None:
        """Raises BadInput if the user's code behind this recipe has changed since it was made."""
        if digest(self.record()) == self.key:
            return
        classes = {type(part) for part in self.within()}
        users = [cls.__name__ for cls in classes if digests.source_digest(cls)]
        raise BadInput(
            f"the code of {', '.join(sorted(users))} has changed since this recipe was made: make "
            "the recipe again; a class and its functions belong in one file, or in cells above the "
            "recipe"
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
    """A recipe that is computed, and whose result is stored under its key."""

    stored: ClassVar[bool] = True  # False: it is computed again each time
    place: ClassVar[Place] = "device"  # "host": on the CPU, even if models are trained on a GPU

    def parents(self) -> Iterator[Step]:
        """The steps whose results this step reads."""
        yield from (child for child in self._children() if isinstance(child, Step))

    def operations(self, count: Count) -> float:
        """Number of floating point operations, forward and backward; 0 for cheap steps."""
        return 0.0


def _as_json(value: Any) -> Any:
    if isinstance(value, Step):
        return {"step": value.key}
    if isinstance(value, Recipe):
        return value.record()
    if isinstance(value, tuple):
        return [_as_json(item) for item in value]
    return value


def digest(record: Record) -> str:
    """The key of a record: SHA-256 of its canonical JSON."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
