"""What every recipe is: plain data with a content key."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import sys
import types
import typing
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, dataclass_transform

from leak_atlas import BadInput, nearest
from leak_atlas.engine import digests as code

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
    "load",
]

KINDS: dict[str, type[Recipe]] = {}
CODE = "own code"  # in a record; no field can have this name

# Counts "parameters", or "flops" of the forward pass of one sample, of a network (its data, its
# model) from a part on.
Count = Callable[..., float]


MOST = {int: 2.0**53, float: sys.float_info.max}  # of these and below JSON keeps every digit


class Within(NamedTuple):
    """The least and the largest value of a field, as `Annotated[int, Within(1)]` declares them."""

    least: float
    most: float = math.inf


Whole = Annotated[int, Within(0)]
Positive = Annotated[int, Within(1)]
Amount = Annotated[float, Within(0)]
Share = Annotated[float, Within(0, 1)]

_FIELDS: dict[type, list[tuple[str, Any, Any]]] = {}
_RECORDED: dict[type, dict[str, str]] = {}


def _fields(cls: type[Recipe]) -> list[tuple[str, Any, Any]]:
    """Name, declared type and default of each field; asked once a kind, since plans make recipes by
    the 100,000.
    """
    if cls not in _FIELDS:
        kinds = typing.get_type_hints(cls, include_extras=True)
        declared = dataclasses.fields(cls)  # type: ignore[arg-type]
        made = (
            (f, f.default_factory() if callable(f.default_factory) else f.default) for f in declared
        )
        _FIELDS[cls] = [(item.name, kinds[item.name], default) for item, default in made]
    return _FIELDS[cls]


def recorded_names(cls: type[Recipe]) -> dict[str, str]:
    """The name of each field in records."""
    if cls not in _RECORDED:
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        _RECORDED[cls] = {
            field.name: field.metadata.get("recorded", field.name) for field in fields
        }
    return _RECORDED[cls]


def _fit(owner: str, name: str, value: Any, kind: Any) -> Any:
    """The value as its declared type, so that 1 and 1.0 have one key; BadInput where it does not
    fit.
    """
    options = typing.get_args(kind)
    if typing.get_origin(kind) is Annotated:
        (least, most), number = options[1], _fit(owner, name, value, options[0])
        if least <= number <= most:
            return number
        upper = "or more" if most == math.inf else f"to {most:g}"
        raise BadInput(f"{owner}.{name} takes {least:g} {upper}, not {value!r}")
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        *others, last = [option for option in options if option is not type(None)]
        if value is None and type(None) in options:
            return None
        for option in others:
            with contextlib.suppress(BadInput):
                return _fit(owner, name, value, option)
        return _fit(owner, name, value, last)
    elif typing.get_origin(kind) is Literal:
        if value in options:
            return value
        raise BadInput(
            f"{owner}.{name} cannot be {value!r}{nearest(str(value), [str(o) for o in options])}"
        )
    elif typing.get_origin(kind) is tuple:
        if isinstance(value, list | tuple):
            return tuple(_fit(owner, name, item, options[0]) for item in value)
    elif kind in MOST:
        if (
            isinstance(value, int | kind)
            and not isinstance(value, bool)
            and abs(value) <= MOST[kind]
        ):
            return kind(value)
    elif isinstance(value, kind):
        return value
    wanted = getattr(kind, "__name__", str(kind))
    hint = (
        " (YAML reads 1e-3 as text; write 1.0e-3)"
        if isinstance(value, str) and kind in (int, float)
        else ""
    )
    raise BadInput(f"{owner}.{name} takes {wanted}, not {value!r}{hint}")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
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
        for name, kind, _ in _fields(type(self)):
            value = getattr(self, name)
            # What is fits, unless it is no finite number; a subclass, another number or a
            # collection is looked at.
            if type(value) is not kind or (kind in MOST and not abs(value) <= MOST[kind]):
                object.__setattr__(self, name, _fit(type(self).__name__, name, value, kind))
        self.verify()

    def verify(self) -> None:
        """BadInput where fields contradict each other; asked whenever one is made."""

    def record(self) -> dict[str, Any]:
        """Kind, revision and the fields that differ from their defaults; steps stand as their keys."""
        out: dict[str, Any] = {"kind": self.recorded}
        if self.revision != 1:
            out["revision"] = self.revision
        names = recorded_names(type(self))
        for name, _, default in _fields(type(self)):
            value = getattr(self, name)
            if value is not default and (default is dataclasses.MISSING or value != default):
                out[names[name]] = _plain(value)
        if own := code.source_digest(type(self)):
            out[CODE] = own
        return out

    def within(self) -> Iterator[Recipe]:
        """This recipe and all that stand in its fields, steps apart."""
        yield self
        for name, _, _ in _fields(type(self)):
            value = getattr(self, name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Recipe) and not isinstance(part, Step):
                    yield from part.within()

    def check_code(self) -> None:
        """BadInput where what a user wrote for this recipe's kinds is not, in this process, what
        its key holds.
        """
        if digest(self.record()) != self.key:
            own = ", ".join(
                type(part).__name__ for part in self.within() if code.source_digest(type(part))
            )
            raise BadInput(
                f"{own}: its code is not the one that this recipe was made with: make the recipe again; and let class "
                "and functions stand in one file (workers import the class's) or in cells above the recipe"
            )

    @cached_property
    def key(self) -> str:
        return digest(self.record())

    def __hash__(self) -> int:
        return int(self.key[:16], 16)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.key == other.key


class Step(Recipe):
    """Something that is computed and stored by its key."""

    stored: ClassVar[bool] = True  # False: it is made anew whenever it is needed
    # "host": it runs on the CPU, wherever models are trained
    place: ClassVar[Literal["device", "host"]] = "device"

    def parents(self) -> Iterator[Step]:
        """The steps that must be there first."""
        for name, _, _ in _fields(type(self)):
            value = getattr(self, name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Step):
                    yield part

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


def digest(record: dict[str, Any]) -> str:
    """The key of a recipe with this record: SHA-256 of its canonical JSON."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def load(record: dict[str, Any], step: Callable[[str], Step]) -> Recipe:
    """The recipe of a record; `step` finds a parent by its key."""

    def value(item: Any) -> Any:
        if isinstance(item, dict):
            return load(item, step) if "kind" in item else step(item["step"])
        return tuple(value(part) for part in item) if isinstance(item, list) else item

    kind = KINDS.get(record["kind"])
    if kind is None and CODE in record:
        raise BadInput(
            f"'{record['kind']}' is a user's own kind: this process has not imported the file that defines it"
        )
    if kind is None or record.get("revision", 1) != kind.revision:
        raise BadInput(
            f"'{record['kind']}' of revision {record.get('revision', 1)} is unknown to this version of leak_atlas"
        )
    # A field of a user's may have the name of what records add.
    fields = {recorded: name for name, recorded in recorded_names(kind).items()}
    added = {"kind", "revision", "digest", "gone", "attention", "skipped", CODE} - fields.keys()
    return kind(**{fields.get(k, k): value(v) for k, v in record.items() if k not in added})
