"""The pruning explorer: who is exposed, and what is removed, as the stored results have it."""

from typing import Any

import numpy as np
import pytest

from leak_atlas import BadInput, audit
from leak_atlas.engine import store
from leak_atlas.explore.exposed import ALL, MEMBERS, OTHERS, SHOWN
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.pruning import Pruning
from leak_atlas.explore.shelf import Measured
from leak_atlas.recipe import (
    PPB,
    AdversarialRegularization,
    CrossEntropy,
    Data,
    LiRA,
    Model,
    Schedule,
    Setup,
    Threshold,
    VictimAttacker,
)
from tests.explore.conftest import opens_without_torch, text, valid_figure

TARGETS, POOL, N, CLASSES = 3, 300, 200, 10
DEFENCES = {"Base": CrossEntropy(), "PPB": PPB(4.0), "ADV": AdversarialRegularization()}
ATTACKERS = {"Conf": Threshold(), "LiRA": LiRA("offline_cdf")}


def study(b: Any = "slimming") -> Pruning:
    design = VictimAttacker(400, dev=20, victims=TARGETS)
    setup = Setup(
        Data(pixels=8, joined=True),
        design,
        Model("resnet10", width=8),
        Schedule(2, 20),
        TARGETS + 2,
    )
    compared: Any = ["L1 unstructured", b]
    return Pruning(setup, Schedule(1, 20), TARGETS, DEFENCES, ATTACKERS, compared, 0.6, 40)


def attacked(seed: int, leak: float) -> dict[str, np.ndarray]:
    """Scores of each target on samples of its own; the members of the last class stand out."""
    rng = np.random.default_rng(seed)
    places = [np.sort(rng.choice(POOL, N, replace=False)) for _ in range(TARGETS)]
    index = np.array(places)
    member = rng.random(index.shape) < 0.5
    scores = rng.normal(size=index.shape) + leak * member * (index % CLASSES == CLASSES - 1)
    return {"scores": scores, "member": member, "index": index + 1000}


def put(measured: Measured, seed: int, leak: float) -> None:
    signals, attack = measured
    of_pool = {"index": np.arange(POOL) + 1000, "labels": np.arange(POOL) % CLASSES}
    for step in signals:
        store.write(step.key, step.record(), of_pool | {"accuracy_test": np.array(0.7)}, {})
    store.write(attack.key, attack.record(), attacked(seed, leak), {})


def counted(share: float) -> dict[str, np.ndarray]:
    names = "stem.conv.weight\nstage1.0.conv1.weight\nstage1.0.norm1.weight\nhead.fc.weight"
    return {
        "names": np.frombuffer(names.encode(), np.uint8),
        "weights": np.array([100, 200, 10, 50]),
        "gone": np.array([50, int(200 * share), 0, 0]),
        "filters": np.array([10, 10, 0, 0]),
        "filters_gone": np.array([0, int(10 * share), 0, 0]),
    }


@pytest.fixture
def app(own_outputs: Any) -> Instrument:
    of = study()
    put(of._side(of.start, "A", 0.0), 1, 2.0)
    for i, level in enumerate((0.6, 0.9)):
        put(of._side(of.start, "A", level), 2 + i, 2.0)
        for step in of.removed("L1 unstructured", level):
            store.write(step.key, step.record(), counted(level), {})
    return Instrument(of)


def cell(app: Instrument, **place: Any) -> dict[str, Any]:
    place = {"side": "A", "at": 0.6, "class": ALL} | place
    (found,) = [row for row in app.rows["cells"] if place.items() <= row.items()]
    return found


def test_the_auc_of_all_classes_is_that_of_the_attack(app: Instrument) -> None:
    expected = audit.audit(attacked(2, 2.0))["auc"]
    found = cell(app)
    assert [found[each] for each in ("auc", "low", "high")] == pytest.approx(
        [expected.value, expected.low, expected.high], abs=1e-3
    )


def test_the_class_that_stands_out_is_most_exposed(app: Instrument) -> None:
    (who,) = [each for each in app.of.pointers(app.state, app.rows) if each.name == "who"]
    assert who.start == who.values[-1]
    here = attacked(2, 2.0)
    last = (here["index"] - 1000) % CLASSES == CLASSES - 1
    aucs = [
        float(audit.auc(own[inside], member[inside]))
        for own, member, inside in zip(here["scores"], here["member"], last, strict=True)
    ]
    found = cell(app, **{"class": who.start})
    assert found["auc"] == pytest.approx(np.mean(aucs), abs=1e-3)
    assert found["meaning"] == "members have larger attack scores"
    assert f"{who.start}: AUC {found['auc']:.2f}" in text(app.says.value)


def test_samples_are_the_members_with_the_highest_ranks(app: Instrument) -> None:
    here = attacked(2, 2.0)
    ranks: dict[int, list[float]] = {}
    for scores, member, index in zip(here["scores"], here["member"], here["index"], strict=True):
        for at in np.flatnonzero(member):
            others = scores[~member]
            ranks.setdefault(index[at], []).append(100 * float(np.mean(others < scores[at])))
    highest = sorted((np.mean(own) for own in ranks.values()), reverse=True)[:SHOWN]
    assert cell(app)["rank"] == pytest.approx(highest, abs=0.51)
    paths = {row["sample"]: row for row in app.rows["paths"] if row["side"] == "A"}
    path = paths[cell(app)["sample"][0]]
    assert path["at"] == [0.0, 0.6, 0.9]
    assert path[MEMBERS][1] == cell(app)["rank"][0] and len(path[OTHERS]) == 3
    assert {row["sample"] for row in app.rows["pictures"]} == {*paths}


def test_what_is_removed_of_a_stage_counts_its_weights(app: Instrument) -> None:
    found = {row["part"]: row for row in app.rows["layers"] if row["at"] == 0.6}
    assert found["stem"]["removed"] == 50 and found["head"]["removed"] == 0
    assert found["stage1"]["removed"] == pytest.approx(100 * 120 / 210, abs=0.01)
    assert found["stage1"]["meaning"] == "60 % of its filters are removed entirely"


def test_what_is_missing_is_offered(app: Instrument) -> None:
    assert app.offer.train.description.startswith("train")
    assert "B at sparsity 0.6: not trained yet" in text(app.says.value)
    marked = [label for label, _ in app.controls.lists["A_defence"].options if "●" in label]
    assert marked == ["● Base"]


def test_a_defence_with_non_members_has_dense_networks_of_its_own() -> None:
    model = study().pruned("slimming", 0.7, "ADV")[0]
    assert model.training.design.reference == model.origin().design.reference == 40


def test_a_misspelt_pruner_is_refused_in_a_line() -> None:
    with pytest.raises(BadInput, match="cannot be 'sliming'; did you mean 'slimming'"):
        study("sliming")


def test_the_figure_is_valid(app: Instrument) -> None:
    valid_figure(app, most=500_000)


def test_looking_needs_no_torch() -> None:
    opens_without_torch("pruning")
