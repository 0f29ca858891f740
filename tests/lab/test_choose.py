"""A choice between strengths: made on dev, by each model for itself, and gone on from like any other state."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from lib import BadInput, audit, lab, report, store
from lib.lab import __main__ as cli
from lib.lab.exchange import dump, undump
from lib.lab.plans import plan
from lib.recipe import (
    At,
    Choose,
    Data,
    Model,
    RandomHalves,
    RelaxLoss,
    Schedule,
    Setup,
    Signals,
    Threshold,
    Train,
    VictimAttacker,
    choose,
    load,
)
from lib.subject import weights

DATA, MODEL, SHORT = Data(pixels=8), Model("resnet10", width=2), Schedule(2, 32)
ALPHAS = (0.2, 1.0, 2.0)


def pool(models: int = 4, dev: int = 40, **changes: int):
    return Setup(DATA, RandomHalves(80, test=40, dev=dev), MODEL, SHORT, models, **changes).trained()


def strengths(models: int = 4):
    risky = pool(models).rewind("stage4").hold("stage4")
    return [risky.train(Schedule(2, 32), RelaxLoss(alpha)) for alpha in ALPHAS]


def trainings(*asked: object) -> list[Train]:
    return [job.step for job in plan([list(asked)]).jobs.values() if isinstance(job.step, Train)]


def test_each_model_chooses_on_its_own_dev_set() -> None:
    candidates = strengths()
    chosen = choose(*candidates, slack=0.05)
    attack = chosen.attack(Threshold("loss"))
    results = lab.realize(chosen, attack, [one.signals() for one in (*candidates, chosen)])
    for row, choice in enumerate(chosen):
        read = [results[Signals(one[row])] for one in candidates]
        dev, member = read[0]["role"] == 3, read[0]["role"] == 1
        right = [float((one["logits"].argmax(axis=1) == one["labels"])[dev].mean()) for one in read]
        leak = [abs(audit.auc(one["views"][dev | member, 0], member[dev | member]) - 0.5) for one in read]
        found = results[choice]
        np.testing.assert_allclose(found["accuracy"], right)
        np.testing.assert_allclose(found["leak"], leak)
        near = [i for i, share in enumerate(right) if share >= max(right) - 0.05 - 1e-9]
        best = min(near, key=lambda i: leak[i])
        assert found["chosen"] == best
        own, taken = weights(choice)[0], store.read(candidates[best][row].key).arrays
        assert own and all(np.array_equal(own[name].numpy(), taken[name]) for name in own)
        assert np.array_equal(results[Signals(choice)]["logits"], read[best]["logits"])
    assert results[attack]["scores"].shape == (4, 80)
    assert "4 Choose" in str(report.provenance(results))


def test_candidates_are_trained_once_and_a_choice_that_is_made_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = strengths(2)
    chosen = choose(*candidates)
    after = chosen.rewind("stage4").train(SHORT)
    everything = [*candidates, chosen, chosen.signals(), after.signals()]
    assert len(trainings(*everything)) == 2 * (1 + len(ALPHAS) + 1)
    found = plan([everything, [chosen]])
    order = list(found.jobs)
    for job in found.jobs.values():
        assert all(order.index(need) < order.index(job.key) for need in job.needs)
    assert {candidates[0][0].key, chosen[0].key} <= set(found.jobs[after[0].key].needs)

    results = lab.realize(chosen)
    for one, choice in enumerate(chosen):
        taken = int(results[choice]["chosen"])
        assert trainings(choice) == [] and trainings(Signals(choice)) == []
        for i, candidate in enumerate(candidates):
            if i != taken:
                store.discard(candidate[one].key)
        assert trainings(Signals(choice)) == [], "the others' weights are nobody's need any more"
        store.discard(candidates[taken][one].key)
        assert trainings(Signals(choice)) == [candidates[taken][one]] and trainings(choice) == []
    monkeypatch.setattr("lib.audit.choose", lambda *_: pytest.fail("chosen twice"))
    assert lab.realize(chosen.signals())[Signals(chosen[0])]["logits"].shape == (160, 10)


def test_candidates_may_be_epochs_and_edits() -> None:
    (train,) = pool(1)
    epochs = Choose((train.at(1), train))
    (job,) = [job for job in plan([[epochs.rewind("stage4").train(SHORT)]]).jobs.values() if job.step == train]
    assert {at.when for at in job.asked} == {1, "init"}
    edits = Choose((train.hold("stage2"), train.hold("stage4")))
    lab.realize(epochs, edits)
    held = weights(edits)[1]
    taken = edits.candidates[int(store.read(edits.key).arrays["chosen"])]
    assert held and held.keys() == weights(taken)[1].keys()
    assert weights(edits.hold("stage3"))[1].keys() >= weights(train.hold("stage3"))[1].keys()


def test_a_choice_is_known_by_its_candidates_and_comes_back_from_its_record() -> None:
    one, two, three = (population[0] for population in strengths(1))
    keys = {Choose((one, two)).key, Choose((two, one)).key, Choose((one, three)).key, Choose((one, two), 0.1).key}
    assert len(keys) == 4
    choice = Choose((one, two))
    assert choice.key == Choose((one, two), slack=0.02).key
    known = {step.key: step for step in (one, two)}
    assert load(json.loads(json.dumps(choice.record())), known.__getitem__) == choice
    assert choice.origin() == one.origin() and choice.training == one.training
    assert choice.train(SHORT).parent == choice


def test_a_choice_travels_and_comes_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is made where there is torch and no scipy; home gets what was chosen, not the weights."""
    chosen = choose(*strengths(1))
    after = chosen.train(SHORT).signals()
    text = json.dumps(dump(plan([[chosen, after]])))
    assert {chosen[0], *after, *chosen[0].candidates} <= set(undump(text))
    (tmp_path / "plan.json").write_text(text)
    monkeypatch.setenv("LEAK_ATLAS_STORE", str(tmp_path / "there"))
    with monkeypatch.context() as bare:
        bare.setitem(sys.modules, "scipy", None)
        arguments = ["run", str(tmp_path / "plan.json"), "--workers", "1", "--pack", str(tmp_path / "packed")]
        assert cli.main(arguments) == 0
    monkeypatch.setenv("LEAK_ATLAS_STORE", str(tmp_path / "home"))
    assert cli.main(["collect", str(tmp_path / "packed")]) == 0
    assert store.has(chosen[0].key) and not any(store.has(state.key) for state in chosen[0].candidates)
    assert not plan([[chosen, after]]).jobs
    assert lab.realize(chosen, after)[chosen[0]]["accuracy"].shape == (len(ALPHAS),)


