"""What an audit leaves: shares of the members that could be scored, numbers as JSON, limits,
progress, the page.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from leak_atlas import BadInput, audit, own, report
from leak_atlas.__main__ import main
from leak_atlas.engine import paths
from leak_atlas.own import findings, logits
from leak_atlas.own.limits import exceeded, limit
from leak_atlas.report.sheet import overlaps
from tests.own.test_logits import simulated, written

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the attack that learns, which takes seconds."""
    every = findings.attackers
    monkeypatch.setattr(
        findings, "attackers", lambda n: {k: v for k, v in every(n).items() if not v[0].learns}
    )


def strict(text: str) -> Any:
    """JSON as the standard has it: without NaN and infinities."""

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refused)


# ---------------------------------------------------------------- in words


def test_the_share_of_members_found_is_that_of_those_that_could_be_scored(quick: None) -> None:
    arrays = simulated(3.0, n=1400, models=1)
    result = own.audit(arrays)
    name = result.strongest(0.01)
    scored = arrays["member"] & ~np.isnan(result.scores[name])
    assert 0 < scored.sum() < arrays["member"].sum(), (
        "one shadow model: half of the samples have none outside"
    )
    hit, left = result.exposed(name, 0.01).sum(), arrays["member"].sum() - scored.sum()
    text = result.verdict(0.01)
    assert (
        f"finds {hit:,} of the {scored.sum():,} members that it can score" in text
        and f"{left:,} more" in text
    )
    assert f"{100 * hit / scored.sum():.1f} % [" in text
    numbers = result.summary()["attacks"][name]
    assert numbers["scored"] == {
        "members": scored.sum(),
        "non_members": (~np.isnan(result.scores[name])).sum() - scored.sum(),
    }
    assert numbers["tpr"]["0.01"]["value"] == hit / scored.sum()


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1.234, "1.2"), (11.2, "11"), (99.7, "100"), (123.0, "120"), (1234, "1,200")],
)
def test_how_many_times_is_a_number_that_is_read_aloud(factor: float, words: str) -> None:
    assert findings.times(factor) == f"about {words} times"


def test_what_resolves_an_fpr_is_said_with_what_is_there(quick: None) -> None:
    for leak, n, fpr, needed in (
        (1.5, 600, 0.01, "100"),
        (0.0, 600, 0.001, "1,000"),
        (1.5, 80, 0.005, "200"),
    ):
        arrays = simulated(leak, n=n, models=8)
        text = own.audit(arrays).verdict(fpr)
        there = int((~arrays["member"]).sum())
        assert (
            f"{needed} non-members or more (here {there})" in text
            and "shadow models (here 8)" in text
        )


def test_an_expected_fpr_is_explained_where_it_stands(quick: None) -> None:
    half = {n: {"member": np.arange(n) % 2 == 0} for n in (1000, 9000)}
    few, many = (own.audit(simulated(1.5, n=n, models=4) | member) for n, member in half.items())
    label = next(name for name in few.rows([0.01])[0] if "expected" in name)
    share = re.search(r"\((.*) expected\)", label)
    assert share and f"{share[1]} expected: the threshold for 1 % FPR" in few.caption([0.01])
    assert "expected" not in many.caption(
        [0.01]
    ) and "non-members resolve an FPR of" in many.caption([0.01])


def test_the_panels_of_a_narrow_roc_stand_below_each_other(quick: None) -> None:
    fig = report.roc(
        own.audit(simulated(1.5)).roc(), title="LiRA online has the largest AUC: 0.959", narrow=True
    )
    fig.draw_without_rendering()
    upper, lower = (ax.get_position() for ax in fig.axes)
    assert upper.y0 >= lower.y1 and abs(upper.x0 - lower.x0) < 0.05 and fig.get_figwidth() < 5
    assert not overlaps(fig)


# ---------------------------------------------------------------- as numbers


