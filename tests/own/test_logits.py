"""A user's own logits: what the library's attacks say of them, and what is wrong with them."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import log_softmax

from leak_atlas import BadInput, lab, own
from leak_atlas.__main__ import main
from leak_atlas.attacks.case import Case
from leak_atlas.engine import paths
from leak_atlas.engine.compute import Arrays
from leak_atlas.lab.declare import notebooks
from leak_atlas.own import attacks, findings, logits, page
from leak_atlas.recipe import (
    BASE,
    RMIA,
    Attacker,
    Data,
    LiRA,
    Model,
    Network,
    RandomHalves,
    Schedule,
    Setup,
    Threshold,
)
from tests.own.arrays import simulated, written


def test_arrays_out_of_the_store_give_what_the_recipes_attack_gives() -> None:
    data = Data("fashion-mnist-small", 8)
    design = RandomHalves(200, test=100)
    setup = Setup(data, design, Model("cnn2", 4), Schedule(4, 50, lr=0.05), models=10)
    trained = setup.trained()
    attackers = {
        "loss": Threshold("loss", by_class=False),
        "modified entropy": Threshold("modified_entropy", by_class=False),
        "entropy": Threshold("entropy", by_class=False),
        "largest posterior": Threshold("top1", by_class=False),
        "gap (correctness)": Threshold("correctness", by_class=False),
        "loss by class": Threshold("loss"),
        "LiRA online": LiRA(),
        "LiRA offline": LiRA("offline_cdf"),
        "BASE": BASE(),
        "RMIA online": RMIA(ties="share"),
        "RMIA offline": RMIA("offline", ties="share"),
        "attack network": Network(inputs="posterior_label"),
    }
    steps = {}
    for name, attacker in attackers.items():
        steps[name] = trained.attack(attacker, targets=1, shadows=trained)
    signals = trained.signals()
    results = lab.realize(steps, signals)
    # without the target's pair
    arrays = logits.brought(results[signals[0]], [results[step] for step in signals[2:]])
    found = findings.attack(arrays)
    for name, step in steps.items():
        np.testing.assert_array_equal(arrays.member, results[step]["member"][0])
        expected = results[step]["scores"][0]
        np.testing.assert_allclose(found.scores[name], expected, rtol=1e-9, err_msg=name)


def test_a_leak_that_is_there_is_found_and_where_membership_says_nothing_none_is() -> None:
    arrays = simulated(1.5)
    found = own.audit(arrays)
    assert found.auc["LiRA online"].low > found.auc["loss"].high > 0.5
    assert found.verdict(0.01).startswith("The target leaks: ")
    permuted = np.random.default_rng(1).permutation(arrays["member"])
    shuffled = own.audit(arrays | {"member": permuted})
    for name, auc in shuffled.auc.items():
        apart = auc.at(1 - 0.05 / len(shuffled.auc))
        assert apart.low < 0.5 < apart.high, name
    assert shuffled.verdict(0.01).startswith("None of ")


def test_who_is_found_is_what_the_rates_count(leaky: own.Result, tmp_path: Path) -> None:
    found = leaky
    for name, rate in found.tpr(0.05).items():
        exposed = found.exposed(name, 0.05)
        assert exposed.sum() == round(rate.value * found.arrays.member.sum()), name
    best = found.strongest(0.05)
    first = np.nanargmax(np.where(found.arrays.member, found.scores[best], np.nan))
    places = 3 * np.arange(len(found.arrays.labels)) + 7  # of a data set
    found = replace(found, arrays=replace(found.arrays, index=places))
    top = found.most(0.05)[0]
    assert top["index"] == str(places[first])
    likelihood = log_softmax(found.arrays.target[first])[found.arrays.labels[first]]
    assert top["loss, nats"] == pytest.approx(-likelihood)
    assert pd.read_csv(found.save(tmp_path / "a.csv", 0.05))["index"].tolist() == places.tolist()


def test_the_table_and_the_curves_have_their_attacks(leaky: own.Result) -> None:
    rows = leaky.rows()
    assert [row["attack"] for row in rows] == [*leaky.scores]
    for row in rows:
        assert row["samples scored"] == np.isfinite(leaky.scores[row["attack"]]).sum()
    curves = leaky.roc()
    assert len(curves) == 5
    assert {"loss", leaky.best} <= curves.keys()


def test_too_few_samples_give_no_significant_tpr(quick: None) -> None:
    found = own.audit(simulated(1.5, n=80))
    assert "non-members are too few" in found.verdict(0.01)
    assert not found.tpr(0.01)["loss"].resolved
    alone = {name: simulated(0.5, n=4000)[name] for name in logits.NEEDED}
    words = "At 0.1 % FPR, no attack identifies significantly more"
    assert words in own.audit(alone).verdict(0.001)


def test_luck_is_as_likely_as_it_says() -> None:
    draws = np.random.default_rng(0)
    member = np.arange(200) < 80
    arrays = logits.Logits(np.zeros((200, 5)) + np.arange(5), np.zeros(200, int), member)
    lucky = []
    for _ in range(400):
        lucky.append(findings.Result(arrays, {"any": draws.random(200)}).luck(0.05))
    assert all(np.mean(np.array(lucky) <= level) <= level + 0.03 for level in (0.05, 0.2, 0.5))
    assert np.mean(np.array(lucky) <= 0.5) > 0.25
    assert findings.Result(arrays, {"any": member.astype(float)}).luck(0.05) < 1e-9
    better = draws.random(200) + 0.1 * member
    alone = findings.Result(arrays, {"a": better}).luck(0.3)
    assert 0 < alone < 0.5
    assert findings.Result(arrays, {"a": better, "b": better}).luck(0.3) == 2 * alone


def test_what_few_shadow_models_do_not_allow_is_reported(quick: None) -> None:
    arrays = simulated(1.5)
    alone = own.audit({name: arrays[name] for name in logits.NEEDED})
    assert alone.scores.keys() == attacks.THRESHOLDS.keys()
    assert "Shadow models would add LiRA" in alone.notes[0]
    of_models = ("shadows", "in_shadow", "population_shadows")
    few = arrays | {name: arrays[name][:3] for name in of_models}
    result = own.audit(few)
    out = int(np.isin(few["in_shadow"].sum(axis=0), (0, 3)).sum())
    assert any(f" {out} of the samples" in note and "LiRA online" in note for note in result.notes)
    assert np.isnan(result.scores["LiRA online"]).sum() == out
    offline = own.audit(few | {"in_shadow": np.zeros((3, 600), bool)}).scores.keys()
    assert {"LiRA offline", "RMIA offline", "BASE"} <= offline
    known = {name: array for name, array in arrays.items() if "population" not in name}
    (note,) = [note for note in own.audit(known).notes if "RMIA online" in note]
    assert note.startswith("Not run: RMIA online, RMIA offline. Needed: a population")


def test_an_attack_that_learns_takes_a_part_of_many_samples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = attacks.attackers(1)
    monkeypatch.setattr(attacks, "attackers", lambda _: {"attack network": every["attack network"]})
    monkeypatch.setattr(attacks, "LEARNT", 4 * 200)
    sizes = []
    learn = attacks.learn

    def counted(attacker: Attacker, case: Case) -> Arrays:
        sizes.append(case.pool.sum())
        return learn(attacker, case)

    monkeypatch.setattr(attacks, "learn", counted)
    result = own.audit(simulated(2.0, models=4))
    assert sizes == [200]
    assert np.isfinite(result.scores["attack network"]).all()
    assert result.auc["attack network"].low > 0.5


ARRAYS = simulated(1.0, n=40, models=4)
NAN = np.where(np.arange(200).reshape(40, 5) == 7, np.nan, ARRAYS["target"])
WRONG = [
    ({"target": None}, "target is missing, which every audit needs: (N, C) logits"),
    ({"in_shadow": None}, "in_shadow is missing, which shadows needs"),
    ({"target": None, "targets": ARRAYS["target"]}, "did you mean it by 'targets'?"),
    ({"shadow": ARRAYS["shadows"]}, "unknown array 'shadow'; did you mean 'shadows'?"),
    ({"target": ARRAYS["target"][0]}, "target has shape (5,); it takes (N, C)"),
    ({"target": ARRAYS["target"].astype(int)}, "target holds int64"),
    ({"target": NAN}, "target holds 1 values that are NaN or infinite"),
    ({"target": np.full((40, 5), 0.2)}, "target holds probabilities"),
    ({"labels": ARRAYS["labels"] + 1}, "labels reach from 1 to 5; the logits have classes 0 to 4"),
    ({"labels": ARRAYS["labels"].astype(float)}, ".astype(int), or .argmax(1) of one-hot rows"),
    ({"labels": np.eye(5, dtype=int)[ARRAYS["labels"]]}, "is expected: .argmax(1) of one-hot rows"),
    ({"labels": ARRAYS["labels"].astype(object)}, "labels holds Python objects"),
    ({"member": ARRAYS["member"].astype(int)}, "it takes Booleans: .astype(bool)"),
    ({"member": np.flatnonzero(ARRAYS["member"])}, "True or False for each of the N samples"),
    ({"member": 1 + ARRAYS["member"].astype(int)}, "holds int64; it takes True or False"),
    ({"member": np.zeros(40, bool)}, "member has no members"),
    ({"in_shadow": ARRAYS["in_shadow"].T}, "in_shadow has shape (40, 4); (4, 40) is expected"),
    ({"shadows": np.stack([ARRAYS["target"]] * 4)}, "shadows[0] is the target itself"),
]


@pytest.mark.parametrize(("changed", "words"), WRONG, ids=[words[:40] for _, words in WRONG])
def test_what_is_wrong_is_one_line_that_names_the_array(
    tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput) as error:
        logits.read(written(tmp_path / "mine.npz", ARRAYS, **changed))
    assert words in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / 'mine.npz'}")


def test_what_is_no_npz_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_bytes(b"no")
    np.save(tmp_path / "one.npy", ARRAYS["target"])
    whole = written(tmp_path / "whole.npz", ARRAYS).read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    tensors = {"target": torch.tensor(ARRAYS["target"])}
    for name, old in (("new.npz", False), ("old.pt", True)):
        torch.save(tensors, tmp_path / name, _use_new_zipfile_serialization=not old)
    save = re.escape("np.savez('mine.npz', target=…, labels=…, member=…)")
    for name, why in {
        "none.npz": "cannot read",
        "text.npz": "is no .npz",
        "half.npz": "is damaged",
        "one.npy": f"holds one array; save all by name: {save}",
        "new.npz": f"PyTorch file.*: {save}",
        "old.pt": f"PyTorch file.*: {save}",
    }.items():
        with pytest.raises(BadInput, match=f"{name}.*{why}|{why}.*{name}") as error:
            logits.read(tmp_path / name)
        assert "pickle=" not in str(error.value)


def test_an_array_of_objects_is_named_with_what_to_do() -> None:
    with pytest.raises(BadInput, match=r"target is an array of objects: np.asarray\(target, float"):
        own.audit(ARRAYS | {"target": ARRAYS["target"].astype(object)})


@pytest.mark.parametrize("name", ["index", "glossary", "mine.run", "mine.claims", "", ".x", "a/b"])
def test_a_report_cannot_have_the_name_of_another_page(name: str) -> None:
    with pytest.raises(BadInput, match="cannot be named"):
        logits.place(name)


def test_a_report_of_another_file_is_not_replaced(
    quick: None, tmp_path: Path, own_outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sub").mkdir()
    first = str(written(tmp_path / "mine.npz", ARRAYS))
    second = str(written(tmp_path / "sub" / "mine.npz", ARRAYS))
    page.audit_file(first, "", 0.01, [0.01])
    page.audit_file(first, "", 0.01, [0.01])  # its own report is replaced
    before = (own_outputs / "runs/own/mine.json").read_text()
    with pytest.raises(BadInput, match=f"is the report of {first}: give another name"):
        page.audit_file(second, "", 0.01, [0.01])
    assert main(["audit", second]) == 2
    assert "is the report of" in capsys.readouterr().err
    assert not (own_outputs / "runs/own/mine.ipynb").exists()
    assert (own_outputs / "runs/own/mine.json").read_text() == before
    page.audit_file(second, "other", 0.01, [0.01])
    assert (own_outputs / "runs/own/other.csv").exists()


def test_names_and_shapes_are_the_same_in_help_and_documents(capsys) -> None:
    assert main(["audit", "--help"]) == 0
    shown = capsys.readouterr().out
    document = (paths.ROOT / "docs" / "own.md").read_text()
    for name, array in logits.ARRAYS.items():
        assert f"`{name}` {array.shape}" in document, name
        assert f"{name:<20}{array.shape:<12}{array.holds}" in shown, name


def test_audits_of_ones_own_are_in_no_profile(capsys) -> None:
    assert main(["report", "own"]) == 2
    assert "not published" in capsys.readouterr().err
    assert not [one.name for one in notebooks() if one.name.startswith("own")]


def test_a_wrong_file_is_one_line_and_exit_code_2_and_leaves_nothing(
    tmp_path: Path, own_outputs: Path, capsys
) -> None:
    assert main(["audit", str(written(tmp_path / "bad.npz", ARRAYS, member=None))]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    assert "member is missing" in err
    assert main(["audit", str(tmp_path / "bad.npz"), "--example"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert not list(own_outputs.rglob("*.*"))
