"""Digests of the source that a user wrote for a kind of recipe: they are part of its key.

A kind from outside the library has the digest of the file or notebook cell with its class, and of
each file or cell that registers a function for it, as they were when they ran. Comments, docstrings
and layout do not count. What such a file imports is not seen: the user raises the kind's `revision`
where that changes. Nothing here imports torch.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import linecache
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from leak_atlas import BadInput

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

Returned = TypeVar("Returned")

LIBRARY = __name__.partition(".")[0]
CELL = "__main__"  # module of a notebook's cells and of a script: no other process can import it


class Source(NamedTuple):
    """A file or cell that defines a user's class or registers a function for a kind."""

    module: str
    file: str
    digest: str  # "" where the source could not be read


_SOURCES: dict[type, dict[str, Source]] = {}  # by kind: of its class, of each registered function


def in_library(module: str) -> bool:
    """Whether a module belongs to the library."""
    return module == LIBRARY or module.startswith(f"{LIBRARY}.")


def digest(tree: ast.AST) -> str:
    """16 hexadecimal digits of what a syntax tree says, the same for every version of Python."""
    return hashlib.sha256(repr(_nested(tree)).encode()).hexdigest()[:16]


def _nested(node: Any) -> Any:
    """A syntax tree as nested lists, without docstrings and without empty fields.

    Which fields are empty depends on the version of Python.
    """
    if isinstance(node, list):
        return [_nested(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields: list[Any] = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(value, list):
            value = [statement for statement in value if not _is_docstring(statement)]
        if value not in (None, []):
            fields.append((name, _nested(value)))
    return fields


def _is_docstring(statement: ast.AST) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def record_class(kind: type) -> None:
    """Records the source of a user's class. The class statement has to be running."""
    if in_library(kind.__module__):
        return
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_globals.get("__name__") != kind.__module__:
        frame = frame.f_back
    _record(kind, "class", frame)


def generic(function: Callable[..., Returned]) -> _SingleDispatchCallable[Returned]:
    """`functools.singledispatch` by the kind of the first argument.

    It records the source of the functions that users register.
    """
    dispatch = functools.singledispatch(function)
    plain_register = dispatch.register

    def register(kind: Any, implementation: Any = None) -> Any:
        if implementation is None and isinstance(kind, type):
            return functools.partial(register, kind)
        added = plain_register(kind, implementation)
        frame = sys._getframe(1)
        for registered, own in dispatch.registry.items():
            if own is added and not in_library(frame.f_globals.get("__name__", "")):
                _record(registered, function.__name__, frame)
        return added

    dispatch.register = register  # type: ignore[method-assign, assignment]
    return dispatch


def _record(kind: type, what: str, frame: FrameType | None) -> None:
    """Records the source that a frame executes: `what` of a kind stands there."""
    module = frame.f_globals.get("__name__", CELL) if frame else CELL
    file = frame.f_code.co_filename if frame else ""
    _SOURCES.setdefault(kind, {})[what] = Source(module, file, _digest_of_file(file))


def _digest_of_file(file: str) -> str:
    """The digest of a file or cell as it is now; "" where it is missing or no Python."""
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    if not lines:
        return ""
    try:
        return digest(ast.parse("".join(lines)))
    except SyntaxError:  # the user is editing it
        return ""


def _sources(kind: type) -> list[Source]:
    """What users wrote for a kind and for the kinds from which it inherits."""
    if not _SOURCES:  # a plan asks for each of 100,000 recipes
        return []
    recorded = [_SOURCES[base] for base in kind.__mro__ if base in _SOURCES]
    return [source for sources in recorded for source in sources.values()]


def source_digest(kind: type) -> str:
    """The digest of what users wrote for a kind, or "". Raises BadInput if it cannot be read."""
    digests = {source.digest for source in _sources(kind)}
    if "" in digests:
        raise BadInput(
            f"the source of {kind.__name__} cannot be read: put it into a file, or into a cell by "
            "itself"
        )
    return "-".join(sorted(digests))


def check_files(kinds: Iterable[type]) -> None:
    """Raises BadInput if a user's file was edited after its import: what runs is not what it says."""
    for kind in set(kinds) if _SOURCES else ():
        for source in _sources(kind):
            if source.digest and _digest_of_file(source.file) != source.digest:
                raise BadInput(
                    f"{source.file} has been edited since {kind.__name__} was imported from it: "
                    f"restart the kernel, or importlib.reload({source.module}), "
                    "import its names again and make the recipes again"
                )


def kind_in_cell(kinds: Iterable[type]) -> str:
    """The name of the first of some kinds that a cell or a script defines, or ""."""
    in_cells = set()
    for kind, sources in _SOURCES.items():
        if any(source.module == CELL for source in sources.values()):
            in_cells.add(kind)
    if not in_cells:  # `kinds` may walk through a large plan
        return ""
    return next((kind.__name__ for kind in kinds if in_cells.intersection(kind.__mro__)), "")
