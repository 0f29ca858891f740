"""A value as its declared type: what a file holds, a parameter of a notebook, a recipe's field."""

from __future__ import annotations

import contextlib
import math
import re
import sys
import types
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from leak_atlas import BadInput, nearest

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+")  # to YAML mostly a text
MOST = {int: 2.0**53, float: sys.float_info.max}  # of these and below JSON keeps every digit


class Within(NamedTuple):
    """The least and the largest value of a number, as `Annotated[int, Within(1)]` declares them."""

    least: float
    most: float = math.inf

    def checked(self, number: float, name: str) -> float:
        """The same number. Raises BadInput if it lies outside."""
        if self.least <= number <= self.most:
            return number
        upper = "or more" if self.most == math.inf else f"to {self.most:g}"
        raise BadInput(f"{name} takes {self.least:g} {upper}, not {number!r}")


def shaped(value: Any, kind: Any, name: str) -> Any:
    """The value of `name` as its declared type, so that 1 and 1.0 are the same float.

    Raises BadInput, which says where in `name`, if the value does not fit.
    """
    origin = get_origin(kind)
    inner = get_args(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        number, limits = inner
        return limits.checked(shaped(value, number, name), name)
    if origin in (types.UnionType, Union):
        return _one_of(value, inner, name)
    if origin is Literal:
        for choice in inner:
            if isinstance(value, type(choice)) and not isinstance(value, bool) and value == choice:
                return choice
        raise BadInput(f"{name} cannot be {value!r}{nearest(str(value), [*map(str, inner)])}")
    if origin in (list, tuple) and isinstance(value, list | tuple):
        return origin(shaped(part, inner[0], f"{name}: {n}") for n, part in enumerate(value))
    if origin is dict and isinstance(value, dict):
        for key in value:
            if not isinstance(key, inner[0]):
                raise BadInput(f"{name} takes names, not {key!r}: write it in quotes")
        return {key: shaped(part, inner[1], f"{name}: {key}") for key, part in value.items()}
    if kind in MOST and is_number(value, kind):
        return kind(value)
    if kind not in MOST and origin is None and isinstance(value, kind):
        return value
    wanted = getattr(kind, "__name__", str(kind))
    of_yaml = kind in MOST and isinstance(value, str) and NUMBER.fullmatch(value)
    hint = " (YAML reads it as text; write a point and a sign, as in 1.0e-3)" if of_yaml else ""
    raise BadInput(f"{name} takes {wanted}, not {value!r}{hint}")


def is_number(value: Any, kind: type) -> bool:
    """Whether JSON keeps a value as an int or a float."""
    number = isinstance(value, int | kind) and not isinstance(value, bool)
    return number and abs(value) <= MOST[kind]


def _one_of(value: Any, kinds: tuple[Any, ...], name: str) -> Any:
    """The value as the first of some types that it fits; what the last one says where none does."""
    if value is None and type(None) in kinds:
        return None
    *others, last = [kind for kind in kinds if kind is not type(None)]
    for kind in others:
        with contextlib.suppress(BadInput):
            return shaped(value, kind, name)
    return shaped(value, last, name)
