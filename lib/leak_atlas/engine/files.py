"""Reads and writes files. Reading checks encoding, syntax and fields, and errors name the file.
Writing is atomic: a file has all of its new content or stays as it was.
"""

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


def require_file(path: Path) -> Path:
    """Returns `path`. Raises BadInput if it is no regular file: reading a pipe would block, and a
    device never ends.
    """
    with _as_bad_input(path):
        path.stat()
    if not path.is_file():
        raise BadInput(f"cannot read {path}: not a file")
    return path


def read_text(path: Path) -> str:
    """The text of a UTF-8 file. Raises BadInput if it cannot be read or is not UTF-8."""
    with _as_bad_input(path):
        return require_file(path).read_text("utf-8-sig")  # drops a byte order mark


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex. Raises BadInput if it cannot be read."""
    with _as_bad_input(path), require_file(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _as_bad_input(path: Path) -> Iterator[None]:
    """Turns errors of decoding and of the operating system into BadInput."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error


def read_json(path: Path, shape: Any) -> Any:
    """The content of a JSON file as a value of the type `shape` (see `shaped`). Raises BadInput if
    it cannot be read or has another type.
    """
    text = read_text(path)
    return shaped(_parsed("JSON", lambda: json.loads(text), path), shape, str(path))


def read_yaml(path: Path, name: str, shape: Any) -> Any:
    """As `read_json`, of a YAML file of plain values. Errors call the file `name`."""
    import yaml

    text = read_text(path)
    return shaped(_parsed("YAML", lambda: yaml.safe_load(text), name), shape, name)


def read_notebook(path: Path) -> Any:
    """An .ipynb file. Raises BadInput if it cannot be read or is no notebook."""
    import nbformat

    text = read_text(path)
    return _parsed("a notebook", lambda: nbformat.reads(text, as_version=4), path)


def _parsed(language: str, parse: Callable[[], Any], name: object) -> Any:
    try:
        return parse()
    except Exception as error:  # a parser may raise anything
        raise BadInput(f"{name} is not {language}: {error}") from error


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yields a temporary path, which replaces `path` at the end. After an error `path` is as
    before. An OSError, as of a full disk, names `path`.
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


def write_text(path: Path, content: str) -> None:
    """Writes a text file atomically."""
    with atomic_write(path) as partial:
        partial.write_text(content, "utf-8")


def make_folder(path: Path, hint: str) -> None:
    """Creates a folder and its parents if missing. Raises BadInput, which ends in `hint`, if it
    cannot.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write to {path}: {error.strerror or error}; {hint}") from error
