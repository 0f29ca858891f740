"""The samples explorer: who is in the window, who is exposed, which members look alike."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
import vl_convert

from leak_atlas import BadInput, audit
from leak_atlas.data import designs
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.explore import instrument
from leak_atlas.explore.instrument import Instrument
from leak_atlas.explore.samples import BASE, NEIGHBOURS, RANDOM, WINDOW, Pool, Samples, exposure
from leak_atlas.explore.shelf import Measured
from leak_atlas.recipe import RMR, Data, LiRA, Model, Schedule, Threshold, Window, WindowStudy
from leak_atlas.training.sampling import places
from tests.explore.conftest import offered, text

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
START = {choice.name: choice.start for choice in OF.choices}


def ranking(of: WindowStudy) -> dict[str, np.ndarray]:
    """Scores of the pool, some of them equal."""
    index = designs.pool(of.setup.design, Pool(of).data.labels, of.data.parts[0])
    score = np.random.default_rng(1).normal(0.2, 0.1, len(index)).round(2)
    return {"index": index, "score": score}


def attack(of: WindowStudy, leak: float) -> dict[str, np.ndarray]:
    """Members score higher by `leak`."""
    roles = Pool(of).roles
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
        put(of, OF.measured(START | {"data": name})[BASE], 1.5)
    put(BITS, OF.measured(START)[WINDOW], 0.5)
    return Instrument(OF)


def test_networks_are_those_of_the_figures() -> None:
    """So that results of the batch are shown."""
    assert OF.window(START) == Window(3, 1)
    base, windowed = (networks[0] for networks in OF.measured(START).values())
    assert base == BITS.base.signals()[:TARGETS]
    assert windowed == BITS.windowed(Window(3, 1)).signals()[:TARGETS]
    other = START | {"defence": "SWMR", "order": "high-to-low", "width": "6/9", "step": "2"}
    defended = BITS.windowed(Window(6, 2, "high-to-low"), penalty=PENALTY)
    assert OF.measured(other)[WINDOW][0] == defended.signals()[:TARGETS]
    shuffled = BITS.windowed(Window(3, 1), BITS.ranking.shuffle())
    assert OF.measured(START | {"order": RANDOM})[WINDOW][0] == shuffled.signals()[:TARGETS]


def test_published_windows_are_offered() -> None:
    """Of 39 members a class: 2/9, 4/9 and 6/9 of them."""
    of = Samples({"bits": study("digits-bits", Model("fc", 16), 1600)}, ATTACKERS, PENALTY, 2, 1)
    widths = [of.window(START | {"width": f"{ninths}/9"}).width for ninths in (2, 4, 6)]
    assert widths == [9, 17, 26]


def test_data_without_pictures_are_refused() -> None:
    glosses = study("wordnet-glosses", Model("transformer", 16))
    with pytest.raises(BadInput, match="of which there is no picture"):
        Samples({"glosses": glosses}, ATTACKERS, PENALTY, 2, 1)


@pytest.mark.parametrize("order", ["low-to-high", "high-to-low"])
def test_who_is_in_the_window_is_who_is_trained_on(order: Any) -> None:
    pool, scores = Pool(BITS), ranking(BITS)
    members = pool.members(1, scores, scores, order)
    inside = np.sort(members["index"].to_numpy())
    own = torch.from_numpy(scores["score"][np.searchsorted(scores["index"], inside)])
    label = torch.from_numpy(pool.data.labels[inside])
    assert (pool.roles[1, inside] == Role.MEMBER).all() and len(inside) == 90
    for epoch in range(SHORT):
        now = inside[places(Window(3, 2, order), own, label, epoch).numpy()]
        in_window = members["rank"].between(2 * epoch, 2 * epoch + 2)
        assert {*now} == {*members["index"][in_window]}


def test_exposure_is_the_share_of_non_members_below() -> None:
    one = {"scores": np.array([[1.0, 3, 2, 2]]), "member": np.array([[False, False, True, True]])}
    np.testing.assert_allclose(exposure(one), [[0.25, 0.75, 0.5, 0.5]])
    many = attack(BITS, 1.0)
    means = [s[member].mean() for s, member in zip(exposure(many), many["member"], strict=True)]
    np.testing.assert_allclose(means, audit.auc(many["scores"], many["member"]))


def test_a_member_has_its_rank_its_score_and_its_exposure(app: Instrument) -> None:
    scored, scores = attack(BITS, 1.5), ranking(BITS)
    rows = app.rows["members"]
    row = rows[17]
    at = int(row["sample"].rpartition(" ")[2])
    own = scored["index"] == at
    means = {
        "in": exposure(scored)[own & scored["member"]],
        "out": exposure(scored)[own & ~scored["member"]],
    }
    for side, values in means.items():
        expected = pytest.approx(values.mean(), abs=1e-3) if len(values) else None
        assert row[f"{BASE} {side}"] == expected
    assert row["score"] == scores["score"][scores["index"] == at][0]
    below = [r for r in rows if r["class"] == row["class"] and r["rank"] < row["rank"]]
    assert len(below) == row["rank"] - 1 and all(r["score"] <= row["score"] for r in below)


def test_neighbours_are_the_nearest_members(app: Instrument) -> None:
    rows = app.rows["members"]
    index = [int(row["sample"].rpartition(" ")[2]) for row in rows]
    x = Pool(BITS).data.x[index].astype(float)
    far = np.linalg.norm(x - x[5], axis=1)
    far[5] = np.inf
    near = [[row["sample"] for row in rows].index(each) for each in rows[5]["near"]]
    np.testing.assert_allclose(far[near], np.sort(far)[:NEIGHBOURS], rtol=1e-6)


def test_visits_are_the_windows(app: Instrument) -> None:
    ranks = app.rows["ranks"]
    for epoch in range(SHORT):
        shown = [row["visits"][epoch] for row in ranks]
        assert shown == Window(3, 1).visits(len(ranks), epoch + 1)


def test_it_says_who_is_visited_and_who_is_exposed(app: Instrument) -> None:
    said = text(app.says.value)
    area = audit.audit(attack(BITS, 1.5))["auc"]
    assert f"In epoch 4 of {SHORT} of a round the window holds ranks 4 to 6 of each class" in said
    assert f"AUC of LiRA {area:.3f}" in said and "among ranks never visited" in said
    app.choose(epoch=1)
    assert "holds ranks 1 to 3" in text(app.says.value) and not offered(app)


def test_what_is_missing_is_offered_and_the_rest_shown(app: Instrument) -> None:
    app.choose(data="images")
    said = text(app.says.value)
    assert "Base: test accuracy" in said and "RSW (window) is not stored yet" in said
    assert {row["variant"] for row in app.rows["parts"]} == {BASE} and offered(app)
    store.discard(BITS.ranking.key)
    app = Instrument(Samples({"bits": BITS}, ATTACKERS, PENALTY, 3, 1))
    assert "memorization scores are not stored yet" in text(app.says.value)


@pytest.mark.parametrize("narrow", ["wide", "narrow"])
def test_the_figure_is_valid(app: Instrument, narrow: str) -> None:
    shown = instrument.figure(app.of, app.state, app.rows)
    assert len(json.dumps(shown["rows"])) < 700 * len(app.rows["members"])
    compiled = vl_convert.vegalite_to_vega(shown[narrow], vl_version=instrument.VEGA_LITE)
    signals = {each["name"] for each in compiled["signals"]}
    assert {each["signal"] for each in shown["pointers"]} <= signals


def test_it_opens_without_torch() -> None:
    code = "import sys; from leak_atlas.explore import samples; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
