"""What a reader sees: claims judged by rules written before the results, figures, tables, provenance, pages.

Figures load when the first is asked for, so that declaring an experiment stays cheap:

    from lib import report
    claims = report.claims(report.Claim("onset", "...", quantity="...", above=0.0))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lib.report.ledger import *
from lib.report.lineage import *
from lib.report.render import *
from lib.report.tables import *

if TYPE_CHECKING:
    from lib.report.figures import *

FIGURES = ("against_paper", "curves", "density", "histograms", "profile", "roc", "tradeoff")


def __getattr__(name: str) -> Any:
    if name in FIGURES:
        return getattr(import_module("lib.report.figures"), name)
    raise AttributeError(f"module 'lib.report' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*globals(), *FIGURES]
