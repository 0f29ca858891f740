"""Plans, runs and results, on trainings of a fraction of a second."""

import hashlib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from leak_atlas import BadInput, lab
from leak_atlas.data import own
from leak_atlas.data.designs import Role
from leak_atlas.engine import store
from leak_atlas.lab import jobs
from leak_atlas.lab.plans import Job, plan
from leak_atlas.models.subject import roles
from leak_atlas.recipe import (
    BASE,
    PAST,
    RMIA,
    Anatomy,
    At,
    Attack,
    Cost,
    Data,
    Distance,
    Halves,
    Learnt,
    LiRA,
    Model,
    Network,
    RandomHalves,
    RelaxLoss,
    Schedule,
    Setup,
    Signals,
    Similarity,
    StageMembership,
    StageProbe,
    Step,
    Threshold,
    Train,
    VictimAttacker,
    self_audit,
)

DATA = Data(pixels=8)
MODEL = Model("resnet10", width=2)
SHORT = Schedule(2, 32)


def pool(models: int = 6, schedule: Schedule = SHORT):
    return Setup(DATA, RandomHalves(80, test=40), MODEL, schedule, models).trained()


def fingerprint() -> dict[str, str]:
    """SHA-256 of the arrays of every entry: two stores are the same if these are."""
    return {
        key: hashlib.sha256((store.folder(key) / store.ARRAYS).read_bytes()).hexdigest()
        for key in store.listing()
    }


def test_a_model_that_two_notebooks_share_is_trained_once() -> None:
    first = [pool().signals(), pool().attack(LiRA())]
    second = [pool(2).signals()]
    found = plan([first, second])
    assert (found.models_asked, found.models_distinct, found.models_there) == (8, 6, 0)
    assert sum(isinstance(job.step, Train) for job in found.jobs.values()) == 6
    assert "8 asked for, 6 distinct, 0 already there, 6 to train" in found.preview(2)
    order = list(found.jobs)
    for job in found.jobs.values():
        assert all(order.index(need) < order.index(job.key) for need in job.needs)


def test_realize_trains_once_and_then_looks_up(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = pool().signals()
    attack = pool().attack(LiRA())
    results = lab.realize({"signals": signals}, attack)
    assert results[signals[0]]["logits"].shape == (120, 10)
    assert results[attack]["scores"].shape == results[attack]["member"].shape == (6, 80)
    assert (results[attack]["member"].sum(axis=1) == 40).all()
    before = fingerprint()
    monkeypatch.setattr("leak_atlas.lab.training.train", lambda *_: pytest.fail("trained twice"))
    again = lab.realize(signals, attack)
    assert np.array_equal(again[attack]["scores"], results[attack]["scores"])
    assert fingerprint() == before


def test_a_result_that_was_not_asked_for_is_named() -> None:
    networks = pool(2)
    results = lab.realize(networks[0])
    with pytest.raises(BadInput, match=r"no result of Train .*: give the step to realize"):
        results[networks[1]]


def test_a_late_request_reruns_the_same_trajectory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    train = pool()[0]
    lab.realize(train)
    lab.realize(train.at(1))
    late = fingerprint()
    assert late.keys() == {train.key, At(train, 1).key}
    monkeypatch.setenv("LEAK_ATLAS_STORE", str(tmp_path / "at once"))
    lab.realize(train, train.at(1))
    assert fingerprint() == late


def test_a_fresh_rewind_keeps_the_front_and_repeats_nothing_of_the_initialisation() -> None:
    import torch

    from leak_atlas.models.subject import weights

    train = pool()[0]
    lab.realize(train, train.at("init"))
    anew = train.rewind("stage4", fresh=True)
    fresh, again, trained, first = (
        weights(state)[0] for state in (anew, anew, train, train.at("init"))
    )
    name = "stage4.0.conv1.weight"
    assert torch.equal(fresh[name], again[name])
    assert not torch.equal(fresh[name], first[name])
    assert not torch.equal(fresh[name], trained[name])
    assert torch.equal(fresh["stage3.0.conv1.weight"], trained["stage3.0.conv1.weight"])
    assert train.rewind("stage4").key != anew.key


def test_states_whose_designs_use_other_samples_are_compared_sample_by_sample() -> None:
    """The second one's design has a reference set too, which shifts the places of its samples."""
    pair = Setup(DATA, Halves(80, test=40), MODEL, SHORT, 1).pairs()[0]
    tuned = pair.half.train(SHORT, PAST(), reference=16)
    for kind in (Distance, Similarity):
        steps = [kind(pair.whole, pair.half), kind(pair.whole, tuned)]
        results = lab.realize(steps)
        plain, other = (results[step] for step in steps)
        np.testing.assert_array_equal(plain["index"], other["index"])
        np.testing.assert_array_equal(plain["seen_b"], other["seen_b"])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda a, b: Distance(a, replace(b.training, data=Data("digits", 8))), "on the same data"),
        (lambda a, b: StageMembership(a), "row 0 of Halves holds the whole pool"),
        (lambda a, b: Attack(Threshold("loss"), (a,), (b,)), "row 0 of Halves holds the whole"),
        (lambda a, b: replace(a.training, seed=-1), r"Train\.seed"),
        (lambda a, b: pool(3).attack(RMIA("offline")), "row 0 has 1 shadows outside its own pair"),
        (lambda a, b: pool(2).attack(LiRA()), "ask for more models"),
    ],
)
def test_a_recipe_that_cannot_be_computed_is_refused(make, words: str) -> None:
    pair = Setup(DATA, Halves(80, test=40), MODEL, SHORT, 1).pairs()[0]
    with pytest.raises(BadInput, match=words):
        make(pair.whole, pair.half)


