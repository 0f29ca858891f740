"""What all tests of data sets share."""

from pathlib import Path

import pytest

import leak_atlas
from tests.data.small import Small


@pytest.fixture(autouse=True)
def long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of tests have long names: a message is read before it is cut to a line's length."""
    monkeypatch.setattr(leak_atlas, "LINE", 2000)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    monkeypatch.setenv("LEAK_ATLAS_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def small(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A small set of the name that the test is given."""
    return Small(request.param, folder, monkeypatch)