def test_a_corrupt_choice_is_made_again() -> None:
    chosen = choose(*strengths(1))
    lab.realize(chosen)
    path = store.folder(chosen[0].key) / store.ARRAYS
    blob = bytearray(path.read_bytes())
    blob[-1] ^= 1
    path.write_bytes(bytes(blob))
    assert lab.realize(chosen.signals())[Signals(chosen[0])]["logits"].shape == (160, 10)
    assert store.read(chosen[0].key).arrays["leak"].shape == (len(ALPHAS),)


def victims(models: int):
    return Setup(DATA, VictimAttacker(400, test=40, dev=20), MODEL, SHORT, models).trained()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Choose(()), "one candidate or more"),
        (lambda: Choose((pool()[0],), slack=-0.1), "slack takes 0 or more, not -0.1"),
        (lambda: Choose((pool()[0], pool()[1])), "differ in what is defended"),
        (lambda: Choose((pool()[0], pool(seed=1)[0])), "seed"),
        (lambda: Choose((pool()[0], victims(1)[0])), "differ in what is defended"),
        (lambda: Choose((pool(dev=0)[0],)), "dev set"),
        (lambda: choose(), "one for each strength"),
        (lambda: choose(pool(2), pool(4)), "one for each strength"),
        (lambda: Choose((pool()[0],)).at(1), "no epochs"),
    ],
)
def test_what_cannot_be_chosen_between_is_refused(make, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_victims_and_attackers_choose_each_on_their_own_dev_samples() -> None:
    chosen = choose(*(victims(3).train(SHORT, RelaxLoss(alpha)) for alpha in ALPHAS[:2]))
    results = lab.realize(chosen)
    assert all(results[choice]["leak"].shape == (2,) for choice in chosen)
    assert At(chosen[0].origin(), "init") == At(victims(1)[0], "init")
