"""The layers explorer: its rows say what the statistics say, of what is stored alone."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import vl_convert

from leak_atlas import BadInput
from leak_atlas.engine import store
from leak_atlas.explore import records
from leak_atlas.explore.description import figure
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.layers import Layers
from leak_atlas.explore.probe import BOTH, FIELDS, MEASURES, ONE, SHOWN
from leak_atlas.explore.setting import FACTORS, Setting
from leak_atlas.localization import disparity
from leak_atlas.recipe import CrossEntropy, Data, Halves, Model, RelaxLoss, Schedule
from leak_atlas.report.live import VEGA_LITE
from tests.explore.conftest import text

STAGES = ["stem", "stage1", "stage2", "stage3", "stage4", "head"]
BLOCKS = {"resnet10": STAGES, "resnet18": ["stem", "stage1.0", "stage4.0", "stage4.1", "head"]}
N = 200
FIRST = Setting(Data(pixels=16), Halves(N), Model("resnet10", width=8), Schedule(20), models=3)
SECOND = FIRST.but("architecture", "resnet18")
MOMENTS = [5]
OBJECTIVES = {"none": CrossEntropy(), "RelaxLoss": RelaxLoss(0.3)}


def result(seed: int, names: list[str], shift: float) -> dict[str, np.ndarray]:
    """A pair whose last stage distinguishes the halves."""
    rng = np.random.default_rng(seed)
    seen = rng.permutation(np.arange(N) < N // 2)
    move = shift * ~seen * np.char.startswith(names, "stage4")[:, None]
    noise = rng.normal(size=(3, len(names), N))
    return {
        "euclidean": noise[0] + move,
        "direction": noise[1] + 2 * move,
        "length_a": noise[2] + 9,
        "length_b": noise[2] + 9 - move,
        "seen_a": np.ones(N, bool),
        "seen_b": seen,
        "index": np.arange(N) + 100,
        "parts": np.frombuffer("\n".join(names).encode(), np.uint8),
    }


def others(seed: int, names: list[str], shift: float) -> dict[str, np.ndarray]:
    """What a `Similarity` and a `StageMembership` might give of every second sample of that pair."""
    pair, half = result(seed, names, shift), np.arange(0, N, 2)
    own = {name: pair[name][half] for name in ("seen_a", "seen_b", "index")}
    values = {"aligned": pair["euclidean"][:, half], "scores": -pair["direction"][:, half]}
    return own | values | {"member": own["seen_b"], "parts": pair["parts"]}


def put(setting: Setting, start: int, shift: float = 1.0) -> None:
    """Stores what a probe of this setting might have given; before the end, no part differs."""
    for moment in setting.moments(MOMENTS):
        for parts, names in (("stages", STAGES), ("blocks", BLOCKS[setting.model.name])):
            for i, step in enumerate(setting.distances(moment, parts)):  # type: ignore[arg-type]
                arrays = result(start + i, names, 0.0 if moment else shift)
                store.write(step.key, step.record(), arrays, {})
            for i, step in enumerate(setting.similarities(moment, parts)):  # type: ignore[arg-type]
                store.write(step.key, step.record(), others(start + i, names, shift), {})
        for i, step in enumerate(setting.memberships(moment)):
            store.write(step.key, step.record(), others(start + i, STAGES, shift), {})
    *signals, attack = setting.attacked()
    for signal in signals:
        store.write(signal.key, signal.record(), {"accuracy_test": np.array(0.7)}, {})
    member = np.tile(np.arange(N) < N // 2, (len(signals), 1))
    store.write(attack.key, attack.record(), {"scores": 1.0 * member, "member": member}, {})


@pytest.fixture
def app(own_outputs: Any) -> Instrument:
    put(FIRST, 0)
    put(SECOND, 100, 0.0)
    return Instrument(Layers(FIRST, SECOND, MOMENTS, OBJECTIVES))


def cell(app: Instrument, **place: Any) -> dict[str, Any]:
    place = {"side": "A", "part": "stage4", "epoch": 20, "measure": "distance"} | place
    (found,) = [row for row in app.rows["cells"] if place.items() <= row.items()]
    return found


@pytest.mark.parametrize("measure", MEASURES)
def test_a_cell_is_what_the_statistics_say(app: Instrument, measure: str) -> None:
    pairs = [result(i, STAGES, 1.0) for i in range(3)]
    halves = [others(i, STAGES, 1.0) for i in range(3)]
    if measure == "membership probe":
        values, seen = [-each["scores"] for each in halves], [each["member"] for each in halves]
    else:
        of = halves if measure == "distance after rotation" else pairs
        values, seen = disparity.read(of, FIELDS.get(measure, measure))
    expected = disparity.profile(values, seen)[4]
    found = cell(app, measure=measure)
    assert [found["auc"], found["low"], found["high"]] == pytest.approx(
        [expected.value, expected.low, expected.high], abs=1e-3
    )


def test_a_cell_says_what_it_means(app: Instrument) -> None:
    assert cell(app)["meaning"] == "unseen samples have larger values here"
    assert "could be chance" in cell(app, part="stage1", epoch=5)["meaning"]
    assert "smaller" in cell(app, measure="length")["meaning"]
    said = text(app.says.value)
    assert "A (resnet10): furthest from chance is stage4 at epoch 20" in said
    assert "M_h1's test accuracy is 0.70, its confidence attack's AUC 1.00" in said


def test_the_mean_rank_of_unseen_samples_is_the_auc() -> None:
    pair = result(0, STAGES, 1.0)
    means = records.ranks(pair["euclidean"], pair["seen_b"])[:, ~pair["seen_b"]].mean(axis=1) / 100
    aucs = disparity.areas([pair["euclidean"]], [pair["seen_b"]])[0]
    assert means == pytest.approx(aucs)


def test_pictures_are_those_that_carry_the_cell(app: Instrument) -> None:
    found = cell(app)
    pairs = [result(i, STAGES, 1.0) for i in range(3)]
    placed = np.array([records.ranks(p["euclidean"], p["seen_b"])[4] for p in pairs])
    unseen = ~np.array([p["seen_b"] for p in pairs])
    mean = np.ma.masked_array(placed, ~unseen).mean(axis=0).filled(-1)
    assert found["rank"] == pytest.approx(sorted(mean, reverse=True)[:SHOWN], abs=0.51)
    pictures = {row["sample"] for row in app.rows["pictures"]}
    paths = {(row["side"], row["measure"], row["sample"]) for row in app.rows["paths"]}
    for row in app.rows["cells"]:
        assert {*row["sample"]} <= pictures
        assert {(row["side"], row["measure"], sample) for sample in row["sample"]} <= paths


def test_a_distribution_counts_each_half(app: Instrument) -> None:
    for row in app.rows["cells"]:
        assert len(row["edge"]) == len(row[BOTH]) == len(row[ONE])
        assert sum(row[BOTH]) == pytest.approx(100, abs=0.2) == sum(row[ONE])


def test_blocks_of_two_depths_share_their_rows(app: Instrument) -> None:
    app.choose(parts="blocks")
    (part,) = [each for each in app.of.pointers(app.state, app.rows) if each.name == "part"]
    assert part.values == [*dict.fromkeys([*STAGES[:-1], *BLOCKS["resnet18"]])]
    assert part.label == "block"


def test_a_side_that_is_not_stored_is_said_and_the_other_shown(app: Instrument) -> None:
    app.choose(B_training="RelaxLoss")
    assert "B (" in text(app.says.value) and "is not stored yet" in text(app.says.value)
    assert {row["side"] for row in app.rows["cells"]} == {"A"}
    assert app.offer.train.description.startswith("train")


def test_an_epoch_that_is_not_stored_has_no_column(app: Instrument) -> None:
    store.discard(FIRST.distances()[0].key)
    app = Instrument(Layers(FIRST, SECOND, MOMENTS, OBJECTIVES))
    own = [row for row in app.rows["cells"] if row["side"] == "A" and row["measure"] == "distance"]
    assert {row["epoch"] for row in own} == {5}


def test_a_choice_that_means_nothing_here_is_not_shown(app: Instrument) -> None:
    assert app.controls.lists["A_patch"].layout.display == "none"
    with pytest.raises(BadInput, match="did you mean 'resnet18'"):
        app.choose(A_architecture="resnet8")


@pytest.mark.parametrize("narrow", ["wide", "narrow"])
def test_the_figure_is_valid(app: Instrument, narrow: str) -> None:
    shown = figure(app.of, app.state, app.rows)
    assert len(json.dumps(shown["rows"])) < 700_000
    compiled = vl_convert.vegalite_to_vega(shown[narrow], vl_version=VEGA_LITE)
    signals = {each["name"] for each in compiled["signals"]}
    assert {each["signal"] for each in shown["pointers"]} <= signals


def test_every_factor_can_be_chosen_on_either_side() -> None:
    offered = {each.name for each in Layers(FIRST, SECOND).choices}
    assert len(offered) == 2 * len(FACTORS) + 1


def test_it_opens_without_torch() -> None:
    code = "import sys; from leak_atlas.explore import layers; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
