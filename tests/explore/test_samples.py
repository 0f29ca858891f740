"""The explorer of samples: who is in the window, who is exposed, what lies near; a click alone
computes.
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
import torch

from leak_atlas import BadInput, audit
from leak_atlas.data import designs
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.explore.samples import (
    EXPOSED,
    NEIGHBOURS,
    ORDERS,
    RANDOM,
    VISITS,
    Explorer,
    Pool,
    Samples,
    Way,
    by_part,
    by_rank,
    by_visits,
    explorer,
    exposure,
    of_sample,
)
from leak_atlas.explore.shelf import Measured
from leak_atlas.recipe import (
    RMR,
    Data,
    LiRA,
    Model,
    Schedule,
    Setup,
    Threshold,
    VictimAttacker,
    Window,
)
from leak_atlas.training.sampling import places
from tests.explore.conftest import answered, offered, text

VICTIMS, SHADOWS, EPOCHS, SHORT = 3, 2, 2, 6
ATTACKERS = {"LiRA": LiRA("offline_cdf"), "Conf": Threshold()}


def study(
    data: str, network: Model, pool: int = 400, networks: int = 12, rounds: int = 2
) -> Samples:
    design = VictimAttacker(pool, dev=20, victims=VICTIMS)
    what = Data(data, 8 if network.name == "resnet10" else None, joined=True)
    setup = Setup(what, design, network, Schedule(EPOCHS, 20), VICTIMS + SHADOWS)
    ranking = setup.memorization(networks, 0.5, Schedule(1, 20))
    return Samples(
        setup,
        Schedule(SHORT, 20),
        ranking,
        VICTIMS,
        ATTACKERS,
        [6, 3],
        [1],
        RMR(share=0.2),
        rounds=rounds,
    )


BITS, IMAGES = (
    study("digits-bits", Model("fc", 16)),
    study("fashion-mnist-small", Model("resnet10", 2)),
)
STUDIES = {"bits": BITS, "images": IMAGES}
WAY = Way("RSW", 3, 1, "low-to-high")


def ranking(of: Samples) -> dict[str, np.ndarray]:
    """Scores of the pool, some of them equal."""
    pool = Pool(of)
    index = designs.pool(of.setup.design, pool.data.labels, of.setup.data.parts[0])
    rng = np.random.default_rng(1)
    score = rng.normal(0.2, 0.1, len(index)).round(2)
    return {
        "index": index,
        "score": score,
        "error": np.full(len(index), 0.05),
        "outside": 1 - score,
    }


def attack(of: Samples, leak: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Members score higher by `leak`."""
    role = Pool(of).roles
    index = np.flatnonzero(np.isin(role, (Role.MEMBER, Role.NONMEMBER)).any(axis=0))
    each = [np.flatnonzero(np.isin(own, (Role.MEMBER, Role.NONMEMBER))) for own in role]
    member = np.stack([own[at] == Role.MEMBER for own, at in zip(role, each, strict=True)])
    scores = np.random.default_rng(seed).normal(size=member.shape) + leak * member
    assert len(index) >= member.shape[1]
    return {
        "scores": scores,
        "member": member,
        "thresholds": np.full(VICTIMS, np.nan),
        "index": np.stack(each),
    }


def put(of: Samples, measured: Measured, leak: float) -> None:
    """Stores what such networks' measurements might have given."""
    signals, step = measured
    for i, each in enumerate(signals):
        store.write(each.key, each.record(), {"accuracy_test": np.array(0.8 + 0.01 * i)}, {})
    store.write(step.key, step.record(), attack(of, leak), {})


@pytest.fixture
def shelf(own_outputs: Any) -> None:
    for of in STUDIES.values():
        for step in (of.ranking, of.ranking.shuffle()):
            store.write(step.key, step.record(), ranking(of), {})
        put(of, of.measured(of.pruned(), "LiRA"), 1.5)
    put(BITS, BITS.measured(BITS.pruned(WAY), "LiRA"), 0.5)


@pytest.fixture
def app(shelf: None) -> Explorer:
    return explorer(STUDIES, "RSW", "low-to-high", "LiRA")


# --- the recipes ----------------------------------------------------------------------------------------------------


def test_networks_are_those_of_the_figures() -> None:
    """So that what the batch has stored is shown."""
    dense, rounds = BITS.setup.trained(), {"rounds": 2, "head": True}
    base = dense.iteratively("L1 unstructured", 0.6, BITS.schedule, **rounds)[-1]
    assert BITS.pruned() == base and len(BITS.measured(base, "LiRA")[0]) == VICTIMS
    given = {"sampling": Window(3, 1, "low-to-high"), "ranking": BITS.ranking}
    assert (
        BITS.pruned(WAY)
        == dense.iteratively("L1 unstructured", 0.6, BITS.schedule, **rounds, **given)[-1]
    )
    given |= {"sampling": Window(6, 2, "high-to-low"), "objective": RMR(share=0.2)}
    other = Way("SWMR", 6, 2, "high-to-low")
    assert (
        BITS.pruned(other)
        == dense.iteratively("L1 unstructured", 0.6, BITS.schedule, **rounds, **given)[-1]
    )
    shuffled = BITS.pruned(WAY._replace(order=RANDOM))[0].training
    assert shuffled.ranking == BITS.ranking.shuffle() and shuffled.sampling == Window(3, 1)


