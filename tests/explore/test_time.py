"""The time explorer: its rows say what the statistics say, of what is stored alone."""

import json
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
import vl_convert
from scipy.stats import rankdata

from leak_atlas import BadInput
from leak_atlas.attacks import signals as scores
from leak_atlas.data import designs, readers
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.explore import instrument, time
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.time import FINAL, FORMS, RULES, Study
from leak_atlas.localization import over_time, trajectories
from leak_atlas.localization.difficulty import difficulty
from leak_atlas.recipe import RMIA, Data, LiRA, Model, RandomHalves, Schedule, Setup
from tests.explore.conftest import offered, text

POOL, NETWORKS, JUDGES, EPOCHS = 100, 8, 6, (0, 1, 2, 4)
ATTACKERS = {"LiRA": LiRA(), "RMIA": RMIA()}


def study(data: str = "fashion-mnist-small") -> Study:
    network = {"digits-bits": Model("fc", 8), "wordnet-glosses": Model("transformer", 16)}.get(
        data, Model("cnn2", 2)
    )
    what, design = Data(data, 8 if network.name == "cnn2" else None), RandomHalves(POOL, test=20)
    setup = Setup(what, design, network, Schedule(EPOCHS[-1], 25), NETWORKS)
    return Study(setup, EPOCHS, ATTACKERS, JUDGES, 0.5)


IMAGES, BITS = study(), study("digits-bits")