def test_numbers_are_json_that_says_what_the_result_says(quick: None, tmp_path: Path) -> None:
    arrays = simulated(1.5, models=3)
    result = own.audit(arrays)
    place = result.save(tmp_path / "mine.csv", 0.05, (0.01, 0.0001), file="mine.npz")
    found = strict(place.with_suffix(".json").read_text())
    assert found["attacks"].keys() == result.scores.keys()
    for name, each in found["attacks"].items():
        auc = result.auc[name]
        assert each["auc"] == {
            "value": auc.value,
            "low": auc.low,
            "high": auc.high,
            "resolved": True,
        }
        assert (
            each["tpr"].keys() == {"0.05", "0.01", "0.0001"}
            and not each["tpr"]["0.0001"]["resolved"]
        )
        assert each["tpr"]["0.05"]["value"] == result.tpr(0.05)[name].value
    assert found["verdict"] == result.verdict(0.05) and found["warnings"] == [] == list(
        result.warnings
    )
    assert (
        found["accuracy"]["target"]["members"]
        == (arrays["target"].argmax(1) == arrays["labels"])[arrays["member"]].mean()
    )
    assert found["settings"]["file"] == "mine.npz" and found["settings"]["found_at"] == 0.05
    offline = own.audit(arrays | {"in_shadow": np.zeros((3, 600), bool)})
    strict(offline.save(tmp_path / "offline.csv").with_suffix(".json").read_text())


def test_limits_are_exceeded_by_the_estimate_of_the_strongest_attack(quick: None) -> None:
    result = own.audit(simulated(1.5))
    summary = result.summary(rates=(0.01, 0.05))
    auc = audit.largest(result.auc.values()).value
    tpr = max(each.value for each in result.tpr(0.05).values())
    assert not exceeded(
        summary, [limit(f"auc={auc!r}"), limit("auc=1"), limit(f"tpr@0.05={tpr!r}")]
    )
    below = result.auc[result.best].high - 1e-3, auc - 1e-6
    assert not exceeded(summary, [limit(f"auc={below[0]:.6f}")]) and exceeded(
        summary, [limit(f"auc={below[1]:.6f}")]
    )
    (line,) = exceeded(summary, [limit(f"tpr@0.05={tpr - 1e-3:.6f}"), limit("auc=1")])
    assert result.strongest(0.05) in line and f"{tpr:.3f}" in line
    swapped = own.audit(simulated(1.5) | {"member": ~simulated(1.5)["member"]}).summary()
    with pytest.raises(BadInput, match="cannot be judged: `member` looks inverted"):
        exceeded(swapped, [limit("auc=0.99")])
    assert not exceeded(swapped, [])
    few = own.audit(simulated(1.5, n=80)).summary()
    with pytest.raises(
        BadInput, match=r"cannot be judged: for TPR at 1 % FPR \d+ non-members are too few"
    ):
        exceeded(few, [limit("tpr@0.01=0.9")])


WRONG = [
    "",
    "auc",
    "auc=",
    "auc=x",
    "auc=1.5",
    "auc=-.1",
    "auc=nan",
    "AUC=0.6",
    "auc=0.6,tpr@0.1=1",
    "tpr=0.1",
    "tpr@=0.1",
    "tpr@0=0.1",
    "tpr@2=0.1",
    "tpr@1e=1",
]


@pytest.mark.parametrize("text", WRONG)
def test_a_limit_of_another_form_is_one_line_before_anything_is_read(
    text: str, tmp_path: Path, own_outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(tmp_path / "none.npz"), "--fail-above", text]) == 2
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and "--fail-above takes auc=0.6 or" in err
    assert not own_outputs.exists()


# ---------------------------------------------------------------- as it goes on


def test_what_takes_long_says_how_far_it_is(
    quick: None, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    arrays, lines = logits.Logits(**simulated(1.5)), list[str]()
    findings.attack(arrays, lines.append)
    assert not lines and not capsys.readouterr().err, "nothing where all is done at once"
    monkeypatch.setattr(findings, "QUIET", 0.0)
    monkeypatch.setattr(findings, "SOON", 0.0)
    scores = findings.attack(arrays, lines.append).scores
    attacks = len(scores) - len(findings.THRESHOLDS)
    assert lines[0].startswith(f"{attacks} attacks by shadow models take about ")
    done = [int(line.split(" of ")[0]) for line in lines[1:]]
    assert done == sorted(set(done)) and set(done) <= {*range(1, attacks)} and len(done) > 2
    assert all(re.search(r"about .+ left$", line) for line in lines[1:])
    findings.attack(arrays)
    assert "attacks by shadow models" in capsys.readouterr().err


def test_an_attack_that_learns_takes_a_part_of_many_samples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrays = logits.Logits(**simulated(2.0, models=4))
    every = findings.attackers
    monkeypatch.setattr(
        findings, "attackers", lambda n: {k: v for k, v in every(n).items() if v[0].learns}
    )
    monkeypatch.setattr(findings, "LEARNT", 4 * 200)
    result = findings.attack(arrays)
    assert any("learnt from 200 of the 600 samples" in note for note in result.notes)
    assert (
        np.isfinite(result.scores["attack network"]).all()
        and result.auc["attack network"].low > 0.5
    )
    monkeypatch.setattr(findings, "LEARNT", 4 * 600)
    assert not any("learnt from" in note for note in findings.attack(arrays).notes)


# ---------------------------------------------------------------- the page


def told(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "leak_atlas", "audit", *arguments]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=300)


