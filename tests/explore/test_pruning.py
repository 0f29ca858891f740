"""The pruning explorer: what is stored of a pruner, a sparsity, a defence and an attack; a click
alone computes.
"""

import subprocess
import sys
import time
from dataclasses import replace
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from leak_atlas import BadInput, audit
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.explore.look import percent
from leak_atlas.explore.pruning import (
    GAPS,
    GONE,
    GRID,
    PLANE,
    Explorer,
    Measured,
    Pruning,
    explorer,
    gaps,
    shares,
)
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
    registry,
)
from tests.explore.conftest import answered, offered, text

VICTIMS, SHADOWS, N, CLASSES = 3, 2, 200, 10
DEFENCES = {"Base": CrossEntropy(), "PPB": PPB(4.0), "ADV": AdversarialRegularization()}
ATTACKERS = {"Conf": Threshold(), "LiRA": LiRA("offline_cdf")}


def study(**fields: Any) -> Pruning:
    design = VictimAttacker(fields.get("pool", 400), dev=20, victims=VICTIMS)
    network = Model("resnet10", width=fields.get("width", 8))
    setup = Setup(Data(pixels=8, joined=True), design, network, Schedule(2, 20), VICTIMS + SHADOWS)
    return Pruning(setup, Schedule(1, 20), VICTIMS, DEFENCES, ATTACKERS, reference=40)


STUDY = study()
FULL = {"pruner": "L1 unstructured", "sparsity": 0.6, "defence": "PPB", "attack": "Conf"}


