"""The explorer of training time: where samples are at each epoch, how hard they are; a click alone
computes.
"""

import subprocess
import sys
import time as clock
from functools import cache
from statistics import median
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from leak_atlas import BadInput
from leak_atlas.attacks import signals as scores
from leak_atlas.data import designs, readers
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.explore.shelf import Shelf
from leak_atlas.explore.time import (
    FINAL,
    FORMS,
    LOSS,
    MOVED,
    PLANE,
    RATES,
    RULES,
    Explorer,
    Time,
    explorer,
    losses,
    seen,
)
from leak_atlas.localization import over_time, trajectories
from leak_atlas.recipe import RMIA, Data, LiRA, Model, RandomHalves, Schedule, Setup
from tests.explore.conftest import answered, text

POOL, NETWORKS, JUDGES, EPOCHS = 100, 8, 6, (0, 1, 2, 4)
ATTACKERS = {"LiRA": LiRA(), "RMIA": RMIA()}


def study(data: str = "fashion-mnist-small", **fields: Any) -> Time:
    network = {"digits-bits": Model("fc", 8), "wordnet-glosses": Model("transformer", 16)}.get(
        data, Model("cnn2", 2)
    )
    what, design = Data(data, 8 if network.name == "cnn2" else None), RandomHalves(POOL, test=20)
    setup = Setup(what, design, network, Schedule(EPOCHS[-1], 25), NETWORKS)
    return Time(setup, EPOCHS, ATTACKERS, JUDGES, 0.5, **fields)


IMAGES, BITS = study(), study("digits-bits")
STUDIES = {"images": IMAGES, "bits": BITS}