@cache
def roles(of: Study, row: int, design: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = of.setup.data
    labels = readers.load(data.name, data.pixels).labels
    index = designs.used(design, labels, data.parts[0])
    return designs.roles(design, labels, data.parts[0], (row,))[0, index], index, labels[index]


def put(of: Study, attack: str, leak: float = 3.0) -> None:
    """Stores what such networks might have given: an attack identifies members from the second
    checkpoint on, hard ones most.
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
        for at, step in enumerate(of.attacks(attack, permuted).values()):
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
def app(own_outputs: Any) -> Instrument:
    put(IMAGES, "LiRA")
    return time.explorer({"images": IMAGES, "bits": BITS}, "LiRA")


def plane(rule: Any = 0.1, permuted: int | None = None, form: Any = "counted") -> np.ndarray:
    stored = {e: store.read(s.key).arrays for e, s in IMAGES.attacks("LiRA", permuted).items()}
    return trajectories.plane(over_time.trajectory(stored), rule, form)


def test_networks_are_those_of_the_figures() -> None:
    """So that results of the batch are shown; judges are nobody's shadow models."""
    trained = IMAGES.setup.trained()
    keys = {step.key for step in IMAGES.steps("LiRA")}
    for permuted in (None, 0):
        attacks = trained.attack_over_time(LiRA(), EPOCHS, permuted).values()
        assert keys.issuperset(step.key for step in attacks)
    assert IMAGES.answers == {e: trained.at(e or "init").signals() for e in EPOCHS}
    judges = IMAGES.setup.memorization(JUDGES, 0.5).models
    assert not {each.key for each in judges} & {each.key for each in trained}


def test_what_is_not_offered_is_named() -> None:
    with pytest.raises(BadInput, match="there is no attack 'LiR'; did you mean 'LiRA'"):
        time.explorer({"images": IMAGES}, "LiR")
    with pytest.raises(BadInput, match="of which there is no picture"):
        study("wordnet-glosses")


@pytest.mark.parametrize(
    ("threshold", "rates"), [("10 % FPR", "counted"), ([*RULES][-1], [*FORMS][1])]
)
def test_a_place_in_the_plane_is_what_the_statistics_say(
    app: Instrument, threshold: str, rates: str
) -> None:
    app.choose(threshold=threshold, rates=rates)
    expected = plane(RULES[threshold], form=FORMS[rates])
    shown = np.array([[row["fpr"], row["tpr"]] for row in app.rows["samples"]])
    np.testing.assert_allclose(shown, expected.transpose(2, 1, 0), atol=1e-3)
    risk = np.array([row["risk"] for row in app.rows["samples"]]).T
    np.testing.assert_array_equal(risk, trajectories.states(expected))


def test_losses_are_means_over_networks_on_either_side(app: Instrument) -> None:
    row = app.rows["samples"][7]
    index = int(row["sample"].rpartition(" ")[2])
    for column, wanted in (("loss_without", Role.NONMEMBER), ("loss_with", Role.MEMBER)):
        losses = []
        for step in IMAGES.answers[4]:
            signals = store.read(step.key).arrays
            (at,) = np.flatnonzero(signals["index"] == index)
            if signals["role"][at] == wanted:
                losses.append(scores.loss(signals["logits"][at], signals["labels"][at]))
        assert losses and row[column][-1] == pytest.approx(np.mean(losses), rel=0.01)


def test_it_says_how_exposed_samples_are_and_how_far_noise_moves_them(app: Instrument) -> None:
    said = text(app.says.value)
    path, null = plane(), plane(permuted=0)
    assert f"Epoch 4, LiRA at 10 % FPR: mean FPR {path[-1, 0].mean():.2f}" in said
    length, noise = (
        np.linalg.norm(np.diff(each, axis=0), axis=1).sum(axis=0).mean() for each in (path, null)
    )
    assert f"length of {length:.2f}, {noise:.2f} with permuted membership labels" in said
    assert "over about 4 networks: its standard error is up to 0.25" in said
    assert not offered(app)
    app.choose(colour="memorization", epoch=0)
    said = text(app.says.value)
    assert "Before training" in said and "in this epoch with memorization" in said


def test_it_begins_with_the_sample_that_moves_furthest(app: Instrument) -> None:
    path = plane()
    moved = np.linalg.norm(path[-1] - path[0], axis=0)
    chosen = next(r for r in app.rows["samples"] if r["sample"] == app.state["sample"])
    assert chosen["moved"] == pytest.approx(moved.max(), abs=1e-3)


def test_ranks_order_samples_by_each_measure(app: Instrument) -> None:
    outputs = {e: [store.read(s.key).arrays for s in own] for e, own in IMAGES.judged.items()}
    hardness = difficulty(outputs, early=EPOCHS[2])
    index = [int(row["sample"].rpartition(" ")[2]) for row in app.rows["samples"]]
    at = np.searchsorted(hardness["index"], index)
    measures = [row["measure"] for row in app.rows["measures"]]
    assert measures[0] == FINAL and len(measures) > 10
    for place, measure in enumerate(measures[1:], start=1):
        rank = [row["rank"][place] for row in app.rows["samples"]]
        below = (rankdata(hardness[measure][at]) - 1) / (POOL - 1)
        np.testing.assert_allclose(rank, below, atol=1e-3)


def test_what_is_missing_is_offered(app: Instrument) -> None:
    app.choose(data="bits", attack="RMIA")
    assert "RMIA over time is not stored yet" in text(app.says.value) and not app.rows
    assert f"train {NETWORKS + JUDGES} networks, about" in app.offer.train.description


def test_without_judges_there_is_no_difficulty(app: Instrument) -> None:
    store.discard(IMAGES.judged[2][0].key)
    app = time.explorer({"images": IMAGES}, "LiRA")
    assert app.rows["measures"] == [{"measure": FINAL}] and offered(app)


def test_rates_of_each_epoch_are_exported(app: Instrument) -> None:
    (table,) = app.of.tables(app.state, app.rows).values()
    assert len(table) == POOL * len(EPOCHS) and {"sample", "epoch", "fpr", "tpr"} < {*table}


@pytest.mark.parametrize("narrow", ["wide", "narrow"])
def test_the_figure_is_valid(app: Instrument, narrow: str) -> None:
    shown = instrument.figure(app.of, app.state, app.rows)
    assert len(json.dumps(shown["rows"])) < 1200 * POOL
    compiled = vl_convert.vegalite_to_vega(shown[narrow], vl_version=instrument.VEGA_LITE)
    signals = {each["name"] for each in compiled["signals"]}
    assert {each["signal"] for each in shown["pointers"]} <= signals


def test_it_opens_without_torch() -> None:
    code = "import sys; from leak_atlas.explore import time; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
