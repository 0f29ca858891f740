"""A study's populations are those that pages declared by hand: the same keys."""

from dataclasses import replace

import pytest

from leak_atlas.recipe import (
    PPB,
    RMR,
    AdversarialRegularization,
    Data,
    DefenceStudy,
    Halves,
    LiRA,
    Model,
    Population,
    ProbeStudy,
    PruningStudy,
    RandomHalves,
    RelaxLoss,
    RewindStudy,
    Schedule,
    Setup,
    Signals,
    Sparsity,
    StageStudy,
    Threshold,
    TrajectoryStudy,
    VictimAttacker,
    Vulnerability,
    Window,
    WindowStudy,
    seed_floors,
)

DATA, MODEL = Data(pixels=8), Model("resnet10", width=4)


def pruning(schedule: Schedule) -> PruningStudy:
    return PruningStudy(DATA, MODEL, schedule, 3, pool=80, dev=8, targets=2, shadows=3, seed=5)


def test_a_pruning_study_by_hand() -> None:
    schedule = Schedule(6, 16, "adam", 0.002, decay="constant", patience=4)
    study, after = pruning(schedule), replace(schedule, epochs=3)
    setup = Setup(DATA, VictimAttacker(80, seed=5, dev=8, victims=2), MODEL, schedule, 5, 5)
    dense = setup.trained()
    assert study.dense == dense and study.tuned() == dense.train(after)
    by_hand = dense.pruned("slimming", 0.6).train(after, PPB(4.0))
    assert study.pruned("slimming", 0.6, PPB(4.0)) == by_hand
    assert study.removed(by_hand) == [Sparsity(state) for state in by_hand.states[:2]]
    assert study.target_networks(by_hand) == Population(by_hand.states[:2])
    assert study.shadow_models(by_hand) == Population(by_hand.states[2:])


@pytest.mark.parametrize(("decay", "ends"), [("constant", (6, 6)), ("cosine", (2, 4))])
def test_each_stop_ends_its_own_decay(decay: str, ends: tuple[int, int]) -> None:
    study = pruning(Schedule(6, 16, "adam", 0.002, decay=decay, patience=2))
    free = replace(study.schedule, patience=None)
    for (epoch, stopped), end in zip(study.stopped([2, 4]).items(), ends, strict=True):
        whole = study.setup.trained(schedule=replace(free, epochs=end))
        assert stopped == whole.at(epoch)


@pytest.mark.parametrize("decay", ["constant", "cosine"])
def test_a_pruned_network_stops_before_or_after_pruning(decay: str) -> None:
    study = pruning(Schedule(6, 16, "adam", 0.002, decay=decay))
    stopped = study.pruned_early("slimming", 0.6, before=[4], after=[1, 2])
    assert list(stopped) == [5, 7, 8]

    def tuned(dense: Population, epoch: int) -> Population:
        bare = dense.pruned("slimming", 0.6)
        if decay == "constant":
            return bare.train(study.tuning).at(epoch)
        return bare.train(replace(study.tuning, epochs=epoch))

    assert stopped[5] == tuned(study.stopped([4])[4], 1)
    assert stopped[8] == tuned(study.dense, 2)


def test_a_defence_study_by_hand() -> None:
    schedule = Schedule(6, 16, "adam", 0.002)
    sizes = {"pool": 80, "dev": 8, "targets": 2, "shadows": 3, "seed": 5}
    defences = {"PPB": PPB(4.0), "ADV": AdversarialRegularization(2.0)}
    study = DefenceStudy(
        DATA, MODEL, schedule, 3, **sizes, sparsity=0.6, defences=defences, reference=10
    )
    networks = study.networks(["slimming"])
    assert list(networks) == [("slimming", name) for name in ("Base", "PPB", "ADV")]
    bare = study.dense.pruned("slimming", 0.6)
    assert networks["slimming", "Base"] == bare.train(study.tuning)
    assert networks["slimming", "PPB"] == bare.train(study.tuning, PPB(4.0))
    by_hand = bare.train(study.tuning, AdversarialRegularization(2.0), reference=10)
    assert networks["slimming", "ADV"] == by_hand
    assert study.sensitivities(networks, 7)["slimming", "PPB"] == Population(
        networks["slimming", "PPB"].states[:2]
    ).sensitivity(7)


