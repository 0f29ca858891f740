"""Folders of tests have long names: what a message says is read here before it is cut to a line's
length.
"""

import pytest

import leak_atlas


@pytest.fixture(autouse=True)
def long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leak_atlas, "LINE", 2000)
