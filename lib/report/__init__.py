"""What a reader sees: claims judged by rules written before the results, figures, tables, provenance, pages.

Submodules load when first asked for, so that declaring an experiment stays cheap:

    from lib import report
    claims = report.claims(report.Claim("onset", "...", quantity="...", above=0.0))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lib.report.figures import *
    from lib.report.ledger import *
    from lib.report.lineage import *
    from lib.report.render import *
    from lib.report.tables import *

ROOMS = {
    "figures": ("against_paper", "curves", "density", "histograms", "profile", "roc", "tradeoff"),
    "ledger": ("Claim", "Claims", "Judgement", "claims", "claims_of", "judge", "verdict"),
    "lineage": ("Provenance", "provenance"),
    "render": ("clean", "html", "index", "publish", "refresh_readme", "results_table"),
    "tables": ("Table", "rows", "table"),
}
__all__ = sorted(name for names in ROOMS.values() for name in names)


def __getattr__(name: str) -> Any:
    for room, names in ROOMS.items():
        if name in names:
            value = getattr(import_module(f"lib.report.{room}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'lib.report' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
