"""The weight explorer: which weights are selected at any rate, what is stored of it; a click alone
computes.
"""

import base64
import io
import re
import subprocess
import sys
import time
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from leak_atlas import BadInput, audit, lab
from leak_atlas.engine import selection, store
from leak_atlas.explore.look import percent
from leak_atlas.explore.rewinding import GRID, Ranked, Rewinding, Stored, agree, rows, told
from leak_atlas.explore.weights import NONE, Explorer, explorer, trend
from leak_atlas.localization import score_maps
from leak_atlas.recipe import (
    SNIP,
    CrossEntropy,
    Data,
    LiRA,
    Magnitude,
    Model,
    Population,
    Random,
    RandomHalves,
    RelaxLoss,
    Schedule,
    Setup,
    Threshold,
    Vulnerability,
)
from tests.explore.conftest import answered, offered, text

CRITERIA = {
    "vulnerability": Vulnerability(),
    "magnitude": Magnitude(),
    "SNIP": SNIP(),
    "chance": Random(),
}
SHAPES = {
    "stem.conv.weight": (8, 1, 3, 3),
    "stem.norm.weight": (8,),
    "stage1.0.conv1.weight": (40, 20, 3, 3),
    "stage1.0.norm1.weight": (40,),
    "head.fc.weight": (10, 40),
}
KINDS = ["conv", "norm", "conv", "norm", "linear"]
SIZE = sum(int(np.prod(shape)) for shape in SHAPES.values())
FAVOURITES = {
    "vulnerability": "head.fc.weight",
    "magnitude": "stem.norm.weight",
    "SNIP": "head.fc.weight",
}
RATES, MODELS, N = [0.001, 0.05], 6, 60


def study(models: int = MODELS, **fields: Any) -> Rewinding:
    design = RandomHalves(fields.get("pool", 100), test=20, reference=10)
    network = Model("resnet10", width=fields.get("width", 8))
    ordinary = Setup(
        Data(pixels=8), design, network, Schedule(fields.get("epochs", 9), 20), models
    ).trained()
    defences = {"RelaxLoss": RelaxLoss(0.3), "cross-entropy": CrossEntropy()}
    attackers = {"LiRA": LiRA(), "Conf": Threshold()}
    criteria = fields.get("criteria", CRITERIA)
    return Rewinding(ordinary, Schedule(fields.get("again", 4), 20), defences, criteria, attackers)


STUDY = study()


def maps(seed: int, favourite: str = "") -> dict[str, np.ndarray]:
    """Scores of a model; the favourite tensor's are larger than all others."""
    rng = np.random.default_rng(seed)
    lines = "\n".join(f"{name} {kind}" for name, kind in zip(SHAPES, KINDS, strict=True))
    found = {
        name: (rng.random(shape) + (name == favourite)).astype(np.float32)
        for name, shape in SHAPES.items()
    }
    return found | {"scored/kinds": np.frombuffer(lines.encode(), np.uint8)}


def put(models: Population, seed: int, leak: float) -> None:
    """Stores what such models' measurements might have given."""
    rng = np.random.default_rng(seed)
    *signals, attack = STUDY.measured(models)
    for step in signals:
        store.write(step.key, step.record(), {"accuracy_test": rng.normal(0.7, 0.02)}, {})
    member = rng.permuted(np.tile(np.arange(N) < N // 2, (len(models), 1)), axis=1)
    store.write(
        attack.key,
        attack.record(),
        {"scores": rng.normal(size=member.shape) + leak * member, "member": member},
        {},
    )


@pytest.fixture
def shelf(own_outputs: Any) -> None:
    for i, name in enumerate(CRITERIA):
        for j, score in enumerate(STUDY.scores(name)):
            store.write(score.key, score.record(), maps(10 * i + j, FAVOURITES.get(name, "")), {})
    for i, models in enumerate(STUDY.references().values()):
        put(models, 50 + i, 2.0)
    for i, rate in enumerate(RATES):
        put(STUDY.rewound("vulnerability", rate), 60 + i, 1.0)
    put(STUDY.rewound("magnitude", 0.05), 70, 0.5)


@pytest.fixture
def app(shelf: None) -> Explorer:
    return explorer(STUDY, "vulnerability", "magnitude", 0.05, [0.0123])


def pixels(app: Explorer) -> np.ndarray:
    found = re.search(r'base64,([^"]+)"', app.picture.value)
    assert found
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(found[1]))).convert("RGB"))


def results(models: Population) -> tuple[list[float], dict[str, np.ndarray]]:
    *signals, attack = STUDY.measured(models)
    return [float(store.read(s.key).arrays["accuracy_test"]) for s in signals], store.read(
        attack.key
    ).arrays


