"""The only place that knows where things lie.

The package lies in a clone of the repository, or was installed from a wheel. A wheel has the
notebook that audits logits and no other, and the folder `outputs` is the working directory's.
"""

import os
from pathlib import Path

from leak_atlas import BadInput

PACKAGE = Path(__file__).resolve().parents[1]
CLONED = (PACKAGE.parents[1] / "params" / "quick").is_dir()
ROOT = PACKAGE.parents[1] if CLONED else Path.cwd()

NOTEBOOKS = (ROOT if CLONED else PACKAGE) / "notebooks"
PARAMS = ROOT / "params"


def outputs() -> Path:
    """Everything that is computed lies below this folder; `LEAK_ATLAS_OUTPUTS` moves it."""
    return _folder("LEAK_ATLAS_OUTPUTS", f"{ROOT / 'outputs'}")


def store() -> Path:
    """Results by content key, shared by all profiles; `LEAK_ATLAS_STORE` moves it (to a shared
    disk, say).
    """
    # asked several times a step: each look at the disk counts
    moved = "LEAK_ATLAS_STORE" in os.environ
    return _folder("LEAK_ATLAS_STORE", "") if moved else outputs() / "store"


def runs(profile: str) -> Path:
    """Executed notebooks and pages of one profile."""
    return outputs() / "runs" / profile


def reports() -> Path:
    """Cleaned, committed reports, a folder for each published profile."""
    return outputs() / "reports"


def data() -> Path:
    """Data sets that a user brings or downloads; `LEAK_ATLAS_DATA` moves it."""
    return _folder("LEAK_ATLAS_DATA", "~/.cache/leak-atlas")


def shown(path: Path) -> str:
    """A path as it is typed here: from the working directory on where it lies below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _folder(variable: str, usual: str) -> Path:
    """The folder that a variable names. Raises BadInput if it is empty or cannot be a folder's
    name.
    """
    given = os.environ.get(variable, usual)
    if not given.strip():
        raise BadInput(f"{variable} is set but empty: let it name a folder, or unset it")
    try:
        return Path(given).expanduser().resolve()
    except (OSError, RuntimeError) as error:  # nobody's home, a circle of links
        raise BadInput(f"{variable} cannot be '{given}': {error}") from error
