"""Every test runs on one torch thread, and writes nowhere but in its own folder."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has an empty store and run folder of its own."""
    monkeypatch.setenv("LEAK_ATLAS_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.delenv("LEAK_ATLAS_STORE", raising=False)
    return tmp_path / "outputs"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tests that did not run are said aloud, with their reason."""
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"NOT RUN: {report.nodeid}: {reason}", red=True, bold=True)