def answers(seed: int, sure: float) -> dict[str, np.ndarray]:
    """A victim's signals, its members more confident in their class, the last class most of all."""
    rng = np.random.default_rng(seed)
    role = np.repeat([Role.MEMBER, Role.NONMEMBER, Role.DEV], N // 2)[: N + 20]
    labels = np.arange(len(role)) % CLASSES
    logits = rng.normal(size=(len(role), CLASSES))
    logits[np.arange(len(role)), labels] += (
        sure * (role == Role.MEMBER) * (1 + (labels == CLASSES - 1))
    )
    return {
        "logits": logits,
        "labels": labels,
        "role": role,
        "accuracy_test": rng.normal(0.7, 0.02),
    }


def put(measured: Measured, seed: int, leak: float) -> None:
    """Stores what such networks' measurements might have given."""
    signals, attack = measured
    rng = np.random.default_rng(seed)
    for i, step in enumerate(signals):
        store.write(step.key, step.record(), answers(10 * seed + i, leak), {})
    member = np.tile(np.arange(N) < N // 2, (VICTIMS, 1))
    scores = rng.normal(size=member.shape) + leak * member
    store.write(attack.key, attack.record(), {"scores": scores, "member": member}, {})


def counted(share: float) -> dict[str, np.ndarray]:
    """Of two convolutions the second loses more, and filters too; a norm, and a linear map that
    loses nothing.
    """
    names = "stem.conv.weight\nstem.norm.weight\nstage1.0.conv1.weight\nhead.fc.weight"
    kinds, weights = "conv\nnorm\nconv\nlinear", np.array([100, 10, 200, 50])
    gone, filters_gone = (
        np.array([each, 0, whole * share, 0]).astype(int) for each, whole in ((50, 200), (0, 10))
    )
    arrays = {
        "names": np.frombuffer(names.encode(), np.uint8),
        "kinds": np.frombuffer(kinds.encode(), np.uint8),
    }
    arrays |= {"weights": weights, "gone": gone, "filters": np.array([10, 0, 10, 0])}
    return arrays | {
        "filters_gone": filters_gone,
        "convolutions": np.array(gone[[0, 2]].sum() / 300),
        "network": np.array(gone.sum() / weights.sum()),
    }


@pytest.fixture
def shelf(own_outputs: Any) -> None:
    put(STUDY.measured(STUDY.setup.trained(), "Conf"), 1, 2.0)
    for i, sparsity in enumerate((0.6, 0.9)):
        put(
            STUDY.measured(STUDY.pruned("L1 unstructured", sparsity, "Base"), "Conf"),
            2 + i,
            1.5 - i,
        )
        for step in STUDY.gone("L1 unstructured", sparsity):
            store.write(step.key, step.record(), counted(sparsity), {})
    put(STUDY.measured(STUDY.pruned("L1 unstructured", 0.6, "PPB"), "Conf"), 4, 0.3)


@pytest.fixture
def app(shelf: None) -> Explorer:
    return explorer(STUDY, "L1 unstructured", 0.6, "PPB", "Conf", [0.65])


# --- the recipes ----------------------------------------------------------------------------------------------------


def test_the_whole_chain_is_the_shadows_too() -> None:
    models = STUDY.pruned("slimming", 0.7, "PPB")
    signals, attack = STUDY.measured(models, "LiRA")
    assert len(models) == VICTIMS + SHADOWS and len(signals) == len(attack.targets) == VICTIMS
    assert {type(state.training.objective) for state in attack.shadows} == {PPB}
    assert all(not set(attack.helpers(target)) & set(attack.targets) for target in attack.targets)
    assert models[0].origin() == STUDY.setup.trained()[0]


def test_a_defence_with_non_members_has_dense_networks_of_its_own() -> None:
    model = STUDY.pruned("slimming", 0.7, "ADV")[0]
    assert model.training.design.reference == model.origin().design.reference == 40
    with pytest.raises(BadInput, match="needs non-members to look at"):
        explorer(replace(STUDY, reference=0), "slimming", 0.7, "Base", "Conf")


def test_what_is_not_offered_is_named() -> None:
    with pytest.raises(BadInput, match="no defence 'PBB' to look at; did you mean 'PPB'"):
        STUDY.pruned("slimming", 0.7, "PBB")
    with pytest.raises(BadInput, match="no attack 'LiR' to look at; did you mean 'LiRA'"):
        explorer(STUDY, "slimming", 0.7, "Base", "LiR")


# --- the numbers ----------------------------------------------------------------------------------------------------


def test_a_gap_is_members_less_non_members_of_a_class() -> None:
    found = gaps([answers(seed, 2.0) for seed in range(5)], CLASSES)
    assert len(found) == CLASSES and all(one.low > 0 and one.n == 5 for one in found)
    assert max(found, key=lambda one: one.value) is found[-1]
    nothing = gaps([answers(seed, 0.0) for seed in range(40)], CLASSES)
    assert sum(one.low < 0 < one.high for one in nothing) >= 8


def test_a_class_that_a_victim_lacks_is_left_out() -> None:
    first, second = answers(0, 1.0), answers(1, 1.0)
    first["role"] = np.where(
        (first["labels"] == 2) & (first["role"] == Role.MEMBER), Role.DEV, first["role"]
    )
    both, one = gaps([first, second], CLASSES), gaps([first], CLASSES)
    assert both[2].n == 1 and both[3].n == 2 and np.isnan(one[2].value)


def test_shares_are_means_over_the_victims() -> None:
    found = shares([counted(0.6), counted(0.9)]).set_index(["tensor", "series"])["value"]
    assert found["stage1.0.conv1", "conv"].value == pytest.approx(0.75)
    assert found["stage1.0.conv1", "whole filters"].value == pytest.approx(0.75)
    assert found["head.fc", "linear"].value == found["stem.conv", "whole filters"].value == 0
    assert set(found.index.get_level_values("series")) == {
        "conv",
        "norm",
        "linear",
        "whole filters",
    }


# --- the app --------------------------------------------------------------------------------------------------------


def test_it_says_what_the_statistics_say(app: Explorer) -> None:
    said = text(app.says.value)
    for start, models in (
        ("dense: ", STUDY.setup.trained()),
        ("L1 unstructured, Base at 60 %: ", STUDY.pruned("L1 unstructured", 0.6, "Base")),
        ("L1 unstructured, PPB at 60 %: ", STUDY.pruned("L1 unstructured", 0.6, "PPB")),
    ):
        signals, attack = STUDY.measured(models, "Conf")
        accuracy = audit.mean_ci(
            [float(store.read(step.key).arrays["accuracy_test"]) for step in signals]
        )
        auc = audit.audit(store.read(attack.key).arrays)["auc"]
        assert (
            f"{start}test accuracy {accuracy:.3f}, AUC of Conf {auc:.3f}; the confidence gap is widest in"
            in said
        )
    assert "Gone are 56.7 % of the weights of convolutions, 47.2 % of all weights." in said
    assert (
        f"means over {VICTIMS} victims" in said
        and text(app.offer.cost.value) == ""
        and not offered(app)
    )


def test_the_slider_marks_what_is_trained(app: Explorer) -> None:
    def trained() -> list[str]:
        return [label for label, _ in app.sparsity.options if "●" in label]

    assert [each for _, each in app.sparsity.options] == sorted({*GRID, 0.65})
    assert trained() == ["● 60 %"]
    app.defence.value = "Base"
    assert trained() == ["● 60 %", "● 90 %"] and app.sparsity.value == 0.6


def test_what_is_missing_says_its_cost_and_a_click_asks_for_it(
    app: Explorer, asked: list[Any]
) -> None:
    app.sparsity.value = 0.9
    assert (
        "L1 unstructured, PPB: not trained yet" in text(app.says.value)
        and "train" in app.offer.train.description
    )
    assert "L1 unstructured, Base at 90 %" in text(app.says.value)  # what is there is shown
    assert offered(app) and not asked
    app.offer.train.click()
    assert asked[0][0] == STUDY.steps("L1 unstructured", [0.9], ["Base", "PPB"], "Conf")
    with pytest.raises(BadInput, match="not trained yet"):
        _ = app.figure


def test_every_choice_can_be_looked_at(app: Explorer, asked: list[Any]) -> None:
    for name, values in (("pruner", STUDY.pruners), ("defence", DEFENCES), ("attack", ATTACKERS)):
        for value in values:
            app.choose(**{name: value})
            assert (name, value) == ("pruner", "L1 unstructured") or app.says.value
        app.reset.click()
        assert {each: getattr(app, each).value for each in FULL} == FULL
    assert not asked and not offered(app)


def test_members_of_another_choice_are_not_exported(app: Explorer) -> None:
    assert set(app.attacks()) == {"dense", "L1 unstructured, Base", "L1 unstructured, PPB"}
    app.attack.value = "LiRA"
    assert app.numbers.empty and not app.attacks()


def test_nothing_stored_is_an_offer(own_outputs: Any) -> None:
    app = explorer(STUDY, "slimming", 0.6, "Base", "LiRA")
    assert (
        app.picture.value == ""
        and offered(app)
        and "dense: not trained yet" in text(app.says.value)
    )


def test_a_click_trains_what_is_missing(own_outputs: Any) -> None:
    tiny = study(pool=120, width=2)
    app = explorer(tiny, "L1 structured", 0.5, "ADV", "LiRA")
    assert (
        "train 20 networks, about" in app.offer.train.description
    )  # dense, pruned, and both again with samples for ADV
    app.offer.train.click()
    assert text(app.offer.cost.value) == "" and text(app.says.value).count("AUC of LiRA") == 3
    assert app.figure.finding == text(app.says.value)
    app.defence.value = "PPB"
    assert "train 5 networks, about" in app.offer.train.description


# --- the figure -----------------------------------------------------------------------------------------------------


def test_the_figure_shows_the_same(app: Explorer) -> None:
    fig = app.figure
    axes = {ax.get_title(loc="left"): ax for ax in fig.axes}
    assert list(axes) == [PLANE, GAPS, GONE] and fig.finding == text(app.says.value)
    line = next(each for each in axes[PLANE].lines if each.get_label() == "L1 unstructured, Base")
    attacks = [
        STUDY.measured(STUDY.pruned("L1 unstructured", s, "Base"), "Conf")[1] for s in (0.6, 0.9)
    ]
    areas = [
        audit.auc(*map(store.read(each.key).arrays.get, ("scores", "member"))).mean()
        for each in attacks
    ]
    np.testing.assert_allclose(line.get_ydata(), areas)
    classes = registry.find(STUDY.setup.data.name).classes
    assert [each.get_text() for each in axes[GAPS].get_xticklabels()] == list(classes)
    drawn = {
        x: y
        for each in axes[GONE].lines
        if each.get_label() == "conv"
        for x, y in each.get_xydata()
    }
    assert drawn == pytest.approx({0: 0.5, 2: 0.6})
    assert [each.get_text() for each in axes[GONE].get_xticklabels()] == ["stem", "stage1", "head"]


def test_a_move_is_quick_and_leaves_nothing_behind(app: Explorer) -> None:
    app.sparsity.value = 0.9  # counts what it costs for the first time
    spent = []
    for sparsity in GRID:
        start = time.process_time()
        app.sparsity.value = sparsity
        spent.append(time.process_time() - start)
    assert median(spent) < 1 and not plt.get_fignums()


def test_an_answer_that_is_stored_is_read_and_drawn_once(work: list[str], app: Explorer) -> None:
    app.choose(defence="Base")
    answered(app, work, "sparsity", 0.9)


def test_every_picture_and_control_is_labelled(app: Explorer) -> None:
    for control in (app.pruner, app.sparsity, app.defence, app.attack):
        assert control.description
    assert (
        app.picture.value.startswith('<img alt="dense: test accuracy')
        and 'role="status"' in app.says.value
    )


def test_looking_at_what_is_stored_needs_no_torch(shelf: None) -> None:
    code = (
        "import sys; from tests.explore.test_pruning import STUDY, explorer\n"
        f"app = explorer(STUDY, 'L1 unstructured', 0.6, 'PPB', 'Conf', [{percent(0.65).split()[0]} / 100])\n"
        "app.figure; app.defence.value = 'Base'\n"
        "assert 'AUC of Conf' in app.says.value, app.says.value\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
