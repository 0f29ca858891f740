"""`lab.probe` declares what a page wrote by hand."""

import pytest

from leak_atlas import lab
from leak_atlas.lab.plans import steps_of
from leak_atlas.recipe import (
    Data,
    Model,
    Population,
    ProbeStudy,
    Schedule,
    Threshold,
    seed_floors,
    self_audit,
)


def test_it_asks_for_distances_signals_attacks_and_the_floor() -> None:
    model = Model("resnet10", width=2)
    study = ProbeStudy(Data(pixels=8), model, Schedule(2, 16), pool=80, pairs=3, seed=2)
    early = [pair.at(1) for pair in study.probes]
    variants = {"end": study.probes, "early": early}
    with lab.planning(), pytest.raises(lab.Planned) as planned:
        stops = {"end": [1]}
        lab.probe(variants, {"Conf": Threshold()}, parts="blocks", checkpoints=stops)
    by_hand = [study.distances("blocks"), study.wholes(), study.halves()]
    by_hand += [study.attack(Threshold()), seed_floors(study.probes, "blocks")]
    by_hand += [self_audit(study.probes), [pair.distance("blocks") for pair in early]]
    stopped = Population(tuple(pair.half for pair in study.probes)).at(1)
    by_hand += [stopped.signals(), stopped.attack(Threshold())]
    found = {step.key for step in planned.value.steps}
    assert {step.key for step in steps_of(by_hand)} <= found
