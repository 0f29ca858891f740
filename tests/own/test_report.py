"""What an audit leaves: numbers as JSON, limits, the page."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leak_atlas import BadInput, audit, own
from leak_atlas.__main__ import main
from leak_atlas.own import logits
from leak_atlas.own.limits import exceeded, limit
from tests.own.arrays import audited, simulated, written


def strict(text: str) -> Any:
    """JSON as the standard has it: without NaN and infinities."""

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refused)


def test_the_share_of_members_found_is_that_of_those_that_could_be_scored(quick: None) -> None:
    """One shadow model: half of the samples have none outside."""
    arrays = simulated(3.0, n=1400, models=1)
    result = own.audit(arrays)
    name = result.strongest(0.01)
    known = ~np.isnan(result.scores[name])
    member = arrays["member"]
    scored = (member & known).sum()
    found = result.exposed(name, 0.01).sum()
    assert 0 < scored < member.sum()
    whom = f"{found:,} of the {scored:,} members that it can score"
    assert f"identifies {whom}" in result.verdict(0.01)
    numbers = result.summary()["attacks"][name]
    assert numbers["scored"] == {"members": scored, "non_members": (known & ~member).sum()}
    assert numbers["tpr"]["0.01"]["value"] == found / scored


def test_numbers_are_json_that_says_what_the_result_says(leaky: own.Result, tmp_path: Path) -> None:
    place = leaky.save(tmp_path / "mine.csv", 0.05, (0.01, 0.0001), file="mine.npz")
    summary = strict(place.with_suffix(".json").read_text())
    assert summary["attacks"].keys() == leaky.scores.keys()
    numbers = summary["attacks"]["LiRA online"]
    auc = leaky.auc["LiRA online"]
    values = {"value": auc.value, "low": auc.low, "high": auc.high, "resolved": True}
    assert numbers["auc"] == values
    assert numbers["tpr"].keys() == {"0.05", "0.01", "0.0001"}
    assert not numbers["tpr"]["0.0001"]["resolved"]
    assert numbers["tpr"]["0.05"]["value"] == leaky.tpr(0.05)["LiRA online"].value
    assert summary["verdict"] == leaky.verdict(0.05)
    assert summary["notes"] == [*leaky.notes]
    right = leaky.arrays.target.argmax(1) == leaky.arrays.labels
    assert summary["accuracy"]["target"]["members"] == right[leaky.arrays.member].mean()
    settings = summary["settings"]
    assert settings["file"] == "mine.npz"
    assert settings["found_at"] == 0.05


def test_what_is_not_known_is_not_in_the_json(quick: None, tmp_path: Path) -> None:
    arrays = simulated(1.5, models=3)
    offline = own.audit(arrays | {"in_shadow": np.zeros((3, 600), bool)})
    summary = strict(offline.save(tmp_path / "a.csv").with_suffix(".json").read_text())
    assert "members" not in summary["accuracy"]["shadow models"]


# ---------------------------------------------------------------- limits


def test_limits_are_exceeded_by_the_estimate_of_the_strongest_attack(leaky: own.Result) -> None:
    summary = leaky.summary(rates=(0.01, 0.05))
    auc = leaky.auc[leaky.best].value
    tpr = max(rate.value for rate in leaky.tpr(0.05).values())
    at_most = [f"auc={auc!r}", "auc=1", f"tpr@0.05={tpr!r}"]
    assert not exceeded(summary, [limit(text) for text in at_most])
    assert exceeded(summary, [limit(f"auc={auc - 1e-6:.6f}")])
    (line,) = exceeded(summary, [limit(f"tpr@0.05={tpr - 1e-3:.6f}"), limit("auc=1")])
    assert leaky.strongest(0.05) in line
    assert f"{tpr:.3f}" in line


def test_limits_that_cannot_be_judged_are_refused(quick: None) -> None:
    arrays = simulated(1.5)
    swapped = own.audit(arrays | {"member": ~arrays["member"]}).summary()
    with pytest.raises(BadInput, match="cannot be judged: `member` looks inverted"):
        exceeded(swapped, [limit("auc=0.99")])
    few = own.audit(simulated(1.5, n=80)).summary()
    with pytest.raises(BadInput, match=r"TPR at 1 % FPR \d+ non-members are too few"):
        exceeded(few, [limit("tpr@0.01=0.9")])


WRONG = ["", "auc", "auc=x", "auc=1.5", "tpr=0.1", "tpr@0=0.1"]


@pytest.mark.parametrize("text", WRONG)
def test_a_limit_of_another_form_is_one_line_before_anything_is_read(
    text: str, tmp_path: Path, own_outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(tmp_path / "none.npz"), "--fail-above", text]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert "--fail-above takes auc=0.6 or" in err
    assert not own_outputs.exists()


# ---------------------------------------------------------------- the page


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """A user in an empty folder audits a file, with limits; some attacks cannot score all samples."""
    folder = tmp_path_factory.mktemp("page")
    written(folder / "mine.npz", simulated(1.5, n=500, models=6))
    limits = ["--fail-above", "auc=0.55", "--fail-above", "tpr@0.02=0.99"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAK_ATLAS_OUTPUTS", str(folder / "outputs"))
        return audited("mine.npz", "--name", "first try", *limits, cwd=folder)


@pytest.fixture(scope="module")
def page(done: subprocess.CompletedProcess[str]) -> Path:
    """The page that the command names."""
    named = re.search(r"page +(\S.*\.html)", done.stdout)
    assert named, done.stderr
    return Path(named[1])


@pytest.mark.notebook
def test_continuous_integration_fails_above_a_limit(
    done: subprocess.CompletedProcess[str], page: Path
) -> None:
    assert done.returncode == 1
    assert "The target leaks: " in done.stdout
    assert done.stderr.count("\n") == 1
    assert "above the limit: AUC of " in done.stderr
    assert "TPR" not in done.stderr
    written_files = [page.with_suffix(suffix) for suffix in (".html", ".ipynb", ".csv", ".json")]
    assert all(str(path) in done.stdout and path.exists() for path in written_files)
    numbers = strict(page.with_suffix(".json").read_text())
    assert numbers["settings"]["rates"] == [0.001, 0.01, 0.02]
    scores = pd.read_csv(page.with_suffix(".csv"), index_col="index")
    assert [*scores] == ["label", "member", "found_by", *numbers["attacks"]]
    for name in ("loss", "LiRA online"):
        known = scores[scores[name].notna()]
        area = numbers["attacks"][name]["auc"]["value"]
        assert audit.auc(known[name], known["member"]) == pytest.approx(area, abs=1e-12)


@pytest.mark.notebook
def test_swapped_inputs_give_a_page_without_a_verdict_and_exit_code_2(
    tmp_path: Path, own_outputs: Path
) -> None:
    arrays = simulated(1.5, n=300, models=4)
    written(tmp_path / "mine.npz", arrays, member=~arrays["member"])
    done = audited("mine.npz", "--fail-above", "auc=0.9", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "`member` looks inverted" in done.stderr
    assert "No verdict: " in done.stdout
    text = re.sub(r"<[^>]*>", "", (own_outputs / "runs/own/mine.html").read_text())
    order = ("No verdict", "member looks inverted", "AUC and TPR of each attack")
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert "The target leaks" not in text


@pytest.mark.notebook
def test_a_page_begins_with_the_answer_and_ends_with_the_arrays(page: Path) -> None:
    text = re.sub(r"(?s)<style.*?</style>|<details.*?</details>|<[^>]*>", "", page.read_text())
    order = ("In short.", "Accuracy: ", "TPR at 1 % FPR", "Limits", "The arrays that")
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert len(text[: places[0]].split()) < 80
    assert all(text.rindex(name) > places[-1] for name in logits.ARRAYS)
    index = re.sub(r"<[^>]*>", "", page.with_name("index.html").read_text())
    assert "rofile own" not in text + index
    assert "first try" in index
