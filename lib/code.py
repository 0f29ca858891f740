"""Which code computes what: digests of source, in which comments, docstrings and layout do not count. No torch.

Of kinds that a user writes the digest is in the key (`written`): of the whole file or cell in which the class stands,
and of those in which its functions are registered, as they were when they ran. What these import is not seen: raise the
kind's `revision` where that changes. Of the library's own kinds it stands beside a result (`made_by`): it covers the
class, its registered functions and all that these name within `lib`.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from lib import BadInput

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

Returned = TypeVar("Returned")

LIBRARY = Path(__file__).resolve().parent
CELL = "__main__"  # the module of what stands in a notebook's cell or in a script: no other process can import it


def digest(tree: ast.AST) -> str:
    """16 hexadecimal digits of what a syntax tree says, the same for every version of Python."""
    return _short(repr(_plain(tree)))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(node: Any) -> Any:
    """A tree as nested lists, without what is empty: which fields there are depends on the version."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    found: list[Any] = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(value, list):
            value = [
                each for each in value if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ]
        if value not in (None, []):
            found.append((name, _plain(value)))
    return found


# ---------------------------------------------------------------- kinds of a user's own


class Text(NamedTuple):
    """Where a user's class or function stands: its module, its file or cell, and the digest of that ("": unread)."""

    module: str
    file: str
    digest: str


TEXTS = "_texts"  # of a class: where it and its functions stand, as they were when they ran
_MODULES: set[str] = set()  # all that hold something of a user's


def ours(module: str) -> bool:
    """Whether a module is the library's."""
    return module == "lib" or module.startswith("lib.")


def note(kind: type, what: str, frame: FrameType | None) -> None:
    """Takes note of where a kind or one of its functions stands, `frame` being the code that defines it."""
    if frame is None or not ours(frame.f_globals.get("__name__", "")):
        text = _text(frame)
        _MODULES.add(text.module)
        setattr(kind, TEXTS, vars(kind).get(TEXTS, {}) | {what: text})


def defined(kind: type) -> None:
    """Takes note of a class whose statement is being executed."""
    if not ours(kind.__module__):
        frame: FrameType | None = sys._getframe(1)
        while frame and frame.f_globals.get("__name__") != kind.__module__:  # the class statement stands further out
            frame = frame.f_back
        note(kind, "class", frame)


def _text(frame: FrameType | None) -> Text:
    file = frame.f_code.co_filename if frame else ""
    return Text(frame.f_globals.get("__name__", CELL) if frame else CELL, file, _read(file))


def _read(file: str) -> str:
    """The digest of a file or cell as it is now, or ""."""
    linecache.checkcache(file)
    try:
        return digest(ast.parse("".join(linecache.getlines(file)))) if linecache.getlines(file) else ""
    except SyntaxError:  # somebody is at it
        return ""


def _texts(kind: type) -> Iterator[Text]:
    if _MODULES:  # asked for each recipe
        for base in kind.__mro__:
            yield from vars(base).get(TEXTS, {}).values()


def written(kind: type) -> str:
    """The digest of what a user has written for a kind, or ""; BadInput where its source cannot be read."""
    found = {text.digest for text in _texts(kind)}
    if "" in found:
        raise BadInput(f"the source of {kind.__name__} cannot be read: put it into a file, or into a cell by itself")
    return "-".join(sorted(found))


def check_files(kinds: Iterable[type]) -> None:
    """BadInput where a file has been edited since kinds were imported from it: what runs is not what it says."""
    for kind in set(kinds) if _MODULES else ():
        for text in _texts(kind):
            if text.digest and _read(text.file) != text.digest:
                raise BadInput(
                    f"{text.file} has been edited since {kind.__name__} was imported from it: restart the kernel, "
                    f"or importlib.reload({text.module}), import its names again and make the recipes again"
                )


def in_cell(kinds: Iterable[type]) -> str:
    """The name of the first of some kinds that stands in a notebook's cell or in a script, or ""."""
    if CELL not in _MODULES:
        return ""
    return next((kind.__name__ for kind in kinds if any(text.module == CELL for text in _texts(kind))), "")


def generic(function: Callable[..., Returned]) -> _SingleDispatchCallable[Returned]:
    """`functools.singledispatch` by the kind of the first argument, which notes where users register functions."""
    made = functools.singledispatch(function)
    plain = made.register

    def register(kind: Any, own: Any = None) -> Any:
        if own is None and isinstance(kind, type):
            return functools.partial(register, kind)
        added, frame = plain(kind, own), sys._getframe(1)
        for each, found in made.registry.items():
            if found is added:
                note(each, function.__name__, frame)
        return added

    made.register = register  # type: ignore[method-assign, assignment]
    return made


# ---------------------------------------------------------------- the library's own kinds

