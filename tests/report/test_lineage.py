"""Provenance says what a number came from, and nothing of the machine it came from."""

from dataclasses import dataclass

import numpy as np
import pytest

from leak_atlas import report
from leak_atlas.audit import Estimate
from leak_atlas.recipe import LiRA


@dataclass(frozen=True)
class Source:
    name: str = "digits"
    seed: int = 4


@dataclass(frozen=True)
class Train:
    key: str
    seed: int = 0
    design: Source = Source()
    revision: int = 1


@dataclass(frozen=True)
class SelfAudit:
    key: str
    data: Source = Source()
    revision: int = 2


class Results:
    def __init__(self, *steps, arrays=None, meta=None):
        self.steps, self._arrays, self._meta = steps, arrays or {}, meta

    def meta(self, step):
        return self._meta

    def __getitem__(self, step):
        return self._arrays


META = {
    "seconds": 61.0,
    "device": "cpu",
    "processor": "a processor (AVX2)",
    "versions": {"torch": "2.13.0", "numpy": "2.4.6"},
    "finished": "2026-11-21T04:00:00",
    "host": "secret-machine",
}


def test_provenance_lines():
    honest = {"duplicates": np.zeros(2), "blind": np.array([0.5, 0.45, 0.55])}
    results = Results(
        Train("a" * 64), Train("b" * 64, seed=10000), SelfAudit("c" * 64), arrays=honest, meta=META
    )
    shown = report.provenance(results, **{"test accuracy, M_all": Estimate(0.7, 0.6, 0.8)})
    lines = dict(shown.lines)
    assert lines["Steps behind this page"] == "3: 2 Train, 1 SelfAudit"
    assert lines["Seeds"] == "0, 4, 10000"
    assert lines["Processor"] == "a processor (AVX2)"
    assert lines["Device"] == "cpu" and lines["Computed"] == "2026-11-21"
    assert lines["Training time"] == "2.0 minutes in 2 trainings"
    assert lines["Versions"] == "numpy 2.4.6, torch 2.13.0"
    assert lines["Test accuracy, m_all"] == "0.700 [0.600, 0.800]"
    assert (
        "✓ no duplicates" in lines["Self-audit of digits"]
        and "cannot tell" in lines["Self-audit of digits"]
    )
    assert "secret" not in str(shown._repr_mimebundle_())
    assert "aaaaaaaaaa" not in str(shown._repr_mimebundle_())


@dataclass(frozen=True)
class Attacked:
    key: str
    attacker: LiRA
    design_effect: float


def test_intervals_say_by_how_much_they_are_widened() -> None:
    shown = report.provenance(Results(Attacked("a", LiRA(), 2.3), meta={}))
    assert dict(shown.lines)["Intervals"].endswith("is multiplied by 2.3 for LiRA online")


def test_a_dishonest_population_is_named():
    caught = {"duplicates": np.array([0, 3]), "blind": np.array([0.7, 0.65, 0.75])}
    line = dict(report.provenance(Results(SelfAudit("c"), arrays=caught, meta={})).lines)[
        "Self-audit of digits"
    ]
    assert "✗ 3 duplicates" in line and "✗ a blind classifier on the inputs can tell" in line


@pytest.mark.parametrize(
    ("seed", "pilots", "text"),
    [
        (None, [], ""),
        (7, [], "This page judges seed 7."),
        (
            7,
            [0, 1],
            "Claims, borders and controls were set on seeds 0 and 1. This page judges seed 7. "
            "Rules that changed after quick was judged first: docs/rule_changes.md.",
        ),
        (
            1,
            [1],
            "Claims, borders and controls were set on seed 1. "
            "This page shows a pilot seed; its verdicts are not an evaluation.",
        ),
    ],
)
def test_a_page_names_the_seeds_on_which_its_rules_were_set(seed, pilots, text):
    shown = report.provenance(Results(meta={}), seed=seed, pilots=pilots)
    page = shown._repr_mimebundle_()["text/html"]
    assert shown.rules == text and text in page and text in str(shown)
    assert ("How the rules were set" in page) == bool(text)
    assert ("<details open>" in page) == (seed in pilots), "a pilot seed is not folded away"
