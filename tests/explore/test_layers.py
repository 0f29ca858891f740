"""The layer explorer: it shows what is stored, says what the statistics say, and computes on a
click alone.
"""

import base64
import io
import re
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, get_args, get_type_hints

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from leak_atlas import BadInput, lab
from leak_atlas.data import readers
from leak_atlas.engine import store
from leak_atlas.explore import layers
from leak_atlas.explore.layers import Explorer, explorer
from leak_atlas.explore.setting import FACTORS, Setting, choices, differing
from leak_atlas.explore.shelf import Shelf
from leak_atlas.explore.side_by_side import MEASURES, SHOWN, Side, merged
from leak_atlas.localization import disparity
from leak_atlas.recipe import (
    Augment,
    CrossEntropy,
    Data,
    Distance,
    Halves,
    Model,
    RelaxLoss,
    Schedule,
)
from tests.explore.conftest import answered, text

STAGES = ["stem", "stage1", "stage2", "stage3", "stage4", "head"]
BLOCKS = ["stem", "stage1.0", "stage2.0", "stage3.0", "stage4.0", "head"]
DEEPER = ["stem", "stage1.0", "stage1.1", "stage2.0", "stage3.0", "stage4.0", "stage4.1", "head"]
N = 400
SIZE = 1000  # the pool lies somewhere among the samples of the data set

FIRST = Setting(Data(pixels=16), Halves(N), Model("resnet10", width=8), Schedule(20), models=3)
SECOND = FIRST.but("architecture", "resnet18")
MOMENTS = [5]
OBJECTIVES = {"cross-entropy": CrossEntropy(), "RelaxLoss": RelaxLoss(0.3)}


def lines(names: list[str]) -> np.ndarray:
    return np.frombuffer("\n".join(names).encode(), np.uint8)


def result(seed: int, names: list[str], shift: float = 1.0) -> dict[str, np.ndarray]:
    """A pair whose last stage tells the halves apart: up in direction, down in length."""
    rng = np.random.default_rng(seed)
    seen = rng.permutation(np.arange(N) < N // 2)
    move = shift * ~seen * (np.array(names) >= "stage4")[:, None]
    noise = rng.normal(size=(3, len(names), N))
    return {
        "euclidean": noise[0] + move,
        "direction": noise[1] + 2 * move,
        "length_a": noise[2] + 9,
        "length_b": noise[2] + 9 - move,
        "seen_a": np.ones(N, bool),
        "seen_b": seen,
        "index": np.sort(rng.permutation(SIZE)[:N]),
        "parts": lines(names),
    }


ANATOMY = {
    "parts": lines(["stem", "stage1.0", "stage2.0", "stage3.0", "stage4.0", "head"]),
    "parameters": np.array([1, 4, 20, 0, 74, 1]),
    "activations": np.array([30, 30, 20, 10, 9, 1]),
    "flops": np.array([2, 24, 24, 24, 25, 1]),
}


def put(setting: Setting, start: int, blocks: list[str], shift: float = 1.0) -> None:
    """Stores what a probe of this setting might have given; before the end, nothing is told apart."""
    for moment in setting.moments(MOMENTS):
        for parts, names in (("stages", STAGES), ("blocks", blocks)):
            for i, step in enumerate(setting.distances(moment, parts)):  # type: ignore[arg-type]
                arrays = result(start + i, names, 0.0 if moment else shift)
                store.write(step.key, step.record(), arrays, {})
    for i, floor in enumerate(setting.floors()):
        same = result(start + 50 + i, STAGES, 0.0) | {"seen_b": np.ones(N, bool)}
        store.write(floor.key, floor.record(), same, {})
    *signals, attack = setting.attacked()
    for i, signal in enumerate(signals):
        store.write(signal.key, signal.record(), {"accuracy_test": np.array(0.69 + 0.01 * i)}, {})
    member = np.tile(np.arange(N) < N // 2, (len(signals), 1))
    scores = np.random.default_rng(start).normal(size=member.shape) + 2 * member
    index = np.sort(np.random.default_rng(0).permutation(SIZE)[:N])
    store.write(
        attack.key, attack.record(), {"scores": scores, "member": member, "index": index}, {}
    )
    store.write(setting.anatomy().key, setting.anatomy().record(), ANATOMY, {})


@pytest.fixture
def shelf(own_outputs: Any) -> None:
    put(FIRST, 0, BLOCKS)
    put(SECOND, 100, DEEPER, 0.0)


@pytest.fixture
def app(shelf: None) -> Explorer:
    return explorer(FIRST, SECOND, MOMENTS, OBJECTIVES)


def shown(app: Explorer, letter: str) -> list[tuple[str, np.ndarray]]:
    """Words and pixels of the images on one side."""
    found = re.findall(r'<img alt="([^"]+)"[^>]*base64,([^"]+)"', app.samples[letter].value)
    return [
        (alt, np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))) for alt, data in found
    ]