@cache
def roles(of: Time, row: int, design: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = of.setup.data
    labels = readers.load(data.name, data.pixels).labels
    index = designs.used(design, labels, data.parts[0])
    return designs.roles(design, labels, data.parts[0], (row,))[0, index], index, labels[index]


def put(of: Time, attack: str, leak: float = 3.0) -> None:
    """Stores what such networks might have said: members are found from the second checkpoint on,
    hard ones most.
    """
    rng = np.random.default_rng(0)
    hard = np.random.default_rng(1).random(10_000)
    for steps in (of.answers, of.judged):
        for at, each in enumerate(steps.values()):
            for signals in each:
                role, index, labels = roles(of, signals.of.training.row, signals.of.training.design)
                logits = 0.1 * rng.normal(size=(len(role), 10)).astype(np.float32)
                logits[np.arange(len(role)), labels] += at * (
                    1 - hard[index] * (role != Role.MEMBER)
                )
                arrays = {"logits": logits, "labels": labels, "index": index, "role": role}
                store.write(signals.key, signals.record(), arrays, {})
    for permuted in (None, 0):
        for at, step in enumerate(of.attack_over_time(attack, permuted).values()):
            found = [
                roles(of, target.training.row, target.training.design) for target in step.targets
            ]
            pool = np.isin(found[0][0], (Role.MEMBER, Role.NONMEMBER))
            member = np.stack([role[pool] == Role.MEMBER for role, *_ in found])
            shift = leak * at * hard[found[0][1][pool]] * (permuted is None)
            arrays = {"scores": rng.normal(size=member.shape) + shift * member, "member": member}
            arrays |= {"index": found[0][1][pool], "thresholds": np.full(NETWORKS, np.nan)}
            store.write(step.key, step.record(), arrays, {})


@pytest.fixture
def shelf(own_outputs: Any) -> None:
    put(IMAGES, "LiRA")


@pytest.fixture
def app(shelf: None) -> Explorer:
    return explorer(STUDIES, "LiRA")


# --- the recipes ----------------------------------------------------------------------------------------------------


def test_networks_are_those_of_the_figures() -> None:
    """So that what the batch has stored is shown; judges are nobody's shadows."""
    trained = IMAGES.setup.trained()
    attacks, null, answers, judged = IMAGES.steps("LiRA")
    assert attacks == [*trained.attack_over_time(LiRA(), EPOCHS).values()]
    assert null == [*trained.attack_over_time(LiRA(), EPOCHS, 0).values()]
    assert answers == [trained.at(epoch or "init").signals() for epoch in EPOCHS]
    judges = IMAGES.setup.memorization(JUDGES, 0.5).models
    assert [each.of for each in judged[-1]] == list(judges)
    assert not {each.key for each in judges} & {each.key for each in trained}


def test_what_is_not_offered_is_named() -> None:
    with pytest.raises(BadInput, match="no attack 'LiR' to look at; did you mean 'LiRA'"):
        explorer(STUDIES, "LiR")
    with pytest.raises(
        BadInput, match="no threshold '10 % TPR' to look at; did you mean '10 % FPR'"
    ):
        explorer(STUDIES, "LiRA", "10 % TPR")
    with pytest.raises(BadInput, match="of which there is no picture"):
        study("wordnet-glosses")


# --- the numbers ----------------------------------------------------------------------------------------------------


def test_losses_are_means_over_those_who_trained_on_a_sample_and_those_who_did_not(
    shelf: None,
) -> None:
    read = {
        epoch: [store.read(step.key).arrays for step in each]
        for epoch, each in IMAGES.answers.items()
    }
    index = store.read(IMAGES.attack_over_time("LiRA")[4].key).arrays["index"]
    found = losses(read, index)
    assert found.shape == (len(EPOCHS), 2, POOL)
    for side, wanted in enumerate((Role.NONMEMBER, Role.MEMBER)):
        own = []
        for one in read[4]:
            (at,) = np.flatnonzero(one["index"] == index[7])
            if one["role"][at] == wanted:
                own.append(scores.loss(one["logits"][at], one["labels"][at]))
        assert own and found[-1, side, 7] == pytest.approx(np.mean(own))


def test_samples_are_told_apart_as_the_statistics_do(shelf: None) -> None:
    one = seen(IMAGES, Shelf(), "LiRA", "10 % FPR", "counted")
    assert one is not None and one.null is not None
    course = over_time.trajectory(
        {e: store.read(s.key).arrays for e, s in IMAGES.attack_over_time("LiRA").items()}
    )
    np.testing.assert_array_equal(one.path, trajectories.plane(course, 0.1))
    assert one.agreement(FINAL, -1) == pytest.approx(1) and one.agreement("memorization", -1) > 0.3
    assert sorted(one.rank(FINAL))[0] >= 0 and one.rank("mean loss").max() <= 1
    assert one.travelled(one.path) == pytest.approx(
        np.linalg.norm(np.diff(one.path, axis=0), axis=1).sum(axis=0).mean()
    )


# --- the app --------------------------------------------------------------------------------------------------------


def test_it_says_where_samples_are_and_how_far_noise_travels(app: Explorer) -> None:
    said = text(app.says.value)
    one = seen(IMAGES, Shelf(), "LiRA", "10 % FPR", "counted")
    assert one is not None and one.null is not None
    assert "Epoch 4: LiRA with its threshold at 10 % FPR" in said
    assert f"a mean rate of {one.path[-1, 0].mean():.3f} (FPR)" in said
    assert f"with membership permuted by {trajectories.displacement(one.null):.3f}" in said
    assert (
        "over the 8 networks" in said and "steps of 0.250, standard errors of up to 0.250" in said
    )
    assert text(app.offer.cost.value) == "" and app.offer.train.layout.display == "none"
    app.choose(colour="mean loss", epoch=0)
    assert "Before training" in text(app.says.value) and "rank by mean loss" in text(app.says.value)


def test_a_sample_is_chosen_by_its_number_or_from_the_list(app: Explorer) -> None:
    assert len(app.moved.options) == MOVED
    far = [float(label.rpartition(" ")[2]) for label, _ in app.moved.options]
    assert far == sorted(far, reverse=True)
    app.moved.value = app.moved.options[3][1]
    assert app.sample.value == app.moved.options[3][
        1
    ] and f"Sample {app.sample.value} of 100" in text(app.card.data)
    before, shown = app.picture.value, {value for _, value in app.moved.options}
    app.sample.value = next(each for each in range(POOL) if each not in shown)
    assert app.moved.value is None and app.picture.value != before
    assert app.card.data.count("<img") == 1 and app.card.data.count("<tr>") == 1 + len(
        app.colour.options
    )
    app.sample.value = 10_000
    assert app.sample.value == POOL - 1
    app.reset.click()
    assert app.sample.value == 0 and app.epoch.value == len(EPOCHS) - 1


def test_every_choice_can_be_looked_at(app: Explorer, asked: list[Any]) -> None:
    for name, values in (
        ("rule", [*RULES][:-3:-1]),
        ("form", FORMS),
        ("colour", app.colour.options[::4]),
    ):
        for value in values:
            app.choose(**{name: value})
            assert app.picture.value and app.says.value
    assert not asked


def test_what_is_missing_says_its_cost_and_a_click_asks_for_it(
    app: Explorer, asked: list[Any]
) -> None:
    app.attack.value = "RMIA"
    assert "The course of RMIA is not there yet" in text(app.says.value) and app.picture.value == ""
    app.data.value = "bits"
    assert f"train {NETWORKS + JUDGES} networks, about" in app.offer.train.description
    app.offer.train.click()
    assert asked[0][0] == BITS.steps("RMIA")
    with pytest.raises(BadInput, match="not there yet"):
        _ = app.figure


def test_what_is_half_there_is_shown(shelf: None) -> None:
    store.discard(IMAGES.judged[2][0].key)
    app = explorer(STUDIES, "LiRA")
    assert "How hard samples are is not known yet" in text(app.says.value) and app.picture.value
    assert app.colour.options == (FINAL,) and "train" in app.offer.train.description
    put(IMAGES, "LiRA")
    app.computed("")
    assert "mean loss" in app.colour.options and "not known" not in text(app.says.value)


def test_the_figure_shows_the_same(app: Explorer) -> None:
    app.choose(epoch=2, sample=5)
    one = app._found
    assert one is not None
    plane, loss, rates, _ = app.figure.axes
    assert [ax.get_title(loc="left") for ax in (plane, loss, rates)] == [PLANE, LOSS, RATES]
    np.testing.assert_allclose(
        np.sort(plane.collections[0].get_offsets()[:, 1]), np.sort((one.path[2] + one.aside)[1])
    )
    np.testing.assert_allclose(loss.lines[-1].get_ydata(), one.loss[:, 1, 5])
    np.testing.assert_allclose(rates.lines[1].get_ydata(), one.path[:, 1].mean(axis=1))
    assert app.figure.finding == text(app.says.value).replace("&#x27;", "'")


def test_a_move_is_quick_and_leaves_nothing_behind(app: Explorer) -> None:
    spent, pictures = [], set()
    for epoch in (0, 1, 2, 3):
        start = clock.process_time()
        app.epoch.value = epoch
        spent.append(clock.process_time() - start)
        pictures.add(app.picture.value)
    assert median(spent) < 0.5 and len(pictures) == 4 and not plt.get_fignums()


def test_an_answer_that_is_stored_is_read_and_drawn_once(work: list[str], app: Explorer) -> None:
    answered(app, work, "rule", "1 % FPR")


def test_every_picture_and_control_is_labelled(app: Explorer) -> None:
    for control in (
        app.data,
        app.attack,
        app.rule,
        app.form,
        app.colour,
        app.epoch,
        app.sample,
        app.moved,
    ):
        assert control.description
    assert (
        app.picture.value.startswith('<img alt="Epoch 4: LiRA')
        and 'role="status"' in app.says.value
    )


def test_a_click_trains_what_is_missing(own_outputs: Any) -> None:
    app = explorer({"bits": BITS}, "LiRA")
    assert (
        f"train {NETWORKS + JUDGES} networks, about" in app.offer.train.description
        and app.picture.value == ""
    )
    app.offer.train.click()
    assert (
        text(app.offer.cost.value) == ""
        and "Epoch 4: LiRA" in text(app.says.value)
        and "memorization" in app.card.data
    )


def test_looking_at_what_is_stored_needs_no_torch(shelf: None) -> None:
    code = (
        "import sys; from leak_atlas.explore.time import *; from leak_atlas.recipe import *\n"
        "data, design = Data('fashion-mnist-small', 8), RandomHalves(100, test=20)\n"
        "setup = Setup(data, design, Model('cnn2', 2), Schedule(4, 25), 8)\n"
        "app = explorer({'images': Time(setup, (0, 1, 2, 4), {'LiRA': LiRA()}, 6, 0.5)}, 'LiRA')\n"
        "app.figure; app.epoch.value = 2\n"
        "assert 'LiRA' in app.says.value, app.says.value\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