def test_a_rewind_study_by_hand() -> None:
    schedule, score = Schedule(4, 16, "adam", lr=0.005), Vulnerability(steps=3, batch=16)
    sizes = {"pool": 80, "test": 20, "dev": 10, "reference": 12, "seed": 3}
    study = RewindStudy(DATA, MODEL, schedule, 2, score, models=4, **sizes)
    design = RandomHalves(**sizes)
    setup = Setup(DATA, design, MODEL, schedule, 4, 3)
    ordinary, short = setup.trained(), Schedule(2, 16, "adam", lr=0.005)
    by = ordinary.score(score)
    held = ordinary.rewind_weights(by, 0.1).freeze_weights(by, 0.1)
    assert study.ordinary == ordinary
    assert study.rewound(0.1) == held
    assert study.inside(0.1, RelaxLoss(0.3)) == held.train(short, RelaxLoss(0.3))
    drawn = tuple(score.shuffle() for score in by)
    by_chance = ordinary.rewind_weights(drawn, 0.1).freeze_weights(drawn, 0.1)
    assert study.rewound(0.1, study.random_scores) == by_chance != held
    assert study.inside(0.1, scores=study.random_scores) == by_chance.train(short)
    assert study.tuned(RelaxLoss(0.3)) == ordinary.train(short, RelaxLoss(0.3))
    assert study.defended(RelaxLoss(0.3)) == setup.trained(RelaxLoss(0.3))
    assert study.in_three_ways(RelaxLoss(0.3), 0.1) == {
        "from scratch": study.defended(RelaxLoss(0.3)),
        "nothing rewound": study.tuned(RelaxLoss(0.3)),
        "inside CWRF": study.inside(0.1, RelaxLoss(0.3)),
    }


def test_a_stage_study_by_hand() -> None:
    schedule, relax = Schedule(4, 16, "adam", lr=0.005), RelaxLoss(0.3)
    sizes = {"pool": 80, "test": 20, "dev": 10, "reference": 12, "seed": 3}
    study = StageStudy(DATA, MODEL, schedule, 2, "stage3", models=4, **sizes)
    ordinary = Setup(DATA, RandomHalves(**sizes), MODEL, schedule, 4, 3).trained()
    short = replace(schedule, epochs=2)
    assert study.rewound() == ordinary.rewind("stage3").freeze("stage3")
    assert study.inside() == study.rewound().train(short)
    assert study.inside(relax, cut="head", epochs=4) == study.rewound(cut="head").train(
        schedule, relax
    )
    assert study.tuned_head(relax) == ordinary.freeze("head").train(short, relax)
    longer, start = replace(schedule, epochs=6), study.defended(relax)
    assert study.defended(relax, epochs=6) == study.setup.trained(relax, longer)
    assert study.inside(start=start) == start.rewind("stage3").freeze("stage3").train(short)
    by_strength = study.strengths("RelaxLoss", {"0.3": relax})
    assert by_strength["RelaxLoss", "from scratch", "0.3"] == study.defended(relax)
    assert by_strength["RelaxLoss", "inside PPTP", "0.3"] == study.inside(relax)


def test_a_window_study_by_hand() -> None:
    schedule = Schedule(6, 16, "adam", 0.002, decay="constant", patience=4)
    sizes = {"pool": 80, "dev": 8, "targets": 2, "shadows": 3, "seed": 5, "fine_tuning": 3}
    scores = {"judges": 4, "share": 0.7, "score_epochs": 2}
    study = WindowStudy(DATA, MODEL, schedule, **sizes, sparsity=0.6, rounds=2, **scores)
    setup = Setup(DATA, VictimAttacker(80, seed=5, dev=8, victims=2), MODEL, schedule, 5, 5)
    dense, short = setup.trained(), replace(schedule, epochs=3)
    ranking = setup.memorization(4, 0.7, replace(schedule, epochs=2, patience=None))
    assert study.ranking.key == ranking.key
    window = {"sampling": Window(3, 1), "ranking": ranking}
    by_hand = dense.iteratively("L1 unstructured", 0.6, short, 2, True, **window)
    assert study.iterative(**window) == by_hand
    assert not replace(study, model=Model("fc", width=4)).head and study.head
    # A half has 40 samples, 8 of them dev: 16 members of ten classes. A class has one member, which
    # the window visits in the first epoch alone.
    assert study.class_members == study.epochs_like(Window(3, 1)) == 1


