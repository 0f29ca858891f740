"""What comes from a disk is checked as it is read: UTF-8, syntax, fields. An error names the file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from leak_atlas import BadInput
from leak_atlas.engine.shapes import shaped


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


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex. BadInput where it cannot be read."""
    with _reading(path), regular(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
