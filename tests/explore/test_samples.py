"""The samples explorer: who is in the window, who is exposed, which members look alike."""

from typing import Any

import numpy as np
import pytest
import torch

from leak_atlas import BadInput, audit
from leak_atlas.data import designs, readers
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.explore.exposed import MEMBERS, OTHERS, Scores, mean_ranks
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.samples import BASE, RANDOM, WINDOW, Samples
from leak_atlas.explore.shelf import Measured
from leak_atlas.localization.samples import member_ranks, nearest
from leak_atlas.recipe import RMR, Data, LiRA, Model, Schedule, Threshold, Window, WindowStudy
from leak_atlas.training.sampling import places
from tests.explore.conftest import offered, opens_without_torch, text, valid_figure

TARGETS, SHORT = 3, 6
ATTACKERS = {"LiRA": LiRA("offline_cdf"), "Conf": Threshold()}
PENALTY = RMR(share=0.2)


def study(data: str, network: Model, pool: int = 400) -> WindowStudy:
    return WindowStudy(
        Data(data, 8 if network.name == "resnet10" else None, joined=True),
        network,
        Schedule(2, 20),
        fine_tuning=SHORT,
        pool=pool,
        dev=20,
        targets=TARGETS,
        shadows=2,
        seed=0,
        precision="fp32",
        sparsity=0.6,
        rounds=2,
        judges=12,
        share=0.5,
        score_epochs=1,
    )


BITS = study("digits-bits", Model("fc", 16))
IMAGES = study("fashion-mnist-small", Model("resnet10", 2))
OF = Samples({"bits": BITS, "images": IMAGES}, ATTACKERS, PENALTY, ninths=3, step=1)
START = OF.start


def labels(of: WindowStudy) -> np.ndarray:
    return readers.load(of.data.name, of.data.pixels).labels


def ranking(of: WindowStudy) -> dict[str, np.ndarray]:
    """Scores of the pool, some of them equal."""
    index = designs.pool(of.setup.design, labels(of), of.data.parts[0])
    score = np.random.default_rng(1).normal(0.2, 0.1, len(index)).round(2)
    return {"index": index, "score": score}


def attack(of: WindowStudy, leak: float) -> dict[str, np.ndarray]:
    """Members score higher by `leak`."""
    roles = designs.roles(of.setup.design, labels(of), of.data.parts[0], TARGETS)
    index = np.stack([np.flatnonzero(np.isin(r, (Role.MEMBER, Role.NONMEMBER))) for r in roles])
    member = np.take_along_axis(roles, index, axis=1) == Role.MEMBER
    scores = np.random.default_rng(0).normal(size=member.shape) + leak * member
    thresholds = np.full(TARGETS, np.nan)
    return {"scores": scores, "member": member, "thresholds": thresholds, "index": index}


def put(of: WindowStudy, measured: Measured, leak: float) -> None:
    """Stores what such networks' measurements might have given."""
    signals, step = measured
    for i, each in enumerate(signals):
        store.write(each.key, each.record(), {"accuracy_test": np.array(0.8 + 0.01 * i)}, {})
    store.write(step.key, step.record(), attack(of, leak), {})


@pytest.fixture
def app(own_outputs: Any) -> Instrument:
    for name, of in (("bits", BITS), ("images", IMAGES)):
        for step in (of.ranking, of.ranking.shuffle()):
            store.write(step.key, step.record(), ranking(of), {})
        put(of, OF.measured(START | {"data": name})[BASE, None], 1.5)
    put(BITS, OF.measured(START)[WINDOW, None], 0.5)
    return Instrument(OF)


def test_networks_are_those_of_the_figures() -> None:
    """So that results of the batch are shown."""
    assert OF.window(START) == Window(3, 1)
    base, windowed = (networks[0] for networks in OF.measured(START).values())
    assert base == BITS.base.signals()[:TARGETS]
    assert windowed == BITS.windowed(Window(3, 1)).signals()[:TARGETS]
    other = START | {"defence": "SWMR", "order": "high-to-low", "width": "6/9", "step": "2"}
    defended = BITS.windowed(Window(6, 2, "high-to-low"), penalty=PENALTY)
    assert OF.measured(other)[WINDOW, None][0] == defended.signals()[:TARGETS]
    shuffled = BITS.windowed(Window(3, 1), BITS.ranking.shuffle())
    assert OF.measured(START | {"order": RANDOM})[WINDOW, None][0] == shuffled.signals()[:TARGETS]


