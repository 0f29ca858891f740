"""Numbers that papers print, from a page's figure to the table of all pages."""

import json

import nbformat
import pytest

from leak_atlas import report
from leak_atlas.audit import Estimate
from leak_atlas.report import printed

ROWS = [
    {"setting": "A", "number": "AUC", "value": Estimate(0.5, 0.4, 0.6, 5), "paper": 0.55},
    {"setting": "B", "number": "AUC", "value": Estimate(0.5, 0.4, 0.6, 5), "paper": 0.75},
    {"setting": "C", "number": "AUC", "value": Estimate(0.5, 0.4, 0.6, 5), "paper": None},
]


@pytest.fixture
def notebook():
    figure = report.against_paper(
        ROWS, facet="number", source="paper, CIFAR-10", xlabel="change", title="Nothing differs"
    )
    data, _ = figure._repr_mimebundle_()
    output = nbformat.v4.new_output("display_data", json.loads(json.dumps(data)))
    cell = nbformat.v4.new_code_cell("figure", outputs=[output])
    return nbformat.v4.new_notebook(cells=[cell])


def test_a_figure_keeps_the_numbers_that_the_paper_prints(notebook):
    first, second = printed.rows_of(notebook)
    assert first["number"] == "change: AUC, A" and first["paper"] == 0.55
    assert (second["value"], second["low"], second["high"]) == (0.5, 0.4, 0.6)


def test_the_table_says_whether_the_papers_number_lies_in_our_interval(notebook, tmp_path):
    (tmp_path / "quick").mkdir()
    nbformat.write(notebook, tmp_path / "quick" / "page.ipynb")
    entry = {"notebook": "page", "profile": "quick", "setting": "thin"}
    count, _, *lines = printed.gathered([entry], tmp_path).splitlines()
    assert count == "1 of 2 numbers of the papers lie in our interval."
    assert len(lines) == 4
    assert "| 0.550 (paper, CIFAR-10) | 0.500 [0.400, 0.600] | yes | thin |" in lines[2]
    assert "| 0.750 (paper, CIFAR-10) | 0.500 [0.400, 0.600] | no | thin |" in lines[3]


def test_a_figure_without_printed_numbers_keeps_none():
    bare = [{"setting": "A", "value": Estimate(0.5, 0.4, 0.6, 5)}]
    figure = report.against_paper(bare, xlabel="change", title="Nothing differs")
    assert printed.MIME not in figure._repr_mimebundle_()[0]