# --- which weights --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.0, GRID[0], 0.05, 0.5, 1.0])
def test_the_selection_is_that_of_the_training(rate: float) -> None:
    result = maps(0, "stem.norm.weight")
    expected, found = selection.highest(score_maps.maps(result), rate), Ranked(result).chosen(rate)
    assert list(found) == list(expected) == list(SHAPES)
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_a_favourite_tensor_is_taken_first() -> None:
    own = Ranked(maps(0, "head.fc.weight"))
    assert own.size == SIZE
    half, whole = (
        own.shares(200 / SIZE),
        {each.of: each for each in own.shares(800 / SIZE, by_kind=True)},
    )
    assert [each.selected for each in half] == [0, 0, 0, 0, 200]
    assert whole["linear"].share == 1 and sum(each.selected for each in whole.values()) == 800


def test_two_selections_are_compared_with_chance() -> None:
    one, other = Ranked(maps(0, "head.fc.weight")), Ranked(maps(1, "stage1.0.conv1.weight"))
    assert agree(one, one, 0.02)[0] == 1 and agree(one, other, 0.02)[0] == 0
    inside = 0
    for seed in range(100):
        both, low, high = agree(Ranked(maps(2 * seed)), Ranked(maps(2 * seed + 1)), 0.1)
        inside += low <= both <= high
    assert 90 <= inside <= 99


def test_a_rate_of_no_weight_is_told(shelf: None) -> None:
    stored = Stored(STUDY, [])
    sides = [stored.side(letter, name, 0) for letter, name in (("A", "magnitude"), ("B", "SNIP"))]
    said = " ".join(told(sides, 1e-5, stored.outcomes(STUDY.references())))
    assert said.count("not trained yet. ") == 2 and "in common" not in said
    assert all(row["A selects of it, %"] == 0 for row in rows(sides, 1e-5))


def test_random_scores_stay_within_chance() -> None:
    inside = []
    for seed in range(100):
        own = Ranked(maps(seed))
        low, high = own.chance(0.1)
        inside += [
            a <= each.share <= b for a, b, each in zip(low, high, own.shares(0.1), strict=True)
        ]
    assert 0.94 <= np.mean(inside) < 1


def test_the_table_adds_up(shelf: None) -> None:
    stored = Stored(STUDY, [])
    found = rows([stored.side("A", "vulnerability", 1), stored.side("B", "SNIP", 1)], 0.05)
    assert [row["layer type"] for row in found] == ["conv", "norm", "linear"]
    for column in ("of all weights, %", "of A's selection, %", "of B's selection, %"):
        assert sum(row[column] for row in found) == pytest.approx(100)
    own = Ranked(maps(1, "head.fc.weight"))
    assert [row["A selects of it, %"] for row in found] == [
        100 * each.share for each in own.shares(0.05, by_kind=True)
    ]


# --- the app --------------------------------------------------------------------------------------------------------


def test_it_says_what_the_statistics_say(app: Explorer) -> None:
    said = text(app.says.value)
    for start, models in (
        ("A (vulnerability) at 5 %: ", STUDY.rewound("vulnerability", 0.05)),
        ("B (magnitude) at 5 %: ", STUDY.rewound("magnitude", 0.05)),
        ("ordinary, ", STUDY.ordinary),
        ("RelaxLoss alone, ", STUDY.references()["RelaxLoss alone"]),
    ):
        accuracy, attack = results(models)
        auc = audit.audit(attack, design_effect=STUDY.attackers["LiRA"].crossing)["auc"]
        assert f"{start}test accuracy {audit.mean_ci(accuracy):.3f}, attack AUC {auc:.3f}" in said
    assert (
        f"Of its {round(0.05 * SIZE)} weights 100 % are linear; it takes the most of head.fc, 96.5 %"
        in said
    )
    given = ((0, "vulnerability"), (10, "magnitude"))
    one, other = (
        selection.highest(score_maps.maps(maps(seed, FAVOURITES[name])), 0.05)
        for seed, name in given
    )
    both = sum((one[name] & other[name]).sum() for name in SHAPES) / round(0.05 * SIZE)
    assert f"A and B have {percent(both)} of their weights in common; by chance " in said


def test_the_slider_marks_what_is_trained(app: Explorer) -> None:
    labels = [label for label, _ in app.rate.options]
    assert [rate for _, rate in app.rate.options] == sorted({*GRID, 0.0123})
    assert [label for label in labels if "●" in label] == ["● 0.1 %", "● 5 %"]
    app.scores["A"].value = "magnitude"
    assert [label for label, _ in app.rate.options if "●" in label] == [
        "● 5 %"
    ] and app.rate.value == 0.05


