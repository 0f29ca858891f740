"""Every test runs on one torch thread, and writes nowhere but in its own folder."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(autouse=True)
def own_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has an empty store and run folder of its own."""
    monkeypatch.setenv("LEAK_ATLAS_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.delenv("LEAK_ATLAS_STORE", raising=False)
    return tmp_path / "outputs"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Writes a user's file, `mine.py`, in an otherwise empty folder, and imports it (again)."""
    monkeypatch.syspath_prepend(tmp_path)
    # a file that changes twice a second has one date
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setitem(sys.modules, "mine", ModuleType("mine"))

    def imported(text: str) -> ModuleType:
        (tmp_path / "mine.py").write_text(text)
        del sys.modules["mine"]
        importlib.invalidate_caches()
        return importlib.import_module("mine")

    return imported


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tests that did not run are said aloud, with their reason."""
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"NOT RUN: {report.nodeid}: {reason}", red=True, bold=True)