def test_readings_of_pairs_stages_and_populations_compute() -> None:
    pair = Setup(DATA, Halves(80, test=40), MODEL, SHORT, 1).pairs()[0]
    steps = [
        pair.distance(),
        pair.distance("blocks"),
        StageProbe(pair.whole, 16),
        Anatomy(DATA, MODEL),
    ]
    steps += [self_audit(pool()), Attack(Threshold("loss"), pool().states)]
    steps += [pair.similarity(), StageMembership(pair.half), Cost((pair.whole, pair.half))]
    results = lab.realize(steps)
    found = [results[step] for step in steps]
    distance, _, probed, anatomy, audited, attacked, alike, membership, cost = found
    assert distance["euclidean"].shape == (len(distance.parts), 80)
    assert distance["seen_a"].all()
    assert distance["seen_b"].sum() == 40
    assert len(probed["accuracy"]) == len(probed.parts)
    assert anatomy["parameters"].sum() > 0
    assert audited["duplicates"].shape == (6,)
    assert np.isfinite(attacked["thresholds"]).all()
    assert set(alike["index"]) < set(distance["index"])
    both = np.isin(distance["index"], membership["index"])
    np.testing.assert_array_equal(membership["member"], distance["seen_b"][both])
    assert cost["flops"][0] == 2 * cost["flops"][1], "twice the members"


def test_a_self_audit_counts_the_samples_on_both_sides_of_each_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LEAK_ATLAS_DATA", str(tmp_path / "data"))
    x = np.random.default_rng(0).integers(0, 256, (100, 6, 6, 3), np.uint8)
    x[60:80] = x[:20]
    y = np.arange(100) % 4
    np.savez(tmp_path / "a.npz", x_train=x[:80], y_train=y[:80], x_test=x[80:], y_test=y[80:])
    own.add("twins", tmp_path / "a.npz")
    data = Data("twins")
    step = self_audit(Setup(data, RandomHalves(80, test=20), MODEL, SHORT, 4).trained())
    counted = lab.realize(step)[step]["duplicates"]
    role, index, _ = roles(data, step.design, step.rows)
    contents = np.array([sample.tobytes() for sample in x[index]])
    for row, count in zip(role, counted, strict=True):
        members = contents[row == Role.MEMBER]
        twins = np.intersect1d(members, contents[row != Role.MEMBER])
        assert count == 2 * len(twins) > 0


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """As on a GPU, several jobs take turns in this process; who was under way is noted at each
    turn.
    """
    from leak_atlas.training import loop

    under_way: set[int] = set()
    most = [0]

    def counted(number: int, one):
        under_way.add(number)
        most[0] = max(most[0], len(under_way))
        try:
            return (yield from one)
        finally:
            under_way.remove(number)

    def many(given, streams: int = 1):
        one = (counted(number, job) for number, job in enumerate(given))
        return loop._in_turn(enumerate(one), [None] * streams)

    monkeypatch.setattr(loop, "fit_many", many)
    return most


