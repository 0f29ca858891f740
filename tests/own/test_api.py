"""From Python: a few functions on plain arrays, and the lines of the README as they are printed."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leak_atlas import BadInput, audit, own
from leak_atlas.attacks.case import infer
from leak_atlas.engine import paths
from leak_atlas.own import logits
from leak_atlas.recipe import RMIA, LiRA
from tests.own.arrays import simulated


def test_the_lines_of_the_readme_run_as_they_are_printed(tmp_path: Path) -> None:
    section = (paths.ROOT / "README.md").read_text().split("From Python:")[1].split("\n## ")[0]
    (printed,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    arrays = logits.Logits(**simulated(1.5, n=200))
    logits.save(tmp_path / "mine.npz", arrays)
    line = [sys.executable, "-c", f"{printed}\nprint(scores.shape)"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    direct = own.audit(arrays)
    auc = direct.auc["LiRA online"]
    tpr = direct.tpr(0.01)["LiRA online"]
    assert done.stdout.splitlines() == [direct.verdict(), str(auc), str(tpr), "(200,)"]
    assert direct.verdict().startswith("The target leaks: ")


def test_what_an_audit_gives(quick: None) -> None:
    arrays = simulated(1.5)
    result = own.audit(arrays | {"labels": arrays["labels"].tolist()})
    assert result.scores.keys() == result.auc.keys() == result.tpr(0.05).keys()
    scores = result.scores["LiRA online"]
    assert scores.shape == (600,)
    assert audit.auc(scores, arrays["member"]) == result.auc["LiRA online"].value
    alone = own.audit({name: arrays[name] for name in logits.NEEDED})
    for by_attack in (alone.auc, alone.tpr(0.05), alone.scores):
        with pytest.raises(BadInput, match="no attack 'LiRA online' was run; these were: loss, "):
            by_attack["LiRA online"]
    with pytest.raises(BadInput, match="unknown array 'shadow'; did you mean 'shadows'"):
        own.audit(arrays | {"shadow": arrays["shadows"]})


FOUR = ("target", "labels", "shadows", "in_shadow")
POPULATION = ("population", "population_labels", "population_shadows")


@pytest.mark.parametrize("queries", [0, 3])
def test_attacks_on_plain_arrays_are_those_of_the_audit(quick: None, queries: int) -> None:
    arrays = simulated(1.5, n=300, models=20, queries=queries)
    expected = own.audit(arrays).scores
    four = [arrays[name] for name in FOUR]
    others = [arrays[name] for name in POPULATION]
    found = {
        "LiRA online": own.lira(*four),
        "LiRA offline": own.lira(*four, mode="offline"),
        "BASE": own.base(*four),
        "RMIA online": own.rmia(*four, *others),
        "RMIA offline": own.rmia(*four, *others, mode="offline"),
    }
    for name, scores in found.items():
        np.testing.assert_array_equal(scores, expected[name], err_msg=name)
    if not queries:
        ordered = own.rmia(*four, *others, ties="ratio")
        np.testing.assert_array_equal(np.argsort(ordered), np.argsort(found["BASE"]))


def test_attacks_on_plain_arrays_have_the_options_of_the_recipes() -> None:
    given = simulated(1.5, n=100, models=20)
    arrays = logits.Logits(**given)
    four = [given[name] for name in FOUR]
    inside, outside = arrays.counts
    can = (inside >= 2) & (outside >= 2)
    per_sample = LiRA("online", "per_sample")
    found = own.lira(*four, variance="per_sample")
    np.testing.assert_array_equal(found[can], infer(per_sample, arrays.of(can)).scores)
    assert np.isnan(found[~can]).all()
    assert not np.array_equal(found[can], own.lira(*four)[can])
    others = [given[name] for name in POPULATION]
    assert (outside > 0).all()
    for gamma, a in ((1.3, 0.3), (2.0, 0.4)):
        attacker = RMIA("offline", gamma, a, ties="share")
        found = own.rmia(*four, *others, mode="offline", gamma=gamma, a=a)
        expected = infer(attacker, arrays.of(np.ones(100, bool))).scores
        np.testing.assert_array_equal(found, expected)
        assert not np.array_equal(found, own.rmia(*four, *others, mode="offline"))


def test_samples_without_shadow_models_have_no_score() -> None:
    arrays = simulated(1.5, n=100, models=4)
    arrays["in_shadow"][:, 7], arrays["in_shadow"][:, 8] = True, False
    four = [arrays[name] for name in FOUR]
    online = np.isnan(own.lira(*four))
    offline = np.isnan(own.lira(*four, mode="offline"))
    assert online[7]
    assert online[8]
    assert offline[7]
    assert not offline[8]
    assert not online.all()
    assert np.isnan(own.base(*four))[[7, 8]].tolist() == [True, False]
