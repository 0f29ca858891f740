"""What a reader sees: claims judged by rules written before the results, figures, tables, provenance, pages.

Figures load when the first is asked for, so that declaring an experiment stays cheap:

    from lib import report
    claims = report.claims(report.Claim("onset", "...", quantity="...", above=0.0))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lib.report.contents import *
from lib.report.ledger import *
from lib.report.lineage import *
from lib.report.render import *
from lib.report.tables import *

if TYPE_CHECKING:
    from lib.report.figures import *
    from lib.report.motion import *

FIGURES = dict.fromkeys(("against_paper", "curves", "density", "histograms", "profile", "roc", "tradeoff"), "figures")
FIGURES |= dict.fromkeys(("Moving", "moving", "planes"), "motion")


def __getattr__(name: str) -> Any:
    if name in FIGURES:
        return getattr(import_module(f"lib.report.{FIGURES[name]}"), name)
    raise AttributeError(f"module 'lib.report' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*globals(), *FIGURES]