def test_variants_of_a_window_study_by_hand() -> None:
    schedule = Schedule(6, 16, "adam", 0.002, decay="constant")
    sizes = {"pool": 400, "dev": 20, "targets": 2, "shadows": 1, "seed": 5, "fine_tuning": 3}
    scores = {"judges": 4, "share": 0.7, "score_epochs": 2}
    study = WindowStudy(DATA, MODEL, schedule, **sizes, sparsity=0.6, rounds=2, **scores)
    dense, short, window = study.dense, study.tuning, Window(3, 1)
    pruned, penalty = ("L1 unstructured", 0.6), RMR(0.1)

    def rounds(start: Population, schedule: Schedule, **training: object) -> Population:
        return start.iteratively(*pruned, schedule, 2, True, **training)[-1]

    by_score = {"ranking": study.ranking}
    assert study.base == rounds(dense, short)
    assert study.defended(PPB(4.0)) == rounds(dense, short, objective=PPB(4.0))
    assert study.penalized(penalty) == rounds(dense, short, objective=penalty, **by_score)
    assert study.windowed(window) == rounds(dense, short, sampling=window, **by_score)
    both = {"sampling": window, "objective": penalty}
    assert study.windowed(window, penalty=penalty) == rounds(dense, short, **both, **by_score)
    chance = study.ranking.shuffle(1)
    by_chance = rounds(dense, short, sampling=window, ranking=chance)
    assert study.windowed(window, chance) == by_chance
    permuted = rounds(dense, short, objective=penalty, ranking=chance)
    assert study.penalized(penalty, chance) == permuted
    # 9 members a class; epochs visit ranks 0-2, 1-3 and 2-4: five of the nine, nine visits
    assert study.class_members == 9 and study.coverage(window) == 5 / 9
    assert study.same_visits(window) == rounds(dense, replace(short, epochs=1))
    once = replace(short, epochs=1)
    by_hand = {2: rounds(dense.at(2), once), 6: rounds(dense.at(6), once)}
    assert study.stopped_early([2, 6]) == by_hand | {9: dense.train(short, order=1)}
    assert study.rounds_without_pruning() == dense.iteratively(None, 0, short, 2)
    shot = dense.pruned(*pruned, True).iteratively(None, 0, short, 2)
    assert study.pruned_at_once() == shot


def test_a_probe_study_by_hand() -> None:
    schedule = Schedule(2, 16)
    study = ProbeStudy(DATA, MODEL, schedule, pool=80, pairs=3, seed=2)
    pairs = Setup(DATA, Halves(80, seed=2), MODEL, schedule, 3, 2).pairs()
    assert study.probes == pairs
    assert study.distances("blocks") == [pair.distance("blocks") for pair in pairs]
    assert study.floors() == seed_floors(pairs)
    assert (study.wholes()[1], study.halves()[1]) == (
        Signals(pairs[1].whole),
        Signals(pairs[1].half),
    )
    alone = Population(tuple(pair.half for pair in pairs))
    assert study.attack(Threshold()).key == alone.attack(Threshold()).key


def test_a_trajectory_study_by_hand() -> None:
    schedule = Schedule(4, 16)
    study = TrajectoryStudy(DATA, MODEL, schedule, 80, 20, 16, [0, 2, 4], seed=2, compared=12)
    whole = Setup(DATA, RandomHalves(80, test=20, seed=2), MODEL, schedule, 16, 2).trained()
    trained = Population(whole.states[:12])
    assert study.trained == trained
    assert study.attacks() == trained.attack_over_time(LiRA(), [0, 2, 4])
    assert study.attacks(permuted=0) == trained.attack_over_time(LiRA(), [0, 2, 4], 0)
    loss = Threshold("loss", by_class=False)
    assert study.fits("loss") == trained.attack_over_time(loss, [0, 2, 4])
    epochs = {0: trained.at("init"), 2: trained.at(2), 4: trained}
    assert study.signals() == {epoch: each.signals() for epoch, each in epochs.items()}
    pair = trained.halvings(1)[0]
    by_hand = [[half.attack_over_time(LiRA(), [2, 4], 0) for half in pair]]
    assert study.halves(1, [2, 4], permuted=0) == by_hand
    judges = study.judges(3, 0.5)
    ranking = Setup(DATA, RandomHalves(80, test=20, seed=2), MODEL, schedule, 16, 2)
    assert judges == Population(ranking.memorization(3, 0.5).models)
    first, second = Population(trained.states[:6]), Population(trained.states[6:])
    assert study.attacked_halves(LiRA()) == [{4: first.attack(LiRA())}, {4: second.attack(LiRA())}]
    taught = [
        first.attack(Threshold(), shadows=Population(trained.states[6:8])),
        second.attack(Threshold(), shadows=Population(trained.states[:2])),
    ]
    assert study.attacked_halves(Threshold(), 2) == [{4: each} for each in taught]
