"""The time explorer: its rows say what the statistics say, of what is stored alone."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from leak_atlas import BadInput
from leak_atlas.attacks import signals as scores
from leak_atlas.audit import rank_correlation
from leak_atlas.data import designs, readers
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.time import FINAL, RULES, TRAINED, UNTRAINED, Time
from leak_atlas.localization import over_time, trajectories
from leak_atlas.localization.difficulty import difficulty
from leak_atlas.recipe import RMIA, Data, LiRA, Model, Schedule, TrajectoryStudy
from tests.explore.conftest import offered, opens_without_torch, text, valid_figure

POOL, NETWORKS, JUDGES, EPOCHS = 100, 8, 6, (0, 1, 2, 4)
ATTACKERS = {"LiRA": LiRA(), "RMIA": RMIA()}


def study(data: str = "fashion-mnist-small") -> TrajectoryStudy:
    network = {"digits-bits": Model("fc", 8), "wordnet-glosses": Model("transformer", 16)}.get(
        data, Model("cnn2", 2)
    )
    pixels = 8 if network.name == "cnn2" else None
    return TrajectoryStudy(
        Data(data, pixels), network, Schedule(EPOCHS[-1], 25), POOL, 20, NETWORKS, EPOCHS
    )


IMAGES, BITS = study(), study("digits-bits")
OF = Time({"images": IMAGES, "bits": BITS}, ATTACKERS, JUDGES, 0.5)


@cache
def roles(of: TrajectoryStudy, row: int, design: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = of.setup.data
    labels = readers.load(data.name, data.pixels).labels
    index = designs.used(design, labels, data.parts[0])
    return designs.roles(design, labels, data.parts[0], (row,))[0, index], index, labels[index]


def put(leak: float = 3.0) -> None:
    """Stores what such networks might have given: an attack identifies members from the second
    checkpoint on, hard ones most.
    """
    rng = np.random.default_rng(0)
    hard = np.random.default_rng(1).random(10_000)
    of = IMAGES
    for steps in (OF.trained("images"), OF.judged("images")):
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
        for at, step in enumerate(of.attacks(permuted=permuted).values()):
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
    put()
    return Instrument(OF)


def plane(rule: Any = 0.1, permuted: int | None = None) -> np.ndarray:
    stored = {e: store.read(s.key).arrays for e, s in IMAGES.attacks(permuted=permuted).items()}
    return trajectories.plane(over_time.trajectory(stored), rule)


def test_data_without_pictures_are_refused() -> None:
    with pytest.raises(BadInput, match="of which there is no picture"):
        Time({"glosses": study("wordnet-glosses")}, ATTACKERS, JUDGES, 0.5)


@pytest.mark.parametrize("threshold", ["10 % FPR", [*RULES][-1]])
def test_a_place_in_the_plane_is_what_the_statistics_say(app: Instrument, threshold: str) -> None:
    app.choose(threshold=threshold)
    expected = plane(RULES[threshold])
    shown = np.array([[row["FPR"], row["TPR"]] for row in app.rows["samples"]])
    np.testing.assert_allclose(shown, expected.transpose(2, 1, 0), atol=1e-3)


def test_losses_are_means_over_networks_on_either_side(app: Instrument) -> None:
    row = app.rows["samples"][7]
    index = int(row["sample"].rpartition(" ")[2])
    for column, wanted in ((UNTRAINED, Role.NONMEMBER), (TRAINED, Role.MEMBER)):
        losses = []
        for step in IMAGES.signals()[4]:
            signals = store.read(step.key).arrays
            (at,) = np.flatnonzero(signals["index"] == index)
            if signals["role"][at] == wanted:
                losses.append(scores.loss(signals["logits"][at], signals["labels"][at]))
        assert losses and row[column][-1] == pytest.approx(np.mean(losses), abs=1e-3)


def test_it_says_how_exposed_samples_are_and_how_hardness_goes_with_risk(app: Instrument) -> None:
    path, said = plane(), text(app.says.value)
    high = (trajectories.states(path)[-1] == trajectories.HIGH).mean()
    assert f"Epoch 4, LiRA at 10 % FPR: mean FPR {path[-1, 0].mean():.2f}" in said
    assert f"{100 * high:.3g} % of the samples are at high risk" in said
    assert not offered(app)
    app.choose(colour="memorization", epoch=2)
    place = app.rows["mean"][0]["measures"].index("memorization")
    ranks = [row["rank"][place] for row in app.rows["samples"]]
    rho = rank_correlation(ranks, trajectories.advantage(path)[2])
    assert f"in this epoch with memorization: {rho:.2f}" in text(app.says.value)


def test_it_begins_with_a_sample_of_the_highest_risk(app: Instrument) -> None:
    (chosen,) = (r for r in app.rows["samples"] if r["sample"] == app.state["sample"])
    final = trajectories.advantage(plane())[-1]
    assert chosen["TPR"][-1] - chosen["FPR"][-1] == pytest.approx(final.max(), abs=1e-3)


def test_ranks_order_samples_by_each_measure(app: Instrument) -> None:
    judges = OF.judged("images")
    outputs = {e: [store.read(s.key).arrays for s in own] for e, own in judges.items()}
    hardness = difficulty(outputs, early=EPOCHS[2])
    index = [int(row["sample"].rpartition(" ")[2]) for row in app.rows["samples"]]
    values = hardness["memorization"][np.searchsorted(hardness["index"], index)]
    measures = app.rows["mean"][0]["measures"]
    place = measures.index("memorization")
    ranks = [row["rank"][place] for row in app.rows["samples"]]
    assert measures[0] == FINAL and rank_correlation(ranks, values) == pytest.approx(1)
    assert min(ranks) == 50 / POOL and max(ranks) == 100 - 50 / POOL


def test_what_is_missing_is_offered(app: Instrument) -> None:
    app.choose(data="bits", attack="RMIA")
    assert "RMIA over time is not stored yet" in text(app.says.value) and not app.rows
    assert f"train {NETWORKS + JUDGES} networks, about" in app.offer.train.description


def test_without_judges_there_is_no_difficulty(app: Instrument) -> None:
    judges = OF.judged("images")
    store.discard(judges[2][0].key)
    app = Instrument(Time({"images": IMAGES}, ATTACKERS, JUDGES, 0.5))
    assert app.rows["mean"][0]["measures"] == [FINAL] and offered(app)


def test_rates_of_each_epoch_are_exported(app: Instrument) -> None:
    (table,) = app.of.tables(app.rows).values()
    assert len(table) == POOL * len(EPOCHS) and {"sample", "epoch", "FPR", "TPR"} < {*table}


def test_the_figure_is_valid(app: Instrument) -> None:
    valid_figure(app, most=1200 * POOL)


def test_it_opens_without_torch() -> None:
    opens_without_torch("time")