def test_where_the_weights_sit_is_shown_at_every_rate(app: Explorer, asked: list[Any]) -> None:
    for rate in (GRID[0], 0.0123, GRID[-1]):
        app.rate.value = rate
        said = text(app.says.value)
        assert (
            said.count(
                f"at {percent(rate)}: what comes of rewinding these weights is not trained yet"
            )
            == 2
        )
        assert (
            f"Of its {round(rate * SIZE):,} weights" in said
            and f"r = {percent(rate)}" in app.cells.value
        )
    kinds = {store.describe(key)["record"]["kind"] for key in store.listing()}
    assert not asked and "Train" not in kinds


def test_every_score_and_model_can_be_looked_at(app: Explorer) -> None:
    seen = set()
    for name, model in [(name, 0) for name in CRITERIA] + [
        ("chance", model) for model in range(1, MODELS)
    ]:
        app.scores["A"].value, app.model.value = name, model
        seen.add(app.cells.value)
        assert f"A ({name}) at 5 %" in text(app.says.value)
    assert len(seen) == len(CRITERIA) + MODELS - 1
    app.scores["B"].value = NONE
    assert (
        "B (" not in text(app.says.value)
        and "in common" not in app.says.value
        and "B selects" not in app.cells.value
    )


def test_what_is_there_costs_nothing(app: Explorer) -> None:
    assert text(app.offer.cost.value).strip() == "" and not offered(app)


def test_what_is_missing_says_its_cost_and_a_click_asks_for_it(
    app: Explorer, asked: list[Any]
) -> None:
    app.rate.value = 0.02
    # nothing of `put` is a training
    assert "train 18 networks, about" in app.offer.train.description
    app.scores["B"].value = NONE
    assert offered(app) and not app.offer.train.disabled
    app.offer.train.click()
    wanted = {step.key for step in STUDY.measured(STUDY.rewound("vulnerability", 0.02))}
    given = {step.key for part in asked[0] for steps in part for step in steps}
    assert len(asked) == 1 and wanted <= given
    assert not given & {step.key for step in STUDY.measured(STUDY.rewound("magnitude", 0.02))}


def test_a_score_that_is_not_stored_is_told(app: Explorer) -> None:
    store.discard(STUDY.scores("chance")[0].key)
    app.scores["B"].value = "chance"
    assert "The score of B (chance) is not stored." in text(app.says.value) and offered(app)
    assert "A selects" in app.cells.value and "B selects" not in app.cells.value


def test_a_damaged_result_is_missing(shelf: None) -> None:
    step = STUDY.measured(STUDY.rewound("vulnerability", 0.05))[1]
    (store.folder(step.key) / store.ARRAYS).write_bytes(b"")
    app = explorer(STUDY, "vulnerability", None, 0.05)
    assert (
        "A (vulnerability) at 5 %: what comes of rewinding these weights is not trained yet"
        in text(app.says.value)
    )
    assert offered(app)


