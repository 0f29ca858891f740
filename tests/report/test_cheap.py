"""Declaring claims costs nothing: planning runs every notebook's text up to `realize`."""

import subprocess
import sys

import pytest

from leak_atlas import report
from leak_atlas.report import contents, figures, ledger, lineage, render, summary, tables


def test_claims_load_nothing_heavy():
    code = (
        "import sys; from leak_atlas import report; report.claims(report.Claim('a', 't', 'q', above=0.0, ours=True));"
        "heavy = {'torch', 'matplotlib', 'seaborn', 'pandas', 'nbconvert', 'nbformat', 'scipy'} & set(sys.modules);"
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there():
    for room in (contents, figures, ledger, lineage, render, summary, tables):
        assert all(getattr(report, name) is getattr(room, name) for name in room.__all__)
        assert set(room.__all__) <= set(dir(report))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = report.nothing
