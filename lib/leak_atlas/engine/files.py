"""What comes from a disk is checked as it is read: UTF-8, syntax, fields. An error names the file."""

from __future__ import annotations

import dataclasses
import json
import os
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from leak_atlas import BadInput


def regular(path: Path) -> Path:
    """A path, where a file is. BadInput where none is: a pipe would be waited for, and a device has
    no end.
    """
    with _reading(path):
        path.stat()
    if not path.is_file():
        raise BadInput(f"cannot read {path}: not a file")
    return path


def text(path: Path) -> str:
    """The text of a file. BadInput where it is none, cannot be read, or is not in UTF-8."""
    with _reading(path):
        return regular(path).read_text("utf-8-sig")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error


def from_json(source: str | bytes, name: object, shape: Any) -> Any:
    """JSON text of `name` as a value of `shape` (see `shaped`). BadInput where it is not."""
    return shaped(_parsed("JSON", lambda: json.loads(source), name), shape, str(name))


def from_yaml(source: str, name: object, shape: Any) -> Any:
    """YAML as `from_json`: plain values alone."""
    import yaml

    return shaped(_parsed("YAML", lambda: yaml.safe_load(source), name), shape, str(name))


def notebook(path: Path) -> Any:
    """An .ipynb file; errors as `text`, and BadInput where it is not a notebook."""
    import nbformat

    source = text(path)
    return _parsed("a notebook", lambda: nbformat.reads(source, as_version=4), path)


def _parsed(language: str, parse: Callable[[], Any], name: object) -> Any:
    try:
        return parse()
    except Exception as error:  # a parser may raise anything
        raise BadInput(f"{name} is not {language}: {error}") from error


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
    """Makes a folder unless it is there. BadInput, which ends in `hint`, where that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write to {path}: {error.strerror or error}; {hint}") from error


def shaped(value: Any, shape: Any, name: str) -> Any:
    """A parsed value as `shape`: a dataclass (from its fields, unknown ones refused), a type, types
    in types, or None.

    BadInput, which says where in `name`, where the value has another shape.
    """
    inner, origin = typing.get_args(shape), typing.get_origin(shape)
    if shape is Any or (origin is Literal and value in inner):
        return value
    if origin is types.UnionType:
        return None if value is None and type(None) in inner else shaped(value, inner[0], name)
    if isinstance(value, dict) and dataclasses.is_dataclass(shape):
        return _from_fields(value, shape, name)
    if isinstance(value, dict) and origin is dict:
        return {key: shaped(part, inner[1], f"{name}: {key}") for key, part in value.items()}
    if isinstance(value, list) and origin in (list, tuple):
        parts = [shaped(part, inner[0], f"{name}: {n}") for n, part in enumerate(value)]
        return origin(parts)
    if shape is float and type(value) in (int, float):
        return float(value)
    if type(value) is shape:
        return value
    takes = getattr(origin or shape, "__name__", str(shape))
    if origin is Literal:
        takes = " or ".join(map(repr, inner))
    raise BadInput(f"{name} takes {takes}, not {str(value)[:80]!r}")


def _from_fields(value: dict[str, Any], shape: Any, name: str) -> Any:
    """A dataclass of the values of its fields, all of which are needed that have no default."""
    types_ = typing.get_type_hints(shape)
    fields = dataclasses.fields(shape)
    needed = {field.name for field in fields if field.default is dataclasses.MISSING}
    for odd in value.keys() - types_.keys():
        raise BadInput(f"{name} has an unknown field '{odd}'")
    for missing in needed - value.keys():
        raise BadInput(f"{name} lacks the field '{missing}'")
    return shape(
        **{key: shaped(part, types_[key], f"{name}: {key}") for key, part in value.items()}
    )