def test_a_failure_is_told(app: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise lab.Failed("Train abc: out of memory")

    monkeypatch.setattr(lab, "realize", fail)
    app.rate.value = 0.02
    app.offer.train.click()
    assert "out of memory" in text(app.offer.cost.value) and app.rate.value == 0.02


def test_a_click_trains_what_is_missing(own_outputs: Any) -> None:
    few = {"magnitude": Magnitude(), "SNIP": SNIP(4)}
    tiny = study(6, pool=40, width=2, epochs=2, again=1, criteria=few)
    app = explorer(tiny, "magnitude", "SNIP", 0.1)
    assert (
        app.cells.value == ""
        and "train 24 networks, about" in app.offer.train.description
        and not list(store.listing())
    )
    app.offer.train.click()
    assert (
        text(app.offer.cost.value).strip() == "" and text(app.says.value).count("attack AUC") == 4
    )
    assert "● 10 %" in [label for label, _ in app.rate.options]
    app.rate.value = 0.2
    assert "train 12 networks, about" in app.offer.train.description


def test_an_answer_that_is_stored_is_read_and_drawn_once(work: list[str], app: Explorer) -> None:
    answered(app, work, "leak", "TPR at 1 % FPR")


def test_every_picture_and_control_is_labelled(app: Explorer) -> None:
    for control in (*app.scores.values(), app.rate, app.model):
        assert control.description
    found = re.match(r'<img alt="([^"]+)"', app.picture.value)
    assert found and found[1].startswith("A (vulnerability) at 5 %: test accuracy")
    assert 'role="status"' in app.says.value and 'role="status"' in app.offer.cost.value


def test_a_move_is_quick_and_leaves_nothing_behind(app: Explorer) -> None:
    app.rate.value = 0.02  # counts what it costs for the first time
    pictures, spent = set(), []
    for rate in GRID:
        start = time.process_time()
        app.rate.value = rate
        spent.append(time.process_time() - start)
        pictures.add(app.picture.value)
    assert median(spent) < 0.1
    assert len(pictures) == len(GRID) and not plt.get_fignums()


# --- figures --------------------------------------------------------------------------------------------------------


def test_the_figure_shows_the_same(app: Explorer) -> None:
    fig = app.figure
    accuracy, auc, first, second = fig.axes
    found = [results(STUDY.rewound("vulnerability", rate)) for rate in RATES]
    own = next(line for line in accuracy.lines if line.get_label() == "A: vulnerability")
    np.testing.assert_allclose(own.get_ydata(), [np.mean(values) for values, _ in found])
    own = next(line for line in auc.lines if line.get_label() == "A: vulnerability")
    alone = explorer(STUDY, "vulnerability", None, 0.05, RATES).figure.axes[0].lines
    assert (
        list(next(line for line in alone if line.get_label() == "A: vulnerability").get_xdata())
        == RATES
    )
    areas = [audit.auc(attack["scores"], attack["member"]).mean() for _, attack in found]
    np.testing.assert_allclose(own.get_ydata(), areas)
    for ax, favourite, seed in ((first, "head.fc.weight", 0), (second, "stem.norm.weight", 10)):
        shares = {
            i: each.share for i, each in enumerate(Ranked(maps(seed, favourite)).shares(0.05))
        }
        marks = [line for line in ax.lines if not line.get_clip_on()]
        drawn = {
            x: y for line in marks for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
        }
        assert {x: y for x, y in drawn.items() if y > 1e-3} == {
            x: y for x, y in shares.items() if y
        }
        assert len(drawn) == len(SHAPES)
    assert fig.finding == " ".join(text(app.says.value).split())


def test_what_moves_is_laid_over_what_stays(app: Explorer) -> None:
    """The quick picture is that of the whole figure, drawn anew; only what covers what may differ."""
    for rate in (0.02, 0.05):
        app.rate.value = rate
        buffer = io.BytesIO()
        explorer(STUDY, "vulnerability", "magnitude", rate, [0.0123, 0.05]).figure.savefig(
            buffer, format="png"
        )
        whole = np.asarray(Image.open(buffer).convert("RGB")).astype(int)
        differs = np.abs(pixels(app).astype(int) - whole).max(axis=2) > 40
        assert whole.shape == pixels(app).shape and differs.mean() < 0.002


def test_the_trend_is_the_mean_over_the_models(shelf: None) -> None:
    fig = trend(STUDY, 0.05, [0.01])
    assert fig.finding == "At r = 5 %, 2 of 3 scores reach deepest into linear weights"
    linear = fig.axes[[ax.get_title(loc="left") for ax in fig.axes].index("linear")]
    shares = [
        {e.of: e.share for e in Ranked(maps(j, "head.fc.weight")).shares(0.05, by_kind=True)}[
            "linear"
        ]
        for j in range(MODELS)
    ]
    assert any(np.isclose(np.mean(shares), line.get_ydata()[-1]) for line in linear.lines)


def test_what_is_not_there_is_named(shelf: None) -> None:
    with pytest.raises(BadInput, match="no score 'magnitud' to look at; did you mean 'magnitude'"):
        explorer(STUDY, "magnitud", None, 0.05)
    store.discard(STUDY.scores("SNIP")[0].key)
    with pytest.raises(
        BadInput, match=r"B \(SNIP\) is not stored. Hand the explorer's steps to lab.realize first"
    ):
        _ = explorer(STUDY, "magnitude", "SNIP", 0.05).figure
    with pytest.raises(BadInput, match=r"SNIP is not stored: hand"):
        trend(STUDY, 0.05)


def test_looking_at_what_is_stored_needs_no_torch(shelf: None) -> None:
    code = (
        "import sys; from tests.explore.test_weights import STUDY, explorer, trend\n"
        "app = explorer(STUDY, 'vulnerability', 'magnitude', 0.05)\n"
        "app.figure; app.table; trend(STUDY, 0.05)\n"
        "app.model.value = 1\n"
        "assert 'attack AUC' in app.says.value, app.says.value\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