def test_published_windows_are_offered() -> None:
    """Of 39 members a class: 2/9, 4/9 and 6/9 of them, by 1/45 and 2/45 of them."""
    widths, steps = study("digits-bits", Model("fc", 16), 1600).grid
    assert {3, 6, 9, 17, 26} <= set(widths) and widths[-1] == 39 and steps == [0, 1, 2]


def test_what_is_not_offered_is_named() -> None:
    with pytest.raises(BadInput, match="there is no 'SWM' to look at; did you mean 'SWMR'"):
        BITS.pruned(WAY._replace(defence="SWM"))
    with pytest.raises(BadInput, match="there is no 'high' to look at"):
        explorer(STUDIES, "RSW", "high", "LiRA")
    with pytest.raises(BadInput, match="no attack 'LiR' to look at; did you mean 'LiRA'"):
        explorer(STUDIES, "RSW", RANDOM, "LiR")
    with pytest.raises(BadInput, match="of which there is no picture"):
        study("wordnet-glosses", Model("transformer", 16))


# --- the numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["low-to-high", "high-to-low"])
def test_who_is_in_the_window_is_who_is_trained_on(order: Any) -> None:
    pool, scores = Pool(BITS), ranking(BITS)
    found = pool.members(1, scores, scores, order)
    inside = np.sort(found["index"].to_numpy())
    own = torch.from_numpy(scores["score"][np.searchsorted(scores["index"], inside)])
    label, visits = torch.from_numpy(pool.data.labels[inside]), np.zeros(len(inside), int)
    assert (pool.roles[1, inside] == Role.MEMBER).all() and len(inside) == 90
    for epoch in range(SHORT):
        now = inside[places(Window(3, 2, order), own, label, epoch).numpy()]
        assert set(now) == set(found["index"][found["rank"].between(2 * epoch, 2 * epoch + 2)])
        visits += np.isin(inside, now)
    told = np.array(Window(3, 2, order).visits(found["rank"].max() + 1, SHORT))[found["rank"]]
    assert dict(zip(inside, visits, strict=True)) == dict(zip(found["index"], told, strict=True))


def test_exposure_is_the_share_of_non_members_below() -> None:
    one = {"scores": np.array([[1.0, 3, 2, 2]]), "member": np.array([[False, False, True, True]])}
    np.testing.assert_allclose(exposure(one), [[0.25, 0.75, 0.5, 0.5]])
    many = attack(BITS, 1.0)
    each = [row[member].mean() for row, member in zip(exposure(many), many["member"], strict=True)]
    np.testing.assert_allclose(each, audit.auc(many["scores"], many["member"]))


def test_ranks_that_stand_out_are_found() -> None:
    pool, scores, found = Pool(BITS), ranking(BITS), attack(BITS, 0.0)
    members = [pool.members(v, scores, scores, "low-to-high") for v in range(VICTIMS)]
    for row, index, frame in zip(found["scores"], found["index"], members, strict=True):
        row[np.searchsorted(index, frame["index"])] += 10 * (frame["rank"] >= 5)
    shown = by_rank(found, members)
    assert all(one.value == 1 for one in shown[5:]) and all(
        one.low < 0.5 < one.high for one in shown[:5]
    )
    assert len(shown) == min(frame["rank"].max() for frame in members) + 1


def test_parts_and_visits_part_the_samples() -> None:
    pool, scores = Pool(BITS), ranking(BITS)
    rows = by_part(scores, {"Base": attack(BITS, 2.0), "RSW": attack(BITS, 0.0, seed=1)})
    assert [row["quarter"] for row in rows] == ["1", "2", "3", "4"]
    assert all(row["AUC, Base"].low > 0.6 and row["difference"].high < 0 for row in rows)
    found = by_visits(pool, attack(BITS, 2.0), scores, Window(3, 1), SHORT)
    assert min(found["visited"].low, found["never visited"].low) > 0.6
    assert by_visits(pool, attack(BITS, 2.0), scores, Window(30, 0), SHORT) == {}