def test_data_without_pictures_are_refused() -> None:
    glosses = study("wordnet-glosses", Model("transformer", 16))
    with pytest.raises(BadInput, match="of which there is no picture"):
        Samples({"glosses": glosses}, ATTACKERS, PENALTY, 2, 1)


@pytest.mark.parametrize("order", ["low-to-high", "high-to-low"])
def test_who_is_in_the_window_is_who_is_trained_on(order: Any) -> None:
    scores = ranking(BITS)
    ranks = member_ranks(BITS, scores, order)[1]
    inside = ranks > 0
    label = labels(BITS)[scores["index"][inside]]
    given = torch.from_numpy(scores["score"][inside]), torch.from_numpy(label)
    assert inside.sum() == 90
    for epoch in range(SHORT):
        trained = places(Window(3, 2, order), *given, epoch).numpy()
        window = [2 * epoch + 1, 2 * epoch + 2, 2 * epoch + 3]
        assert {*trained} == {*np.flatnonzero(np.isin(ranks[inside], window))}


def test_the_mean_exposure_of_members_is_the_auc() -> None:
    scored, index = attack(BITS, 1.0), ranking(BITS)["index"]
    exposed = Scores.of(scored, index)
    shares = exposed.ranks()
    means = mean_ranks(exposed, shares)
    in_pool = member_ranks(BITS, ranking(BITS)) > 0
    areas = shares.mean(axis=1, where=in_pool)
    np.testing.assert_allclose(areas, 100 * audit.auc(scored["scores"], scored["member"]))
    assert np.nanmean(means[MEMBERS]) > 70 and np.nanmean(means[OTHERS]) == pytest.approx(50, abs=5)


def test_a_member_has_its_rank_its_score_and_its_exposure(app: Instrument) -> None:
    scores, rows = ranking(BITS), app.rows["members"]
    classes = {row["sample"]: row["class"] for row in app.rows["pictures"]}
    row = rows[17]
    at = scores["index"] == int(row["sample"].rpartition(" ")[2])
    exposed = Scores.of(attack(BITS, 1.5), scores["index"])
    as_member = mean_ranks(exposed, exposed.ranks())[MEMBERS]
    assert row[f"{BASE} in"] == as_member[at].round() and row["score"] == scores["score"][at]
    same = [each for each in rows if classes[each["sample"]] == classes[row["sample"]]]
    below = [each["score"] for each in same if each["rank"] < row["rank"]]
    assert len(below) == row["rank"] - 1 and max(below, default=0) <= row["score"]
    visits = Window(3, 1).visits(len(app.rows["ranks"]), SHORT)
    assert row["visits"] == visits[row["rank"] - 1]


def test_neighbours_are_the_nearest_samples() -> None:
    x = np.random.default_rng(0).random((30, 4, 4, 1))
    distances = np.square(x - x[5]).sum(axis=(1, 2, 3))
    np.testing.assert_array_equal(nearest(x, 6)[5], np.argsort(distances)[1:7])


def test_it_says_who_is_visited_and_who_is_exposed(app: Instrument) -> None:
    said = text(app.says.value)
    area = audit.audit(attack(BITS, 1.5))["auc"]
    assert f"In epoch 4 of {SHORT} of a round the window holds ranks 4 to 6" in said
    assert f"attack AUC {area.value:.3f}" in said and "never visited, Base: " in said
    app.choose(epoch=1)
    assert "holds ranks 1 to 3" in text(app.says.value) and not offered(app)


def test_what_is_missing_is_offered_and_the_rest_shown(app: Instrument) -> None:
    app.choose(data="images")
    said = text(app.says.value)
    assert "Base: test accuracy" in said and "window: not trained yet" in said and offered(app)
    assert {row["group"] for row in app.rows["exposure"]} == {BASE}
    store.discard(BITS.ranking.key)
    app = Instrument(Samples({"bits": BITS}, ATTACKERS, PENALTY, 3, 1))
    assert "memorization scores are not stored yet" in text(app.says.value)


def test_the_figure_is_valid(app: Instrument) -> None:
    valid_figure(app, most=700 * len(app.rows["members"]))


def test_it_opens_without_torch() -> None:
    opens_without_torch("samples")
