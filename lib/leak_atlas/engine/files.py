"""What comes from a disk is checked as it is read: size, UTF-8, syntax, depth, fields. An error
names the file.
"""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import sys
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from leak_atlas import BadInput

LARGEST = 2**26  # bytes of a file, unless its reader allows more
DEEPEST = 100  # levels of lists and mappings in one another


def regular(path: Path) -> Path:
    """A path, where a file is. BadInput where none is: a pipe would be waited for, and a device has
    no end.
    """
    try:
        if stat.S_ISREG(os.stat(path).st_mode):
            return path
    except (OSError, ValueError) as error:
        raise BadInput(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    raise BadInput(f"cannot read {path}: not a file")


def text(path: Path, largest: int = LARGEST) -> str:
    """The text of a file. BadInput where it is none, cannot be read, is larger than `largest` bytes
    or not in UTF-8.
    """
    try:
        with open(regular(path), "rb") as file:
            found = file.read(largest + 1)
        if len(found) > largest:
            raise BadInput(
                f"cannot read {path}: larger than {largest >> 20} MB, the most that such a file may have"
            )
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error


def from_json(source: str | bytes, name: object, shape: Any) -> Any:
    """JSON text of `name` as a value of `shape` (see `shaped`). BadInput where it is not."""
    return _parsed("JSON", lambda: json.loads(source, object_pairs_hook=_once), name, shape)


def from_yaml(source: str, name: object, shape: Any) -> Any:
    """YAML as `from_json`: plain values, each name once, no aliases, through which a line can stand
    for gigabytes.
    """
    return _parsed("YAML", lambda: _yaml()(source), name, shape)


def notebook(path: Path) -> Any:
    """An .ipynb file; errors as `text`, and BadInput where it is not a notebook."""
    import nbformat

    found = text(path)
    return _parsed("a notebook", lambda: nbformat.reads(found, as_version=4), path, Any)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A place for what becomes `path` at the end, whole or not at all. OSError, which names `path`,
    of a full disk.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{path}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def write(path: Path, content: str) -> None:
    """Writes a text file as `whole` does."""
    with whole(path) as partial:
        partial.write_text(content, "utf-8")


def folder(path: Path, hint: str) -> None:
    """Makes a folder unless it is there. BadInput, which ends in `hint`, where nothing can be
    written to it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / ".writable").touch()
        (path / ".writable").unlink(missing_ok=True)  # another process may look at the same time
    except OSError as error:
        raise BadInput(f"cannot write to {path}: {error.strerror or error}; {hint}") from error


def _parsed(language: str, parse: Callable[[], Any], name: object, shape: Any) -> Any:
    try:
        value = parse()
        level = [value]
        for _ in range(DEEPEST):
            lists = [
                own.values() if isinstance(own, dict) else own
                for own in level
                if isinstance(own, dict | list)
            ]
            level = list(chain.from_iterable(lists))
        if level:
            raise RecursionError
    except RecursionError as error:
        raise BadInput(f"{name} is nested more than {DEEPEST} levels deep") from error
    except Exception as error:  # a parser may raise anything on what was made to break it
        raise BadInput(f"{name} is not {language}: {error}") from error
    return shaped(value, shape, str(name))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"'{name}' stands there twice")
        found[name] = value
    return found


@cache
def _yaml() -> Callable[[str], Any]:
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError(
                    f"write out the value of the alias *{self.peek_event().anchor}"
                )
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            if isinstance(node, yaml.MappingNode):
                _once([(str(name.value), None) for name, _ in node.value])
            return super().construct_mapping(node, deep)

    return lambda source: yaml.load(source, Loader)


def shaped(value: Any, shape: Any, name: str) -> Any:
    """A parsed value as `shape`: a dataclass (from its fields, unknown ones refused), a type, types
    in types, or None.

    Numbers are finite. BadInput, which says where in `name`, where the value has another shape.
    """
    inner = typing.get_args(shape)
    if isinstance(shape, type) and dataclasses.is_dataclass(shape) and isinstance(value, dict):
        kinds = typing.get_type_hints(shape)
        needed = {
            field.name
            for field in dataclasses.fields(shape)
            if field.default is dataclasses.MISSING
        }
        if odd := value.keys() - kinds.keys():
            raise BadInput(f"{name} has an unknown field '{min(map(str, odd))}'")
        if missing := needed - value.keys():
            raise BadInput(f"{name} lacks the field '{min(missing)}'")
        return shape(
            **{own: shaped(part, kinds[own], f"{name}: {own}") for own, part in value.items()}
        )
    origin = typing.get_origin(shape)
    if shape is Any or (origin is Literal and value in inner):
        return value
    if (
        origin is dict
        and isinstance(value, dict)
        and all(isinstance(own, inner[0]) for own in value)
    ):
        return {own: shaped(part, inner[1], f"{name}: {own}") for own, part in value.items()}
    if origin in (list, tuple) and isinstance(value, list):
        return origin(
            shaped(part, inner[0], f"{name}: {place}") for place, part in enumerate(value)
        )
    if shape is float and type(value) in (int, float) and abs(value) <= sys.float_info.max:
        return float(value)
    if origin is types.UnionType:
        return None if value is None and type(None) in inner else shaped(value, inner[0], name)
    if type(value) is shape and shape is not float:
        return value
    takes = (
        " or ".join(map(repr, inner))
        if origin is Literal
        else getattr(origin or shape, "__name__", str(shape))
    )
    raise BadInput(f"{name} takes {takes}, not {str(value)[:80]!r}")