# --- settings -------------------------------------------------------------------------------------------------------


def test_every_architecture_and_image_set_is_offered() -> None:
    names = get_args(get_type_hints(Model)["name"])
    offered = choices({})
    assert list(offered["architecture"]) == [
        name for name in names if name not in ("transformer", "fc")
    ]
    assert "cifar100" in offered["data set"] and "digits-bits" not in offered["data set"]


def test_a_factor_changes_alone() -> None:
    values = {
        "architecture": "resnet34",
        "width": 16,
        "stage-4 stride": 1,
        "stage-4 channels": 32,
        "stage-3 channels": 48,
        "training": RelaxLoss(1.0),
        "data set": "mnist",
        "pixels": 8,
        "augmentation": Augment(2),
        "pool": 100,
        "epochs": 3,
    }
    assert set(FACTORS) - set(values) == {"patch"}  # belongs to other architectures
    for factor, value in values.items():
        changed = FIRST.but(factor, value)
        assert changed[factor] == value and differing(FIRST, changed) == [factor]
        assert changed.but(factor, FIRST[factor]) == FIRST


def test_the_whole_image_has_one_key() -> None:
    assert (
        FIRST.but("pixels", 28).data
        == Data()
        == FIRST.but("pixels", 28).but("data set", "fashion-mnist-small").data
    )
    large = FIRST.but("data set", "cifar10").but("pixels", 30)
    assert large.data.pixels == 30 and large.but("data set", "mnist").data.pixels is None


WITHOUT_STAGES = (
    "wrn16",
    "wrn28",
    "cnn2",
    "cnn4",
    "cnn6",
    "densenet121",
    "vit",
    "transformer",
    "fc",
)


def test_what_an_architecture_does_not_take_goes_back() -> None:
    narrow = FIRST.but("stage-4 stride", 1).but("stage-4 channels", 32)
    for name in get_args(get_type_hints(Model)["name"]):
        assert narrow.but("architecture", name).model.stage4_channels == (
            None if name in WITHOUT_STAGES else 32
        )
        stride = narrow.but("architecture", name).model.stage4_stride
        assert stride == (1 if name.startswith("resnet") else 2)


def test_all_epochs_of_a_setting_are_asked_at_once() -> None:
    steps = FIRST.steps([5, 30, 20])
    assert FIRST.moments([5, 30, 20]) == [5, None]
    assert sum(isinstance(step, Distance) for step in steps) == 3 * 2 * 2 + 2
    assert len({step.key for step in steps}) == len(steps)


# --- sides ----------------------------------------------------------------------------------------------------------


def test_the_samples_are_those_of_one_pair_in_order() -> None:
    given = result(0, STAGES)
    given["euclidean"][2, [7, 300, 41]] = [90.0, 95.0, -90.0]
    given["seen_b"][[7, 300]] = [True, False]
    found = Side("A", "", [result(1, STAGES), given], "euclidean").samples("stage2", 1)
    assert list(found.tail(2).itertuples(index=False, name=None)) == [
        (given["index"][7], 90.0, True),
        (given["index"][300], 95.0, False),
    ]
    assert (
        found["index"][0] == given["index"][41]
        and len(found) == N
        and found["value"].is_monotonic_increasing
    )


