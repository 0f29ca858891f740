"""The layer explorer: it offers what there is, says what the statistics say, and leaves nothing behind."""

import re
import subprocess
import sys
import time
from statistics import median

import matplotlib.pyplot as plt
import numpy as np
import pytest

from lib import BadInput
from lib.explore.layers import Choice, Explorer, explorer, static
from lib.localization import disparity

STAGES = ["stem", "stage1", "stage2", "stage3", "stage4", "head"]
BLOCKS = ["stem", "stage1.0", "stage1.1", "stage2.0", "stage2.1", "stage3.0", "stage4.0", "head"]
N = 400


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
        "index": np.arange(N),
        "parts": lines(names),
    }


CASES = {
    ("resnet10", "CE", "epoch 10"): [result(i, STAGES, 0.0) for i in range(3)],
    ("resnet10", "CE", "epoch 30"): [result(i, STAGES) for i in range(3, 6)],
    ("resnet10", "RelaxLoss", "epoch 30"): [result(i, STAGES) for i in range(6, 9)],
    ("resnet18", "CE", "epoch 30"): [result(9, BLOCKS), *(result(i, STAGES) for i in range(10, 12))],
}
FLOORS = {
    ("resnet10", "CE", "epoch 30"): [result(i, STAGES, 0.0) | {"seen_b": np.ones(N, bool)} for i in range(20, 22)]
}
ANATOMY = {
    "resnet10": {
        "parts": lines(["stem", "stage1.0", "stage2.0", "stage3.0", "stage4.0", "head"]),
        "parameters": np.array([1, 4, 20, 0, 74, 1]),
        "activations": np.array([30, 30, 20, 10, 9, 1]),
        "flops": np.array([2, 24, 24, 24, 25, 1]),
    }
}


@pytest.fixture
def app() -> Explorer:
    return explorer(CASES, ANATOMY, FLOORS)


def values(app: Explorer, control: str) -> list[str]:
    return [value for _, value in app.controls[control].options]


def text(markup: str) -> str:
    return re.sub("<[^>]+>", "", markup).replace("&#x27;", "'")


def test_controls_offer_only_what_there_is(app: Explorer) -> None:
    assert app.choice == Choice("resnet10", "CE", "epoch 10", "stages", "euclidean", "stage4", "stage4")
    assert values(app, "training") == ["CE", "RelaxLoss"] and values(app, "epoch") == ["epoch 10", "epoch 30"]
    app.controls["training"].value = "RelaxLoss"
    assert values(app, "epoch") == ["epoch 30"] and app.choice.epoch == "epoch 30"
    assert values(app, "parts") == ["stages"]
    app.controls["model"].value = "resnet18"
    assert values(app, "training") == ["CE"] and values(app, "parts") == ["blocks", "stages"]
    assert values(app, "part") == STAGES and app.choice.part == "stage4"
    app.controls["parts"].value = "blocks"
    assert values(app, "part") == BLOCKS and app.choice.part == "stage4.0"


def test_it_says_what_the_statistics_say(app: Explorer) -> None:
    app.controls["epoch"].value = "epoch 30"
    for measure in disparity.MEASURES:
        app.controls["measure"].value = measure
        found = disparity.profile(*disparity.read(CASES["resnet10", "CE", "epoch 30"], measure))
        for part in ("stage2", "stage4"):
            app.controls["part"].value = part
            said = text(app.says.value)
            assert said.startswith(f"{part}, ") and f"AUC {found[STAGES.index(part)]:.3f} over 3 model pairs" in said
    app.controls["measure"].value = "direction"
    assert "stage4 is the first to tell the halves apart" in text(app.says.value)
    app.controls["epoch"].value = "epoch 10"
    assert "No part surely tells" in text(app.says.value)


def test_a_single_pair_says_so(app: Explorer) -> None:
    app.controls["model"].value = "resnet18"
    app.controls["parts"].value = "blocks"
    assert "other seeds are not covered" in text(app.says.value)


