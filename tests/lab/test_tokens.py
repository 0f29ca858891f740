"""Nets over tokens end to end: texts, and images cut into patches, through every step that there is
for images.
"""

import numpy as np
import pytest

from leak_atlas import lab
from leak_atlas.models import skeleton
from leak_atlas.recipe import (
    RMIA,
    Data,
    Halves,
    Model,
    RandomHalves,
    RelaxLoss,
    Schedule,
    Setup,
    StageMembership,
    StageProbe,
    Threshold,
    self_audit,
)

GLOSSES = Data("wordnet-glosses", words=300, length=8)
WORDS = Model("transformer", width=8)
IMAGES = Data(pixels=8)
PATCHES = Model("vit", width=1)
ADAM = Schedule(6, 16, "adam", lr=3e-3, weight_decay=0.0, decay="constant")


@pytest.mark.parametrize(("data", "model"), [(GLOSSES, WORDS), (IMAGES, PATCHES)])
def test_a_chain_is_trained_attacked_and_looked_into(data: Data, model: Model) -> None:
    start = Setup(data, RandomHalves(120, test=40), model, ADAM, 4).trained()
    private = start.rewind("stage2").freeze("stage2").train(ADAM, RelaxLoss(0.5))
    attacks = [private.attack(RMIA()), private.attack(Threshold("loss"))]
    audit = self_audit(start)
    probes = [StageProbe(start[0], 64), StageMembership(start[0], 64)]
    results = lab.realize(attacks, audit, probes, list(start), list(private))
    for attack in attacks:
        assert results[attack]["scores"].shape == results[attack]["member"].shape == (4, 120)
        assert np.isfinite(results[attack]["scores"]).all()
    parts = len(skeleton(model, data.channels, data.classes, data.size))
    assert results[probes[0]]["accuracy"].shape == (parts,)
    assert len(results[probes[1]]["scores"]) == parts
    first = results[start[0]]
    last = results[private[0]]
    assert np.array_equal(first["stem.positions"], last["stem.positions"])
    assert not np.array_equal(first["head.fc.weight"], last["head.fc.weight"])
    assert first["history/loss"][-1] < first["history/loss"][0]
    assert not results[audit]["duplicates"].any()


def test_stages_over_tokens_can_be_compared() -> None:
    (pair,) = Setup(GLOSSES, Halves(120), WORDS, ADAM, 1).pairs()
    steps = [pair.distance(), pair.distance("blocks"), pair.similarity()]
    results = lab.realize(steps)
    far = results[steps[0]]["euclidean"]
    assert far.shape == (4, 120)
    assert (far > 0).all()
    np.testing.assert_array_equal(far, results[steps[1]]["euclidean"])
    assert results[steps[2]]["aligned"].shape == (4, 60)
