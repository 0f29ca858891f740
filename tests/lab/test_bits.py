"""A network over bits end to end, through the steps that there are for images."""

import numpy as np

from leak_atlas import lab
from leak_atlas.lab.training import prepared
from leak_atlas.recipe import (
    DPSGD,
    Data,
    Halves,
    Learnability,
    LiRA,
    Model,
    RandomHalves,
    Schedule,
    Setup,
    StageProbe,
    Threshold,
    VictimAttacker,
    self_audit,
)
from leak_atlas.training.loop import fit

BITS = Data("digits-bits")
FC = Model("fc", width=16)
ADAM = Schedule(6, 16, "adam", lr=3e-3, decay="constant")


def test_a_chain_is_trained_pruned_attacked_and_looked_into() -> None:
    start = Setup(BITS, RandomHalves(200, test=60), FC, ADAM, 4).trained()
    sparse = start.prune(0.5, scope="layer").train(ADAM)
    attacks = [
        sparse.attack(LiRA("offline_cdf", variance="code")),
        sparse.attack(Threshold("loss")),
    ]
    probe = StageProbe(start[0], 64)
    scores = start.score(Learnability())
    audit = self_audit(start)
    private = Setup(BITS, RandomHalves(200, test=60), FC, ADAM, 1).trained(DPSGD())
    (pair,) = Setup(BITS, Halves(200), FC, ADAM, 1).pairs()
    results = lab.realize(
        attacks, audit, probe, scores, list(sparse), start[0], list(private), pair.distance()
    )
    for attack in attacks:
        assert results[attack]["scores"].shape == (4, 200)
        assert np.isfinite(results[attack]["scores"]).all()
    first = results[start[0]]
    last = results[sparse[0]]
    assert first["history/loss"][-1] < first["history/loss"][0]
    assert (last["stage1.fc.weight"] == 0).mean() == 0.5 == (last["head.fc.weight"] == 0).mean()
    assert results[private[0]]["history/epsilon"][-1] > 0


def test_its_draws_are_its_own() -> None:
    """What a training drops does not depend on those before it: each ends as if it were alone."""
    states = Setup(BITS, VictimAttacker(400, test=0, dev=20), FC, ADAM, 3).trained()
    together = lab.realize(list(states))
    net, given = prepared(states[2])
    alone = fit(net, **given).states["last"]
    for name, value in alone.items():
        np.testing.assert_allclose(value.numpy(), together[states[2]][name], rtol=1e-3, atol=1e-4)