def test_the_slider_says_what_is_frozen(app: Explorer) -> None:
    assert "freezes 25 % of the parameters, 90 % of the activations and 74 % of the FLOPs" in text(
        app.says_frozen.value
    )
    app.controls["hold"].value = "stage1"
    assert "before stage1 freezes 1 % of the parameters" in text(app.says_frozen.value)
    app.controls["hold"].value = "stem"
    assert "freezes nothing" in text(app.says_frozen.value)


def test_a_model_without_anatomy_has_nothing_to_hold(app: Explorer) -> None:
    app.controls["model"].value = "resnet18"
    assert app.choice.hold == "" and app.frozen.value == "" and app.says_frozen.value == ""
    app.controls["model"].value = "resnet10"
    assert app.choice.hold == "stage4" and "freezes 25 %" in text(app.says_frozen.value)
    assert "hold" not in explorer(CASES).controls


def test_every_picture_and_control_is_labelled(app: Explorer) -> None:
    for control in app.controls.values():
        assert control.description and control.style.description_width == "initial"
    for picture, says in ((app.picture, app.says), (app.frozen, app.says_frozen)):
        found = re.match(r'<img alt="([^"]+)" src="data:image/png;base64,', picture.value)
        assert found and found[1].replace("&#x27;", "'") == text(says.value)
        assert 'role="status"' in says.value


def test_a_move_is_quick_and_leaves_nothing_behind(app: Explorer) -> None:
    pictures, spent = set(), []
    for part in STAGES * 2:
        start = time.process_time()
        app.controls["part"].value = part
        spent.append(time.process_time() - start)
        pictures.add(app.picture.value)
    assert median(spent) < 0.15
    assert len(pictures) == len(STAGES)
    assert not plt.get_fignums()


def test_a_move_that_changes_nothing_draws_nothing(app: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(app, "_draw", lambda: drawn.append("upper"))
    monkeypatch.setattr(app, "_draw_frozen", lambda: drawn.append("lower"))
    app.controls["hold"].value = "stage2"
    assert drawn == ["lower"]
    app.controls["part"].value = "stem"
    assert drawn == ["lower", "upper"]
    app.controls["model"].value = "resnet18"  # several controls move, one drawing
    assert drawn == ["lower", "upper", "upper", "lower"]


def test_the_static_figure_shows_the_same() -> None:
    chosen = {"model": "resnet10", "epoch": "epoch 30", "measure": "direction", "part": "stage3", "hold": "stage2"}
    fig = static(CASES, ANATOMY, FLOORS, **chosen)
    histogram, profile, frozen = fig.axes
    found = disparity.profile(*disparity.read(CASES["resnet10", "CE", "epoch 30"], "direction"))
    line = profile.lines[1].get_ydata()
    np.testing.assert_allclose(line, [each.value for each in found])
    assert histogram.get_title(loc="left").startswith("stage3")
    assert [patch.get_width() for patch in frozen.patches[:3]] == [5.0, 60.0, 26.0]
    assert len(static(CASES).axes) == 2
    assert not plt.get_fignums()


def test_the_control_is_drawn_where_there_is_one() -> None:
    def labels(epoch: str) -> list[str]:
        ax = static(CASES, ANATOMY, FLOORS, epoch=epoch).axes[1]
        return [label.get_text() for label in ax.get_legend().get_texts()]

    assert labels("epoch 30") == ["chosen part", "two seeds, same data"]
    assert labels("epoch 10") == ["chosen part"]


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match="no distances"):
        explorer({})
    with pytest.raises(BadInput, match="no epoch 'epoch 31' to look at; did you mean 'epoch 30'"):
        static(CASES, epoch="epoch 31")
    with pytest.raises(BadInput, match="no control 'parst'; did you mean 'part"):
        static(CASES, parst="stage4")


def test_looking_needs_no_torch() -> None:
    code = "import sys, lib.explore.layers, lib.report.figures; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