def test_samples_that_m_all_has_not_seen_are_left_out() -> None:
    given = result(0, STAGES)
    given["euclidean"][1, 3], given["seen_a"][3] = 99.0, False
    found = Side("A", "", [given], "euclidean").samples("stage1", 0)
    assert given["index"][3] not in list(found["index"])
    order = np.argsort(np.delete(given["euclidean"][1], 3))
    assert list(found["index"]) == list(np.delete(given["index"], 3)[order])


def test_blocks_find_their_like_on_the_other_side() -> None:
    sides = [
        Side(*each, "direction")
        for each in (("A", "", [result(0, BLOCKS)]), ("B", "", [result(1, DEEPER)]))
    ]  # type: ignore[call-arg]
    assert merged(sides) == DEEPER
    assert [sides[0].parts[sides[0].place(part)] for part in DEEPER] == [
        "stem",
        "stage1.0",
        "stage1.0",
        "stage2.0",
        "stage3.0",
        "stage4.0",
        "stage4.0",
        "head",
    ]
    assert sides[1].parts[sides[1].place("stage4")] == "stage4.1"


def test_it_says_what_is_held(app: Explorer) -> None:
    side = Side("A", "", [result(0, STAGES)], "euclidean", (), ANATOMY)
    assert side.held("stage4") == {"parameters": 0.25, "activations": 0.9, "FLOPs": 0.74}
    assert side.held("stage1")["parameters"] == 0.01 and not any(side.held("stem").values())
    assert Side("A", "", [result(0, STAGES)], "euclidean").held("stage4") == {}
    for part, words in (
        (
            "stage4",
            "stage4 freezes 25 % of the parameters, 90 % of the activations and 74 % of the FLOPs.",
        ),
        ("stem", "stem freezes nothing: all is trained again."),
    ):
        app.part.value = part
        assert f"Holding everything before {words}" in text(app.samples["A"].value)


# --- the app --------------------------------------------------------------------------------------------------------


def test_it_says_what_the_statistics_say(app: Explorer) -> None:
    for measure in MEASURES:
        app.measure.value = measure
        for part in ("stage2", "stage4"):
            app.part.value = part
            said = text(app.says.value)
            for setting, name in ((FIRST, "A (resnet10)"), (SECOND, "B (resnet18)")):
                results = Shelf().results(setting.distances())
                assert results
                found = disparity.profile(*disparity.read(results, measure))
                assert f"{name}, {part}: AUC {found[STAGES.index(part)]:.3f} over 3 pairs" in said
    app.measure.value = "direction"
    assert "stage4 is the first to tell the halves apart" in text(app.says.value)
    assert "At stage4, B is" in text(app.says.value) and "closer to 0.5 than A (" in text(
        app.says.value
    )
    app.epoch.value = "epoch 5"
    assert text(app.says.value).count("no part surely tells the halves apart") == 2