def test_one_sample_as_those_see_it_that_trained_on_it_and_those_that_did_not() -> None:
    scored = attack(BITS, 0.0)
    at = int(scored["index"][0, 0])
    mine = {
        bool(m[i == at]): []
        for i, m in zip(scored["index"], scored["member"], strict=True)
        if at in i
    }
    for shown, index, member in zip(
        exposure(scored), scored["index"], scored["member"], strict=True
    ):
        if at in index:
            mine[bool(member[index == at])].append(shown[index == at])
    found = of_sample(scored, at)
    for side, name in ((True, "trained on it"), (False, "did not")):
        value = found[name]
        assert (value is None) == (side not in mine) and (
            value is None or value.value == np.mean(mine[side])
        )


def test_neighbours_are_the_nearest_of_the_pool() -> None:
    for of in STUDIES.values():
        pool, index = Pool(of), ranking(of)["index"]
        x = pool.data.x.reshape(len(pool.data.x), -1) / (255 if of is IMAGES else 1)
        far = np.sqrt(((x[index] - x[index[7]]) ** 2).sum(axis=1))
        found, distances = pool.neighbours(int(index[7]), index, 5)
        assert index[7] not in found
        np.testing.assert_allclose(distances, np.sort(far)[1:6], rtol=1e-4)


def test_the_strip_has_each_member_in_its_place() -> None:
    for of in STUDIES.values():
        pool, scores = Pool(of), ranking(of)
        members = pool.members(0, scores, scores, "low-to-high")
        strip = pool.strip(members)
        assert strip.shape == (9 * 10, 9 * (members["rank"].max() + 1), 3)
        for _, one in members.iloc[::17].iterrows():
            tile = strip[9 * int(one["label"]) :, 9 * int(one["rank"]) :][:8, :8]
            np.testing.assert_array_equal(tile, pool.pictures(np.array([one["index"]], int))[0])
    bits = Pool(BITS)
    assert (bits.pictures(np.array([3]))[0, ..., 0].ravel() == 255 * (1 - bits.data.x[3])).all()


# --- the app --------------------------------------------------------------------------------------------------------


def test_it_says_what_the_statistics_say(app: Explorer) -> None:
    said = text(app.says.value)
    for name, leak in (("Base", 1.5), ("RSW, width 3, step 1, low-to-high", 0.5)):
        auc = audit.audit(attack(BITS, leak))["auc"]
        assert f"{name}: test accuracy 0.810 [0.785, 0.835], AUC of LiRA {auc:.3f}." in said
    assert (
        "In epoch 1 of 6 of a round the window is at ranks 1 to 3 of each class: it holds 30 of the 90"
        in said
    )
    assert (
        f"means over {VICTIMS} victims" in said
        and text(app.offer.cost.value) == ""
        and not offered(app)
    )
    app.choose(width=9, step=0)
    assert (
        "as often as Base does; none of the members" in text(app.says.value)
        or "% of the members" in app.says.value
    )


def test_the_epoch_and_the_rank_move(app: Explorer) -> None:
    before, sample = app.picture.value, app.sample.value
    app.epoch.value = 3
    assert (
        "ranks 3 to 5" in text(app.says.value)
        and app.picture.value != before
        and app.sample.value == sample
    )
    app.choose(label=4, rank=2)
    members = Pool(BITS).members(0, ranking(BITS), ranking(BITS), "low-to-high")
    at = members[(members["label"] == 4) & (members["rank"] == 1)].iloc[0]
    assert f"Sample {at['index']:.0f} , class 4, rank 2" in text(app.sample.value)
    assert (
        app.sample.value.count("<img") == 1 + NEIGHBOURS
        and "&lt;" not in app.sample.value
        and app.card.data == app.sample.value
    )
    app.victim.value = 2
    assert "of victim 2" in text(app.says.value)
    app.reset.click()
    assert app.picture.value == before and app.sample.value == sample


def test_the_sliders_mark_what_is_trained(app: Explorer) -> None:
    trained = [
        [label for label, _ in each.options if "●" in label] for each in (app.width, app.step)
    ]
    assert trained == [["● 3"], ["● 1"]]
    app.defence.value = "SWMR"
    assert not any("trained" in label for label, _ in app.width.options) and app.width.value == 3


def test_what_is_missing_says_its_cost_and_a_click_asks_for_it(
    app: Explorer, asked: list[Any]
) -> None:
    app.data.value = "images"
    assert "RSW, width 3, step 1, low-to-high: not trained yet" in text(app.says.value)
    assert "Base: test accuracy" in text(app.says.value) and "train" in app.offer.train.description
    assert offered(app) and app.picture.value and not asked
    app.choose(order=RANDOM).offer.train.click()
    assert asked[0][0] == IMAGES.steps("LiRA", Way("RSW", 3, 1, RANDOM))
    with pytest.raises(BadInput, match="not trained yet"):
        _ = app.figure


