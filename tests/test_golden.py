"""No change of the library changes a key: `golden_keys.toml` holds what notebooks declare."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from leak_atlas.lab.declare import Notebook
from leak_atlas.recipe import Train
from tests import golden

HOW = "stored results are lost with their keys; where that is meant: python -m tests.golden"


def differences(group: str, notebooks: Mapping[str, Notebook]) -> list[str]:
    """A text for each of some notebooks of a group that does not declare what it did."""
    found = []
    for name, notebook in notebooks.items():
        change = golden.difference(golden.held(group, name), golden.recipes(group, notebook))
        if change:
            found.append(f"{name} ({group}): {change}")
    return found


@pytest.mark.parametrize("group", golden.groups())
def test_every_recipe_keeps_its_key(group: str) -> None:
    found = differences(group, golden.notebooks(group))
    head = f"{len(found)} notebooks of {group} declare other recipes than before; {HOW}"
    assert not found, "\n".join([head, *found])


def test_the_stored_file_has_every_notebook_and_says_what_is_left_out() -> None:
    rows = dict(golden.stored())
    assert rows.pop(golden.LEFT_OUT) == golden.left_out()
    expected = {group: set(golden.notebooks(group)) for group in golden.groups()}
    assert {group: set(rows[group]) for group in rows} == expected
    assert all(row["recipes"] for own in rows.values() for row in own.values())
    assert golden.TABLE.read_text() == golden.written(rows), "it was edited by hand"


def test_a_changed_key_is_told_by_notebook_and_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    start = {"start": golden.notebooks("smoke")["start"]}
    assert not differences("smoke", start)
    monkeypatch.setattr(Train, "revision", 7)
    (change,) = differences("smoke", start)
    head, first, recipe, *_ = change.splitlines()
    assert head.startswith("start (smoke): ")
    assert first.strip().startswith("Train: "), "children only inherit what changed in a parent"
    assert '"revision": 7' in recipe


def test_order_and_a_users_own_code_change_no_digest(tmp_path: Path) -> None:
    own = golden.notebooks("smoke")["own/my_defence"]
    found = golden.recipes("smoke", own)
    assert golden.row(found[::-1]) == golden.row(found)
    text = own.path.read_text()
    edited = tmp_path / "my_defence.py"
    edited.write_text(text.replace("\nclass ", "\nEDITED = True\n\n\nclass ", 1))
    assert edited.read_text() != text
    assert golden.row(golden.recipes("smoke", Notebook(own.name, edited))) == golden.row(found)
