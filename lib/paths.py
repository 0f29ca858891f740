"""The only place that knows where things lie."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

NOTEBOOKS = ROOT / "notebooks"
PARAMS = ROOT / "params"


def outputs() -> Path:
    """Everything that is computed lies below this folder; `LEAK_ATLAS_OUTPUTS` moves it."""
    return Path(os.environ.get("LEAK_ATLAS_OUTPUTS", ROOT / "outputs")).expanduser().resolve()


def store() -> Path:
    """Results by content key, shared by all profiles; `LEAK_ATLAS_STORE` moves it (to a shared disk, say)."""
    moved = os.environ.get("LEAK_ATLAS_STORE")  # asked several times a step: each look at the disk counts
    return Path(moved).expanduser().resolve() if moved is not None else outputs() / "store"


def runs(profile: str) -> Path:
    """Executed notebooks and pages of one profile."""
    return outputs() / "runs" / profile


def reports() -> Path:
    """Cleaned, committed reports, a folder for each published profile."""
    return outputs() / "reports"


def data() -> Path:
    """Data sets that a user brings or downloads; `LEAK_ATLAS_DATA` moves it."""
    return Path(os.environ.get("LEAK_ATLAS_DATA", Path.home() / ".cache" / "leak-atlas")).expanduser().resolve()
