"""What a reader sees: claims judged by rules written before the results, figures, tables,
provenance, pages.

Figures load when the first is asked for, so that declaring an experiment stays cheap:

    from leak_atlas import report
    claims = report.claims(report.Claim("onset", "...", quantity="...", above=0.0, paper="Fig. 1"))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from leak_atlas.report.contents import *
from leak_atlas.report.early_stopping import *
from leak_atlas.report.ledger import *
from leak_atlas.report.lineage import *
from leak_atlas.report.onset import *
from leak_atlas.report.render import *
from leak_atlas.report.rewinding import *
from leak_atlas.report.summary import *
from leak_atlas.report.tables import *

if TYPE_CHECKING:
    from leak_atlas.report.figures import *

FIGURES = (
    "against_paper",
    "curves",
    "density",
    "histograms",
    "planes",
    "profile",
    "roc",
    "tradeoff",
)


def __getattr__(name: str) -> Any:
    if name in FIGURES:
        return getattr(import_module("leak_atlas.report.figures"), name)
    raise AttributeError(f"module 'leak_atlas.report' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*globals(), *FIGURES]
