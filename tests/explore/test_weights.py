"""The weights explorer: which weights are selected, and what is stored of rewinding them."""

from typing import Any

import numpy as np
import pytest

from leak_atlas import BadInput, audit
from leak_atlas.engine import selection, store
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.weights import Weights
from leak_atlas.lab.plans import steps_of
from leak_atlas.localization import score_maps
from leak_atlas.recipe import (
    SNIP,
    CrossEntropy,
    Data,
    LiRA,
    Magnitude,
    Model,
    RandomHalves,
    RelaxLoss,
    Schedule,
    Setup,
    Threshold,
    Vulnerability,
)
from tests.explore.conftest import opens_without_torch, text, valid_figure

CRITERIA = {"vulnerability": Vulnerability(), "magnitude": Magnitude(), "SNIP": SNIP()}
SHAPES = {
    "stem.conv.weight": (8, 1, 3, 3),
    "stem.norm.weight": (8,),
    "stage1.0.conv1.weight": (40, 20, 3, 3),
    "stage1.0.norm1.weight": (40,),
    "head.fc.weight": (10, 40),
}
KINDS = ["conv", "norm", "conv", "norm", "linear"]
MODELS, N = 6, 60


def study(a: str = "vulnerability", b: str = "magnitude") -> Weights:
    design = RandomHalves(100, test=20, reference=10)
    setup = Setup(Data(pixels=8), design, Model("resnet10", width=8), Schedule(9, 20), MODELS)
    defences = {"RelaxLoss": RelaxLoss(0.3), "cross-entropy": CrossEntropy()}
    attackers = {"LiRA": LiRA(), "Conf": Threshold()}
    short = Schedule(4, 20)
    return Weights(setup.trained(), short, defences, CRITERIA, attackers, [a, b], 0.05)


def scored(seed: int, favourite: str) -> dict[str, np.ndarray]:
    """Scores of a network's weights; the favourite tensor's are larger than all others."""
    rng = np.random.default_rng(seed)
    lines = [f"{name} {kind}" for name, kind in zip(SHAPES, KINDS, strict=True)]
    maps = {name: rng.random(shape) + (name == favourite) for name, shape in SHAPES.items()}
    return maps | {"scored/kinds": np.frombuffer("\n".join(lines).encode(), np.uint8)}


def put_scores(name: str, favourite: str) -> list[dict[str, np.ndarray]]:
    results = [scored(seed, favourite) for seed in range(MODELS)]
    for step, arrays in zip(study().scores(name), results, strict=True):
        store.write(step.key, step.record(), arrays, {})
    return results


def put_outcome(measured: Any, seed: int, leak: float) -> None:
    """Stores what the attack on some networks might have given."""
    rng = np.random.default_rng(seed)
    signals, attack = measured
    for step in signals:
        store.write(step.key, step.record(), {"accuracy_test": rng.normal(0.7, 0.02)}, {})
    member = rng.permuted(np.tile(np.arange(N) < N // 2, (MODELS, 1)), axis=1)
    scores = rng.normal(size=member.shape) + leak * member
    store.write(attack.key, attack.record(), {"scores": scores, "member": member}, {})


@pytest.fixture
def app(own_outputs: Any) -> Instrument:
    put_scores("vulnerability", "head.fc.weight")
    put_scores("magnitude", "stem.norm.weight")
    of = study()
    for i, measured in enumerate(of.measured(of.start, [0.001, 0.05]).values()):
        put_outcome(measured, i, 1.0)
    return Instrument(of)


def cell(app: Instrument, **place: Any) -> dict[str, Any]:
    place = {"side": "A", "part": "head", "at": 0.05} | place
    (found,) = [row for row in app.rows["cells"] if place.items() <= row.items()]
    return found


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.5])
def test_a_cell_counts_the_weights_that_training_would_rewind(app: Instrument, rate: float) -> None:
    app.choose(rows="tensors")
    expected = []
    for seed in range(MODELS):
        chosen = selection.highest(score_maps.maps(scored(seed, "head.fc.weight")), rate)
        expected.append(chosen["stage1.0.conv1.weight"].mean() / rate)
    mean = audit.mean_ci(expected)
    found = cell(app, part="stage1.0.conv1", at=rate)
    assert [found[each] for each in ("times", "low", "high")] == pytest.approx(
        [mean.value, mean.low, mean.high], abs=1e-3
    )


def test_a_favourite_is_selected_first(app: Instrument) -> None:
    assert cell(app)["times"] == 19.3  # 386 of its 400 weights, for r = 0.05 of 7,720
    assert cell(app, at=0.5)["meaning"] == "100 % of the 400 weights of head"
    parts = {"stages": ["stem", "stage1", "head"], "layer types": ["conv", "norm", "linear"]}
    for rows, names in parts.items():
        app.choose(rows=rows)
        (pointer,) = [each for each in app.of.pointers(app.state, app.rows) if each.name == "part"]
        assert pointer.values == names and pointer.start in names


def test_outcomes_are_what_the_statistics_say(app: Instrument) -> None:
    of = study()
    signals, attack = of.measured(of.start, [0.05])["B", 0.05]
    found = audit.audit(store.read(attack.key).arrays, design_effect=attack.design_effect)["auc"]
    rows = [row for row in app.rows["outcomes"] if row["side"] == "B" and row["at"] == 0.05]
    by_measure = {row["measure"]: row for row in rows}
    assert by_measure["attack AUC"]["value"] == pytest.approx(found.value, abs=1e-3)
    accuracies = [store.read(step.key).arrays["accuracy_test"] for step in signals]
    assert by_measure["test accuracy"]["value"] == pytest.approx(np.mean(accuracies), abs=1e-3)


def test_it_speaks_of_what_is_pointed_at(app: Instrument) -> None:
    said = text(app.says.value)
    assert "A (vulnerability) selects" in said and "weights of head" in said
    assert "A at r = 0.05: test accuracy 0." in said and "RelaxLoss alone: test accuracy" in said
    app.choose(r=0.2, part="stem")
    said = text(app.says.value)
    assert "A at r = 0.2: not trained yet" in said and "weights of stem" in said


def test_a_rate_that_is_not_trained_is_offered(app: Instrument) -> None:
    assert app.offer.train.layout.display == "none"
    app.choose(train_at="0.2")
    assert app.offer.train.description.startswith("train")
    marked = [label for label, _ in app.controls.lists["train_at"].options if "●" in label]
    assert marked == ["● 0.001", "● 0.05"]


def test_a_score_that_is_not_stored_is_named_and_the_other_shown(app: Instrument) -> None:
    app.choose(A_score="SNIP")
    assert "A (SNIP) is not stored yet" in text(app.says.value)
    assert {row["side"] for row in app.rows["cells"]} == {"B"}


def test_what_is_trained_beforehand_is_what_the_first_view_shows() -> None:
    of = study()
    scores, measured = of.beforehand([0.05])
    assert len(scores) == len(CRITERIA)
    shown = {step.key for step in steps_of(of.steps(of.start))}
    given = {step.key for each in scores for step in each}
    given |= {step.key for signals, attack in measured.values() for step in (*signals, attack)}
    assert shown <= given


def test_a_misspelt_score_is_refused_in_a_line() -> None:
    with pytest.raises(BadInput, match="cannot be 'magnitud'; did you mean 'magnitude'"):
        study(b="magnitud")


def test_the_figure_is_valid(app: Instrument) -> None:
    valid_figure(app, most=500_000)


def test_looking_needs_no_torch() -> None:
    opens_without_torch("weights")
