"""The library's code stands beside its revisions: what it computes changes only with a revision."""

from __future__ import annotations

import ast
import tomllib
from dataclasses import replace
from typing import Any

import pytest

from leak_atlas.recipe.core import KINDS
from tests import library_code

module_of = library_code.module


def test_what_is_computed_does_not_change_without_a_revision() -> None:
    stored = {name: (*row,) for name, row in tomllib.loads(library_code.TABLE.read_text()).items()}
    now = library_code.table()
    refresh = f"python -m tests.library_code writes {library_code.TABLE.name}"
    revised = [name for name in now if name in stored and stored[name][0] != now[name][0]]
    same = [name for name in now if name in stored and name not in revised]
    changed = [f"{name} ({KINDS[name].__module__})" for name in same if stored[name] != now[name]]
    told = f"the code of {', '.join(changed)} has changed: raise `revision`"
    assert not changed, f"{told}, or if the numbers are the same: {refresh}"
    assert stored == now, f"kinds or revisions are new: {refresh}"


def edited(old: str, new: str) -> Any:
    """The library's modules, with `soft_label` as after a replacement in the text of its module."""
    module = module_of(f"{library_code.NAME}.training.objectives")
    text = (library_code.FOLDER / "training" / "objectives.py").read_text()
    assert old in text
    statements = ast.parse(text.replace(old, new)).body
    functions = [each for each in statements if isinstance(each, ast.FunctionDef)]
    (soft_label,) = [each for each in functions if each.name == "soft_label"]
    changed = replace(module, definitions=module.definitions | {"soft_label": soft_label})
    return lambda name: changed if name == module.name else module_of(name)


def forget() -> None:
    for cached in (library_code._find, library_code._named):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("range(60)", "range(61)", True),
        ("The probability of the true", "What a true", False),
    ],
    ids=["code", "docstring"],
)
def test_a_digest_covers_what_a_function_calls_and_no_docstring(
    old: str, new: str, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = KINDS["HAMP"]
    other = KINDS["CCL"]
    before = {kind: library_code.of_library(kind) for kind in (calls, other)}
    with monkeypatch.context() as patch:
        patch.setattr(library_code, "module", edited(old, new))
        forget()
        assert (library_code.of_library(calls) != before[calls]) == counts
        assert library_code.of_library(other) == before[other]
    forget()
