"""Which code of the library computes what: a digest for each kind, read from the text of
`leak_atlas`.

A kind's digest covers its class, the functions that are registered for it, and all that these name
within the library. Comments, docstrings, layout and `revision` do not count. `kinds.toml` stores
revision and digest of each kind.

    python -m tests.library_code

writes the file again, where code has changed and the numbers are the same.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import leak_atlas
from leak_atlas.engine.digests import digest, in_library
from leak_atlas.recipe.core import KINDS

TABLE = Path(__file__).with_name("kinds.toml")
FOLDER = Path(leak_atlas.__file__).parent
NAME = leak_atlas.__name__

# What does the work of kinds for which nothing is registered. It is part of no other kind's digest.
ROOTS = {
    "Train": (f"{NAME}.lab.training", "train"),
    "Model": (f"{NAME}.models", "_made"),
    "Data": (f"{NAME}.data.readers", "load"),
}
# They describe, keep and check; they compute nothing.
SILENT = {"recipe", "store", "files", "paths", "registry", "command", "code"}

Place = tuple[str, ast.stmt]  # a module's name, and a definition in it
_digest = cache(digest)  # many kinds reach the same definitions


@dataclass
class Module:
    """What the text of a module defines, imports and registers."""

    name: str
    definitions: dict[str, ast.stmt] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)  # name: module, name in it
    stars: list[str] = field(default_factory=list)  # modules of which it imports everything
    registered: list[tuple[str, ast.stmt]] = field(default_factory=list)  # kind's name, function


def table() -> dict[str, tuple[int, str]]:
    """Revision and digest of each of the library's kinds as its files are now, by name."""
    kinds = [KINDS[name] for name in sorted(KINDS) if in_library(KINDS[name].__module__)]
    return {kind.__name__: (kind.revision, of_library(kind)) for kind in kinds}


def of_library(kind: type) -> str:
    """The digest of the code of one of the library's kinds."""
    own = module(kind.__module__).definitions[kind.__name__]
    assert isinstance(own, ast.ClassDef)
    body = [statement for statement in own.body if not _is_revision(statement)]
    starts = list(_registrations().get(kind.__name__, ()))
    if kind.__name__ in ROOTS:
        starts += _roots([kind.__name__])
    parts = [*own.bases, *body, *_reached(starts)]
    return hashlib.sha256(" ".join(map(_digest, parts)).encode()).hexdigest()[:16]


def _is_revision(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == "revision"


def _roots(kinds: Iterable[str]) -> list[Place]:
    found = [_find(*ROOTS[kind]) for kind in kinds]
    return [each for each in found if isinstance(each, tuple)]


@cache
def _path(name: str) -> Path | None:
    """The file of a module of the library, or None."""
    place = FOLDER.joinpath(*name.split(".")[1:])
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def module(name: str) -> Module:
    """A module of the library, as its text says."""
    found = Module(name)
    path = _path(name)
    if not path:
        return found
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and in_library(node.module or ""):
            _import(node, found)
    for statement in tree.body:
        _define(statement, found)
    return found


def _import(node: ast.ImportFrom, found: Module) -> None:
    source = node.module or ""
    for each in node.names:
        if each.name == "*":
            found.stars.append(source)
        else:
            found.imports[each.asname or each.name] = source, each.name


def _define(statement: ast.stmt, found: Module) -> None:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        found.definitions[statement.name] = statement
        found.registered += [(kind, statement) for kind in _registered_kinds(statement)]
    match statement:
        case ast.Assign(targets=targets):
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(name)):
            names = [name]
        case _:
            names = []
    found.definitions |= dict.fromkeys(names, statement)


def _registered_kinds(statement: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """Names of the kinds for which decorators register a function, or an update's class."""
    for decorator in statement.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="register"), args=[ast.Name(kind)]):
                yield kind
            case ast.Attribute(attr="register"):  # by the type of the first argument
                if isinstance(statement, ast.FunctionDef):
                    annotation = statement.args.args[0].annotation
                    if isinstance(annotation, ast.Name):
                        yield annotation.id


@cache
def _registrations() -> dict[str, list[Place]]:
    """The library's registered functions, by the name of their kind."""
    found: dict[str, list[Place]] = {}
    for path in sorted(FOLDER.rglob("*.py")):
        if b".register" not in path.read_bytes():
            continue
        parts = path.relative_to(FOLDER).with_suffix("").parts
        name = ".".join((NAME, *parts)).removesuffix(".__init__")
        for kind, function in module(name).registered:
            found.setdefault(kind, []).append((name, function))
    return found


@cache
def _find(where: str, name: str) -> Place | str | None:
    """What a name in a module means: a definition, a module's name, or nothing of the library."""
    room = where.split(".")[1:2]
    if not in_library(where) or SILENT.intersection(room):
        return None
    own = module(where)
    if name in own.definitions:
        return where, own.definitions[name]
    if name in own.imports:
        return _find(*own.imports[name])
    if _path(f"{where}.{name}"):
        return None if name in SILENT else f"{where}.{name}"
    return next((found for star in own.stars if (found := _find(star, name))), None)


@cache
def _named(where: str, definition: ast.AST) -> list[Place]:
    """The library's definitions that a definition names."""
    found = []
    for node in ast.walk(definition):
        if isinstance(node, ast.Name):
            found.append(_find(where, node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = _find(where, node.value.id)
            if isinstance(owner, str):
                found.append(_find(owner, node.attr))
    return [each for each in found if isinstance(each, tuple)]


def _reached(starts: list[Place]) -> list[ast.stmt]:
    """Some definitions and all that they name, sorted by where they stand."""
    roots = _roots(ROOTS)
    seen: dict[int, Place] = {}
    waiting = list(starts)
    while waiting:
        where, definition = waiting.pop()
        if id(definition) not in seen:
            seen[id(definition)] = where, definition
            waiting += [each for each in _named(where, definition) if each not in roots]
    places = sorted(seen.values(), key=lambda place: (place[0], place[1].lineno))
    return [definition for _, definition in places]


def write() -> None:
    """Writes the stored file."""
    lines = ["# Revision and digest of each kind's code. `python -m tests.library_code` writes it."]
    lines += [f'{name} = [{revision}, "{code}"]' for name, (revision, code) in table().items()]
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write()
