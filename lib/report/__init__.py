"""What a reader sees: claims judged by rules written before the results, figures, tables, provenance, pages.

Submodules load when first asked for, so that declaring an experiment stays cheap:

    from lib import report
    claims = report.claims(report.Claim("onset", "...", quantity="...", above=0.0))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lib.report.figures import against_paper, curves, density, histograms, profile, roc, tradeoff
    from lib.report.ledger import Claim, Claims, Judgement, claims, claims_of, judge, verdict, verdicts_possible
    from lib.report.lineage import Provenance, provenance
    from lib.report.render import clean, html, index, publish, refresh_readme, results_table
    from lib.report.tables import Table, rows, table

ROOMS = {
    "figures": ("against_paper", "curves", "density", "histograms", "profile", "roc", "tradeoff"),
    "ledger": ("Claim", "Claims", "Judgement", "claims", "claims_of", "judge", "verdict", "verdicts_possible"),
    "lineage": ("Provenance", "provenance"),
    "render": ("clean", "html", "index", "publish", "refresh_readme", "results_table"),
    "tables": ("Table", "rows", "table"),
}

__all__ = [
    "Claim", "Claims", "Judgement", "Provenance", "Table", "against_paper", "claims", "claims_of", "clean", "curves",
    "density", "histograms", "html", "index", "judge", "profile", "provenance", "publish", "refresh_readme",
    "results_table", "roc", "rows", "table", "tradeoff", "verdict", "verdicts_possible",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for room, names in ROOMS.items():
        if name in names:
            value = getattr(import_module(f"lib.report.{room}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'lib.report' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