# What does the work of kinds for which nothing is registered. No other kind's digest goes into these.
ROOTS = {
    "Train": ("lib.lab.training", "train"),
    "Model": ("lib.models", "_made"),
    "Data": ("lib.data.readers", "load"),
}
# They say, keep and check; they compute nothing.
SILENT = {"recipe", "store", "files", "paths", "registry", "command", "code"}


@dataclass
class Module:
    """A module of the library as text says it: nothing is imported."""

    name: str
    definitions: dict[str, ast.stmt] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)  # of a name: a module, and a name in it
    stars: list[str] = field(default_factory=list)
    registered: list[tuple[str, ast.stmt]] = field(default_factory=list)  # a kind's name, and a function or class


@functools.cache
def _path(name: str) -> Path | None:
    place = LIBRARY.joinpath(*name.split(".")[1:])
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


@functools.cache
def _module(name: str) -> Module:
    found, path = Module(name), _path(name)
    tree = ast.parse(path.read_bytes()) if path else ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and ours(node.module or ""):
            for each in node.names:
                if each.name == "*":
                    found.stars.append(node.module or "")
                else:
                    found.imports[each.asname or each.name] = (node.module or "", each.name)
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found.definitions[statement.name] = statement
            found.registered += [(kind, statement) for kind in _registers(statement)]
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                if isinstance(target, ast.Name):
                    found.definitions[target.id] = statement
    return found


def _registers(statement: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """Names of the kinds for which a function (or an update's class) is registered by its decorators."""
    for decorator in statement.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="register"), args=[ast.Name(kind)]):
                yield kind
            case ast.Attribute(attr="register"):  # by the type of the first argument
                if isinstance(statement, ast.FunctionDef) and isinstance(
                    kind_ := statement.args.args[0].annotation, ast.Name
                ):
                    yield kind_.id


@functools.cache
def _find(module: str, name: str) -> tuple[str, ast.stmt] | str | None:
    """What a name in a module is: a definition and its module, the name of a module, or nothing of the library's."""
    if not ours(module) or SILENT & {*module.split(".")[1:2]}:
        return None
    own = _module(module)
    if name in own.definitions:
        return module, own.definitions[name]
    if name in own.imports:
        return _find(*own.imports[name])
    if _path(f"{module}.{name}"):
        return None if name in SILENT else f"{module}.{name}"
    return next((found for star in own.stars if (found := _find(star, name))), None)


@functools.cache
def _named(module: str, node: ast.AST) -> list[tuple[str, ast.stmt]]:
    """Definitions of the library that a definition names."""
    found = []
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            found.append(_find(module, each.id))
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            owner = _find(module, each.value.id)
            found.append(_find(owner, each.attr) if isinstance(owner, str) else None)
    return [each for each in found if isinstance(each, tuple)]


def _reached(starts: list[tuple[str, ast.stmt]]) -> list[ast.stmt]:
    """Some definitions and all that they name, sorted by where they stand."""
    roots = [found for root in ROOTS.values() if isinstance(found := _find(*root), tuple)]
    seen: dict[int, tuple[str, ast.stmt]] = {}
    open_ = list(starts)
    while open_:
        module, node = open_.pop()
        if id(node) not in seen:
            seen[id(node)] = module, node
            open_ += [found for found in _named(module, node) if found not in roots]
    return [node for _, node in sorted(seen.values(), key=lambda found: (found[0], found[1].lineno))]


@functools.cache
def _registrations() -> dict[str, list[tuple[str, ast.stmt]]]:
    """The functions that are registered for each kind of the library, by the kind's name, and their modules."""
    out: dict[str, list[tuple[str, ast.stmt]]] = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        if b".register" in path.read_bytes():
            name = ".".join(("lib", *path.relative_to(LIBRARY).with_suffix("").parts)).removesuffix(".__init__")
            for kind, node in _module(name).registered:
                out.setdefault(kind, []).append((name, node))
    return out


_digest = functools.cache(digest)  # many kinds reach the same definitions


@functools.cache
def of_library(kind: type) -> str:
    """The digest of the code of one of the library's kinds, as its files are now; a `revision` does not count."""
    own = _module(kind.__module__).definitions[kind.__name__]
    assert isinstance(own, ast.ClassDef)
    said = [
        each for each in own.body if not (isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "revision")
    ]
    starts = list(_registrations().get(kind.__name__, ()))
    if kind.__name__ in ROOTS and isinstance(root := _find(*ROOTS[kind.__name__]), tuple):
        starts.append(root)
    return _short(" ".join(map(_digest, [*own.bases, *said, *_reached(starts)])))


def made_by(kinds: Iterable[type]) -> dict[str, str]:
    """The digest of each of the library's kinds among some, and of those that they are kinds of, by name."""
    found = {base for kind in kinds for base in kind.__mro__ if base.__module__.startswith("lib.recipe.")}
    return {kind.__name__: of_library(kind) for kind in found if kind.__module__ != "lib.recipe.core"}