@pytest.mark.notebook
def test_continuous_integration_fails_above_a_limit_and_where_nothing_can_be_judged(
    tmp_path: Path, own_outputs: Path
) -> None:
    arrays = simulated(1.5, n=300, models=4)
    written(tmp_path / "mine.npz", arrays)
    done = told(
        "mine.npz", "--fail-above", "auc=0.55", "--fail-above", "tpr@0.02=0.99", cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    assert (
        done.stderr.count("\n") == 1
        and "above the limit: AUC of " in done.stderr
        and "TPR" not in done.stderr
    )
    at = own_outputs / "runs" / "own"
    numbers = strict((at / "mine.json").read_text())
    assert f"{at / 'mine.json'}" in done.stdout and numbers["settings"]["rates"] == [
        0.001,
        0.01,
        0.02,
    ]
    assert max(each["auc"]["value"] for each in numbers["attacks"].values()) > 0.55
    assert not (at / "mine.claims.json").exists(), "no claims, no ledger"
    for place in ("mine.html", "index.html"):
        assert "rofile own" not in re.sub(r"<[^>]*>", "", (at / place).read_text())
    written(tmp_path / "mine.npz", arrays, member=~arrays["member"])
    done = told("mine.npz", "--fail-above", "auc=0.9", cwd=tmp_path)
    assert (
        done.returncode == 2
        and "`member` looks inverted" in done.stderr
        and done.stderr.count("\n") == 1
    )
    page = re.sub(r"<[^>]*>", "", (at / "mine.html").read_text())
    assert (
        page.index("No verdict")
        < page.index("member looks inverted")
        < page.index("How well does each attack")
    )
    assert "No verdict: " in done.stdout and "The target leaks" not in page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with twelve attacks, some of which cannot score all samples."""
    folder = tmp_path_factory.mktemp("page")
    written(folder / "mine.npz", simulated(1.5, n=500, models=6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAK_ATLAS_OUTPUTS", str(folder / "outputs"))
        patch.chdir(folder)
        assert main(["audit", "mine.npz"]) == 0
    return folder / "outputs" / "runs" / "own" / "mine.html"


@pytest.mark.notebook
def test_a_page_begins_with_the_answer_and_ends_with_the_arrays(page: Path) -> None:
    text = re.sub(r"(?s)<style.*?</style>|<details.*?</details>|<[^>]*>", "", page.read_text())
    places = [
        text.index(words)
        for words in ("In short.", "Accuracy: ", "TPR at 1 % FPR", "Limits", "What to bring")
    ]
    assert places == sorted(places) and len(text[: places[0]].split()) < 60
    assert all(text.rindex(name) > places[-1] for name in logits.ARRAYS)
    assert all(len(line) <= 100 for line in NOTEBOOK.splitlines())
    assert all(cell.count("\n") <= 26 for cell in NOTEBOOK.split("# %%"))


NOTEBOOK = (paths.NOTEBOOKS / "own" / "audit_my_logits.py").read_text()


@pytest.fixture
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.mark.browser
@pytest.mark.skipif(not BROWSER, reason="NO CHROMIUM: install it to run these tests")
def test_a_phone_shows_the_rates_and_a_curve_that_can_be_read(
    browser: "Browser", page: Path
) -> None:
    view = browser.new_page(viewport={"width": 390, "height": 844})
    view.goto(page.as_uri())
    assert view.evaluate("document.documentElement.scrollWidth") <= 390
    head = view.locator("table", has_text="LiRA online").first.locator("th")
    assert [name.startswith("TPR at 1 %") for name in head.all_inner_texts()][:3] == [
        False,
        False,
        True,
    ]
    place = head.nth(2).bounding_box()
    assert place and place["x"] + place["width"] <= 390, "the first TPR is seen without scrolling"
    picture = view.locator(".output_png img").first
    shown, whole = picture.bounding_box(), picture.evaluate("e => e.naturalWidth")
    assert shown and shown["width"] / (whole / 2) > 0.65, "letters of 9 points are 7 pixels or more"
