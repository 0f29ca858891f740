"""`lab.compare` and `lab.probe` declare what a page wrote by hand, realize it once and compare it."""

import numpy as np
import pytest

from leak_atlas import BadInput, audit, lab
from leak_atlas.data.designs import Role
from leak_atlas.lab import Checkpoint, plans, prices
from leak_atlas.lab.plans import steps_of
from leak_atlas.recipe import (
    Attacker,
    Data,
    Halves,
    Learnability,
    LiRA,
    Model,
    Population,
    RandomHalves,
    RelaxLoss,
    Schedule,
    Setup,
    Signals,
    Sparsity,
    Threshold,
)

ATTACKERS: dict[str, Attacker] = {"LiRA": LiRA(), "Conf": Threshold()}


def variants() -> dict:
    design = RandomHalves(80, test=40)
    schedule = Schedule(2, 32)
    setup = Setup(Data(pixels=8), design, Model("resnet10", width=2), schedule, 6)
    return {"dense": setup.trained(), ("RelaxLoss", 0.5): setup.trained(RelaxLoss(0.5))}


def asked(*args, **given) -> set[str]:
    """The keys that `compare` asks for."""
    with lab.planning(), pytest.raises(lab.Planned) as planned:
        lab.compare(*args, **given)
    return {step.key for step in planned.value.steps}


def keys(*recipes) -> set[str]:
    return {step.key for step in steps_of(recipes)}


def test_checkpoints_are_variants_of_earlier_epochs() -> None:
    both = variants()
    early = both["dense"].at(1)
    whole = asked(both, ATTACKERS, 4, checkpoints={"dense": [1]})
    attacks = [early.attack(one, 4) for one in ATTACKERS.values()]
    assert whole == asked(both, ATTACKERS, 4) | keys(early.signals()[:4], attacks)
    assert str(Checkpoint("dense", 1)) == "dense, epoch 1"
    assert str(Checkpoint(("CE", "0"), 1)) == "CE, 0, epoch 1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"only": {"LiRAs": ["dense"]}}, "no attacker 'LiRAs'; did you mean 'LiRA'"),
        ({"only": {"LiRA": ["dens"]}}, "did you mean 'dense'"),
        ({"shadows": {"dens": None}}, "did you mean 'dense'"),
        ({"checkpoints": {"dens": [1]}}, "did you mean 'dense'"),
    ],
)
def test_a_misspelt_name_is_refused(given: dict, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        lab.compare(variants(), ATTACKERS, 4, **given)


def test_it_compares_what_it_has_trained() -> None:
    both = variants()
    further = Sparsity(both["dense"][0])
    found = lab.compare(both, ATTACKERS, 4, checkpoints={"dense": [1]}, also=further)
    by_hand = found.results[both["dense"].attack(LiRA(), 4)]
    assert found.variants == [*both, Checkpoint("dense", 1)]
    assert found.checkpoints == {"dense": [Checkpoint("dense", 1)]}
    areas = audit.auc(by_hand["scores"], by_hand["member"])
    assert found.measured("dense", "LiRA") == pytest.approx(areas)
    own = [found.results[one] for one in both["dense"].signals()[:4]]
    np.testing.assert_allclose(found.members["dense"], [one["accuracy_member"] for one in own])
    assert "gone" in found.results[further]
    four = Population(both["dense"].states[:4])
    for signals, loss in zip(own, lab.member_losses(found.results, four), strict=True):
        odds = signals["views"][signals["role"] == Role.MEMBER, 0]
        assert loss == pytest.approx(np.log1p(np.exp(-odds)).mean())


def test_a_probe_compares_whole_and_half_networks_and_attacks_the_halves() -> None:
    design = Halves(80, test=40)
    pairs = Setup(Data(pixels=8), design, Model("cnn2", 4), Schedule(2, 32), 3).pairs()
    found = lab.probe({"narrow": pairs}, {"Conf": Threshold()}, checkpoints={"narrow": [1]})
    results = found.results
    wholes = [results[Signals(pair.whole)]["accuracy_member"] for pair in pairs]
    halves = Population(tuple(pair.half for pair in pairs))
    of_halves = [results[signals]["accuracy_member"] for signals in halves.signals()]
    np.testing.assert_allclose(found.whole.members["narrow"], wholes)
    np.testing.assert_allclose(found.half.members["narrow"], of_halves)
    early = Checkpoint("narrow", 1)
    assert found.half.checkpoints == {"narrow": [early]}
    for variant, networks in (("narrow", halves), (early, halves.at(1))):
        by_hand = results[networks.attack(Threshold())]
        areas = audit.auc(by_hand["scores"], by_hand["member"])
        assert found.half.measured(variant, "Conf") == pytest.approx(areas)


def test_operations_are_those_that_were_counted_when_it_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stored page loads no torch to count them; an epoch's weights count with their training."""
    dense = variants()["dense"]
    chain = dense.at(1).score(Learnability(steps=2, batch=16))
    rewound = dense.at(1).rewind_weights(chain, 0.1).train(Schedule(1, 32))
    results = lab.realize(rewound.signals(), workers=1)
    counted = sum(map(prices.work, plans.behind(rewound))) / len(rewound)
    monkeypatch.setattr(prices, "count", None)
    assert lab.operations(results, rewound) == pytest.approx(counted)
