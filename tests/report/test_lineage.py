"""Provenance says what a number came from, and nothing of the machine it came from."""

from dataclasses import dataclass

import numpy as np

from leak_atlas import report
from leak_atlas.audit import Estimate
from leak_atlas.recipe import RMIA, Data, LiRA, Model, RandomHalves, Schedule, Setup
from leak_atlas.report.ledger import POPULATIONS


@dataclass(frozen=True)
class Source:
    name: str = "digits"
    seed: int = 4


@dataclass(frozen=True)
class Train:
    key: str
    seed: int = 0
    precision: str = "fp32"
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
    assert (
        lines["Precision"] == "fp32"
        and lines["Device"] == "cpu"
        and lines["Computed"] == "2026-11-21"
    )
    assert lines["Training time"] == "2.0 minutes in 2 trainings"
    assert lines["Versions"] == "numpy 2.4.6, torch 2.13.0"
    assert lines["Revisions"] == "SelfAudit 2"
    assert lines["Test accuracy, M_all"] == "0.700 [0.600, 0.800]"
    assert (
        "✓ no duplicate" in lines["Self-audit of digits"]
        and "cannot tell" in lines["Self-audit of digits"]
    )
    assert "aaaaaaaaaa" in shown._repr_mimebundle_()["text/html"] and "aaaaaaaaaa" in str(shown)
    assert "secret" not in str(shown._repr_mimebundle_())


def test_a_dishonest_population_is_named():
    caught = {"duplicates": np.array([0, 3]), "blind": np.array([0.7, 0.65, 0.75])}
    line = dict(report.provenance(Results(SelfAudit("c"), arrays=caught, meta={})).lines)[
        "Self-audit of digits"
    ]
    assert "✗ 3 duplicates" in line and "✗ a blind classifier on the inputs can tell" in line


def test_nothing_known_is_nothing_said():
    assert dict(report.provenance(Results(meta={})).lines) == {"Steps behind this page": "none"}
    assert "Self-audit of digits" in dict(report.provenance(Results(SelfAudit("c"), meta={})).lines)


def test_a_blind_classifier_below_one_half_tells_nothing():
    unlucky = {"blind": np.array([0.4, 0.35, 0.45])}
    line = dict(report.provenance(Results(SelfAudit("c"), arrays=unlucky, meta={})).lines)[
        "Self-audit of digits"
    ]
    assert "✓ a blind classifier on the inputs cannot tell" in line


def test_populations_are_data_members_and_architecture():
    def populations(**changed):
        given = {
            "data": Data("fashion-mnist-small", 16),
            "model": Model("atm-t", 4),
            "schedule": Schedule(1, 8),
            "design": RandomHalves(40),
        }
        given |= changed
        first = Setup(
            given["data"], given["design"], given["model"], given["schedule"], 4
        ).trained()
        results = Results(*first.train(Schedule(1, 8, lr=0.2)), *first, meta={})
        return report.provenance(results)._repr_mimebundle_()[POPULATIONS]

    one = populations()
    assert len(one) == 1 and populations(schedule=Schedule(2, 8)) == one
    for changed in ({"design": RandomHalves(40, seed=1)}, {"model": Model("atm-t", 8)}):
        assert len({*one, *populations(**changed)}) == 2


def test_a_widening_is_told():
    chain = Setup(
        Data("fashion-mnist-small", 16), RandomHalves(40), Model("atm-t", 4), Schedule(1, 8), 6
    ).trained()
    arrays = {"scores": np.arange(12.0).reshape(6, 2)}
    said = {
        name: dict(report.provenance(Results(chain.attack(attacker), arrays=arrays, meta={})).lines)
        for name, attacker in {"LiRA": LiRA(), "RMIA": RMIA()}.items()
    }
    assert "2.3 for LiRA" in said["LiRA"]["Targets are each other's shadows"]
    assert "Targets are each other's shadows" not in said["RMIA"]
