"""The explorer of all defences: its points are the numbers of the audit, and every sample's rank."""

import numpy as np
import pytest

from leak_atlas import audit, lab
from leak_atlas.data.designs import Role
from leak_atlas.explore import records
from leak_atlas.explore.atlas import NOT_COMPARED, ORDINARY, OUT_OF_REACH, Atlas
from leak_atlas.recipe import Data, LiRA, Model, RandomHalves, RelaxLoss, Schedule, Setup, Threshold

NAME = "RelaxLoss, 1 nats"


@pytest.fixture
def atlas() -> Atlas:
    design = RandomHalves(60, test=20)
    setup = Setup(Data(pixels=8), design, Model("resnet10", width=2), Schedule(2, 16), 6)
    attackers = {"LiRA": LiRA(), "confidence": Threshold()}
    return Atlas({NAME: setup.trained(RelaxLoss(1.0))}, setup.trained(), [1], attackers)


def test_points_are_what_the_audit_measures(atlas: Atlas) -> None:
    results = lab.realize(atlas.steps(atlas.start))
    points = atlas.rows(atlas.start)["points"]
    assert [row["variant"] for row in points] == [f"{ORDINARY}, epoch 1", ORDINARY, NAME]
    for row in points:
        signals, attack = atlas.measured("LiRA")[row["variant"]]
        measured = audit.audit(results[attack])
        assert row["auc"] == round(measured["auc"].value, 3)
        accuracies = [float(results[one]["accuracy_test"]) for one in signals]
        assert row["accuracy"] == round(np.mean(accuracies), 3)
        assert row["tpr"][-1] == row["fpr"][-1] == 1
        assert row["tpr"] == sorted(row["tpr"])


def test_a_rank_is_the_share_of_non_members_with_a_lower_score(atlas: Atlas) -> None:
    results = lab.realize(atlas.steps(atlas.start))
    rows = atlas.rows(atlas.start)
    ranks = rows["ranks"][0]
    sample = int(ranks["sample"].split()[1])
    signals, attack = atlas.measured("LiRA")[NAME]
    scores, member = results[attack]["scores"], results[attack]["member"]
    place = int(np.searchsorted(results[attack]["index"], sample))
    role = results[signals[0]]["role"]
    assert set(np.unique(role)) >= {Role.MEMBER, Role.NONMEMBER}
    expected = []
    for own, inside in zip(scores, member, strict=True):
        if inside[place]:
            others = own[~inside]
            lower = (others < own[place]).mean() + (others == own[place]).mean() / 2
            expected.append(100 * lower)
    at = ranks["at"].index(NAME)
    assert ranks["members"][at] == pytest.approx(np.mean(expected), abs=0.51)


def test_what_is_missing_is_counted(atlas: Atlas) -> None:
    assert atlas.rows(atlas.start) == {}
    assert atlas.sentences(atlas.start, {}) == ["Nothing of this is stored yet."]
    measured = atlas.measured("confidence")
    lab.realize([measured[ORDINARY], measured[f"{ORDINARY}, epoch 1"]])
    state = atlas.start | {"attack": "confidence"}
    rows = atlas.rows(state)
    state |= {each.name: each.start for each in atlas.pointers(state, rows)}
    assert atlas.sentences(state, rows)[-1] == "Not stored yet: 1 of 3 variants."


def test_gains_are_those_of_the_audit(atlas: Atlas) -> None:
    measured = atlas.measured("LiRA")
    results = lab.realize(measured)
    early = f"{ORDINARY}, epoch 1"
    comparison = audit.Comparison.of(
        results,
        {name: signals for name, (signals, _) in measured.items()},
        {(name, "LiRA"): attack for name, (_, attack) in measured.items()},
        checkpoints={ORDINARY: [early]},
    )
    gain = comparison.early_stopping(NAME, "LiRA")
    rows = {row["variant"]: row for row in atlas.rows(atlas.start)["points"]}
    assert rows[NAME]["gain"] == (records.words(gain, 3) if gain.resolved else OUT_OF_REACH)
    assert rows[ORDINARY]["gain"] == NOT_COMPARED


def test_a_network_of_another_architecture_is_not_compared(atlas: Atlas) -> None:
    setup = Setup(
        Data(pixels=8), RandomHalves(60, test=20), Model("resnet10", 4), Schedule(2, 16), 6
    )
    wider = Atlas({NAME: setup.trained()}, atlas.ordinary, [1], atlas.attackers)
    lab.realize(wider.measured("LiRA"))
    assert wider.rows(wider.start)["points"][-1]["gain"] == NOT_COMPARED