@pytest.mark.parametrize("parts", ["stages", "blocks"])
def test_a_click_on_a_part_shows_its_samples(app: Explorer, parts: str) -> None:
    app.parts.value = parts
    app.pair.value = 2
    for part in ("stage2", "stage4") if parts == "stages" else ("stage2.0", "stage4.0"):
        app.part.value = part
        for letter, setting in app.settings.items():
            given = (Shelf().results(setting.distances(None, parts)) or [])[2]  # type: ignore[arg-type]
            names = bytes(given["parts"]).decode().split("\n")
            values = given["euclidean"][names.index(part)]
            order = np.argsort(values)
            expected = [*order[::-1][:SHOWN], *order[:SHOWN]]
            data = readers.load("fashion-mnist-small", 16)
            found = shown(app, letter)
            assert len(found) == 2 * SHOWN
            unseen = 100 * (1 - given["seen_b"][order[-N // 10 :]].mean())
            told = f"the {N // 10} samples with the largest Euclidean distance, {unseen:.0f} % were seen by M_all only"
            assert told in text(app.samples[letter].value)
            for (alt, pixels), i in zip(found, expected, strict=True):
                np.testing.assert_array_equal(pixels, data.x[given["index"][i], :, :, 0])
                assert (
                    f", {values[i]:.3g}, seen by {'both' if given['seen_b'][i] else 'M_all only'}"
                    in alt
                )


def test_blocks_are_offered_as_the_deeper_side_has_them(app: Explorer) -> None:
    app.parts.value = "blocks"
    assert list(app.part.options) == DEEPER and app.part.value == "stage4.1"
    app.part.value = "stage1.1"
    assert "A (resnet10), stage1.0:" in text(app.says.value) and "B (resnet18), stage1.1:" in text(
        app.says.value
    )
    app.parts.value = "stages"
    assert list(app.part.options) == STAGES and app.part.value == "stage1"


def test_what_is_there_costs_nothing(app: Explorer) -> None:
    assert text(app.offer.cost.value).strip() == "" and app.offer.train.layout.display == "none"
    assert list(app.epoch.options) == ["epoch 5", "end"]


def test_looking_never_computes(app: Explorer, asked: list[Any]) -> None:
    for letter in app.settings:
        for factor, value in (
            ("architecture", "resnet34"),
            ("width", 4),
            ("pool", 100),
            ("augmentation", "crop 2"),
        ):
            control = app.controls[letter][factor]
            control.value = (
                value
                if value != "crop 2"
                else next(o for _, o in control.options if o.startswith("crop 2"))
            )
    app.epoch.value, app.measure.value, app.parts.value = "epoch 5", "direction", "blocks"
    assert not asked and not [
        key for key in store.listing() if store.describe(key)["record"]["kind"] == "Train"
    ]
    assert "train 6 networks, about" in app.offer.train.description  # A and B came to be the same
    assert app.offer.train.layout.display is None


def test_a_missing_side_says_so_and_its_cost(app: Explorer, asked: list[Any]) -> None:
    app.controls["B"]["width"].value = 4
    assert "B (resnet18, width 4) is not stored" in text(app.says.value)
    assert "nothing is stored" in text(app.samples["B"].value) and len(shown(app, "A")) == 2 * SHOWN
    assert "train 6 networks, about" in app.offer.train.description and not app.offer.train.disabled
    app.offer.train.click()
    assert len(asked) == 1
    wanted = {step.key for setting in app.settings.values() for step in setting.steps(MOMENTS)}
    assert {step.key for steps in asked[0] for step in steps} == wanted


def test_accuracy_and_leak_stand_beside_each_side(app: Explorer) -> None:
    for letter in "AB":
        assert "M_h1 at the end: test accuracy 0.700 [" in text(app.told[letter].value)
        assert "attack AUC 0.9" in text(app.told[letter].value) and "at 1 % FPR" in text(
            app.told[letter].value
        )
    app.controls["B"]["width"].value = 4
    assert "accuracy and leak are not there yet" in text(app.told["B"].value)


def test_options_say_whether_they_are_stored(app: Explorer) -> None:
    marks = {value: label[0] for label, value in app.controls["A"]["architecture"].options}
    assert marks == {name: "●" if name in ("resnet10", "resnet18") else "○" for name in marks}
    assert all(
        label.startswith("●") == (label == "● cross-entropy")
        for label, _ in app.controls["A"]["training"].options
    )
    assert [label for label, _ in app.controls["A"]["training"].options] == [
        "● cross-entropy",
        "○ RelaxLoss",
    ]
    app.choose(B_width=4, part="stage2")
    assert all(label.startswith("○") for label, _ in app.controls["B"]["training"].options)


def test_what_cannot_be_says_why_and_changes_nothing(
    app: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Setting, "but", refuse)
    before = app.settings["A"]
    app.controls["A"]["pool"].value = 200
    assert (
        "A: such a pool is not to be had" in text(app.offer.cost.value)
        and app.settings["A"] == before
    )
    assert app.controls["A"]["pool"].value == N and app.offer.train.layout.display == "none"


def refuse(*_: Any) -> Setting:
    raise BadInput("such a pool is not to be had")


@pytest.mark.parametrize(
    ("factor", "value", "why"),
    [("pool", 10**6, "does not fit"), ("pool", 3, "even"), ("pixels", 99, "1 to 28")],
)
def test_a_number_that_cannot_be_goes_back(
    app: Explorer, factor: str, value: int, why: str
) -> None:
    before = app.controls["A"][factor].value
    app.controls["A"][factor].value = value
    assert why in text(app.offer.cost.value) and app.controls["A"][factor].value == before
    assert app.settings["A"] == FIRST and app.offer.train.layout.display == "none"


def test_a_failure_is_told(app: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise lab.Failed("Train abc: out of memory")

    monkeypatch.setattr(lab, "realize", fail)
    app.controls["A"]["width"].value = 4
    app.offer.train.click()
    assert "out of memory" in text(app.offer.cost.value)


def test_a_click_trains_what_is_missing(own_outputs: Any) -> None:
    tiny = Setting(
        Data(pixels=8), Halves(40, test=20), Model("resnet10", width=2), Schedule(2, 20), models=1
    )
    app = explorer(tiny, tiny.but("stage-4 stride", 1), [1])
    assert (
        app.picture.value == ""
        and "train 4 networks, about" in app.offer.train.description
        and not list(store.listing())
    )
    app.offer.train.click()
    assert text(app.offer.cost.value).strip() == "" and "stage-4 stride 1" in text(app.says.value)
    assert "in one pair, so that other seeds are not covered" in text(app.says.value)
    assert len(shown(app, "A")) == len(shown(app, "B")) == 2 * SHOWN
    app.epoch.value = "epoch 1"
    assert len(shown(app, "A")) == 2 * SHOWN


def test_a_damaged_result_is_missing_until_it_is_asked_for(shelf: None) -> None:
    for step in (FIRST.distances()[0], FIRST.distances(5)[1]):
        (store.folder(step.key) / store.ARRAYS).write_bytes(b"")
    app = explorer(FIRST, SECOND, MOMENTS)
    assert (
        "A (resnet10) is not stored" in text(app.says.value)
        and app.offer.train.layout.display is None
    )
    put(FIRST, 0, BLOCKS)
    (store.folder(step.key) / store.ARRAYS).write_bytes(b"")
    app = explorer(FIRST, SECOND, MOMENTS)
    assert app.offer.train.layout.display == "none"
    app.epoch.value = "epoch 5"
    assert (
        "A (resnet10) is not stored" in text(app.says.value)
        and app.offer.train.layout.display is None
    )


def test_floors_and_anatomy_that_came_since_are_shown(shelf: None) -> None:
    for step in (*FIRST.floors(), FIRST.anatomy()):
        store.discard(step.key)
    app = explorer(FIRST, SECOND, MOMENTS)
    without = app.numbers
    put(FIRST, 0, BLOCKS)
    app.computed("")
    assert app.numbers.equals(explorer(FIRST, SECOND, MOMENTS).numbers) and len(app.numbers) > len(
        without
    )


def test_epochs_are_those_of_both(app: Explorer) -> None:
    app.epoch.value = "epoch 5"
    app.controls["B"]["epochs"].value = 4
    assert list(app.epoch.options) == ["end"] and app.epoch.value == "end"


def test_a_start_outside_the_lists_is_kept(own_outputs: Any) -> None:
    odd = FIRST.but("stage-4 channels", 72).but("training", RelaxLoss(0.7))
    app = explorer(odd, FIRST)
    assert app.controls["A"]["stage-4 channels"].value == "72" and app.settings["A"] == odd
    app.controls["A"]["stage-4 channels"].value = "by width"
    assert app.settings["A"] == FIRST.but("training", RelaxLoss(0.7))


def test_controls_that_an_architecture_has_not_are_hidden(app: Explorer) -> None:
    assert app.controls["A"]["patch"].layout.display == "none"
    assert app.controls["A"]["stage-4 stride"].layout.display is None
    app.controls["A"]["architecture"].value = "vgg11"
    assert app.controls["A"]["stage-4 stride"].layout.display == "none"
    app.controls["A"]["architecture"].value = "vit"
    assert app.controls["A"]["stage-4 channels"].layout.display == "none"
    assert app.controls["A"]["patch"].layout.display is None


def test_an_answer_that_is_stored_is_read_and_drawn_once(work: list[str], app: Explorer) -> None:
    answered(app, work, "part", "stage2")


def test_every_picture_and_control_is_labelled(app: Explorer) -> None:
    for letter, controls in app.controls.items():
        for factor, control in controls.items():
            assert control.description == factor and letter in control.tooltip
    found = re.match(r'<img alt="([^"]+)" src="data:image/png;base64,', app.picture.value)
    assert (
        found
        and text(app.says.value).strip().startswith(found[1][:60])
        and "B (resnet18), stage4: AUC" in found[1]
    )
    assert 'role="status"' in app.says.value and 'role="status"' in app.offer.cost.value


def test_a_move_is_quick_and_leaves_nothing_behind(app: Explorer) -> None:
    pictures, spent = set(), []
    for part in STAGES * 2:
        start = time.process_time()
        app.part.value = part
        spent.append(time.process_time() - start)
        pictures.add(app.picture.value)
    assert median(spent) < 0.4
    assert len(pictures) == len(STAGES)
    assert not plt.get_fignums()


def test_a_change_draws_once(app: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    look: Callable[[], Any] = app.look

    def counted() -> Any:
        drawn.append("")
        return look()

    monkeypatch.setattr(app, "look", counted)
    app.controls["A"]["architecture"].value = "vgg11"  # several controls move
    assert len(drawn) == 1
    app.parts.value = "blocks"  # the parts' buttons move too
    assert len(drawn) == 2


def test_reset_brings_the_beginning_back(app: Explorer) -> None:
    before = app.picture.value
    app.controls["A"]["width"].value, app.measure.value, app.parts.value = 4, "direction", "blocks"
    app.reset.click()
    assert app.settings == {"A": FIRST, "B": SECOND} and app.controls["A"]["width"].value == 8
    assert app.picture.value == before and app.offer.train.layout.display == "none"


# --- figures --------------------------------------------------------------------------------------------------------


def test_the_figure_shows_the_same(app: Explorer) -> None:
    profile, first, second, gap = app.choose(measure="direction", part="stage3").figure.axes
    for name, setting in (("A: resnet10", FIRST), ("B: resnet18", SECOND)):
        line = next(line for line in profile.lines if line.get_label() == name)
        found = disparity.profile(
            *disparity.read(Shelf().results(setting.distances()) or [], "direction")
        )
        np.testing.assert_allclose(line.get_ydata(), [each.value for each in found])
    read = [
        disparity.read(Shelf().results(s.distances()) or [], "direction") for s in (FIRST, SECOND)
    ]
    differences = [
        disparity.setting_difference(read[1], read[0], i).value for i in range(len(STAGES))
    ]
    np.testing.assert_allclose(gap.lines[0].get_ydata(), differences)
    assert [ax.get_title(loc="left")[:9] for ax in (first, second)] == ["A, stage3", "B, stage3"]
    assert len(app.choose(parts="blocks").figure.axes) == 3  # blocks that differ have no difference
    assert not plt.get_fignums()


def test_the_gallery_shows_the_same(app: Explorer) -> None:
    assert app.gallery.data == app.samples["A"].value + app.samples["B"].value


def test_what_is_not_there_is_named(app: Explorer) -> None:
    app.controls["A"]["architecture"].value = "resnet34"
    with pytest.raises(
        BadInput, match=r"A \(resnet34\) is not stored at this choice. Hand .* to lab.realize first"
    ):
        _ = app.figure


def test_looking_at_what_is_stored_needs_no_torch(shelf: None) -> None:
    code = (
        "import sys; from leak_atlas.explore import layers; from leak_atlas.explore.setting import Setting\n"
        "from leak_atlas.recipe import Data, Halves, Model, Schedule\n"
        "first = Setting(Data(pixels=16), Halves(400), Model('resnet10', width=8), Schedule(20), models=3)\n"
        "app = layers.explorer(first, first.but('architecture', 'resnet18'), [5])\n"
        "assert 'AUC' in app.says.value and app.samples['A'].value.count('<img') == 12, app.says.value\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_data_set_leaves_the_rest(app: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> None:
        raise BadInput("it is not here")

    monkeypatch.setattr(layers.readers, "load", missing)
    app.part.value = "stage1"
    assert "No images: it is not here" in text(app.samples["A"].value) and "AUC" in app.says.value