def test_a_data_set_begins_with_its_own_window(shelf: None) -> None:
    app = explorer(
        {"bits": BITS, "images": replace(IMAGES, widths=[6, 2])}, "RSW", "low-to-high", "LiRA"
    )
    app.width.value = 6
    app.data.value = "images"
    assert app.width.value == 2
    app.width.value = 9
    app.reset.click()
    assert app.width.value == 3
    store.discard(BITS.ranking.key)
    app = explorer(STUDIES, "RSW", "low-to-high", "LiRA")
    app.data.value = "images"
    assert set(app.attacks()) == {"Base"} and not app.table.frame.empty
    app.data.value = "bits"
    assert not app.attacks() and app.table.frame.empty  # of this choice, not of the one before
    assert (
        "scores are not there yet" in text(app.says.value)
        and app.picture.value == ""
        and offered(app)
    )


def test_every_choice_can_be_looked_at(app: Explorer, asked: list[Any]) -> None:
    for data in STUDIES:
        for name, values in (
            ("defence", ["SWMR"]),
            ("order", ORDERS),
            ("attack", ATTACKERS),
            ("width", [4, 9]),
        ):
            for value in values:
                app.choose(data=data, **{name: value})
                assert app.says.value
    app.reset.click()
    assert app._way == WAY and app.data.value == "bits" and not offered(app) and not asked


def test_a_click_trains_what_is_missing(own_outputs: Any) -> None:
    app = explorer({"bits": study("digits-bits", Model("fc", 16))}, "SWMR", RANDOM, "Conf")
    assert (
        "train 37 networks, about" in app.offer.train.description and app.picture.value == ""
    )  # scores, dense, two rounds of each
    app.offer.train.click()
    assert text(app.offer.cost.value) == "" and text(app.says.value).count("AUC of Conf") == 2
    assert (
        app.figure.finding == text(app.says.value)
        and dict(map(reversed, app.width.options))[3] == "● 3"
    )
    assert "difference" in str(app.table)


# --- the figure -----------------------------------------------------------------------------------------------------


def test_the_figure_shows_the_same(app: Explorer) -> None:
    app.epoch.value = 4
    strip, visits, exposed = app.figure.axes
    assert [ax.get_title(loc="left") for ax in (visits, exposed)] == [VISITS, EXPOSED]
    heights = [bar.get_height() for bar in visits.containers[0]]
    assert heights == Window(3, 1).visits(len(heights), SHORT)
    moved = [bar.get_height() for bar in visits.containers[-1]]
    assert moved == Window(3, 1).visits(len(heights), 4) and strip.get_title(loc="left").endswith(
        "low-to-high"
    )
    members = [
        Pool(BITS).members(v, ranking(BITS), ranking(BITS), "low-to-high") for v in range(VICTIMS)
    ]
    line = next(each for each in exposed.lines if each.get_label() == "Base")
    np.testing.assert_allclose(
        line.get_ydata(), [one.value for one in by_rank(attack(BITS, 1.5), members)]
    )


def test_a_move_is_quick_and_leaves_nothing_behind(app: Explorer) -> None:
    spent, pictures = [], set()
    for epoch in range(2, SHORT + 1):
        start = time.process_time()
        app.epoch.value = epoch
        spent.append(time.process_time() - start)
        pictures.add(app.picture.value)
    assert median(spent) < 0.5 and len(pictures) == SHORT - 1 and not plt.get_fignums()


def test_an_answer_that_is_stored_is_read_and_drawn_once(work: list[str], app: Explorer) -> None:
    answered(app, work, "victim", 1)


def test_every_picture_and_control_is_labelled(app: Explorer) -> None:
    for control in (
        app.data,
        app.defence,
        app.order,
        app.attack,
        app.width,
        app.step,
        app.epoch,
        app.rank,
        app.label,
    ):
        assert control.description
    assert (
        app.picture.value.startswith('<img alt="Base: test accuracy')
        and 'role="status"' in app.says.value
    )
    assert app.sample.value.count("alt=") == 1 + NEIGHBOURS


def test_looking_at_what_is_stored_needs_no_torch(shelf: None) -> None:
    code = (
        "import sys; from leak_atlas.explore.samples import *; from leak_atlas.recipe import *\n"
        "design = VictimAttacker(400, dev=20, victims=3)\n"
        "setup = Setup(Data('digits-bits', joined=True), design, Model('fc', 16), Schedule(2, 20), 5)\n"
        "of = Samples(setup, Schedule(6, 20), setup.memorization(12, 0.5, Schedule(1, 20)), 3,\n"
        "             {'LiRA': LiRA('offline_cdf')}, [6, 3], [1], RMR(share=0.2), rounds=2)\n"
        "app = explorer({'bits': of}, 'RSW', 'low-to-high', 'LiRA')\n"
        "app.figure; app.table; app.epoch.value = 2\n"
        "assert 'AUC of LiRA' in app.says.value, app.says.value\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