def test_company_on_a_gpu_changes_no_bit(
    streams: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = [
        pool().attack(LiRA()),
        pool().rewind("stage4").freeze("stage4").train(Schedule(1, 32)).signals(),
    ]
    asked.append(Signals(pool()[3].at(1)))
    with monkeypatch.context() as patch:
        patch.setattr("leak_atlas.lab.run.STREAMS", 1)
        lab.realize(asked)
    assert streams == [1]
    alone = fingerprint()
    for count in (3, 50):
        monkeypatch.setenv("LEAK_ATLAS_STORE", str(tmp_path / str(count)))
        monkeypatch.setattr("leak_atlas.lab.run.STREAMS", count)
        lab.realize(asked)
        assert fingerprint() == alone
        assert min(count, 6) <= streams[0] <= count


def test_a_failing_step_is_named_and_its_siblings_are_kept() -> None:
    good = pool()
    bad = pool(schedule=Schedule(2, 32, lr=1e30, weight_decay=1e30))
    with pytest.raises(lab.Failed, match=r"Train [0-9a-f]{12}: Diverged"):
        lab.realize(bad.signals(), good.signals())
    assert all(store.has(Signals(state).key) for state in good)
    assert not any(store.has(state.key) for state in bad)


def tear(*steps: Step) -> None:
    """As a loss of power does: half of the arrays is on the disk."""
    for step in steps:
        path = store.folder(step.key) / store.ARRAYS
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("workers", [1, 2])
def test_however_many_inputs_are_torn_one_call_computes_them_again(
    workers: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A job meets one at a time; what two jobs read, one of them may find gone."""
    monkeypatch.setattr("leak_atlas.lab.run.ENOUGH", 0.0)
    monkeypatch.setenv("LEAK_ATLAS_PROGRESS", "log")
    signals = pool().signals()
    attacks = [pool().attack(LiRA()), pool().attack(Threshold())]
    lab.realize(signals)
    before = fingerprint()
    tear(*signals[:4], pool()[0])
    lab.realize(attacks, workers=workers)
    assert {key: value for key, value in fingerprint().items() if key in before} == before
    assert all(store.has(attack.key) for attack in attacks)
    output = capfd.readouterr()
    assert "100 % of the work, 2 of 2 steps" in output.out
    if workers == 1:  # others say so on the stderr with which they began
        assert all(f"{step.key[:12]} is corrupt" in output.err for step in signals[:4])
    tear(signals[0])
    assert lab.realize(signals)[signals[0]]["logits"].shape == (120, 10)


def test_a_disk_that_tears_an_entry_again_gets_no_third_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signals = pool().signals()
    attack = pool().attack(LiRA())
    read = store.read
    tries = list[str]()
    lab.realize(signals)

    def torn(key: str) -> store.Entry:
        if key != signals[0].key:
            return read(key)
        tries.append(key)
        raise store.Corrupt(key, "torn")

    monkeypatch.setattr(store, "read", torn)
    with pytest.raises(lab.Failed, match=f"{signals[0].key[:12]} is corrupt"):
        lab.realize(attack)
    assert len(tries) == 2


def test_a_job_that_another_run_has_done_by_now_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """An input is corrupt; until it could be computed again, another process stores the result."""
    signals = pool().signals()
    attack = pool().attack(LiRA())
    lab.realize(signals)
    (job,) = plan([attack]).jobs.values()
    really = jobs.run

    def run(job: Job) -> Generator[None, None, jobs.Meta]:
        yield from really(job)
        raise store.Corrupt(signals[0].key, "torn")

    monkeypatch.setattr(jobs, "run", run)
    (outcome,) = jobs.do([job])
    assert not outcome.error and store.has(attack.key)


def test_a_result_names_the_processor_that_computed_it() -> None:
    (step, *_) = pool().signals()
    processor = lab.realize(step).meta(step)["processor"]
    assert torch.backends.cpu.get_cpu_capability() in processor


def test_realize_takes_steps_and_only_asks_while_a_batch_plans() -> None:
    with lab.planning(), pytest.raises(lab.Planned) as caught:
        lab.realize(pool().signals())
    assert len(caught.value.steps) == 6
    assert not list(store.listing())
    with pytest.raises(BadInput, match="realize takes steps"):
        lab.realize("fig01")


def test_an_attacker_need_not_know_the_defence() -> None:
    plain = pool()
    private = plain.rewind("stage4").freeze("stage4").train(Schedule(1, 32), RelaxLoss(0.5))
    naive = private.attack(LiRA(), targets=2, shadows=plain)
    adaptive = private.attack(LiRA(), targets=2)
    results = lab.realize(naive, adaptive)
    assert {s.of for s in naive.parents()} == {*private[:2], *plain}
    assert results[naive]["scores"].shape == results[adaptive]["scores"].shape == (2, 80)
    assert not np.array_equal(results[naive]["scores"], results[adaptive]["scores"])


def test_a_target_is_attacked_by_shadows_of_the_other_half() -> None:
    """Thresholds are learnt on samples that the target never met; offline attacks need no shadow
    that met its own.
    """
    design = VictimAttacker(400, test=40, dev=20)
    halves = Setup(DATA, design, MODEL, Schedule(2, 32, patience=1), 4).trained()
    attacks = {
        attacker: halves.attack(attacker, targets=1, shadows=halves)
        for attacker in (
            Threshold("loss"),
            Threshold("loss", by_class=False),
            LiRA("offline_cdf"),
            RMIA("offline"),
        )
    }
    results = lab.realize(attacks, halves.signals())
    for attack in attacks.values():
        assert results[attack]["scores"].shape == (1, 180)
        assert results[attack]["member"].sum() == 90
        for shadow in attack.shadows_of(attack.targets[0]):
            known = results[Signals(shadow)]
            pool_of_shadow = known["index"][np.isin(known["role"], (Role.MEMBER, Role.NONMEMBER))]
            assert len(pool_of_shadow) == 180
            assert not np.isin(pool_of_shadow, results[attack]["index"]).any()
    with pytest.raises(BadInput, match="take an offline mode"):
        halves.attack(LiRA(), targets=1, shadows=halves)


@pytest.mark.parametrize(
    "attacker", [LiRA(variance="code", centre="median", views=2), RMIA(views=2), BASE()], ids=str
)
def test_every_attacker_scores(attacker) -> None:
    attack = pool().attack(attacker)
    scores = lab.realize(attack)[attack]["scores"]
    assert scores.shape == (6, 80)
    assert np.isfinite(scores).all()


def test_what_an_attacker_learns_is_stored_and_shared_by_all_targets_with_the_same_shadows() -> (
    None
):
    states = pool(8)
    dense = pool(8, Schedule(1, 32))
    quick = Network("posterior_label", hidden=(16,), epochs=2)
    attack = states.attack(quick)
    fewer = states.attack(quick, targets=2)
    learnt = {step for step in attack.parents() if isinstance(step, Learnt)}
    assert len(learnt) == 4, "the two rows of a pair have the same shadows"
    results = lab.realize(attack, fewer)
    found = results[attack]
    assert found["scores"].shape == (8, 80)
    assert not found["thresholds"].any()
    assert np.array_equal(results[fewer]["scores"], found["scores"][:2]), (
        "a net does not depend on its neighbours"
    )
    cross = [one.attack(quick, 1, dense) for one in (states, dense)]
    steps = plan([cross]).jobs.values()
    assert sum(isinstance(job.step, Learnt) for job in steps) == 1
